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
    correct = [True, True, True, True, False, False, True, True, True, False, False, False, None, None]
    answer = compute(correct, ["en"] * 6 + ["hi"] * 6 + ["hi", "ko"], n_resamples=0)
    # Chance alone puts accuracies of six rows farther apart than 2/3 and 1/2; the test is about the two-sample t-test.
    alike = scipy.stats.ttest_ind(correct[:6], correct[6:12]).pvalue
    assert answer == {
        "accuracy": pytest.approx(7 / 12),
        "worst_group_accuracy": 0.5,
        "std": pytest.approx(1 / 12),
        "spread": 0.0,
        "p_alike": pytest.approx(alike, abs=0.02),
        "worst_group": "hi",
        "by_group": {
            "en": {"accuracy": pytest.approx(2 / 3), "n": 6, "n_missing": 0},
            "hi": {"accuracy": 0.5, "n": 6, "n_missing": 1},
            "ko": {"accuracy": None, "n": 0, "n_missing": 1},
        },
        "n_groups": 2,
        "n": 12,
        "n_missing": 2,
        "signature": "worst_group|accuracy:rows|std:population|v:1.0",
    }


def test_the_average_hides_a_small_group_and_the_worst_does_not() -> None:
    answer = compute([True] * 98 + [False] * 2, ["en"] * 98 + ["hi"] * 2, n_resamples=0)
    assert (answer["accuracy"], answer["worst_group_accuracy"], answer["worst_group"]) == (0.98, 0.0, "hi")


def test_a_tie_goes_to_the_first_name() -> None:
    assert compute([True, True], ["b", "a"], n_resamples=0)["worst_group"] == "a"


def test_one_group_has_no_spread() -> None:
    answer = compute([True, False, True, True, True, False], ["a"] * 6)
    assert answer["std"] is answer["spread"] is answer["p_alike"] is None
    for key in ("std", "spread", "worst_group_accuracy"):
        assert answer["ci"][key] == [None, None]
        assert answer["ci_method"][key].startswith("none: ")
    assert answer["worst_group_accuracy"] == answer["accuracy"]
    assert answer["ci"]["accuracy"] == answer["by_group"]["a"]["ci"]["accuracy"]


def test_nothing_scored_is_none() -> None:
    answer = compute([None, None], ["a", "b"])
    assert [answer[key] for key in (*KEYS, "p_alike", "worst_group")] == [None] * 6
    assert (answer["n"], answer["n_missing"], answer["n_groups"]) == (0, 2, 0)
    assert answer["ci"] == {key: [None, None] for key in KEYS}
    assert all(why.startswith("none: ") for why in answer["ci_method"].values())
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


def test_intervals_of_accuracies_are_wilsons_and_keep_a_width() -> None:
    answer = compute([True] * 24 + [False] * 56 + [True] * 20, ["a"] * 80 + ["b"] * 20)
    assert answer["by_group"]["a"]["ci"]["accuracy"] == pytest.approx(proportion_confint(24, 80, method="wilson"), abs=1e-9)
    assert answer["by_group"]["b"]["ci"]["accuracy"] == pytest.approx(proportion_confint(20, 20, method="wilson"), abs=1e-9)
    assert answer["ci"]["accuracy"] == pytest.approx(proportion_confint(44, 100, method="wilson"), abs=1e-9)
    assert answer["by_group"]["b"]["ci_method"] == {"accuracy": "wilson"}


def test_groups_that_are_served_alike_are_not_called_unequal() -> None:
    rng, groups = np.random.default_rng(0), [f"g{g}" for g in range(8) for _ in range(40)]
    held = lowest = cried = 0
    for _ in range(100):
        answer = compute(rng.random(320) < 0.8, groups)
        held += answer["ci"]["spread"][0] == 0
        low, high = answer["ci"]["worst_group_accuracy"]
        lowest += low <= 0.8 <= high
        cried += answer["p_alike"] < 0.05
        # The number that describes is above 0 each time.
        assert answer["std"] > 0.02
    assert held >= 93
    assert lowest >= 92
    assert cried <= 9


def test_a_group_that_is_served_worse_is_found() -> None:
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(4), 200)
    answer = compute(rng.random(800) < np.array([0.9, 0.9, 0.9, 0.6])[group], [f"g{g}" for g in group])
    low, high = answer["ci"]["spread"]
    assert 0 < low < np.std([0.9, 0.9, 0.9, 0.6]) < high
    assert answer["p_alike"] < 1e-6
    low, high = answer["ci"]["worst_group_accuracy"]
    assert low < 0.6 < high < 0.8


def test_rows_of_a_cluster_add_no_certainty() -> None:
    once = np.random.default_rng(1).random(60) < 0.6
    groups = ["a", "b"] * 30
    alone = compute(once, groups)
    repeated = compute(np.repeat(once, 4), np.repeat(groups, 4), clusters=[str(row // 4) for row in range(240)])
    assert repeated["spread"] == pytest.approx(alone["spread"], abs=0.01)
    assert repeated["p_alike"] == pytest.approx(alone["p_alike"], abs=0.01)
    for key in ("accuracy", "worst_group_accuracy"):
        widths = [high - low for low, high in (each["ci"][key] for each in (alone, repeated))]
        assert widths[1] == pytest.approx(widths[0], rel=0.06)
    assert repeated["by_group"]["a"]["ci_method"] == {"accuracy": "wilson, effective size"}


def test_intervals_over_groups_need_five_rows_in_each() -> None:
    answer = compute([True, False, True, False] + [True, False] * 3, ["a"] * 4 + ["b"] * 6)
    assert answer["ci"]["worst_group_accuracy"] == answer["ci"]["spread"] == [None, None]
    assert answer["spread"] is answer["p_alike"] is None
    assert answer["by_group"]["a"]["ci_method"] == {"accuracy": "none: 4 clusters, fewer than 5"}
    assert answer["by_group"]["b"]["ci"]["accuracy"] == pytest.approx(proportion_confint(3, 6, method="wilson"), abs=1e-9)
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


@given(st.lists(ROW, min_size=1, max_size=40))
@settings(deadline=None, max_examples=50)
def test_intervals_hold_their_numbers_and_keep_their_bounds(rows: list[tuple[Any, ...]]) -> None:
    for answer in (run(rows), run(rows, clusters=None)):
        for part in (answer, *answer["by_group"].values()):
            for key, (low, high) in part["ci"].items():
                assert (low is None) == (high is None) == part["ci_method"][key].startswith("none: ")
                # A spread has no upper bound of its own.
                assert low is None or 0 <= low < high
                assert low is None or key == "spread" or high <= 1
            low, high = part["ci"]["accuracy"]
            assert low is None or low - 1e-12 <= part["accuracy"] <= high + 1e-12


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
