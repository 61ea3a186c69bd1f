"""Every metric that scores rows or pairs, as it is declared beside its core, and what audits and calibrations score."""

from __future__ import annotations

from collections.abc import Mapping

from t2i_parity.dataset_builder.registry import Entry, Registry
from t2i_parity.generate.specs.audit import SPECS as AUDITED
from t2i_parity.generate.specs.calibrated import SPECS as CALIBRATED
from t2i_parity.metrics.scores import MetricSpec
from t2i_parity.metrics.specs import OWN

METRICS: Registry[MetricSpec] = Registry("metric", (Entry(spec.name, spec, spec.title) for spec in (*OWN, *CALIBRATED, *AUDITED)))
"""Every metric. A new one is one entry, or ``METRICS.entry(name, about)(spec)`` in a package of somebody else's."""


def specs() -> Mapping[str, MetricSpec]:
    """Every metric by name."""
    return dict(METRICS)
