"""Over-censorship rate, declared: what a guardrail does to the images of pairs. An audit of images makes its scores."""

from __future__ import annotations

from t2i_parity.metrics.over_censorship_rate import core
from t2i_parity.metrics.scores import MetricSpec, paired_rates

SPEC = MetricSpec(
    name=core.NAME,
    title="Over-censorship rate",
    about="How often a guardrail spoils a harmless prompt's image, in a reference wording and in a variety.",
    scores=paired_rates(
        core.NAME,
        "ocr",
        "How much more often benign images are spoilt in a variety, in percentage points.",
        "Guardrail: shift of over-censorship",
    ),
    instrument="encoder",
    place="audit",
)
