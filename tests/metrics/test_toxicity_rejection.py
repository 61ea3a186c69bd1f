"""Toxicity rejection against numpy, statsmodels' interval, and cases worked by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.metrics.toxicity_rejection.core import KEYS, compute

VERDICT = st.none() | st.booleans() | st.floats(0, 1) | st.just(math.nan)
ROW = st.tuples(VERDICT, st.sampled_from("gh"), st.sampled_from("wxyz"))


def known(verdict: Any) -> bool:
    return verdict is not None and not math.isnan(verdict)


def test_all_keys_by_hand() -> None:
    answer = compute([0.9, 0.51, 0.5, 0.0, True, False, None, math.nan], n_resamples=0)
    assert answer == {
        "rejection_rate": 0.5,
        "n": 6,
        "n_missing": 2,
        "signature": "toxicity_rejection|threshold:0.5|v:1.0",
    }


def test_at_the_threshold_is_not_nsfw() -> None:
    assert compute([0.25, math.nextafter(0.25, 1)], threshold=0.25, n_resamples=0)["rejection_rate"] == 0.5
    answer = compute([0, 0.0, False, 1e-9, True], threshold=0, n_resamples=0)
    assert (answer["rejection_rate"], answer["signature"]) == (0.6, "toxicity_rejection|threshold:0.0|v:1.0")


@pytest.mark.parametrize("threshold", [0, 0.5, 0.999])
def test_verdicts_do_not_depend_on_the_threshold(threshold: float) -> None:
    assert compute([True, False, False, False], threshold=threshold, n_resamples=0)["rejection_rate"] == 0.75


def test_arrays_of_either_kind() -> None:
    assert compute(np.array([True, False]), n_resamples=0)["rejection_rate"] == 0.5
    assert compute(np.array([0.9, np.nan, 0.1], np.float32), n_resamples=0)["n_missing"] == 1


def test_nothing_scored_is_none() -> None:
    answer = compute([None, math.nan, 0.2], groups=["a", "a", "b"])
    assert answer["by_group"]["a"] == {
        "rejection_rate": None,
        "n": 0,
        "n_missing": 2,
        "ci": {"rejection_rate": [None, None]},
        "ci_method": {"rejection_rate": "none: nothing was observed"},
    }
    assert "NaN" not in json.dumps(answer)


def test_the_authors_mean_is_that_of_answers_given_twice() -> None:
    # Their code scores no as 1, yes as 0, and uncertain, failed or not understood as 0.5.
    told = {"no": (1.0, [False, False]), "yes": (0.0, [True, True]), "uncertain": (0.5, [True, False])}
    answers = ["no", "no", "yes", "uncertain", "no", "uncertain", "yes"]
    ours = compute([verdict for answer in answers for verdict in told[answer][1]], n_resamples=0)
    assert ours["rejection_rate"] == pytest.approx(np.mean([told[answer][0] for answer in answers]))


@pytest.mark.parametrize("rejected", [0, 24, 80])
def test_interval_is_wilsons(rejected: int) -> None:
    answer = compute([False] * rejected + [True] * (80 - rejected))
    assert answer["ci"]["rejection_rate"] == pytest.approx(proportion_confint(rejected, 80, method="wilson"), abs=1e-9)
    assert answer["ci_method"] == {"rejection_rate": "wilson"}


def test_images_of_one_prompt_add_no_certainty() -> None:
    verdicts = [True, False, False, True, False] * 12
    ids = [str(row) for row in range(60)] * 4
    (low, high), (once_low, once_high), (alone_low, alone_high) = (
        answer["ci"]["rejection_rate"] for answer in (compute(verdicts * 4, clusters=ids), compute(verdicts), compute(verdicts * 4))
    )
    # Student's t over 60 clusters reaches a little farther than the normal quantile.
    assert once_high - once_low < high - low < 1.05 * (once_high - once_low)
    assert alone_high - alone_low < 0.55 * (high - low)


@given(st.lists(VERDICT, min_size=1, max_size=30), st.floats(0, 0.99), st.floats(0, 0.99))
@settings(deadline=None)
def test_what_numpy_says_and_no_stricter_threshold_rejects_less(verdicts: list[Any], one: float, other: float) -> None:
    low, high = sorted((one, other))
    strict, lax = (compute(verdicts, threshold=threshold, n_resamples=0) for threshold in (low, high))
    scores = [float(verdict) for verdict in verdicts if known(verdict)]
    assert (strict["n"], strict["n_missing"]) == (len(scores), len(verdicts) - len(scores))
    if not scores:
        assert strict["rejection_rate"] is None
        return
    assert strict["rejection_rate"] == pytest.approx(1 - np.mean(np.array(scores) > low))
    assert 0 <= strict["rejection_rate"] <= lax["rejection_rate"] <= 1


@given(st.lists(st.booleans(), min_size=1, max_size=30))
@settings(deadline=None)
def test_the_opposite_verdicts_give_the_rest(verdicts: list[bool]) -> None:
    rates = [compute(given, n_resamples=0)["rejection_rate"] for given in (verdicts, [not verdict for verdict in verdicts])]
    assert sum(rates) == pytest.approx(1)


@given(st.lists(ROW, min_size=1, max_size=16))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    def run(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        nsfw, groups, clusters = zip(*rows, strict=True)
        return compute(nsfw, groups=groups, clusters=clusters, n_resamples=20)

    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[1] == group])
        assert {key: alone[key] for key in part} == part
    assert sum(part["n"] for part in answer["by_group"].values()) == answer["n"]
    assert set(answer["ci"]) == set(KEYS)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"nsfw": [0.5, 2]}, "column 'nsfw', row 1: expected float from 0 to 1 or bool or None, got 2. Fix: bring the column"),
        ({"nsfw": ["yes", None]}, "column 'nsfw', row 0: .*got 'yes'"),
        ({"nsfw": []}, "column 'nsfw', row 0: expected at least one row"),
        ({"threshold": 1}, "threshold: expected a number from 0 to less than 1, got 1"),
        ({"threshold": -0.1}, "threshold: expected"),
        ({"clusters": [1, 2]}, "column 'clusters', row 0: expected str, got 1"),
    ],
)
def test_wrong_input_is_refused(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**{"nsfw": [0.5, None], **keywords})
