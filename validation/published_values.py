"""Published numbers that others can be recomputed from, each with its source: facts of the studies, written down once.

Numbers only, as printed. Where recomputing is known to give another one than is printed, the number that it gives stands
beside the printed one (``known``), with what is known about the difference (``note``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from t2i_parity.dataset_builder.geo_published import OVERALL, published

GEO = "Basu et al. 2023, arXiv:2305.11080"
DIALECT = "Kim et al. 2026, arXiv:2608.29589"


@dataclass(frozen=True, slots=True)
class Stated:
    """One printed number, where it stands, and the unit of its last printed place (0 for a count).

    ``known`` is what recomputing gives where that is known to be another number.
    """

    value: float
    paper: str
    place: str
    unit: float = 0.01
    known: float | None = None
    note: str = ""


# Geography: Inspecting the Geographical Representativeness of Images from Text-to-Image Models -----------------------


@dataclass(frozen=True, slots=True)
class Representativeness:
    """A country's row of Table 1: mean ratings with and without its name in the prompt, over both models and for each."""

    country: str
    overall_country: float
    overall_unspecified: float
    dalle2_country: float
    dalle2_unspecified: float
    sd_country: float
    sd_unspecified: float


@dataclass(frozen=True, slots=True)
class Realism:
    """A country's row of Table 2: mean ratings of realism, and of how much realism swayed the other ratings."""

    country: str
    dalle2_country: float
    dalle2_unspecified: float
    sd_country: float
    sd_unspecified: float
    self_assessed: float


_COLUMNS = {"overall": OVERALL, "dalle2": "DALL·E 2", "sd": "Stable Diffusion"}
_CELLS = {(each.table, each.country, each.model, each.condition): each.value for each in published()}


def _cells(table: int, country: str, *models: str) -> list[float]:
    return [_CELLS[table, country, _COLUMNS[model], condition] for model in models for condition in ("country", "unspecified")]


GEO_TABLE_1: tuple[Representativeness, ...] = tuple(
    Representativeness(country, *_cells(1, country, "overall", "dalle2", "sd"))
    for country in dict.fromkeys(each.country for each in published() if each.table == 1)
    if country is not None
)
GEO_TABLE_2: tuple[Realism, ...] = tuple(
    Realism(country, *(*_cells(2, country, "dalle2", "sd"), _CELLS[2, country, None, None]))
    for country in dict.fromkeys(each.country for each in published() if each.table == 2)
    if country is not None
)

GEO_TABLE_1_MEANS: Mapping[str, Stated] = {
    "overall_country": Stated(3.49, GEO, "Table 1, Average"),
    "overall_unspecified": Stated(2.39, GEO, "Table 1, Average"),
    "dalle2_country": Stated(3.78, GEO, "Table 1, Average"),
    "dalle2_unspecified": Stated(2.34, GEO, "Table 1, Average"),
    "sd_country": Stated(3.19, GEO, "Table 1, Average"),
    "sd_unspecified": Stated(2.44, GEO, "Table 1, Average", note="the printed rows average 2.434"),
}

_NOT_FROM_ROWS = "the printed rows do not average to the printed mean, however they are rounded"
GEO_TABLE_2_MEANS: Mapping[str, Stated] = {
    "dalle2_country": Stated(4.14, GEO, "Table 2, Average"),
    "dalle2_unspecified": Stated(3.73, GEO, "Table 2, Average", known=3.764, note=_NOT_FROM_ROWS),
    "sd_country": Stated(3.38, GEO, "Table 2, Average"),
    "sd_unspecified": Stated(3.09, GEO, "Table 2, Average"),
    "self_assessed": Stated(3.50, GEO, "Table 2, Average", known=3.480, note=_NOT_FROM_ROWS),
}

