"""What the planner promises, against simulation of the very tests that the tools run.

Asked of the cases below: within two points of power, four for a language near an end of the scale, and the noise of the simulation.
``python tests/benchmarks/planner_power.py --runs 4000`` prints the table and ends with 1 where a promise is missed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.stats

from t2i_parity.generate.compare import sign_flip_p
from t2i_parity.metrics._common import FloatArray, Resampling, paired_interval, paired_rates
from t2i_parity.metrics._inference import GroupMeans
from t2i_parity.metrics.dialect_penalty.core import compute
from t2i_parity.metrics.planning import Design, Gap, Means, PairedRates, Spread, unseen_losses

WITHIN, NEAR_ENDS = 0.02, 0.04
ALPHA = 0.05


@dataclass(frozen=True)
class Case:
    """One promise, and the function that says of one drawn sample whether its test showed it."""

    what: str
    design: Design
    difference: float
    n: int
    shown: Callable[[np.random.Generator], bool]
    equivalent: bool = False
    within: float = WITHIN

    @property
    def promised(self) -> float:
        """The power that the planner tells."""
        return (self.design.equivalence if self.equivalent else self.design.power)(self.difference, self.n)

    def simulated(self, runs: int, seed: int = 0) -> float:
        """The share of samples in which the test showed it."""
        rng = np.random.default_rng(seed)
        return sum(self.shown(rng) for _ in range(runs)) / runs


def flags(rng: np.random.Generator, design: PairedRates, difference: float, n: int) -> FloatArray:
    """(n, 2) flags of reference and variety."""
    up, down = design.discordance(difference)
    both = design.rate - down
    cell = rng.choice(4, n, p=np.clip([both, down, up, 1 - both - up - down], 0, 1))
    return np.column_stack([cell <= 1, (cell == 0) | (cell == 2)]).astype(np.float64)


def repeated(rng: np.random.Generator, design: PairedRates, difference: float, n: int) -> FloatArray:
    """(n · images, 2) flags of n meanings."""
    own = flags(rng, design, difference, n * design.images).reshape(n, design.images, 2)
    shared = flags(rng, design, difference, n)[:, None, :]
    # An image shows what its meaning has with the chance √icc, so that two of them agree in it with the chance icc.
    drawn = np.where(rng.random((n, design.images, 1)) < math.sqrt(design.icc), shared, own)
    return np.asarray(drawn.reshape(n * design.images, 2))


def rates(design: PairedRates, difference: float, n: int) -> Case:
    """ΔTPR: the p-value of the dialect penalty, Holm's first step."""

    def shown(rng: np.random.Generator) -> bool:
        drawn = flags(rng, design, difference, n)
        answer = compute(*(drawn == 1).T.tolist(), ["toxic"] * n, n_resamples=0)
        return float(answer["p_tpr"]) < ALPHA / design.family

    return Case(f"dialect: rate {design.rate:g}, φ {design.correlation:g}, family {design.family}", design, difference, n, shown)


def conditioned(design: PairedRates, difference: float, n: int) -> Case:
    """TBR: the test of the pairs that count."""

    def shown(rng: np.random.Generator) -> bool:
        counted = rng.random(n) < design.usable
        answer, _ = paired_rates("tbr", flags(rng, design, difference, n), counted, None, Resampling(n_resamples=0))
        return answer["p_value"] is not None and float(answer["p_value"]) < ALPHA / design.family

    return Case(f"bypass: {design.usable:.0%} of pairs usable, family {design.family}", design, difference, n, shown)


def clustered(design: PairedRates, difference: float, n: int) -> Case:
    """Several images a meaning: the sign-flip test of meanings."""

    def shown(rng: np.random.Generator) -> bool:
        drawn = repeated(rng, design, difference, n).reshape(n, design.images, 2)
        counted = rng.random((n, design.images)) < design.usable
        sums = ((drawn[..., 1] - drawn[..., 0]) * counted).sum(axis=1)[counted.any(axis=1)]
        return sign_flip_p(sums) < ALPHA / design.family

    what = f"censorship: {design.images} images, icc {design.icc:g}, {design.usable:.0%} usable, family {design.family}"
    return Case(what, design, difference, n, shown)


def alike_rates(design: PairedRates, margin: float, n: int) -> Case:
    """Equivalence of rates: the whole interval within the margin."""

    def shown(rng: np.random.Generator) -> bool:
        drawn = repeated(rng, design, 0.0, n)
        meanings = np.repeat(np.arange(n), design.images).astype(str)
        kept = rng.random(n * design.images) < design.usable
        ends = paired_interval(*drawn[kept].T, meanings[kept].tolist())
        return ends is not None and -margin < ends[0] and ends[1] < margin

    what = f"rates equivalent, {design.usable:.0%} usable, {design.images} images"
    return Case(what, design, margin, n, shown, equivalent=True)


