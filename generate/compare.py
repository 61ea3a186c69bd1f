"""Runs against each other, row by row: paired differences with intervals, corrected p-values and verdicts, overall and per language.

Two runs that were asked the same have for every prompt and seed a row each, so that what is compared is the difference within a row. Rows
of one meaning (``pair_id``), as one prompt in ten languages, are not independent: they vary together, and are tested together.

- *Interval*: that of a paired difference, with meanings as clusters (the metrics' own).
- *Test*: a sign-flip permutation test of the same mean. If two runs did not differ, either could have made either row of a pair, so
  that the sign of a meaning's whole difference could as well be the other one. It tests the number that is shown, and needs neither a
  distribution nor the absence of ties and zeros, of which differences between images have many; Wilcoxon's test drops the zeros, and tests
  the median of pairwise means instead. For a score of 0 and 1 with one row a meaning it is McNemar's test, which then stands in its place.
- *Inequality and the worst language* are those of the true means, noise taken out and selection allowed for: a run whose images vary more
  is not more unequal for that. Their p-values are of the intervals turned round.
- *Correction*: Holm's, over all groups of one score on one subset, in all pairs of runs that are compared at once; a total is corrected
  over the pairs of runs.
- *Unequal sets*: only cells that both runs have are compared. Where one of them lacks a language, totals say what they cover, and show
  no difference: leaving out what a run does worst would else be an advantage.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias, TypedDict, cast

import numpy as np

from t2i_parity.cards.compare import Comparison, Comparisons, Line
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.generate.audit import pairs_of, variety_of
from t2i_parity.generate.audit.page import variety_name
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import (
    N_PERMUTATIONS,
    Ends,
    FloatArray,
    Resampling,
    Signature,
    cluster_sums,
    holm,
    mcnemar_p,
    paired_interval,
    sign_flip_p,
)
from t2i_parity.metrics._common import compare as differing_keys
from t2i_parity.metrics._inference import Difference, GroupMeans, extreme_difference, inversion_p, spread_difference
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.scores import ALL, Group, Interval, RowScore, Score, ScoreSpec
from t2i_parity.metrics.stored import instrument
from t2i_parity.metrics.verdicts import ALPHA, MARGINS, verdict

JoinOn = Literal["prompt", "pair"]
ScoredRow: TypeAlias = dict[str, Any]
"""A row of a ``scored`` table: a prompt's columns, and those that each judge and metric added."""


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """How runs are compared: what makes two rows the same, and how intervals and p-values are made.

    ``margin`` is δ in the scores' unit, None for each score's own.
    """

    on: JoinOn = "prompt"
    all_pairs: bool = False
    confidence_level: float = 0.95
    margin: float | None = None
    n_permutations: int = N_PERMUTATIONS
    seed: int = 0

    def of(self, spec: ScoreSpec) -> ScoreSpec:
        """The score with the margin that is taken here; 0 where none is known, within which nothing lies."""
        own = MARGINS.get(spec.unit, 0.0) if spec.margin is None else spec.margin
        return replace(spec, margin=own if self.margin is None else self.margin)


def compare(runs: Sequence[Run], settings: CompareSettings, *, title: str = "Runs compared") -> Comparisons:
    """Every score that the runs share, of each run against the first, or of all pairs.

    Raises InputError for fewer than two runs, runs of different kinds, one that is not scored, scores of unequal signature (naming the key
    that differs), and runs that have no row in common.
    """
    if len(runs) < 2:
        raise InputError("there is one run only; compare takes two or more: t2i-parity compare RUN RUN")
    kinds = {run.record["kind"] for run in runs}
    if len(kinds) > 1:
        raise InputError(f"{runs[0].url} and the others are runs of different kinds ({', '.join(sorted(kinds))}); compare like with like")
    try:
        Resampling(settings.confidence_level, seed=settings.seed)
    except ValueError as error:
        raise InputError(str(error)) from error
    if settings.margin is not None and not 0 < settings.margin < float("inf"):
        raise InputError(f"--margin: expected a number above 0, in the unit of the scores, got {settings.margin:g}")
    names = _names(runs)
    sides = [_Side.of(run, name) for run, name in zip(runs, names, strict=True)]
    pairs = list(combinations(sides, 2)) if settings.all_pairs else [(sides[0], other) for other in sides[1:]]
    of_kind = _images if kinds == {"generation"} else _audits
    notes: dict[str, None] = {}
    drafts: list[_Draft] = []
    for first, second in pairs:
        drafts += of_kind(first, second, settings, notes)
    found = _settled(drafts, settings.confidence_level)
    if not found:
        raise InputError(
            f"these runs share no score that single rows have ({'; '.join(notes) or 'no scores'}). "
            "Judge and score them in the same way first"
        )
    for comparison in found:
        notes.update(dict.fromkeys(_too_few(comparison)))
    return Comparisons(
        title=title,
        runs=[(side.name, side.model) for side in sides],
        comparisons=found,
        notes=list(notes),
        level=settings.confidence_level,
        permutations=settings.n_permutations,
        seed=settings.seed,
        pairs=len(pairs),
    )


