"""What the typesetter sets its text on: paper, a sign in a scene, a photograph. Everything is seeded; nothing is downloaded.

A surface is a flat layer on which text is set upright, and the way in which that layer comes into the picture.
"""

from __future__ import annotations

import colorsys
import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageChops, ImageDraw, ImageFilter

from t2i_parity.dataset_builder.errors import InputError

CANVAS = 1024
"""The side, in pixels, of the picture that a ``render_layout`` is written for."""
DEFAULT_BOX = (112.0, 352.0, 912.0, 672.0)
"""Where the text stands when a row has no layout."""
TILT = 8.0
"""A sign is turned by at most so many degrees."""
FORESHORTENING = 0.12
"""One side of a sign is at most this share shorter than the one across, as when it is seen at an angle."""
PACKAGED = ("chelsea.png", "coffee.png", "rocket.jpg", "brick.png", "grass.png", "gravel.png")
"""Photographs that lie in scikit-image's own package and have no writing in them: what a reader finds there was set there."""

Box: TypeAlias = tuple[float, float, float, float]
Panel: TypeAlias = tuple[int, int, int, int]
Colour: TypeAlias = tuple[int, int, int]
Corners: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Surface:
    """Where text goes: ``layer`` is drawn on inside ``panel`` (left, top, right, bottom, in pixels) with ``ink``; ``finish`` makes of it
    the picture."""

    layer: Image.Image
    panel: Panel
    ink: Colour
    finish: Callable[[Image.Image], Image.Image]


# Paper


def paper(size: int, box: Box, seed: int) -> Surface:
    """Seeded tinted paper under light that falls off from one corner, all over the picture, and a dark ink."""
    chance = np.random.default_rng(seed)
    hue = chance.random()
    tint = _colour(hue, float(chance.uniform(0.02, 0.14)), float(chance.uniform(0.93, 0.99)))
    ink = _colour(float(chance.random()), 0.6, float(chance.uniform(0.05, 0.25)))
    small = size // 8
    light = np.linspace(1.0, 0.9, small)[:, None] * np.linspace(1.0, 0.96, small)[None, :]
    pixels = np.clip(np.array(tint) * light[:, :, None] + chance.normal(0.0, 1.0, (small, small, 1)), 0, 255).astype(np.uint8)
    picture = Image.fromarray(pixels).resize((size, size), Image.Resampling.BILINEAR)
    return Surface(picture, _panel(size, box), ink, lambda layer: layer)


# A sign in a scene


