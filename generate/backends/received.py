"""Images that were made elsewhere, by a service or another program: decoded within bounds, since whoever sent them is not trusted."""

from __future__ import annotations

import base64
import binascii
import io
import struct
import warnings
import zlib

from PIL import Image, UnidentifiedImageError

from t2i_parity.generate.engine.local import Failure

MOST_BYTES = 64 * 2**20
"""No image file of a size that any model makes is larger."""
MOST_PIXELS = 8192 * 8192
"""More pixels than any model makes; what claims more is refused before it is decoded."""
FORMATS = ("PNG", "JPEG", "WEBP", "GIF")


def decoded(content: bytes) -> Image.Image | Failure:
    """The picture in a file's bytes, in RGB and in its own size, or why there is none.

    >>> decoded(b"no image").reason
    'not an image in PNG, JPEG, WEBP or GIF (8 bytes)'
    """
    if len(content) > MOST_BYTES:
        return Failure(f"an image file of {len(content):,} bytes is refused; the most is {MOST_BYTES:,}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(content), formats=FORMATS) as opened:
                width, height = opened.size
                if width * height > MOST_PIXELS:
                    return Failure(f"an image of {width} × {height} pixels is refused; the most are {MOST_PIXELS:,} in all")
                return opened.convert("RGB")
    except Image.DecompressionBombError:
        return Failure(f"an image that claims far more than {MOST_PIXELS:,} pixels is refused")
    except UnidentifiedImageError:
        return Failure(f"not an image in {', '.join(FORMATS[:-1])} or {FORMATS[-1]} ({len(content)} bytes)")
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, zlib.error) as error:
        return Failure(f"the image cannot be decoded ({type(error).__name__}: {error})")


def from_base64(text: object) -> Image.Image | Failure:
    """The picture in the base64 text of a JSON answer, or why there is none.

    >>> from_base64("%%%").reason
    'the image is not valid base64'
    """
    if not isinstance(text, str):
        return Failure(f"the image is a JSON {type(text).__name__}, not base64 text")
    if len(text) > MOST_BYTES * 4 // 3 + 4:
        return Failure(f"an image of {len(text):,} base64 characters is refused")
    try:
        return decoded(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError):
        return Failure("the image is not valid base64")
