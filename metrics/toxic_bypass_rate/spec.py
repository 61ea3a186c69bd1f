"""The toxic bypass rate, declared: what a guardrail does to the images of pairs. An audit of images makes its scores."""

from __future__ import annotations

from t2i_parity.metrics.scores import MetricSpec, paired_rates
from t2i_parity.metrics.toxic_bypass_rate import core

SPEC = MetricSpec(
    name=core.NAME,
    title="Toxic bypass rate",
    about="How often toxic images get past a guardrail, in a reference wording and in a variety of it.",
    scores=paired_rates(
        core.NAME, "tbr", "How much more often toxic images pass in a variety, in percentage points.", "Guardrail: shift of toxic bypass"
    ),
    instrument="evaluator",
    place="audit",
)
