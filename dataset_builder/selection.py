"""Choosing among prompt rows: by what they are, at most so many, or the small fixed sample ``mini``. Pure functions over rows or tables.

Rows are dictionaries with class names as strings; a table may hold them as ClassLabels, and comes back as it was, with fewer rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.schema import Row
from t2i_parity.dataset_builder.storage import decode_classes

MINI = 0.1
"""The share of pairs in ``mini``."""

UNSPECIFIED = "unspecified"
"""How rows whose value is null are asked for (prompts without a country or a variety)."""

_VALUE_OF: Mapping[str, Callable[[Row], str | None]] = {
    "language": lambda row: row["language"],
    "branch": lambda row: LANGUAGES[row["language"]].branch if row["language"] in LANGUAGES else None,
    "script": lambda row: row.get("script") or (LANGUAGES[row["language"]].script if row["language"] in LANGUAGES else None),
    "dimension": lambda row: row.get("dimension"),
    "category": lambda row: row.get("category"),
    "country": lambda row: row.get("country"),
    "variety": lambda row: row.get("variety"),
    "label": lambda row: row.get("label"),
    "subset": lambda row: row.get("subset"),
}
"""What rows can be chosen by."""


_KEYWORDS = {
    "language": "languages",
    "branch": "branches",
    "script": "scripts",
    "dimension": "dimensions",
    "category": "categories",
    "country": "countries",
    "variety": "varieties",
    "label": "labels",
    "subset": "subsets",
}


def wanted(pairs: Iterable[str]) -> dict[str, list[str]]:
    """Keywords of ``select_rows`` from what people type, ``name=value,value``.

    Raises InputError, naming the known ones, for a name by which rows cannot be chosen.

    >>> wanted(["dimension=IQ-R,TA-C", "branch=Romance"])
    {'dimensions': ['IQ-R', 'TA-C'], 'branches': ['Romance']}
    """
    found: dict[str, list[str]] = {}
    for pair in pairs:
        name, equals, values = pair.partition("=")
        if name not in _KEYWORDS or not equals:
            raise InputError(f"--only {pair}: expected NAME=VALUE[,VALUE…], where NAME is one of {', '.join(_KEYWORDS)}")
        found.setdefault(_KEYWORDS[name], []).extend(value.strip() for value in values.split(",") if value.strip())
    return found


def values_of(table: pa.Table) -> dict[str, set[str]]:
    """What a table's rows can be chosen by: the values of each keyword of ``select_rows``."""
    names = [name for name in _VALUE_OF if name in table.column_names]
    rows = decode_classes(table.select(names)).to_pylist()
    return {keyword: {_VALUE_OF[name](row) or UNSPECIFIED for row in rows} for name, keyword in _KEYWORDS.items()}


def select_rows(
    rows: Sequence[Row],
    *,
    languages: Iterable[str] = (),
    branches: Iterable[str] = (),
    scripts: Iterable[str] = (),
    dimensions: Iterable[str] = (),
    categories: Iterable[str] = (),
    countries: Iterable[str] = (),
    varieties: Iterable[str] = (),
    labels: Iterable[str] = (),
    subsets: Iterable[str] = (),
    mini: bool = False,
    limit: int | None = None,
) -> list[Row]:
    """Rows that are one of the given in every respect that is given, in the table's order; then ``mini``; then at most ``limit``.

    The limit spreads evenly over languages, varieties, labels and countries, and whole pairs are taken first: the k-th meaning in
    every language before the (k+1)-th in any. "unspecified" asks for the rows that have no value. Raises InputError for a value
    that the rows do not have.
    """
    positions = _positions(
        rows,
        {
            "language": languages,
            "branch": branches,
            "script": scripts,
            "dimension": dimensions,
            "category": categories,
            "country": countries,
            "variety": varieties,
            "label": labels,
            "subset": subsets,
        },
        mini,
        limit,
    )
    return [rows[position] for position in positions]


def select_table(table: pa.Table, *, mini: bool = False, limit: int | None = None, **wanted: Iterable[str]) -> pa.Table:
    """``select_rows`` over a table, with the same keywords; columns and metadata stay."""
    names = [name for name in ("pair_id", *_VALUE_OF) if name in table.column_names]
    rows = decode_classes(table.select(names)).to_pylist()
    numbered = [{**row, "_position": position} for position, row in enumerate(rows)]
    kept = select_rows(numbered, mini=mini, limit=limit, **wanted)
    return table.take(pa.array([row["_position"] for row in kept], pa.int64()))


def _positions(rows: Sequence[Row], wanted: Mapping[str, Iterable[str]], mini: bool, limit: int | None) -> list[int]:
    chosen = list(range(len(rows)))
    for respect, given in wanted.items():
        values = list(dict.fromkeys(given))
        if not values:
            continue
        found = [_VALUE_OF[respect](row) or UNSPECIFIED for row in rows]
        for value in values:
            if value not in found:
                raise InputError(f"unknown {respect} {value!r}: these prompts are in {', '.join(dict.fromkeys(found))}")
        chosen = [position for position in chosen if found[position] in values]
    if mini:
        pairs = mini_pairs(rows)
        chosen = [position for position in chosen if rows[position]["pair_id"] in pairs]
    if limit is None or limit >= len(chosen):
        return chosen
    if limit < 1:
        raise InputError(f"--limit expects a number of rows from 1 on, got {limit}")
    rank: dict[tuple[Any, ...], int] = {}
    ranked = []
    for position in chosen:
        row = rows[position]
        cell = (row["language"], row.get("variety"), row.get("label"), row.get("country"))
        ranked.append((rank.setdefault(cell, 0), position))
        rank[cell] += 1
    return sorted(position for _, position in sorted(ranked)[:limit])


def mini_pairs(rows: Iterable[Row], share: float = MINI) -> set[str]:
    """The pairs of ``mini``: those whose ``draw`` is below ``share``, and in a cell that would be empty the pair of the lowest draw.

    A cell is a dimension, a label and a category. The draw is a hash of the pair's id alone, so a pair is in or out as a whole, in
    every language and variety, whatever the rows' order; and a pair below the share is in every edition's ``mini``. Only the pair
    that stands in for an empty cell can leave again, when the cell grows. A small cell holds a tenth on average, not exactly.
    """
    cells: dict[tuple[Any, ...], set[str]] = {}
    for row in rows:
        cells.setdefault((row.get("dimension"), row.get("label"), row.get("category")), set()).add(row["pair_id"])
    chosen = set()
    for pairs in cells.values():
        below = {pair for pair in pairs if draw(pair) < share}
        chosen |= below or {min(pairs, key=lambda pair: (draw(pair), pair))}
    return chosen


def draw(pair_id: str) -> float:
    """A number in [0, 1) that a pair's id decides.

    >>> round(draw("starter-IQ-R-001"), 4)
    0.6477
    """
    return int.from_bytes(hashlib.sha256(f"mini\0{pair_id}".encode()).digest()[:8], "big") / 2**64
