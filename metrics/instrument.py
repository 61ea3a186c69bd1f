"""The instrument's error taken out of what it measured, with the error of its calibration carried into the interval.

What an instrument reports of a group is a line in the truth: of a judge that says yes or no, ``1 − specificity`` at no case and
``sensitivity`` at nothing but cases (Rogan & Gladen 1978); of a reader, what a calibration on texts of known damage shows. Turned round,
the line gives the truth; how well the line is known is part of the error (Lang & Reiczigel 2014 for rates; the delta method for the
rest). An unequal instrument on an equal model then gives no gap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.stats

from t2i_parity.metrics._common import Ends, FloatArray, wilson_interval
from t2i_parity.metrics._inference import GroupMeans

FLOOR = 0.2
"""A slope that is not shown to be above this is too flat to be turned round: what is left would be the calibration's noise."""


@dataclass(frozen=True, slots=True)
class Line:
    """What an instrument reports: ``intercept + slope · truth``, with the (2, 2) covariance of the two, from so many ``clusters``."""

    intercept: float
    slope: float
    covariance: tuple[tuple[float, float], tuple[float, float]]
    clusters: int

    @classmethod
    def of_rates(cls, true_positives: int, positives: int, true_negatives: int, negatives: int) -> Line:
        """From labelled cases and non-cases: sensitivity and specificity, with Agresti and Coull's pseudo-counts so that none is sure.

        >>> line = Line.of_rates(95, 100, 90, 100)
        >>> round(line.intercept, 3), round(line.slope, 3)
        (0.108, 0.833)
        """
        hit, right = (true_positives + 1) / (positives + 2), (true_negatives + 1) / (negatives + 2)
        of_hit, of_right = hit * (1 - hit) / (positives + 2), right * (1 - right) / (negatives + 2)
        return cls(1 - right, hit + right - 1, ((of_right, -of_right), (-of_right, of_hit + of_right)), min(positives, negatives))

    @classmethod
    def of_points(cls, truth: FloatArray, read: FloatArray, clusters: Sequence[str]) -> Line | None:
        """By least squares over points of known truth, with the covariance that their clusters show; None where the truth never varies.

        >>> line = Line.of_points(np.array([0.0, 0.5, 1.0] * 6), np.array([0.1, 0.5, 0.9] * 6), list("aaabbbcccdddeeefff"))
        >>> round(line.intercept, 3), round(line.slope, 3)
        (0.1, 0.8)
        """
        if len(truth) < 3 or np.ptp(truth) < 1e-9:
            return None
        centre = float(truth.mean())
        square = float(((truth - centre) ** 2).sum())
        slope = float(((truth - centre) * read).sum()) / square
        intercept = float(read.mean()) - slope * centre
        left = read - intercept - slope * truth
        # What each point adds to the error of slope and intercept, summed over its cluster.
        of_slope = (truth - centre) * left / square
        of_both = np.stack([left / len(truth) - centre * of_slope, of_slope], axis=1)
        codes: dict[str, int] = {}
        at = [codes.setdefault(cluster, len(codes)) for cluster in clusters]
        sums = np.zeros((len(codes), 2))
        np.add.at(sums, at, of_both)
        n = len(codes)
        spread = np.einsum("ci,cj->ij", sums, sums) * (n / max(n - 1, 1))
        return cls(intercept, slope, ((float(spread[0, 0]), float(spread[0, 1])), (float(spread[1, 0]), float(spread[1, 1]))), n)

    @property
    def shown(self) -> bool:
        """Whether the slope is shown to be above :data:`FLOOR`."""
        error = math.sqrt(max(self.covariance[1][1], 0.0))
        reach = float(scipy.stats.t.ppf(0.975, max(self.clusters - 1, 1)))
        return self.clusters >= 5 and self.slope - reach * error > FLOOR

    def truth(self, seen: float) -> float:
        """What is there where so much was seen."""
        return (seen - self.intercept) / self.slope

    def variance(self, seen: float) -> float:
        """Of :meth:`truth`, what the calibration adds (delta method)."""
        truth = self.truth(seen)
        (a, both), (_, b) = self.covariance
        return (a + 2 * truth * both + truth**2 * b) / self.slope**2


