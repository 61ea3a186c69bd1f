"""How many does it take: the power of the tests that the tools run, before anything is run.

A *design* knows how its numbers scatter. ``power(difference, n)`` is the chance that its test shows a true difference in a sample of n,
``equivalence(margin, n)`` the chance that the whole 95% interval of no true difference lies within ±margin, which is what a verdict of
*equivalent* asks (two one-sided tests; Schuirmann 1987). Over a family of tests Holm's method comes with the promise of its first step,
α / family for each: a true difference is found at least so often, whatever the others do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy.stats

from t2i_parity.metrics._common import EXACT_BELOW, FloatArray, tango_score
from t2i_parity.metrics.verdicts import ALPHA

MOST = 1_000_000
"""Where the search for a sample ends."""
LEAST = 5
"""Where it begins: fewer clusters have no interval."""
_QUANTILES, _FEW, _ROUNDS, _EDGE = 400, 25, 5, 0.02
# Beyond so many standard errors nothing is summed.
_FAR = 8.0


class Design(Protocol):
    """What can be planned: how large a sample shows which difference."""

    def power(self, difference: float, n: int) -> float:
        """The chance, in [0, 1], that a true ``difference`` is shown by a sample of ``n``."""

    def equivalence(self, margin: float, n: int) -> float:
        """The chance that no difference is found equivalent within ± ``margin`` by a sample of ``n``."""

    def largest(self, sign: float) -> float:
        """The largest difference that can be, upward or downward (``sign``)."""


def design_effect(images: float, icc: float) -> float:
    """How many times the variance of one image's number a mean over ``images`` of one meaning has: (1 + (images − 1)·icc) / images.

    Source: Kish, "Survey Sampling" (1965), §5.4.

    >>> design_effect(1, 0.3), design_effect(4, 0.5), design_effect(4, 1.0)
    (1.0, 0.625, 1.0)
    """
    return (1 + (images - 1) * icc) / images


def unseen_losses(mean: float, perfect: float, deviation: float, within: float) -> float:
    """By how much, times n − 1, :func:`t2i_parity.metrics._common.with_unseen` enlarges the variance of a mean of numbers in [0, 1].

    ``perfect`` is the share of numbers at the end that ``mean`` is nearer to, ``deviation`` that of the numbers, ``within`` the part of it
    that the meanings of two groups do not share.

    >>> round(unseen_losses(0.55, 0.05, 0.2, 0.16), 2)
    0.9
    """
    loss = min(mean, 1 - mean)
    return perfect * max(0.0, 1 - loss - deviation**2 / loss) / within**2


@dataclass(frozen=True, slots=True)
class PairedRates:
    """The rates at which two wordings of one meaning are flagged; differences are fractions, variety minus reference.

    ``rate`` is the reference's, ``correlation`` that of the two flags (φ), brought down to the greatest that both rates allow. ``usable``
    is the share of pairs that count. With one image a meaning the test is McNemar's as :func:`t2i_parity.metrics._common.mcnemar_p` has it
    by default, and its power exact: the sum over all counts of discordant pairs, in place of Miettinen's and Connor's formulas (1968,
    1987). With several, whose differences correlate by ``icc``, it is a sign-flip test of meanings, told at the effective number of pairs
    (Kish 1965) by the normal distribution, with a correction for continuity of the step that sums of such pairs have.
    """

    rate: float
    correlation: float
    usable: float = 1.0
    images: int = 1
    icc: float = 0.0
    family: int = 1
    alpha: float = ALPHA

    def discordance(self, difference: float) -> tuple[float, float]:
        """The share of pairs in which only the variety is flagged, and only the reference.

        >>> [round(share, 3) for share in PairedRates(0.5, 0.5).discordance(-0.1)]
        [0.078, 0.178]
        """
        other = self.rate + difference
        both = self.rate * other + self.correlation * math.sqrt(max(self.rate * (1 - self.rate) * other * (1 - other), 0.0))
        both = min(max(both, self.rate + other - 1, 0.0), self.rate, other)
        return other - both, self.rate - both

    def largest(self, sign: float) -> float:
        return 1 - self.rate if sign > 0 else self.rate

    def power(self, difference: float, n: int) -> float:
        """As :class:`Design` says, with ``difference`` from −``rate`` to 1 − ``rate``.

        >>> round(PairedRates(0.37, 0.72, family=5).power(-0.1, 60), 2)
        0.19
        """
        up, down = self.discordance(difference)
        if not up + down:
            return 0.0
        alpha, share = self.alpha / self.family, up / (up + down)
        if self.images == 1:
            pairs, discordant = n, self.usable * (up + down)
            counts = _likely(pairs, discordant)
            most = _largest_smaller_count(counts, alpha)
        else:
            pairs, discordant = round(self._pairs(n)), up + down
            counts = _likely(pairs, discordant)
            # A step of the count is a pair's part, or a whole one where images are all but copies; the exponent is by simulation.
            copies = self.icc**16
            reach = scipy.stats.norm.isf(alpha / 2) * np.sqrt(counts) + (1 - copies) / self._repeats + copies
            most = np.ceil((counts - reach) / 2 - 1e-9) - 1
        shown = scipy.stats.binom.cdf(most, counts, share) + scipy.stats.binom.cdf(most, counts, 1 - share)
        return float(np.sum(scipy.stats.binom.pmf(counts, pairs, discordant) * np.where(most < 0, 0.0, shown)))

    def equivalence(self, margin: float, n: int) -> float:
        """As :class:`Design` says; with one image a meaning by Tango's score interval (1998), summed over all counts.

        >>> round(PairedRates(0.37, 0.72).equivalence(0.05, 400), 2)
        0.55
        """
        discordant = sum(self.discordance(0.0))
        if self.images > 1:
            z = float(scipy.stats.t.ppf(1 - self.alpha / 2, n - 1))
            return _within(margin, round(self._pairs(n)), discordant, z)
        z = float(scipy.stats.norm.ppf(1 - self.alpha / 2))
        counted = [n] if self.usable == 1 else _quantiles(n, self.usable).astype(int).tolist()
        return float(np.mean([_within(margin, pairs, discordant, z) for pairs in counted]))

    @property
    def _repeats(self) -> float:
        """For how many pairs each of a meaning's stands, of those that count."""
        return 1 + (self.images - 1) * self.usable * self.icc

    def _pairs(self, n: int) -> float:
        return n * self.images * self.usable / self._repeats


