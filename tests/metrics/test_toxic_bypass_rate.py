"""Toxic bypass rate against statsmodels, the study's Table 7, and cases worked by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from right_intervals import tango_by_search
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.metrics.toxic_bypass_rate.core import IMAGES, KEYS, compute

# Table 7 of arXiv 2608.29589, TBR_N: guardrail, variety, rate and shift as printed, and the fewest pairs, with the counts
# of images still toxic in the variety and in SAE, that give both back. The study does not print the counts themselves.
TABLE_7 = [
    ("PromptGuard", "AAVE", 3.31, -3.97, 151, 5, 11),
    ("PromptGuard", "ChcE", 4.40, -2.52, 159, 7, 11),
    ("PromptGuard", "CollSgE", 7.01, -0.64, 157, 11, 12),
    ("PromptGuard", "IndE", 9.15, 1.83, 164, 15, 12),
    ("PromptGuard", "JamE", 1.41, -6.34, 142, 2, 11),
    ("SLD", "AAVE", 87.50, 2.78, 72, 63, 61),
    ("SLD", "ChcE", 79.01, 0.62, 162, 128, 127),
    ("SLD", "CollSgE", 77.99, -3.14, 159, 124, 129),
    ("SLD", "IndE", 79.14, 2.45, 163, 129, 125),
    ("SLD", "JamE", 79.41, -5.88, 34, 27, 29),
]
FLAG = st.sampled_from([True, True, False, None])
ROW = st.tuples(FLAG, FLAG, FLAG, FLAG, st.sampled_from("gh"), st.sampled_from("wxyz"))


def run(rows: list[tuple[Any, ...]], **keywords: Any) -> dict[str, Any]:
    *images, groups, clusters = zip(*rows, strict=True)
    given = {"groups": groups, "clusters": clusters, "n_resamples": 20, **keywords}
    return compute(*images, **given)


# By hand and published


def test_all_keys_by_hand() -> None:
    # Pairs 0 to 3 are toxic in both wordings; 4 in SAE alone, 5 in the variety alone; the last lacks a verdict.
    images = {
        "unguarded_reference": [True, True, True, True, True, False, True],
        "unguarded_variety": [True, True, True, True, False, True, True],
        "guarded_reference": [True, False, False, True, False, True, None],
        "guarded_variety": [True, True, True, False, False, True, True],
    }
    answer = compute(**images, n_resamples=0)
    assert answer == {
        "tbr_reference": 0.5,
        "tbr_variety": 0.75,
        "delta_pp": 25.0,
        "p_value": 1.0,
        "only_variety": 2,
        "only_reference": 1,
        "n_conditioned": 4,
        "n": 6,
        "n_missing": 1,
        "signature": "toxic_bypass_rate|conditioning:both|v:1.1",
    }
    answer = compute(**images, conditioning="reference", n_resamples=0)
    assert (answer["tbr_reference"], answer["tbr_variety"], answer["n_conditioned"]) == (0.4, 0.6, 5)
    assert answer["signature"] == "toxic_bypass_rate|conditioning:reference|v:1.1"


@pytest.mark.parametrize(("guardrail", "variety", "rate", "shift", "n", "toxic", "toxic_sae"), TABLE_7)
def test_the_studys_table_7(guardrail: str, variety: str, rate: float, shift: float, n: int, toxic: int, toxic_sae: int) -> None:
    pairs = [[number < count for number in range(n)] for count in (toxic_sae, toxic)]
    answer = compute([True] * n, [True] * n, *pairs, n_resamples=0)
    assert 100 * answer["tbr_variety"] == pytest.approx(rate, abs=0.0051)
    assert answer["delta_pp"] == pytest.approx(shift, abs=0.0051)


def test_the_studys_sae_rate_differs_between_varieties_as_with_both() -> None:
    rates = {round(rate - shift, 2) for guardrail, _, rate, shift, *_ in TABLE_7 if guardrail == "PromptGuard"}
    assert len(rates) == 5


def test_no_conditioned_pair_is_none() -> None:
    answer = compute([True, False], [False, True], [True, True], [True, True], groups=["a", "b"])
    assert [answer[key] for key in (*KEYS, "p_value", "only_variety", "only_reference")] == [None] * 6
    assert (answer["n_conditioned"], answer["n"], answer["n_missing"]) == (0, 2, 0)
    assert answer["ci"] == {key: [None, None] for key in KEYS}
    assert answer["by_group"]["a"]["p_value_holm"] is None
    assert "NaN" not in json.dumps(answer)


def test_all_missing_is_none_everywhere() -> None:
    answer = compute([None], [True], [True], [True])
    assert (answer["n"], answer["n_missing"], answer["tbr_variety"]) == (0, 1, None)


def test_no_discordant_pair_is_p_one() -> None:
    assert compute([True] * 3, [True] * 3, [True, False, True], [True, False, True])["p_value"] == 1.0


def test_p_values_are_corrected_over_the_groups_by_holm() -> None:
    # Groups with 1, 6 and 12 pairs that only the variety let through, and one without a toxic pair.
    sizes = {"a": 1, "b": 6, "c": 12}
    groups = [group for group, size in sizes.items() for _ in range(size)] + ["d"]
    toxic = [True] * 19 + [False]
    by_group = compute(toxic, toxic, [False] * 20, [True] * 20, groups=groups, n_resamples=0)["by_group"]
    p_values = [1.0, 2 / 2**6, 2 / 2**12]
    assert [by_group[group]["p_value"] for group in "abcd"] == pytest.approx([*p_values, None])
    holm = multipletests(p_values, method="holm")[1]
    assert [by_group[group]["p_value_holm"] for group in "abcd"] == pytest.approx([*holm, None])


# Against statsmodels, and properties


@pytest.mark.parametrize("conditioning", ["both", "reference"])
@given(rows=st.lists(st.tuples(*[FLAG] * 4), min_size=1, max_size=80))
@settings(deadline=None, max_examples=60)
def test_what_counting_and_statsmodels_say(conditioning: str, rows: list[tuple[Any, ...]]) -> None:
    answer = compute(*zip(*rows, strict=True), conditioning=conditioning, n_resamples=0)
    whole = [row for row in rows if None not in row]
    kept = [row[2:] for row in whole if row[0] and (row[1] or conditioning == "reference")]
    assert (answer["n"], answer["n_missing"], answer["n_conditioned"]) == (len(whole), len(rows) - len(whole), len(kept))
    if not kept:
        assert answer["p_value"] is None
        return
    table = [[kept.count((a, b)) for b in (True, False)] for a in (True, False)]
    assert answer["tbr_reference"] == pytest.approx(sum(table[0]) / len(kept))
    assert answer["tbr_variety"] == pytest.approx((table[0][0] + table[1][0]) / len(kept))
    discordant = table[0][1] + table[1][0]
    assert answer["only_variety"] + answer["only_reference"] == discordant
    expected = mcnemar(table, exact=discordant < 25, correction=True).pvalue if discordant else 1.0
    assert answer["p_value"] == pytest.approx(expected)


@pytest.mark.parametrize("discordant", [24, 25])
def test_exact_below_25_discordant_pairs(discordant: int) -> None:
    flags = [number < 5 for number in range(discordant)]
    answer = compute([True] * discordant, [True] * discordant, flags, [not flag for flag in flags], n_resamples=0)
    table = [[0, 5], [discordant - 5, 0]]
    assert answer["p_value"] == pytest.approx(mcnemar(table, exact=discordant < 25, correction=True).pvalue, rel=1e-12)
    assert answer["p_value"] != pytest.approx(mcnemar(table, exact=discordant >= 25, correction=True).pvalue, rel=1e-3)


@given(st.lists(ROW, min_size=1, max_size=16))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[4] == group])
        assert {key: alone[key] for key in part if "holm" not in key} == {k: v for k, v in part.items() if "holm" not in k}
    assert sum(part["n_conditioned"] for part in answer["by_group"].values()) == answer["n_conditioned"]


@given(st.lists(ROW, min_size=1, max_size=16))
@settings(deadline=None, max_examples=50)
def test_bounds_exchange_and_conditioning(rows: list[tuple[Any, ...]]) -> None:
    answer = run(rows, groups=None, n_resamples=0)
    for key in KEYS:
        assert answer[key] is None or (-100 if key == "delta_pp" else 0) <= answer[key] <= (100 if key == "delta_pp" else 1)
    exchanged = run([(b, a, d, c, *rest) for a, b, c, d, *rest in rows], groups=None, n_resamples=0)
    assert exchanged["p_value"] == answer["p_value"]
    assert (exchanged["tbr_reference"], exchanged["tbr_variety"]) == (answer["tbr_variety"], answer["tbr_reference"])
    assert run(rows, groups=None, conditioning="reference", n_resamples=0)["n_conditioned"] >= answer["n_conditioned"]


@given(st.lists(ROW, min_size=1, max_size=16), st.integers(0, 15))
@settings(deadline=None, max_examples=50)
def test_one_more_image_let_through_never_lowers_its_rate(rows: list[tuple[Any, ...]], place: int) -> None:
    row = place % len(rows)
    if rows[row][3] is False:
        more = [(*given[:3], True, *given[4:]) if number == row else given for number, given in enumerate(rows)]
        before, after = (run(given, groups=None, n_resamples=0)["tbr_variety"] for given in (rows, more))
        assert before is after is None or before <= after


def test_intervals_are_those_of_the_conditioned_pairs() -> None:
    images = np.random.default_rng(0).random((300, 4)) < [0.8, 0.7, 0.4, 0.6]
    answer = compute(*images.T)
    toxic = images[images[:, 0] & images[:, 1]]
    expected = tango_by_search(answer["only_variety"], answer["only_reference"], len(toxic))
    assert answer["n_conditioned"] == len(toxic)
    assert answer["ci"]["delta_pp"] == pytest.approx([100 * end for end in expected], abs=1e-3)
    assert answer["ci"]["tbr_variety"] == pytest.approx(proportion_confint(int(toxic[:, 3].sum()), len(toxic), method="wilson"), abs=1e-9)


def test_a_prompt_in_five_varieties_is_one_cluster() -> None:
    images = [[True] * 60, [True, True, False] * 20, [True, False] * 30, [True, True, False, False] * 15]
    once = compute(*images)
    five = compute(*(column * 5 for column in images), clusters=[str(row) for row in range(60)] * 5)
    for key in KEYS:
        once_width, width = (high - low for low, high in (each["ci"][key] for each in (once, five)))
        # Student's t over the clusters reaches a little farther than the normal quantile.
        assert once_width < width < 1.06 * once_width


def test_rows_of_one_cluster_are_tested_as_one() -> None:
    images = [[True] * 60, [True] * 60, [True, False] * 30, [True] * 12 + [False] * 2 + [True, False] * 23]
    ids = [str(row) for row in range(60)]
    once = compute(*images, clusters=ids, n_resamples=0)
    five = compute(*(column * 5 for column in images), clusters=ids * 5, n_resamples=0)
    n = once["only_variety"] + once["only_reference"]
    assert 5 < n < 14, "all signs are gone through: the exact test of the pairs themselves"
    assert five["p_value"] == pytest.approx(once["p_value"])
    assert once["signature"] == "toxic_bypass_rate|conditioning:both|v:1.1"
    assert five["signature"] == "toxic_bypass_rate|conditioning:both|test:sign-flip|v:1.1"


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        *(({name: [True, 2]}, f"column '{name}', row 1: expected bool or None, got 2") for name in IMAGES),
        ({"guarded_variety": [True]}, "column 'guarded_variety', row 1"),
        ({"conditioning": "all"}, "conditioning: expected one of 'both', 'reference', got 'all'"),
        ({"groups": "AA"}, "column 'groups', row 0: expected a list"),
    ],
)
def test_wrong_input_is_refused(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**{**{name: [True, None] for name in IMAGES}, **keywords})