def _too_few(comparison: Comparison) -> list[str]:
    """Say so where no difference, however large, could be shown: of n meanings, the smallest p-value is 2 / 2ⁿ, times the family."""
    tested = [line for line in comparison.lines if line.p is not None]
    least = min((line.family * 2.0 ** (1 - line.pairs) for line in tested), default=0.0)
    if least < ALPHA:
        return []
    most = max(line.pairs for line in tested)
    return [
        f"{comparison.spec.name} on {comparison.subset}: with at most {most} meanings in each of {tested[0].family} groups, no Holm p can "
        f"be below {min(1.0, least):.2f}; compare on more prompts"
    ]


def _names(runs: Sequence[Run]) -> list[str]:
    """Each run's name; runs that are called alike are told apart by their place."""
    names = [run.name for run in runs]
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


def signatures_by_judge(judges: Mapping[str, str], scores: Iterable[Score]) -> dict[tuple[ScoreSpec, str, str], Signature]:
    """The signature of every score by (score, judge, subset); ``judges`` has the signature of each judge of the scores' run."""
    signed = {judge: instrument(text) for judge, text in judges.items()}
    found: dict[tuple[ScoreSpec, str, str], Signature] = {}
    for score in scores:
        for judge, signature in signed.items():
            if signature in score.signature.fields.values():
                found.setdefault((score.spec, judge, score.subset), score.signature)
    return found


@dataclass(frozen=True, slots=True)
class _Side:
    """One run as it is compared: its scored rows, and the signature of every score by (score, judge, subset)."""

    run: Run
    name: str
    model: str
    rows: list[ScoredRow]
    signatures: Mapping[tuple[ScoreSpec, str, str], Signature]

    @classmethod
    def of(cls, run: Run, name: str) -> _Side:
        scores = run.scores()
        if not scores or not run.scored().files():
            raise InputError(f"{run.url} is not scored; score it first: t2i-parity score {run.url}")
        identity = run.record["identity"]
        model = identity.get("model", {})
        judges = run.record.get("judges", {})
        signatures = signatures_by_judge(judges, scores)
        asked = str(model.get("model", "")) if model else ", ".join(judges)
        guardrail = identity.get("guardrail")
        if guardrail:
            asked += f" with {guardrail.get('guardrail', guardrail.get('name', 'a guardrail'))}"
        return cls(run, name, asked, run.scored().read().to_pylist(), signatures)

    def judges(self, spec: ScoreSpec, subset: str) -> list[str]:
        return [judge for scored, judge, of in self.signatures if (scored, of) == (spec, subset)]


