"""How often intervals hold the truth, and how often tests cry wolf, on simulated samples of known truth.

    python tests/benchmarks/coverage.py --samples 1000

A sample is ``n`` rows, ``m`` of them to a meaning; rows of one meaning resemble each other (intraclass correlation 0.3). Each line: what
was estimated, its truth, n and m, how many samples of how many hold it, and what that is: *holds* from 93% to 97% (give or take what so few
samples can tell), *wide* above, as where a sample of few rows can only show few different things, *LOW* below, *refused* where no
interval is given. Tests without an effect are to say p < 0.05 in at most 5.5%; above that the line says *HIGH*.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from t2i_parity.metrics._common import Ends, FloatArray, mcnemar_p, mean_interval, paired_interval, stratified_interval
from t2i_parity.metrics._inference import GroupMeans, spread_difference

SIZES = (12, 30, 60, 120, 300)
CLUSTERS = (1, 3, 10)
RATES = (0.5, 0.7, 0.9, 0.97, 1.0)
ICC = 0.3
LOWEST, HIGHEST, WOLF = 0.93, 0.97, 0.055


@dataclass(frozen=True, slots=True)
class Cell:
    """One line: of ``samples``, so many held the truth (or, of a test, said p < 0.05), and so many had no interval."""

    what: str
    truth: str
    n: int
    m: int
    samples: int
    held: int
    refused: int = 0
    test: bool = False

    @property
    def share(self) -> float:
        return self.held / max(self.samples - self.refused, 1)

    @property
    def verdict(self) -> str:
        if self.refused > self.samples / 2:
            return "refused"
        slack = 2 * math.sqrt(0.05 * 0.95 / self.samples)
        if self.test:
            return "HIGH" if self.share > WOLF + slack else "holds"
        return "LOW" if self.share < LOWEST - slack else "wide" if self.share > HIGHEST + slack else "holds"

    def __str__(self) -> str:
        held = f"{self.held:>5} of {self.samples:<5} {self.share:6.3f}"
        return f"{self.what:<34} {self.truth:<22} n {self.n:>4} m {self.m:>2}  {held}  {self.verdict}"


def latent(rng: np.random.Generator, clusters: int, m: int, sides: int, shared: float) -> FloatArray:
    """(clusters, m, sides) standard normal, ``shared`` of the variance between the sides, and ``ICC`` of the rest between rows."""
    both, own = rng.normal(size=(clusters, 1, 1)), rng.normal(size=(clusters, 1, sides))
    alone = rng.normal(size=(clusters, m, sides))
    return np.sqrt(shared) * both + np.sqrt(1 - shared) * (np.sqrt(ICC) * own + np.sqrt(1 - ICC) * alone)


def right(z: FloatArray, rate: float) -> FloatArray:
    """1 at this rate, else 0."""
    return (norm.cdf(z) < rate).astype(np.float64)


def scores(z: FloatArray, perfect: float) -> FloatArray:
    """1 at this rate, else evenly spread from 0 to 1."""
    u = norm.cdf(z)
    return np.where(u < perfect, 1.0, np.clip((1 - u) / max(1 - perfect, 1e-12), 0, 1))


def names(clusters: int, m: int) -> list[str] | None:
    return None if m == 1 else [str(cluster) for cluster in range(clusters) for _ in range(m)]


def tally(samples: int, draw: Callable[[], Ends], truth: float) -> tuple[int, int]:
    held = refused = 0
    for _ in range(samples):
        ends = draw()
        if ends is None:
            refused += 1
        else:
            held += ends[0] - 1e-12 <= truth <= ends[1] + 1e-12
    return held, refused


def means(samples: int, rng: np.random.Generator, sizes: tuple[int, ...]) -> Iterator[Cell]:
    for what, make, truth_of in (
        ("proportion", right, lambda rate: rate),
        ("bounded mean", scores, lambda rate: (1 + rate) / 2),
    ):
        for rate in RATES if what == "proportion" else (0.0, *RATES[:-1]):
            for n in sizes:
                for m in CLUSTERS:
                    k = n // m
                    held = tally(
                        samples,
                        lambda k=k, m=m, rate=rate, make=make: mean_interval(make(latent(rng, k, m, 1, 0.0), rate).ravel(), names(k, m)),
                        truth_of(rate),
                    )
                    yield Cell(what, f"{truth_of(rate):.3f}", n, m, samples, *held)


def differences(samples: int, rng: np.random.Generator, sizes: tuple[int, ...]) -> Iterator[Cell]:
    for what, make, scale in (("paired proportions", right, 1.0), ("paired bounded means", scores, 0.5)):
        for rate, shift in ((0.5, 0.0), (0.5, 0.1), (0.9, -0.02), (0.9, 0.08), (0.97, 0.0), (0.99, 0.0)):
            for n in sizes:
                for m in CLUSTERS:
                    k = n // m

                    def draw(
                        k: int = k, m: int = m, rate: float = rate, shift: float = shift, make: Callable[..., FloatArray] = make
                    ) -> Ends:
                        z = latent(rng, k, m, 2, 0.5)
                        return paired_interval(make(z[:, :, 0], rate).ravel(), make(z[:, :, 1], rate + shift).ravel(), names(k, m))

                    yield Cell(what, f"{rate:g} {shift:+g}", n, m, samples, *tally(samples, draw, scale * shift))


def groups(samples: int, rng: np.random.Generator, sizes: tuple[int, ...]) -> Iterator[Cell]:
    """Ten languages: spread, extremes, and the two tests."""
    codes = [f"{place:02d}" for place in range(10)]
    shape = np.linspace(-1, 1, 10) / np.linspace(-1, 1, 10).std()
    for kind, middle in (("proportions", 0.8), ("proportions", 0.97), ("scores", 0.7)):
        for spread in (0.0, 0.01) if middle > 0.9 else (0.0, 0.02, 0.05):
            for n in sizes:
                for m in (1, 3):
                    k = n // m
                    truth = middle + shape * spread
                    counts = dict.fromkeys(("spread", "worst", "best", "alike", "contrasts", "ranks"), 0)
                    refused = 0
                    for _ in range(samples):
                        z = 0.6 * rng.normal(size=(k, 1, 1)) + 0.8 * rng.normal(size=(k, m, 10))
                        table = (z < norm.ppf(truth)).astype(float) if kind == "proportions" else truth + 0.2 * z
                        ends = (0.0, 1.0) if kind == "proportions" else (None, None)
                        found = GroupMeans.of(
                            table.ravel(), codes * (k * m), [str(c) for c in range(k) for _ in range(10 * m)], low=ends[0], high=ends[1]
                        )
                        whole, low, high = found.spread_interval(), found.extreme_interval(), found.extreme_interval(worst=False)
                        if whole is None or low is None or high is None:
                            refused += 1
                            continue
                        counts["spread"] += whole[0] - 1e-12 <= spread <= whole[1]
                        counts["worst"] += low[0] <= truth.min() <= low[1]
                        counts["best"] += high[0] <= truth.max() <= high[1]
                        counts["alike"] += (found.alike_p() or 0.0) < 0.05
                        counts["contrasts"] += min(each.p_holm for each in found.contrasts()) < 0.05
                        counts["ranks"] += any(places != (1, 10) for places in found.ranks(simultaneous=True))
                    label = f"{kind} {middle:g} ±{spread:g}"
                    for what in ("spread", "worst", "best"):
                        yield Cell(f"{what} of ten languages", label, n, m, samples, counts[what], refused)
                    if not spread:
                        for what in ("alike", "contrasts", "ranks"):
                            yield Cell(f"test: {what}", label, n, m, samples, counts[what], refused, test=True)


def comparisons(samples: int, rng: np.random.Generator, sizes: tuple[int, ...]) -> Iterator[Cell]:
    """Two runs that serve ten languages equally unequally, the second noisier."""
    codes = [f"{place:02d}" for place in range(10)]
    shape = np.linspace(-1, 1, 10) / np.linspace(-1, 1, 10).std()
    for spread in (0.0, 0.05):
        for n in sizes:
            clusters = [str(c) for c in range(n) for _ in codes]

            def draw(n: int = n, spread: float = spread, clusters: list[str] = clusters) -> Ends:
                runs = [0.7 + shape * spread + rng.normal(0, noise, (n, 10)) for noise in (0.05, 0.3)]
                one, other = (GroupMeans.of(run.ravel(), codes * n, clusters, low=None, high=None) for run in runs)
                found = spread_difference(one, other)
                return None if found is None else found[1]

            yield Cell("difference of spreads, 2nd noisier", f"±{spread:g}", n, 1, samples, *tally(samples, draw, 0.0))


def strata(samples: int, rng: np.random.Generator, sizes: tuple[int, ...]) -> Iterator[Cell]:
    """27 countries with 20 participants each, and with 2 to 20; ratings of 1 to 5."""
    del sizes
    for what, least in (("alike", 20), ("thin", 2)):

        def draw(least: int = least) -> Ends:
            rated = [rng.normal(3 + 0.05 * place, 0.8, rng.integers(least, 21)) for place in range(27)]
            means = [float(each.mean()) for each in rated]
            influence = np.concatenate([(each - each.mean()) / len(each) / 27 for each in rated])
            of = [str(place) for place, each in enumerate(rated) for _ in each]
            return stratified_interval(influence, of, float(np.mean(means)))[0]

        yield Cell("mean over countries", what, 27, 1, samples, *tally(samples, draw, 3 + 0.05 * 13))


def mcnemar(samples: int, rng: np.random.Generator, sizes: tuple[int, ...]) -> Iterator[Cell]:
    for rate in (0.1, 0.5, 0.9):
        for n in sizes:
            z = [latent(rng, n, 1, 2, 0.5)[:, 0] for _ in range(samples)]
            flags = np.array([right(each, rate) for each in z])
            only = [((flags[..., 0] != side) & (flags[..., 1] == side)).sum(axis=1) for side in (1, 0)]
            yield Cell("test: McNemar, one row a meaning", f"{rate:g}", n, 1, samples, int((mcnemar_p(*only) < 0.05).sum()), test=True)


PARTS = (means, differences, strata, mcnemar, comparisons, groups)


def cells(
    samples: int, sizes: tuple[int, ...] = SIZES, seed: int = 0, parts: tuple[Callable[..., Iterator[Cell]], ...] = PARTS
) -> Iterator[Cell]:
    """Every cell, one part after another, from one seed."""
    rng = np.random.default_rng(seed)
    for part in parts:
        yield from part(samples, rng, sizes)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=1000, help="of each cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found: dict[str, int] = {}
    for cell in cells(given.samples, seed=given.seed):
        print(cell, flush=True)
        found[cell.verdict] = found.get(cell.verdict, 0) + 1
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(found.items())))
    return int(bool({"LOW", "HIGH"} & set(found)))


if __name__ == "__main__":
    raise SystemExit(main())
