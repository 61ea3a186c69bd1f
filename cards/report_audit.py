"""What a report shows of an audit beyond its rates: sections of tables, with heat maps, filled by whoever has the scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from t2i_parity.cards.environment import points, visible
from t2i_parity.cards.verdicts import SIGNS
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.verdicts import Kind

if TYPE_CHECKING:
    from rich.table import Table

WHAT = "What it shows"
"""The head of a column that holds verdicts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as text, ``short`` in a terminal. ``interval`` stands behind it, muted; ``mark`` (▲, ▼) before it where a number differs;
    ``under`` beneath it, in sections beside audits: what a total is over."""

    text: str
    interval: str = ""
    mark: str = ""
    short: str = ""
    under: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One row: what it is about (a name, a code beside it), and its cells. Rows of one ``head`` after another stand together."""

    head: str
    cells: Sequence[Cell]
    code: str = ""


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Shifts in percentage points: ``values`` and what is said of them by row and column, None where there is nothing."""

    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float | None]]
    kinds: Sequence[Sequence[Kind | None]]

    def text(self, row: int, column: int) -> str:
        """A cell's number with the sign of its verdict."""
        kind = self.kinds[row][column]
        return " ".join(part for part in (points(self.values[row][column]), SIGNS[kind] if kind else "") if part)


@dataclass(frozen=True, slots=True)
class AuditTable:
    """One table. ``heads`` are its columns' names, the rows' own first; ``words`` says which columns hold words and not numbers.

    ``missing`` is how many pairs had no value, over its rows. ``folded`` tables stand closed beneath their heat map.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Row]
    signatures: Sequence[Signature]
    note: str = ""
    words: frozenset[int] = frozenset()
    heat: HeatMap | None = None

    @property
    def folded(self) -> bool:
        """Whether the page shows it only when asked, since the heat map above says the same."""
        return self.heat is not None


@dataclass(frozen=True, slots=True)
class AuditSection:
    """One section of the page: ``key`` is its anchor, ``about`` our own words on how to read it."""

    key: str
    title: str
    about: Sequence[str]
    tables: Sequence[AuditTable]


def merged(sections: Sequence[AuditSection]) -> list[AuditSection]:
    """The sections of several runs, those of one key as one, in the order of their first."""
    found: dict[str, AuditSection] = {}
    for section in sections:
        known = found.get(section.key)
        tables = [*(known.tables if known else ()), *section.tables]
        found[section.key] = AuditSection(section.key, section.title, section.about, tables)
    return list(found.values())


def signatures_of(sections: Sequence[AuditSection]) -> list[tuple[Signature, str]]:
    """(signature, what stands under it) of every table."""
    return [(signature, table.title) for section in sections for table in section.tables for signature in table.signatures]


def console_tables_of(sections: Sequence[AuditSection]) -> list[Table]:
    """The sections' tables for a terminal."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = []
    for section in merged(sections):
        for table in section.tables:
            caption = "\n".join([*([table.note] if table.note else []), *map(str, table.signatures)])
            # Text, not str, for what people wrote: rich would read square brackets as markup.
            one = Table(title=Text(visible(table.title), "bold"), caption=Text(visible(caption)), box=box.SIMPLE_HEAD)
            one.padding, one.show_edge, one.pad_edge = (0, 1, 0, 0), False, False
            one.title_justify = one.caption_justify = "left"
            if table.heat is not None:
                _fill_matrix(one, table.heat)
                made.append(one)
                continue
            for place, head in enumerate(table.heads):
                one.add_column(Text(visible(head)), justify="left" if place == 0 or place in table.words else "right")
            before = None
            for row in table.rows:
                head = row.code or row.head
                one.add_row(Text(visible("" if head == before else head)), *(Text(visible(_plain(cell))) for cell in row.cells))
                before = head
            made.append(one)
    return made


def _fill_matrix(table: Table, heat: HeatMap) -> None:
    """A heat map for a terminal: shifts in percentage points, each with the sign of its verdict."""
    from rich.text import Text

    table.add_column("Δ pp\n* differs\n≈ equivalent\n? not measured")
    for column in heat.columns:
        table.add_column(Text(visible(column)), justify="right")
    for row, name in enumerate(heat.rows):
        table.add_row(Text(visible(name)), *(heat.text(row, column) for column in range(len(heat.columns))))


def _plain(cell: Cell) -> str:
    return " ".join(part for part in (cell.mark, cell.short or cell.text, cell.interval) if part)
