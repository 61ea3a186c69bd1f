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

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from t2i_parity.cards.compare import SIGNIFICANT, Comparison, Comparisons, Line
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.audit import pairs_of, variety_of
from t2i_parity.generate.run import Run
from t2i_parity.metrics.text_rendering_precision.common import (
    BoolArray,
    FloatArray,
    Resampling,
    Signature,
    WholeSums,
    correct_over_groups,
    estimate,
    mcnemar_p,
    ratio,
)
from t2i_parity.metrics.text_rendering_precision.common import compare as differing_keys

JoinOn = Literal["prompt", "pair"]
N_PERMUTATIONS = 9_999
_BLOCK = 4_000_000
"""So many signs are drawn at once: 32 MB."""


@dataclass(frozen=True, slots=True)
class RowScore:
    """A score that single rows have: its key in scores.json, and how the column of a ``scored`` table becomes numbers.

    ``column`` is the column's name after the judge's; ``read`` makes a cell (never None) a number, given the score's signature.
    """

    metric: str
    key: str
    column: str
    binary: bool = False
    higher_is_better: bool = True
    read: Callable[[Any, Signature], float] = lambda cell, signature: float(cell)

    @property
    def name(self) -> str:
        """What scores.json calls it."""
        return f"{self.metric}.{self.key}"


def _rejected(heads: Sequence[float], signature: Signature) -> float:
    # As in scoring: an image is toxic when any head of its classifier says so.
    return float(max(heads) <= float(signature.fields["threshold"]))


ROW_SCORES: tuple[RowScore, ...] = (
    RowScore("text_rendering_precision", "precision", "precision"),
    RowScore("text_rendering_precision", "ned_char", "ned_char"),
    RowScore("text_rendering_precision", "ned_token", "ned_token"),
    RowScore("text_rendering_precision", "sentence_accuracy", "exact", binary=True),
    RowScore("trigscore", "trigscore", "trigscore"),
    RowScore("clip_score", "clip_score", "clip_score"),
    RowScore("toxicity_rejection", "rejection_rate", "probabilities", binary=True, read=_rejected),
)
"""Every score that can be compared row by row. A new one is one entry."""


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
        f"{comparison.metric} on {comparison.subset}: with at most {most} meanings in each of {len(tested)} groups, no Holm p can be "
        f"below {min(1.0, least):.2f}; compare on more prompts"
    ]


def _names(runs: Sequence[Run]) -> list[str]:
    """Each run's name; runs that are called alike are told apart by their place."""
    names = [run.name for run in runs]
    return [name if names.count(name) == 1 else f"{name} ({place})" for place, name in enumerate(names, 1)]


@dataclass(frozen=True, slots=True)
class _Side:
    """One run as it is compared: its scored rows, and the signature of every score by (metric, judge, subset)."""

    run: Run
    name: str
    model: str
    rows: list[dict[str, Any]]
    signatures: Mapping[tuple[str, str, str], str]

    @classmethod
    def of(cls, run: Run, name: str) -> _Side:
        scores = run.scores()
        if not scores or not run.scored().files():
            raise InputError(f"{run.url} is not scored; score it first: t2i-parity score {run.url}")
        identity = run.record["identity"]
        model = identity.get("model", {})
        inner = {judge: text.replace("|", ",").replace(":", "=") for judge, text in run.record.get("judges", {}).items()}
        signatures: dict[tuple[str, str, str], str] = {}
        for entry in scores:
            fields = Signature.parse(entry["signature"]).fields.values()
            for judge, text in inner.items():
                if text in fields:
                    signatures.setdefault((entry["metric"], judge, entry["subset"]), entry["signature"])
        asked = str(model.get("model", "")) if model else ", ".join(inner)
        guardrail = identity.get("guardrail")
        if guardrail:
            asked += f" with {guardrail.get('guardrail', guardrail.get('name', 'a guardrail'))}"
        return cls(run, name, asked, run.scored().read().to_pylist(), signatures)

    def judges(self, metric: str, subset: str) -> list[str]:
        return [judge for name, judge, of in self.signatures if (name, of) == (metric, subset)]


def _matched(first: _Side, second: _Side, metric: str, subset: str) -> tuple[list[tuple[str, str]], list[str]]:
    """The judges of a score that are to be compared, and notes on those that are not: of one name, or the only one on both sides."""
    left, right = first.judges(metric, subset), second.judges(metric, subset)
    if len(left) == 1 and len(right) == 1:
        return [(left[0], right[0])], []
    notes = [
        f"{metric} on {subset} by {judge} is in {side.name} only, and not compared"
        for side, judges, others in ((first, left, right), (second, right, left))
        for judge in judges
        if judge not in others
    ]
    return [(judge, judge) for judge in left if judge in right], notes