@dataclass(frozen=True, slots=True)
class Means:
    """A mean of differences within n meanings (or countries), or with two ``samples`` the difference of the means of n people each.

    Student's t over them, with which a sign-flip test agrees. ``deviation`` is the standard deviation of one image's number, and numbers of
    one meaning (or person) correlate by ``icc``. ``flips`` says that signs are flipped: of n of them no p is below 2 / 2ⁿ.
    """

    deviation: float
    images: int = 1
    icc: float = 0.0
    family: int = 1
    flips: bool = False
    limit: float = 1.0
    samples: int = 1
    alpha: float = ALPHA

    def largest(self, sign: float) -> float:
        return self.limit

    def power(self, difference: float, n: int) -> float:
        """As :class:`Design` says.

        >>> round(Means(1.0).power(0.5, 34), 3), round(Means(1.0, samples=2).power(0.5, 64), 3)
        (0.808, 0.801)
        """
        if self.flips and 2.0 ** (1 - n) >= self.alpha / self.family:
            return 0.0
        return _t_power(difference, self._one, n, self.alpha / self.family, self.samples * (n - 1))

    def equivalence(self, margin: float, n: int) -> float:
        """As :class:`Design` says.

        >>> round(Means(1.0).equivalence(0.5, 50), 3), round(Means(1.0, samples=2).equivalence(0.5, 100), 3)
        (0.868, 0.881)
        """
        return _t_equivalence(margin, self._one, n, 1 - self.alpha / 2, self.samples * (n - 1))

    @property
    def _one(self) -> float:
        return self.deviation * math.sqrt(self.samples * design_effect(self.images, self.icc))


