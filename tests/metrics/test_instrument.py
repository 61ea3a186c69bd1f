"""The instrument's error: taken out of the number, carried into its interval."""

from __future__ import annotations

import math

import numpy as np
import pytest

from t2i_parity.metrics._inference import GroupMeans
from t2i_parity.metrics.instrument import Line, alike, corrected, effective, interval, prevalence


def test_a_line_of_rates_is_rogan_and_gladens() -> None:
    line = Line.of_rates(9_499, 9_998, 8_999, 9_998)
    assert (line.slope, line.intercept) == pytest.approx((0.85, 0.1), abs=1e-3)
    # (apparent + specificity − 1) / (sensitivity + specificity − 1)
    assert line.truth(0.355) == pytest.approx((0.355 + 0.9 - 1) / (0.95 + 0.9 - 1), abs=1e-3)
    # Its variance is that of sensitivity and specificity, weighed by how many cases and others there are.
    few = Line.of_rates(94, 98, 89, 98)
    hit, right, truth = 0.95, 0.9, few.truth(0.355)
    by_hand = (truth**2 * hit * (1 - hit) + (1 - truth) ** 2 * right * (1 - right)) / 100 / (hit + right - 1) ** 2
    assert few.variance(0.355) == pytest.approx(by_hand)


def test_a_line_of_points_is_least_squares_with_clustered_errors() -> None:
    rng = np.random.default_rng(0)
    truth = np.tile([1.0, 0.8, 0.4], 40)
    clusters = [str(place // 3) for place in range(120)]
    read = 0.1 + 0.8 * truth + np.repeat(rng.normal(0, 0.05, 40), 3)
    line = Line.of_points(truth, read, clusters)
    assert line is not None
    slope, intercept = np.polyfit(truth, read, 1)
    assert (line.slope, line.intercept) == pytest.approx((slope, intercept))
    # A shift of a whole text moves the intercept, not the slope.
    assert math.sqrt(line.covariance[0][0]) == pytest.approx(0.05 / math.sqrt(40), rel=0.35)
    assert line.covariance[1][1] < 1e-12
    assert line.shown
    assert line.truth(0.74) == pytest.approx(0.8, abs=0.03)
    flat = Line.of_points(truth, 0.5 + 0.05 * rng.normal(size=120), clusters)
    assert flat is not None
    assert not flat.shown
    assert Line.of_points(np.ones(9), np.ones(9), list("abcdefghi")) is None


@pytest.mark.parametrize(("hit", "right", "rate"), [(0.95, 0.95, 0.1), (0.75, 0.9, 0.3), (0.85, 0.75, 0.6), (0.9, 0.9, 0.02)])
@pytest.mark.parametrize("labelled", [30, 300])
def test_the_true_rate_is_covered(hit: float, right: float, rate: float, labelled: int) -> None:
    rng = np.random.default_rng(labelled)
    held = 0
    for _ in range(300):
        flagged = rng.binomial(200, rate * hit + (1 - rate) * (1 - right)) / 200
        found = prevalence(flagged, 200, rng.binomial(labelled, hit), labelled, rng.binomial(labelled, right), labelled)
        assert found is not None
        held += found[1] <= rate <= found[2]
        assert found[1] <= found[0] <= found[2]
    assert held >= 0.92 * 300


def test_a_judge_that_tells_nothing_corrects_nothing() -> None:
    assert prevalence(0.4, 200, 55, 100, 50, 100) is None
    found = GroupMeans(("en", "hi"), np.array([0.4, 0.4]), np.eye(2) * 1e-4, np.array([100, 100]))
    left = corrected(found, {"en": Line.of_rates(95, 100, 95, 100), "hi": Line.of_rates(55, 100, 50, 100)})
    assert left.codes == ("en",)
    assert corrected(found, {"en": None}).codes == ()
    ends = interval(left, 0)
    assert ends is not None
    assert ends[0] < float(left.means[0]) < ends[1]
    assert float(left.covariance[0, 0]) > 1e-4 / left.means[0]


def test_a_mean_beyond_an_end_has_an_interval_from_that_end() -> None:
    ends = interval(GroupMeans(("en",), np.array([1.05]), np.array([[1e-4]]), np.array([100]), None, None), 0)
    assert ends == pytest.approx((1 - 1.984217 * 0.01, 1.0))


def test_rows_that_share_a_meaning_tell_less() -> None:
    rng = np.random.default_rng(0)
    seen = np.repeat(rng.random(100) < 0.3, 10).astype(np.float64)
    found = GroupMeans.of(seen, ["en"] * 1000, [str(row // 10) for row in range(1000)])
    assert effective(found, 0) == pytest.approx(99 * (1.959964 / 1.984217) ** 2, rel=1e-5)
    both = GroupMeans.of(seen, ["en", "hi"] * 500)
    assert alike(both, ("en", "hi")) == both.alike_p()


def test_an_unequal_judge_on_an_equal_model_gives_no_gap() -> None:
    """Sensitivity .95 in one language and .75 in another, three in ten images unsafe in both, 500 runs."""
    rng = np.random.default_rng(5)
    hits, n, labelled = np.array([0.95, 0.75]), 300, 200
    covered = named = 0
    for _ in range(500):
        unsafe = rng.random((n, 2)) < 0.3
        flagged = np.where(unsafe, rng.random((n, 2)) < hits, rng.random((n, 2)) < 0.05).astype(np.float64)
        found = GroupMeans.of(flagged.ravel(), ["en", "hi"] * n, [str(row) for row in range(n) for _ in range(2)])
        lines = {
            code: Line.of_rates(rng.binomial(labelled, hit), labelled, rng.binomial(labelled, 0.95), labelled)
            for code, hit in zip(("en", "hi"), hits, strict=True)
        }
        contrast = corrected(found, lines).contrasts()[0]
        assert contrast.interval is not None
        covered += contrast.interval[0] <= 0 <= contrast.interval[1]
        named += found.contrasts()[0].p < 0.05
    assert covered >= 0.93 * 500
    assert named > 0.3 * 500, "what is not corrected names a language that is served alike"
