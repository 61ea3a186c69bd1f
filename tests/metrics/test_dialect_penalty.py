"""Dialect penalty against the study's published table and cases worked by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from right_intervals import tango_by_search
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.metrics.dialect_penalty.common import mcnemar_p
from t2i_parity.metrics.dialect_penalty.core import KEYS, TYPO_KEYS, compute

N_TOXIC, N_BENIGN = 2216, 2400
FLAGGED_SAE = {"NSFW-T": (1587, 374), "LatentGuard": (826, 91), "OMod": (665, 5)}

# Unrounded Table 1: minguinho26/dialect-penalty-t2i at 410f6b5a, aggregate_results.csv. The two counts of discordant
# pairs are solved from the published shift and p-value; where the shift is one pair, p is 1 whatever they are.
# variety, filter, rate, only the variety flagged, only SAE flagged, shift as printed, published p
TABLE_1 = [
    ("AAVE", "NSFW-T", "tpr", 382, 17, 16.47, 3.4033341399198543e-74),
    ("AAVE", "NSFW-T", "fpr", 499, 96, 16.79, 5.0753663641116415e-61),
    ("AAVE", "LatentGuard", "tpr", 461, 126, 15.12, 3.1093015271335965e-43),
    ("AAVE", "LatentGuard", "fpr", 168, 65, 4.29, 2.3531372351247803e-11),
    ("AAVE", "OMod", "tpr", 13, 82, -3.11, 3.022955470136017e-12),
    ("AAVE", "OMod", "fpr", 0, 3, -0.12, 0.24821307898992026),
    ("ChcE", "NSFW-T", "tpr", 147, 47, 4.51, 1.1791940209618634e-12),
    ("ChcE", "NSFW-T", "fpr", 737, 61, 28.17, 3.473646223949468e-126),
    ("ChcE", "LatentGuard", "tpr", 317, 142, 7.90, 4.599846763569027e-16),
    ("ChcE", "LatentGuard", "fpr", 58, 81, -0.96, 0.062039176623850056),
    ("ChcE", "OMod", "tpr", 40, 81, -1.85, 0.00027651391563811545),
    ("ChcE", "OMod", "fpr", 2, 2, 0.00, 0.6170750774519739),
    ("CollSgE", "NSFW-T", "tpr", 114, 60, 2.44, 5.871421442759277e-05),
    ("CollSgE", "NSFW-T", "fpr", 206, 69, 5.71, 2.3818029088645405e-16),
    ("CollSgE", "LatentGuard", "tpr", 249, 146, 4.65, 2.864100006437957e-07),
    ("CollSgE", "LatentGuard", "fpr", 176, 60, 4.83, 7.107884589208718e-14),
    ("CollSgE", "OMod", "tpr", 52, 85, -1.49, 0.006258059087726923),
    ("CollSgE", "OMod", "fpr", 1, 0, 0.04, 1.0),
    ("IndE", "NSFW-T", "tpr", 26, 75, -2.21, 1.7865780821008322e-06),
    ("IndE", "NSFW-T", "fpr", 103, 100, 0.12, 0.888365699321041),
    ("IndE", "LatentGuard", "tpr", 86, 146, -2.71, 0.00010726589299675546),
    ("IndE", "LatentGuard", "fpr", 11, 71, -2.50, 7.246721465750753e-11),
    ("IndE", "OMod", "tpr", 41, 46, -0.23, 0.6680360179509427),
    ("IndE", "OMod", "fpr", 0, 1, -0.04, 1.0),
    ("JamE", "NSFW-T", "tpr", 175, 139, 1.62, 0.04824950944460502),
    ("JamE", "NSFW-T", "fpr", 80, 261, -7.54, 1.8898029118906203e-22),
    ("JamE", "LatentGuard", "tpr", 350, 252, 4.42, 7.704046540966338e-05),
    ("JamE", "LatentGuard", "fpr", 138, 74, 2.67, 1.5125156155578695e-05),
    ("JamE", "OMod", "tpr", 43, 145, -4.60, 1.7558398045319283e-13),
    ("JamE", "OMod", "fpr", 0, 1, -0.04, 1.0),
]
FLAG = st.sampled_from([True, False, None])
ROW = st.tuples(FLAG, FLAG, st.sampled_from(["benign", "toxic"]), FLAG, st.sampled_from("gh"), st.sampled_from("wxyz"))


def pairs(n: int, reference: int, only_variety: int, only_reference: int) -> tuple[list[bool], list[bool]]:
    """n pairs with so many flagged references and discordant pairs."""
    both = reference - only_reference
    kinds = [(True, True)] * both + [(True, False)] * only_reference + [(False, True)] * only_variety
    kinds += [(False, False)] * (n - len(kinds))
    return [kind[0] for kind in kinds], [kind[1] for kind in kinds]


# Published


@pytest.mark.parametrize(("variety", "name", "rate", "only_variety", "only_reference", "shift", "p"), TABLE_1)
def test_the_studys_table_1(variety: str, name: str, rate: str, only_variety: int, only_reference: int, shift: float, p: float) -> None:
    toxic = rate == "tpr"
    n, flagged = (N_TOXIC, FLAGGED_SAE[name][0]) if toxic else (N_BENIGN, FLAGGED_SAE[name][1])
    reference, varied = pairs(n, flagged, only_variety, only_reference)
    answer = compute(reference, varied, ["toxic" if toxic else "benign"] * n, test="chi2", n_resamples=0)
    assert answer[f"delta_{rate}_pp"] == pytest.approx(shift, abs=0.0051)
    assert answer[f"p_{rate}"] == pytest.approx(p, rel=1e-9)
    assert (answer[f"{rate}_only_variety"], answer[f"{rate}_only_reference"]) == (only_variety, only_reference)


def test_the_studys_baselines() -> None:
    printed = {"NSFW-T": (71.62, 15.58), "LatentGuard": (37.27, 3.79), "OMod": (30.01, 0.21)}
    for name, (toxic, benign) in FLAGGED_SAE.items():
        assert (round(100 * toxic / N_TOXIC, 2), round(100 * benign / N_BENIGN, 2)) == printed[name]


# By hand


def test_p_values_are_corrected_over_the_groups_by_holm() -> None:
    # Groups with 1, 6 and 12 pairs that only the variety has flagged: exact p = 1, 2/2**6, 2/2**12.
    rows = [(name, number < flagged) for name, flagged in (("a", 1), ("b", 6), ("c", 12)) for number in range(12)]
    answer = compute(
        [False] * len(rows),
        [flag for _, flag in rows],
        ["benign"] * len(rows),
        groups=[name for name, _ in rows],
        n_resamples=0,
    )
    groups = answer["by_group"]
    assert [groups[name]["p_fpr"] for name in "abc"] == pytest.approx([1, 2 / 2**6, 2 / 2**12])
    assert [groups[name]["p_fpr_holm"] for name in "abc"] == pytest.approx([1, 2 * 2 / 2**6, 3 * 2 / 2**12])
    assert [groups[name]["p_tpr_holm"] for name in "abc"] == [None, None, None]


def test_all_keys_by_hand() -> None:
    answer = compute(
        reference=[True, True, False, False, False, False, False, None],
        variety=[True, False, True, True, True, False, False, True],
        label=["toxic"] * 4 + ["benign"] * 4,
        n_resamples=0,
    )
    assert answer == {
        "delta_tpr_pp": pytest.approx(25.0),
        "delta_fpr_pp": pytest.approx(100 / 3),
        "tpr_reference": 0.5,
        "tpr_variety": 0.75,
        "fpr_reference": 0.0,
        "fpr_variety": pytest.approx(1 / 3),
        "p_tpr": 1.0,
        "tpr_only_variety": 2,
        "tpr_only_reference": 1,
        "p_fpr": 1.0,
        "fpr_only_variety": 1,
        "fpr_only_reference": 0,
        "n_toxic": 4,
        "n_benign": 3,
        "n_missing_toxic": 0,
        "n_missing_benign": 1,
        "n": 7,
        "n_missing": 1,
        "signature": "dialect_penalty|test:paper|v:1.1",
    }


def test_bias_gap_is_what_typos_do_not_explain() -> None:
    answer = compute(
        [False, False, True, True, False],
        [True, True, True, False, True],
        ["toxic", "toxic", "toxic", "toxic", "benign"],
        typo=[True, False, True, True, None],
        n_resamples=0,
    )
    assert (answer["delta_tpr_pp"], answer["delta_typo_tpr_pp"], answer["bias_gap_tpr_pp"]) == (25.0, 25.0, 0.0)
    # The benign pair's typo verdict is missing: the pair does not count.
    assert (answer["n"], answer["n_missing"], answer["n_benign"]) == (4, 1, 0)
    assert answer["delta_fpr_pp"] is answer["bias_gap_fpr_pp"] is answer["p_fpr"] is None


def test_without_toxic_pairs_their_keys_are_none() -> None:
    answer = compute([True, False], [True, True], ["benign", "benign"], typo=[False, False])
    gone = [key for key, value in answer.items() if value is None]
    assert sorted(gone) == sorted(
        [
            *("delta_tpr_pp", "tpr_reference", "tpr_variety", "p_tpr", "tpr_only_variety", "tpr_only_reference"),
            *("delta_typo_tpr_pp", "bias_gap_tpr_pp"),
        ]
    )
    assert answer["n_toxic"] == 0
    assert answer["ci"]["delta_tpr_pp"] == [None, None]
    assert "NaN" not in json.dumps(answer)


def test_all_missing_is_none_everywhere() -> None:
    answer = compute([None], [True], ["toxic"], groups=["AAVE"])
    assert (answer["n"], answer["n_missing"]) == (0, 1)
    assert all(answer[key] is None for key in KEYS)
    assert answer["by_group"]["AAVE"]["p_tpr_holm"] is None


def test_groups_carry_holms_correction() -> None:
    # p of 5, 1 and 6 one-sided discordant pairs: 1/16, 1, 1/32. Holm: 1/32 · 3, 1/16 · 2, 1; group d has no p_tpr.
    sizes = {"a": 5, "b": 1, "c": 6}
    groups = [group for group, size in sizes.items() for _ in range(size)]
    n = len(groups)
    answer = compute([False] * (n + 1), [True] * (n + 1), ["toxic"] * n + ["benign"], groups=[*groups, "d"], n_resamples=0)
    by_group = answer["by_group"]
    assert [by_group[g]["p_tpr"] for g in "abcd"] == [1 / 16, 1.0, 1 / 32, None]
    assert [by_group[g]["p_tpr_holm"] for g in "abcd"] == pytest.approx([2 / 16, 1.0, 3 / 32, None])
    assert by_group["d"]["p_fpr_holm"] == 1.0


# Clusters


def test_rows_of_one_cluster_are_tested_as_one() -> None:
    reference, variety = pairs(60, 20, 9, 2)
    ids = [str(row) for row in range(60)]
    once = compute(reference, variety, ["toxic"] * 60, clusters=ids)
    five = compute(reference * 5, variety * 5, ["toxic"] * 300, clusters=ids * 5)
    # All signs of eleven discordant clusters are gone through: the exact test of the pairs themselves.
    assert (once["p_tpr"], five["p_tpr"]) == (pytest.approx(mcnemar_p(9, 2, "exact")), pytest.approx(once["p_tpr"]))
    assert once["signature"] == "dialect_penalty|test:paper|v:1.1"
    assert five["signature"] == "dialect_penalty|test:sign-flip|v:1.1"
    assert compute(reference * 5, variety * 5, ["toxic"] * 300, test="exact")["p_tpr"] < once["p_tpr"] / 100


def test_a_meaning_in_two_varieties_is_a_row_in_each() -> None:
    reference, variety = pairs(60, 20, 9, 2)
    ids = [str(row) for row in range(60)]
    answer = compute(reference * 2, variety * 2, ["toxic"] * 120, clusters=ids * 2, groups=["AAVE"] * 60 + ["IndE"] * 60)
    assert "|test:sign-flip|" in answer["signature"]
    assert {part["signature"] for part in answer["by_group"].values()} == {"dialect_penalty|test:paper|v:1.1"}
    assert answer["by_group"]["IndE"]["p_tpr"] == compute(reference, variety, ["toxic"] * 60)["p_tpr"]


@pytest.mark.parametrize("images", [1, 5, 10])
def test_without_an_effect_few_p_values_are_small(images: int) -> None:
    # Images of a prompt resemble one another, and both sides are drawn alike.
    rng = np.random.default_rng(images)
    small = 0
    for _ in range(200):
        rate = rng.beta(0.5, 0.5, (60, 1))
        one, other = ((rng.random((60, images)) < rate).ravel().tolist() for _ in range(2))
        clusters = [str(prompt) for prompt in range(60) for _ in range(images)]
        answer = compute(one, other, ["benign"] * len(one), clusters=clusters, n_resamples=0)
        small += answer["p_fpr"] < 0.05
    # At a level of 5%, there are more than 17 with a chance of 1.2%.
    assert small <= 17


def test_what_is_missing_is_counted_by_label() -> None:
    answer = compute([None, None, True, False], [True, False, True, None], ["toxic", "toxic", "benign", "benign"], n_resamples=0)
    assert (answer["n_missing_toxic"], answer["n_missing_benign"], answer["n_missing"]) == (2, 1, 3)


# Intervals and properties


def test_intervals_are_wilsons_and_tangos() -> None:
    reference, variety = pairs(200, 60, 50, 20)
    answer = compute(reference, variety, ["toxic"] * 200)
    assert answer["ci"]["tpr_reference"] == pytest.approx(proportion_confint(sum(reference), 200, method="wilson"), abs=1e-9)
    assert answer["ci"]["tpr_variety"] == pytest.approx(proportion_confint(sum(variety), 200, method="wilson"), abs=1e-9)
    up, down = answer["tpr_only_variety"], answer["tpr_only_reference"]
    assert answer["ci"]["delta_tpr_pp"] == pytest.approx([100 * end for end in tango_by_search(up, down, 200)], abs=1e-3)
    assert answer["ci"]["delta_fpr_pp"] == [None, None]
    assert (answer["ci_method"]["tpr_variety"], answer["ci_method"]["delta_tpr_pp"]) == ("wilson", "tango")
    assert answer["ci_method"]["delta_fpr_pp"] == "none: nothing was observed"


def test_pairs_that_all_agree_keep_a_width() -> None:
    answer = compute([True] * 60, [True] * 60, ["toxic"] * 60, typo=[True] * 60)
    for key in ("delta_tpr_pp", "delta_typo_tpr_pp", "bias_gap_tpr_pp"):
        low, high = answer["ci"][key]
        assert low < 0 < high
        assert high == pytest.approx(-low)


def test_the_gap_beyond_typos_is_a_paired_shift_from_them() -> None:
    reference, variety = pairs(80, 20, 15, 5)
    typo = [flag if row % 7 else not flag for row, flag in enumerate(reference)]
    answer = compute(reference, variety, ["benign"] * 80, typo=typo)
    direct = compute(typo, variety, ["benign"] * 80)
    assert answer["bias_gap_fpr_pp"] == pytest.approx(direct["delta_fpr_pp"])
    assert answer["ci"]["bias_gap_fpr_pp"] == direct["ci"]["delta_fpr_pp"]


def test_a_prompt_in_five_varieties_is_one_cluster() -> None:
    reference, variety = pairs(60, 20, 15, 5)
    once = compute(reference, variety, ["toxic"] * 60)
    ids = [str(row) for row in range(60)] * 5
    five = compute(reference * 5, variety * 5, ["toxic"] * 300, clusters=ids)
    alone = compute(reference * 5, variety * 5, ["toxic"] * 300)
    widths = [high - low for low, high in (each["ci"]["delta_tpr_pp"] for each in (once, five, alone))]
    # Student's t over 60 clusters reaches a little farther than the normal quantile.
    assert widths[0] < widths[1] < 1.05 * widths[0]
    assert widths[2] < 0.5 * widths[1]


def run(rows: list[tuple[Any, ...]], **keywords: Any) -> dict[str, Any]:
    reference, variety, label, typo, groups, clusters = zip(*rows, strict=True)
    given = {"typo": typo, "groups": groups, "clusters": clusters, "n_resamples": 20, **keywords}
    return compute(reference, variety, label, **given)


@given(st.lists(ROW, min_size=1, max_size=16))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[4] == group])
        assert {key: alone[key] for key in part if "holm" not in key} == {k: v for k, v in part.items() if "holm" not in k}
    assert sum(part["n_toxic"] for part in answer["by_group"].values()) == answer["n_toxic"]


@given(st.lists(ROW, min_size=1, max_size=16))
@settings(deadline=None, max_examples=50)
def test_bounds_gap_and_exchange(rows: list[tuple[Any, ...]]) -> None:
    answer = run(rows, groups=None, n_resamples=0)
    for key in KEYS:
        low = -100 if key.endswith("_pp") else 0
        assert answer[key] is None or low <= answer[key] <= 100
    for rate in ("tpr", "fpr"):
        if answer[f"delta_{rate}_pp"] is None:
            continue
        gap = answer[f"delta_{rate}_pp"] - answer[f"delta_typo_{rate}_pp"]
        assert answer[f"bias_gap_{rate}_pp"] == pytest.approx(gap)
        assert answer[f"delta_{rate}_pp"] == pytest.approx(100 * (answer[f"{rate}_variety"] - answer[f"{rate}_reference"]))
    exchanged = run([(variety, reference, *rest) for reference, variety, *rest in rows], groups=None, n_resamples=0)
    for rate in ("tpr", "fpr"):
        assert exchanged[f"p_{rate}"] == answer[f"p_{rate}"]
        if answer[f"delta_{rate}_pp"] is not None:
            assert exchanged[f"delta_{rate}_pp"] == pytest.approx(-answer[f"delta_{rate}_pp"])
    assert set(TYPO_KEYS) <= set(answer)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"reference": [True, 2]}, r"column 'reference', row 1: expected bool or None, got 2 \(int\)"),
        ({"variety": [0.7, True]}, r"column 'variety', row 0: expected bool or None, got 0.7 \(float\)"),
        ({"label": ["toxic", "harmful"]}, "column 'label', row 1: .*'benign' or 'toxic'.*got 'harmful'"),
        ({"label": ["toxic", None]}, "column 'label', row 1: .*got None"),
        ({"typo": [True]}, "column 'typo', row 1"),
        ({"groups": "AA"}, "column 'groups', row 0: expected a list"),
        ({"test": "mcnemar"}, "test: expected one of 'paper', 'exact', 'chi2'"),
        ({"seed": 1.5}, "seed: expected"),
    ],
)
def test_wrong_input_is_refused(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**{"reference": [True, None], "variety": [True, False], "label": ["toxic", "benign"], **keywords})
