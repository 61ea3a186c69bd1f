"""Text that must stand in an image: how a model is told it. Layouts are read and checked here, condition images drawn, prompts completed.

A prompt-only model gets the row's prompt; where the wanted text does not stand in it, ``worded`` adds it by a stated template. A model that
takes an image gets the dataset's own ``condition_image`` where the row has one, else one that is drawn from ``render_text`` and
``render_layout``: ``positions`` (black quadrilaterals on white where lines go) or ``glyphs`` (each line of text set in black on white,
stacked in strips of 64 pixels, as EasyText's released examples are).
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import pyarrow as pa
from PIL import Image, ImageDraw, ImageFont
from uniseg.linebreak import line_break_units

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.dataset_builder.schema import CONFIGS, Column
from t2i_parity.generate import fonts
from t2i_parity.generate.backends.backgrounds import CANVAS, DEFAULT_BOX
from t2i_parity.generate.models.catalog import CATALOG
from t2i_parity.generate.rows import WordedRow

TEMPLATE = "{prompt} The image shows the text “{text}”."
"""What a prompt-only model gets where the wanted text does not stand in the prompt. English, as the study's text-rendering prompts are."""
TEMPLATE_VERSION = "1"
STRIP = 64
"""The height, in pixels, of one line in a ``glyphs`` image."""
MARGIN = 256
"""So far, in pixels of the canvas, a corner may lie outside the picture: slanted lines reach over its edge."""

Kind = Literal["positions", "glyphs"]
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text: its four corners in the 1024 × 1024 picture (clockwise from the top left), and a rectangle.

    The rectangle is (left, top, right, bottom) of the line in its condition image where the source has one; the starter edition repeats
    the corners' own.
    """

    corners: tuple[Point, Point, Point, Point]
    rectangle: tuple[float, float, float, float]


def parse(layout: str) -> tuple[Line, ...]:
    """The lines of a ``render_layout``. Raises ValueError naming the line and what was expected.

    >>> parse("[[[[132, 280], [892, 280], [892, 580], [132, 580]], [[132, 280], [892, 580]]]]")[0].corners[2]
    (892.0, 580.0)
    """
    try:
        lines = json.loads(layout)
    except (TypeError, ValueError) as error:
        raise ValueError(f"render_layout is not JSON ({error})") from None
    if not isinstance(lines, list) or not lines:
        raise ValueError("render_layout: expected a list with at least one line")
    return tuple(_line(number, line) for number, line in enumerate(lines))


def _line(number: int, line: Any) -> Line:
    expected = f"render_layout, line {number}: expected [[4 corner points], [[x0, y0], [x1, y1]]]"
    if not isinstance(line, list) or len(line) != 2:
        raise ValueError(f"{expected}, got {str(line)[:80]}")
    corners, ends = (_points(part, count, expected) for part, count in zip(line, (4, 2), strict=True))
    for x, y in corners:
        if not (-MARGIN <= x <= CANVAS + MARGIN and -MARGIN <= y <= CANVAS + MARGIN):
            raise ValueError(f"render_layout, line {number}: the corner ({x:g}, {y:g}) lies far outside the {CANVAS} × {CANVAS} picture")
    if abs(_area(corners)) < 1:
        raise ValueError(f"render_layout, line {number}: its corners enclose nothing")
    (left, top), (right, bottom) = ends
    if right <= left or bottom <= top:
        raise ValueError(f"render_layout, line {number}: its rectangle from ({left:g}, {top:g}) to ({right:g}, {bottom:g}) is empty")
    return Line((corners[0], corners[1], corners[2], corners[3]), (left, top, right, bottom))


def _points(part: Any, count: int, expected: str) -> list[Point]:
    if not isinstance(part, list) or len(part) != count:
        raise ValueError(f"{expected}, got {str(part)[:80]}")
    points = []
    for point in part:
        numbers = isinstance(point, list) and len(point) == 2 and all(isinstance(x, int | float) and not isinstance(x, bool) for x in point)
        if not numbers or not all(math.isfinite(x) for x in point):
            raise ValueError(f"{expected}, got the point {str(point)[:40]}")
        points.append((float(point[0]), float(point[1])))
    return points


def _area(corners: Sequence[Point]) -> float:
    """Twice the signed area of a polygon."""
    return sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(corners, [*corners[1:], corners[0]], strict=True))


def lines_of(row: WordedRow) -> tuple[Line, ...]:
    """The row's lines; one in the middle of the picture when it has no layout. Raises ValueError for a layout that is none."""
    if layout := row.get("render_layout"):
        return parse(layout)
    left, top, right, bottom = DEFAULT_BOX
    return (Line(((left, top), (right, top), (right, bottom), (left, bottom)), DEFAULT_BOX),)


def texts_of(row: WordedRow) -> list[str]:
    """The row's text, one string a line of its layout: by its own line feeds where they are as many, else in shares by line length.

    >>> two = json.dumps([[[[0, y], [600, y], [600, y + 90], [0, y + 90]], [[0, 0], [9, 9]]] for y in (0, 100)])
    >>> texts_of({"render_text": "open every day", "render_layout": two})
    ['open', 'every day']
    """
    text, lines = str(row["render_text"]), lines_of(row)
    own = [part.strip() for part in text.splitlines() if part.strip()]
    if len(own) == len(lines):
        return own
    widths = [math.dist(line.corners[0], line.corners[1]) for line in lines]
    return _shared(" ".join(own), widths)