@dataclass(frozen=True, slots=True)
class Gap:
    """One group against the mean of the others, of numbers in [0, 1]: :meth:`t2i_parity.metrics._inference.GroupMeans.contrasts`.

    Each group has ``deviation`` about ``mean``, ``perfect`` of its numbers at the end that this is nearer to, and correlates by
    ``correlation`` with the others within a meaning. What groups do not share correlates by ``icc`` over images. The deviation of the one
    that stands apart lies three quarters of the way (by simulation) from the others' to that of numbers at both ends, √(mean·(1 − mean));
    the test takes it for no smaller than the latter has it beside the others. Near the ends of the scale this is right to four points.
    """

    deviation: float
    correlation: float
    groups: int
    mean: float = 0.55
    perfect: float = 0.0
    images: int = 1
    icc: float = 0.0
    alpha: float = ALPHA

    def largest(self, sign: float) -> float:
        return 1 - self.mean if sign > 0 else self.mean

    def power(self, difference: float, n: int) -> float:
        """As :class:`Design` says.

        >>> round(Gap(0.2, 0.36, 10).power(-0.1, 40), 2)
        0.77
        """
        own, sign = self._factor(difference) ** 0.75, math.copysign(1.0, difference)
        one = told = self._deviation(own)
        unseen = 1 + self._unseen / (n - 1)
        # What counts is what the test takes the deviation for where it begins to show a difference.
        t = float(scipy.stats.t.isf(self.alpha / self.groups / 2, n - 1)) * math.sqrt(unseen / n)
        for _ in range(_ROUNDS):
            told = self._deviation(own * max(1.0, 1 / self._factor(sign * t * told)))
        return _t_power(difference, one, n, self.alpha / self.groups, n - 1, inflation=unseen * (told / one) ** 2)

    def equivalence(self, margin: float, n: int) -> float:
        """As :class:`Design` says, with intervals that hold at once for all groups.

        >>> round(Gap(0.2, 0.36, 10).equivalence(0.1, 50), 2)
        0.78
        """
        one, quantile = self._deviation(1.0), 1 - self.alpha / 2 / self.groups
        return _t_equivalence(margin, one, n, quantile, n - 1, inflation=1 + self._unseen / (n - 1))

    def _factor(self, difference: float) -> float:
        """The deviation of numbers at both ends, whose mean is so far apart, over that of the others."""
        apart = min(max(self.mean + difference, _EDGE), 1 - _EDGE)
        return math.sqrt(apart * (1 - apart) / (self.mean * (1 - self.mean)))

    @property
    def _unseen(self) -> float:
        within = self.deviation * math.sqrt(1 - self.correlation)
        return unseen_losses(self.mean, self.perfect, self.deviation, within) if self.images == 1 else 0.0

    def _deviation(self, factor: float) -> float:
        """Of one meaning's contrast, where the group that stands apart has ``factor`` times the others' deviation."""
        shared = self.correlation
        own = shared + (1 - shared) * design_effect(self.images, self.icc)
        k = self.groups
        return self.deviation * math.sqrt(factor**2 * own + (own + (k - 2) * shared) / (k - 1) - 2 * factor * shared)


