"""The study's research questions RQ1 to RQ3 and its comparison of models, asked of country means: measured ones, or those of its Table 1.

Countries are the units, as in the study (§3.2–§3.5): correlations over countries, Welch's t-test between groups of them, and paired
t-tests over them. What the study concludes from these holds for countries like the studied ones, and for these images.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import scipy.stats

from t2i_parity.validation.geography.figures import RICH_WEST, figures
from t2i_parity.validation.geography.study import FloatArray, Study, means
from t2i_parity.validation.survey.ratings import CONDITIONS

ALL = "all models"
MIDDLE = 3.0
FEWEST = 3
"""A correlation over fewer countries than this has no p-value, and is left out."""
NO_SPREAD = 1e-9
"""Differences whose spread is below this are equal but for rounding: Student's t is not defined on them."""


@dataclass(frozen=True, slots=True)
class ByCountry:
    """Country means, NaN where there is none: representativeness and realism by (model, condition), and the self-assessed influence.

    The model ``ALL`` is the mean over all ratings, whatever the model. An array has one number a country.
    """

    countries: tuple[str, ...]
    models: tuple[str, ...]
    gr: Mapping[tuple[str, str], FloatArray]
    realism: Mapping[tuple[str, str], FloatArray]
    influence: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One number that answers a question: what it is, its interval and p-value where it has them, and over how many countries.

    ``corrected`` is the p-value by Holm's method over all pairs of models, where there are several pairs; ``names`` are countries.
    """

    question: str
    item: str
    statistic: str
    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int = 0
    names: tuple[str, ...] = ()
    corrected: float | None = None


def by_country(study: Study) -> ByCountry:
    """The country means of measured ratings."""
    gr, realism = {}, {}
    for place, condition in enumerate(CONDITIONS):
        gr[ALL, condition] = means(study, study.rows(None, place)).mean
        for number, model in enumerate(study.models):
            gr[model, condition] = means(study, study.rows(number, place)).mean
            rows = (study.realism.model == number) & (study.realism.condition == place)
            if rows.any():
                realism[model, condition] = means(study, rows, study.realism).mean
    asked = np.ones(len(study.influence.rating), np.bool_)
    influence = means(study, asked, study.influence).mean if asked.any() else None
    return ByCountry(study.countries, study.models, gr, realism, influence)


def answers(of: ByCountry, level: float = 0.95) -> list[Answer]:
    """Every question, in the study's order."""
    return [*_rq1(of, level), *_rq2(of, level), *_rq3(of, level), *_models(of, level)]


def _rq1(of: ByCountry, level: float) -> Iterator[Answer]:
    question = "RQ1"
    gr = of.gr[ALL, "unspecified"]
    there = ~np.isnan(gr)
    if not there.any():
        return
    codes, values = [code for code, good in zip(of.countries, there, strict=True) if good], gr[there]
    order = np.argsort(-values, kind="stable")
    yield _mean(question, "unspecified, mean over countries", values, level)
    below = [codes[place] for place in order if values[place] < MIDDLE]
    above = tuple(codes[place] for place in order if values[place] >= MIDDLE)
    yield Answer(question, f"countries below {MIDDLE:g}, unspecified", "count", len(below), n=len(codes), names=above)
    for name, place in (("highest", order[0]), ("lowest", order[-1])):
        yield Answer(question, f"{name}, unspecified", "GR", float(values[place]), n=len(codes), names=(codes[place],))
    known = figures()
    for name, of_figures in (
        ("population", [known[code].population if code in known else None for code in codes]),
        ("GDP per capita", [known[code].gdp_per_capita if code in known else None for code in codes]),
    ):
        figure = np.array([np.nan if value is None else value for value in of_figures], np.float64)
        with_figure = ~np.isnan(figure)
        without = tuple(code for code, good in zip(codes, with_figure, strict=True) if not good)
        for kind, x in (("", figure), ("log ", np.log(figure))):
            yield _correlation(question, f"{kind}{name}", "Pearson r", x[with_figure], values[with_figure], level, without)
        yield _correlation(question, name, "Spearman ρ", figure[with_figure], values[with_figure], level, without)
    rich = np.array([code in RICH_WEST for code in codes])
    if min(rich.sum(), (~rich).sum()) >= 2:
        found = scipy.stats.ttest_ind(values[rich], values[~rich], equal_var=False)
        interval = found.confidence_interval(level)
        names = tuple(code for code, west in zip(codes, rich, strict=True) if west)
        difference = float(values[rich].mean() - values[~rich].mean())
        yield Answer(
            question, "rich West less the others", "difference, Welch's t", difference, float(interval.low), float(interval.high),
            float(found.pvalue), len(codes), names,
        )  # fmt: skip