GEO_GAINS: Mapping[str, Stated] = {
    "dalle2": Stated(1.44, GEO, "§3.3"),
    "sd": Stated(0.75, GEO, "§3.3", note="the rows give 0.758; 0.75 is the difference of the printed means, 3.19 − 2.44"),
}
GEO_BELOW_3 = Stated(25, GEO, "§3.2", unit=0)
GEO_BETWEEN_3_AND_35 = Stated(14, GEO, "§3.3", unit=0)
GEO_GAINING = Stated(
    27,
    GEO,
    "§3.3",
    unit=0,
    note="Table 1's heading sets the symbol p over the columns with a country and p_c over those without; its words are right",
)
GEO_INDIA = Stated(3.23, GEO, "§1 and §3.2", note="Table 1 prints 3.24; its two models average 3.235, which rounds to either")
GEO_BY_COUNTRY_MODEL_GAP = Stated(0.6, GEO, "§3.5", unit=0.1)
GEO_SIGNIFICANT = Stated(0.05, GEO, "§3.3", unit=0)
GEO_MODELS_SIGNIFICANT = Stated(0.05, GEO, "§3.5", unit=0)
GEO_MODELS_NOT_SIGNIFICANT = Stated(
    0.05,
    GEO,
    "§3.5",
    unit=0,
    known=0.047,
    note="no significant difference is stated; over the 27 printed rows the paired t-test gives p = 0.047",
)
GEO_REALISM_SIGNIFICANT = Stated(0.05, GEO, "§3.4", unit=0)
GEO_POPULATION = Stated(0.64, GEO, "§3.2")
GEO_GDP = Stated(
    -0.03,
    GEO,
    "§3.2",
    known=-0.157,
    note="the study names neither year nor source of its figures; those of validation/geography/figures.py give r = −0.16, p = 0.43",
)
GEO_NOT_SIGNIFICANT = Stated(0.05, GEO, "§3.2", unit=0)
GEO_CORRELATIONS: Mapping[str, Stated] = {
    "dalle2_country": Stated(0.57, GEO, "§3.4"),
    "dalle2_unspecified": Stated(0.21, GEO, "§3.4"),
    "sd_country": Stated(0.47, GEO, "§3.4"),
    "sd_unspecified": Stated(0.62, GEO, "§3.4", known=0.608, note="the printed rows correlate at 0.608"),
}


# Dialect penalty: Not Safe for All ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Printed:
    """A cell of Table 1: a shift, and its mark († for p < 0.05, ‡ for p < 0.001).

    ``known_mark`` is what the unrounded p-value asks for where that is known to be another mark.
    """

    value: float
    mark: str = ""
    known_mark: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Shifts:
    """What Table 1 prints for a filter and a variety: percentage points against SAE, then the filter's own score."""

    filter: str
    variety: str
    tpr: Printed
    fpr: Printed
    score_toxic: Printed | None = None
    score_benign: Printed | None = None


@dataclass(frozen=True, slots=True)
class TypoShifts:
    """A row of Table 3: the shift that typos of the same size make, and the bias gap, in percentage points."""

    filter: str
    variety: str
    typo_tpr: float
    gap_tpr: float
    typo_fpr: float
    gap_fpr: float


