"""The leaderboard: a static Space, one page with its data inside, over the tables that it is handed."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from markupsafe import Markup

from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.environment import environment, script_json, visible
from t2i_parity.metrics.scores import Direction, Unit

Axis = Literal["language", "dialect", "country"]
AXES: tuple[Axis, ...] = ("language", "dialect", "country")
"""The tabs, in their order."""
_GROUPS = {"language": ("language", "languages"), "dialect": ("variety", "varieties"), "country": ("country", "countries")}
_DIGITS = 5


@dataclass(frozen=True, slots=True)
class Value:
    """A number with its interval; None where there is none. ``n`` rows stand behind it, ``n_missing`` could not be scored."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    n_missing: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """A column of the heat map: a language, variety or country."""

    code: str
    name: str
    native_name: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """One model at one revision.

    ``overall`` is the number it is ranked by, ``spread`` says how unequal it is, ``cells`` holds its score in each group. An entry with
    anything in ``missing`` (each a reason in words) is shown and not ranked. ``links`` are (words, http address).
    """

    model: str
    revision: str
    overall: Value
    spread: Value
    cells: Mapping[str, Value]
    submitted: str
    submitter: str
    name: str = ""
    missing: Sequence[str] = ()
    links: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Entries that may be ranked together: one score on one subset of the same prompts under one signature.

    ``direction`` "zero" says that the cells are signed differences, of which the nearest to 0 is the best, and that ``overall`` is the
    largest of them without its sign; the page knows percentage points ("pp") from every other ``unit``.
    """

    axis: Axis
    score: str
    title: str
    subset: str
    prompts: str
    signature: str
    groups: Sequence[Group]
    entries: Sequence[Entry]
    about: str = ""
    spread_signature: str = ""
    direction: Direction = "higher"
    unit: Unit = "fraction"


@dataclass(frozen=True, slots=True)
class Board:
    """All that the page shows. ``updated`` is a date; ``source`` the repository of the records, as a link where ``source_url`` is given."""

    title: str
    updated: str
    source: str
    tables: Sequence[Table]
    source_url: str = ""
    notes: Sequence[str] = ()
    level: float = 0.95
    datasets: Sequence[str] = field(default=())
    """Hub ids for the Space's metadata."""


# Ranks --------------------------------------------------------------------------------------------------------------


def rank_ranges(intervals: Sequence[tuple[float, float] | None], *, higher_is_better: bool = True) -> list[tuple[int, int] | None]:
    """The best and the worst rank that each of some intervals can have; None stands for what is not ranked, and counts for nobody.

    Of two intervals that do not overlap, the better one is ahead; of two that do, neither is. The best rank is then 1 + how many are ahead,
    the worst is how many there are less how many one is ahead of. This is not transitive: two may both be tied with a third that lies
    between them, and not with each other. With intervals of 95% the rule is cautious: where it tells two models apart that answered the
    same prompts, a test of their difference at 5% would too.

    >>> rank_ranges([(0.8, 0.9), (0.6, 0.7), (0.65, 0.75), None, (0.1, 0.2)])
    [(1, 1), (2, 3), (2, 3), None, (4, 4)]
    >>> rank_ranges([(0.8, 0.9), (0.1, 0.2)], higher_is_better=False)
    [(2, 2), (1, 1)]
    """
    ranked = [interval for interval in intervals if interval is not None]
    if not ranked:
        return [None] * len(intervals)
    ends = np.array(ranked, np.float64) if higher_is_better else -np.array(ranked, np.float64)[:, ::-1]
    lows, highs = np.sort(ends[:, 0]), np.sort(ends[:, 1])
    ahead = len(ends) - np.searchsorted(lows, ends[:, 1], side="right")
    behind = np.searchsorted(highs, ends[:, 0], side="left")
    ranges = iter(zip((1 + ahead).tolist(), (len(ends) - behind).tolist(), strict=True))
    return [None if interval is None else next(ranges) for interval in intervals]


def without_sign(value: Value) -> Value:
    """How far a shift is from 0, and its interval: from 0 where the shift's spans it.

    >>> without_sign(Value(-3.0, -5.0, 1.0))
    Value(value=3.0, low=0.0, high=5.0, n=0, n_missing=0)
    """
    if value.value is None or value.low is None or value.high is None:
        size = None if value.value is None else abs(value.value)
        return Value(size, None, None, value.n, value.n_missing)
    ends = sorted((abs(value.low), abs(value.high)))
    low = 0.0 if value.low <= 0 <= value.high else ends[0]
    return Value(abs(value.value), low, ends[1], value.n, value.n_missing)


def worst_group(entry: Entry, table: Table) -> str | None:
    """The code of the group in which an entry is worst, the first in a tie; None when no cell has a value."""
    scored = {group.code: cell for group in table.groups if (cell := entry.cells.get(group.code)) is not None and cell.value is not None}
    sizes = {code: _goodness(cell, table) for code, cell in scored.items()}
    return min(sizes, key=sizes.__getitem__, default=None)


