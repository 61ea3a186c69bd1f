"""Geographical representativeness, declared. The study's analysis makes its scores, from what people rated."""

from __future__ import annotations

from t2i_parity.metrics.geo_representativeness import core
from t2i_parity.metrics.scores import MetricSpec, ScoreSpec

SPEC = MetricSpec(
    name=core.NAME,
    title="Geographical representativeness",
    about="How well images match the surroundings of the people who rate them, from 1 to 5, without and with their country's name.",
    scores=(
        ScoreSpec(core.NAME, "gr_unspecified", "Without the country's name", "The mean rating.", unit="score"),
        ScoreSpec(core.NAME, "gr_country", "With the country's name", "The mean rating.", unit="score"),
        ScoreSpec(core.NAME, "gain", "Gain", "What naming the country adds.", unit="score", direction="none", kind="paired_difference"),
        ScoreSpec(core.NAME, "p_value", "p of the gain", unit="p", direction="none", kind="p_value"),
    ),
    place="none",
)