def sign(size: int, box: Box, seed: int) -> Surface:
    """A coloured board, tilted and seen at a slight angle, before a cluttered wall, under the noise of a camera."""
    chance = np.random.default_rng(seed)
    layer, panel, ink = _board(size, box, chance)
    corners = tilted(panel, size, chance)
    wall = _clutter(size, chance)

    def finish(layer: Image.Image) -> Image.Image:
        board = warped(layer, panel, corners)
        shadow = Image.new("RGBA", (size, size), (0, 0, 0, 0))
        shadow.putalpha(board.getchannel("A").filter(ImageFilter.GaussianBlur(size / 100)).point(lambda alpha: alpha * 0.5))
        picture = wall.convert("RGBA")
        picture.alpha_composite(ImageChops.offset(shadow, size // 128, size // 128))
        picture.alpha_composite(board)
        return camera(picture.convert("RGB"), seed)

    return Surface(layer, panel, ink, finish)


def _board(size: int, box: Box, chance: np.random.Generator) -> tuple[Image.Image, Panel, Colour]:
    """A flat board on a transparent layer, and an ink of high contrast to it: dark on light, or light on dark."""
    hue = chance.random()
    dark = chance.random() < 0.4
    face = _colour(hue, float(chance.uniform(0.4, 0.8)), float(chance.uniform(0.25, 0.45))) if dark else None
    face = face or _colour(hue, float(chance.uniform(0.1, 0.55)), float(chance.uniform(0.85, 0.98)))
    ink = _colour(hue + 0.5, 0.08, 0.98) if dark else _colour(hue + float(chance.uniform(0.3, 0.7)), 0.7, 0.16)
    panel = _panel(size, box)
    layer = Image.new("RGBA", (size, size), (*face, 0))
    radius = round(size * float(chance.uniform(0.0, 0.03)))
    edge = _shade(face, 1.6 if dark else 0.6)
    ImageDraw.Draw(layer).rounded_rectangle(panel, radius, fill=(*face, 255), outline=(*edge, 255), width=max(1, size // 256))
    return layer, panel, ink


def _clutter(size: int, chance: np.random.Generator) -> Image.Image:
    """A wall of clouded colour with boards, poles and spots on it: sharp edges of many sizes, none of them a letter."""
    coarse = chance.uniform(40, 215, (6, 6, 3)).astype(np.uint8)
    wall = Image.fromarray(coarse).resize((size, size), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(wall)
    for _ in range(14):
        colour = tuple(int(value) for value in chance.integers(20, 236, 3))
        x, y = (float(value) for value in chance.uniform(0, size, 2))
        wide, high = (float(value) for value in chance.uniform(0.02, 0.25, 2) * size)
        kind = int(chance.integers(3))
        if kind == 0:
            draw.rectangle((x, y, x + wide, y + high), fill=colour)
        elif kind == 1:
            draw.ellipse((x, y, x + wide, y + high), fill=colour)
        else:
            draw.line((x, 0, x + float(chance.uniform(-0.2, 0.2)) * size, size), fill=colour, width=max(2, round(wide / 6)))
    return wall.filter(ImageFilter.GaussianBlur(size / 400))


# A photograph


def photo(size: int, box: Box, seed: int, files: tuple[Path, ...]) -> Surface:
    """A seeded part of a photograph; the text stands on a board in it, or, in every other picture, right on it with a soft shadow."""
    chance = np.random.default_rng(seed)
    background = _part(files[int(chance.integers(len(files)))], size, chance)
    on_board = chance.random() < 0.5
    layer, panel, ink = _board(size, box, chance)
    corners = tilted(panel, size, chance)
    contrast: Colour = (0, 0, 0)
    if not on_board:
        bright = float(np.asarray(background.crop(panel).convert("L")).mean()) > 127
        ink, contrast = ((12, 12, 12), (255, 255, 255)) if bright else ((250, 250, 250), (0, 0, 0))
        layer = Image.new("RGBA", (size, size), (*ink, 0))

    def finish(layer: Image.Image) -> Image.Image:
        set_in = warped(layer, panel, corners)
        picture = background.convert("RGBA")
        # Close around letters, and dense, as captions have it: without it much of a photograph has no contrast to any ink.
        alpha = set_in.getchannel("A").filter(ImageFilter.GaussianBlur(size / (170 if not on_board else 100)))
        shadow = Image.new("RGBA", (size, size), (*contrast, 0))
        shadow.putalpha(alpha.point(lambda value: min(255, value * (2.2 if not on_board else 0.5))))
        picture.alpha_composite(shadow)
        picture.alpha_composite(set_in)
        return camera(picture.convert("RGB"), seed, noise=2.0)

    return Surface(layer, panel, ink, finish)


def photographs(folder: str, packaged: tuple[str, ...] = PACKAGED) -> tuple[Path, ...]:
    """The photographs of a folder, or, for the empty name, those of the names given that lie in scikit-image's package.

    Raises InputError when there is none.
    """
    if folder:
        files = tuple(
            sorted(path for path in Path(folder).expanduser().glob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png", ".webp"))
        )
        if not files:
            raise InputError(f"photos={folder}: expected a folder with .jpg, .png or .webp files, and found none there")
        return files
    package = importlib.util.find_spec("skimage")
    if package is None or package.origin is None:
        raise InputError(
            "background=photo sets text on photographs, and there are none here. Name a folder of your own with --set photos=FOLDER, or "
            "install some: pip install scikit-image"
        )
    files = tuple(path for path in (Path(package.origin).parent / "data" / name for name in packaged) if path.is_file())
    if not files:
        raise InputError("this scikit-image holds no photographs. Name a folder of your own with --set photos=FOLDER")
    return files


@cache
def digest(files: tuple[Path, ...]) -> str:
    """A hash over the photographs' bytes, since others set other pixels."""
    return sha256(b"".join(sha256(path.read_bytes()).digest() for path in files)).hexdigest()[:16]


@cache
def _opened(path: Path) -> Image.Image:
    with Image.open(path) as opened:
        return opened.convert("RGB")


def photograph_part(path: Path, size: int, seed: int) -> Image.Image:
    """A seeded square part of a photograph, of size × size pixels."""
    return _part(path, size, np.random.default_rng(seed))


def _part(path: Path, size: int, chance: np.random.Generator) -> Image.Image:
    whole = _opened(path)
    side = round(min(whole.size) * float(chance.uniform(0.7, 1.0)))
    left, top = (int(chance.integers(0, extent - side + 1)) for extent in whole.size)
    return whole.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.LANCZOS)


# Into the picture


def tilted(panel: Panel, size: int, chance: np.random.Generator) -> Corners:
    """Where the corners of a panel (from the top left, clockwise) come to stand when it is turned and seen at an angle: (4, 2) pixels."""
    left, top, right, bottom = panel
    middle = np.array([(left + right) / 2, (top + bottom) / 2])
    corners = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float64) - middle
    # The one side away from the viewer is shorter.
    shrink = 1 - float(chance.uniform(0, FORESHORTENING))
    far = [0, 3] if chance.random() < 0.5 else [1, 2]
    corners[far, 1] *= shrink
    angle = math.radians(float(chance.uniform(-TILT, TILT)))
    turn = np.array([(math.cos(angle), math.sin(angle)), (-math.sin(angle), math.cos(angle))])
    corners = corners @ turn
    # As much smaller, and as far from the edge, as it takes to stand in the picture whole.
    margin = 0.02 * size
    corners *= min(1.0, *((size - 2 * margin) / np.ptp(corners, axis=0)))
    corners += middle
    inward = np.maximum(0, margin - corners.min(axis=0)) - np.maximum(0, corners.max(axis=0) - (size - margin))
    moved: Corners = corners + inward
    return moved


def warped(layer: Image.Image, panel: Panel, corners: Corners) -> Image.Image:
    """A layer with its panel moved to ``corners`` (perspective)."""
    left, top, right, bottom = panel
    flat = np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float64)
    return layer.transform(layer.size, Image.Transform.PERSPECTIVE, perspective(corners, flat), Image.Resampling.BICUBIC)


def perspective(source: Corners, target: Corners) -> tuple[float, ...]:
    """The eight numbers that take four points to four others, as Pillow's PERSPECTIVE wants them (from the result to the layer).

    >>> square = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    >>> [round(number) for number in perspective(square, 2 * square)]
    [2, 0, 0, 0, 2, 0, 0, 0]
    """
    rows: list[list[float]] = []
    for (x, y), (u, v) in zip(source.tolist(), target.tolist(), strict=True):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    solved: NDArray[Any] = np.linalg.solve(np.array(rows), target.reshape(-1))
    return tuple(float(value) for value in solved)


def camera(picture: Image.Image, seed: int, noise: float = 9.0) -> Image.Image:
    """Uneven light and the noise of a sensor over all of a picture (standard deviation in grey levels)."""
    chance = np.random.default_rng((seed, 1))
    width, height = picture.size
    left, right = (float(level) for level in chance.uniform(0.82, 1.1, 2))
    top, bottom = (float(level) for level in chance.uniform(0.9, 1.06, 2))
    light = np.linspace(left, right, width)[None, :, None] * np.linspace(top, bottom, height)[:, None, None]
    pixels = np.asarray(picture, np.float32) * light + chance.normal(0.0, noise, (height, width, 1))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


def _panel(size: int, box: Box) -> Panel:
    left, top, right, bottom = (round(side * size / CANVAS) for side in box)
    return left, top, right, bottom


def _colour(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = colorsys.hsv_to_rgb(hue % 1.0, saturation, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def _shade(colour: Colour, factor: float) -> Colour:
    red, green, blue = (min(255, round(channel * factor)) for channel in colour)
    return red, green, blue
