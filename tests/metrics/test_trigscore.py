"""TRIGScore against scipy's softmax, a plain account of the authors' code, and cases worked by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from t2i_parity.metrics.trigscore.core import KEYS, SCALE, compute, per_row, words_of

VALUES = dict(zip(SCALE, (1, 0.75, 0.5, 0.25, 0), strict=True))
WEIGHT = st.floats(-20, 0)
# Whole words, cut words, noise, and what only the authors' code takes for a rating.
TOKEN = st.sampled_from(
    [
        "excellent",
        " Good",
        "▁medium",
        "BAD",
        "terrible",
        "ex",
        "Med",
        "terr",
        "ter",
        "**good**",
        "exactly",
        "badly",
        "The",
        "I",
        "",
        "m",
        "(bad",
    ]
)
ANSWER = st.lists(st.tuples(TOKEN, WEIGHT), max_size=5)
ROW = st.tuples(st.none() | ANSWER, st.sampled_from("gh"), st.sampled_from("wxyz"))


def columns(answers: list[list[tuple[str, float]] | None]) -> tuple[list[Any], list[Any]]:
    """The two columns of such answers."""
    return tuple([None if answer is None else [pair[place] for pair in answer] for answer in answers] for place in (0, 1))  # type: ignore[return-value]


def logs(*shares: float) -> list[float]:
    return [math.log(share) for share in shares]


# By hand


def test_all_keys_by_hand() -> None:
    # p̃ is 2/3 for good and 1/3 for bad: S = 7/12, C = 2/3. The second image is surely terrible, the third without rating.
    answer = compute([["Good", "bad"], ["terrible"], ["The"], None], [logs(0.5, 0.25), logs(0.9), logs(0.8), [-1.0]], n_resamples=0)
    assert answer == {
        "trigscore": pytest.approx((7 / 12 * 2 / 3 + 0) / 2),
        "confidence": pytest.approx((2 / 3 + 1) / 2),
        "n": 2,
        "n_missing": 2,
        "signature": "trigscore|scale:excellent>good>medium>bad>terrible|variant:paper|v:1.0",
    }


def test_reference_is_rounded_and_without_confidence() -> None:
    tokens, logprobs = [["Good", "bad"], ["terrible", "excellent"]], [logs(0.5, 0.25), logs(0.6, 0.3)]
    rows = per_row(tokens, logprobs, variant="reference")
    assert rows["score"].tolist() == [0.583, 0.333]
    assert rows["confidence"] == pytest.approx([2 / 3, 2 / 3])
    answer = compute(tokens, logprobs, variant="reference", n_resamples=0)
    assert answer["trigscore"] == pytest.approx((0.583 + 0.333) / 2)
    assert answer["signature"].endswith("|variant:reference|v:1.0")


@pytest.mark.parametrize(("word", "value"), VALUES.items())
@pytest.mark.parametrize("variant", ["paper", "reference"])
def test_a_sure_word_is_its_value(word: str, value: float, variant: str) -> None:
    rows = per_row([[word.upper()]], [[-3.0]], variant=variant)
    assert (rows["score"].tolist(), rows["reason"]) == ([value], [None])
    assert rows["confidence"][0] == pytest.approx(1)


def test_tokens_of_one_word_add_up() -> None:
    rows = per_row([["Good", " good", "bad"]], [logs(0.25, 0.25, 0.5)])
    assert rows["confidence"][0] == pytest.approx(0.5)
    assert rows["score"][0] == pytest.approx(0.5 * 0.5)


def test_doubt_lowers_the_papers_score() -> None:
    torn, flat = per_row([["excellent", "good"], list(SCALE)], [logs(0.5, 0.5), logs(*[0.2] * 5)])["score"]
    assert torn == pytest.approx(0.5 * 0.875)
    assert flat == pytest.approx(0.2 * 0.5)


def test_a_score_of_zero_is_a_score_and_no_rating_is_missing() -> None:
    answer = compute([["terrible"], ["Sorry"]], [[-0.1], [-0.1]], groups=["a", "b"])
    assert (answer["trigscore"], answer["n"], answer["n_missing"]) == (0.0, 1, 1)
    assert answer["by_group"]["b"] == {
        **dict.fromkeys(KEYS),
        "n": 0,
        "n_missing": 1,
        "ci": {key: [None, None] for key in KEYS},
        "ci_method": dict.fromkeys(KEYS, "none: nothing was observed"),
    }
    assert "NaN" not in json.dumps(answer)


def test_reasons() -> None:
    tokens = [["good"], None, ["bad"], [], ["I", "The"], list("abcdef")]
    logprobs = [[-1.0], [-1.0], None, [], [-1.0, -2.0], [-1.0] * 6]
    rows = per_row(tokens, logprobs)
    assert rows["reason"] == [
        None,
        "no answer from the judge",
        "no answer from the judge",
        "no tokens",
        "no rating word among 'I', 'The'",
        "no rating word among 'a', 'b', 'c', 'd', 'e' …",
    ]
    assert np.isnan(rows["score"]).tolist() == np.isnan(rows["confidence"]).tolist() == [False] + [True] * 5


# Which token is which word


@pytest.mark.parametrize(
    ("token", "paper", "reference"),
    [
        ("excellent", "excellent", "excellent"),
        (" Excellent", "excellent", "excellent"),
        ("▁good", "good", "good"),
        ("Ġgood", "good", None),
        ("\n**Bad**.", "bad", None),
        ("(bad)", "bad", "bad"),
        ("ex", "excellent", "excellent"),
        ("Med", "medium", "medium"),
        ("terr", "terrible", "terrible"),
        ("ter", "terrible", None),
        ("te", "terrible", None),
        ("goo", "good", None),
        ("exactly", None, "excellent"),
        ("mediocre", None, "medium"),
        ("badly", None, "bad"),
        ("goods", None, "good"),
        ("t", None, None),
        ("", None, None),
        ("...", None, None),
        ("The", None, None),
        ("lent", None, None),
    ],
)
def test_which_word_a_token_stands_for(token: str, paper: str | None, reference: str | None) -> None:
    assert words_of(token) == ([paper] if paper else [])
    assert words_of(token, variant="reference") == ([reference] if reference else [])


def test_a_token_that_could_begin_two_words_counts_for_none() -> None:
    scale = ["very good", "good", "goodish", "very bad"]
    assert words_of("very", scale) == ["very good", "very bad"]
    assert words_of("good", scale) == ["good"]
    rows = per_row([["Very", "good"], ["Very", "goo"]], [logs(0.5, 0.5), logs(0.5, 0.5)], scale=scale)
    assert rows["score"].tolist() == [pytest.approx(2 / 3), pytest.approx(np.nan, nan_ok=True)]
    assert rows["reason"][1] == "no rating word among 'Very', 'goo'; 'Very', 'goo' could begin more than one"
    # The authors' code lets a token count for each word that it starts with.
    assert words_of("goodish", scale, "reference") == ["good", "goodish"]
    assert per_row([["goodish"]], [[-1.0]], scale=scale, variant="reference")["score"][0] == 0.5


def test_a_scale_in_another_language() -> None:
    scale = ["优秀", "良好", "中等", "差", "糟糕"]
    answer = compute([["优"], ["差"], ["良好。"], ["好"]], [[-0.1]] * 4, scale=scale, n_resamples=0)
    assert (answer["trigscore"], answer["n_missing"]) == (pytest.approx((1 + 0.25) / 2), 2)
    assert answer["signature"].startswith("trigscore|scale:优秀>良好>中等>差>糟糕|")
    hindi = ["उत्कृष्ट", "अच्छा", "बुरा"]
    assert per_row([["अच्छा", " बु"]], [logs(0.5, 0.5)], scale=hindi)["score"][0] == pytest.approx(0.5 * 0.25)


def test_two_words_are_a_scale_and_steps_are_equal() -> None:
    assert per_row([["yes", "no"]], [logs(0.75, 0.25)], scale=("yes", "no"))["score"][0] == pytest.approx(0.75**2)
    assert per_row([["b"]], [[-1.0]], scale=["a", "b", "c", "d"])["score"][0] == pytest.approx(2 / 3)


# Against others


@given(st.lists(st.tuples(st.sampled_from(SCALE), WEIGHT), min_size=1, max_size=5, unique_by=lambda pair: pair[0]))
@settings(deadline=None)
def test_whole_words_are_scipys_softmax(answer: list[tuple[str, float]]) -> None:
    shares = scipy.special.softmax([weight for _, weight in answer])
    expected = sum(VALUES[word] * share for (word, _), share in zip(answer, shares, strict=True))
    rows = per_row(*columns([answer]))
    assert rows["confidence"][0] == pytest.approx(max(shares))
    assert rows["score"][0] == pytest.approx(max(shares) * expected)
    assert abs(per_row(*columns([answer]), variant="reference")["score"][0] - expected) <= 0.0005 + 1e-9


def of_the_code(answer: list[tuple[str, float]]) -> float | None:
    """What the authors' code makes of one answer (None for its 0.0 without a rating), told in plain probabilities."""
    starts = {"excellent": "ex", "good": "good", "medium": "med", "bad": "bad", "terrible": "terr"}
    mass = dict.fromkeys(SCALE, 0.0)
    for token, weight in answer:
        text = token.strip().lower().removeprefix("▁").lstrip(".,:;!?'\"-–—()[]{}")
        for word in SCALE:
            mass[word] += math.exp(weight) if text.startswith(starts[word]) else 0
    total = sum(mass.values())
    return sum(VALUES[word] * share for word, share in mass.items()) / total if total else None


