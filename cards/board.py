"""The leaderboard: a static Space, one page with its data inside, over the tables that it is handed."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from markupsafe import Markup
from scipy.stats import norm
from scipy.stats import t as student_t

from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.environment import environment, script_json, visible
from t2i_parity.metrics._common import MIN_CLUSTERS, FloatArray
from t2i_parity.metrics._inference import new_group_reach
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
    anything in ``missing`` (each a reason in words) is shown and not ranked. ``links`` are (words, http address). ``by_meaning`` holds
    ``overall`` by meaning, in one order for all entries of a table; empty where that is not known.
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
    by_meaning: Sequence[float | None] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """Entries that may be ranked together: one score on one subset of the same prompts under one signature.

    ``direction`` "zero" says that the cells are signed differences, of which the nearest to 0 is the best, and that ``overall`` is the
    largest of them without its sign; the page knows percentage points ("pp") from every other ``unit``. ``level`` is that of intervals.
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
    level: float = 0.95


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


# Places -------------------------------------------------------------------------------------------------------------


def places(
    values: Sequence[Value], *, higher_is_better: bool = True, level: float = 0.95, by_meaning: Sequence[Sequence[float | None]] = ()
) -> list[tuple[int, int] | None]:
    """The best and the worst place that each of some numbers may truly have; None for one without an interval, which counts for nobody.

    One is ahead of another where their difference's interval leaves out 0. Where ``by_meaning`` gives what both are the mean of, over the
    same meanings, it is that of the paired difference, by Student's t with Agresti and Min's two half pairs (2005). Else it is made from
    both intervals (MOVER), as if they were independent: what answered the same prompts mostly varies together, and places are then wider
    than they need be. The differences of one number to all others hold at once (Bonferroni), and so its places do (Mogstad, Romano, Shaikh
    and Wilhelm 2024).

    >>> places([Value(0.85, 0.8, 0.9), Value(0.65, 0.6, 0.7), Value(0.7, 0.65, 0.75), Value(0.9), Value(0.15, 0.1, 0.2)])
    [(1, 1), (2, 3), (2, 3), None, (4, 4)]
    >>> places([Value(0.85, 0.8, 0.9), Value(0.15, 0.1, 0.2)], higher_is_better=False)
    [(2, 2), (1, 1)]
    """
    ranked = [each for each in map(_known, values) if each is not None]
    if not ranked:
        return [None] * len(values)
    k = len(ranked)
    ends = np.array(ranked) if higher_is_better else -np.array(ranked)[:, [0, 2, 1]]
    middle, below, above = ends[:, 0], ends[:, 0] - ends[:, 1], ends[:, 2] - ends[:, 0]
    # [i, j]: how far j is above i, and how far it must be.
    several = max(k - 1, 1)
    reach = _widening(level, several) * np.hypot(below[None, :], above[:, None])
    if by_meaning:
        known = [means for means, value in zip(by_meaning, values, strict=True) if _known(value) is not None]
        paired = _paired_reach(known, 1 - (1 - level) / 2 / several)
        reach = np.where(np.isnan(paired), reach, paired)
    ahead = (middle[None, :] - middle[:, None] > reach) & ~np.eye(k, dtype=bool)
    found = iter(zip((1 + ahead.sum(axis=1)).tolist(), (k - ahead.sum(axis=0)).tolist(), strict=True))
    return [None if _known(value) is None else next(found) for value in values]


def _known(value: Value) -> tuple[float, float, float] | None:
    return None if value.value is None or value.low is None or value.high is None else (value.value, value.low, value.high)


def _paired_reach(by_meaning: Sequence[Sequence[float | None]], quantile: float) -> FloatArray:
    """[i, j]: how far the means of two must be apart; NaN where they are not of the same meanings, each of them scored, or of too few."""
    reach = np.full((len(by_meaning), len(by_meaning)), np.nan)
    for n in {len(means) for means in by_meaning if len(means) >= MIN_CLUSTERS}:
        at = [place for place, means in enumerate(by_meaning) if len(means) == n and None not in means]
        means = np.array([by_meaning[place] for place in at], np.float64).reshape(len(at), n)
        for place, own in zip(at, means, strict=True):
            apart = means - own
            errors = np.sqrt((apart.var(axis=1, ddof=1) + (apart == 0).mean(axis=1) / (n - 1)) / n)
            reach[place, at] = student_t.ppf(quantile, n - 1) * errors
    return reach


def _widening(level: float, several: int) -> float:
    """By how much intervals are widened so that several hold at once (Bonferroni)."""
    return float(norm.ppf(1 - (1 - level) / 2 / several) / norm.ppf((1 + level) / 2))


def extreme(values: Iterable[Value], *, lowest: bool, level: float = 0.95, ends: tuple[float, float] = (-math.inf, math.inf)) -> Value:
    """The lowest (else the highest) of several numbers, with the interval of the lowest truth: of intervals that hold for all at once.

    The lowest of several is too low by selection, and its own interval with it. ``ends`` are those of the numbers. Without an interval
    where some number has none.

    >>> found = extreme([Value(0.5, 0.4, 0.6), Value(0.52, 0.42, 0.62)], lowest=True)
    >>> found.value, round(found.low, 3), round(found.high, 3)
    (0.5, 0.386, 0.614)
    """
    scored = [value for value in values if value.value is not None]
    if not scored:
        return Value(None)
    pick = min if lowest else max
    first = pick(scored, key=lambda each: each.value or 0.0)
    known = [_known(each) for each in scored]
    wide = _widening(level, len(scored))
    lows = [max(ends[0], each[0] - wide * (each[0] - each[1])) for each in known if each is not None]
    highs = [min(ends[1], each[0] + wide * (each[2] - each[0])) for each in known if each is not None]
    if len(lows) < len(scored):
        return Value(first.value, None, None, first.n, first.n_missing)
    return Value(first.value, pick(lows), pick(highs), first.n, first.n_missing)


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


