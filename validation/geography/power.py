"""How many participants a country needs: from the spread between participants, and within one from image to image.

A participant's mean over k images varies with variance σ_p² + σ_e² / k: how freely a person gives marks, and how differently from
others they see single images. More images a participant make the second part smaller, never the first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.stats

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.validation.geography.study import Study

MOST = 1_000_000
"""Where the search ends: no study has so many participants a country."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviations in ratings: between participants of a country, and of single answers about the same image."""

    participants: float
    answers: float

    def of_mean(self, images: int) -> float:
        """The standard deviation of a participant's mean over so many images.

        >>> round(Spread(0.5, 1.0).of_mean(25), 4)
        0.5385
        """
        return math.sqrt(self.participants**2 + self.answers**2 / images)


def spread(study: Study) -> Spread | None:
    """The two spreads of a study's ratings, pooled over its countries; None where no country has two participants who rated two images.

    In each country image means are taken off first; what then remains between participants holds both parts, and is corrected for the
    second. A negative difference counts as no spread between participants.
    """
    answers = study.representativeness
    country = study.country[answers.participant]
    cell = country * len(study.images) + answers.image
    counts = np.bincount(cell)
    seen = np.bincount(answers.participant, minlength=len(study.participants))
    rows = (counts[cell] > 1) & (seen[answers.participant] > 1)
    if not rows.any():
        return None
    cell, who, rating, country = cell[rows], answers.participant[rows], answers.rating[rows], country[rows]
    rest = rating - (np.bincount(cell, rating) / np.maximum(np.bincount(cell), 1))[cell]
    n = np.bincount(who, minlength=len(study.participants))
    offset = np.bincount(who, rest, len(study.participants)) / np.maximum(n, 1)
    there = n > 0
    raters = np.bincount(study.country[there], minlength=len(study.countries))
    df_participants = float(np.sum(np.maximum(raters - 1, 0)))
    df_answers = len(rest) - len(np.unique(cell)) - df_participants
    if df_participants <= 0 or df_answers <= 0:
        return None
    within = float(np.sum((rest - offset[who]) ** 2)) / df_answers
    between = float(np.sum(offset[there] ** 2)) / df_participants
    images = len(rest) / float(np.sum(there))
    return Spread(math.sqrt(max(0.0, between - within / images)), math.sqrt(within))


def participants_needed(half_width: float, deviation: float, level: float = 0.95) -> int:
    """Participants a country, so that the interval of its mean is no wider than ± ``half_width``, given the spread of participants' means.

    Raises InputError for a width or a deviation that is not above 0.

    >>> participants_needed(0.3, 0.6)
    18
    """
    if not (half_width > 0 and deviation > 0 and math.isfinite(half_width) and math.isfinite(deviation)):
        raise InputError(f"expected a half-width and a deviation above 0, got {half_width:g} and {deviation:g}. Fix: give both in ratings")
    low, high = 1, 2
    while half_width_of(high, deviation, level) > half_width:
        low, high = high, 2 * high
        if high > MOST:
            raise InputError(f"more than {MOST:,} participants a country would be needed for ±{half_width:g}; choose a wider interval")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if half_width_of(middle, deviation, level) <= half_width else (middle, high)
    return high


def half_width_of(participants: int, deviation: float, level: float = 0.95) -> float:
    """The half-width of the interval of a country's mean.

    >>> round(half_width_of(20, 0.6), 3)
    0.281
    """
    return float(scipy.stats.t.ppf((1 + level) / 2, participants - 1)) * deviation / math.sqrt(participants)
