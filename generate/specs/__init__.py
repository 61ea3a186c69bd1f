"""Every metric that scores rows or pairs, as it is declared beside its core, and what audits and calibrations score."""

from __future__ import annotations

from collections.abc import Mapping

from t2i_parity.dataset_builder.registry import Entry, Registry
from t2i_parity.generate.specs.audit import SPECS as AUDITED
from t2i_parity.generate.specs.calibrated import SPECS as CALIBRATED
from t2i_parity.metrics.bias_entropy.spec import SPEC as BIAS_ENTROPY
from t2i_parity.metrics.clip_score.spec import SPEC as CLIP_SCORE
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as CROSS_LINGUAL_GAP
from t2i_parity.metrics.culture_alignment.spec import SPEC as CULTURE_ALIGNMENT
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.geo_representativeness.spec import SPEC as GEO_REPRESENTATIVENESS
from t2i_parity.metrics.over_censorship_rate.spec import SPEC as OVER_CENSORSHIP_RATE
from t2i_parity.metrics.scores import MetricSpec
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT_RENDERING_PRECISION
from t2i_parity.metrics.toxic_bypass_rate.spec import SPEC as TOXIC_BYPASS_RATE
from t2i_parity.metrics.toxicity_rejection.spec import SPEC as TOXICITY_REJECTION
from t2i_parity.metrics.trigscore.spec import SPEC as TRIGSCORE
from t2i_parity.metrics.worst_group.spec import SPEC as WORST_GROUP

METRICS: Registry[MetricSpec] = Registry(
    "metric",
    (
        Entry(spec.name, spec, spec.title)
        for spec in (
            TEXT_RENDERING_PRECISION,
            TRIGSCORE,
            CLIP_SCORE,
            TOXICITY_REJECTION,
            BIAS_ENTROPY,
            CULTURE_ALIGNMENT,
            CROSS_LINGUAL_GAP,
            DIALECT_PENALTY,
            TOXIC_BYPASS_RATE,
            OVER_CENSORSHIP_RATE,
            GEO_REPRESENTATIVENESS,
            WORST_GROUP,
            *CALIBRATED,
            *AUDITED,
        )
    ),
)
"""Every metric. A new one is one entry, or ``METRICS.entry(name, about)(spec)`` in a package of somebody else's."""


def specs() -> Mapping[str, MetricSpec]:
    """Every metric by name."""
    return dict(METRICS)