def _shared(text: str, widths: Sequence[float]) -> list[str]:
    """A text in as many parts as there are widths, broken where Unicode allows, each part ending nearest to its share."""
    parts = [""] * len(widths)
    ends = [sum(widths[: number + 1]) / sum(widths) * len(text) for number in range(len(widths))]
    place, done = 0, 0
    for unit in line_break_units(text):
        # The middle of a unit decides, so that it goes to the line in which most of it falls.
        while place < len(widths) - 1 and parts[place] and done + len(unit) / 2 > ends[place]:
            place += 1
        parts[place] += unit
        done += len(unit)
    return [part.strip() for part in parts]


# Prompts


def worded(row: WordedRow) -> str:
    """What a prompt-only model gets: the prompt, completed by ``TEMPLATE`` when the row has a text that the prompt does not hold.

    >>> worded({"prompt": "A board.", "render_text": "open"})
    'A board. The image shows the text “open”.'
    >>> worded({"prompt": "A board that reads “open”.", "render_text": "open"})
    'A board that reads “open”.'
    """
    prompt, text = row["prompt"], row.get("render_text")
    return prompt if not text or text in prompt else TEMPLATE.format(prompt=prompt, text=text)


def template_record() -> dict[str, str]:
    """What a prompt-only model's record says of it, since it decides what the model is asked."""
    return {"text_template": TEMPLATE, "text_template_version": TEMPLATE_VERSION}


# Condition images


def columns() -> tuple[Column, ...]:
    """The prompt columns that a model which takes condition images needs."""
    return tuple(column for column in CONFIGS["lingt2i_text"].columns if column.name in ("render_text", "render_layout", "condition_image"))


def check(rows: Sequence[WordedRow]) -> None:
    """Raise InputError, naming the row, when a row's layout is none, or a font is missing for what would have to be drawn."""
    for row in rows:
        try:
            lines_of(row)
        except ValueError as error:
            raise InputError(f"row {row.get('prompt_id')!r}: {error}. Correct the column, or set it to null for the middle") from error
    fonts.check({LANGUAGES[row["language"]].script for row in rows if row.get("condition_image") is None})


def with_condition_images(rows: Sequence[Prompt], table: pa.Table, model: str) -> list[WordedRow]:
    """The rows, with the dataset's own ``condition_image`` where they have one and the model (by its name) takes an image of the text.

    Image rows do not carry that column; a model that takes it must not be without.
    """
    entry = CATALOG.get(model)
    wanted = "condition_image" in table.column_names and (
        model.startswith("adapter:") or (entry is not None and entry.text_input == "glyphs")
    )  # fmt: skip
    if not wanted:
        return [cast(WordedRow, row) for row in rows]
    images = dict(zip(table["prompt_id"].to_pylist(), table["condition_image"].to_pylist(), strict=True))
    return [cast(WordedRow, row if (image := images[row["prompt_id"]]) is None else {**row, "condition_image": image}) for row in rows]


def condition_image(row: WordedRow, kind: Kind, size: int = CANVAS) -> Image.Image:
    """The image that a model is conditioned on, RGB: for ``glyphs`` the row's own ``condition_image`` where it has one, else drawn.

    ``positions`` is ``size`` pixels square, ``glyphs`` as wide as its widest line. Raises ValueError for characters that no font has.
    """
    own = row.get("condition_image")
    if kind == "positions":
        return positions(row, size)
    if own is None:
        return glyphs(row)[0]
    if isinstance(own, Mapping):
        own = own["bytes"]
    image: Image.Image = Image.open(io.BytesIO(own)) if isinstance(own, bytes) else own
    return image.convert("RGB")


def positions(row: WordedRow, size: int = CANVAS) -> Image.Image:
    """The places of the row's lines, black on white, in a picture of ``size`` × ``size`` pixels.

    >>> positions({"render_layout": None}, 64).getpixel((32, 32))
    (0, 0, 0)
    """
    picture = Image.new("RGB", (size, size), "white")
    draw = ImageDraw.Draw(picture)
    for line in lines_of(row):
        draw.polygon([(x * size / CANVAS, y * size / CANVAS) for x, y in line.corners], fill="black")
    return picture


def glyphs(row: WordedRow) -> tuple[Image.Image, str]:
    """The row's lines as strips of 64 pixels, black on white, one under the other; and the layout that says where each strip lies.

    Widths are multiples of 16 pixels. Text is shaped in the font of the row's language. Raises ValueError for characters without a glyph.
    """
    language = LANGUAGES[row["language"]]
    strips = []
    for text in texts_of(row):
        path, index = fonts.face_for(text, language.script)
        font = _font(str(path), index)
        length = font.getlength(text, direction=language.direction, language=language.code)
        strip = Image.new("RGB", (max(16, 16 * math.ceil((length + 8) / 16)), STRIP), "white")
        where = ((strip.width - length) / 2, STRIP / 2)
        ImageDraw.Draw(strip).text(where, text, fill="black", font=font, anchor="lm", direction=language.direction, language=language.code)
        strips.append(strip)
    picture = Image.new("RGB", (max(strip.width for strip in strips), STRIP * len(strips)), "white")
    layout = []
    for number, (line, strip) in enumerate(zip(lines_of(row), strips, strict=True)):
        picture.paste(strip, (0, number * STRIP))
        layout.append([[list(corner) for corner in line.corners], [[0, number * STRIP], [strip.width - 1, (number + 1) * STRIP - 1]]])
    return picture, json.dumps(layout)


def _font(path: str, index: int) -> ImageFont.FreeTypeFont:
    """A font in the largest size whose lines are no higher than a strip."""

    def sized(size: int) -> ImageFont.FreeTypeFont:
        return ImageFont.truetype(path, size, index=index, layout_engine=ImageFont.Layout.RAQM)

    size = STRIP - 8
    while sum(sized(size).getmetrics()) > STRIP and size > 16:
        size -= 2
    return sized(size)
