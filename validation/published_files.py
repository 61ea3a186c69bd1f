"""Published values, recomputed from the files that the studies published, each below its own folder of a reference folder:

- ``dialectgen/out``: ``summary.csv`` beside ``breakdown_sae.csv`` and ``breakdown_dialect.csv``, at any depth;
- ``trig``: ``formatted_flux.json``, and ``relation_flux`` with ``result.json`` and ``relationship_codes.csv``;
- ``dialect_penalty``: ``aggregate_results.csv``, the unrounded Table 1.

A file that is missing or has another layout raises InputError, naming the file, the place and where to take it from.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Annotated, TypeVar

import numpy as np
import scipy.stats
from numpy.typing import NDArray
from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.varieties import STUDY_VARIETIES
from t2i_parity.metrics._common import EXACT_BELOW, mcnemar_p
from t2i_parity.metrics.dialect_penalty.core import compute
from t2i_parity.validation import published_values as published
from t2i_parity.validation.published_checks import HALF_UNIT, Check
from t2i_parity.validation.published_checks import stated_check as _stated

FloatArray = NDArray[np.float64]


def checks(reference: Path) -> Iterator[Check]:
    """Everything that the reference folder holds."""
    yield from dialectgen(reference / "dialectgen" / "out")
    yield from trig(reference / "trig")
    yield from dialect_file(reference / "dialect_penalty" / "aggregate_results.csv")


# DialectGen ---------------------------------------------------------------------------------------------------------

BREAKDOWNS = {
    "SAE": ("breakdown_sae.csv", ("Prompt_Index", "SAE_Prompt", "Score")),
    "Dialect": ("breakdown_dialect.csv", ("Prompt_Index", "Dialect_Prompt", "SAE_Prompt", "Score")),
}
SUMMARY = ("Evaluation_Type", "Overall_Average_Score")


def dialectgen(out: Path) -> Iterator[Check]:
    """Every cell of every ``summary.csv`` below ``out``, from the scores of single prompts beside it."""
    summaries = sorted(out.rglob("summary.csv"))
    if not summaries:
        raise InputError(f"no summary.csv below {out}: expected {published.DIALECTGEN_OUT}. Copy it there, or give another --reference")
    for path in summaries:
        scores: dict[str, list[float]] = {}
        for kind, (name, columns) in BREAKDOWNS.items():
            lines = _lines(path.parent / name, columns, published.DIALECTGEN_OUT)
            scores[kind] = [line.number("Score") for line in lines]
        if len(scores["SAE"]) != len(scores["Dialect"]):
            raise InputError(
                f"{path.parent}: expected as many scores in breakdown_dialect.csv as in breakdown_sae.csv, got "
                f"{len(scores['Dialect'])} and {len(scores['SAE'])}. Take both from {published.DIALECTGEN_OUT}"
            )
        ours = summary(scores["SAE"], scores["Dialect"])
        printed = {line.cells["Evaluation_Type"]: line for line in _lines(path, SUMMARY, published.DIALECTGEN_OUT)}
        if list(printed) != list(ours):
            raise InputError(
                f"{path}: expected the rows {', '.join(ours)}, got {', '.join(printed)}. Take it from {published.DIALECTGEN_OUT}"
            )
        for row, value in ours.items():
            item = f"{path.relative_to(out).as_posix()}: {row}"
            value_printed = printed[row].number("Overall_Average_Score")
            yield Check("DialectGen: summaries", item, published.DIALECTGEN_OUT, value_printed, value, within=1e-9)


def summary(sae: Sequence[float], dialect: Sequence[float]) -> dict[str, float]:
    """The rows of a summary: each rounded to four places, and computed from rounded ones; a SAE score of 0 gives a ratio of 0.

    >>> summary([0.5, 0.25], [0.25, 0.25])
    {'Dialect': 0.25, 'SAE': 0.375, 'Absolute Drop': 0.125, 'Drop Ratio': 0.3333}
    """
    means = {"Dialect": round(fmean(dialect), 4), "SAE": round(fmean(sae), 4)}
    drop = round(means["SAE"] - means["Dialect"], 4)
    return {**means, "Absolute Drop": drop, "Drop Ratio": round(drop / means["SAE"], 4) if means["SAE"] else 0.0}


# TRIG ---------------------------------------------------------------------------------------------------------------

Scores = dict[str, Annotated[dict[str, tuple[float, float]], Field(min_length=2)]]


class _Relations(BaseModel):
    metrics: list[str]
    correlation_matrix: list[list[float]]
    relationship_codes: dict[str, int]


def trig(folder: Path) -> Iterator[Check]:
    """TRIG's correlations, relationship codes and means, from its two scores an image."""
    path = folder / "relation_flux" / "result.json"
    by_pair = _json(folder / "formatted_flux.json", Scores, published.TRIG_SCORES)
    result = _json(path, _Relations, published.TRIG_RESULTS)
    pairs, matrix = result.metrics, result.correlation_matrix
    if pairs != list(by_pair) or [len(row) for row in matrix] != [len(pairs)] * len(pairs) or any(pair.count("_") != 1 for pair in pairs):
        raise InputError(
            f"{path}: expected the pairs of formatted_flux.json as metrics, each A_B, and a square matrix over them, got "
            f"{len(pairs)} metrics for {len(by_pair)} pairs. Take both files from {published.TRIG_RESULTS}"
        )
    scores = {pair: np.array(list(of_pair.values()), np.float64) for pair, of_pair in by_pair.items()}
    for place, pair in enumerate(pairs):
        rho = _spearman(scores[pair])
        yield Check("TRIG: correlations", pair, published.TRIG_RESULTS, matrix[place][place], rho, within=1e-12)
    elsewhere = sum(value != 0 for row, values in enumerate(matrix) for column, value in enumerate(values) if row != column)
    yield Check("TRIG: correlations", "cells off the diagonal that are not 0", published.TRIG_RESULTS, elsewhere, 0)

    codes = relations(scores)
    if set(result.relationship_codes) != set(codes):
        wrong = sorted(set(result.relationship_codes) ^ set(codes))[0]
        raise InputError(
            f"{path}: relationship_codes: expected one code for each two dimensions, in both orders; {wrong} is missing or too many. "
            f"Take it from {published.TRIG_RESULTS}"
        )
    for pair, code in codes.items():
        yield Check("TRIG: relation codes", f"result.json: {pair}", published.TRIG_RESULTS, result.relationship_codes[pair], code)
    yield from _trig_table(folder / "relation_flux" / "relationship_codes.csv", scores, codes)


