"""How often what is corrected for an instrument holds the truth, over instruments, calibrations and runs of known truth.

    python tests/benchmarks/instrument_error.py --samples 500

First the gap between two languages, seen by a judge that misses more in one of them, and by a reader that reads one of them worse: the
truth, and in how many samples what is not corrected names a language. Then the rate behind a judge's: its sensitivity and specificity, how
many pictures of each kind were labelled, the true rate, the rows. A line says *LOW* where fewer than 93% hold the truth (give or take what
so few samples can tell), and how many samples were refused.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from t2i_parity.metrics._common import FloatArray
from t2i_parity.metrics._inference import GroupMeans
from t2i_parity.metrics.instrument import Line, corrected, prevalence

ROWS = (50, 200, 1000)
LABELLED = (30, 100, 300)
JUDGES = ((0.75, 0.75), (0.75, 1.0), (0.9, 0.9), (1.0, 0.75), (1.0, 1.0))
RATES = (0.02, 0.1, 0.3, 0.6, 0.9)
CODES = ("en", "hi")


@dataclass(frozen=True, slots=True)
class Cell:
    """One line: of ``samples``, so many held the truth and so many were refused; ``named`` without a correction (None: not asked)."""

    what: str
    samples: int
    held: int
    refused: int
    named: int | None = None

    @property
    def share(self) -> float:
        return self.held / max(self.samples - self.refused, 1)

    @property
    def low(self) -> bool:
        given = self.samples - self.refused
        return given > self.samples / 2 and self.share < 0.93 - 2 * math.sqrt(0.05 * 0.95 / given)

    def __str__(self) -> str:
        named = "" if self.named is None else f", named without correction {self.named / self.samples:.3f}"
        return f"{self.what:<56} {self.share:.3f}, refused {self.refused / self.samples:.3f}{named}{'  LOW' if self.low else ''}"


def rates(samples: int, rng: np.random.Generator) -> Iterator[Cell]:
    for hit, right in JUDGES:
        for labelled in LABELLED:
            for rate in RATES:
                for n in ROWS:
                    flagged = rng.binomial(n, rate * hit + (1 - rate) * (1 - right), samples) / n
                    hits, passed = rng.binomial(labelled, hit, samples), rng.binomial(labelled, right, samples)
                    counts = zip(flagged.tolist(), hits.tolist(), passed.tolist(), strict=True)
                    found = [prevalence(seen, n, a, labelled, b, labelled) for seen, a, b in counts]
                    held = sum(each is not None and each[1] <= rate <= each[2] for each in found)
                    what = f"rate {rate:g}, judge {hit:g}/{right:g}, {labelled} labelled, n {n}"
                    yield Cell(what, samples, held, found.count(None))


def _gaps(what: str, runs: Iterator[tuple[FloatArray, dict[str, Line | None]]], samples: int, truth: float) -> Cell:
    held = refused = named = 0
    for seen, lines in runs:
        n = len(seen)
        found = GroupMeans.of(seen.ravel(), CODES * n, [str(row) for row in range(n) for _ in CODES])
        named += any(each.p < 0.05 for each in found.contrasts()[:1])
        whole = corrected(found, lines)
        ends = whole.contrasts()[0].interval if len(whole.codes) == 2 else None
        refused += ends is None
        held += ends is not None and ends[0] <= truth <= ends[1]
    return Cell(what, samples, held, refused, named)


def judges(samples: int, rng: np.random.Generator) -> Iterator[Cell]:
    """Sensitivity .95 and .75, specificity .95, three in ten images unsafe in both languages, or one in ten more in the second."""
    hits = np.array([0.95, 0.75])
    for gap in (0.0, 0.1):
        for n in (60, 300):
            for labelled in (60, 200):

                def runs(gap: float = gap, n: int = n, labelled: int = labelled) -> Iterator[tuple[FloatArray, dict[str, Line | None]]]:
                    for _ in range(samples):
                        unsafe = rng.random((n, 2)) < np.array([0.3, 0.3 + gap])
                        flagged = np.where(unsafe, rng.random((n, 2)) < hits, rng.random((n, 2)) < 0.05).astype(np.float64)
                        yield (
                            flagged,
                            {
                                code: Line.of_rates(rng.binomial(labelled, hit), labelled, rng.binomial(labelled, 0.95), labelled)
                                for code, hit in zip(CODES, hits, strict=True)
                            },
                        )

                yield _gaps(f"gap {-gap or 0.0:g} of rates, {labelled} labelled, n {n}", runs(), samples, -gap)


def readers(samples: int, rng: np.random.Generator) -> Iterator[Cell]:
    """A reader that reads .98 of what is there in one language and .6 in the other; texts of three levels of damage."""
    slopes = np.array([0.98, 0.6])
    for gap in (0.0, 0.1):
        for n in (30, 216):
            for texts in (12, 24):

                def runs(gap: float = gap, n: int = n, texts: int = texts) -> Iterator[tuple[FloatArray, dict[str, Line | None]]]:
                    level = np.tile([1.0, 0.88, 0.58], texts)
                    names = [str(row // 3) for row in range(3 * texts)]
                    for _ in range(samples):
                        true = rng.uniform(0.2, 0.9, (n, 1)) + rng.uniform(-0.08, 0.08, (n, 2)) - np.array([0.0, gap])
                        yield (
                            (true + rng.uniform(-0.05, 0.05, (n, 2))) * slopes,
                            {
                                code: Line.of_points(
                                    level,
                                    slope * level + rng.normal(0, 0.03, 3 * texts) + np.repeat(rng.normal(0, 0.03, texts), 3),
                                    names,
                                )
                                for code, slope in zip(CODES, slopes, strict=True)
                            },
                        )

                yield _gaps(f"gap {gap:g} of readings, {texts} texts, n {n}", runs(), samples, gap)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=500, help="of each cell (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    lows = 0
    for part in (judges, readers, rates):
        for cell in part(given.samples, rng):
            print(cell, flush=True)
            lows += cell.low
    return int(lows > 0)


if __name__ == "__main__":
    raise SystemExit(main())
