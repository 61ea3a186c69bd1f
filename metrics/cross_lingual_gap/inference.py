# Written by `python -m t2i_parity.metrics.copies` from metrics/_inference.py; change it there.
"""Inference over groups: how unequal they are truly, whether they differ at all, and which is the worst, none of it fooled by noise.

Means of small samples scatter even where all groups are served alike, so that their standard deviation is above 0 for a fair system too
(Lum, Zhang & Bower 2022), and the lowest of them is lower than the lowest truth. Metric folders that need this hold a copy as
``inference.py`` (see :mod:`t2i_parity.metrics.copies`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import scipy.optimize
import scipy.stats

from .common import (
    MIN_CLUSTERS,
    Ends,
    FloatArray,
    IntArray,
    Resampling,
    holm,
    lexical_order,
    ratio,
    resampled_sums,
    with_unseen,
)

Difference: TypeAlias = tuple[float, Ends] | None
# Less variance than this is rounding.
_ROUNDING = 1e-24
# So many values of the noise are averaged over.
_NOISES = 64
# Beyond this a noncentral χ² is not computed exactly.
_FAR = 5_000.0


@dataclass(frozen=True, slots=True)
class Contrast:
    """A group against the mean of the others: the difference, its interval (simultaneous over the groups), p and Holm's p."""

    code: str
    difference: float
    interval: Ends
    p: float
    p_holm: float


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeans:
    """The means of groups with the covariance that sampling gives them: clusters, as one meaning in ten languages, were drawn together.

    ``means`` is (k,), ``covariance`` (k, k); ``clusters`` counts the clusters behind each group. ``low`` and ``high`` are the ends of the
    numbers, None where they have none.
    """

    codes: tuple[str, ...]
    means: FloatArray
    covariance: FloatArray
    clusters: IntArray
    low: float | None = 0.0
    high: float | None = 1.0

    @classmethod
    def of(
        cls,
        values: FloatArray,
        groups: Sequence[str],
        clusters: Sequence[str] | None = None,
        *,
        low: float | None = 0.0,
        high: float | None = 1.0,
    ) -> GroupMeans:
        """From a number a row (no NaN), its group, and its cluster (default: each row alone). Groups are sorted by code.

        Where numbers have ends, a group that lies wholly or mostly at one has the variance that losses not seen may add
        (:func:`t2i_parity.metrics._common.mean_interval`): no sample shows that nothing varies.

        >>> found = GroupMeans.of(np.array([1.0, 0.0, 1.0, 1.0]), ["a", "b", "a", "b"], ["1", "1", "2", "2"])
        >>> found.codes, found.means.tolist()
        (('a', 'b'), [1.0, 0.5])
        """
        codes, units = _cells(values, groups, clusters)
        k = len(codes)
        # One order, whatever the names of clusters, so that no digit depends on them.
        sums, counts = np.hsplit(units[lexical_order(units)], 2)
        means = sums.sum(axis=0) / counts.sum(axis=0)
        held = (counts > 0).sum(axis=0)
        influence = (sums - means * counts) / counts.sum(axis=0) * np.sqrt(held / np.maximum(held - 1, 1))
        covariance = np.einsum("ci,cj->ij", influence, influence)
        if low is not None and high is not None:
            for place in range(k):
                here = counts[:, place] > 0
                covariance[place, place] = (
                    _variance_at_ends(
                        (sums[here, place] / counts[here, place] - low) / (high - low),
                        counts[here, place],
                        covariance[place, place] / (high - low) ** 2,
                    )
                    * (high - low) ** 2
                )
        return cls(codes, means, covariance, held, low, high)

    @property
    def enough(self) -> bool:
        """Whether there are two groups or more, each of at least :data:`MIN_CLUSTERS` clusters, that do not all agree."""
        return (
            len(self.codes) > 1
            and bool((self.clusters >= MIN_CLUSTERS).all())
            and self._noise()[0] > _ROUNDING * (1 + float(np.abs(self.means).max())) ** 2
        )

    def pooled(self, members: Mapping[str, Sequence[str]]) -> GroupMeans:
        """Groups of groups, as branches of languages: each the mean of its members, each member counting once."""
        weights = np.array([[float(code in of) / len(of) for code in self.codes] for of in members.values()])
        means, covariance = np.einsum("bi,i->b", weights, self.means), np.einsum("bi,ij,cj->bc", weights, self.covariance, weights)
        least = np.array(
            [min(count for code, count in zip(self.codes, self.clusters, strict=True) if code in of) for of in members.values()]
        )
        return GroupMeans(tuple(members), means, covariance, least.astype(np.intp), self.low, self.high)

    # How unequal

    def mean_interval(self, level: float = 0.95) -> Ends:
        """The interval of the mean over groups, each counting once, by Student's t; None as :meth:`alike_p`."""
        if not self.enough:
            return None
        error = math.sqrt(float(self.covariance.sum())) / len(self.codes)
        reach = float(scipy.stats.t.ppf((1 + level) / 2, float(self.clusters.min()) - 1)) * error
        mean = float(self.means.mean())
        low, high = (-math.inf if self.low is None else self.low), (math.inf if self.high is None else self.high)
        return (max(mean - reach, low), min(mean + reach, high)) if reach > 0 else None

    def spread(self) -> float | None:
        """The true means' population standard deviation, noise taken out: √max(0, var(m) − tr(PC)/k); None as :meth:`alike_p`."""
        if not self.enough:
            return None
        return math.sqrt(max(0.0, float(self.means.var()) - self._noise()[0] / len(self.codes)))

    def _noise(self) -> tuple[float, float, float]:
        """The trace of PC, and of (PC)²; and the degrees of freedom behind one group's variance."""
        k = len(self.codes)
        centred = np.eye(k) - 1 / k
        noise = np.einsum("ij,jl->il", centred, self.covariance)
        return float(np.trace(noise)), float(np.einsum("ij,ji->", noise, noise)), float(self.clusters.mean()) - 1

    def _null(self) -> tuple[float, float, float, float]:
        """Box's approximation (1954): k·var(m) is ``scale`` times a noncentral χ² of ``df``, with the noise known to ``df2`` degrees."""
        trace, square, df = self._noise()
        scale, df1 = square / trace, trace**2 / square
        return len(self.codes) * float(self.means.var()) / scale, scale, df1, df1 * df

    def alike_p(self) -> float | None:
        """The p-value of the test that all groups have one mean; None below two groups or :data:`MIN_CLUSTERS` clusters.

        A repeated-measures F test over clusters with Box's (Greenhouse and Geisser's) degrees of freedom.
        """
        if not self.enough:
            return None
        seen, _, df1, df2 = self._null()
        return float(scipy.stats.f.sf(seen / df1, df1, df2))

    def spread_interval(self, level: float = 0.95) -> Ends:
        """The interval of the true spread: those that a noncentral χ² test would not refuse; None as :meth:`alike_p`.

        How much of the spread is noise is known no better than the sample tells, and averaged over. A spread as small as chance alone
        gives in half of all samples bounds it as the median does: no sample shows that it is 0.
        """
        if not self.enough:
            return None
        seen, scale, df1, df2 = self._null()
        tails = (1 - level) / 2
        least = max(seen, df1 * float(scipy.stats.f.ppf(0.5, df1, df2)))
        ends = [_noncentrality(value, df1, df2, tail) for value, tail in ((seen, 1 - tails), (least, tails))]
        low, high = (math.sqrt(end * scale / len(self.codes)) for end in ends)
        return low, high

    # Which

    def contrasts(self, level: float = 0.95) -> list[Contrast]:
        """Each group against the mean of the others, by Student's t; intervals hold for all at once (Bonferroni). Empty as :meth:`alike_p`.

        Where numbers have ends, a group varies at least as it would with the others' mean: one that shows few losses by
        chance would seem to vary less, and to be the best.
        """
        if not self.enough:
            return []
        k = len(self.codes)
        weights = (np.eye(k) * k - 1) / (k - 1)
        differences = np.einsum("ij,j->i", weights, self.means)
        errors = np.array([self._contrast_error(place, weights[place]) for place in range(k)])
        df = float(self.clusters.min()) - 1
        reach = float(scipy.stats.t.ppf(1 - (1 - level) / 2 / k, df))
        ps = [_two_sided(float(d), float(e), df) for d, e in zip(differences, errors, strict=True)]
        return [
            Contrast(code, float(d), (float(d - reach * e), float(d + reach * e)) if e > 0 else None, p, corrected)
            for code, d, e, p, corrected in zip(self.codes, differences, errors, ps, holm(ps), strict=True)
        ]

    def _contrast_error(self, place: int, weights: FloatArray) -> float:
        own = float(self.covariance[place, place])
        scales = np.ones(len(self.codes))
        if self.low is not None and self.high is not None and own > 0:
            others = float(np.delete(self.means, place).mean())
            here, there = (max((mean - self.low) * (self.high - mean), 0.0) for mean in (float(self.means[place]), others))
            size = here / own if here > 0 else float(self.clusters[place]) * (self.high - self.low) ** 2
            scales[place] = max(1.0, math.sqrt(there / size / own))
        scaled = scales * weights
        return math.sqrt(max(float(np.einsum("i,ij,j->", scaled, self.covariance, scaled)), 0.0))

    def extreme_interval(self, level: float = 0.95, *, worst: bool = True) -> Ends:
        """The interval of the lowest (else the highest) true mean, whichever group has it; None as :meth:`alike_p`.

        The lowest of several means is too low by selection. So its upper end is the lowest of upper ends that hold at once for all
        groups that may be the lowest, and its lower end the lowest of the groups' own.
        """
        if not self.enough:
            return None
        sign = 1.0 if worst else -1.0
        means = sign * self.means
        first = int(np.argmin(means))
        apart = np.diag(self.covariance) + self.covariance[first, first] - 2 * self.covariance[first]
        df = self.clusters - 1.0
        alpha = 1 - level
        near = means - means[first] <= scipy.stats.t.ppf(1 - alpha / 2, df) * np.sqrt(np.maximum(apart, 0.0))
        near[first] = True
        several = int(near.sum())
        # Where groups lie together, the lower end errs hardly ever, and leaves the upper one most of the level.
        above = alpha / 2 if several == 1 else 0.9 * alpha
        lows = [self._end(place, alpha / 2, -sign) * sign for place in range(len(means))]
        highs = [self._end(int(place), above / several, sign) * sign for place in np.flatnonzero(near)]
        ends = sorted((sign * min(lows), sign * min(highs)))
        return ends[0], ends[1]

    def _end(self, place: int, tail: float, way: float) -> float:
        """One end of a single group's interval, with ``tail`` beyond it."""
        t, z = float(scipy.stats.t.ppf(1 - tail, self.clusters[place] - 1.0)), float(scipy.stats.norm.ppf(1 - tail))
        mean, variance = float(self.means[place]), float(self.covariance[place, place])
        if self.low is None or self.high is None:
            return mean + way * t * math.sqrt(variance)
        width = self.high - self.low
        rate = min(max((mean - self.low) / width, 0.0), 1.0)
        if rate == (1.0 if way > 0 else 0.0):
            return mean
        size = rate * (1 - rate) * width**2 / variance if 0 < rate < 1 and variance > 0 else float(self.clusters[place])
        # Jeffreys's interval, whose tails are even where Wilson's are not (Brown, Cai & DasGupta 2001), at the effective size.
        size *= (z / t) ** 2
        beta = scipy.stats.beta(rate * size + 0.5, (1 - rate) * size + 0.5)
        return self.low + width * float(beta.ppf(tail if way < 0 else 1 - tail))

    def ranks(self, level: float = 0.95, *, higher_is_better: bool = True, simultaneous: bool = False) -> list[tuple[int, int]]:
        """The places from 1 that each group may truly have: one group is before another where their paired difference shows it.

        The differences of one group hold at once (Bonferroni), so that its places do (Mogstad and others 2024); ``simultaneous`` has those
        of all groups hold at once. Too few clusters leave every place open.

        >>> GroupMeans(("a", "b"), np.array([0.2, 0.8]), np.eye(2) * 1e-4, np.array([50, 50])).ranks()
        [(2, 2), (1, 1)]
        """
        k = len(self.codes)
        if not self.enough:
            return [(1, k)] * k
        means = self.means if higher_is_better else -self.means
        variances = np.diag(self.covariance)[:, None] + np.diag(self.covariance)[None, :] - 2 * self.covariance
        pairs = k * (k - 1) / 2 if simultaneous else k - 1
        df = np.minimum(self.clusters[:, None], self.clusters[None, :]) - 1.0
        reach = scipy.stats.t.ppf(1 - (1 - level) / 2 / pairs, df) * np.sqrt(np.maximum(variances, 0.0))
        before = (means[None, :] - means[:, None] > reach) & ~np.eye(k, dtype=bool)
        return [(1 + int(before[place].sum()), k - int(before[:, place].sum())) for place in range(k)]


