"""``glyph``: a typesetter instead of a model. It renders the wanted text rightly, or with controlled damage.

Undamaged it is the upper bound of any text-rendering score and the ceiling of a reader; its damage levels are a ladder of known order
against which readers, metrics and models are measured.
"""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from PIL import Image, ImageDraw, ImageFilter, ImageFont, features
from pydantic import Field
from uniseg.graphemecluster import grapheme_clusters
from uniseg.linebreak import line_break_units

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.schema import CONFIGS, Column
from t2i_parity.generate import fonts, layout
from t2i_parity.generate.backends.backgrounds import DEFAULT_BOX, Box, Colour, Panel, Surface, digest, paper, photo, photographs, sign
from t2i_parity.generate.backends.scope import Scope
from t2i_parity.generate.rows import PlannedRow, Record, WordedRow

VERSION = "1.1"
"""1.1: ``background=sign`` is a tilted sign in a scene, where it was an upright board, and Korean breaks between words, where it broke
inside them; else paper is set pixel for pixel as in 1.0."""
DAMAGE: Mapping[str, float] = {"none": 0.0, "light": 0.12, "heavy": 0.45}
"""The share of user-perceived characters that are dropped, swapped with the next, or blurred (a third each)."""
PADDING = 0.06


@dataclass(frozen=True, slots=True)
class GlyphSettings:
    """What ``--set`` takes: the level of damage, the background, the font, and the side of the square picture, in pixels.

    ``paper`` is tinted paper under uneven light, all over; ``sign`` is a tilted coloured board over the row's layout in a cluttered, noisy
    scene, often light on dark; ``photo`` is such a board in a photograph, or, in every other picture, text right on it. ``photos`` is the
    folder they are taken from; left out, those in scikit-image's package are. ``font``: ``first`` is the first of the script's declared
    faces, ``any`` a seeded one of all that are installed.
    """

    damage: Literal["none", "light", "heavy"] = "none"
    background: Literal["paper", "sign", "photo"] = "paper"
    font: Literal["first", "any"] = "first"
    photos: str = ""
    size: Annotated[int, Field(ge=256, le=2048)] = 512


@dataclass(frozen=True, slots=True)
class Cluster:
    """One user-perceived character (UAX #29) as it is set, and whether it is blurred."""

    text: str
    blurred: bool = False


def damaged(text: str, level: str, seed: int) -> list[Cluster]:
    """The clusters of a text after damage; the clusters that a lighter level hits, a heavier one hits too.

    >>> "".join(cluster.text for cluster in damaged("open", "none", 1))
    'open'
    """
    share = DAMAGE[level]
    chance = random.Random(f"damage {seed}")
    clusters = [Cluster(text) for text in grapheme_clusters(text)]
    draws = [(chance.random(), chance.choice(("drop", "swap", "blur"))) for _ in clusters]
    result: list[Cluster] = []
    position = 0
    while position < len(clusters):
        cluster, (draw, kind) = clusters[position], draws[position]
        following = clusters[position + 1] if position + 1 < len(clusters) else None
        hit = draw < share and not cluster.text.isspace()
        if hit and kind == "swap" and following is not None and not following.text.isspace() and following != cluster:
            result += [following, cluster]
            position += 2
            continue
        if not hit:
            result.append(cluster)
        elif kind != "drop":
            # A swap that has no partner still damages: a level must not be weaker for short words.
            result.append(Cluster(cluster.text, blurred=True))
        position += 1
    return result


def legible(clusters: Sequence[Cluster]) -> str:
    """What a perfect reader would read: a blurred character is there and cannot be told, U+FFFD for each of its code points.

    >>> legible([Cluster("o"), Cluster("k", blurred=True)])
    'o�'
    """
    return "".join("\ufffd" * len(cluster.text) if cluster.blurred else cluster.text for cluster in clusters)


