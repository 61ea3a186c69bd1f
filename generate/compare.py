"""Runs against each other, row by row: paired differences with intervals and corrected p-values, overall and per language.

Two runs that were asked the same have for every prompt and seed a row each, so that what is compared is the difference within a row. Rows
of one meaning (``pair_id``), as one prompt in ten languages, are not independent: they are resampled together, and tested together.

- *Interval*: percentile bootstrap of the mean difference over meanings (the metrics' own).
- *Test*: a sign-flip permutation test of the same mean. If two runs did not differ, either could have made either row of a pair, so
  that the sign of a meaning's whole difference could as well be the other one. It tests the number that is shown, and needs neither a
  distribution nor the absence of ties and zeros, of which differences between images have many; Wilcoxon's test drops the zeros, and tests
  the median of pairwise means instead. For a score of 0 and 1 with one row a meaning it is McNemar's test, which then stands in its place.
- *Correction*: Holm's, over the languages (varieties) of one table. The overall line is one test, and stands outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, TypeAlias, TypedDict, cast

import numpy as np

from t2i_parity.cards.compare import SIGNIFICANT, Comparison, Comparisons, Line
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.generate.audit import pairs_of, variety_of
from t2i_parity.generate.audit.page import variety_name
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import (
    N_PERMUTATIONS,
    BoolArray,
    FloatArray,
    Resampling,
    Signature,
    cluster_sums,
    correct_over_groups,
    estimate,
    mcnemar_p,
    ratio,
    sign_flip_p,
)
from t2i_parity.metrics._common import compare as differing_keys
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.scores import ALL, Group, RowScore, ScoreSpec
from t2i_parity.metrics.stored import instrument

JoinOn = Literal["prompt", "pair"]
ScoredRow: TypeAlias = dict[str, Any]
"""A row of a ``scored`` table: a prompt's columns, and those that each judge and metric added."""


@dataclass(frozen=True, slots=True)
class CompareSettings:
    """How runs are compared: what makes two rows the same, and how intervals and p-values are drawn."""

    on: JoinOn = "prompt"
    all_pairs: bool = False
    confidence_level: float = 0.95
    n_resamples: int = 1000
    n_permutations: int = N_PERMUTATIONS
    seed: int = 0


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
        resampling = Resampling(settings.confidence_level, settings.n_resamples, settings.seed)
    except ValueError as error:
        raise InputError(str(error)) from error
    names = _names(runs)
    sides = [_Side.of(run, name) for run, name in zip(runs, names, strict=True)]
    pairs = list(combinations(sides, 2)) if settings.all_pairs else [(sides[0], other) for other in sides[1:]]
    of_kind = _images if kinds == {"generation"} else _audits
    notes: dict[str, None] = {}
    found: list[Comparison] = []
    for first, second in pairs:
        found += of_kind(first, second, settings, resampling, notes)
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
        resamples=settings.n_resamples,
        permutations=settings.n_permutations,
        seed=settings.seed,
    )


def _too_few(comparison: Comparison) -> list[str]:
    """Say so where no difference, however large, could be shown: of n meanings, the smallest p-value is 2 / 2ⁿ, times the tested groups."""
    tested = [line for line in comparison.lines if line.p is not None]
    least = min((len(tested) * 2.0 ** (1 - line.pairs) for line in tested), default=0.0)
    if least < SIGNIFICANT:
        return []
    most = max(line.pairs for line in tested)
    return [
        f"{comparison.spec.name} on {comparison.subset}: with at most {most} meanings in each of {len(tested)} groups, no Holm p can be "
        f"below {min(1.0, least):.2f}; compare on more prompts"
    ]


def _names(runs: Sequence[Run]) -> list[str]:
    """Each run's name; runs that are called alike are told apart by their place."""
    names = [run.name for run in runs]
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


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
        judges = {judge: instrument(text) for judge, text in run.record.get("judges", {}).items()}
        signatures: dict[tuple[ScoreSpec, str, str], Signature] = {}
        for score in scores:
            for judge, signature in judges.items():
                if signature in score.signature.fields.values():
                    signatures.setdefault((score.spec, judge, score.subset), score.signature)
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