def _trig_table(path: Path, scores: Mapping[str, FloatArray], codes: Mapping[str, int]) -> Iterator[Check]:
    """The table: codes above the diagonal, means of the two dimensions below it, and each dimension's mean on it."""
    means: dict[tuple[str, str], float] = {}
    values: dict[str, list[float]] = {}
    for pair, of_pair in scores.items():
        for dimension, other, column in zip(pair.split("_"), reversed(pair.split("_")), of_pair.T, strict=True):
            means[dimension, other] = fmean(column)
            values.setdefault(dimension, []).extend(column)
    names = sorted(values)
    lines = _lines(path, ("", *names), published.TRIG_RESULTS)
    if [line.cells[""] for line in lines] != names:
        raise InputError(f"{path}: expected the rows {', '.join(names)}, in this order. Take it from {published.TRIG_RESULTS}")
    for row, line in zip(names, lines, strict=True):
        for column in names:
            item, group = f"relationship_codes.csv: {row}, {column}", "TRIG: means"
            if row < column:
                code = line.number(column)
                yield Check("TRIG: relation codes", item, published.TRIG_RESULTS, code, codes[f"{row}_{column}"])
            elif row == column:
                yield Check(group, item, published.TRIG_RESULTS, line.number(column), fmean(values[row]), within=HALF_UNIT / 10)
            elif (row, column) in means:
                printed = re.fullmatch(r"\[(\d\.\d{3})-(\d\.\d{3})\]", line.cells[column] or "")
                if printed is None:
                    raise line.error(column, "two means, as [0.487-0.484]")
                for cell, of, beside in zip(printed.groups(), (row, column), (column, row), strict=True):
                    yield Check(group, f"{item}, {of}", published.TRIG_RESULTS, float(cell), means[of, beside], within=HALF_UNIT / 10)
            elif line.cells[column] != "NULL":
                raise line.error(column, "NULL, as the two are never scored together")