@given(ANSWER)
@settings(deadline=None)
def test_reference_is_the_authors_code(answer: list[tuple[str, float]]) -> None:
    rows, expected = per_row(*columns([answer]), variant="reference"), of_the_code(answer)
    if expected is None:
        assert np.isnan(rows["score"][0])
        assert rows["reason"][0]
    else:
        assert abs(rows["score"][0] - expected) <= 0.0005 + 1e-9
        assert rows["score"][0] == round(rows["score"][0], 3)


# Properties


@given(ANSWER, st.floats(-50, 50), st.randoms(use_true_random=False), st.sampled_from(["paper", "reference"]))
@settings(deadline=None)
def test_bounds_order_of_tokens_and_scores_up_to_a_constant(
    answer: list[tuple[str, float]], shift: float, random: Any, variant: str
) -> None:
    shuffled = random.sample(answer, len(answer))
    moved = [(token, weight + shift) for token, weight in answer]
    scores, confidences = (per_row(*columns([answer, shuffled, moved]), variant=variant)[key] for key in ("score", "confidence"))
    if np.isnan(scores[0]):
        assert np.isnan(scores).all()
        return
    step = 0.0011 if variant == "reference" else 1e-9
    assert scores == pytest.approx([scores[0]] * 3, abs=step)
    assert confidences == pytest.approx([confidences[0]] * 3)
    assert 0 <= scores[0] <= 1
    assert 1 / 5 - 1e-9 <= confidences[0] <= 1
    if variant == "paper":
        assert scores[0] <= confidences[0] + 1e-12