def _images(first: _Side, second: _Side, settings: CompareSettings, resampling: Resampling, notes: dict[str, None]) -> Iterable[Comparison]:
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
    subsets = list(dict.fromkeys(row["subset"] for row in first.rows))
    for subset in subsets:
        only = [
            sum(row["subset"] == subset and key not in other for key, row in mine.items()) for mine, other in ((left, right), (right, left))
        ]
        keys = [key for key in shared if left[key]["subset"] == subset]
        if not keys:
            continue
        rows = [left[key] for key in keys]
        for spec in (score for metric in specs().values() for score in metric.scores):
            if spec.row is None:
                continue
            matched, unmatched = _matched(first, second, spec, subset)
            notes.update(dict.fromkeys(unmatched))
            for judge, other in matched:
                pair = first.signatures[spec, judge, subset], second.signatures[spec, other, subset]
                _check_signatures(first, second, spec, pair)
                values = np.array(
                    [[_number(of[key], name, spec.row, pair[0]) for of, name in ((left, judge), (right, other))] for key in keys],
                    np.float64,
                )
                yield _level(first, second, spec, subset, judge, pair, rows, values, only, settings, resampling)
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


def _number(row: ScoredRow, judge: str, score: RowScore, signature: Signature) -> float:
    cell = row.get(f"{judge.replace('-', '_')}_{score.column}")
    return float("nan") if cell is None else score.read(cell, signature)


def _level(
    first: _Side,
    second: _Side,
    spec: ScoreSpec,
    subset: str,
    judge: str,
    signatures: tuple[Signature, Signature],
    rows: Sequence[ScoredRow],
    values: FloatArray,
    only: Sequence[int],
    settings: CompareSettings,
    resampling: Resampling,
) -> Comparison:
    assert spec.row is not None
    clusters = [str(row["pair_id"]) for row in rows]
    languages = [str(row["language"]) for row in rows]
    order = list(LANGUAGES)
    codes = sorted(set(languages), key=lambda code: (order.index(code) if code in LANGUAGES else len(order), code))
    lines = [
        _line(
            Group(language=code),
            LANGUAGES[code].name if code in LANGUAGES else code,
            _where(languages, code),
            values,
            clusters,
            spec.row.binary,
            settings,
            resampling,
        )
        for code in codes
    ]
    summary = [_line(ALL, "All rows", np.ones(len(rows), bool), values, clusters, spec.row.binary, settings, resampling)]
    if len(codes) > 1:
        summary += _inequality(languages, codes, values, clusters, spec, resampling)
    return Comparison(
        spec=spec,
        subset=subset,
        first=first.name,
        second=second.name,
        by=judge,
        signature=signatures[0],
        other_signature=signatures[1],
        lines=_corrected(lines),
        summary=summary,
        joined_on=_KEY[settings.on],
        only_first=only[0],
        only_second=only[1],
    )


def _where(values: Sequence[str], wanted: str) -> BoolArray:
    return np.array([value == wanted for value in values])


def _line(
    group: Group,
    name: str,
    chosen: BoolArray,
    values: FloatArray,
    clusters: Sequence[str],
    binary: bool,
    settings: CompareSettings,
    resampling: Resampling,
    *,
    scale: float = 1.0,
) -> Line:
    """The rows of one group, (n, 2) values with NaN where missing: their means, the difference of these, its interval and its test."""
    missing = int(np.isnan(values[chosen, 0]).sum()), int(np.isnan(values[chosen, 1]).sum())
    kept = np.flatnonzero(chosen & ~np.isnan(values).any(axis=1))
    if not len(kept):
        return Line(group, name, None, None, None, None, None, 0, 0, *missing)
    of = [clusters[row] for row in kept]
    sums = np.column_stack([np.ones(len(kept)), scale * values[kept], scale * (values[kept, 1] - values[kept, 0])])
    answer, interval = estimate(
        sums, of, lambda total: ratio(total[..., 1:], total[..., :1]), ["first", "second", "difference"], resampling
    )
    low, high = interval["ci"]["difference"] if interval else (None, None)
    difference = values[kept, 1] - values[kept, 0]
    meanings = len(set(of))
    if binary and meanings == len(kept):
        test = "mcnemar"
        p = float(mcnemar_p(int((difference > 0).sum()), int((difference < 0).sum())))
    else:
        test = "permutation"
        p = sign_flip_p(cluster_sums(difference, of), settings.n_permutations, settings.seed)
    of_both = (answer["first"], answer["second"], answer["difference"], low, high)
    return Line(group, name, *of_both, len(kept), meanings, *missing, p, None, test)