def relations(scores: Mapping[str, FloatArray]) -> dict[str, int]:
    """The code of every two dimensions, in both orders; −1 where they are never scored together."""
    codes: dict[str, int] = {}
    for first, second in combinations(sorted({name for pair in scores for name in pair.split("_")}), 2):
        code = -1
        if f"{first}_{second}" in scores:
            code = relation(scores[f"{first}_{second}"])
        elif f"{second}_{first}" in scores:
            code = _turned(relation(scores[f"{second}_{first}"]))
        codes[f"{first}_{second}"], codes[f"{second}_{first}"] = code, _turned(code)
    return codes


def _turned(code: int) -> int:
    return -code if abs(code) == 2 else code


def relation(scores: FloatArray, settings: published.RelationSettings = published.TRIG_RELATIONS) -> int:
    """How two scores of the same images relate, by TRIG's rules, the first that holds: 0 they rise together, 3 both stay low,
    2 the first dominates, −2 the second does, 1 they trade off, −1 none of these.

    >>> relation(np.array([[0.9, 0.9], [0.85, 0.95], [0.1, 0.9]]))
    0
    >>> relation(np.array([[0.9, 0.1], [0.1, 0.9], [0.6, 0.6]]))
    1
    """
    first, second = scores.T
    high = (first > settings.synergy) & (second > settings.synergy)
    low = (first < settings.bottleneck) & (second < settings.bottleneck)
    if high.mean() >= settings.synergy_density:
        return 0
    if low.mean() >= settings.bottleneck_density:
        return 3
    rest = ~(high | low)
    if rest.sum() >= 10:
        x, y = first[rest] - first[rest].mean(), second[rest] - second[rest].mean()
        slope = float((x * y).sum() / (x * x).sum()) if x.any() else 0.0
        above = int(np.sum(y > slope * x))
        below = len(x) - above
        if max(above, below) * settings.dominance_ratio > min(above, below):
            return -2 if above > below else 2
    return 1 if _spearman(scores) < settings.tradeoff_correlation else -1


def _spearman(scores: FloatArray) -> float:
    return float(scipy.stats.spearmanr(scores[:, 0], scores[:, 1])[0])


# Dialect penalty, the unrounded file --------------------------------------------------------------------------------

PREFIXES = {"NSFW-T": "NSFW-T", "LatentGuard": "LG", "OMod": "OMod"}
SCORES = {"NSFW-T": "prob", "LatentGuard": "score"}
LABELS = {"tpr": "toxic", "fpr": "benign"}
MARKS = {"": 0, "†": 1, "‡": 2}
GROUPS = {
    "rates": "Dialect file: rates",
    "shifts": "Dialect file: shifts",
    "p": "Dialect file: χ² p-values",
    "printed": "Dialect file: rounds to Table 1",
    "marks": "Dialect file: marks of Table 1",
}


def dialect_file(path: Path) -> Iterator[Check]:
    """The unrounded Table 1: rates, shifts and McNemar's p-values by our metric, from counts of pairs that its numbers determine."""
    columns = ["Dialect", "n_toxic", "n_benign"]
    for name, prefix in PREFIXES.items():
        for rate, label in LABELS.items():
            upper = rate.upper()
            columns += [f"{prefix} Δ{upper}", f"{prefix} {upper} (Std)", f"{prefix} {upper} (Dial)", f"{prefix} Δ{upper} p"]
            if name in SCORES:
                columns += [f"{prefix} mean Δ{SCORES[name]} ({label})", f"{prefix} Δ{SCORES[name]} p ({label})"]
    lines = _lines(path, columns, published.DIALECT_FILE, exactly=False)
    by_variety = {line.cells["Dialect"]: line for line in lines}
    if sorted(by_variety) != sorted(STUDY_VARIETIES) or len(lines) != len(by_variety):
        raise InputError(
            f"{path}: column Dialect: expected one row each for {', '.join(STUDY_VARIETIES)}, got "
            f"{', '.join(line.cells['Dialect'] for line in lines)}. Take it from {published.DIALECT_FILE}"
        )
    for row in published.DIALECT_TABLE_1:
        yield from _recomputed(by_variety[row.variety], row)
        yield from _printed(by_variety[row.variety], row)


