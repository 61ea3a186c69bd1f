"""Do raters of a country agree? The study's modal share (§2, "Inter-rater Agreement", Figure 2), and Krippendorff's α beside it.

The study holds the modal share against 20 %, one in five options. The share of the *most frequent* option is larger than that by
chance alone: of 20 raters who answer at random almost a third choose whichever option comes out most often. That is what is set beside it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from t2i_parity.validation.geography.study import FloatArray, IntArray, Study
from t2i_parity.validation.survey.ratings import SCALE

OPTIONS = SCALE[1] - SCALE[0] + 1


@dataclass(frozen=True, slots=True)
class Agreement:
    """Agreement over some images: the mean share of the most frequent option, what chance gives, and ordinal α.

    None where no image has two raters, α also where all answers are equal. ``items`` counts images, once in each country that
    rated it.
    """

    modal_share: float | None
    by_chance: float | None
    alpha: float | None
    items: int


@dataclass(frozen=True, slots=True)
class Agreements:
    """Overall, by country and by noun."""

    overall: Agreement
    by_country: dict[str, Agreement]
    by_noun: dict[str, Agreement]


def agreements(study: Study) -> Agreements:
    """How much the raters of a country agree on each image, averaged over images; α is over the same items."""
    answers = study.representativeness
    country = study.country[answers.participant]
    key, item = np.unique(country * len(study.images) + answers.image, return_inverse=True)
    counts = np.zeros((len(key), OPTIONS), np.int64)
    np.add.at(counts, (item, answers.rating.astype(np.int64) - SCALE[0]), 1)
    noun = np.full(len(key), -1, np.int64)
    noun[item] = answers.noun
    of_country = key // len(study.images)
    return Agreements(
        agreement(counts),
        {code: agreement(counts[of_country == place]) for place, code in enumerate(study.countries)},
        {name: agreement(counts[noun == place]) for place, name in enumerate(study.nouns)},
    )


def agreement(counts: IntArray) -> Agreement:
    """Agreement in (items, options) counts of answers; items with a single rater say nothing and are left out.

    >>> round(agreement(np.array([[3, 1, 0, 0, 0], [0, 0, 0, 2, 2]])).modal_share, 3)
    0.625
    """
    raters = counts.sum(axis=1)
    counts, raters = counts[raters > 1], raters[raters > 1]
    if not len(counts):
        return Agreement(None, None, None, 0)
    share = float(np.mean(counts.max(axis=1) / raters))
    chance = float(np.mean([expected_modal_share(int(n)) for n in raters]))
    return Agreement(share, chance, _alpha(counts), len(counts))


def _alpha(counts: IntArray) -> float | None:
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        return None
    import krippendorff

    alpha = float(krippendorff.alpha(value_counts=counts, value_domain=list(range(SCALE[0], SCALE[1] + 1)), level_of_measurement="ordinal"))
    return alpha if math.isfinite(alpha) else None


@cache
def expected_modal_share(raters: int, options: int = OPTIONS) -> float:
    """The expected share of the most frequent option when so many raters choose at random (exact, from the multinomial's maximum).

    >>> round(expected_modal_share(20), 3), round(expected_modal_share(1), 3)
    (0.322, 1.0)
    """
    at_most = np.zeros(raters + 1)
    for most in range(1, raters + 1):
        one = np.array([1 / math.factorial(times) for times in range(most + 1)])
        product: FloatArray = np.ones(1)
        for _ in range(options):
            product = np.convolve(product, one)[: raters + 1]
        at_most[most] = product[raters] * math.factorial(raters) / options**raters if len(product) > raters else 0.0
    return float(np.sum(np.arange(1, raters + 1) * np.diff(at_most))) / raters
