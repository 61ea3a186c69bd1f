"""What the totals of each run on a page stand on, and the same numbers over what all of them have: from the runs' scored rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2i_parity.cards.slices import Slice
from t2i_parity.generate.compare import row_number, signatures_by_judge
from t2i_parity.generate.entries import Scores, ScoreSettings
from t2i_parity.generate.run import Run
from t2i_parity.generate.score import gap_over_languages
from t2i_parity.metrics._common import FloatArray, Signature
from t2i_parity.metrics.scores import MetricSpec, Score


@dataclass(frozen=True, slots=True)
class RowScores:
    """One score of each row of a run that one subset and judge have; NaN where a row has none."""

    subset: str
    signature: Signature
    values: FloatArray
    slices: Sequence[Slice]
    pairs: Sequence[str]
    settings: ScoreSettings

    def over(self, slices: Collection[Slice]) -> Scores:
        """The inequality over languages in these slices alone, which the signature names."""
        rows = [row for row, (code, dimension) in enumerate(self.slices) if {(code, dimension), (code, "")} & {*slices}]
        names = sorted("/".join(filter(None, each)) for each in slices)
        return gap_over_languages(
            self.values[rows].tolist(),
            [self.slices[row][0] for row in rows],
            [self.pairs[row] for row in rows],
            self.subset,
            self.signature,
            self.settings,
            # A dimension is somebody's text, and a signature's fields are parted by such signs.
            over=" ".join(names).translate(str.maketrans("|\n\r", "   ")),
        )


def slices_of(run: Run, subset: str, scores: Iterable[Score]) -> dict[Slice, bool]:
    """The slices that a metric's scores of one subset and signature were made from, and whether any of each has a score.

    Scores tell dimensions apart where a run has several; the name of a single one stands in the run's rows.
    """
    by_language: dict[Slice, bool] = {}
    crossed: dict[Slice, bool] = {}
    for score in scores:
        there, group = score.value is not None, score.group
        if group.axes == ("language",):
            place = group["language"], ""
            by_language[place] = by_language.get(place, False) or there
        elif {*group} == {"dimension", "language"}:
            place = group["language"], group["dimension"]
            crossed[place] = crossed.get(place, False) or there
    if crossed or not run.scored().files():
        return crossed or by_language
    rows = run.scored().read(["subset", "dimension"]).to_pylist()
    dimensions = {row["dimension"] or "" for row in rows if row["subset"] == subset}
    only = dimensions.pop() if len(dimensions) == 1 else ""
    return {(code, only): there for (code, _), there in by_language.items()}


def answered(slices: Mapping[Slice, bool]) -> frozenset[Slice]:
    """Those that have a score."""
    return frozenset(each for each, there in slices.items() if there)


def row_scores(run: Run, scores: Sequence[Score], metric: MetricSpec, subset: str, signature: Signature) -> RowScores | None:
    """The row scores whose inequality the metric measures; None where the run's files do not say which rows are behind the signature."""
    spec = next((each for each in metric.scores if each.row is not None and each.row.column == metric.unequal), None)
    signed = signatures_by_judge(run.record.get("judges", {}), scores)
    judge = next((name for (of, name, where), found in signed.items() if (of, where, found) == (spec, subset, signature)), None)
    if spec is None or spec.row is None or judge is None or not run.scored().files():
        return None
    column = f"{judge.replace('-', '_')}_{spec.row.column}"
    table = run.scored().read(["subset", "language", "dimension", "pair_id", column])
    rows = [row for row in table.to_pylist() if row["subset"] == subset]
    settings = run.record.get("scoring", {})
    return RowScores(
        subset,
        signature,
        np.array([row_number(row, judge, spec.row, signature) for row in rows], np.float64),
        [(row["language"], row["dimension"] or "") for row in rows],
        [row["pair_id"] for row in rows],
        # None of these intervals is made from resamples, which are drawn only where any are wanted.
        ScoreSettings(confidence_level=settings.get("confidence_level", 0.95), n_resamples=min(1, settings.get("n_resamples", 1))),
    )
