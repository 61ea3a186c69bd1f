"""Inference over groups against scipy, statsmodels, cases worked by hand, and simulated truths."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.anova import AnovaRM
from statsmodels.stats.multitest import multipletests

from t2i_parity.metrics._common import MIN_CLUSTERS, FloatArray, Resampling, holm
from t2i_parity.metrics._inference import GroupMeans, spread_difference, worst_shares

TEN = [f"{place:02d}" for place in range(10)]


def of(table: FloatArray, *, ends: tuple[float, float] | None = None) -> GroupMeans:
    """The means of a table: a cluster a row, a group a column."""
    n, k = table.shape
    low, high = ends or (None, None)
    return GroupMeans.of(table.ravel(), TEN[:k] * n, [str(row) for row in range(n) for _ in range(k)], low=low, high=high)


def table_of(n: int, truth: FloatArray, seed: int, noise: float = 0.2) -> FloatArray:
    """(n, k): each cluster has a difficulty of its own, which its groups share."""
    rng = np.random.default_rng(seed)
    drawn: FloatArray = truth + noise * (0.6 * rng.normal(size=(n, 1)) + 0.8 * rng.normal(size=(n, len(truth))))
    return drawn


# Means and their covariance


def test_means_and_covariance_are_numpys_where_every_cluster_has_every_group() -> None:
    table = table_of(30, np.array([0.3, 0.5, 0.6]), 0)
    found = of(table)
    assert found.codes == ("00", "01", "02")
    assert found.means == pytest.approx(table.mean(axis=0))
    assert found.covariance == pytest.approx(np.cov(table.T) / 30)
    assert found.clusters.tolist() == [30, 30, 30]


def test_rows_that_stand_alone_do_not_vary_together() -> None:
    rng = np.random.default_rng(1)
    values, groups = rng.normal(size=50), ["a"] * 20 + ["b"] * 30
    found = GroupMeans.of(values, groups, low=None, high=None)
    assert np.diag(found.covariance) == pytest.approx([values[:20].var(ddof=1) / 20, values[20:].var(ddof=1) / 30])
    assert found.covariance[0, 1] == 0


def test_a_mean_of_clusters_of_many_sizes_is_a_ratio() -> None:
    rng = np.random.default_rng(2)
    cluster = rng.integers(0, 12, 80)
    values = rng.normal(size=80) + rng.normal(size=12)[cluster]
    found = GroupMeans.of(values, ["a"] * 80, [f"c{c}" for c in cluster], low=None, high=None)
    variance, mean = 0.0, values.mean()
    for c in range(12):
        variance += (values[cluster == c].sum() - mean * (cluster == c).sum()) ** 2
    assert found.covariance[0, 0] == pytest.approx(variance / 80**2 * 12 / 11)


def test_groups_at_an_end_are_not_known_exactly() -> None:
    found = GroupMeans.of(np.array([1.0] * 40 + [0.0, 1.0] * 20), ["a"] * 40 + ["b"] * 40)
    assert 0 < found.covariance[0, 0] < found.covariance[1, 1]
    perfect = GroupMeans.of(np.ones(80), ["a"] * 40 + ["b"] * 40)
    ends = perfect.spread_interval()
    assert perfect.spread() == 0
    assert ends is not None
    assert ends[0] == 0 < ends[1]
    assert perfect.alike_p() == 1.0


# How unequal


def test_spread_takes_the_noise_out_by_hand() -> None:
    # var(m) is 0.0025; two variances of 0.0003, less the 0.00015 of their mean, add 0.00015 to it by chance.
    found = GroupMeans(("a", "b"), np.array([0.4, 0.5]), np.eye(2) * 0.0003, np.array([20, 20]))
    assert found.spread() == pytest.approx(math.sqrt(0.0025 - 0.0003 / 2))
    noisy = GroupMeans(("a", "b"), np.array([0.4, 0.5]), np.eye(2) * 0.03, np.array([20, 20]))
    assert noisy.spread() == 0.0
    # What all groups share moves their mean, and is no spread.
    together = GroupMeans(("a", "b"), np.array([0.4, 0.5]), np.eye(2) * 0.0003 + 0.01, np.array([20, 20]))
    assert together.spread() == pytest.approx(found.spread())


def test_two_groups_have_the_paired_t_tests_p_and_interval() -> None:
    table = table_of(25, np.array([0.5, 0.6]), 3)
    found, theirs = of(table), scipy.stats.ttest_rel(table[:, 0], table[:, 1])
    assert found.alike_p() == pytest.approx(theirs.pvalue)
    first, second = found.contrasts()
    interval = scipy.stats.ttest_rel(table[:, 0], table[:, 1]).confidence_interval(1 - 0.05 / 2)
    assert first.difference == pytest.approx(table[:, 0].mean() - table[:, 1].mean())
    assert first.interval == pytest.approx((interval.low, interval.high))
    assert (first.p, second.p) == pytest.approx((theirs.pvalue, theirs.pvalue))
    assert second.interval == pytest.approx((-interval.high, -interval.low))
    assert first.p_holm == pytest.approx(min(1.0, 2 * theirs.pvalue))


def test_alike_p_is_the_repeated_measures_anovas_where_it_is_spherical() -> None:
    rng = np.random.default_rng(4)
    # Contrasts made exactly uncorrelated and of one variance: then Box's correction is none.
    n, k = 20, 4
    noise = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, k))]))[0][:, 1:]
    table = noise + np.array([0.0, 0.05, 0.1, 0.0]) + rng.normal(size=(n, 1))
    long = pd.DataFrame({"y": table.ravel(), "who": np.repeat(np.arange(n), k), "group": np.tile(TEN[:k], n)})
    anova = AnovaRM(long, "y", "who", within=["group"]).fit().anova_table
    assert of(table).alike_p() == pytest.approx(float(anova["Pr > F"].iloc[0]))


def test_alike_p_has_greenhouse_and_geissers_degrees_of_freedom() -> None:
    table = table_of(15, np.array([0.5, 0.6, 0.55, 0.4]), 5) * np.array([1.0, 2.0, 0.5, 1.5])
    n, k = table.shape
    centred = table - table.mean(axis=1, keepdims=True)
    covariance = np.cov(centred.T)
    epsilon = np.trace(covariance) ** 2 / ((k - 1) * (covariance**2).sum())
    effect = n * ((centred.mean(axis=0) - centred.mean()) ** 2).sum() / (k - 1)
    error = ((centred - centred.mean(axis=0)) ** 2).sum() / (n - 1) / (k - 1)
    p = scipy.stats.f.sf(effect / error, epsilon * (k - 1), epsilon * (k - 1) * (n - 1))
    assert of(table).alike_p() == pytest.approx(p)


def test_spread_interval_holds_what_the_test_does_not_refuse() -> None:
    rng = np.random.default_rng(6)
    n, k, truth = 40, 4, np.array([0.0, 0.5, 1.0, 0.5])
    noise = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, k))]))[0][:, 1:] * math.sqrt(n - 1)
    found = of(noise + truth)
    ends = found.spread_interval()
    assert ends is not None
    # Means of unit variance over n clusters, as estimated; the true variance is that over a χ² of so many degrees of freedom.
    seen, df = n * (truth - truth.mean()) @ (truth - truth.mean()), (k - 1) * (n - 1)
    for end, tail in zip(ends, (0.025, 0.975), strict=True):
        beyond = scipy.stats.chi2(df).expect(lambda w, end=end: scipy.stats.ncx2.sf(seen * w / df, k - 1, n * k * end**2 * w / df))
        assert beyond == pytest.approx(tail, abs=1e-3)
    assert ends[0] < float(found.spread() or 0) < ends[1]


def test_the_mean_over_groups_has_students_interval() -> None:
    table = table_of(25, np.array([0.5, 0.6, 0.7]), 7)
    theirs = scipy.stats.ttest_1samp(table.mean(axis=1), 0).confidence_interval()
    assert of(table).mean_interval() == pytest.approx((theirs.low, theirs.high))


def test_groups_of_groups_count_each_member_once() -> None:
    table = table_of(25, np.array([0.5, 0.6, 0.7]), 8)
    found = of(table).pooled({"x": ["00", "02"], "y": ["01"]})
    direct = of(np.column_stack([table[:, [0, 2]].mean(axis=1), table[:, 1]]))
    assert found.means == pytest.approx(direct.means)
    assert found.covariance == pytest.approx(direct.covariance)
    assert found.alike_p() == pytest.approx(direct.alike_p())


@pytest.mark.parametrize("table", [np.ones((MIN_CLUSTERS - 1, 3)) * [0.1, 0.5, 0.9], np.linspace(0, 1, 20)[:, None]])
def test_too_few_clusters_and_a_single_group_tell_nothing(table: FloatArray) -> None:
    found = of(table + np.random.default_rng(9).normal(0, 0.1, table.shape))
    k = table.shape[1]
    assert found.spread() is found.alike_p() is found.spread_interval() is found.mean_interval() is None
    assert found.extreme_interval() is found.extreme_interval(worst=False) is None
    assert found.contrasts() == []
    assert found.ranks() == [(1, k)] * k
    assert spread_difference(found, of(table_of(20, np.zeros(3), 0))) is None


# Which


@pytest.mark.parametrize("k", [1, 2, 5, 12])
def test_holm_is_statsmodels(k: int) -> None:
    ps = np.random.default_rng(k).beta(0.3, 3, k).tolist()
    assert holm(ps) == pytest.approx(list(multipletests(ps, method="holm")[1]))
    assert holm([]) == []


def test_ranks_by_hand() -> None:
    means = np.array([0.90, 0.89, 0.70, 0.40])
    found = GroupMeans(tuple("abcd"), means, np.eye(4) * 1e-4, np.array([60] * 4))
    # A difference has the standard error √2 · 0.01; with three of them at once t of 59 degrees reaches 0.035.
    assert found.ranks() == [(1, 2), (1, 2), (3, 3), (4, 4)]
    assert found.ranks(higher_is_better=False) == [(3, 4), (3, 4), (2, 2), (1, 1)]
    near = GroupMeans(tuple("abc"), np.array([0.90, 0.875, 0.85]), np.eye(3) * 1e-4, np.array([60] * 3))
    # The first and the last are apart, the middle one from neither: 0.05 against a reach of 0.033.
    assert near.ranks() == [(1, 2), (1, 3), (2, 3)]
    paired = GroupMeans(tuple("abc"), near.means, np.eye(3) * 1e-5 + 9e-5, near.clusters)
    assert paired.ranks() == [(1, 1), (2, 2), (3, 3)]


def test_simultaneous_places_are_no_narrower() -> None:
    for seed in range(20):
        found = of(table_of(30, np.linspace(0.4, 0.6, 6), seed))
        for (best, worst), (first, last) in zip(found.ranks(), found.ranks(simultaneous=True), strict=True):
            assert first <= best <= worst <= last


def test_worst_shares_are_a_plain_loops() -> None:
    table = table_of(12, np.array([0.5, 0.55, 0.6]), 10)
    rng = np.random.default_rng(0)
    wins = np.zeros(3)
    for _ in range(4000):
        wins[table[rng.integers(0, 12, 12)].mean(axis=0).argmin()] += 1
    values, groups, clusters = table.ravel(), TEN[:3] * 12, [str(row) for row in range(12) for _ in range(3)]
    shares = worst_shares(values, groups, clusters, Resampling(n_resamples=4000))
    assert list(shares) == TEN[:3]
    assert list(shares.values()) == pytest.approx(wins / 4000, abs=0.04)
    best = worst_shares(-values, groups, clusters, Resampling(n_resamples=4000), higher_is_better=False)
    assert list(best.values()) == pytest.approx(list(shares.values()), abs=0.03)


def test_ties_share_and_an_absent_group_is_not_the_worst() -> None:
    even = worst_shares(np.ones(10), ["a", "b"] * 5, list("1122334455"), Resampling(n_resamples=50))
    assert even == {"a": 0.5, "b": 0.5}
    # One row of the group in ten: where a resample lacks it, the other one is the worst.
    shares = worst_shares(np.array([0.0] + [1.0] * 9), ["a"] + ["b"] * 9, None, Resampling(n_resamples=4000))
    assert shares["a"] == pytest.approx(1 - 0.9**10, abs=0.03)


# Properties

ROW = st.tuples(st.floats(0, 1), st.sampled_from("abc"), st.sampled_from("uvwxyz"))


@given(st.lists(ROW, min_size=1, max_size=60), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_neither_order_nor_cluster_names_change_a_digit(rows: list[tuple[float, str, str]], random: Any) -> None:
    def run(rows: list[tuple[float, str, str]], names: str) -> Any:
        values, groups, clusters = zip(*rows, strict=True)
        renamed = [names["uvwxyz".index(cluster)] for cluster in clusters]
        found = GroupMeans.of(np.array(values), groups, renamed)
        shares = worst_shares(np.array(values), groups, renamed, Resampling(n_resamples=20))
        tests = (found.spread(), found.spread_interval(), found.alike_p(), found.contrasts(), found.ranks(), found.extreme_interval())
        return found.codes, found.means.tolist(), found.covariance.tolist(), tests, shares

    assert run(rows, "uvwxyz") == run(random.sample(rows, len(rows)), "zyxwvu")


@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=MIN_CLUSTERS, max_size=20), st.sampled_from([0.8, 0.95]))
@settings(deadline=None, max_examples=60)
def test_intervals_hold_their_numbers_and_keep_their_bounds(table: list[list[float]], level: float) -> None:
    found = of(np.array(table), ends=(0.0, 1.0))
    ends, spread = found.spread_interval(level), found.spread()
    assert (ends is None) == (spread is None)
    if ends is None or spread is None:
        return
    assert 0 <= ends[0] < ends[1]
    assert ends[0] <= spread + 1e-9
    for worst in (True, False):
        extreme = found.extreme_interval(level, worst=worst)
        assert extreme is not None
        assert 0 <= extreme[0] < extreme[1] <= 1
    mean = found.mean_interval(level)
    if mean is not None:
        assert 0 <= mean[0] <= found.means.mean() + 1e-12
        assert found.means.mean() - 1e-12 <= mean[1] <= 1
    for each, (best, worst_place) in zip(found.contrasts(level), found.ranks(level), strict=True):
        assert 0 <= each.p <= each.p_holm <= 1
        assert 1 <= best <= worst_place <= 4
        if each.interval is not None:
            assert each.interval[0] <= each.difference <= each.interval[1]


# Simulated truths


def test_ten_languages_served_alike_are_not_called_unequal() -> None:
    held = cried = named = 0
    for seed in range(200):
        found = of(table_of(20, np.full(10, 0.7), seed))
        ends = found.spread_interval()
        assert ends is not None
        held += ends[0] == 0
        cried += (found.alike_p() or 0.0) < 0.05
        named += any(each.p_holm < 0.05 for each in found.contrasts())
    assert held >= 0.93 * 200
    assert cried <= 0.07 * 200
    assert named <= 0.07 * 200


def test_a_planted_spread_is_held_and_found() -> None:
    shape = np.linspace(-1, 1, 10) / np.linspace(-1, 1, 10).std()
    truth = 0.6 + 0.1 * shape
    held = found_unequal = lowest = 0
    for seed in range(100):
        found = of(table_of(60, truth, seed))
        ends, low = found.spread_interval(), found.extreme_interval()
        assert ends is not None
        assert low is not None
        held += ends[0] <= 0.1 <= ends[1]
        lowest += low[0] <= truth.min() <= low[1]
        found_unequal += (found.alike_p() or 1.0) < 0.05
    assert held >= 90
    assert lowest >= 90
    assert found_unequal == 100


def test_the_lowest_of_equal_groups_is_no_lower_than_they_are() -> None:
    held = 0
    for seed in range(200):
        found = of(table_of(20, np.full(10, 0.7), seed))
        low = found.extreme_interval()
        assert low is not None
        held += low[0] <= 0.7 <= low[1]
    assert held >= 0.92 * 200


@pytest.mark.parametrize("spread", [0.0, 0.05])
def test_a_noisier_run_that_is_as_equal_is_not_called_more_unequal(spread: float) -> None:
    truth = 0.7 + spread * np.linspace(-1, 1, 10) / np.linspace(-1, 1, 10).std()
    held = 0
    for seed in range(100):
        calm, noisy = of(table_of(60, truth, seed, 0.05)), of(table_of(60, truth, 1000 + seed, 0.3))
        found = spread_difference(calm, noisy)
        assert found is not None
        difference, ends = found
        assert ends is not None
        assert ends[0] <= difference <= ends[1]
        assert difference == float(noisy.spread() or 0.0) - float(calm.spread() or 0.0)
        held += ends[0] <= 0 <= ends[1]
    assert held >= 95


def test_a_more_unequal_run_is_found() -> None:
    shape = np.linspace(-1, 1, 10)
    first, second = of(table_of(100, 0.7 + 0.02 * shape, 0)), of(table_of(100, 0.7 + 0.2 * shape, 1))
    found = spread_difference(first, second)
    assert found is not None
    assert found[1] is not None
    assert found[1][0] > 0
