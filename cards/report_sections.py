"""What a report shows beside text rendering and audits: sections of tables with a figure each, filled by whoever has the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from t2i_parity.cards.environment import visible
from t2i_parity.cards.report_audit import Row

if TYPE_CHECKING:
    from t2i_parity.cards.plots import Style
    from t2i_parity.cards.report_data import Score


@dataclass(frozen=True, slots=True)
class Dots:
    """A dot with its interval for each row and series. ``rows`` are (name, code), the code empty where the name is all there is.

    ``scores`` has a row's score by its place and the series' name; ``None`` as its value is drawn as "no score", no entry as nothing.
    ``reference`` is a value that a line is drawn at, ``ends`` are the axis's where the values do not give them; ``level`` is the
    intervals' own, where it need not be the page's.
    """

    axis: str
    rows: Sequence[tuple[str, str]]
    series: Sequence[str]
    scores: Mapping[tuple[int, str], Score]
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
    signatures: Sequence[tuple[str, str]] = ()
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


def signatures_of(sections: Sequence[Section]) -> list[tuple[str, str]]:
    """(signature, what stands under it) of every table."""
    return [(signature, block.title) for section in sections for block in section.blocks for signature, _ in block.signatures]


def runs_of(sections: Sequence[Section]) -> list[str]:
    """The runs that stand side by side in any table, once each."""
    return list(dict.fromkeys(run for section in sections for block in section.blocks for run in block.runs))


def drawn(sections: Sequence[Section], look: Mapping[str, Style], signatures: Sequence[str], level: str) -> list[dict[str, Any]]:
    """The sections as the template takes them: with figures drawn and signatures by their number on the page."""
    answer = []
    for section in sections:
        blocks = []
        for place, block in enumerate(section.blocks):
            plot, legend = _figure(f"{section.key}{place}", block, look, level)
            cited: dict[int, dict[str, None]] = {}
            for signature, what in block.signatures:
                cited.setdefault(signatures.index(signature) + 1, {})[what] = None
            blocks.append(
                {
                    "block": block,
                    "groups": [list(rows) for _, rows in groupby(block.rows, key=lambda row: (row.head, row.code))],
                    "span": (len(block.heads) - block.leading) // max(1, len(block.runs)),
                    "plot": plot,
                    "legend": legend,
                    "cited": [(number, list(names)) for number, names in sorted(cited.items())],
                }
            )
        answer.append({"section": section, "blocks": blocks})
    return answer


def _figure(
    salt: str, block: Block, look: Mapping[str, Style], level: str
) -> tuple[tuple[Markup, Markup] | None, list[tuple[Markup, str]]]:
    """(the plot in both shapes, its legend: a mark and a name each)."""
    from t2i_parity.cards.plots_sections import dots_plot, levels_plot, series_look, shares_plot, swatch

    figure, title = block.figure, visible(block.title)
    below = "The table below the plot holds the same numbers."
    if isinstance(figure, Dots):
        styles = {name: look.get(name) or series_look(number) for number, name in enumerate(figure.series)}
        interval = f"{figure.level or level} interval"
        described = f"{len(figure.rows)} rows, {len(figure.series)} dots a row at most, each with its {interval}. {below}"
        plot = dots_plot(salt, figure, styles, title, described)
        legend = [(Markup(style.legend), name) for name, style in styles.items()]
    elif isinstance(figure, Levels):
        plot = levels_plot(salt, figure, title, f"{len(figure.rows)} by {len(figure.columns)} cells, each with its number. {below}")
        legend = []
    elif isinstance(figure, Shares):
        described = f"{len(figure.rows)} bars, one a row, each parted by {len(figure.categories)} categories in the legend’s order. {below}"
        plot = shares_plot(salt, figure, title, described)
        legend = [(Markup(swatch(number)), name) for number, name in enumerate(figure.categories)]
    else:
        return None, []
    return (Markup(plot.wide), Markup(plot.narrow)), legend