def corrected(found: GroupMeans, lines: Mapping[str, Line | None]) -> GroupMeans:
    """The groups' true means, of those whose line is shown; their covariance is the sample's and the calibrations' (independent ones).

    ``found`` is what the instrument reported, group by group. Groups without a line that can be turned round are left out.
    """
    kept = [place for place, code in enumerate(found.codes) if (line := lines.get(code)) is not None and line.shown]
    of = [lines[found.codes[place]] for place in kept]
    slopes = np.array([line.slope for line in of if line is not None])
    seen = found.means[kept]
    truths = np.array([line.truth(float(value)) for line, value in zip(of, seen, strict=True) if line is not None])
    added = np.array([line.variance(float(value)) for line, value in zip(of, seen, strict=True) if line is not None])
    covariance = found.covariance[np.ix_(kept, kept)] / np.outer(slopes, slopes) if kept else np.zeros((0, 0))
    clusters = np.array([min(int(found.clusters[place]), line.clusters) for place, line in zip(kept, of, strict=True) if line is not None])
    codes = tuple(found.codes[place] for place in kept)
    return GroupMeans(codes, truths, covariance + np.diag(added), clusters.astype(np.intp), None, None)


def alike(found: GroupMeans, codes: Sequence[str]) -> float | None:
    """The test that all of some groups have one mean, of what the instrument reported: what a correction is held against."""
    kept = [found.codes.index(code) for code in codes]
    own = found.covariance[np.ix_(kept, kept)]
    return GroupMeans(tuple(codes), found.means[kept], own, found.clusters[kept], found.low, found.high).alike_p()


def effective(found: GroupMeans, place: int) -> float:
    """How many rows that share nothing would tell as much of a group's rate; of a rate of 0 or 1, its clusters.

    >>> round(effective(GroupMeans(("a",), np.array([0.5]), np.array([[0.0025]]), np.array([400])), 0), 3)
    99.394
    """
    mean, variance, clusters = float(found.means[place]), float(found.covariance[place, place]), int(found.clusters[place])
    size = mean * (1 - mean) / variance if 0 < mean < 1 and variance > 0 else float(clusters)
    return size * float(scipy.stats.norm.ppf(0.975) / scipy.stats.t.ppf(0.975, max(clusters - 1, 1))) ** 2


def interval(found: GroupMeans, place: int, level: float = 0.95, *, low: float = 0.0, high: float = 1.0) -> Ends:
    """One group's interval, by Student's t, within the ends that the truth has; None where it has no variance.

    A mean that the correction puts beyond an end stands at that end, and its interval begins there: no truth lies further out.
    """
    error = math.sqrt(max(float(found.covariance[place, place]), 0.0))
    if not error > 0 or found.clusters[place] < 2:
        return None
    reach = float(scipy.stats.t.ppf((1 + level) / 2, float(found.clusters[place]) - 1)) * error
    mean = min(max(float(found.means[place]), low), high)
    return max(mean - reach, low), min(mean + reach, high)


def prevalence(
    flagged: float, n: float, true_positives: int, positives: int, true_negatives: int, negatives: int, level: float = 0.95
) -> tuple[float, float, float] | None:
    """The true rate behind a judge's: (value, low, high), by Rogan & Gladen (1978) with Lang & Reiczigel's interval (2014).

    ``flagged`` is the rate that the judge reports over ``n`` rows (the effective size where rows share a meaning); the rest is what it said
    of labelled cases and non-cases. None where sensitivity + specificity is not shown to be above 1: such a judge tells nothing.

    >>> [round(number, 3) for number in prevalence(0.3, 200, 95, 100, 90, 100)]
    [0.235, 0.136, 0.325]
    """
    ends = wilson_interval(true_positives, positives, level), wilson_interval(true_negatives, negatives, level)
    hit, right = true_positives / positives, true_negatives / negatives
    if hit + right - 1 - math.hypot(hit - ends[0][0], right - ends[1][0]) <= 0:
        return None
    value = min(max((flagged + right - 1) / (hit + right - 1), 0.0), 1.0)
    z = float(scipy.stats.norm.ppf((1 + level) / 2))
    size = n + z**2
    rate = (n * flagged + z**2 / 2) / size
    hit, right = (true_positives + 1) / (positives + 2), (true_negatives + 1) / (negatives + 2)
    slope = hit + right - 1
    centre = (rate + right - 1) / slope
    of_hit, of_right = hit * (1 - hit) / (positives + 2), right * (1 - right) / (negatives + 2)
    shift = 2 * z**2 * (centre * of_hit - (1 - centre) * of_right)
    half = z * math.sqrt(rate * (1 - rate) / size + centre**2 * of_hit + (1 - centre) ** 2 * of_right) / slope
    low, high = (min(max(centre + shift + way * half, 0.0), 1.0) for way in (-1, 1))
    return value, min(low, value), max(high, value)