class Glyph:
    """The typesetter, with the interface of a model."""

    name = "glyph"
    device = "cpu"

    def __init__(self, source: str, settings: GlyphSettings, workers: int = 2) -> None:
        if source:
            raise InputError(f"glyph is one typesetter and takes nothing after the colon; expected --model glyph, got {source!r}")
        if not features.check("raqm"):
            raise InputError(
                "Pillow lacks raqm, without which Arabic and Devanagari are set wrongly. Install its wheel: pip install -U pillow"
            )
        self.settings = settings
        self._scope = Scope(self.name, lambda language: fonts.lacking(language.script), "set")
        self._photographs = photographs(settings.photos) if settings.background == "photo" else ()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="glyph")

    @property
    def columns(self) -> tuple[Column, ...]:
        """``render_text`` beside the least a row must have."""
        return tuple(column for column in CONFIGS["lingt2i_text"].columns if column.name in ("render_text", "render_layout"))

    def record(self) -> Record:
        """Settings and version, and a hash of what a seeded choice is made from: photographs, and installed fonts by name."""
        record = {"model": self.name, "version": VERSION, **asdict(self.settings), "damage_share": DAMAGE[self.settings.damage]}
        # Where the folder lies says nothing about the pixels; what is in it does.
        record["photos"] = digest(self._photographs) if self._photographs else None
        record["fonts"] = sha256("\n".join(fonts.installed()).encode()).hexdigest()[:16] if self.settings.font == "any" else None
        return record

    def check(self, rows: Sequence[WordedRow]) -> None:
        """Warn of languages whose font is not there. Raises InputError when none is."""
        self._scope.check(rows)

    def truncated(self, rows: Sequence[PlannedRow]) -> dict[str, dict[str, int]]:
        """Nothing is cut: the text is set in a size in which all of it fits."""
        return {}

    def generate(self, rows: Sequence[PlannedRow], seeds: Sequence[int]) -> list[Image.Image]:
        """One typeset picture a row. Raises ValueError when there is no font of a row's script, or none that has all its characters."""
        return list(self._pool.map(self._draw, rows, seeds))

    def _draw(self, row: PlannedRow, seed: int) -> Image.Image:
        if (reason := self._scope.reason(row["language"])) is not None:
            raise ValueError(reason)
        language, text = LANGUAGES[row["language"]], str(row["render_text"])
        surface = self._surface(_box(row.get("render_layout")), seed)
        clusters = damaged(text, self.settings.damage, seed)
        if self.settings.font == "any":
            face = random.Random(f"font {seed}").choice(fonts.faces_for(text, language.script))
        else:
            face = fonts.face_for(text, language.script)
        _typeset(surface.layer, surface.panel, surface.ink, clusters, face, language.code, language.direction)
        return surface.finish(surface.layer)

    def _surface(self, box: Box, seed: int) -> Surface:
        if self.settings.background == "photo":
            return photo(self.settings.size, box, seed, self._photographs)
        return (sign if self.settings.background == "sign" else paper)(self.settings.size, box, seed)


