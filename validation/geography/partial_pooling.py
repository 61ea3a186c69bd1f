"""Honest estimates for thinly rated countries, and for those that nobody rated: partial pooling over countries.

A participant's mean is its country's level plus the participant's own deviation; levels of countries vary around a common mean. Both
spreads are estimated: participants' within countries, and countries' by Paule and Mandel's equation (statsmodels' ``combine_effects``;
its ``MixedLM`` was tried and stops at a spread of 0 on such data). A country with few raters is drawn to the common mean, the more the
fewer they are; one without raters gets the common mean and the whole spread of countries. Countries that are rated are hardly a random
sample of those that are not: the interval of the latter says what follows if they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.stats

from t2i_parity.validation.geography.study import Study

FEWEST_COUNTRIES = 3


@dataclass(frozen=True, slots=True)
class Pooled:
    """A country's estimate: its own mean (None when nobody rated), the pooled one, its interval, and the weight of its own ratings."""

    country: str
    participants: int
    own: float | None
    value: float
    low: float
    high: float
    weight: float


@dataclass(frozen=True, slots=True)
class Pooling:
    """One condition: the common mean, the standard deviations of countries and of participants' means, every country's estimate.

    ``reason`` says why there are no estimates, where there are none.
    """

    condition: str
    mean: float | None = None
    countries_deviation: float | None = None
    participants_deviation: float | None = None
    estimates: tuple[Pooled, ...] = ()
    reason: str | None = None


def pooling(study: Study, condition: int, name: str, unrated: Iterable[str] = (), level: float = 0.95) -> Pooling:
    """The pooled estimates of every rated country over all models and nouns, and of the ``unrated`` ones that nobody rated.

    The interval of a rated country holds its own error, that of the common mean and, by Student's t with the number of countries less
    one, some of that of the spreads. Needs three rated countries and two raters in one of them, else ``reason`` says so.
    """
    answers = study.representativeness
    rows = study.rows(None, condition)
    who = answers.participant[rows]
    count = np.bincount(who, minlength=len(study.participants))
    there = count > 0
    score = np.bincount(who, answers.rating[rows], len(study.participants))[there] / count[there]
    country = study.country[there]
    raters = np.bincount(country, minlength=len(study.countries))
    if np.sum(raters > 0) < FEWEST_COUNTRIES or raters.max(initial=0) < 2:
        return Pooling(name, reason=f"needs {FEWEST_COUNTRIES} rated countries, and two raters in one of them")

    from statsmodels.stats.meta_analysis import combine_effects

    rated = raters > 0
    own = np.bincount(country, score, len(study.countries))[rated] / raters[rated]
    means = np.bincount(country, score, len(study.countries)) / np.maximum(raters, 1)
    within = float(np.sum((score - means[country]) ** 2)) / float(np.sum(np.maximum(raters - 1, 0)))
    if within <= 0:
        return Pooling(name, reason="participants' means do not vary within any country")
    between = max(0.0, float(combine_effects(own, within / raters[rated], method_re="iterated").tau2))
    precision = 1 / (between + within / raters[rated])
    mean = float(np.sum(precision * own) / np.sum(precision))
    of_mean = 1 / float(np.sum(precision))
    quantile = float(scipy.stats.t.ppf((1 + level) / 2, max(1, rated.sum() - 1)))
    weights = between * precision
    values = mean + weights * (own - mean)
    errors = np.sqrt(weights * within / raters[rated] + (1 - weights) ** 2 * of_mean)
    codes = [code for code, good in zip(study.countries, rated, strict=True) if good]
    estimates = [
        Pooled(code, int(n), float(at), float(value), float(value - quantile * error), float(value + quantile * error), float(weight))
        for code, n, at, value, error, weight in zip(codes, raters[rated], own, values, errors, weights, strict=True)
    ]
    half = quantile * math.sqrt(between + of_mean)
    estimates += [Pooled(code, 0, None, mean, mean - half, mean + half, 0.0) for code in unrated if code not in codes]
    return Pooling(name, mean, math.sqrt(between), math.sqrt(within), tuple(estimates))