def _recomputed(line: _Line, row: published.Shifts) -> Iterator[Check]:
    reference: list[bool] = []
    variety: list[bool] = []
    labels: list[str] = []
    found: dict[str, list[tuple[int, int]]] = {}
    prefix = PREFIXES[row.filter]
    for rate, label in LABELS.items():
        n = line.count(f"n_{label}")
        upper = rate.upper()
        flagged, flagged_variety = (round(line.number(f"{prefix} {upper} ({side})") * n / 100) for side in ("Std", "Dial"))
        if not (0 <= flagged <= n and 0 <= flagged_variety <= n):
            raise line.error(f"{prefix} {upper} (Std)", "rates from 0 to 100, also for Dial")
        shift, p = flagged_variety - flagged, line.number(f"{prefix} Δ{upper} p", missing=True)
        found[rate] = discordant(shift, p, flagged, n)
        only_variety, only_reference = found[rate][0] if found[rate] else (max(shift, 0), max(-shift, 0))
        reference += [True] * flagged + [False] * (n - flagged)
        variety += [False] * only_reference + [True] * (flagged - only_reference + only_variety)
        variety += [False] * (n - flagged - only_variety)
        labels += [label] * n
    answer = compute(reference, variety, labels, test="chi2", n_resamples=0)
    for rate in LABELS:
        upper, cell = rate.upper(), f"{row.filter}, {row.variety}"
        for side, key in (("Std", "reference"), ("Dial", "variety")):
            printed = line.number(f"{prefix} {upper} ({side})")
            item = f"{cell}, {upper} ({side})"
            yield Check(GROUPS["rates"], item, published.DIALECT_FILE, printed, 100 * answer[f"{rate}_{key}"], within=1e-9)
        shift_printed, shift_ours = line.number(f"{prefix} Δ{upper}"), answer[f"delta_{rate}_pp"]
        yield Check(GROUPS["shifts"], f"{cell}, Δ{upper}", published.DIALECT_FILE, shift_printed, shift_ours, within=1e-9)
        p, counts = line.number(f"{prefix} Δ{upper} p", missing=True), found[rate]
        yield _p_check(
            f"{cell}, Δ{upper}", p, counts, answer[f"p_{rate}"], answer[f"{rate}_only_variety"] - answer[f"{rate}_only_reference"]
        )


def _p_check(cell: str, p: float, counts: Sequence[tuple[int, int]], ours: float, shift: int) -> Check:
    """A p-value beside ours; the item says which counts of discordant pairs (b only the variety flagged, c only SAE) give it."""
    known, gap = None, f"b − c = {shift}".replace("-", "−")
    if len(counts) == 1:
        (b, c) = counts[0]
        item, note = f"{cell}: p, b = {b}, c = {c}", ""
        if b + c < EXACT_BELOW:
            exact = float(mcnemar_p(b, c, "paper"))
            note = f"{b + c} discordant pairs: the exact test, which §3.3 states for fewer than {EXACT_BELOW}, gives p = {exact:.6g}"
    elif counts:
        item = f"{cell}: p, {gap}"
        note = f"b and c are not determined: {len(counts):,} pairs of counts give this p"
    elif shift == 0 and not p > 0:
        item, known = f"{cell}: p, b = 0, c = 0", 1.0
        note = f"no discordant pair: the file says {p:g}, and p is 1"
    else:
        item, note = f"{cell}: p, {gap}", "no counts b and c of discordant pairs give this p; ours is for the fewest"
    return Check(GROUPS["p"], item, published.DIALECT_FILE, p, ours, within=1e-9 * p if p > 0 else 0.0, known=known, note=note)


def discordant(shift: int, p: float, flagged: int, pairs: int) -> list[tuple[int, int]]:
    """All counts (only the variety flagged, only the reference flagged) with this difference whose χ² p-value is ``p``.

    >>> discordant(0, 0.6170750774519739, flagged=5, pairs=2400)
    [(2, 2)]
    >>> discordant(1, 1.0, flagged=2, pairs=2400)
    [(1, 0), (2, 1), (3, 2)]
    """
    only_reference = np.arange(max(0, -shift), min(flagged, pairs - flagged - shift) + 1)
    if not len(only_reference):
        return []
    hits = np.isclose(mcnemar_p(only_reference + shift, only_reference, "chi2"), p, rtol=1e-9, atol=0)
    return [(int(c) + shift, int(c)) for c in only_reference[hits]]