@given(ANSWER, st.floats(0.1, 5))
@settings(deadline=None)
def test_a_likelier_best_word_never_lowers_the_codes_score(answer: list[tuple[str, float]], more: float) -> None:
    before, after = ([*answer, ("excellent", weight)] for weight in (-6.0, -6.0 + more))
    scores = per_row(*columns([before, after]), variant="reference")["score"]
    assert scores[0] <= scores[1]


@given(st.lists(ROW, min_size=1, max_size=12))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    def run(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        answers, groups, clusters = zip(*rows, strict=True)
        return compute(*columns(list(answers)), groups=groups, clusters=clusters, n_resamples=20)

    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[1] == group])
        assert {key: alone[key] for key in part} == part
    assert sum(part["n"] for part in answer["by_group"].values()) == answer["n"]
    assert answer["n"] + answer["n_missing"] == len(rows)
    assert all(answer[key] is None or 0 <= answer[key] <= 1 for key in KEYS)


def test_interval_is_about_that_of_the_mean() -> None:
    weights = np.random.default_rng(0).normal(size=(300, 5)).tolist()
    answer = compute([list(SCALE)] * 300, weights)
    scores = per_row([list(SCALE)] * 300, weights)["score"]
    # Of many scores that lie far from both ends Wilson's interval is Student's.
    theirs = scipy.stats.ttest_1samp(scores, 0).confidence_interval()
    assert answer["ci"]["trigscore"] == pytest.approx([theirs.low, theirs.high], abs=0.001)
    assert answer["ci_method"]["trigscore"] == "wilson, effective size"


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"logprobs": [[-1.0, -2.0], None]}, "column 'logprobs', row 0: expected 1 items as in 'tokens', got 2"),
        ({"scale": ["good", "."]}, "scale: expected two different words or more, the best first"),
        ({"scale": 5}, "scale: expected"),
        ({"scale": ["good", 5]}, "scale: expected"),
        ({"variant": "S"}, "variant: expected one of 'paper', 'reference', got 'S'"),
        ({"clusters": ["c"]}, "column 'clusters', row 1"),
    ],
)
def test_wrong_input_is_refused(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**{"tokens": [["good"], None], "logprobs": [[-1.0], None], **keywords})
