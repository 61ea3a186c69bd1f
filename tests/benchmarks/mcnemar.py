"""Exact McNemar tests of many tables at once, against one scipy call a table."""

from __future__ import annotations

import numpy as np
import scipy.stats
from measure import Row, main, seconds

from t2i_parity.metrics._common import mcnemar_p


def run(size: int, repeats: int) -> list[Row]:
    """``size`` tables of up to 400 discordant pairs; the loop runs a hundredth of them, its time times a hundred."""
    rng = np.random.default_rng(0)
    b, c = rng.integers(0, 200, (2, size))
    some = max(1, size // 100)

    def loop() -> None:
        for left, right in zip(b[:some].tolist(), c[:some].tolist(), strict=True):
            scipy.stats.binomtest(left, max(1, left + right), 0.5)

    def bare() -> object:
        return scipy.stats.binom.cdf(np.minimum(b, c), b + c, 0.5)

    ours_s, bare_s, loop_s = seconds([lambda: mcnemar_p(b, c, "exact"), bare, loop], repeats)
    what = f"mcnemar_p, {size:,} exact tests"
    return [
        Row(what, ours_s, "scipy.stats.binom.cdf, one call", bare_s, 4.0),
        Row(what, ours_s, f"scipy.stats.binomtest, a loop (of {some:,}, scaled)", loop_s * size / some, 0.05),
    ]


if __name__ == "__main__":
    main(run, 10_000, 5, __doc__)
