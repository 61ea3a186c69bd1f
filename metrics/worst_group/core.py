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
    IntArray,
    Mean,
    Resampling,
    Signature,
    check_columns,
    estimate,
    ratio,
)
from .inference import GroupMeans

NAME = "worst_group"
VERSION = "1.0"
COLUMNS = (Column("correct", "bool", missing=True), Column("groups", "str"), CLUSTERS)
KEYS = ("accuracy", "worst_group_accuracy", "std", "spread")


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
        clusters: one name a row; rows of one name count as one draw (default: each row alone).

    Returns a dict with ``accuracy`` (over rows), ``worst_group_accuracy``, ``std`` (population, over groups: it describes, and is above
    0 for groups that are served alike, too), ``spread`` (that of the groups' true accuracies, noise taken out; both have its interval),
    ``p_alike`` (the test that all are one), ``worst_group`` (the first by name in a tie), ``by_group`` (of each ``accuracy``, ``n``,
    ``n_missing``, ``ci``, ``ci_method``), ``n_groups``, ``n``, ``n_missing``, ``ci`` and ``ci_method`` (unless ``n_resamples`` is 0)
    and ``signature``. The interval of ``worst_group_accuracy`` is that of the lowest true accuracy, whichever group has it. A group
    without any verdict is None in ``by_group`` and left out of the rest; ``std`` is None with fewer than two groups.

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
        values, ci = estimate(
            parts, of(rows), lambda sums: ratio(sums[..., :1], sums[..., 1:]), KEYS[:1], resampling, {"accuracy": Mean(0, 1)}
        )
        return {**values, "n": n, "n_missing": int(np.sum(group == name)) - n, **ci}

    by_group = {name: describe(name) for name in sorted(set(columns["groups"]))}
    scored = {name: part["accuracy"] for name, part in by_group.items() if part["n"]}
    accuracies = np.array(list(scored.values()), np.float64)
    total, ci = estimate(
        np.column_stack([right[kept], np.ones(len(kept))]),
        of(kept),
        lambda sums: ratio(sums[..., :1], sums[..., 1:]),
        KEYS[:1],
        resampling,
        {"accuracy": Mean(0, 1)},
    )
    found = GroupMeans.of(right[kept], group[kept].tolist(), of(kept)) if scored else None
    values = {
        **total,
        "worst_group_accuracy": float(accuracies.min()) if scored else None,
        # The spread over a single group is not known, rather than 0.
        "std": float(accuracies.std()) if len(scored) > 1 else None,
        "spread": found.spread() if found else None,
        "p_alike": found.alike_p() if found else None,
    }
    if ci:
        level = float(confidence_level)
        inferred = {
            "worst_group_accuracy": (found.extreme_interval(level) if found else None, "corrected for selection"),
            # Of the true standard deviation, both: the published number estimates it with the noise left in.
            **dict.fromkeys(("std", "spread"), (found.spread_interval(level) if found else None, "noncentral chi-square")),
        }
        few = "none: a single group, or one of fewer than five clusters"
        for key, (ends, how) in inferred.items():
            ci["ci"][key] = [None, None] if ends is None else list(ends)
            ci["ci_method"][key] = how if ends is not None else few
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