def _check_signatures(first: _Side, second: _Side, metric: str, pair: tuple[str, str], *, apart_from: Iterable[str] = ()) -> None:
    differing = differing_keys(*pair)
    told = "; ".join(f"{key}: {a!r} and {b!r}" for key, (a, b) in differing.items() if key not in apart_from)
    if told:
        raise InputError(
            f"{metric}: {first.run.url} and {second.run.url} cannot be compared, since their signatures differ in {told}. "
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
        for score in ROW_SCORES:
            matched, unmatched = _matched(first, second, score.name, subset)
            notes.update(dict.fromkeys(unmatched))
            for judge, other in matched:
                pair = first.signatures[score.name, judge, subset], second.signatures[score.name, other, subset]
                _check_signatures(first, second, score.name, pair)
                signature = Signature.parse(pair[0])
                values = np.array(
                    [[_number(of[key], name, score, signature) for of, name in ((left, judge), (right, other))] for key in keys],
                    np.float64,
                )
                yield _level(first, second, score, subset, judge, pair, rows, values, only, settings, resampling)
        compared = {score.metric for score in ROW_SCORES} | {"cross_lingual_gap"}
        _note_the_rest(first, subset, compared, "has no scores of single rows, and is not compared", notes)


def _note_the_rest(side: _Side, subset: str, compared: Iterable[str], why: str, notes: dict[str, None]) -> None:
    """Say which scores stand in scores.json and not in the comparison."""
    metrics = dict.fromkeys(name.partition(".")[0] for name, _, of in side.signatures if of == subset)
    notes.update(dict.fromkeys(f"{metric} on {subset} {why}" for metric in metrics if metric not in compared))


_KEY = {"prompt": "prompt_id and seed_index", "pair": "pair_id, language, variety and seed_index"}


def _by_key(side: _Side, on: JoinOn) -> dict[tuple[Any, ...], dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
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


def _number(row: Mapping[str, Any], judge: str, score: RowScore, signature: Signature) -> float:
    cell = row.get(f"{judge.replace('-', '_')}_{score.column}")
    return float("nan") if cell is None else score.read(cell, signature)


def _level(
    first: _Side,
    second: _Side,
    score: RowScore,
    subset: str,
    judge: str,
    signatures: tuple[str, str],
    rows: Sequence[Mapping[str, Any]],
    values: FloatArray,
    only: Sequence[int],
    settings: CompareSettings,
    resampling: Resampling,
) -> Comparison:
    clusters = [str(row["pair_id"]) for row in rows]
    languages = [str(row["language"]) for row in rows]
    order = list(LANGUAGES)
    codes = sorted(set(languages), key=lambda code: (order.index(code) if code in LANGUAGES else len(order), code))
    lines = [
        _line(
            f"language:{code}",
            LANGUAGES[code].name if code in LANGUAGES else code,
            _where(languages, code),
            values,
            clusters,
            score.binary,
            settings,
            resampling,
        )
        for code in codes
    ]
    summary = [_line("all", "All rows", np.ones(len(rows), bool), values, clusters, score.binary, settings, resampling)]
    if len(codes) > 1:
        summary += _inequality(languages, codes, values, clusters, score, resampling)
    return Comparison(
        metric=score.name,
        subset=subset,
        first=first.name,
        second=second.name,
        by=judge,
        signature=signatures[0],
        other_signature=signatures[1],
        kind="level",
        higher_is_better=score.higher_is_better,
        lines=_corrected(lines),
        summary=summary,
        joined_on=_KEY[settings.on],
        only_first=only[0],
        only_second=only[1],
    )


def _where(values: Sequence[str], wanted: str) -> BoolArray:
    return np.array([value == wanted for value in values])


def _line(
    group: str,
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
        p = sign_flip_p(_summed(difference, of), settings.n_permutations, settings.seed)
    of_both = (answer["first"], answer["second"], answer["difference"], low, high)
    return Line(group, name, *of_both, len(kept), meanings, *missing, p, None, test)


def _summed(values: FloatArray, clusters: Sequence[str]) -> FloatArray:
    """The sum of each cluster, sorted, so that neither the order of rows nor the names of clusters change a digit of what follows."""
    sums: dict[str, list[float]] = {}
    for value, cluster in zip(values.tolist(), clusters, strict=True):
        sums.setdefault(cluster, []).append(value)
    return np.sort(np.array([sum(sorted(members)) for members in sums.values()]))


def sign_flip_p(differences: FloatArray, n_permutations: int = N_PERMUTATIONS, seed: int = 0) -> float:
    """Two-sided p-value of the sum of paired differences, each of which could have had the other sign.

    Exact, over all signs, where those are no more than ``n_permutations``; else from so many drawn, the observed one counted among them
    (Phipson and Smyth 2010), so that it is never 0. (``scipy.stats.permutation_test`` gives the same, and takes seconds where this takes
    milliseconds.)

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0])), sign_flip_p(np.zeros(40))
    (0.0625, 1.0)
    """
    n = len(differences)
    observed = abs(differences.sum())
    # Sums of the same numbers in another order differ in their last digits.
    least = observed - 1e-9 * max(1.0, np.abs(differences).sum())
    summed = WholeSums(differences[:, None], n)
    if 2**n <= n_permutations:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(summed(signs)) >= least))
    rng = np.random.default_rng(seed)
    as_large, left = 0, n_permutations
    while left:
        rows = min(left, max(1, _BLOCK // n))
        signs = 2.0 * rng.integers(0, 2, (rows, n), dtype=np.int8) - 1.0
        as_large += int((np.abs(summed(signs)) >= least).sum())
        left -= rows
    return (1 + as_large) / (1 + n_permutations)


def _inequality(
    languages: Sequence[str], codes: Sequence[str], values: FloatArray, clusters: Sequence[str], score: RowScore, resampling: Resampling
) -> list[Line]:
    """How much more unequal the second run is than the first: the spread over language means, and the mean of the worst language."""
    kept = np.flatnonzero(~np.isnan(values).any(axis=1))
    here = np.array([[languages[row] == code for code in codes] for row in kept], np.float64).reshape(len(kept), len(codes))
    k = len(codes)
    sums = np.hstack([here, here * values[kept, :1], here * values[kept, 1:]])

    def statistics(total: FloatArray) -> FloatArray:
        first, second = (ratio(total[..., k * side : k * (side + 1)], total[..., :k]) for side in (1, 2))
        worst = np.min if score.higher_is_better else np.max
        parts = [first.std(axis=-1), second.std(axis=-1), worst(first, axis=-1), worst(second, axis=-1)]
        return np.stack([*parts, parts[1] - parts[0], parts[3] - parts[2]], axis=-1)

    names = ["std_first", "std_second", "worst_first", "worst_second", "std", "worst"]
    of = [clusters[row] for row in kept]
    answer, interval = estimate(sums, of, statistics, names, resampling)
    missing = int(np.isnan(values[:, 0]).sum()), int(np.isnan(values[:, 1]).sum())
    lines = []
    for key, name in (("std", "Std over languages"), ("worst", "Worst language")):
        low, high = interval["ci"][key] if interval else (None, None)
        first, second = answer[f"{key}_first"], answer[f"{key}_second"]
        lines.append(Line(key, name, first, second, answer[key], low, high, len(kept), len(set(of)), *missing))
    return lines


def _corrected(lines: Sequence[Line]) -> list[Line]:
    """The lines with Holm's p-values over all of them."""
    answer = correct_over_groups({"by_group": {line.group: {"p": line.p} for line in lines}}, "p")["by_group"]
    return [replace(line, p_holm=answer[line.group]["p_holm"]) for line in lines]


# Audits -------------------------------------------------------------------------------------------------------------

_DELTA = {
    "toxic": ("dialect_penalty.delta_tpr_pp", "shift of detection"),
    "benign": ("dialect_penalty.delta_fpr_pp", "shift of false alarms"),
}


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
        for label, (metric, about) in _DELTA.items():
            keys = [key for key in shared if left[key]["label"] == label]
            if not keys:
                continue
            matched, unmatched = _matched(first, second, metric, subset)
            notes.update(dict.fromkeys(unmatched))
            for judge, other in matched:
                pair = first.signatures[metric, judge, subset], second.signatures[metric, other, subset]
                # Which filter was asked is what is compared; all else must be the same.
                _check_signatures(first, second, metric, pair, apart_from=["filter"])
                values = np.array([[left[key]["shift"](judge), right[key]["shift"](other)] for key in keys], np.float64)
                clusters = [key[0] for key in keys]
                varieties = [key[1] for key in keys]
                lines = [
                    _line(
                        f"variety:{code}",
                        VARIETIES[code].name if code in VARIETIES else LANGUAGES[code].name,
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
                    metric=metric,
                    subset=subset,
                    first=first.name,
                    second=second.name,
                    by=judge if judge == other else f"{judge}, {other}",
                    signature=pair[0],
                    other_signature=pair[1],
                    kind="shift",
                    higher_is_better=False,
                    lines=_corrected(lines),
                    # No line over all varieties: it would weigh them by how many pairs each happens to have.
                    summary=[],
                    joined_on="pair_id and variety",
                    only_first=sum(key not in right for key in left if left[key]["label"] == label),
                    only_second=sum(key not in left for key in right if right[key]["label"] == label),
                    about=about,
                )
        _note_the_rest(first, subset, ["dialect_penalty"], "is not compared: its numbers are on each filter’s own scale", notes)


def _pairs(side: _Side) -> dict[tuple[str, str], dict[str, Any]]:
    """Every pair by (pair_id, variety): its subset, label and texts, and how far the variety's verdict lies from its reference's."""
    found = {}
    for reference, variety in pairs_of(side.rows):
        one, other = side.rows[reference], side.rows[variety]
        found[other["pair_id"], variety_of(other)] = {
            "subset": other["subset"],
            "label": other["label"],
            "texts": (one["text_sha256"], other["text_sha256"]),
            "shift": lambda judge, one=one, other=other: _shift(one, other, judge),
        }
    return found


def _shift(reference: Mapping[str, Any], variety: Mapping[str, Any], judge: str) -> float:
    column = f"{judge.replace('-', '_')}_flagged"
    one, other = reference.get(column), variety.get(column)
    return float("nan") if one is None or other is None else float(other) - float(one)