_OVER_LANGUAGES: Mapping[Literal["std", "worst"], str] = {"std": "Std over languages", "worst": "Worst language"}


def _inequality(
    languages: Sequence[str], codes: Sequence[str], values: FloatArray, clusters: Sequence[str], spec: ScoreSpec, resampling: Resampling
) -> list[Line]:
    """How much more unequal the second run is than the first: the spread over language means, and the mean of the worst language."""
    kept = np.flatnonzero(~np.isnan(values).any(axis=1))
    here = np.array([[languages[row] == code for code in codes] for row in kept], np.float64).reshape(len(kept), len(codes))
    k = len(codes)
    sums = np.hstack([here, here * values[kept, :1], here * values[kept, 1:]])

    def statistics(total: FloatArray) -> FloatArray:
        first, second = (ratio(total[..., k * side : k * (side + 1)], total[..., :k]) for side in (1, 2))
        worst = np.min if spec.direction == "higher" else np.max
        parts = [first.std(axis=-1), second.std(axis=-1), worst(first, axis=-1), worst(second, axis=-1)]
        return np.stack([*parts, parts[1] - parts[0], parts[3] - parts[2]], axis=-1)

    names = ["std_first", "std_second", "worst_first", "worst_second", "std", "worst"]
    of = [clusters[row] for row in kept]
    answer, interval = estimate(sums, of, statistics, names, resampling)
    missing = int(np.isnan(values[:, 0]).sum()), int(np.isnan(values[:, 1]).sum())
    lines = []
    for key, name in _OVER_LANGUAGES.items():
        low, high = interval["ci"][key] if interval else (None, None)
        first, second = answer[f"{key}_first"], answer[f"{key}_second"]
        lines.append(Line(ALL, name, first, second, answer[key], low, high, len(kept), len(set(of)), *missing, of=key))
    return lines


def _corrected(lines: Sequence[Line]) -> list[Line]:
    """The lines with Holm's p-values over all of them."""
    answer = correct_over_groups({"by_group": {str(place): {"p": line.p} for place, line in enumerate(lines)}}, "p")["by_group"]
    return [replace(line, p_holm=answer[str(place)]["p_holm"]) for place, line in enumerate(lines)]


# Audits -------------------------------------------------------------------------------------------------------------

_DELTA = {"toxic": DIALECT_PENALTY["delta_tpr_pp"], "benign": DIALECT_PENALTY["delta_fpr_pp"]}


class _Pair(TypedDict):
    """Two wordings of one meaning, by the rows of their verdicts."""

    subset: str
    label: str
    texts: tuple[str, str]
    rows: tuple[ScoredRow, ScoredRow]


def _audits(first: _Side, second: _Side, settings: CompareSettings, resampling: Resampling, notes: dict[str, None]) -> Iterable[Comparison]:
    """Filters asked the same pairs: the difference of their shifts Δ, for each variety."""
    tables = [_pairs(side) for side in (first, second)]
    subsets = list(dict.fromkeys(cells["subset"] for cells in tables[0].values()))
    for subset in subsets:
        left, right = ({key: cells for key, cells in table.items() if cells["subset"] == subset} for table in tables)
        shared = [key for key in left if key in right]
        if not shared:
            raise InputError(f"{first.run.url} and {second.run.url} have no pair of {subset} in common; audit both on the same prompts")
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
                clusters = [key[0] for key in keys]
                varieties = [key[1] for key in keys]
                lines = [
                    _line(
                        Group(variety=code),
                        variety_name(code),
                        _where(varieties, code),
                        values,
                        clusters,
                        False,
                        settings,
                        resampling,
                        scale=100.0,
                    )
                    for code in dict.fromkeys(varieties)
                ]
                yield Comparison(
                    spec=spec,
                    subset=subset,
                    first=first.name,
                    second=second.name,
                    by=judge if judge == other else f"{judge}, {other}",
                    signature=pair[0],
                    other_signature=pair[1],
                    lines=_corrected(lines),
                    # No line over all varieties: it would weigh them by how many pairs each happens to have.
                    summary=[],
                    joined_on="pair_id and variety",
                    only_first=sum(key not in right for key in left if left[key]["label"] == label),
                    only_second=sum(key not in left for key in right if right[key]["label"] == label),
                )
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
