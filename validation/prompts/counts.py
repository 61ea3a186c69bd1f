"""Counts: every cell of a study's design has as many rows as the design says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from t2i_parity.cards.validation import CountRow
from t2i_parity.dataset_builder.controls import CONTROLS
from t2i_parity.dataset_builder.countries import COUNTRIES, NOUNS
from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.schema import DIMENSIONS
from t2i_parity.dataset_builder.sources import dialect_pairs, geo, lingt2i
from t2i_parity.dataset_builder.varieties import STUDY_VARIETIES
from t2i_parity.validation.prompts.model import Check, Fault, NotRunError, Rows

Cell = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Design:
    """How many rows a subset of a source has in each cell of a config: exactly so many, or ``at_least``."""

    name: str
    config: str
    source: str
    subset: str
    by: tuple[str, ...]
    cells: Mapping[Cell, int]
    at_least: bool = False


def _each(n: int, *values: Iterable[str | None]) -> dict[Cell, int]:
    return dict.fromkeys(product(*values), n)


_CONTENT = [dimension for dimension in DIMENSIONS if dimension != "TR"]
_VARIETIES = ("SAE", *STUDY_VARIETIES)
_STARTER = "T2I Parity starter edition"

DESIGNS = (
    Design("starter edition: 12 or more", "lingt2i_content", _STARTER, "lingt2i_content", ("dimension", "language"),
           _each(12, _CONTENT, LINGT2I_LANGUAGES), True),
    Design("starter edition: 60 or more", "lingt2i_text", _STARTER, "lingt2i_text", ("language",), _each(60, LINGT2I_LANGUAGES), True),
    Design("starter edition: 120 benign, 60 toxic or more", "dialect", _STARTER, "dialect", ("label", "variety"),
           _each(120, ["benign"], _VARIETIES) | _each(60, ["toxic"], _VARIETIES), True),
    Design("starter edition: 40 or more", "dialect_crosslingual", _STARTER, "dialect_crosslingual", ("language",),
           _each(40, ["de", "bar", "ar", "arz"]), True),
    Design("LingT2I §3.2: 300", "lingt2i_content", lingt2i.SOURCE.title, "lingt2i_content", ("dimension", "language"),
           _each(300, _CONTENT, LINGT2I_LANGUAGES)),
    Design("LingT2I §3.3: 300", "lingt2i_text", lingt2i.SOURCE.title, "lingt2i_text", ("language",), _each(300, LINGT2I_LANGUAGES)),
    Design("dialect penalty, Table 13: 2,400 benign, 2,216 toxic", "dialect", dialect_pairs.SOURCE.title, "dialect_pairs",
           ("label", "variety"), _each(2400, ["benign"], _VARIETIES) | _each(2216, ["toxic"], _VARIETIES)),
    Design("Basu et al. §2: 10 nouns × 28", "geo", geo.SOURCE.title, "geo", ("noun", "country"), _each(1, NOUNS, [None, *COUNTRIES])),
)  # fmt: skip
"""The studies' designs, and the minimums of the starter edition."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The rows of one subset of a source by the cells of their design (by language and variety where none is declared)."""

    source: str
    subset: str
    design: Design | None
    by: tuple[str, ...]
    cells: Mapping[Cell, int]

    @property
    def wrong(self) -> dict[Cell, int]:
        """The cells whose number of rows is not the design's, with how many they have."""
        if self.design is None:
            return {}
        wanted = self.design.cells
        return {
            cell: self.cells.get(cell, 0)
            for cell in (*wanted, *(cell for cell in self.cells if cell not in wanted))
            if (self.cells.get(cell, 0) < wanted.get(cell, 0)) or (not self.design.at_least and self.cells[cell] != wanted.get(cell, 0))
        }


def counted(rows: Rows) -> list[Counted]:
    """The cells of every source's subsets; rows that a control made stand beside the designs and are not counted."""
    parts: dict[tuple[str, str], list[int]] = {}
    for number, (source, subset, derivation) in enumerate(zip(rows["source"], rows["subset"], rows["derivation"], strict=True)):
        if derivation not in CONTROLS:
            parts.setdefault((source or "", subset or ""), []).append(number)
    answer = []
    for part, members in parts.items():
        design = next((design for design in DESIGNS if design.config == rows.config and (design.source, design.subset) == part), None)
        by = design.by if design else ("language", "variety")
        columns = [rows[name] for name in by]
        answer.append(Counted(*part, design, by, Counter(tuple(column[number] for column in columns) for number in members)))
    return answer


def summary(rows: Rows) -> list[CountRow]:
    """The counts for the report."""
    answer = []
    for each in rows.memo(counted):
        cells = {**dict.fromkeys(each.design.cells, 0), **each.cells} if each.design else each.cells
        expected = None
        if each.design is not None:
            numbers = sorted(set(each.design.cells.values()))
            expected = ("≥ " if each.design.at_least else "") + " or ".join(f"{number:,}" for number in numbers)
        name = each.design.name if each.design else None
        answer.append(
            CountRow(
                rows.config, each.source or "–", each.subset or "–", name, " × ".join(each.by), len(cells),
                min(cells.values()), max(cells.values()), expected, len(each.wrong),
            )
        )  # fmt: skip
    return answer


def _counts(rows: Rows) -> Iterator[Fault]:
    found = rows.memo(counted)
    if not any(each.design for each in found):
        raise NotRunError("no design is declared for the sources of these rows")
    for each in found:
        if each.design is None:
            continue
        for cell, n in each.wrong.items():
            named = ", ".join(f"{name} {value or 'none'}" for name, value in zip(each.by, cell, strict=True))
            wanted = each.design.cells.get(cell, 0)
            least = "at least " if each.design.at_least else ""
            yield Fault(
                None, " × ".join(each.by), f"{named}: {n:,} rows", f"{least}{wanted:,} ({each.design.name})",
                "add the rows that are missing" if n < wanted else "drop the rows that are not of the design",
            )  # fmt: skip


CHECKS = (Check("counts", "error", "every cell of the study's design has its number of rows", _counts, ("source", "subset", "language")),)