def _rq2(of: ByCountry, level: float) -> Iterator[Answer]:
    for model in (ALL, *of.models):
        unspecified, country = (of.gr[model, condition] for condition in CONDITIONS)
        yield _paired("RQ2", f"gain by naming the country, {model}", country, unspecified, level)
    unspecified, country = (of.gr[ALL, condition] for condition in CONDITIONS)
    gains = country - unspecified
    both = ~np.isnan(gains)
    losing = tuple(code for code, gain in zip(of.countries, gains, strict=True) if gain <= 0)
    yield Answer("RQ2", "countries that gain", "count", int(np.sum(gains[both] > 0)), n=int(both.sum()), names=losing)
    named = country[~np.isnan(country)]
    yield Answer("RQ2", "countries from 3 to 3.5, with country", "count", int(np.sum((named >= 3) & (named <= 3.5))), n=len(named))
    yield _mean("RQ2", "with country, mean over countries", named, level)


def _rq3(of: ByCountry, level: float) -> Iterator[Answer]:
    question = "RQ3"
    for (model, condition), realism in of.realism.items():
        gr = of.gr[model, condition]
        both = ~np.isnan(gr) & ~np.isnan(realism)
        words = "with country" if condition == "country" else condition
        yield _correlation(question, f"GR and realism, {model}, {words}", "Pearson r", realism[both], gr[both], level)
    models = [model for model in of.models if all((model, condition) in of.realism for condition in CONDITIONS)]
    if models:
        unspecified, country = (np.mean([of.realism[model, condition] for model in models], axis=0) for condition in CONDITIONS)
        yield _paired(question, "realism gained by naming the country", country, unspecified, level)
    if of.influence is not None:
        yield _mean(question, "self-assessed influence of realism", of.influence[~np.isnan(of.influence)], level)


def _models(of: ByCountry, level: float) -> Iterator[Answer]:
    for condition in CONDITIONS:
        words = "with country" if condition == "country" else condition
        found = [
            _paired("models", f"{first} less {second}, {words}", of.gr[first, condition], of.gr[second, condition], level)
            for first, second in combinations(of.models, 2)
        ]
        yield from _holm(found)


def _holm(found: Sequence[Answer]) -> Iterator[Answer]:
    tested = [answer.p for answer in found if answer.p is not None]
    if len(tested) < 2:
        yield from found
        return
    from dataclasses import replace

    from statsmodels.stats.multitest import multipletests

    corrected = iter(multipletests(tested, method="holm")[1])
    for answer in found:
        yield answer if answer.p is None else replace(answer, corrected=float(next(corrected)))


def _mean(question: str, item: str, values: FloatArray, level: float) -> Answer:
    if not len(values):
        return Answer(question, item, "mean", None)
    half = _half(values, level)
    mean = float(values.mean())
    return Answer(question, item, "mean", mean, None if half is None else mean - half, None if half is None else mean + half, n=len(values))


def _paired(question: str, item: str, left: FloatArray, right: FloatArray, level: float) -> Answer:
    differences = left - right
    names_none = differences[~np.isnan(differences)]
    if not len(names_none):
        return Answer(question, item, "difference, paired t", None)
    mean, half = float(names_none.mean()), _half(names_none, level)
    if half is None or names_none.std() < NO_SPREAD:
        return Answer(question, item, "difference, paired t", mean, n=len(names_none))
    p = float(scipy.stats.ttest_1samp(names_none, 0.0).pvalue)
    return Answer(question, item, "difference, paired t", mean, mean - half, mean + half, p, len(names_none))


def _half(values: FloatArray, level: float) -> float | None:
    if len(values) < 2:
        return None
    return float(scipy.stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values)))


def _correlation(
    question: str, item: str, statistic: str, x: FloatArray, y: FloatArray, level: float, without: tuple[str, ...] = ()
) -> Answer:
    """``names`` are the countries that the figures lack."""
    if len(x) < FEWEST or x.std() < NO_SPREAD or y.std() < NO_SPREAD:
        return Answer(question, item, statistic, None, n=len(x), names=without)
    if statistic == "Pearson r":
        found = scipy.stats.pearsonr(x, y)
        interval = found.confidence_interval(level) if len(x) > FEWEST else None
        low, high = (None, None) if interval is None else (float(interval.low), float(interval.high))
        return Answer(question, item, statistic, float(found.statistic), low, high, float(found.pvalue), len(x), without)
    rho, p = scipy.stats.spearmanr(x, y)
    return Answer(question, item, statistic, float(rho), None, None, float(p), len(x), without)