def _cells(values: FloatArray, groups: Sequence[str], clusters: Sequence[str] | None) -> tuple[tuple[str, ...], FloatArray]:
    """The groups, sorted, and (clusters, 2k): the sum of each group's rows in a cluster, then how many they are."""
    codes, at = np.unique(np.asarray(groups, object).astype(str), return_inverse=True)
    numbered: dict[object, int] = {}
    names: Sequence[object] = range(len(values)) if clusters is None else clusters
    cell = np.array([numbered.setdefault(name, len(numbered)) for name in names], np.intp) * len(codes) + at
    # A sum depends in its last digit on the order of what it adds.
    order = np.argsort(values)
    halves = [
        np.bincount(cell[order], weights, len(numbered) * len(codes)).reshape(-1, len(codes))
        for weights in (np.asarray(values)[order], None)
    ]
    return tuple(map(str, codes)), np.hstack(halves).astype(np.float64)


def new_group_reach(means: FloatArray, level: float = 0.95, *, several: int = 1) -> FloatArray:
    """How far from the mean of k groups' means (…, k), three or more, that of one more is to be expected: (…).

    A prediction interval by Student's t with k − 1 degrees of freedom, for groups that are a sample of many, normally distributed, and
    sampled as much each; ``several`` of them hold at once (Bonferroni).
    """
    k = means.shape[-1]
    reach: FloatArray = scipy.stats.t.ppf(1 - (1 - level) / 2 / several, k - 1) * means.std(axis=-1, ddof=1) * math.sqrt(1 + 1 / k)
    return reach


