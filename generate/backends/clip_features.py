"""CLIP embeddings for the judges that stand on them: one encoder, each distinct text once, each image once for all judges of a pass."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property, lru_cache, partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.metrics.clip_score.core import Encoder, Features

Dtype = Literal["float32", "bfloat16", "float16"]

TEXTS_KEPT = 32_768
"""How many texts' embeddings are kept (128 MiB at a width of 1,024), so that memory does not grow with a run."""


class ClipFeatures:
    """An :class:`~metrics.clip_score.core.Encoder` that remembers: texts that it has encoded, and images that are still in use.

    ``model``, ``pretrained`` and ``dtype`` are the encoder's; ``device`` may be ``auto``. Judges may call from several threads: they wait
    for each other, and find what another has just encoded. Raises InputError when the checkpoint cannot be had.
    """

    def __init__(self, model: str, pretrained: str, device: str = "auto", dtype: str = "float32") -> None:
        require("open_clip", package="open_clip_torch", extra="clip")
        try:
            self.encoder = Encoder(model, pretrained, None if device == "auto" else device, dtype)
        except (ValueError, RuntimeError) as error:
            raise InputError(str(error)) from error
        self.model, self.pretrained, self.dtype = self.encoder.model, self.encoder.pretrained, dtype
        self._lock = threading.RLock()
        self._texts: OrderedDict[str, tuple[Features, bool]] = OrderedDict()
        self._images: dict[int, tuple[weakref.ref[Image.Image], Features]] = {}

    @cached_property
    def width(self) -> int:
        """How many numbers an embedding has."""
        return int(self.encoder.encode_images([Image.new("RGB", (64, 64))]).shape[1])

    def fields(self) -> dict[str, str]:
        """What a judge's signature says of it."""
        return {"model": self.model, "pretrained": self.pretrained, "dtype": self.dtype}

    def images(self, images: Sequence[Image.Image]) -> Features:
        """(images, width) embeddings, float32, not normalised; an image that another judge of the pass has asked for is not encoded again.

        An image is told by being the same object, so it must not be drawn on between two calls.
        """
        with self._lock:
            new = [image for image in images if not self._knows(image)]
            encoded: Sequence[Features] = list(self.encoder.encode_images(new)) if new else []
            for image, feature in zip(new, encoded, strict=True):
                self._images[id(image)] = weakref.ref(image, partial(self._forget, id(image))), feature
            return np.stack([self._images[id(image)][1] for image in images])

    def _knows(self, image: Image.Image) -> bool:
        kept = self._images.get(id(image))
        return kept is not None and kept[0]() is image

    def _forget(self, key: int, _: weakref.ref[Image.Image]) -> None:
        self._images.pop(key, None)

    def texts(self, texts: Sequence[str]) -> tuple[Features, NDArray[np.bool_]]:
        """(texts, width) embeddings, float32, not normalised, and whether each text was cut; what was encoded before is not again."""
        with self._lock:
            new = [text for text in dict.fromkeys(texts) if text not in self._texts]
            if new:
                self._texts.update(zip(new, zip(*self.encoder.encode_texts(new), strict=True), strict=True))
            for text in texts:
                self._texts.move_to_end(text)
            found = [self._texts[text] for text in texts]
            while len(self._texts) > TEXTS_KEPT:
                self._texts.popitem(last=False)
        return np.stack([feature for feature, _ in found]), np.array([cut for _, cut in found], np.bool_)


@lru_cache(maxsize=4)
def _loaded(model: str, pretrained: str, device: str, dtype: str) -> ClipFeatures:
    return ClipFeatures(model, pretrained, device, dtype)


def clip_features(settings: Any) -> ClipFeatures:
    """The features of settings that have ``model``, ``pretrained``, ``device`` and ``dtype``: judges of equal ones share them."""
    return _loaded(settings.model, settings.pretrained, settings.device, settings.dtype)
