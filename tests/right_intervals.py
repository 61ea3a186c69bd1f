"""Intervals by other ways than ours: a search where ours is closed, a loop where ours is summed at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import scipy.optimize
import scipy.stats
from scipy.special import xlogy
from statsmodels.stats.proportion import proportion_confint


def tango_by_search(up: float, down: float, n: float, z: float = 1.959963984540054) -> tuple[float, float]:
    """The differences of paired proportions that a score test does not refuse, its nuisance by maximising the likelihood numerically."""

    def score(shift: float) -> float:
        def loss(rarer: float) -> float:
            both = [rarer + max(shift, 0.0), rarer + max(-shift, 0.0)]
            return -float(xlogy(up, both[0]) + xlogy(down, both[1]) + xlogy(n - up - down, max(1 - sum(both), 0.0)))

        most = (1 - abs(shift)) / 2
        rarer = float(scipy.optimize.minimize_scalar(loss, bounds=(0, most), method="bounded", options={"xatol": 1e-13}).x)
        variance = n * (2 * rarer + abs(shift) - shift**2)
        return (up - down - n * shift) / math.sqrt(max(variance, 1e-300))

    seen = (up - down) / n

    def end(way: int) -> float:
        far = way * (1 - 1e-9)
        if abs(score(far)) < z:
            return float(way)
        return float(scipy.optimize.brentq(lambda shift: abs(score(shift)) - z, seen + way * 1e-9, far, xtol=1e-10))

    return end(-1), end(1)


def mean_by_loop(values: Sequence[float], clusters: Sequence[str]) -> tuple[float, float]:
    """Wilson's interval of a mean in 0 to 1 whose clusters none lie at the nearer end, at the effective size and with Student's t."""
    mean, n = sum(values) / len(values), len(set(clusters))
    variance = 0.0
    for name in set(clusters):
        own = [value for value, cluster in zip(values, clusters, strict=True) if cluster == name]
        variance += (sum(own) - mean * len(own)) ** 2
    variance *= n / (n - 1) / len(values) ** 2
    size = mean * (1 - mean) / variance
    t = scipy.stats.t.ppf(0.975, n - 1)
    low, high = proportion_confint(mean * size, size, 2 * scipy.stats.norm.sf(t), "wilson")
    return float(low), float(high)