def _matched(first: _Side, second: _Side, spec: ScoreSpec, subset: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The judges of a score that are to be compared, and notes on those that are not: of one name, or the only one on both sides."""
    left, right = first.judges(spec, subset), second.judges(spec, subset)
    if len(left) == 1 and len(right) == 1:
        return [(left[0], right[0])], []
    notes = [
        f"{spec.name} on {subset} by {judge} is in {side.name} only, and not compared"
        for side, judges, others in ((first, left, right), (second, right, left))
        for judge in judges
        if judge not in others
    ]
    return [(judge, judge) for judge in left if judge in right], notes


def _check_signatures(first: _Side, second: _Side, spec: ScoreSpec, pair: tuple[Signature, Signature], *, apart_from: str = "") -> None:
    differing = differing_keys(*(signature.without(apart_from) for signature in pair))
    told = "; ".join(f"{key}: {a!r} and {b!r}" for key, (a, b) in differing.items())
    if told:
        raise InputError(
            f"{spec.name}: {first.run.url} and {second.run.url} cannot be compared, since their signatures differ in {told}. "
            "Judge and score both in the same way"
        )


# Images -------------------------------------------------------------------------------------------------------------


def _images(first: _Side, second: _Side, settings: CompareSettings, notes: dict[str, None]) -> Iterable[_Draft]:
    left, right = (_by_key(side, settings.on) for side in (first, second))
    shared = [key for key in left if key in right]
    if not shared:
        raise InputError(
            f"{first.run.url} and {second.run.url} have no row in common: no {_KEY[settings.on]} is in both. "
            + ("If they were asked the same meanings in other words: --on pair" if settings.on == "prompt" else "Were they asked the same?")
        )
    if settings.on == "prompt":
        for key in shared:
            if left[key]["text_sha256"] != right[key]["text_sha256"]:
                raise InputError(
                    f"{first.run.url} and {second.run.url} were asked different texts under the same prompt_id {key[0]!r}; "
                    "run both on the same prompts, or compare meanings: --on pair"
                )
    for subset in dict.fromkeys(row["subset"] for row in [*first.rows, *second.rows]):
        only = [
            sum(row["subset"] == subset and key not in other for key, row in mine.items()) for mine, other in ((left, right), (right, left))
        ]
        keys = [key for key in shared if left[key]["subset"] == subset]
        if not keys:
            notes[_nothing_shared(subset, first, second)] = None
            continue
        rows = [left[key] for key in keys]
        asked = [Counter(row["language"] for row in side.values() if row["subset"] == subset) for side in (left, right)]
        for spec in (score for metric in specs().values() for score in metric.scores):
            if spec.row is None:
                continue
            matched, unmatched = _matched(first, second, spec, subset)
            notes.update(dict.fromkeys(unmatched))
            for judge, other in matched:
                pair = first.signatures[spec, judge, subset], second.signatures[spec, other, subset]
                _check_signatures(first, second, spec, pair)
                values = np.array(
                    [[row_number(of[key], name, spec.row, pair[0]) for of, name in ((left, judge), (right, other))] for key in keys],
                    np.float64,
                )
                cells = _Cells(
                    settings.of(spec),
                    subset,
                    pair,
                    values,
                    [str(row["pair_id"]) for row in rows],
                    [str(row["language"]) for row in rows],
                    asked,
                    settings,
                    binary=spec.row.binary,
                )
                yield _level(first, second, judge, cells, only)
        compared = {spec.metric for spec, _, _ in first.signatures if spec.row is not None}
        _note_the_rest(first, subset, compared, "has no scores of single rows, and is not compared", notes)


def _note_the_rest(side: _Side, subset: str, compared: Iterable[str], why: str, notes: dict[str, None]) -> None:
    """Say which scores stand in scores.json and not in the comparison."""
    metrics = dict.fromkeys(spec.metric for spec, _, of in side.signatures if of == subset)
    notes.update(dict.fromkeys(f"{metric} on {subset} {why}" for metric in metrics if metric not in compared))


_KEY = {"prompt": "prompt_id and seed_index", "pair": "pair_id, language, variety and seed_index"}


def _by_key(side: _Side, on: JoinOn) -> dict[tuple[Any, ...], ScoredRow]:
    found: dict[tuple[Any, ...], ScoredRow] = {}
    for row in side.rows:
        key = (row["prompt_id"],) if on == "prompt" else (row["pair_id"], row["language"], row["variety"])
        key = (*key, row["seed_index"])
        if key in found:
            raise InputError(
                f"{side.run.url} has two rows with the same {_KEY[on]} ({', '.join(map(str, key))}), so that it is not known which one to "
                f"compare{'; compare on prompts: --on prompt' if on == 'pair' else ''}"
            )
        found[key] = row
    return found


def row_number(row: ScoredRow, judge: str, score: RowScore, signature: Signature) -> float:
    """A row's score by a judge; NaN where it has none."""
    cell = row.get(f"{judge.replace('-', '_')}_{score.column}")
    return float("nan") if cell is None else score.read(cell, signature)


def _nothing_shared(subset: str, first: _Side, second: _Side) -> str:
    return f"{first.name} and {second.name} share no row of {subset}, which is not compared"


def _level(first: _Side, second: _Side, judge: str, cells: _Cells, only: Sequence[int]) -> _Draft:
    order = list(LANGUAGES)
    codes = sorted({code for asked in cells.asked for code in asked}, key=lambda c: (order.index(c) if c in order else len(order), c))
    names = {code: LANGUAGES[code].name if code in LANGUAGES else code for code in codes}
    lines = [_line(cells, Group(language=code), names[code]) for code in codes]
    covers = _covers(lines, first, second)
    summary = [_line(cells, ALL, "All rows", covers)]
    covered = [line.line.group["language"] for line in lines if line.line.n]
    if len(covered) > 1:
        summary += _inequality(cells, covers)
    # Rows of a whole language that was left out lie in no line but its own, and are missing from every total.
    left_out = sum(line.n_missing for line in lines if not line.line.n and line.line.group["language"] not in cells.codes)
    summary = [replace(each, n_missing=each.n_missing + left_out) for each in summary]
    comparison = Comparison(
        spec=cells.spec,
        subset=cells.subset,
        first=first.name,
        second=second.name,
        by=judge,
        signature=cells.signatures[0],
        other_signature=cells.signatures[1],
        lines=(),
        summary=(),
        joined_on=_KEY[cells.settings.on],
        margin=cells.spec.margin or 0.0,
        only_first=only[0],
        only_second=only[1],
    )
    return _Draft(comparison, lines, summary)


def _covers(lines: Sequence[_Drafted], first: _Side, second: _Side) -> str:
    """What totals are over, where some group has no row that both runs were scored on; "" where none is left out."""
    out = [line.line for line in lines if not line.line.n]
    if not out:
        return ""
    told = []
    for line in out:
        lacking = [side.name for side, missing in ((first, line.missing_first), (second, line.missing_second)) if missing]
        told.append(f"{line.name} is missing from {' and '.join(lacking)}" if lacking else f"{line.name} has no row in common")
    return f"{len(lines) - len(out)} of {len(lines)} languages; {', '.join(told)}"


# Lines --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cells:
    """What one comparison is made from.

    ``values`` is (n, 2), a row that both runs have and a run each, NaN where missing; ``clusters`` and ``codes`` are each row's meaning
    and group. ``asked`` counts the rows of each group in each run, whether the other has them or not. ``bound`` is the largest difference
    that a row can have before it is scaled.
    """

    spec: ScoreSpec
    subset: str
    signatures: tuple[Signature, Signature]
    values: FloatArray
    clusters: Sequence[str]
    codes: Sequence[str]
    asked: Sequence[Mapping[str, int]]
    settings: CompareSettings
    binary: bool = False
    scale: float = 1.0
    bound: float = 1.0

    @property
    def ends(self) -> tuple[float, float] | None:
        """Between what the runs' own numbers lie; None where that is not known."""
        seen = self.values[~np.isnan(self.values)]
        return (0.0, 1.0) if self.spec.unit == "fraction" and not ((seen < 0) | (seen > 1)).any() else None


@dataclass(frozen=True, slots=True)
class _Drafted:
    """A line before the family of its test is known.

    ``n_missing`` rows lack their score in either run. ``largest`` is what one row can add to the difference, None for its unit's.
    """

    line: Line
    n_missing: int
    largest: float | None = None
    describes: bool = False


@dataclass(frozen=True, slots=True)
class _Draft:
    comparison: Comparison
    lines: Sequence[_Drafted]
    summary: Sequence[_Drafted] = field(default=())


def _line(cells: _Cells, group: Group, name: str, covers: str = "") -> _Drafted:
    """The rows of one group: the runs' means, the difference of these, its interval and its test."""
    settings, values = cells.settings, cells.values
    code = next(iter(group.values()), None)
    chosen = np.array([code is None or of == code for of in cells.codes], bool)
    missing = [int(np.isnan(values[chosen, side]).sum()) for side in (0, 1)]
    kept = np.flatnonzero(chosen & ~np.isnan(values).any(axis=1))
    n_missing = int(chosen.sum()) - len(kept)
    if code is not None and not chosen.any():
        there = [asked.get(code, 0) for asked in cells.asked]
        missing = [max(0, there[1] - there[0]), max(0, there[0] - there[1])]
        n_missing = max(there)
    if not len(kept):
        line = Line(group, name, None, None, None, None, None, 0, 0, missing[0], missing[1], None, covers=covers)
        return _Drafted(line, n_missing)
    of = [cells.clusters[row] for row in kept]
    first, second = cells.scale * values[kept].mean(axis=0)
    difference = values[kept, 1] - values[kept, 0]
    bound = cells.bound if cells.bound != 1.0 or cells.ends else None
    low, high = _scaled(paired_interval(values[kept, 0], values[kept, 1], of, settings.confidence_level, bound=bound), cells.scale)
    meanings = len(set(of))
    if cells.binary and meanings == len(kept):
        test = "mcnemar"
        p = float(mcnemar_p(int((difference > 0).sum()), int((difference < 0).sum())))
    else:
        test = "permutation"
        p = sign_flip_p(cluster_sums(difference, of), settings.n_permutations, settings.seed)
    shift = cells.scale * cluster_sums(difference, of).sum() / len(kept)
    line = Line(
        group, name, float(first), float(second), float(shift), low, high, len(kept), meanings, missing[0], missing[1], None, p,
        test=test, covers=covers,
    )  # fmt: skip
    return _Drafted(line, n_missing, cells.scale * cells.bound)


def _scaled(ends: Ends, scale: float) -> tuple[float | None, float | None]:
    return (None, None) if ends is None else (scale * ends[0], scale * ends[1])


def _inequality(cells: _Cells, covers: str = "") -> list[_Drafted]:
    """How much more unequal the second run is than the first, noise taken out; its worst language; and the spread as it is published."""
    kept = np.flatnonzero(~np.isnan(cells.values).any(axis=1))
    of, codes = [cells.clusters[row] for row in kept], [cells.codes[row] for row in kept]
    low, high = cells.ends or (None, None)
    first, second = (GroupMeans.of(cells.values[kept, side], codes, of, low=low, high=high) for side in (0, 1))
    worst = cells.spec.direction != "lower"
    level = cells.settings.confidence_level
    lowest = [float(means.means.min() if worst else means.means.max()) for means in (first, second)]
    spreads, stds = [first.spread(), second.spread()], [float(means.means.std()) for means in (first, second)]
    missing = [int(np.isnan(cells.values[:, side]).sum()) for side in (0, 1)]
    # A row moves the mean of its language, the smallest one's the most.
    largest = len(kept) / min(codes.count(code) for code in first.codes)

    def line(
        name: str,
        kind: Literal["spread", "worst", "std"],
        numbers: Sequence[float | None],
        found: Callable[[float], Difference],
    ) -> _Drafted:
        seen = found(level)
        ends = None if seen is None else seen[1]
        difference = None if numbers[0] is None or numbers[1] is None else numbers[1] - numbers[0]
        p = None if ends is None else inversion_p(lambda level: (found(level) or (0.0, None))[1])
        low, high = _scaled(ends, 1.0)
        made = Line(
            ALL, name, numbers[0], numbers[1], difference, low, high, len(kept), len(set(of)), missing[0], missing[1], None, p,
            test=None if p is None else "inversion", covers=covers, of=kind,
        )  # fmt: skip
        return _Drafted(made, len(cells.values) - len(kept), largest, kind == "std")

    return [
        line("Inequality of languages, noise taken out", "spread", spreads, lambda level: spread_difference(first, second, level)),
        line("Worst language", "worst", lowest, lambda level: extreme_difference(first, second, level, worst=worst)),
        line("Std of the means as published, noise and all", "std", stds, lambda level: None),
    ]


def _settled(drafts: Sequence[_Draft], level: float) -> list[Comparison]:
    """The comparisons with Holm's p-values over each family of tests, and with verdicts.

    A family is all groups of one score on one subset, or one total of it, in every pair of runs.
    """
    families: dict[tuple[str, str, str], list[_Drafted]] = {}
    for draft in drafts:
        for part, drafted in (("group", draft.lines), ("total", draft.summary)):
            for each in drafted:
                if each.line.p is not None:
                    of = (draft.comparison.spec.name, draft.comparison.subset, part if part == "group" else each.line.of)
                    families.setdefault(of, []).append(each)
    corrected: dict[int, tuple[float, int]] = {}
    for family in families.values():
        ps = holm([each.line.p for each in family if each.line.p is not None])
        corrected |= {id(each): (p, len(family)) for each, p in zip(family, ps, strict=True)}

    def told(draft: _Draft, drafted: Sequence[_Drafted]) -> list[Line]:
        return [_with_verdict(each, draft.comparison, level, corrected.get(id(each))) for each in drafted]

    return [replace(draft.comparison, lines=told(draft, draft.lines), summary=told(draft, draft.summary)) for draft in drafts]


def _with_verdict(drafted: _Drafted, comparison: Comparison, level: float, corrected: tuple[float, int] | None) -> Line:
    line = drafted.line
    if drafted.describes:
        return line
    p, family = corrected or (None, 1)
    interval = Interval.of((line.low, line.high), level, "paired")
    signature = comparison.signature
    score = Score(comparison.spec, comparison.subset, line.group, line.difference, line.n, drafted.n_missing, interval, signature)
    found = verdict(score, p, family=family, largest=drafted.largest)
    if line.n and line.difference is None:
        # Too few meanings tell of noise, and nothing is missing.
        found = replace(found, kind="undecided")
    if line.covers and found.kind != "not measured":
        # Of what a run leaves out nobody knows which way it would have gone.
        found = replace(found, kind="not measured", turned_by=None)
    return replace(line, verdict=found, p_holm=p, family=family)


# Audits -------------------------------------------------------------------------------------------------------------

_DELTA = {"toxic": DIALECT_PENALTY["delta_tpr_pp"], "benign": DIALECT_PENALTY["delta_fpr_pp"]}


class _Pair(TypedDict):
    """Two wordings of one meaning, by the rows of their verdicts."""

    subset: str
    label: str
    texts: tuple[str, str]
    rows: tuple[ScoredRow, ScoredRow]


def _audits(first: _Side, second: _Side, settings: CompareSettings, notes: dict[str, None]) -> Iterable[_Draft]:
    """Filters asked the same pairs: the difference of their shifts Δ, for each variety."""
    tables = [_pairs(side) for side in (first, second)]
    for subset in dict.fromkeys(cells["subset"] for table in tables for cells in table.values()):
        left, right = ({key: cells for key, cells in table.items() if cells["subset"] == subset} for table in tables)
        shared = [key for key in left if key in right]
        if not shared:
            notes[_nothing_shared(subset, first, second)] = None
            continue
        for key in shared:
            if left[key]["texts"] != right[key]["texts"]:
                raise InputError(
                    f"{first.run.url} and {second.run.url} were asked different texts in the pair {key[0]!r} ({key[1]}); "
                    "audit both on the same prompts"
                )
        for label, spec in _DELTA.items():
            keys = [key for key in shared if left[key]["label"] == label]
            if not keys:
                continue
            matched, unmatched = _matched(first, second, spec, subset)
            notes.update(dict.fromkeys(unmatched))
            for judge, other in matched:
                pair = first.signatures[spec, judge, subset], second.signatures[spec, other, subset]
                # Which filter was asked is what is compared; all else must be the same.
                _check_signatures(first, second, spec, pair, apart_from="filter")
                values = np.array([[_shift(left[key], judge), _shift(right[key], other)] for key in keys], np.float64)
                asked = [Counter(key[1] for key in side if side[key]["label"] == label) for side in (left, right)]
                clusters, varieties = [key[0] for key in keys], [key[1] for key in keys]
                # A shift is from −1 to 1, and so the difference of two from −2 to 2.
                cells = _Cells(settings.of(spec), subset, pair, values, clusters, varieties, asked, settings, scale=100.0, bound=2.0)
                comparison = Comparison(
                    spec=cells.spec,
                    subset=subset,
                    first=first.name,
                    second=second.name,
                    by=judge if judge == other else f"{judge}, {other}",
                    signature=pair[0],
                    other_signature=pair[1],
                    lines=(),
                    # No line over all varieties: it would weigh them by how many pairs each happens to have.
                    summary=(),
                    joined_on="pair_id and variety",
                    margin=cells.spec.margin or 0.0,
                    only_first=sum(key not in right for key in left if left[key]["label"] == label),
                    only_second=sum(key not in left for key in right if right[key]["label"] == label),
                )
                codes = dict.fromkeys(code for each in asked for code in each)
                yield _Draft(comparison, [_line(cells, Group(variety=code), variety_name(code)) for code in codes])
        _note_the_rest(first, subset, ["dialect_penalty"], "is not compared: its numbers are on each filter’s own scale", notes)


def _pairs(side: _Side) -> dict[tuple[str, str], _Pair]:
    """Every pair by (pair_id, variety)."""
    found: dict[tuple[str, str], _Pair] = {}
    for reference, variety in pairs_of(cast(list[Prompt], side.rows)):
        one, other = side.rows[reference], side.rows[variety]
        found[other["pair_id"], variety_of(cast(Prompt, other))] = {
            "subset": other["subset"],
            "label": other["label"],
            "texts": (one["text_sha256"], other["text_sha256"]),
            "rows": (one, other),
        }
    return found


def _shift(pair: _Pair, judge: str) -> float:
    """How far the variety's verdict lies from its reference's."""
    one, other = (row.get(f"{judge.replace('-', '_')}_flagged") for row in pair["rows"])
    return float("nan") if one is None or other is None else float(other) - float(one)