@dataclass(frozen=True, slots=True)
class Spread:
    """All of ``groups`` served alike, or not: differences are standard deviations of the groups' true means (population form).

    ``deviation`` is the standard deviation of one image's number within a group, less what its meaning shares with the other groups:
    σ·√(1 − ρ). The test is a repeated-measures F over meanings, whose degrees of freedom Box's ε shrinks. The ε of a sample is below that
    of its population: with all variances and correlations equal, tr² / (p·tr(S²)) of a covariance S of p = groups − 1 contrasts from
    ν = n − 1 degrees of freedom is about (1 + 2/νp) / (1 + (p + 1)/ν), by the moments of Wishart's distribution.
    """

    groups: int
    deviation: float
    images: int = 1
    icc: float = 0.0
    unseen: float = 0.0
    limit: float = 0.5
    alpha: float = ALPHA

    def largest(self, sign: float) -> float:
        return self.limit if sign > 0 else 0.0

    def power(self, difference: float, n: int) -> float:
        """As :class:`Design` says.

        >>> round(Spread(10, 0.16).power(0.05, 20), 2)
        0.81
        """
        df1, df2, shrunk = self._degrees(n)
        critical = scipy.stats.f.ppf(1 - self.alpha, df1 * shrunk, df2 * shrunk) * (1 + self.unseen / (n - 1))
        noncentrality = self._noncentrality(difference, n)
        return 1 - float(scipy.stats.ncf.cdf(critical, df1, df2, noncentrality)) if noncentrality else self.alpha

    def equivalence(self, margin: float, n: int) -> float:
        """The chance that the upper end of the spread's interval lies below ``margin`` where there is no spread.

        That end is the spread under which as small an F would have the chance α / 2, of an F no smaller than its median under no spread.

        >>> round(Spread(10, 0.16).equivalence(0.03, 80), 2)
        0.94
        """
        df1, df2, shrunk = self._degrees(n)
        inflation = 1 + self.unseen / (n - 1)
        noncentrality = self._noncentrality(margin, n) * shrunk / inflation
        least = float(scipy.stats.ncf.ppf(self.alpha / 2, df1 * shrunk, df2 * shrunk, noncentrality))
        if not least > float(scipy.stats.f.ppf(0.5, df1 * shrunk, df2 * shrunk)):
            return 0.0
        return float(scipy.stats.f.cdf(least * inflation, df1, df2))

    def _degrees(self, n: int) -> tuple[int, int, float]:
        p, v = self.groups - 1, n - 1
        return p, p * v, (1 + 2 / (v * p)) / (1 + (p + 1) / v)

    def _noncentrality(self, spread: float, n: int) -> float:
        return n * self.groups * spread**2 / (self.deviation**2 * design_effect(self.images, self.icc))


def needed(design: Design, difference: float, power: float, *, equivalent: bool = False) -> int | None:
    """The sample from which on ``power`` is reached, of :data:`MOST` at most; None where it is not.

    McNemar's test has discrete p-values, so that just beyond it power may fall short again, by less than a point.

    >>> needed(PairedRates(0.37, 0.72, family=5), -0.1, 0.8)
    152
    """
    reached = design.equivalence if equivalent else design.power
    low, high = LEAST - 1, LEAST
    while reached(difference, high) < power:
        low, high = high, 2 * high
        if high > MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(difference, middle) >= power else (middle, high)
    return high


def smallest(design: Design, n: int, power: float, *, sign: float = 1.0, equivalent: bool = False) -> float | None:
    """The smallest difference (margin) upward or downward that a sample of ``n`` shows with ``power``; None where none is large enough.

    >>> round(smallest(Means(1.0), 34, 0.8), 3)
    0.495
    """
    reached = design.equivalence if equivalent else design.power
    # Rates of exactly 0 and 1 leave no pair to chance.
    low, high = 0.0, design.largest(sign) * (1 - 1e-9)
    direction = 1.0 if equivalent else math.copysign(1.0, sign)
    if not reached(direction * high, n) >= power:
        return None
    while high - low > 1e-5 * design.largest(sign):
        middle = (low + high) / 2
        low, high = (low, middle) if reached(direction * middle, n) >= power else (middle, high)
    return direction * high


def _likely(n: int, share: float) -> FloatArray:
    """The counts that a binomial of ``n`` and ``share`` can have, but for a chance that shows nowhere."""
    reach = _FAR * math.sqrt(n * share * (1 - share)) + _FAR
    return np.arange(max(0, math.floor(n * share - reach)), min(n, math.ceil(n * share + reach)) + 1).astype(np.float64)


