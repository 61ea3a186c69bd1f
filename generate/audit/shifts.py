"""Paired shifts of a continuous score between the reference and a variety, with the paired t-test of the dialect-penalty study (§3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.stats

from t2i_parity.generate.entries import ScoreSettings
from t2i_parity.metrics._common import (
    Answer,
    BoolArray,
    FloatArray,
    IntArray,
    Mean,
    Paired,
    Resampling,
    Signature,
    by_group,
    correct_over_groups,
    estimate,
    ratio,
)

NAME = "score_shift"
VERSION = "1.0"
KEYS = ("delta", "mean_reference", "mean_variety", "p_value", "p_value_holm")


def paired_shift(
    reference: Sequence[float | None],
    variety: Sequence[float | None],
    *,
    groups: Sequence[str],
    clusters: Sequence[str],
    settings: ScoreSettings,
) -> Answer:
    """The mean of variety minus reference, on the scores' own scale, with its interval and p-value, in each group.

    One row a pair; a pair counts when both scores are there, the others are ``n_missing``. The test is Student's paired t over clusters
    (rows of one cluster are averaged first), two-sided; it is None where fewer than two clusters are left or their shifts do not differ
    among themselves, and 1 where no score moved at all. ``p_value_holm`` is corrected over the groups.

    >>> how = ScoreSettings(n_resamples=0)
    >>> answer = paired_shift([0.1, 0.2, None], [0.3, 0.5, 0.9], groups=["A"] * 3, clusters=["p", "q", "r"], settings=how)
    >>> found = answer["by_group"]["A"]
    >>> round(found["delta"], 3), round(found["p_value"], 3), found["n"], found["n_missing"]
    (0.25, 0.126, 2, 1)
    """
    values = np.array([[np.nan if cell is None else cell for cell in side] for side in (reference, variety)], np.float64).T
    observed: BoolArray = np.asarray(np.isfinite(values).all(axis=1))
    resampling = Resampling(settings.confidence_level, settings.n_resamples, settings.seed)

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = [clusters[row] for row in kept]
        parts = np.column_stack([np.ones(len(kept)), values[kept]])
        found, ci = estimate(parts, of_kept, _statistics, list(_KINDS), resampling, _KINDS)
        return {**found, **_t_test(values[kept, 1] - values[kept, 0], of_kept), "n": len(kept), "n_missing": len(rows) - len(kept), **ci}

    answer = correct_over_groups(by_group(describe, len(values), groups), "p_value")
    return {**answer, "signature": str(Signature(NAME, {"test": "paired_t"}, VERSION))}


_KINDS: Mapping[str, Mean | Paired] = {
    "mean_reference": Mean(1, 0, None, None),
    "mean_variety": Mean(2, 0, None, None),
    "delta": Paired(1, 2, 0, bound=None),
}


def _statistics(sums: FloatArray) -> FloatArray:
    means = ratio(sums[..., 1:], sums[..., :1])
    return np.concatenate([means, means[..., 1:] - means[..., :1]], axis=-1)


def _t_test(differences: FloatArray, clusters: Sequence[str]) -> dict[str, float | None]:
    of_cluster: dict[str, list[float]] = {}
    for difference, cluster in zip(differences.tolist(), clusters, strict=True):
        of_cluster.setdefault(cluster, []).append(difference)
    means = np.array([np.mean(each) for each in of_cluster.values()])
    if len(means) < 2:
        return {"p_value": None}
    if not means.any():
        return {"p_value": 1.0}
    # Differences of decimal numbers that are meant to be alike differ in their last digits.
    if np.ptp(means) <= 1e-12 * np.abs(means).max():
        return {"p_value": None}
    return {"p_value": float(scipy.stats.ttest_1samp(means, 0.0).pvalue)}
