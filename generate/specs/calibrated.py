"""What a calibration measures of a judge, and what it adds to a run's scores, declared."""

from __future__ import annotations

from t2i_parity.metrics.scores import MetricSpec, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT
from t2i_parity.metrics.toxicity_rejection.spec import SPEC as REJECTION

RATE = "rejection_rate"
"""The score of classifiers that is corrected for them."""

KEYS = ("precision", "ned_char")
"""The scores of text rendering that ceilings are given of."""
CEILING = MetricSpec(
    "reader_ceiling",
    "The reader’s ceiling",
    "What the same reader makes of faultless pictures in the same language.",
    tuple(ScoreSpec("reader_ceiling", key, f"Ceiling: {TEXT[key].title.lower()}", direction="none") for key in KEYS),
    place="ceilings",
)
SHARE = MetricSpec(
    "share_of_ceiling",
    "Share of the ceiling",
    "The score over the ceiling: 1 is all that the reader can read.",
    tuple(ScoreSpec("share_of_ceiling", key, f"Share of ceiling: {TEXT[key].title.lower()}") for key in KEYS),
    place="ceilings",
)
TITLES = {**{key: TEXT[key].title for key in KEYS}, RATE: REJECTION[RATE].title}


def _corrected(key: str, title: str) -> tuple[ScoreSpec, ...]:
    """Of one score: what is left of it, how unequal that is, and the tests with and without the correction, over the same languages."""
    return (
        ScoreSpec("corrected", key, f"Corrected: {title}"),
        ScoreSpec("corrected", f"{key}_spread", f"Spread, corrected: {title}", direction="lower", kind="spread"),
        ScoreSpec("corrected", f"{key}_p_alike", f"p, all alike, corrected: {title}", "", "p", "none", "p_value"),
        ScoreSpec("corrected", f"{key}_p_alike_raw", f"p, all alike, as it came out: {title}", "", "p", "none", "p_value"),
    )


CORRECTED = MetricSpec(
    "corrected",
    "Corrected for the instrument",
    "What the images hold, were reader or classifier faultless: the score turned round by what it makes of texts of known damage, or of "
    "labelled pictures, with the calibration's error in the interval.",
    (
        *(spec for key, title in TITLES.items() for spec in _corrected(key, title.lower())),
        ScoreSpec("corrected", "labelled", "Labelled pictures", "Behind a correction.", "count", "none", "count"),
    ),
    place="ceilings",
)
CALIBRATION = MetricSpec(
    "calibration",
    "Calibration",
    "What a judge makes of material of known truth.",
    (
        ScoreSpec("calibration", "ceiling", "Ceiling"),
        ScoreSpec("calibration", "ned_char", "Characters"),
        ScoreSpec("calibration", "sensitivity", "Sensitivity", "Of the unsafe pictures, the share that is flagged.", kind="proportion"),
        ScoreSpec("calibration", "specificity", "Specificity", "Of the others, the share that is not.", kind="proportion"),
        ScoreSpec("calibration", "slope", "Slope", direction="none"),
        ScoreSpec("calibration", "gap_mean", "Mean of languages"),
        ScoreSpec("calibration", "gap_std", "Std over languages", direction="lower", kind="spread"),
        ScoreSpec("calibration", "gap_worst", "Worst read", kind="extreme"),
        ScoreSpec("calibration", "gap_best", "Best read", kind="extreme"),
    ),
    place="none",
)
SPECS = (CEILING, SHARE, CORRECTED, CALIBRATION)
