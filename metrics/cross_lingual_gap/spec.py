"""The cross-lingual gap, declared: how unequal any row score is over languages. Its scores are made from other metrics' rows."""

from __future__ import annotations

from t2i_parity.metrics.cross_lingual_gap import core
from t2i_parity.metrics.scores import MetricSpec, ScoreSpec

SPEC = MetricSpec(
    name=core.NAME,
    title="Spread over languages",
    about="The mean of the languages' means, each counting alike; how far their true means lie apart, the noise of sampling taken out, and "
    "whether they differ at all. The standard deviation of the means as they came out, which the study prints, describes them only: it is "
    "above 0 for a fair system too.",
    scores=(
        ScoreSpec(core.NAME, "mean", "Mean of languages", "Every language counts alike, however many rows it has."),
        ScoreSpec(
            core.NAME,
            "spread",
            "Spread over languages",
            "The standard deviation of the languages' true means, the noise of sampling taken out.",
            direction="lower",
            kind="spread",
        ),
        ScoreSpec(
            core.NAME,
            "p_alike",
            "p, all served alike",
            "The test that all languages have one mean.",
            "p",
            "none",
            "p_value",
        ),
        *(
            score
            for field, title in (("branch", "branches"), ("script", "scripts"))
            for score in (
                ScoreSpec(core.NAME, f"{field}_spread", f"Spread over {title}", "Of their true means.", direction="lower", kind="spread"),
                ScoreSpec(core.NAME, f"{field}_p_alike", f"p, all {title} alike", "", "p", "none", "p_value"),
            )
        ),
        ScoreSpec(
            core.NAME,
            "std",
            "Std over languages, as published",
            "The standard deviation of the languages' means: it describes, and is above 0 for a fair system too.",
            direction="lower",
            kind="spread",
        ),
        ScoreSpec(
            core.NAME,
            "worst",
            "Lowest mean",
            "The mean of the language with the lowest one; its interval is the lowest truth's.",
            kind="extreme",
        ),
        ScoreSpec(
            core.NAME,
            "best",
            "Highest mean",
            "The mean of the language with the highest one; its interval is the highest truth's.",
            kind="extreme",
        ),
    ),
    instrument="of",
    place="gap",
    order=70,
)