def _box(written: str | None) -> Box:
    """The smallest upright box around all corner points of a layout, in pixels of the 1024 canvas. Raises ValueError for what is none."""
    if not written:
        return DEFAULT_BOX
    corners = [corner for line in layout.parse(written) for corner in line.corners]
    xs, ys = zip(*corners, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


# Typesetting


@lru_cache(maxsize=512)
def _font(path: Path, index: int, size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(path), size, index=index, layout_engine=ImageFont.Layout.RAQM)


def _step(font: ImageFont.FreeTypeFont) -> float:
    """From one line's middle to the next, in pixels: the font's own line height, so that no two lines touch."""
    return float(sum(font.getmetrics()))


@dataclass(frozen=True, slots=True)
class Unit:
    """Clusters between two places where Unicode allows a line break (UAX #14), and their width at the reference size, end blanks aside."""

    clusters: tuple[Cluster, ...]
    width: float
    inked: float


REFERENCE_SIZE = 100
"""The font size, in pixels, at which widths are measured; they grow in proportion, but for hinting, which the margin covers."""


def _units(clusters: Sequence[Cluster], face: tuple[Path, int]) -> list[Unit]:
    font = _font(*face, REFERENCE_SIZE)
    units = []
    queue = list(clusters)
    for text in _breakable(_string(clusters)):
        taken: list[Cluster] = []
        while sum(len(cluster.text) for cluster in taken) < len(text):
            taken.append(queue.pop(0))
        units.append(Unit(tuple(taken), font.getlength(text), font.getlength(text.rstrip())))
    return units


def _breakable(text: str) -> list[str]:
    """A text between its line breaks. UAX #14 lets Korean break inside words; here it breaks between them, as books and signs mostly do,
    since in a picture a broken word cannot be told from two.

    >>> _breakable("잔디밭에 들어가지 마세요"), _breakable("芝生に")
    (['잔디밭에 ', '들어가지 ', '마세요'], ['芝', '生', 'に'])
    """
    units: list[str] = []
    for unit in line_break_units(text):
        if units and units[-1][-1].isalnum() and unit[0].isalnum() and ("가" <= units[-1][-1] <= "힣" or "가" <= unit[0] <= "힣"):
            units[-1] += unit
        else:
            units.append(unit)
    return units


def _lines(units: Sequence[Unit], width: float) -> list[list[Cluster]] | None:
    """Units in lines no wider than ``width`` (at the reference size); None when a unit alone is wider."""
    lines: list[list[Cluster]] = []
    used = width
    for unit in units:
        if unit.inked > width:
            return None
        if not lines or used + unit.inked > width:
            lines.append([])
            used = 0.0
        lines[-1] += unit.clusters
        used += unit.width
    return [_stripped(line) for line in lines]


def _string(clusters: Sequence[Cluster]) -> str:
    return "".join(cluster.text for cluster in clusters)


def _stripped(line: list[Cluster]) -> list[Cluster]:
    while line and line[-1].text.isspace():
        line.pop()
    return line


@cache
def _sizes(height: int) -> tuple[int, ...]:
    """Font sizes to try, largest first, about 6% apart."""
    largest, smallest = int(height * 0.5), 10
    steps = max(1, math.ceil(math.log(largest / smallest) / math.log(1.06)))
    return tuple(sorted({round(largest / 1.06**step) for step in range(steps + 1)}, reverse=True))


def _typeset(
    picture: Image.Image,
    panel: Panel,
    ink: Colour,
    clusters: Sequence[Cluster],
    face: tuple[Path, int],
    language: str,
    direction: Literal["ltr", "rtl"],
) -> None:
    """Set the clusters in the largest size that fits the panel, centred, then blur those that are to be blurred."""
    width, height = panel[2] - panel[0], panel[3] - panel[1]
    room = width * (1 - 2 * PADDING), height * (1 - 2 * PADDING)
    sizes = _sizes(min(height, width // 2))

    units = _units(clusters, face)

    def fits(size: int) -> list[list[Cluster]] | None:
        lines = _lines(units, 0.98 * room[0] * REFERENCE_SIZE / size)
        return lines if lines is not None and len(lines) * _step(_font(*face, size)) <= room[1] else None

    # Whether a size fits falls with the size, so that the largest one is found by bisection.
    chosen = bisect.bisect_left(sizes, True, key=lambda size: fits(size) is not None)
    if chosen == len(sizes):
        raise ValueError(f"the text of {len(clusters)} characters does not fit its box of {width} × {height} pixels")
    size = sizes[chosen]
    font, lines = _font(*face, size), fits(size) or []
    draw = ImageDraw.Draw(picture)
    step = _step(font)
    top = panel[1] + (height - step * len(lines)) / 2
    for number, line in enumerate(lines):
        text = _string(line)
        length = font.getlength(text, direction=direction, language=language)
        left = panel[0] + (width - length) / 2
        middle = top + step * (number + 0.5)
        draw.text((left, middle), text, fill=ink, font=font, anchor="lm", direction=direction, language=language)
        _blur(picture, line, font, left, middle, length, direction, language)


def _blur(
    picture: Image.Image,
    line: Sequence[Cluster],
    font: ImageFont.FreeTypeFont,
    left: float,
    middle: float,
    length: float,
    direction: Literal["ltr", "rtl"],
    language: str,
) -> None:
    for position, cluster in enumerate(line):
        if not cluster.blurred:
            continue
        start = font.getlength(_string(line[:position]), direction=direction, language=language)
        end = font.getlength(_string(line[: position + 1]), direction=direction, language=language)
        if direction == "rtl":
            start, end = length - end, length - start
        half = font.size * 0.75
        area = (
            max(0, round(left + start)),
            max(0, round(middle - half)),
            min(picture.width, round(left + end) + 1),
            min(picture.height, round(middle + half)),
        )
        if area[2] > area[0] and area[3] > area[1]:
            picture.paste(picture.crop(area).filter(ImageFilter.GaussianBlur(font.size * 0.35)), area)
