"""A metric with its spec: how bright images are, from what the judge of this package saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from t2i_parity.generate.specs import METRICS
from t2i_parity.metrics._common import Answer, FloatArray, Resampling, Signature, by_group, estimate, ratio
from t2i_parity.metrics.scores import MetricSpec, Observed, RowScore, ScoreSpec, Settings


def _compute(part: Observed, *, groups: Sequence[str], settings: Settings) -> Answer:
    """The mean of the rows that have a brightness, of all and of each group."""
    seen, pairs = part.columns["brightness"], part.pairs
    resampling = Resampling(**settings.resampling)

    def describe(rows: Sequence[int]) -> dict[str, object]:
        kept = [row for row in rows if seen[row] is not None]
        parts = np.array([[seen[row], 1.0] for row in kept]).reshape(-1, 2)
        values, ci = estimate(parts, [pairs[row] for row in kept], lambda sums: ratio(sums[..., :1], sums[..., 1:]), ["mean"], resampling)
        return {**values, **ci, "n": len(kept), "n_missing": len(rows) - len(kept)}

    return {**by_group(describe, len(seen), groups), "signature": str(Signature("mean_brightness", {}, "1.0"))}


def _per_row(part: Observed, settings: Settings) -> Mapping[str, FloatArray]:
    return {"light": np.array([np.nan if cell is None else cell for cell in part.columns["brightness"]], np.float64)}


SPEC = METRICS.entry("mean_brightness", "how bright images are")(
    MetricSpec(
        name="mean_brightness",
        title="Brightness",
        about="The mean brightness of images: 0 is black, 1 is white.",
        scores=(
            ScoreSpec(
                "mean_brightness", "mean", "Mean brightness", "From black to white.", row=RowScore("light"), board="Images: brightness"
            ),
        ),
        columns=("brightness",),
        compute=_compute,
        per_row=_per_row,
        unequal="light",
    )
)