def pictures(
    rng: np.random.Generator, n: int, means: FloatArray, deviation: float, correlation: float, images: int = 1, icc: float = 0.0
) -> FloatArray:
    """(n, groups) numbers, each the mean of a meaning's images in a group; ``icc`` is that of what groups do not share."""
    k = len(means)
    meaning, cell, image = rng.normal(size=(n, 1, 1)), rng.normal(size=(n, k, 1)), rng.normal(size=(n, k, images))
    own = math.sqrt(icc) * cell + math.sqrt(1 - icc) * image
    drawn = means[None, :, None] + deviation * (math.sqrt(correlation) * meaning + math.sqrt(1 - correlation) * own)
    return np.asarray(drawn.mean(axis=2))


def group_means(drawn: FloatArray) -> GroupMeans:
    """As scoring has them."""
    n, k = drawn.shape
    return GroupMeans.of(
        np.clip(drawn, 0, 1).ravel(), [f"{code:02d}" for code in range(k)] * n, np.repeat(np.arange(n), k).astype(str).tolist()
    )


@dataclass(frozen=True)
class World:
    """Languages whose numbers lie in [0, 1], with what a planner would have to know of them, as many draws tell it."""

    means: tuple[float, ...]
    deviation: float = 0.2
    correlation: float = 0.36
    images: int = 1
    icc: float = 0.0

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """(n, languages)"""
        drawn = pictures(rng, n, np.array(self.means), self.deviation, self.correlation, self.images, self.icc)
        return np.clip(drawn, 0, 1) if self.images == 1 else drawn

    def known(self) -> tuple[FloatArray, float, float, float]:
        """The true means, σ and ρ of single images, and the share at the end that the mean is nearer to."""
        if self.images > 1:
            return np.array(self.means), self.deviation, self.correlation, 0.0
        drawn = self.draw(np.random.default_rng(1), 100_000)
        covariance = np.cov(drawn.T)
        variance = float(np.diag(covariance).mean())
        within = variance - (float(covariance.sum()) - np.trace(covariance)) / (len(covariance) * (len(covariance) - 1))
        perfect = float((drawn == round(float(drawn.mean()))).mean())
        return drawn.mean(axis=0), math.sqrt(variance), 1 - within / variance, perfect


def contrast(n: int, world: World, margin: float = 0.0, within: float = WITHIN) -> Case:
    """One language against the mean of the others, or equivalent to it by simultaneous intervals."""
    k = len(world.means)
    means, deviation, correlation, perfect = world.known()
    design = Gap(deviation, correlation, k, float(means[1:].mean()), perfect, world.images, world.icc)

    def shown(rng: np.random.Generator) -> bool:
        found = group_means(world.draw(rng, n)).contrasts()[0]
        if not margin:
            return found.p < ALPHA / k
        return found.interval is not None and -margin < found.interval[0] and found.interval[1] < margin

    what = f"precision{' equivalent' if margin else ''}: {k} languages, {world.images} images, {perfect:.0%} perfect"
    return Case(what, design, margin or float(means[0] - means[1:].mean()), n, shown, bool(margin), within)


def runs(design: Means, difference: float, n: int) -> Case:
    """Two runs in one language: the sign-flip test."""

    def shown(rng: np.random.Generator) -> bool:
        return sign_flip_p(rng.normal(difference, design.deviation, n)) < ALPHA / design.family

    return Case(f"runs: family {design.family}", design, difference, n, shown)


def spread(n: int, world: World, margin: float = 0.0) -> Case:
    """All languages served alike, or the upper end of the spread's interval below a margin."""
    k = len(world.means)
    means, deviation, correlation, perfect = world.known()
    within = deviation * math.sqrt(1 - correlation)
    unseen = unseen_losses(float(means.mean()), perfect, deviation, within)
    design = Spread(k, within, world.images, world.icc, unseen)

    def shown(rng: np.random.Generator) -> bool:
        found = group_means(world.draw(rng, n))
        if not margin:
            p = found.alike_p()
            return p is not None and p < ALPHA
        ends = found.spread_interval()
        return ends is not None and ends[1] < margin

    what = f"spread{' equivalent' if margin else ''}: {k} languages, {world.images} images, {perfect:.0%} perfect"
    return Case(what, design, margin or float(means.std()), n, shown, equivalent=bool(margin))


def unlike(languages: int, spread: float, middle: float = 0.55) -> tuple[float, ...]:
    """Evenly spaced means with this standard deviation."""
    means = np.linspace(-1, 1, languages)
    return tuple((middle + spread * means / means.std()).tolist())


def one_apart(languages: int, difference: float, middle: float = 0.55) -> tuple[float, ...]:
    """All means alike but the first."""
    return (middle + difference, *[middle] * (languages - 1))


def countries(design: Means, difference: float, n: int) -> Case:
    """The gain with a country's name: the paired t test over countries."""

    def shown(rng: np.random.Generator) -> bool:
        return bool(scipy.stats.ttest_1samp(rng.normal(difference, design.deviation, n), 0).pvalue < ALPHA)

    return Case("gain over countries", design, difference, n, shown)


