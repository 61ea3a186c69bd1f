"""Published values, recomputed from published inputs: does our arithmetic give what the studies print?

What follows from the numbers that the studies print is here and needs no file; what follows from their files is in
:mod:`t2i_parity.validation.published_files`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import scipy.stats
from numpy.typing import NDArray

from t2i_parity.dataset_builder.countries import COUNTRIES
from t2i_parity.validation import published_files
from t2i_parity.validation import published_values as published
from t2i_parity.validation.geography.figures import GDP_YEAR, POPULATION_YEAR, RICH_WEST, figures
from t2i_parity.validation.published_checks import HALF_UNIT, Check, Relation, Report
from t2i_parity.validation.published_checks import stated_check as _stated

FloatArray = NDArray[np.float64]


def validate(reference: Path | None = None) -> Report:
    """Recompute the declared values and, with a reference folder, those published as files.

    Raises InputError, naming the file and the fix, when one is missing or has another layout.
    """
    checks = [*geography(), *dialect_tables()]
    remarks = ["Table 8 of the dialect penalty prints mean ± standard deviation only: checked is what follows from these."]
    if reference is not None:
        checks += published_files.checks(reference)
        remarks.append(
            "The p-values of score shifts in aggregate_results.csv are paired t-tests over prompts whose scores it does not hold: "
            "not recomputed, only held against the printed marks."
        )
    return Report(checks, remarks)


# Geography ----------------------------------------------------------------------------------------------------------


def geography() -> Iterator[Check]:
    """Tables 1 and 2 of the geographical-representativeness study, and what its text says of them."""
    table_1, table_2 = _columns(published.GEO_TABLE_1), _columns(published.GEO_TABLE_2)
    for condition in ("country", "unspecified"):
        for row in published.GEO_TABLE_1:
            overall, *models = (getattr(row, f"{name}_{condition}") for name in ("overall", "dalle2", "sd"))
            stated = published.Stated(overall, published.GEO, f"Table 1, {COUNTRIES[row.country].name}")
            item = f"{row.country}, {_words(condition)}"
            yield _stated("Geography Table 1: models' mean", item, stated, fmean(models), HALF_UNIT)
    for group, columns, means in (
        ("Geography Table 1: averages", table_1, published.GEO_TABLE_1_MEANS),
        ("Geography Table 2: averages", table_2, published.GEO_TABLE_2_MEANS),
    ):
        for name, stated in means.items():
            yield _stated(group, _words(name), stated, float(columns[name].mean()), HALF_UNIT)

    group = "Geography text: gains, counts"
    for model, stated in published.GEO_GAINS.items():
        gain = table_1[f"{model}_country"] - table_1[f"{model}_unspecified"]
        yield _stated(group, f"gain, {_words(model)}", stated, float(gain.mean()), 2 * HALF_UNIT)
    named, unnamed = table_1["overall_country"], table_1["overall_unspecified"]
    by_models = table_1["dalle2_country"] - table_1["sd_country"]
    india = next(row for row in published.GEO_TABLE_1 if row.country == "IND")
    yield _stated(group, "countries below 3, unspecified", published.GEO_BELOW_3, int(np.sum(unnamed < 3)))
    between = int(np.sum((named >= 3) & (named <= 3.5)))
    yield _stated(group, "countries from 3 to 3.5, with country", published.GEO_BETWEEN_3_AND_35, between)
    yield _stated(group, "countries that gain", published.GEO_GAINING, int(np.sum(named > unnamed)))
    yield _stated(group, "India, unspecified", published.GEO_INDIA, fmean([india.dalle2_unspecified, india.sd_unspecified]), HALF_UNIT)
    yield _stated(group, "DALL·E 2 over SD, with country", published.GEO_BY_COUNTRY_MODEL_GAP, float(by_models.mean()), 2 * HALF_UNIT)

    group = "Geography text: t-tests"
    realism = {condition: table_2[f"dalle2_{condition}"] + table_2[f"sd_{condition}"] for condition in ("country", "unspecified")}
    below: Relation = "<"
    for item, stated, left, right in (
        ("p of the gain, both models", published.GEO_SIGNIFICANT, named, unnamed),
        ("p of the gain, DALL·E 2", published.GEO_SIGNIFICANT, table_1["dalle2_country"], table_1["dalle2_unspecified"]),
        ("p of the gain, SD", published.GEO_SIGNIFICANT, table_1["sd_country"], table_1["sd_unspecified"]),
        ("p of the models, with country", published.GEO_MODELS_SIGNIFICANT, table_1["dalle2_country"], table_1["sd_country"]),
        ("p of the realism, both models", published.GEO_REALISM_SIGNIFICANT, realism["country"], realism["unspecified"]),
    ):
        yield _stated(group, item, stated, _paired_p(left, right), relation=below)
    p = _paired_p(table_1["dalle2_unspecified"], table_1["sd_unspecified"])
    yield _stated(group, "p of the models, unspecified", published.GEO_MODELS_NOT_SIGNIFICANT, p, relation="≥")

    known = [figures()[row.country] for row in published.GEO_TABLE_1]
    gdp = [figure.gdp_per_capita for figure in known]
    for item, stated, values in (
        (f"population of {POPULATION_YEAR}", published.GEO_POPULATION, [figure.population for figure in known]),
        (f"GDP per capita of {GDP_YEAR}", published.GEO_GDP, gdp),
    ):
        r = float(scipy.stats.pearsonr(np.array(values, np.float64), unnamed)[0])
        yield _stated("Geography text: correlations", f"Pearson r, {item}", stated, r)
    rich = np.array([row.country in RICH_WEST for row in published.GEO_TABLE_1])
    for item, p in (
        ("p of GDP per capita", scipy.stats.pearsonr(np.array(gdp, np.float64), unnamed)[1]),
        ("p of the rich West against the others", scipy.stats.ttest_ind(unnamed[rich], unnamed[~rich], equal_var=False)[1]),
    ):
        yield _stated("Geography text: t-tests", item, published.GEO_NOT_SIGNIFICANT, float(p), relation="≥")

    order = [[row.country for row in published.GEO_TABLE_2].index(row.country) for row in published.GEO_TABLE_1]
    for name, stated in published.GEO_CORRELATIONS.items():
        r = float(scipy.stats.pearsonr(table_1[name], table_2[name][order])[0])
        yield _stated("Geography text: correlations", f"Pearson r, {_words(name)}", stated, r)


def _columns(rows: Sequence[published.Representativeness] | Sequence[published.Realism]) -> dict[str, FloatArray]:
    names = [name for name in type(rows[0]).__dataclass_fields__ if name != "country"]
    return {name: np.array([getattr(row, name) for row in rows], np.float64) for name in names}


def _paired_p(left: FloatArray, right: FloatArray) -> float:
    return float(scipy.stats.ttest_rel(left, right)[1])


def _words(name: str) -> str:
    """A declared column's name, readable.

    >>> _words("dalle2_country")
    'DALL·E 2, with country'
    """
    words = {"dalle2": "DALL·E 2", "sd": "SD", "country": "with country", "self": "self-assessed", "assessed": ""}
    return ", ".join(filter(None, (words.get(part, part) for part in name.split("_"))))


# Dialect penalty, as printed ----------------------------------------------------------------------------------------


def dialect_tables() -> Iterator[Check]:
    """What follows from the printed tables of the dialect-penalty study alone."""
    for name, rates in published.DIALECT_TABLE_1_SAE.items():
        for rate, stated in rates.items():
            yield _whole_pairs(f"{name}, SAE, {rate.upper()}", stated, rate)
    shifts: dict[tuple[str, str], published.Shifts] = {}
    for row in published.DIALECT_TABLE_1:
        shifts[row.filter, row.variety] = row
        for rate, cell in (("tpr", row.tpr), ("fpr", row.fpr)):
            stated = published.Stated(cell.value, published.DIALECT, "Table 1")
            yield _whole_pairs(f"{row.filter}, {row.variety}, Δ{rate.upper()}", stated, rate)
    for variety, stated in published.DIALECT_FPR.items():
        fpr = published.DIALECT_TABLE_1_SAE["NSFW-T"]["fpr"].value + shifts["NSFW-T", variety].fpr.value
        yield _stated("Dialect text: SAE + Δ", f"NSFW-T, {variety}, FPR", stated, fpr, 2 * HALF_UNIT)
    for typo in published.DIALECT_TABLE_3:
        row = shifts[typo.filter, typo.variety]
        for rate, shift, of_typos, gap in (
            ("TPR", row.tpr.value, typo.typo_tpr, typo.gap_tpr),
            ("FPR", row.fpr.value, typo.typo_fpr, typo.gap_fpr),
        ):
            stated = published.Stated(gap, published.DIALECT, "Table 3")
            item = f"{typo.filter}, {typo.variety}, {rate}"
            yield _stated("Dialect Table 3: bias gaps", item, stated, shift - of_typos, 2 * HALF_UNIT)
    for language in published.DIALECT_TABLE_5:
        stated = published.Stated(language.shift, published.DIALECT, "Table 5")
        shift = language.regional - language.standard
        item = f"{language.variety}, {language.label}"
        yield _stated("Dialect Table 5: shifts", item, stated, shift, 2 * HALF_UNIT)
    yield from _mitigation()


def _whole_pairs(item: str, stated: published.Stated, rate: str) -> Check:
    """Rates over n pairs, and their shifts, are whole numbers of pairs: the nearest one is ours."""
    n = published.DIALECT_PAIRS[rate]
    return _stated("Dialect Table 1: whole pairs", item, stated, 100 * round(stated.value * n / 100) / n)


def _mitigation() -> Iterator[Check]:
    rows = published.DIALECT_TABLE_8
    for row in rows:
        for name in ("accuracy", "worst_group", "tpr_gap", "fpr_gap"):
            cell: published.Spread = getattr(row, name)
            stated = published.Stated(cell.std, published.DIALECT, "Table 8")
            share = "balanced" if row.sae_ratio is None else f"{row.sae_ratio} % SAE"
            item = f"largest deviation possible, {share}, {row.algorithm}, {name}"
            yield _stated("Dialect Table 8: deviations", item, stated, largest_deviation(cell.mean), relation="≥")
    group = "Dialect text: largest gaps"
    yield _stated(group, "largest |ΔTPR|", published.DIALECT_LARGEST_TPR_GAP, max(row.tpr_gap.mean for row in rows))
    up_to = published.DIALECT_FPR_GAP_BELOW_UP_TO
    gap = max(row.fpr_gap.mean for row in rows if row.sae_ratio is not None and row.sae_ratio <= up_to)
    yield _stated(group, f"largest |ΔFPR| up to {up_to} % SAE", published.DIALECT_FPR_GAP_BELOW, gap, relation="<")


def largest_deviation(mean: float, seeds: int = published.DIALECT_SEEDS) -> float:
    """The largest population standard deviation of so many percentages whose mean and deviation are printed to two places.

    All seeds but one lie on the nearer bound; that of Bhatia and Davis holds besides.

    >>> largest_deviation(99.95), largest_deviation(50.0)
    (0.17, 50.005)
    """
    distance = min(mean, 100 - mean) + HALF_UNIT
    bound = min(math.sqrt(seeds - 1) * distance, math.sqrt(distance * (100 - distance))) if distance < 50 else 50.0
    return round(bound + HALF_UNIT, 9)
