"""Where a variety's wording lies beside its reference: how near, and in which direction (dialect-penalty study, Table 2, Appendix K).

A shift is a text's embedding minus its reference's, both of length 1. If a variety were nothing but noise as large, its shift would point
along typo shifts as much as two independent typo shifts along each other; ``difference`` is how much less it does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2i_parity.generate.audit.pairs import Pair, toxic_and_benign, variety_of
from t2i_parity.generate.entries import Scores, ScoreSettings
from t2i_parity.generate.specs.audit import SEMANTIC_PRESERVATION, SHIFT_DIRECTION
from t2i_parity.metrics._common import Answer, FloatArray, Mean, Resampling, Signature, WholeSums, estimate, ratio
from t2i_parity.metrics.scores import Group, Interval, Score

VERSION = "1.0"
DIRECTION_KEYS = ("dialect_typo", "typo_typo", "difference", "dialect_length", "typo_length")
# Means by the columns that add up and count them; the difference of two is of unequal counts.
_DIRECTIONS = {key: Mean(at, at + 1, None, None) for key, at in zip((*DIRECTION_KEYS[:2], *DIRECTION_KEYS[3:]), (0, 2, 4, 6), strict=True)}

Vector = NDArray[np.float64] | None


def preservation(
    subset: str, rows: Sequence[Any], pairs: Sequence[Pair], vectors: Sequence[Vector], encoder: Signature, settings: ScoreSettings
) -> Scores:
    """Table 2: cosines of each variety to its reference, and, to read them by, of different reference prompts of one category.

    The baseline is the mean over all pairs of distinct prompts of a category, then over categories (``within_category_macro``).
    """
    signature = Signature("semantic_preservation", {"encoder": encoder}, VERSION)
    scores: Scores = []
    for label, of_label in toxic_and_benign(pairs).items():
        for code, of_variety in _by_variety(of_label):
            cosines = [_dot(vectors[pair.reference], vectors[pair.other]) for pair in of_variety]
            answer = _means({"similarity": cosines}, of_variety, settings)
            group = Group(variety=code, label=label)
            scores.append(Score.of(SEMANTIC_PRESERVATION["similarity"], answer, subset, group, signature, level=settings.confidence_level))
        scores += _baseline(subset, label, rows, of_label, vectors, signature, settings)
    return scores


def _baseline(
    subset: str,
    label: str,
    rows: Sequence[Any],
    pairs: Sequence[Pair],
    vectors: Sequence[Vector],
    signature: Signature,
    settings: ScoreSettings,
) -> Scores:
    places: dict[tuple[str, str], dict[str, int]] = {}
    missing: dict[str, int] = {}
    for place in dict.fromkeys(pair.reference for pair in pairs if pair.category):
        code = variety_of(rows[place])
        if vectors[place] is None:
            missing[code] = missing.get(code, 0) + 1
            continue
        places.setdefault((code, rows[place]["category"]), {}).setdefault(rows[place]["prompt"], place)
    scores: Scores = []
    rng = np.random.default_rng(settings.seed)
    macro: dict[str, list[tuple[float, FloatArray, int]]] = {}
    for (code, category), distinct in places.items():
        if len(distinct) < 2:
            continue
        found = np.array([vectors[place] for place in distinct.values()], np.float64)
        value = float(mean_cosine(found, np.ones((1, len(found))))[0])
        drawn = np.zeros(0)
        if settings.n_resamples:
            weights = rng.multinomial(len(found), np.full(len(found), 1 / len(found)), size=settings.n_resamples)
            drawn = mean_cosine(found, weights.astype(np.float64))
        macro.setdefault(code, []).append((value, drawn, len(found)))
        group, spec = Group(variety=code, label=label, category=category), SEMANTIC_PRESERVATION["within_category"]
        scores.append(Score(spec, subset, group, value, len(found), 0, _interval(drawn, settings), signature))
    for code, cells in macro.items():
        mean = float(np.mean([value for value, _, _ in cells]))
        drawn = np.mean([drawn for _, drawn, _ in cells], axis=0)
        n = sum(count for _, _, count in cells)
        group, spec = Group(variety=code, label=label), SEMANTIC_PRESERVATION["within_category_macro"]
        scores.append(Score(spec, subset, group, mean, n, missing.get(code, 0), _interval(drawn, settings), signature))
    return scores


def mean_cosine(vectors: FloatArray, weights: FloatArray) -> FloatArray:
    """The mean cosine over pairs of different vectors of length 1, for each row of weights (how often each vector stands in a resample).

    >>> mean_cosine(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), np.ones((1, 3))).round(3).tolist()
    [0.333]
    """
    same = (weights**2).sum(axis=1)
    together = (WholeSums(vectors, int(weights.sum(axis=1).max(initial=0)))(weights) ** 2).sum(axis=1) - same
    pairs = weights.sum(axis=1) ** 2 - same
    return np.asarray(ratio(together, pairs))


def directions(subset: str, pairs: Sequence[Pair], vectors: Sequence[Vector], encoder: Signature, settings: ScoreSettings) -> Scores:
    """Appendix K: cosines of dialect and typo shifts, and of two typo shifts, of each variety; and of the shifts of two varieties.

    A cosine with a shift of no length is none. ``dialect_dialect_macro`` is the mean over the combinations of varieties.
    """
    signature = Signature("shift_direction", {"encoder": encoder}, VERSION)
    scores: Scores = []
    for label, of_label in toxic_and_benign(pairs).items():
        shift = {(pair.pair_id, pair.variety): _shift(vectors[pair.reference], vectors[pair.other]) for pair in of_label}
        for code, of_variety in _by_variety(of_label):
            with_typos = [pair for pair in of_variety if pair.typos]
            if with_typos:
                answer = _direction(with_typos, vectors, settings)
                group = Group(variety=code, label=label)
                level = settings.confidence_level
                scores += SHIFT_DIRECTION.read(answer, subset, group, signature, level=level, keys=DIRECTION_KEYS)
        found = []
        for one, other in combinations(dict.fromkeys(pair.variety for pair in of_label), 2):
            meanings = [pair for pair in of_label if pair.variety == one and (pair.pair_id, other) in shift]
            if not meanings:
                continue
            cosines = [_cosine(shift[pair.pair_id, one], shift[pair.pair_id, other]) for pair in meanings]
            answer = _means({"dialect_dialect": cosines}, meanings, settings)
            found.append((answer["dialect_dialect"], answer["n"], answer["n_missing"]))
            group = Group(variety=one, other=other, label=label)
            scores.append(Score.of(SHIFT_DIRECTION["dialect_dialect"], answer, subset, group, signature, level=settings.confidence_level))
        known = [value for value, _, _ in found if value is not None]
        if len(found) > 1 and known:
            counts = sum(n for _, n, _ in found), sum(missing for _, _, missing in found)
            spec, mean = SHIFT_DIRECTION["dialect_dialect_macro"], float(np.mean(known))
            scores.append(Score(spec, subset, Group(label=label), mean, *counts, None, signature))
    return scores


def _direction(pairs: Sequence[Pair], vectors: Sequence[Vector], settings: ScoreSettings) -> Answer:
    """The sums of each pair: cosines to typos, cosines among typos, lengths; each with how many there are."""
    rows = []
    for pair in pairs:
        dialect = _shift(vectors[pair.reference], vectors[pair.other])
        noisy = [_shift(vectors[pair.reference], vectors[place]) for place in pair.typos.values()]
        across = [_cosine(dialect, each) for each in noisy]
        among = [_cosine(one, other) for one, other in combinations(noisy, 2)]
        lengths = [None if each is None else math.sqrt(_product(each, each)) for each in noisy]
        own = [None if dialect is None else math.sqrt(_product(dialect, dialect))]
        there = [[value for value in cells if value is not None] for cells in (across, among, own, lengths)]
        # Without both cosines a pair would weigh on one side of the difference only.
        rows.append([total for cells in there for total in (sum(cells), float(len(cells)))] if there[0] and there[1] else None)
    kept = [(row, pair) for row, pair in zip(rows, pairs, strict=True) if row is not None]
    counts = {"n": len(kept), "n_missing": len(pairs) - len(kept)}
    if not kept:
        return {**dict.fromkeys(DIRECTION_KEYS), **counts}

    def statistics(sums: FloatArray) -> FloatArray:
        across, among, own, lengths = (ratio(sums[..., at], sums[..., at + 1]) for at in (0, 2, 4, 6))
        return np.stack([across, among, among - across, own, lengths], axis=-1)

    resampling = Resampling(settings.confidence_level, settings.n_resamples, settings.seed)
    parts = np.array([row for row, _ in kept])
    values, ci = estimate(parts, [pair.pair_id for _, pair in kept], statistics, DIRECTION_KEYS, resampling, _DIRECTIONS)
    return {**values, **counts, **ci}


def _means(columns: dict[str, Sequence[float | None]], pairs: Sequence[Pair], settings: ScoreSettings) -> Answer:
    ((name, cells),) = columns.items()
    kept = [(cell, pair.pair_id) for cell, pair in zip(cells, pairs, strict=True) if cell is not None]
    parts = np.array([[1.0, cell] for cell, _ in kept]).reshape(-1, 2)
    resampling = Resampling(settings.confidence_level, settings.n_resamples, settings.seed)
    of = [pair for _, pair in kept]
    values, ci = estimate(parts, of, lambda sums: ratio(sums[..., 1:], sums[..., :1]), [name], resampling, {name: Mean(1, 0, None, None)})
    return {**values, "n": len(kept), "n_missing": len(pairs) - len(kept), **ci}


def _by_variety(pairs: Sequence[Pair]) -> Iterator[tuple[str, list[Pair]]]:
    for code in dict.fromkeys(pair.variety for pair in pairs):
        yield code, [pair for pair in pairs if pair.variety == code]


def _product(one: FloatArray, other: FloatArray) -> float:
    """The inner product, the same to the last digit on every processor, as a BLAS' is not."""
    return float((one * other).sum())


def _dot(one: Vector, other: Vector) -> float | None:
    return None if one is None or other is None else float(np.clip(_product(one, other), -1, 1))


def _shift(reference: Vector, other: Vector) -> Vector:
    return None if reference is None or other is None else other - reference


def _cosine(one: Vector, other: Vector) -> float | None:
    if one is None or other is None:
        return None
    length = math.sqrt(_product(one, one)) * math.sqrt(_product(other, other))
    # Shifts of embeddings in 32 bits: below this, a shift is rounding and has no direction.
    return float(np.clip(_product(one, other) / length, -1, 1)) if length > 1e-10 else None


def _interval(drawn: FloatArray, settings: ScoreSettings) -> Interval | None:
    defined = drawn[~np.isnan(drawn)]
    # As for every interval of ours: none where more than one resample in twenty has no value.
    if not len(defined) or len(defined) < 0.95 * len(drawn):
        return None
    tail = (1 - settings.confidence_level) / 2
    low, high = np.quantile(defined, [tail, 1 - tail])
    return Interval(float(low), float(high), settings.confidence_level)