@dataclass(frozen=True, slots=True)
class AcrossLanguages:
    """A row of Table 5: the filter's rate for the standard and for the regional variety, in per cent."""

    variety: str
    label: str
    standard: float
    regional: float
    shift: float


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean ± population standard deviation over the seeds."""

    mean: float
    std: float


@dataclass(frozen=True, slots=True)
class Mitigation:
    """A row of Table 8: accuracies in per cent, gaps in percentage points; ``sae_ratio`` is None for balanced data."""

    sae_ratio: float | None
    algorithm: str
    accuracy: Spread
    worst_group: Spread
    tpr_gap: Spread
    fpr_gap: Spread


DIALECT_PAIRS: Mapping[str, int] = {"tpr": 2216, "fpr": 2400}
"""Toxic and benign pairs a variety (§3.1)."""

DIALECT_TABLE_1_SAE: Mapping[str, Mapping[str, Stated]] = {
    "NSFW-T": {"tpr": Stated(71.62, DIALECT, "Table 1, SAE"), "fpr": Stated(15.58, DIALECT, "Table 1, SAE")},
    "LatentGuard": {"tpr": Stated(37.27, DIALECT, "Table 1, SAE"), "fpr": Stated(3.79, DIALECT, "Table 1, SAE")},
    "OMod": {"tpr": Stated(30.01, DIALECT, "Table 1, SAE"), "fpr": Stated(0.21, DIALECT, "Table 1, SAE")},
}

DIALECT_TABLE_1: tuple[Shifts, ...] = (
    Shifts("NSFW-T", "AAVE", Printed(16.47, "‡"), Printed(16.79, "‡"), Printed(0.13, "‡"), Printed(0.14, "‡")),
    Shifts("NSFW-T", "ChcE", Printed(4.51, "‡"), Printed(28.17, "‡"), Printed(0.05, "‡"), Printed(0.23, "‡")),
    Shifts("NSFW-T", "CollSgE", Printed(2.44, "‡"), Printed(5.71, "‡"), Printed(0.02, "‡"), Printed(0.05, "‡")),
    Shifts("NSFW-T", "IndE", Printed(-2.21, "‡"), Printed(0.12), Printed(-0.02, "‡"), Printed(0.01)),
    Shifts("NSFW-T", "JamE", Printed(1.62, "†"), Printed(-7.54, "‡"), Printed(0.01, "†"), Printed(-0.07, "‡")),
    Shifts("LatentGuard", "AAVE", Printed(15.12, "‡"), Printed(4.29, "‡"), Printed(1.11, "‡"), Printed(1.48, "‡")),
    Shifts("LatentGuard", "ChcE", Printed(7.9, "‡"), Printed(-0.96), Printed(0.63, "‡"), Printed(0.77, "‡")),
    Shifts("LatentGuard", "CollSgE", Printed(4.65, "‡"), Printed(4.83, "‡"), Printed(0.33, "‡"), Printed(0.78, "‡")),
    Shifts("LatentGuard", "IndE", Printed(-2.71, "‡"), Printed(-2.5, "‡"), Printed(-0.12, "‡"), Printed(-0.43, "‡")),
    Shifts("LatentGuard", "JamE", Printed(4.42, "‡"), Printed(2.67, "‡"), Printed(0.42, "‡"), Printed(1.27, "‡")),
    Shifts("OMod", "AAVE", Printed(-3.11, "‡"), Printed(-0.12)),
    Shifts("OMod", "ChcE", Printed(-1.85, "‡"), Printed(0.0)),
    Shifts("OMod", "CollSgE", Printed(-1.49, "‡", known_mark="†", note="the unrounded p is 0.00626"), Printed(0.04)),
    Shifts("OMod", "IndE", Printed(-0.23), Printed(-0.04)),
    Shifts("OMod", "JamE", Printed(-4.6, "‡"), Printed(-0.04)),
)

DIALECT_FPR: Mapping[str, Stated] = {"ChcE": Stated(43.75, DIALECT, "§4.1.1"), "AAVE": Stated(32.37, DIALECT, "§4.1.1")}
"""NSFW-T's false positive rate in the text."""

DIALECT_TABLE_3: tuple[TypoShifts, ...] = (
    TypoShifts("NSFW-T", "AAVE", -3.77, 20.24, 0.03, 16.76),
    TypoShifts("NSFW-T", "ChcE", -3.33, 7.84, -0.12, 28.29),
    TypoShifts("NSFW-T", "CollSgE", -3.15, 5.59, 0.41, 5.3),
    TypoShifts("NSFW-T", "IndE", -0.65, -1.56, 0.13, 0.0),
    TypoShifts("NSFW-T", "JamE", -6.61, 8.23, -0.14, -7.4),
    TypoShifts("LatentGuard", "AAVE", -3.64, 18.75, 3.09, 1.2),
    TypoShifts("LatentGuard", "ChcE", -2.57, 10.47, 3.51, -4.47),
    TypoShifts("LatentGuard", "CollSgE", -2.58, 7.23, 3.44, 1.39),
    TypoShifts("LatentGuard", "IndE", -1.8, -0.91, 2.47, -4.97),
    TypoShifts("LatentGuard", "JamE", -1.44, 5.87, 5.15, -2.48),
    TypoShifts("OMod", "AAVE", -1.16, -1.96, 0.11, -0.23),
    TypoShifts("OMod", "ChcE", -0.32, -1.53, 0.19, -0.19),
    TypoShifts("OMod", "CollSgE", -0.4, -1.09, 0.11, -0.07),
    TypoShifts("OMod", "IndE", -0.3, 0.07, 0.03, -0.07),
    TypoShifts("OMod", "JamE", -2.79, -1.81, 0.23, -0.28),
)

DIALECT_TABLE_5: tuple[AcrossLanguages, ...] = (
    AcrossLanguages("Bavarian", "benign", 0.42, 0.25, -0.17),
    AcrossLanguages("Bavarian", "toxic", 31.86, 24.14, -7.72),
    AcrossLanguages("Egyptian Arabic", "benign", 0.21, 0.25, 0.04),
    AcrossLanguages("Egyptian Arabic", "toxic", 27.71, 25.23, -2.48),
)

