"""Where text stands in an image, for readers: boxes in reading order, cut out upright, and the part of an image that a layout names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from t2i_parity.generate.backends.backgrounds import CANVAS, perspective
from t2i_parity.generate.layout import parse

Corners: TypeAlias = NDArray[np.float64]
"""The corners of one box, from its top left clockwise: (4, 2), in pixels."""

LAYOUT_MARGIN = 0.08
"""So much of the layout's longer side is kept around it: models set text near its place, seldom right in it."""


def reading_order(boxes: Sequence[Corners], direction: Literal["ltr", "rtl"]) -> list[Corners]:
    """Boxes row by row from the top, within a row as the script runs; rows are told along the text's own slope.

    >>> left, right = np.array([(0, 0), (9, 0), (9, 5), (0, 5)], float), np.array([(20, 1), (29, 1), (29, 6), (20, 6)], float)
    >>> [int(box[0, 0]) for box in reading_order([right, left], "ltr")], [int(box[0, 0]) for box in reading_order([left, right], "rtl")]
    ([0, 20], [20, 0])
    """
    if not boxes:
        return []
    # Long boxes show the slope best; a sum of their directions weighs them so.
    along = np.sum([box[1] - box[0] + box[2] - box[3] for box in boxes], axis=0)
    angle = float(np.arctan2(along[1], along[0]))
    level = np.array([(np.cos(angle), np.sin(angle)), (-np.sin(angle), np.cos(angle))])
    rows: list[list[tuple[float, float, float, Corners]]] = []
    for x, y, height, box in sorted((_placed(box, level) for box in boxes), key=lambda placed: placed[1]):
        row = rows[-1] if rows else []
        # In one row when its middle lies within half a height of the row's; the lower of both heights counts.
        if row and y - np.mean([other[1] for other in row]) < 0.5 * min(height, max(other[2] for other in row)):
            row.append((x, y, height, box))
        else:
            rows.append([(x, y, height, box)])
    sign = -1 if direction == "rtl" else 1
    return [placed[3] for row in rows for placed in sorted(row, key=lambda placed: sign * placed[0])]


def _placed(box: Corners, level: Corners) -> tuple[float, float, float, Corners]:
    x, y = level @ box.mean(axis=0)
    return float(x), float(y), float(np.linalg.norm(box[3] - box[0])), box


def straightened(picture: Image.Image, box: Corners, margin: float = 0.0) -> Image.Image:
    """A box cut out and turned upright, perspective undone, at its own scale; ``margin`` widens it on all sides, in its heights."""
    width = max(np.linalg.norm(box[1] - box[0]), np.linalg.norm(box[2] - box[3]))
    height = max(np.linalg.norm(box[3] - box[0]), np.linalg.norm(box[2] - box[1]))
    right, down = _unit(box[1] - box[0] + box[2] - box[3]), _unit(box[3] - box[0] + box[2] - box[1])
    reach = margin * height
    wider = box + reach * np.array([-right - down, right - down, right + down, down - right])
    size = max(1, round(float(width + 2 * reach))), max(1, round(float(height + 2 * reach)))
    upright = np.array([(0, 0), (size[0], 0), size, (0, size[1])], np.float64)
    return picture.transform(size, Image.Transform.PERSPECTIVE, perspective(upright, wider), Image.Resampling.BICUBIC)


def _unit(vector: NDArray[Any]) -> Corners:
    unit: Corners = vector / max(float(np.linalg.norm(vector)), 1e-9)
    return unit


def layout_part(picture: Image.Image, layout: str | None) -> Image.Image:
    """The upright part of an image around a ``render_layout`` (written for 1024 × 1024), with a margin; all of it without a layout.

    Raises ValueError for a layout that cannot be read.
    """
    if not layout:
        return picture
    corners = np.array([point for line in parse(layout) for point in line.corners]) / CANVAS
    margin = LAYOUT_MARGIN * float(np.ptp(corners, axis=0).max())
    (left, top), (right, bottom) = np.clip(corners.min(axis=0) - margin, 0, 1), np.clip(corners.max(axis=0) + margin, 0, 1)
    area = (
        int(left * picture.width),
        int(top * picture.height),
        max(int(left * picture.width) + 1, round(float(right) * picture.width)),
        max(int(top * picture.height) + 1, round(float(bottom) * picture.height)),
    )
    return picture.crop(area)