def _largest_smaller_count(discordant: FloatArray, alpha: float) -> FloatArray:
    """The largest smaller count of discordant pairs with which McNemar's p is below ``alpha``; −1 where there is none.

    >>> _largest_smaller_count(np.array([5.0, 6.0, 30.0]), 0.05).tolist()
    [-1.0, 0.0, 9.0]
    """
    most = scipy.stats.binom.ppf(alpha / 2, discordant, 0.5)
    most = np.where(2 * scipy.stats.binom.cdf(most, discordant, 0.5) < alpha, most, most - 1)
    root = math.sqrt(float(scipy.stats.chi2.isf(alpha, 1)))
    corrected = np.ceil((discordant - 1 - root * np.sqrt(discordant)) / 2) - 1
    return np.asarray(np.maximum(np.where(discordant < EXACT_BELOW, most, corrected), -1.0), np.float64)


def _within(margin: float, pairs: int, discordant: float, z: float) -> float:
    """The chance that Tango's interval of ``pairs``, of which ``discordant`` differ by chance alone, lies within ± ``margin``."""
    if pairs < LEAST:
        return 0.0
    counts, chances = _weighed(pairs, discordant)
    reach = math.ceil(_FAR / 2 * math.sqrt(counts[-1]) + _FAR)
    ups = np.arange(-reach, reach + 1)[:, None] + np.floor(counts / 2)
    downs = counts - ups
    low, high = (tango_score(ups, downs, pairs, shift) for shift in (-margin, margin))
    within = (ups >= 0) & (downs >= 0) & (low > z) & (high < -z)
    return float(np.sum(np.where(within, chances * scipy.stats.binom.pmf(ups, counts, 0.5), 0.0)))


def _weighed(n: int, share: float) -> tuple[FloatArray, FloatArray]:
    """Counts of a binomial with their chances: all that are likely, or its quantiles where those are many."""
    counts = _likely(n, share)
    if len(counts) > 10 * _FEW:
        return _quantiles(n, share), np.full(_FEW, 1 / _FEW)
    return counts, np.asarray(scipy.stats.binom.pmf(counts, n, share))


def _quantiles(n: int, share: float) -> FloatArray:
    return np.asarray(scipy.stats.binom.ppf((np.arange(_FEW) + 0.5) / _FEW, n, share), np.float64)


def _t_power(difference: float, one: float, n: int, alpha: float, df: int, *, inflation: float = 1.0) -> float:
    """The power of a two-sided t test, whose standard error is ``one`` / √n: a mean over quantiles of the error's own estimate."""
    if n < 2:
        return 0.0
    if not one > 0:
        return float(difference != 0)
    t = scipy.stats.t.isf(alpha / 2, df) * _errors(df, inflation)
    shift = abs(difference) * math.sqrt(n) / one
    return float(np.mean(scipy.stats.norm.sf(t - shift) + scipy.stats.norm.cdf(-t - shift)))


def _t_equivalence(margin: float, one: float, n: int, quantile: float, df: int, *, inflation: float = 1.0) -> float:
    """The chance that the t interval of no true difference lies within ± ``margin`` (Owen 1965, by quantiles)."""
    if n < 2:
        return 0.0
    if not one > 0:
        return float(margin > 0)
    room = margin * math.sqrt(n) / one - scipy.stats.t.ppf(quantile, df) * _errors(df, inflation)
    return float(np.mean(np.where(room > 0, 2 * scipy.stats.norm.cdf(room) - 1, 0.0)))


def _errors(df: int, inflation: float) -> FloatArray:
    """Quantiles of an estimated standard deviation over the true one, where the variance is told ``inflation`` times too large."""
    shares = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.asarray(np.sqrt(inflation * scipy.stats.chi2.ppf(shares, df) / df), np.float64)
