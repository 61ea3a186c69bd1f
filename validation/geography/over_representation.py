"""Whose surroundings the unspecified images show: which countries' raters accept them.

An image is accepted by a rating of 4 or 5. A country's index is its share of accepted images over the mean share of all countries:
1 is parity, 2 says that its people see their surroundings twice as often as people do on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import scipy.stats

from t2i_parity.validation.geography.study import Study, means
from t2i_parity.validation.survey.ratings import CONDITIONS

ACCEPTED = 4


@dataclass(frozen=True, slots=True)
class Index:
    """A country's share of accepted images, the index and its interval; None where nobody there accepts any, or nobody anywhere."""

    country: str
    share: float
    index: float | None
    low: float | None
    high: float | None
    participants: int


@dataclass(frozen=True, slots=True)
class OfNoun:
    """The country whose raters give the unspecified images of a noun the most, and how much above the mean of the others."""

    noun: str
    country: str
    value: float
    others: float


def over_representation(study: Study, level: float = 0.95) -> list[Index]:
    """Every country's index, the highest first. The interval is on the log scale, over participants (delta method)."""
    answers = study.representativeness
    accepted = replace(answers, rating=(answers.rating >= ACCEPTED).astype(np.float64))
    shares = means(study, study.rows(None, CONDITIONS.index("unspecified")), accepted)
    there = ~np.isnan(shares.mean)
    if not there.any():
        return []
    variance, df = shares.variance()
    n = int(there.sum())
    mean = float(shares.mean[there].mean())
    total = float(np.nansum(variance[there])) / n**2
    found = []
    for place in np.flatnonzero(there):
        share, own = float(shares.mean[place]), float(variance[place])
        index = share / mean if mean > 0 else None
        low = high = None
        if index and df[place] > 0 and not math.isnan(own):
            # Var(log share − log mean), the country itself being part of the mean.
            error = own / share**2 + total / mean**2 - 2 * own / (n * share * mean)
            half = float(scipy.stats.t.ppf((1 + level) / 2, df[place])) * math.sqrt(max(0.0, error))
            low, high = index * math.exp(-half), index * math.exp(half)
        found.append(Index(study.countries[place], share, index, low, high, int(shares.participants[place])))
    return sorted(found, key=lambda each: (-each.share, each.country))


def by_noun(study: Study) -> list[OfNoun]:
    """For each noun the country that its unspecified images suit best; nouns that fewer than two countries rated are left out."""
    found = []
    for place, noun in enumerate(study.nouns):
        mean = means(study, study.rows(None, CONDITIONS.index("unspecified"), place)).mean
        there = np.flatnonzero(~np.isnan(mean))
        if len(there) < 2:
            continue
        best = there[int(np.argmax(mean[there]))]
        others = float(np.mean([mean[each] for each in there if each != best]))
        found.append(OfNoun(noun, study.countries[best], float(mean[best]), others))
    return found
