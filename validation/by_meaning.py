"""A run's scores by meaning, kept small in its record: with those of two models that answered the same prompts, places are paired."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from t2i_parity.generate.compare import row_number, signatures_by_judge
from t2i_parity.generate.score import Scored
from t2i_parity.validation.results import Meanings

DIGITS = 4
"""To so many digits a mean is kept."""


def by_meaning(scored: Scored, judges: Mapping[str, str]) -> dict[str, tuple[Meanings, ...]]:
    """Of each subset, every score that has a table on the board: the mean of each meaning over its rows.

    Meanings are in the order of their ids; ``judges`` has the signature of each judge. Rows without a score are in no mean; a meaning
    without any is None.
    """
    rows = scored.table.drop_columns(["image"]).to_pylist() if "image" in scored.table.column_names else scored.table.to_pylist()
    found: dict[str, tuple[Meanings, ...]] = {}
    for (spec, judge, subset), signature in signatures_by_judge(judges, scored.scores).items():
        if spec.row is None or not spec.board:
            continue
        values: dict[str, list[float]] = {}
        for row in rows:
            if row["subset"] == subset:
                values.setdefault(str(row["pair_id"]), []).append(row_number(row, judge, spec.row, signature))
        kept = [[value for value in values[pair] if np.isfinite(value)] for pair in sorted(values)]
        means = tuple(round(float(np.mean(each)), DIGITS) if each else None for each in kept)
        found[subset] = (*found.get(subset, ()), Meanings(metric=spec.metric, key=spec.key, signature=signature, means=means))
    return found


def differences_by_meaning(claimed: tuple[Meanings, ...], found: tuple[Meanings, ...]) -> list[str]:
    """Where a record's means differ from those computed anew by more than rounding; what a record does not claim is no fault."""
    here = {(each.metric, each.key, each.signature): each.means for each in found}
    faults = []
    for each in claimed:
        means = here.get((each.metric, each.key, each.signature))
        name = f"{each.metric}.{each.key} by meaning"
        if means is None or len(means) != len(each.means):
            faults.append(f"{name}: {len(each.means)} meanings are claimed, and the run has {0 if means is None else len(means)}")
            continue
        for place, (mine, its) in enumerate(zip(each.means, means, strict=True)):
            if (mine is None) != (its is None) or abs((mine or 0.0) - (its or 0.0)) > 10.0**-DIGITS:
                faults.append(f"{name}: meaning {place}: {mine} is claimed, and the observations give {its}")
                break
    return faults
