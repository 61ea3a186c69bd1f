"""What a calibration measures of a judge, and what it adds to a run's scores, declared."""

from __future__ import annotations

from t2i_parity.metrics.scores import MetricSpec, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT

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
CORRECTED = MetricSpec(
    "corrected",
    "Corrected for the reader",
    "What the images hold, were the reader faultless: the score turned round by what the reader makes of texts of known damage, with the "
    "calibration's error in the interval.",
    (
        *(ScoreSpec("corrected", key, f"Corrected: {TEXT[key].title.lower()}") for key in KEYS),
        *(
            ScoreSpec("corrected", f"{key}_spread", f"Spread, corrected: {TEXT[key].title.lower()}", direction="lower", kind="spread")
            for key in KEYS
        ),
        *(
            ScoreSpec("corrected", f"{key}_p_alike", f"p, all alike, corrected: {TEXT[key].title.lower()}", "", "p", "none", "p_value")
            for key in KEYS
        ),
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
        ScoreSpec("calibration", "slope", "Slope", direction="none"),
        ScoreSpec("calibration", "gap_mean", "Mean of languages"),
        ScoreSpec("calibration", "gap_std", "Std over languages", direction="lower", kind="spread"),
        ScoreSpec("calibration", "gap_worst", "Worst read", kind="extreme"),
        ScoreSpec("calibration", "gap_best", "Best read", kind="extreme"),
    ),
    place="none",
)
SPECS = (CEILING, SHARE, CORRECTED, CALIBRATION)