def worst_value(entry: Entry, table: Table) -> Value:
    """An entry's worst cell (of shifts the largest, without its sign), with the interval of the worst truth."""
    shift = table.direction == "zero"
    cells = [entry.cells[group.code] for group in table.groups if group.code in entry.cells]
    ends = (0.0, 1.0) if table.unit == "fraction" else (0.0, math.inf) if shift else (-math.inf, math.inf)
    return extreme(
        map(without_sign, cells) if shift else cells, lowest=not shift and table.direction == "higher", level=table.level, ends=ends
    )


def table_places(table: Table, values: Iterable[Value], *, higher_is_better: bool, paired: bool = False) -> list[tuple[int, int] | None]:
    """The places of the table's complete entries by some number of each; None for the others.

    ``paired`` says that the numbers are the means of the entries' ``by_meaning``.
    """
    counted = [Value(None) if entry.missing else value for entry, value in zip(table.entries, values, strict=True)]
    by_meaning = [entry.by_meaning for entry in table.entries] if paired else ()
    return places(counted, higher_is_better=higher_is_better, level=table.level, by_meaning=by_meaning)


def overall_places(table: Table) -> list[tuple[int, int] | None]:
    """The places of the table's complete entries by ``overall``, paired where that can be."""
    return table_places(table, [entry.overall for entry in table.entries], higher_is_better=table.direction == "higher", paired=True)


def in_new_language(table: Table) -> list[tuple[tuple[float, float], tuple[int, int]] | None]:
    """Of each entry the score, and the places, to be expected in a language that is not among the table's, were it one like them.

    By prediction intervals over languages: of the scores, and of the differences of two entries in the same languages, those of one entry
    all at once. None for tables of something else, or of fewer than three languages, and for incomplete entries.
    """
    cells = [[each.value for group in table.groups if (each := entry.cells.get(group.code)) is not None] for entry in table.entries]
    k = len(table.groups)
    at = [place for place, (own, entry) in enumerate(zip(cells, table.entries, strict=True)) if len(own) == k and not entry.missing]
    at = [place for place in at if None not in cells[place]]
    found: list[tuple[tuple[float, float], tuple[int, int]] | None] = [None] * len(cells)
    if table.axis != "language" or table.direction not in ("higher", "lower") or k < 3 or not at:
        return found
    scores = np.array([cells[place] for place in at], np.float64)
    reaches = new_group_reach(scores, table.level)
    better = scores if table.direction == "higher" else -scores
    ahead = np.array(
        [(apart := better - own).mean(axis=1) > new_group_reach(apart, table.level, several=max(len(at) - 1, 1)) for own in better]
    )
    least, most = (0.0, 1.0) if table.unit == "fraction" else (-math.inf, math.inf)
    for number, place in enumerate(at):
        mean, reach = float(scores[number].mean()), float(reaches[number])
        ends = max(mean - reach, least), min(mean + reach, most)
        found[place] = ends, (1 + int(ahead[number].sum()), len(at) - int(ahead[:, number].sum()))
    return found


def _is_paired(table: Table) -> bool:
    """Whether all complete entries have the same meanings, each of them scored."""
    known = [entry.by_meaning for entry in table.entries if not entry.missing]
    return len({len(means) for means in known}) == 1 and len(known[0]) >= MIN_CLUSTERS and not any(None in means for means in known)


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
    """What the page's script draws: every text ready to be shown, every place worked out."""
    return {"level": f"{board.level:.0%}", "tables": [_table(table) for table in board.tables]}


def _table(table: Table) -> JsonObject:
    shift, up = table.direction == "zero", table.direction == "higher"
    worst = [worst_group(entry, table) for entry in table.entries]
    sized = without_sign if shift else lambda value: value
    empty = Value(None)
    beyond = in_new_language(table)
    worst_values = [worst_value(entry, table) for entry in table.entries]
    columns = {
        "overall": overall_places(table),
        "spread": table_places(table, (entry.spread for entry in table.entries), higher_is_better=False),
        "worst": table_places(table, worst_values, higher_is_better=up),
    }
    for group in table.groups:
        cells = [sized(entry.cells.get(group.code, empty)) for entry in table.entries]
        columns[f"g:{group.code}"] = table_places(table, cells, higher_is_better=up)
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
        "paired": _is_paired(table),
        "groups": [[group.code, visible(group.name), visible(group.native_name)] for group in table.groups],
        "rows": [
            {
                "id": visible(entry.model),
                "name": visible(entry.name),
                "revision": visible(entry.revision),
                "overall": _numbers(entry.overall),
                "spread": _numbers(entry.spread),
                "worst": code,
                "worstValue": _numbers(worst_values[number]),
                "cells": {group.code: _numbers(entry.cells[group.code]) for group in table.groups if group.code in entry.cells},
                "beyond": beyond[number],
                "places": {column: found[number] for column, found in columns.items()},
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
