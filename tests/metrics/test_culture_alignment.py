"""Culture alignment against plain counting, the study's published rates, and cases worked by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.metrics.culture_alignment.core import KEYS, KNOWN, NO_CUE, UNSPECIFIC, compute

TAG = st.none() | st.sampled_from([*KNOWN, *UNSPECIFIC, *NO_CUE])
ROW = st.tuples(TAG, st.sampled_from(KNOWN), st.sampled_from("gh"), st.sampled_from("wxyz"))
Load = Callable[..., Any]


def test_all_keys_by_hand() -> None:
    # Judged 9; with a cue 6 (Mixed and Other among them), known 4, matching 2; Western 2, one of them unexpected.
    culture = ["Indian", "Korean", "Western", "Western", "Mixed", "Other", "None", "None", "none", None]
    expected = ["Indian", "Japanese", "Western", "Arab", "Arab", "Arab", "Arab", "Western", "Korean", "Korean"]
    answer = compute(culture, expected, n_resamples=0)
    signature = answer.pop("signature")
    assert answer == {
        "cue_rate": pytest.approx(6 / 9),
        "match_rate": pytest.approx(2 / 6),
        "match_rate_known": 0.5,
        "western_rate": pytest.approx(2 / 9),
        "western_shift_rate": pytest.approx(1 / 7),
        "counts": {"Western": 2, "Indian": 1, "Korean": 1, "Other": 1, "Mixed": 1, "None": 3},
        "n_cue": 6,
        "n_known": 4,
        "n": 9,
        "n_missing": 1,
    }
    assert signature.startswith("culture_alignment|tags:15@")
    assert signature.endswith("|western:western|v:1.0")


def test_the_studys_rates_follow_from_counts() -> None:
    # §4.3: 23.2% with cues, 79.6% of them matching, 90.2% of those known, 3.7% Western of all valid, 1.2% of the others'.
    counts = {
        ("Indian", "Indian"): 1585,
        ("Western", "Western"): 262,
        ("Western", "Indian"): 108,
        ("Japanese", "Indian"): 93,
        ("Other", "Indian"): 272,
        ("None", "Indian"): 6942,
        ("None", "Western"): 738,
    }
    rows = [pair for pair, times in counts.items() for _ in range(times)]
    answer = compute([shown for shown, _ in rows], [wanted for _, wanted in rows], n_resamples=0)
    assert answer["n"] == 10_000
    assert round(100 * answer["cue_rate"], 1) == 23.2
    assert round(100 * answer["match_rate"], 1) == 79.6
    assert round(100 * answer["match_rate_known"], 1) == 90.2
    assert round(100 * answer["western_rate"], 1) == 3.7
    assert round(100 * answer["western_shift_rate"], 1) == 1.2
    # The card's 88%: how many of the images with a cue had a known culture.
    assert round(answer["match_rate"] / answer["match_rate_known"], 2) == 0.88 == round(answer["n_known"] / answer["n_cue"], 2)


def test_no_culture_is_an_answer_and_a_failed_judgement_is_none() -> None:
    answer = compute(["None", None], ["Indian", "Indian"])
    assert (answer["n"], answer["n_missing"], answer["cue_rate"]) == (1, 1, 0.0)
    assert answer["match_rate"] is answer["match_rate_known"] is None
    assert answer["ci"]["match_rate"] == [None, None]


def test_all_missing_is_none() -> None:
    answer = compute([None], ["Indian"], groups=["hi"])
    assert [answer[key] for key in KEYS] == [None] * 5
    assert (answer["counts"], answer["n"], answer["n_missing"]) == ({}, 0, 1)
    assert "NaN" not in json.dumps(answer)


def test_a_cue_of_no_specific_culture_counts_against_the_match_only() -> None:
    answer = compute(["Mixed", "Indian"], ["Indian", "Indian"], n_resamples=0)
    assert (answer["cue_rate"], answer["match_rate"], answer["match_rate_known"]) == (1.0, 0.5, 1.0)


def test_tags_are_compared_without_case_and_outer_spaces() -> None:
    plain = compute(["Indian", "None"], ["Indian", "Arab"])
    assert compute([" INDIAN", "none "], ["indian", "Arab"]) == plain


def test_own_tags_and_their_signature() -> None:
    own = {"known": ["East", "West"], "unspecific": [], "no_cue": ["neutral"], "western": ["West"]}
    answer = compute(["West", "neutral"], ["East", "West"], **own, n_resamples=0)
    assert (answer["western_rate"], answer["western_shift_rate"], answer["cue_rate"]) == (0.5, 1.0, 0.5)
    assert answer["signature"].startswith("culture_alignment|tags:3@")
    assert compute(["West"], ["East"], **{**own, "known": ("west", "EAST")}, n_resamples=0)["signature"] == answer["signature"]
    moved = compute(["West"], ["East"], **{**own, "unspecific": ["neutral"], "no_cue": []}, n_resamples=0)
    assert moved["signature"] != answer["signature"]
    with pytest.raises(ValueError, match="column 'culture', row 0: expected one of East, West, neutral, got 'Indian'"):
        compute(["Indian"], ["East"], **own)


def test_the_west_may_be_split() -> None:
    split = compute(["French", "Indian"], ["Indian", "French"], western=["Western", "French"], n_resamples=0)
    assert (split["western_rate"], split["western_shift_rate"]) == (0.5, 1.0)
    assert "|western:french+western|" in split["signature"]


def test_the_defaults_have_a_tag_for_every_language_of_the_study() -> None:
    assert len(KNOWN) >= len(LINGT2I_LANGUAGES)
    assert not {tag.casefold() for tag in KNOWN} & {tag.casefold() for tag in (*UNSPECIFIC, *NO_CUE)}


# Against others


def test_interval_of_a_rate_is_statsmodels() -> None:
    culture = ["Indian"] * 60 + ["None"] * 140
    answer = compute(culture, ["Indian"] * 200)
    assert answer["ci"]["cue_rate"] == pytest.approx(proportion_confint(60, 200, method="wilson"), abs=1e-9)
    # Of the images with a cue, all of which match.
    assert answer["ci"]["match_rate"] == pytest.approx(proportion_confint(60, 60, method="wilson"), abs=1e-9)
    assert answer["ci_method"] == dict.fromkeys(KEYS, "wilson")


def test_a_prompt_in_many_languages_is_one_cluster() -> None:
    rng = np.random.default_rng(0)
    once = [KNOWN[place] for place in rng.integers(0, 3, 60)]
    alone = compute(once, ["Western"] * 60)
    five = compute(once * 5, ["Western"] * 300, clusters=[str(row) for row in range(60)] * 5)
    widths = [high - low for low, high in (each["ci"]["match_rate"] for each in (alone, five))]
    # Student's t over 60 clusters reaches a little farther than the normal quantile.
    assert widths[0] < widths[1] < 1.05 * widths[0]


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None)
def test_what_plain_counting_says(rows: list[tuple[Any, ...]]) -> None:
    culture, expected, *_ = zip(*rows, strict=True)
    answer = compute(culture, expected, n_resamples=0)
    judged = [(shown, wanted) for shown, wanted, *_ in rows if shown is not None]
    cue = [pair for pair in judged if pair[0] not in NO_CUE]
    known = [pair for pair in cue if pair[0] in KNOWN]
    others = [pair for pair in judged if pair[1] != "Western"]

    def rate(some: list[Any], of: list[Any]) -> float | None:
        return len(some) / len(of) if of else None

    match = [pair for pair in cue if pair[0] == pair[1]]
    assert [answer[key] for key in KEYS] == [
        rate(cue, judged),
        rate(match, cue),
        rate(match, known),
        rate([pair for pair in judged if pair[0] == "Western"], judged),
        rate([pair for pair in others if pair[0] == "Western"], others),
    ]
    assert (answer["n"], answer["n_missing"]) == (len(judged), len(rows) - len(judged))
    assert (answer["n_cue"], answer["n_known"]) == (len(cue), len(known))
    assert sum(answer["counts"].values()) == len(judged)
    if known:
        assert answer["match_rate"] <= answer["match_rate_known"]


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    def run(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        culture, expected, groups, clusters = zip(*rows, strict=True)
        return compute(culture, expected, groups=groups, clusters=clusters, n_resamples=20)

    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[2] == group])
        assert {key: alone[key] for key in part} == part


# As people load it


def test_evaluate_takes_own_tags(load: Load) -> None:
    given = {"culture": [None, "West", "neutral"], "expected": ["East", "East", "West"]}
    own = {"known": ["East", "West"], "unspecific": [], "no_cue": ["neutral"], "western": ["West"], "n_resamples": 20}
    assert load("culture_alignment").compute(**given, **own) == compute(**given, **own)


def test_a_tag_that_no_signature_can_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="signature field 'western'"):
        compute(["a|b"], ["a|b"], western=["a|b"], known=["a|b"])
