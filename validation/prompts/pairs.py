"""Pairs: every meaning stands once in each language, variety and country of its subset, and is the same thing in all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from t2i_parity.validation.prompts.model import Check, Fault, Rows
from t2i_parity.validation.prompts.texts import shorten

Cell = tuple[str, ...]
"""What sets the rows of a pair apart: language, variety, country; what is null is left out."""

FEW = 0.05
"""The share of a subset's pairs from which something is a design of theirs."""
LISTED = ("pair_complete", "incomplete")
"""The entry of ``checks`` (check, verdict) by which the rows of a pair say that it is known to be incomplete."""


def _cells(rows: Rows) -> list[Cell]:
    """Every row's cell."""
    columns = [rows[name] for name in ("language", "variety", "country")]
    return [tuple(value for value in values if value is not None) for values in zip(*columns, strict=True)]


def _named(cells: Iterable[Cell]) -> str:
    return ", ".join(" ".join(cell) for cell in sorted(cells))


def _complete(rows: Rows) -> Iterator[Fault]:
    cells = rows.memo(_cells)
    subsets: dict[str, dict[str, frozenset[Cell]]] = {}
    for (subset, pair), members in rows.designed.items():
        if members:
            subsets.setdefault(subset, {})[pair] = frozenset(cells[number] for number in members)
    for subset, pairs in subsets.items():
        designs = _designs(Counter(pairs.values()))
        for pair, found in pairs.items():
            wanted = _wanted(found, designs)
            if wanted is None:
                continue
            members = rows.designed[subset, pair]
            missing, more = wanted - found, found - wanted
            said = f"pair {shorten(pair)} has {_named(found)}" if len(found) <= 3 else f"pair {shorten(pair)} has {len(found)} rows"
            told = [f"lacks {_named(missing)}"] * bool(missing) + [f"has {_named(more)}, which most pairs have not"] * bool(more)
            listed = all(_is_listed(rows, number) for number in members)
            yield Fault(
                members[0], "pair_id", f"{said}; it {' and '.join(told)}", f"{_named(wanted)}, as in the other pairs of {subset}",
                "known and listed" if listed else f"add the rows, or list the pair as incomplete in the checks of its rows ({LISTED[0]})",
                "note" if listed else None,
            )  # fmt: skip


def _designs(counts: Counter[frozenset[Cell]]) -> list[frozenset[Cell]]:
    """What the pairs of a subset consist of.

    A subset may hold several designs, as German with Bavarian beside Standard with Egyptian Arabic, or a reference with one variety
    each: pairs that share two cells are of one design, and it asks for the cells that at least half of them have.
    """
    merged: list[tuple[frozenset[Cell], list[frozenset[Cell]]]] = []
    for found in sorted((found for found in counts if len(found) > 1), key=lambda found: (-len(found), sorted(found))):
        near = [entry for entry in merged if len(entry[0] & found) > 1]
        merged = [entry for entry in merged if entry not in near]
        merged.append((found.union(*(entry[0] for entry in near)), [found, *(each for entry in near for each in entry[1])]))
    designs: list[tuple[int, frozenset[Cell]]] = []
    for _, members in merged:
        having = Counter[Cell]()
        for found in members:
            having.update(dict.fromkeys(found, counts[found]))
        total = sum(counts[found] for found in members)
        designs.append((total, frozenset(cell for cell, n in having.items() if 2 * n >= total)))
    # What hardly any pair has, and is near what many have, is no design but a fault.
    few = max(2, FEW * counts.total())
    return [design for total, design in designs if total >= few or not any(other & design and more > total for more, other in designs)]


def _wanted(found: frozenset[Cell], designs: Iterable[frozenset[Cell]]) -> frozenset[Cell] | None:
    """The design that a pair should have had, None when it has one or when there is none near it."""
    best = max(designs, key=lambda design: (len(design & found), -len(design)), default=None)
    return None if best is None or best == found or not best & found else best


def _is_listed(rows: Rows, number: int) -> bool:
    if "checks" not in rows.table.column_names:
        return False
    entries = rows.table["checks"][number].as_py()
    return any(isinstance(entry, dict) and (entry.get("check"), entry.get("verdict")) == LISTED for entry in entries or [])


def _twice(rows: Rows) -> Iterator[Fault]:
    cells = rows.memo(_cells)
    for (_, pair), members in rows.designed.items():
        first: dict[Cell, int] = {}
        for number in members:
            cell = cells[number]
            if cell in first:
                wanted = f"one row of pair {shorten(pair)} in {' '.join(cell)}; row {first[cell]} is that already"
                yield Fault(number, "pair_id", shorten(pair), wanted, "drop one of the rows, or give it a pair of its own")
            first.setdefault(cell, number)


def _agree(rows: Rows) -> Iterator[Fault]:
    for name in ("dimension", "label", "category", "noun"):
        if name not in rows.usable:
            continue
        values = rows[name]
        for (_, pair), members in rows.pairs.items():
            counts = Counter(values[number] for number in members)
            if len(counts) == 1:
                continue
            usual = counts.most_common(1)[0][0]
            for number in members:
                if values[number] != usual:
                    wanted = f"{usual}, as in the other rows of pair {shorten(pair)}"
                    yield Fault(number, name, str(values[number]), wanted, "correct the row, or give it a pair of its own")


CHECKS = (
    Check("pair_complete", "error", "every pair has each language, variety and country of its subset, or is listed", _complete,
          ("pair_id", "language")),
    Check("pair_twice", "error", "a pair has one row in each language, variety and country", _twice, ("pair_id", "language")),
    Check("pair_agrees", "error", "the rows of a pair have one dimension, label, category and noun", _agree, ("pair_id",)),
)  # fmt: skip