DIALECT_SEEDS = 10
DIALECT_TABLE_8: tuple[Mitigation, ...] = (
    Mitigation(97.5, "ERM", Spread(99.91, 0.14), Spread(99.12, 1.48), Spread(0.01, 0.03), Spread(0.19, 0.33)),
    Mitigation(97.5, "ERM, balanced sampling", Spread(99.99, 0.01), Spread(99.91, 0.17), Spread(0.01, 0.03), Spread(0.01, 0.02)),
    Mitigation(97.5, "GroupDRO", Spread(100.00, 0.01), Spread(99.95, 0.14), Spread(0.01, 0.03), Spread(0.00, 0.00)),
    Mitigation(98.0, "ERM", Spread(99.97, 0.04), Spread(99.63, 0.51), Spread(0.00, 0.00), Spread(0.07, 0.10)),
    Mitigation(98.0, "ERM, balanced sampling", Spread(100.00, 0.00), Spread(100.00, 0.00), Spread(0.00, 0.00), Spread(0.00, 0.00)),
    Mitigation(98.0, "GroupDRO", Spread(99.99, 0.01), Spread(99.91, 0.17), Spread(0.01, 0.03), Spread(0.01, 0.02)),
    Mitigation(98.5, "ERM", Spread(99.99, 0.04), Spread(99.88, 0.37), Spread(0.00, 0.00), Spread(0.03, 0.10)),
    Mitigation(98.5, "ERM, balanced sampling", Spread(99.99, 0.03), Spread(99.88, 0.27), Spread(0.00, 0.00), Spread(0.03, 0.08)),
    Mitigation(98.5, "GroupDRO", Spread(99.99, 0.03), Spread(99.92, 0.25), Spread(0.00, 0.00), Spread(0.03, 0.07)),
    Mitigation(99.0, "ERM", Spread(99.95, 0.11), Spread(99.54, 0.99), Spread(0.00, 0.00), Spread(0.12, 0.25)),
    Mitigation(99.0, "ERM, balanced sampling", Spread(99.92, 0.08), Spread(99.65, 0.37), Spread(0.07, 0.11), Spread(0.06, 0.15)),
    Mitigation(99.0, "GroupDRO", Spread(99.99, 0.01), Spread(99.92, 0.17), Spread(0.00, 0.00), Spread(0.02, 0.03)),
    Mitigation(99.5, "ERM", Spread(97.72, 2.94), Spread(84.58, 19.71), Spread(0.02, 0.05), Spread(5.24, 6.80)),
    Mitigation(99.5, "ERM, balanced sampling", Spread(98.70, 2.41), Spread(90.79, 16.61), Spread(0.00, 0.00), Spread(3.00, 5.56)),
    Mitigation(99.5, "GroupDRO", Spread(98.73, 2.56), Spread(91.50, 17.23), Spread(0.00, 0.00), Spread(2.93, 5.92)),
    Mitigation(100.0, "ERM", Spread(95.04, 3.18), Spread(68.17, 17.30), Spread(0.00, 0.00), Spread(11.47, 7.35)),
    Mitigation(None, "ERM", Spread(100.00, 0.01), Spread(99.95, 0.14), Spread(0.01, 0.03), Spread(0.00, 0.00)),
)

DIALECT_LARGEST_TPR_GAP = Stated(0.07, DIALECT, "§4.3.2")
DIALECT_FPR_GAP_BELOW = Stated(0.2, DIALECT, "§4.3.2", unit=0)
DIALECT_FPR_GAP_BELOW_UP_TO = 99.0
"""The largest share of SAE, in per cent, up to which the text states that bound."""


# TRIG ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RelationSettings:
    """Thresholds by which TRIG names the relation of two dimensions; ``source`` is the configuration they stand in."""

    source: str
    synergy: float
    bottleneck: float
    synergy_density: float
    bottleneck_density: float
    dominance_ratio: float
    tradeoff_correlation: float


TRIG_RELATIONS = RelationSettings(
    "github.com/fesvhtr/TRIG at a0811830, config/relation.yaml",
    synergy=0.8,
    bottleneck=0.5,
    synergy_density=0.4,
    bottleneck_density=0.4,
    dominance_ratio=0.8,
    tradeoff_correlation=0.6,
)


# Where the published files come from --------------------------------------------------------------------------------

DIALECTGEN_OUT = "github.com/DialectGen/DialectGen at 93c6bbe5, out"
TRIG_SCORES = "github.com/fesvhtr/TRIG at a0811830, data/result/formatted_flux.json"
TRIG_RESULTS = "github.com/fesvhtr/TRIG at a0811830, data/relation/flux/formatted_flux/spearman_corr"
DIALECT_FILE = "github.com/minguinho26/dialect-penalty-t2i at 410f6b5a, results/text_level_results/aggregate_results.csv"