def new_group_interval(means: FloatArray, level: float = 0.95) -> Ends:
    """Where the mean of one more group is to be expected, by :func:`new_group_reach`; None below three groups.

    >>> [round(end, 3) for end in new_group_interval(np.array([0.6, 0.7, 0.8, 0.7]))]
    [0.409, 0.991]
    """
    if len(means) < 3:
        return None
    mean, reach = float(means.mean()), float(new_group_reach(means, level))
    return mean - reach, mean + reach


def worst_shares(
    values: FloatArray, groups: Sequence[str], clusters: Sequence[str] | None, resampling: Resampling, *, higher_is_better: bool = True
) -> dict[str, float]:
    """In what share of resamples of clusters each group has the lowest mean (ties shared); groups sorted by code.

    >>> worst_shares(np.array([1.0, 0.0] * 5), ["a", "b"] * 5, list("1122334455"), Resampling(n_resamples=20))
    {'a': 0.0, 'b': 1.0}
    """
    codes, units = _cells(values, groups, clusters)
    sums = resampled_sums(units[lexical_order(units)], resampling)
    means = ratio(sums[:, : len(codes)], sums[:, len(codes) :])
    means = np.where(np.isnan(means), np.inf, means if higher_is_better else -means)
    lowest = means == means.min(axis=1, keepdims=True)
    shares = (lowest / lowest.sum(axis=1, keepdims=True)).mean(axis=0)
    return dict(zip(codes, map(float, shares), strict=True))


