"""The pictures of the four trick questions (§2, "Validating Responses"): a mango, a glass of water, a pen and the sun, drawn here.

A keeper who has photographs or generated images of the four gives a folder instead: drawings stand out among generated images.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from pathlib import Path

from PIL import Image, ImageDraw, ImageFilter

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.validation.survey.pictures import SIDE, encoded
from t2i_parity.validation.survey.ratings import TRICKS

_SCALE = 2
_S = SIDE * _SCALE
SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


def pictures(folder: str | None = None) -> Mapping[str, bytes]:
    """The encoded picture of each trick question by ``trick-<noun>``; from a folder with mango, water, pen and sun, or drawn.

    Raises InputError when the folder lacks one, or holds one that is no picture.
    """
    return {f"trick-{trick.noun}": _given(Path(folder), trick.shown) if folder else _drawn(trick.shown) for trick in TRICKS.values()}


def _given(folder: Path, shown: str) -> bytes:
    file = next((path for suffix in SUFFIXES if (path := folder / f"{shown}{suffix}").is_file()), None)
    if file is None:
        names = ", ".join(trick.shown for trick in TRICKS.values())
        raise InputError(f"{folder} holds no picture {shown} ({', '.join(SUFFIXES)}); the trick questions need one each of {names}")
    webp = encoded(file.read_bytes())
    if webp is None:
        raise InputError(f"{file} is no picture that can be read; give a PNG, JPEG or WebP file")
    return webp


def _drawn(shown: str) -> bytes:
    draw = {"mango": _mango, "water": _water, "pen": _pen, "sun": _sun}[shown]
    buffer = io.BytesIO()
    draw().save(buffer, "PNG", compress_level=1)
    webp = encoded(buffer.getvalue())
    if webp is None:
        raise AssertionError(f"the drawing of {shown} cannot be read")
    return webp


def _gradient(top: tuple[int, int, int], bottom: tuple[int, int, int], size: tuple[int, int] = (_S, _S)) -> Image.Image:
    """A vertical gradient."""
    mask = Image.linear_gradient("L").resize(size)
    return Image.composite(Image.new("RGB", size, bottom), Image.new("RGB", size, top), mask)


def _paste(ground: Image.Image, fill: Image.Image, mask: Image.Image, blur: float = 0) -> None:
    ground.paste(fill, (0, 0), _blurred(mask, blur) if blur else mask)


def _blurred(mask: Image.Image, radius: float) -> Image.Image:
    """Blurred; a wide blur is made on a smaller picture, which nobody can tell and takes a tenth of the time."""
    if radius < 16:
        return mask.filter(ImageFilter.GaussianBlur(radius))
    small = mask.reduce(8).filter(ImageFilter.GaussianBlur(radius / 8))
    return small.resize(mask.size, Image.Resampling.BICUBIC)


def _plain(colour: tuple[int, int, int]) -> Image.Image:
    return Image.new("RGB", (_S, _S), colour)


def _mask() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    mask = Image.new("L", (_S, _S), 0)
    return mask, ImageDraw.Draw(mask)


def _table(top: tuple[int, int, int], bottom: tuple[int, int, int], wood: tuple[int, int, int], edge: float) -> Image.Image:
    """A wall, and a table whose edge is at a share of the height."""
    ground = _gradient(top, bottom)
    light = tuple(min(255, value + 22) for value in wood)
    board = _gradient((light[0], light[1], light[2]), wood, (_S, _S - int(edge * _S)))
    ground.paste(board, (0, int(edge * _S)))
    return ground


def _shadow(ground: Image.Image, box: tuple[float, float, float, float], strength: int = 90) -> None:
    mask, draw = _mask()
    draw.ellipse([value * _S for value in box], fill=strength)
    _paste(ground, _plain((30, 22, 16)), mask, 26 * _SCALE / 2)


def _mango() -> Image.Image:
    ground = _table((242, 236, 224), (226, 216, 198), (168, 122, 82), 0.62)
    _shadow(ground, (0.2, 0.71, 0.84, 0.83), 120)
    outline = []
    for step in range(361):
        angle = math.radians(step)
        # An egg that leans to one side and ends in the small beak of a mango.
        radius = 0.255 * (1 + 0.16 * math.cos(angle) + 0.06 * math.cos(2 * angle - 0.9) + 0.035 * math.sin(3 * angle))
        x, y = radius * math.cos(angle) * 1.12, radius * math.sin(angle) * 0.86
        turn = math.radians(-24)
        outline.append((_S * (0.5 + x * math.cos(turn) - y * math.sin(turn)), _S * (0.53 + x * math.sin(turn) + y * math.cos(turn))))
    body, draw = _mask()
    draw.polygon(outline, fill=255)
    _paste(ground, _gradient((236, 150, 40), (246, 190, 60)), body, 1.5)
    for box, colour, blur, strength in (
        ((0.5, 0.2, 0.95, 0.66), (206, 58, 40), 90, 210),
        ((0.1, 0.5, 0.5, 0.9), (150, 170, 60), 80, 170),
        ((0.3, 0.68, 0.8, 0.95), (150, 78, 16), 70, 170),
        ((0.38, 0.32, 0.52, 0.42), (255, 244, 214), 30, 190),
    ):
        spot, draw = _mask()
        draw.ellipse([value * _S for value in box], fill=strength)
        spot = _blurred(spot, blur * _SCALE / 2)
        inside = Image.composite(spot, Image.new("L", (_S, _S), 0), body)
        _paste(ground, _plain(colour), inside)
    stem = ImageDraw.Draw(ground)
    bends = [(_S * 0.735, _S * 0.375), (_S * 0.765, _S * 0.33), (_S * 0.768, _S * 0.295)]
    stem.line(bends, fill=(92, 66, 34), width=_S // 60, joint="curve")
    return ground


def _water() -> Image.Image:
    ground = _table((214, 226, 232), (196, 210, 218), (150, 132, 112), 0.7)
    _shadow(ground, (0.28, 0.79, 0.8, 0.88), 90)
    glass = [(0.3, 0.16), (0.7, 0.16), (0.65, 0.83), (0.35, 0.83)]
    water = [(0.315, 0.36), (0.685, 0.36), (0.648, 0.81), (0.352, 0.81)]
    layer, draw = _mask()
    draw.polygon([(x * _S, y * _S) for x, y in glass], fill=70)
    draw.ellipse([0.35 * _S, 0.8 * _S, 0.65 * _S, 0.86 * _S], fill=90)
    _paste(ground, _plain((246, 251, 253)), layer, 2)
    layer, draw = _mask()
    draw.polygon([(x * _S, y * _S) for x, y in water], fill=130)
    draw.ellipse([0.352 * _S, 0.785 * _S, 0.648 * _S, 0.84 * _S], fill=130)
    _paste(ground, _gradient((176, 214, 232), (120, 176, 206)), layer, 2)
    layer, draw = _mask()
    draw.ellipse([0.315 * _S, 0.335 * _S, 0.685 * _S, 0.385 * _S], fill=190)
    _paste(ground, _plain((212, 235, 245)), layer, 1.5)
    lines = ImageDraw.Draw(ground)
    for box in ((0.3, 0.13, 0.7, 0.19), (0.315, 0.335, 0.685, 0.385)):
        lines.ellipse([value * _S for value in box], outline=(240, 248, 251), width=_S // 200)
    for (x0, y0), (x1, y1) in (((0.3, 0.16), (0.35, 0.83)), ((0.7, 0.16), (0.65, 0.83))):
        lines.line([(x0 * _S, y0 * _S), (x1 * _S, y1 * _S)], fill=(236, 245, 249), width=_S // 180)
    layer, draw = _mask()
    draw.polygon([(x * _S, y * _S) for x, y in ((0.36, 0.24), (0.4, 0.24), (0.418, 0.74), (0.395, 0.74))], fill=170)
    draw.polygon([(x * _S, y * _S) for x, y in ((0.6, 0.42), (0.615, 0.42), (0.6, 0.74), (0.592, 0.74))], fill=110)
    _paste(ground, _plain((255, 255, 255)), layer, 8)
    return ground


def _pen() -> Image.Image:
    ground = _gradient((236, 230, 216), (222, 213, 194))
    lines = ImageDraw.Draw(ground)
    for number in range(1, 12):
        lines.line([(0, _S * number / 12), (_S, _S * number / 12)], fill=(196, 204, 214), width=_S // 320)
    pen = Image.new("RGBA", (_S, _S), (0, 0, 0, 0))
    draw = ImageDraw.Draw(pen)

    def part(x0: float, x1: float, half: float, colour: tuple[int, int, int]) -> None:
        """A stretch of the barrel: dark below, with a light along its upper third."""
        for row in range(int(-half * _S), int(half * _S) + 1):
            place = row / (half * _S)
            shine = max(0.0, 1 - abs(place + 0.42) * 2.2)
            shade = 0.55 + 0.45 * math.sqrt(max(0.0, 1 - place * place))
            mixed = [min(255, int(value * shade + 130 * shine * shine)) for value in colour]
            draw.line([(x0 * _S, 0.5 * _S + row), (x1 * _S, 0.5 * _S + row)], fill=(*mixed, 255))

    part(0.13, 0.16, 0.026, (190, 194, 200))
    part(0.16, 0.42, 0.036, (24, 62, 132))
    part(0.42, 0.44, 0.039, (204, 178, 110))
    part(0.44, 0.74, 0.034, (24, 62, 132))
    part(0.74, 0.76, 0.034, (204, 178, 110))
    for colour, corners in (
        ((178, 182, 190, 255), ((0.76, 0.468), (0.76, 0.532), (0.865, 0.507), (0.865, 0.493))),
        ((236, 238, 242, 255), ((0.76, 0.476), (0.76, 0.492), (0.865, 0.497), (0.865, 0.494))),
        ((60, 62, 70, 255), ((0.865, 0.493), (0.865, 0.507), (0.89, 0.5))),
    ):
        draw.polygon([(x * _S, y * _S) for x, y in corners], fill=colour)
    draw.rounded_rectangle([0.2 * _S, 0.452 * _S, 0.41 * _S, 0.468 * _S], radius=_S // 160, fill=(206, 210, 216, 255))
    pen = pen.rotate(32, Image.Resampling.BICUBIC)
    shadow = pen.getchannel("A").point(lambda value: value * 110 // 255).filter(ImageFilter.GaussianBlur(11 * _SCALE / 2))
    ground.paste(_plain((60, 48, 34)), (_S // 60, _S // 40), shadow)
    ground.paste(pen.convert("RGB"), (0, 0), pen.getchannel("A"))
    return ground


def _sun() -> Image.Image:
    ground = _gradient((66, 130, 204), (198, 224, 242))
    for reach, strength, blur in ((0.46, 110, 90), (0.3, 170, 50), (0.2, 220, 24)):
        glow, draw = _mask()
        draw.ellipse([(0.5 - reach) * _S, (0.42 - reach) * _S, (0.5 + reach) * _S, (0.42 + reach) * _S], fill=strength)
        _paste(ground, _plain((255, 240, 190)), glow, blur * _SCALE / 2)
    rays, draw = _mask()
    for number in range(12):
        angle = math.radians(number * 30 + 8)
        tip = (_S * (0.5 + 0.42 * math.cos(angle)), _S * (0.42 + 0.42 * math.sin(angle)))
        sides = [(_S * (0.5 + 0.13 * math.cos(angle + turn)), _S * (0.42 + 0.13 * math.sin(angle + turn))) for turn in (0.13, -0.13)]
        draw.polygon([tip, *sides], fill=120)
    _paste(ground, _plain((255, 236, 160)), rays, 9)
    disc, draw = _mask()
    draw.ellipse([0.37 * _S, 0.29 * _S, 0.63 * _S, 0.55 * _S], fill=255)
    _paste(ground, _gradient((255, 232, 120), (255, 196, 52)), disc, 3)
    for x, y, size in ((0.16, 0.8, 0.1), (0.26, 0.77, 0.13), (0.38, 0.81, 0.1), (0.76, 0.86, 0.09), (0.85, 0.84, 0.11)):
        cloud, draw = _mask()
        draw.ellipse([(x - size) * _S, (y - size * 0.5) * _S, (x + size) * _S, (y + size * 0.5) * _S], fill=235)
        _paste(ground, _plain((255, 255, 255)), cloud, 10)
    return ground