def _goodness(cell: Value, table: Table) -> float:
    assert cell.value is not None
    if table.direction == "zero":
        return -abs(cell.value)
    return cell.value if table.direction == "higher" else -cell.value


def _ranks(table: Table, values: Iterable[Value], *, higher_is_better: bool) -> list[tuple[int, int] | None]:
    intervals = [
        None if entry.missing or value.value is None or value.low is None or value.high is None else (value.low, value.high)
        for entry, value in zip(table.entries, values, strict=True)
    ]
    return rank_ranges(intervals, higher_is_better=higher_is_better)


# The page -----------------------------------------------------------------------------------------------------------


def space(board: Board) -> dict[str, str]:
    """The files of the Space, by name: its README.md, and index.html, which also opens from a disk. Same input, same text."""
    front: JsonObject = {
        "title": visible(board.title),
        "emoji": "⚖️",
        "colorFrom": "blue",
        "colorTo": "gray",
        "sdk": "static",
        "app_file": "index.html",
        "pinned": False,
        "license": "apache-2.0",
        "short_description": "Do image models serve every language alike?",
        "tags": ["leaderboard", "t2i-parity", "text-to-image", "fairness", "multilingual"],
        **({"datasets": list(board.datasets)} if board.datasets else {}),
    }
    readme = environment().get_template("board_space.md.j2").render(front=front, board=board)
    return {"README.md": readme, "index.html": render(board)}


def render(board: Board) -> str:
    """The leaderboard as one HTML page that asks for nothing outside itself."""
    env = environment()
    # The policy names the script by its hash, so that no other one runs, whatever somebody is called.
    script = env.get_template("board.js.j2").render()
    fingerprint = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    models = {(entry.model, entry.revision) for table in board.tables for entry in table.entries}
    return (
        env.get_template("board.html.j2")
        .render(
            board=board,
            axes=[(axis, *_GROUPS[axis]) for axis in AXES],
            models=len(models),
            groups={axis: len({group.code for table in board.tables if table.axis == axis for group in table.groups}) for axis in AXES},
            signatures=list(dict.fromkeys(s for table in board.tables for s in (table.signature, table.spread_signature) if s)),
            level=f"{board.level:.0%}",
            script=Markup(script),
            script_hash=fingerprint,
            data=Markup(script_json(_data(board))),
            visible=visible,
        )
        .lstrip()
    )


def _data(board: Board) -> JsonObject:
    """What the page's script draws: every text ready to be shown, every rank worked out."""
    return {"level": f"{board.level:.0%}", "tables": [_table(table) for table in board.tables]}


def _table(table: Table) -> JsonObject:
    shift, up = table.direction == "zero", table.direction == "higher"
    worst = [worst_group(entry, table) for entry in table.entries]
    sized = without_sign if shift else lambda value: value
    empty = Value(None)
    worst_values = [sized(entry.cells[code]) if code is not None else empty for entry, code in zip(table.entries, worst, strict=True)]
    columns = {
        "overall": _ranks(table, (entry.overall for entry in table.entries), higher_is_better=up),
        "spread": _ranks(table, (entry.spread for entry in table.entries), higher_is_better=False),
        "worst": _ranks(table, worst_values, higher_is_better=up),
    }
    for group in table.groups:
        cells = [sized(entry.cells.get(group.code, empty)) for entry in table.entries]
        columns[f"g:{group.code}"] = _ranks(table, cells, higher_is_better=up)
    return {
        "axis": table.axis,
        "score": table.score,
        "title": visible(table.title),
        "about": visible(table.about),
        "subset": visible(table.subset),
        "prompts": visible(table.prompts),
        "signature": visible(table.signature),
        "spreadSignature": visible(table.spread_signature),
        "up": up,
        "shift": shift,
        "unit": table.unit,
        "groups": [[group.code, visible(group.name), visible(group.native_name)] for group in table.groups],
        "rows": [
            {
                "id": visible(entry.model),
                "name": visible(entry.name),
                "revision": visible(entry.revision),
                "overall": _numbers(entry.overall),
                "spread": _numbers(entry.spread),
                "worst": code,
                "cells": {group.code: _numbers(entry.cells[group.code]) for group in table.groups if group.code in entry.cells},
                "ranks": {column: ranks[number] for column, ranks in columns.items()},
                "missing": [visible(reason) for reason in entry.missing],
                "submitted": visible(entry.submitted),
                "submitter": visible(entry.submitter),
                "links": [[visible(words), address] for words, address in entry.links if address.startswith(("https://", "http://"))],
            }
            for number, (entry, code) in enumerate(zip(table.entries, worst, strict=True))
        ],
    }


def _numbers(value: Value) -> list[float | int | None]:
    ends = (value.value, value.low, value.high)
    return [*(None if end is None else round(end, _DIGITS) for end in ends), value.n, value.n_missing]