def _printed(line: _Line, row: published.Shifts) -> Iterator[Check]:
    """What Table 1 prints, beside the file: shifts, SAE's rates, and marks of significance (2 for ‡, 1 for †, 0 for none)."""
    prefix = PREFIXES[row.filter]
    for rate, label in LABELS.items():
        upper = rate.upper()
        cells = [(f"{prefix} Δ{upper}", f"{prefix} Δ{upper} p", row.tpr if rate == "tpr" else row.fpr)]
        score = row.score_toxic if rate == "tpr" else row.score_benign
        if score is not None:
            of = SCORES[row.filter]
            cells.append((f"{prefix} mean Δ{of} ({label})", f"{prefix} Δ{of} p ({label})", score))
        for column, p_column, cell in cells:
            stated = published.Stated(cell.value, published.DIALECT, "Table 1")
            yield _stated(GROUPS["printed"], f"{column}, {row.variety}", stated, line.number(column))
            p = line.number(p_column, missing=True)
            if not p > 0 and line.number(column) == 0:
                p = 1.0  # no discordant pair
            mark = 2 if p < 0.001 else 1 if p < 0.05 else 0
            yield Check(
                GROUPS["marks"],
                f"{p_column}, {row.variety}",
                published.DIALECT,
                MARKS[cell.mark],
                mark,
                place="Table 1",
                known=None if cell.known_mark is None else MARKS[cell.known_mark],
                note=cell.note,
            )
        if row.variety == STUDY_VARIETIES[0]:
            sae = published.DIALECT_TABLE_1_SAE[row.filter][rate]
            yield _stated(GROUPS["printed"], f"{prefix} {upper}, SAE", sae, line.number(f"{prefix} {upper} (Std)"))


# Reading ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Line:
    """A line of a CSV file, which knows where it stands."""

    path: Path
    place: int
    origin: str
    cells: Mapping[str, str]

    def number(self, column: str, *, missing: bool = False) -> float:
        """A cell's number; with ``missing``, NaN may stand there."""
        try:
            value = float(self.cells[column])
        except (TypeError, ValueError):
            raise self.error(column, "a number") from None
        if math.isinf(value) or (math.isnan(value) and not missing):
            raise self.error(column, "a finite number")
        return value

    def count(self, column: str) -> int:
        value = self.number(column)
        if value < 1 or value != int(value):
            raise self.error(column, "a whole number from 1 up")
        return int(value)

    def error(self, column: str, expected: str) -> InputError:
        place = f"{self.path}, line {self.place}, column {column or 1}"
        return InputError(f"{place}: expected {expected}, got {self.cells[column]!r}. Take it from {self.origin}")


def _lines(path: Path, columns: Sequence[str], origin: str, *, exactly: bool = True) -> list[_Line]:
    """A CSV file's lines. Raises InputError when it is missing, empty, or lacks columns (or has others, with ``exactly``)."""
    reader = csv.DictReader(io.StringIO(_text(path, origin), newline=""))
    header = list(reader.fieldnames or [])
    lacking = [column for column in columns if column not in header]
    if lacking or (exactly and header != list(columns)):
        wanted = f"the columns {', '.join(columns)}" if exactly else f"also the columns {', '.join(lacking)}"
        raise InputError(f"{path}: expected {wanted}, got {', '.join(header)}. Take it from {origin}")
    lines = [_Line(path, reader.line_num, origin, cells) for cells in reader]
    if not lines:
        raise InputError(f"{path}: expected lines below the header, got none. Take it from {origin}")
    return lines


Parsed = TypeVar("Parsed")


def _json(path: Path, kind: type[Parsed], origin: str) -> Parsed:
    try:
        return TypeAdapter(kind).validate_json(_text(path, origin))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise InputError(f"{path}: {place}: {first['msg']}. Take it from {origin}") from error


def _text(path: Path, origin: str) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"cannot read {path}: {reason}. Take it from {origin}, and give the folder above as --reference") from error
