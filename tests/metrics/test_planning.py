"""The planner's promises: exact where they can be, as statsmodels has them, and as simulation of the tools' own tests shows."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from statsmodels.stats.power import FTestAnovaPower, TTestIndPower, TTestPower

from t2i_parity.metrics._common import mcnemar_p
from t2i_parity.metrics.planning import MOST, Design, Gap, Means, PairedRates, Spread, needed, smallest

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from planner_power import Case, cases

RUNS = 700
CHEAP = ("dialect", "bypass", "rates", "precision", "spread", "gain", "ratings")
CASES = [case for case in cases() if case.what.startswith(CHEAP) and case.n <= 250]
DESIGNS = (
    PairedRates(0.37, 0.72, family=5),
    Means(0.2, family=10),
    Gap(0.2, 0.36, 10),
    Means(1.3, 40, 0.41, limit=4.0, samples=2),
    Spread(10, 0.16),
)


@pytest.mark.parametrize("case", CASES[::2], ids=lambda case: f"{case.what} n {case.n}")
def test_a_promise_is_kept_by_the_test_that_runs(case: Case) -> None:
    assert abs(case.simulated(RUNS) - case.promised) <= case.within + 3 * math.sqrt(0.25 / RUNS)


@pytest.mark.parametrize(("n", "alpha", "family"), [(20, 0.05, 1), (60, 0.05, 5), (60, 0.2, 1)])
def test_mcnemars_power_is_exact(n: int, alpha: float, family: int) -> None:
    """Every table of b and c, with the p-value that the metrics give it."""
    design = PairedRates(0.37, 0.5, usable=0.8, family=family, alpha=alpha)
    up, down = (0.8 * share for share in design.discordance(-0.2))
    tables = [(b, c) for b in range(n + 1) for c in range(n + 1 - b)]
    b, c = np.array(tables).T
    chances = scipy.stats.multinomial.pmf(np.column_stack([b, c, n - b - c]), n, [up, down, 1 - up - down])
    assert design.power(-0.2, n) == pytest.approx(chances[mcnemar_p(b, c) < alpha / family].sum(), abs=1e-9)


def test_equivalence_of_rates_is_exact() -> None:
    """Every table of b and c, with Tango's interval as the metrics give it."""
    from t2i_parity.metrics._common import tango_interval

    n, margin, design = 60, 0.12, PairedRates(0.37, 0.72)
    up, down = design.discordance(0.0)
    within = 0.0
    for b in range(n + 1):
        for c in range(n + 1 - b):
            low, high = tango_interval(b, c, n, float(scipy.stats.norm.ppf(0.975)))
            if -margin < low and high < margin:
                within += scipy.stats.multinomial.pmf([b, c, n - b - c], n, [up, down, 1 - up - down])
    assert design.equivalence(margin, n) == pytest.approx(within, abs=1e-9)


@pytest.mark.parametrize("n", [8, 34, 200])
def test_means_have_the_power_that_statsmodels_tells(n: int) -> None:
    assert Means(0.5).power(0.2, n) == pytest.approx(TTestPower().power(0.4, n, 0.05), abs=2e-3)
    assert Means(0.5, family=4).power(-0.2, n) == pytest.approx(TTestPower().power(0.4, n, 0.05 / 4), abs=2e-3)
    assert Means(0.5, limit=4.0, samples=2).power(0.2, n) == pytest.approx(TTestIndPower().power(0.4, n, 0.05), abs=2e-3)


def test_a_spread_of_many_meanings_has_the_power_that_statsmodels_tells() -> None:
    """With ε at 1 a repeated-measures F is that of as many independent groups, but for degrees of freedom that no longer matter."""
    told = FTestAnovaPower().power(0.1, nobs=10 * 400, alpha=0.05, k_groups=10)
    assert Spread(10, 1.0).power(0.1, 400) == pytest.approx(told, abs=2e-3)


def test_images_of_a_meaning_help_as_far_as_they_differ() -> None:
    one, same, apart = (PairedRates(0.2, 0.33, images=images, icc=icc) for images, icc in ((1, 0.0), (4, 1.0), (4, 0.0)))
    assert same.power(0.1, 100) == pytest.approx(one.power(0.1, 100), abs=0.02)
    assert apart.power(0.1, 100) == pytest.approx(one.power(0.1, 400), abs=0.03)
    for design in (Means(0.2), Spread(10, 0.16), Means(1.3, limit=4.0, samples=2)):
        assert replace(design, images=4, icc=1.0).power(0.05, 30) == pytest.approx(design.power(0.05, 30))
        assert replace(design, images=4, icc=0.3).power(0.05, 30) > design.power(0.05, 30)


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
@pytest.mark.parametrize("equivalent", [False, True])
def test_a_sample_and_what_it_shows_belong_together(design: Design, equivalent: bool) -> None:
    reached = design.equivalence if equivalent else design.power
    n = needed(design, 0.1, 0.8, equivalent=equivalent)
    assert n is not None
    assert reached(0.1, n - 1) < 0.8 <= reached(0.1, n)
    found = smallest(design, n, 0.8, equivalent=equivalent)
    assert found == pytest.approx(0.1, rel=0.12)
    assert found is not None
    assert reached(found, n) >= 0.8


def test_what_no_sample_and_no_difference_shows_is_none() -> None:
    assert needed(Means(1.0), 1e-4, 0.8) is None
    assert Means(1.0).power(1e-4, MOST) < 0.8
    assert smallest(PairedRates(0.03, 0.3), 60, 0.8, sign=-1) is None
    # Of five signs, no p is below 1/16.
    assert Means(0.1, flips=True).power(1.0, 5) == 0.0


def test_flags_go_together_as_far_as_their_rates_allow() -> None:
    assert PairedRates(0.5, 0.99).discordance(0.4) == pytest.approx((0.4, 0.0))
    assert PairedRates(0.5, 0.0).discordance(0.0) == pytest.approx((0.25, 0.25))


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: type(design).__name__)
def test_nothing_is_shown_where_there_is_nothing(design: Design) -> None:
    assert design.power(0.0, 60) <= 0.05 + 1e-9
