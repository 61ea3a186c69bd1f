"""Where text stands in a picture: the layouts of EasyText and LingT2I, checked and written in one way."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=4096)  # the languages of one meaning share their layout
def canonical(layout: str) -> str:
    """A layout's JSON, per line ``[[4 corner points], [[x0, y0], [x1, y1]]]``, with whole numbers as integers.

    Raises ValueError, saying what is wrong, for anything else.

    >>> canonical("[[[[1, 2.0],[3,2],[3,4],[1,4]], [[0,0],[9,9]]]]")
    '[[[[1, 2], [3, 2], [3, 4], [1, 4]], [[0, 0], [9, 9]]]]'
    """
    try:
        lines = json.loads(layout)
    except ValueError as error:
        raise ValueError(f"render_layout is not JSON ({error})") from None
    if not isinstance(lines, list) or not lines:
        raise ValueError("render_layout is not a list of lines")
    return json.dumps([_line(line) for line in lines])


def _line(line: Any) -> list[list[list[int | float]]]:
    if not isinstance(line, list) or len(line) != 2:
        raise ValueError("a line of render_layout is not [corners, box]")
    corners, box = _points(line[0], 4), _points(line[1], 2)
    if box[0][0] > box[1][0] or box[0][1] > box[1][1]:
        raise ValueError("a box of render_layout ends before it begins")
    return [corners, box]


def _points(points: Any, count: int) -> list[list[int | float]]:
    if not isinstance(points, list) or len(points) != count:
        raise ValueError(f"render_layout: expected {count} points")
    return [_point(point) for point in points]


def _point(point: Any) -> list[int | float]:
    if not isinstance(point, list) or len(point) != 2:
        raise ValueError("a point of render_layout is not [x, y]")
    return [_number(value) for value in point]


def _number(value: Any) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("a coordinate of render_layout is not a number")
    return int(value) if value == int(value) else value
