"""Every metric that scores rows or pairs, as it is declared beside its core, and what audits and calibrations score."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from t2i_parity.generate.specs.audit import SPECS as AUDITED
from t2i_parity.generate.specs.calibrated import SPECS as CALIBRATED
from t2i_parity.metrics.scores import MetricSpec
from t2i_parity.metrics.specs import OWN


@cache
def specs() -> Mapping[str, MetricSpec]:
    """Every metric by name."""
    return {spec.name: spec for spec in (*OWN, *CALIBRATED, *AUDITED)}