def spread_difference(first: GroupMeans, second: GroupMeans, level: float = 0.95) -> Difference:
    """How much more unequal the second is: the difference of true spreads, with its interval from both (MOVER; Zou and Donner 2008).

    None where one of them has no spread.
    """
    spreads = first.spread(), second.spread()
    if spreads[0] is None or spreads[1] is None:
        return None
    return _difference(spreads[0], first.spread_interval(level), spreads[1], second.spread_interval(level))


def extreme_difference(first: GroupMeans, second: GroupMeans, level: float = 0.95, *, worst: bool = True) -> Difference:
    """How far the lowest (else the highest) mean of the second is above that of the first, as :func:`spread_difference`."""
    seen = [float(means.means.min() if worst else means.means.max()) for means in (first, second)]
    return _difference(seen[0], first.extreme_interval(level, worst=worst), seen[1], second.extreme_interval(level, worst=worst))


def _difference(first: float, of_first: Ends, second: float, of_second: Ends) -> Difference:
    if of_first is None or of_second is None:
        return None
    difference = second - first
    low = difference - math.hypot(second - of_second[0], of_first[1] - first)
    return difference, (low, difference + math.hypot(of_second[1] - second, first - of_first[0]))


def inversion_p(interval: Callable[[float], Ends]) -> float:
    """The p-value of no difference from its interval at any level: 1 less the highest level that leaves out 0, to a part in a hundred.

    Never below 1 in 10,000, and 1 where not even half of the level leaves out 0.
    """

    def leaves_out(p: float) -> bool:
        ends = interval(1 - p)
        return ends is not None and not ends[0] <= 0 <= ends[1]

    low, high = 1e-4, 0.5
    if leaves_out(low) or not leaves_out(high):
        return low if leaves_out(low) else 1.0
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if leaves_out(middle) else (middle, high)
    return high