def raters(design: Means, difference: float, n: int) -> Case:
    """The ratings of two countries, marks from 1 to 5."""

    def shown(rng: np.random.Generator) -> bool:
        who, each = rng.normal(size=(2, n, 1)), rng.normal(size=(2, n, design.images))
        marks = design.deviation * (math.sqrt(design.icc) * who + math.sqrt(1 - design.icc) * each).mean(axis=2)
        return bool(scipy.stats.ttest_ind(marks[0] + difference, marks[1]).pvalue < ALPHA / design.family)

    return Case(f"ratings: {design.images} images, family {design.family}", design, difference, n, shown)


def alike(design: Means, margin: float, n: int) -> Case:
    """Means equivalent by their t interval."""
    two = design.samples == 2

    def shown(rng: np.random.Generator) -> bool:
        first, second = rng.normal(0, design.deviation, (2, n))
        found = scipy.stats.ttest_ind(first, second) if two else scipy.stats.ttest_1samp(first, 0)
        ends = found.confidence_interval(0.95)
        return bool(-margin < ends.low and ends.high < margin)

    return Case(f"{'ratings' if two else 'gain'} equivalent", design, margin, n, shown, equivalent=True)


def cases() -> Iterator[Case]:
    """Every kind of question, small samples and large, single tests and families, one image and several."""
    for rate, correlation, difference, n, family in (
        (0.37, 0.72, -0.1, 60, 5), (0.37, 0.72, -0.1, 60, 1), (0.37, 0.72, -0.1, 152, 5), (0.72, 0.5, 0.1, 120, 5),
        (0.04, 0.33, 0.1, 80, 5), (0.04, 0.33, 0.05, 400, 5), (0.5, 0.0, -0.2, 60, 1), (0.9, 0.5, -0.05, 300, 1),
    ):  # fmt: skip
        yield rates(PairedRates(rate, correlation, family=family), difference, n)
    yield conditioned(PairedRates(0.64, 0.72, usable=0.14, family=5), -0.1, 1000)
    yield conditioned(PairedRates(0.64, 0.33, usable=0.5), -0.2, 120)
    yield clustered(PairedRates(0.2, 0.33, images=4, icc=0.5), 0.1, 40)
    yield clustered(PairedRates(0.2, 0.33, images=4, icc=0.2, family=5), 0.1, 80)
    yield clustered(PairedRates(0.64, 0.72, usable=0.5, images=3, icc=0.4), -0.1, 120)
    for usable, margin, n in ((1.0, 0.05, 400), (1.0, 0.1, 120), (0.5, 0.1, 250)):
        yield alike_rates(PairedRates(0.37, 0.72, usable=usable), margin, n)
    yield alike_rates(PairedRates(0.2, 0.33, images=4, icc=0.3), 0.1, 80)
    yield contrast(40, World(one_apart(10, -0.1)))
    yield contrast(20, World(one_apart(10, -0.1)))
    for n, difference, middle, deviation in ((40, -0.15, 0.8, 0.35), (40, -0.15, 0.9, 0.3), (60, -0.1, 0.8, 0.3)):
        yield contrast(n, World(one_apart(10, difference, middle), deviation), within=NEAR_ENDS)
    yield contrast(80, World(one_apart(4, -0.05), images=4, icc=0.3))
    yield contrast(50, World((0.55,) * 10), 0.1)
    yield runs(Means(0.28, family=10, flips=True), 0.15, 40)
    yield runs(Means(0.28, family=3, flips=True), 0.3, 12)
    for difference, n, groups in ((0.05, 20, 10), (0.03, 60, 10), (0.05, 12, 10), (0.05, 40, 3), (0.02, 300, 10)):
        yield spread(n, World(unlike(groups, difference)))
    yield spread(40, World(unlike(10, 0.05, 0.8), 0.35))
    yield spread(30, World(unlike(10, 0.04), images=4, icc=0.4))
    yield spread(40, World((0.55,) * 10), 0.05)
    yield spread(80, World((0.55,) * 10), 0.03)
    yield countries(Means(0.33), 0.2, 27)
    yield raters(Means(1.3, 40, 0.41, limit=4.0, samples=2), 0.8, 20)
    yield raters(Means(1.3, 8, 0.41, family=26, limit=4.0, samples=2), 0.8, 60)
    yield alike(Means(1.0, limit=4.0, samples=2), 0.5, 100)
    yield alike(Means(1.0), 0.5, 50)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=4000, help="samples a case (default: %(default)s)")
    count = parser.parse_args().runs
    noise = 3 * math.sqrt(0.25 / count)
    missed = 0
    print(f"{'promise':<62} {'n':>5} {'difference':>10} {'promised':>9} {'simulated':>10}  and {noise:.3f} of noise")
    for case in cases():
        simulated = case.simulated(count)
        holds = abs(simulated - case.promised) <= case.within + noise
        missed += not holds
        numbers = f"{case.n:>5} {case.difference:>10.3f} {case.promised:>9.3f} {simulated:>10.3f}"
        print(f"{case.what:<62} {numbers}  {'holds' if holds else 'MISSED'}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
