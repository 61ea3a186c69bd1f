"""The cross-lingual gap, declared: how unequal any row score is over languages. Its scores are made from other metrics' rows."""

from __future__ import annotations

from t2i_parity.metrics.cross_lingual_gap import core
from t2i_parity.metrics.scores import MetricSpec, ScoreSpec

SPEC = MetricSpec(
    name=core.NAME,
    title="Spread over languages",
    about="The mean of the languages' means, each counting alike, and their standard deviation (the population's).",
    scores=(
        ScoreSpec(core.NAME, "mean", "Mean of languages", "Every language counts alike, however many rows it has."),
        ScoreSpec(
            core.NAME, "std", "Std over languages", "The standard deviation of the languages' means.", direction="lower", kind="spread"
        ),
        ScoreSpec(core.NAME, "worst", "Worst served", "The mean of the language with the lowest one.", kind="extreme"),
        ScoreSpec(core.NAME, "best", "Best served", "The mean of the language with the highest one.", kind="extreme"),
    ),
    instrument="of",
    place="gap",
    order=70,
)
