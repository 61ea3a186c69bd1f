"""Worst-group accuracy against statsmodels, numpy and cases worked by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.metrics._common import wilson_interval
from t2i_parity.metrics.worst_group.core import KEYS, compute

ROW = st.tuples(st.sampled_from([True, False, None]), st.sampled_from("abc"), st.sampled_from("wxyz"))
Load = Callable[..., Any]
ROWS: dict[str, list[Any]] = {"correct": [None, True, False, True], "groups": ["b", "a", "b", "a"]}


def test_all_keys_by_hand() -> None:
    correct = [True, True, True, False, True, False, None, None]
    answer = compute(correct, ["en", "en", "en", "en", "hi", "hi", "hi", "ko"], n_resamples=0)
    assert answer == {
        "accuracy": pytest.approx(4 / 6),
        "worst_group_accuracy": 0.5,
        "std": 0.125,
        "worst_group": "hi",
        "by_group": {
            "en": {"accuracy": 0.75, "wilson": wilson_interval(3, 4), "n": 4, "n_missing": 0},
            "hi": {"accuracy": 0.5, "wilson": wilson_interval(1, 2), "n": 2, "n_missing": 1},
            "ko": {"accuracy": None, "wilson": None, "n": 0, "n_missing": 1},
        },
        "n_groups": 2,
        "n": 6,
        "n_missing": 2,
        "signature": "worst_group|accuracy:rows|std:population|v:1.0",
    }


def test_the_average_hides_a_small_group_and_the_worst_does_not() -> None:
    answer = compute([True] * 98 + [False] * 2, ["en"] * 98 + ["hi"] * 2, n_resamples=0)
    assert (answer["accuracy"], answer["worst_group_accuracy"], answer["worst_group"]) == (0.98, 0.0, "hi")


def test_a_tie_goes_to_the_first_name() -> None:
    assert compute([True, True], ["b", "a"], n_resamples=0)["worst_group"] == "a"


def test_one_group_has_no_spread() -> None:
    answer = compute([True, False, True], ["a"] * 3)
    assert answer["std"] is None
    assert answer["ci"]["std"] == [None, None]
    assert answer["worst_group_accuracy"] == answer["accuracy"]
    assert answer["ci"]["worst_group_accuracy"] == answer["ci"]["accuracy"] == answer["by_group"]["a"]["ci"]["accuracy"]


def test_nothing_scored_is_none() -> None:
    answer = compute([None, None], ["a", "b"])
    assert [answer[key] for key in (*KEYS, "worst_group")] == [None] * 4
    assert (answer["n"], answer["n_missing"], answer["n_groups"]) == (0, 2, 0)
    assert answer["ci"] == {key: [None, None] for key in KEYS}
    assert answer["by_group"]["a"]["ci"] == {"accuracy": [None, None]}
    assert "NaN" not in json.dumps(answer)


# Against others


@given(st.integers(1, 200), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None)
def test_wilson_is_statsmodels(n: int, data: st.DataObject, level: float) -> None:
    right = data.draw(st.integers(0, n))
    assert wilson_interval(right, n, level) == pytest.approx(proportion_confint(right, n, 1 - level, "wilson"), abs=1e-9)


def test_wilson_by_hand() -> None:
    # 10 of 10 at z = 1.96: n / (n + z²)
    z = scipy.stats.norm.ppf(0.975)
    assert wilson_interval(10, 10) == pytest.approx([10 / (10 + z**2), 1.0])


def test_a_groups_interval_is_the_exact_binomial_resample_and_wilsons_keeps_its_width() -> None:
    n, k = 80, 24
    correct = [True] * k + [False] * (n - k) + [True] * 20
    answer = compute(correct, ["a"] * n + ["b"] * 20, n_resamples=20_000)
    exact = scipy.stats.binom.ppf([0.025, 0.975], n, k / n) / n
    assert answer["by_group"]["a"]["ci"]["accuracy"] == pytest.approx(exact, abs=1.01 / n)
    assert answer["by_group"]["a"]["wilson"] == pytest.approx(proportion_confint(k, n, method="wilson"))
    assert answer["by_group"]["b"]["ci"]["accuracy"] == [1.0, 1.0]
    assert answer["by_group"]["b"]["wilson"][0] < 0.9


def test_the_worst_groups_interval_agrees_with_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, 240)
    correct = rng.random(240) < np.array([0.9, 0.7, 0.65])[group]
    answer = compute(correct, [f"g{g}" for g in group], n_resamples=4000)
    drawn = []
    for _ in range(4000):
        rows = rng.integers(0, 240, 240)
        drawn.append(min(correct[rows][group[rows] == g].mean() for g in range(3)))
    assert answer["ci"]["worst_group_accuracy"] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.02)
    # The worst of noisy accuracies is lower than the worst accuracy: the card says so.
    assert np.mean(drawn) < answer["worst_group_accuracy"]


def test_clusters_widen_and_put_wilson_aside() -> None:
    rng = np.random.default_rng(1)
    once = rng.random(60) < 0.6
    groups = ["a", "b"] * 30
    alone = compute(once, groups)
    repeated = compute(np.repeat(once, 4), np.repeat(groups, 4), clusters=[str(row // 4) for row in range(240)])
    assert repeated["ci"] == {key: pytest.approx(bounds) for key, bounds in alone["ci"].items()}
    assert repeated["by_group"]["a"]["wilson"] is None
    assert compute(np.repeat(once, 4), np.repeat(groups, 4))["by_group"]["a"]["wilson"] is not None


def test_an_interval_needs_every_group_in_nearly_every_resample() -> None:
    answer = compute([True, False, True], ["a", "b", "b"])
    assert answer["ci"]["worst_group_accuracy"] == answer["ci"]["std"] == [None, None]
    assert answer["ci"]["accuracy"] != [None, None]


# Properties


def run(rows: list[tuple[Any, ...]], **keywords: Any) -> dict[str, Any]:
    correct, groups, clusters = zip(*rows, strict=True)
    return compute(correct, groups, **{"clusters": clusters, "n_resamples": 20, **keywords})


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_order_of_rows_changes_nothing_and_a_group_stands_alone(rows: list[tuple[Any, ...]]) -> None:
    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[1] == group])
        assert (alone["accuracy"], alone["n"], alone["n_missing"]) == (part["accuracy"], part["n"], part["n_missing"])
        assert alone["ci"]["accuracy"] == part["ci"]["accuracy"]


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None)
def test_what_numpy_says(rows: list[tuple[Any, ...]]) -> None:
    answer = run(rows, clusters=None, n_resamples=0)
    seen = [(float(right), group) for right, group, _ in rows if right is not None]
    assert answer["n"] == len(seen) == sum(part["n"] for part in answer["by_group"].values())
    assert set(answer["by_group"]) == {group for _, group, _ in rows}
    if not seen:
        return
    of = {name: np.mean([right for right, group in seen if group == name]) for name in {group for _, group in seen}}
    assert {name: part["accuracy"] for name, part in answer["by_group"].items() if part["n"]} == pytest.approx(of)
    assert answer["accuracy"] == pytest.approx(np.mean([right for right, _ in seen]))
    assert answer["worst_group_accuracy"] == min(of.values()) == of[answer["worst_group"]]
    assert answer["worst_group_accuracy"] <= answer["accuracy"] + 1e-12
    if len(of) > 1:
        assert answer["std"] == pytest.approx(np.std(list(of.values())))
    for part in answer["by_group"].values():
        if part["n"]:
            low, high = part["wilson"]
            assert 0 <= low <= part["accuracy"] + 1e-12
            assert part["accuracy"] - 1e-12 <= high <= 1


# As people load it


def test_evaluate_gives_what_the_core_gives(load: Load) -> None:
    expected = compute(**ROWS, n_resamples=30, seed=3)
    metric = load("worst_group")
    assert metric.compute(**ROWS, n_resamples=30, seed=3) == expected
    assert json.loads(json.dumps(expected)) == expected
    metric.add_batch(correct=ROWS["correct"][:2], groups=ROWS["groups"][:2])
    for right, group in zip(ROWS["correct"][2:], ROWS["groups"][2:], strict=True):
        metric.add(correct=right, group=group)
    assert metric.compute(n_resamples=30, seed=3) == expected
    assert metric.compute_table([["", "b"], ["true", "a"], ["False", "b"], [True, "a"]], n_resamples=30, seed=3) == expected


def test_clusters_in_both_configurations(load: Load) -> None:
    clusters = ["p", "p", "q", "r"]
    expected = compute(**ROWS, clusters=clusters, n_resamples=30)
    assert load("worst_group").compute(**ROWS, clusters=clusters, n_resamples=30) == expected
    grouped = load("worst_group", "grouped")
    grouped.add_batch(**ROWS, clusters=clusters)
    assert grouped.compute(n_resamples=30) == expected
    grouped.add_batch(**ROWS)
    assert grouped.compute(n_resamples=30) == compute(**ROWS, n_resamples=30)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"correct": [None, True, 2, True]}, r"column 'correct', row 2: expected bool or None, got 2 \(int\)"),
    ({"correct": [None, True, math.nan, True]}, "column 'correct', row 2: .*got nan"),
    ({"correct": "yes"}, "column 'correct', row 0: expected a list"),
    ({"correct": [], "groups": []}, "column 'correct', row 0: expected at least one row"),
    ({"groups": ["a", None, "b", "a"]}, "column 'groups', row 1: expected str, got None"),
    ({"groups": ["a"]}, "column 'groups', row 1: expected 4 rows as in 'correct', got 1"),
    ({"groups": None}, "column 'groups' is missing"),
    ({"clusters": [1, 2, 3, 4]}, "column 'clusters', row 0: expected str, got 1"),
    ({"confidence_level": 95}, "confidence_level: expected"),
    ({"n_resamples": -1}, "n_resamples: expected"),
]


def test_wrong_input_is_told_and_leaves_the_metric_usable(load: Load) -> None:
    metric = load("worst_group")
    for wrong, told in WRONG:
        with pytest.raises(ValueError, match=told):
            compute(**{**ROWS, **wrong})
        with pytest.raises(ValueError, match=told):
            metric.compute(**{**ROWS, **wrong})
        assert metric.compute(**ROWS, n_resamples=0)["n"] == 3
    with pytest.raises(ValueError, match="unknown column or keyword 'group'"):
        metric.compute(**ROWS, group=["a"])


@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_rows_added_before_an_error_stay_and_a_wrong_batch_adds_nothing(keep_in_memory: bool, load: Load) -> None:
    metric = load("worst_group", keep_in_memory=keep_in_memory)
    metric.add_batch(correct=ROWS["correct"][:3], groups=ROWS["groups"][:3])
    for wrong, _ in WRONG:
        with pytest.raises(ValueError, match=r"worst_group|expected"):
            metric.compute(**{**ROWS, **wrong})
        assert len(metric) == 3
    for wrong in ({"correct": [3]}, {"groups": None}, {"clusters": ["p"]}):
        with pytest.raises(ValueError, match=f"column '{next(iter(wrong))}'"):
            metric.add_batch(**{"correct": [True], "groups": ["a"], **wrong})
    metric.add(correct=ROWS["correct"][3], group=ROWS["groups"][3])
    assert metric.compute(n_resamples=30) == compute(**ROWS, n_resamples=30)
