"""Worst-group accuracy: the accuracy of the group that is served worst, beside the average that hides it.

Source: "Distributionally Robust Neural Networks for Group Shifts" (arXiv 1911.08731).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .common import (
    CLUSTERS,
    Answer,
    Column,
    FloatArray,
    IntArray,
    Resampling,
    Signature,
    check_columns,
    estimate,
    ratio,
    wilson_interval,
)

NAME = "worst_group"
VERSION = "1.0"
COLUMNS = (Column("correct", "bool", missing=True), Column("groups", "str"), CLUSTERS)
KEYS = ("accuracy", "worst_group_accuracy", "std")


def compute(
    correct: Sequence[bool | None],
    groups: Sequence[str],
    *,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Worst-group accuracy, in [0, 1], with the average over rows and the spread over groups.

    Args:
        correct: was each row right? None where there is no verdict (counted in ``n_missing``, never scored).
        groups: the group of each row; required here.
        clusters: one name a row; rows of one name are resampled together (default: each row alone).

    Returns a dict with ``accuracy`` (over rows), ``worst_group_accuracy``, ``std`` (population, over groups),
    ``worst_group`` (the first by name in a tie), ``by_group`` (of each ``accuracy``, ``wilson``, ``n``, ``n_missing``
    and ``ci``), ``n_groups``, ``n``, ``n_missing``, ``ci`` (unless ``n_resamples`` is 0) and ``signature``. ``wilson``
    is Wilson's interval, which keeps its width where all rows of a small group agree; it takes rows as independent, and
    is None where clusters are given. A group without any verdict is None in ``by_group`` and left out of the rest;
    ``std`` is None with fewer than two groups.

    Raises ValueError on wrong input, naming column and row.

    >>> answer = compute([True, True, True, False, None], ["en", "en", "hi", "hi", "hi"], n_resamples=0)
    >>> answer["accuracy"], answer["worst_group_accuracy"], answer["worst_group"]
    (0.75, 0.5, 'hi')
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    columns = check_columns(NAME, COLUMNS, {"correct": correct, "groups": groups, "clusters": clusters})
    right = np.array([np.nan if cell is None else cell for cell in columns["correct"]], np.float64)
    group = np.array(columns["groups"], object)
    kept = np.flatnonzero(~np.isnan(right))

    def of(rows: IntArray) -> list[str] | None:
        return None if clusters is None else [columns["clusters"][row] for row in rows]

    def describe(name: str) -> Answer:
        rows = kept[group[kept] == name]
        n = len(rows)
        parts = np.column_stack([right[rows], np.ones(n)])
        values, ci = estimate(parts, of(rows), lambda sums: ratio(sums[..., :1], sums[..., 1:]), KEYS[:1], resampling)
        wilson = wilson_interval(int(right[rows].sum()), n, float(confidence_level)) if n and clusters is None else None
        return {**values, "wilson": wilson, "n": n, "n_missing": int(np.sum(group == name)) - n, **ci}

    by_group = {name: describe(name) for name in sorted(set(columns["groups"]))}
    scored = {name: part["accuracy"] for name, part in by_group.items() if part["n"]}
    if scored:
        here = group[kept][:, None] == np.array(list(scored), object)[None, :]
        parts = np.hstack([here * right[kept][:, None], here.astype(np.float64)])
        values, ci = estimate(parts, of(kept), _statistics, KEYS, resampling)
    else:
        values = dict.fromkeys(KEYS)
        ci = {"ci": {key: [None, None] for key in KEYS}} if n_resamples else {}
    return {
        **values,
        "worst_group": min(scored, key=scored.__getitem__, default=None),
        "by_group": by_group,
        "n_groups": len(scored),
        "n": len(kept),
        "n_missing": len(right) - len(kept),
        **ci,
        "signature": str(Signature(NAME, {"accuracy": "rows", "std": "population"}, VERSION)),
    }


def _statistics(sums: FloatArray) -> FloatArray:
    """The values of KEYS, from the sums of right rows in each group and of rows in each group."""
    right, count = np.split(sums, 2, axis=-1)
    accuracy = ratio(right, count)
    average = ratio(right.sum(axis=-1), count.sum(axis=-1))
    # The spread over a single group is not known, rather than 0.
    std = accuracy.std(axis=-1) if accuracy.shape[-1] > 1 else np.full_like(average, np.nan)
    return np.stack([average, accuracy.min(axis=-1), std], axis=-1)
