"""What a report shows beside text rendering and audits: sections of tables with a figure each, filled by whoever has the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from t2i_parity.cards.report_audit import Row
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Interval


@dataclass(frozen=True, slots=True)
class Dot:
    """A number as a plot shows it; ``value`` is None when there is nothing to score."""

    value: float | None
    n: int
    interval: Interval | None = None


@dataclass(frozen=True, slots=True)
class Dots:
    """A dot with its interval for each row and series. ``rows`` are (name, code), the code empty where the name is all there is.

    ``dots`` has a row's dot by its place and the series' name; ``None`` as its value is drawn as "no score", no entry as nothing.
    ``reference`` is a value that a line is drawn at, ``ends`` are the axis's where the values do not give them; ``level`` is the
    intervals' own, where it need not be the page's.
    """

    axis: str
    rows: Sequence[tuple[str, str]]
    series: Sequence[str]
    dots: Mapping[tuple[int, str], Dot]
    reference: float | None = None
    ends: tuple[float, float] | None = None
    level: str = ""


@dataclass(frozen=True, slots=True)
class Levels:
    """A heat map of levels: ``values`` by row and column, None where there is nothing; the strongest colour stands for ``most``.

    Rows and columns are (name, code).
    """

    rows: Sequence[tuple[str, str]]
    columns: Sequence[tuple[str, str]]
    values: Sequence[Sequence[float | None]]
    most: float


@dataclass(frozen=True, slots=True)
class Shares:
    """Stacked bars: of each row, (name, code), the share of each category in [0, 1]; None where nothing was told of the row."""

    rows: Sequence[tuple[str, str]]
    categories: Sequence[str]
    values: Sequence[Sequence[float | None]]


@dataclass(frozen=True, slots=True)
class Block:
    """One table with its figure. ``heads`` are its columns' names, the rows' own first; ``words`` says which hold words, not numbers.

    ``runs`` stand above the columns behind the first ``leading`` ones, as many columns each. ``signatures`` are those of the numbers,
    each with what stands under it (empty where that is the whole table). A ``folded`` table stands closed, beneath its figure
    where it has one.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    signatures: Sequence[tuple[Signature, str]] = ()
    note: str = ""
    words: frozenset[int] = frozenset()
    runs: Sequence[str] = ()
    leading: int = 1
    figure: Dots | Levels | Shares | None = None
    folded: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One section of the page: ``key`` is its anchor, ``about`` our own words on how to read it."""

    key: str
    title: str
    about: Sequence[str]
    blocks: Sequence[Block] = field(default=())


def signatures_of(sections: Sequence[Section]) -> list[tuple[Signature, str]]:
    """(signature, what stands under it) of every table."""
    return [(signature, block.title) for section in sections for block in section.blocks for signature, _ in block.signatures]


def runs_of(sections: Sequence[Section]) -> list[str]:
    """The runs that stand side by side in any table, once each."""
    return list(dict.fromkeys(run for section in sections for block in section.blocks for run in block.runs))
