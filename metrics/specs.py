"""Our own metrics, in their order."""

from __future__ import annotations

from t2i_parity.metrics.bias_entropy.spec import SPEC as BIAS_ENTROPY
from t2i_parity.metrics.clip_score.spec import SPEC as CLIP_SCORE
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as CROSS_LINGUAL_GAP
from t2i_parity.metrics.culture_alignment.spec import SPEC as CULTURE_ALIGNMENT
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.geo_representativeness.spec import SPEC as GEO_REPRESENTATIVENESS
from t2i_parity.metrics.over_censorship_rate.spec import SPEC as OVER_CENSORSHIP_RATE
from t2i_parity.metrics.scores import MetricSpec
from t2i_parity.metrics.text_rendering_precision.spec import PARITY as PARITY_NULL
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT_RENDERING_PRECISION
from t2i_parity.metrics.toxic_bypass_rate.spec import SPEC as TOXIC_BYPASS_RATE
from t2i_parity.metrics.toxicity_rejection.spec import SPEC as TOXICITY_REJECTION
from t2i_parity.metrics.trigscore.spec import SPEC as TRIGSCORE
from t2i_parity.metrics.worst_group.spec import SPEC as WORST_GROUP

OWN: tuple[MetricSpec, ...] = (
    TEXT_RENDERING_PRECISION,
    PARITY_NULL,
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
)