def _variance_at_ends(share: FloatArray, counts: FloatArray, variance: float) -> float:
    mean = float((share * counts).sum() / counts.sum())
    losses = np.where(np.abs(share if mean < 0.5 else 1 - share) < 1e-12, 0.0, share if mean < 0.5 else 1 - share)
    n = len(losses)
    if not losses.any():
        # As wide as Wilson's interval of no loss among as many clusters, at two standard errors.
        return (2.0 / (n + 4.0)) ** 2
    return with_unseen(float((losses * counts).sum() / counts.sum()), variance, losses, bool(n == counts.sum())) if n > 1 else variance


def _two_sided(difference: float, error: float, df: float) -> float:
    # Without an error nothing is known of it, and nothing is shown.
    if not error > 0:
        return 1.0
    return 2 * float(scipy.stats.t.sf(abs(difference) / error, df))


def _noncentrality(seen: float, df1: float, df2: float, tail: float) -> float:
    """The noncentrality, in units of the noise as estimated, under which less than ``seen`` has the probability ``tail``.

    0 where even none gives less. The estimate of the noise has ``df2`` degrees of freedom.
    """
    if seen > _FAR:
        # The root of a noncentral χ² is normal there, with variance 1.
        return max(math.sqrt(seen) - float(scipy.stats.t.ppf(tail, df2)), 0.0) ** 2
    if float(scipy.stats.f.cdf(seen / df1, df1, df2)) <= tail:
        return 0.0
    noise = scipy.stats.chi2.ppf((np.arange(_NOISES) + 0.5) / _NOISES, df2) / df2

    def beyond(noncentrality: float) -> float:
        return float(np.mean(scipy.stats.ncx2.cdf(seen * noise, df1, noncentrality * noise))) - tail

    most = max(4.0, 2 * seen)
    while beyond(most) > 0:
        most *= 2
    return float(scipy.optimize.brentq(beyond, 1e-12, most, xtol=1e-9, rtol=1e-9))
