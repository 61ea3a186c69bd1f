"""Cross-lingual gap against numpy and cases worked by hand."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from t2i_parity.metrics.cross_lingual_gap.core import INFERRED, KEYS, compute, language_means
from t2i_parity.metrics.cross_lingual_gap.languages import LANGUAGES

SCORE = st.none() | st.floats(-10, 10)
ROW = st.tuples(SCORE, st.sampled_from(["en", "fr", "hi", "ar"]), st.sampled_from("gh"), st.sampled_from("wxyz"))


def test_all_keys_by_hand() -> None:
    # Language means: en (0.9 + 0.7) / 2, fr 0.6, hi 0.4; ar has no score.
    answer = compute([0.9, 0.7, 0.6, 0.4, None, math.nan], ["en", "en", "fr", "hi", "hi", "ar"], n_resamples=0)
    assert answer == {
        "mean": pytest.approx(0.6),
        "std": pytest.approx(math.sqrt((0.04 + 0 + 0.04) / 3)),
        "spread": None,
        "p_alike": None,
        "branch_spread": None,
        "branch_p_alike": None,
        "script_spread": None,
        "script_p_alike": None,
        "worst": 0.4,
        "best": pytest.approx(0.8),
        "worst_language": "hi",
        "best_language": "en",
        "by_language": {"ar": None, "en": pytest.approx(0.8), "fr": 0.6, "hi": 0.4},
        "by_branch": {"Germanic": pytest.approx(0.8), "Indo-Aryan": 0.4, "Romance": 0.6},
        "by_script": {"Deva": 0.4, "Latn": pytest.approx(0.7)},
        "n_languages": 3,
        "n": 4,
        "n_missing": 2,
        "signature": "cross_lingual_gap|mean:languages|std:population|v:1.0",
    }


def test_a_language_counts_once_however_many_rows() -> None:
    answer = compute([1.0] * 99 + [0.0], ["en"] * 99 + ["hi"], n_resamples=0)
    assert (answer["mean"], answer["std"]) == (0.5, 0.5)


def test_branches_are_means_of_language_means() -> None:
    answer = compute([1.0, 1.0, 1.0, 0.0], ["fr", "fr", "fr", "es"], n_resamples=0)
    assert answer["by_branch"] == {"Romance": 0.5}
    assert answer["by_script"] == {"Latn": 0.5}


def test_one_language_has_no_spread() -> None:
    answer = compute([0.5, 0.7], ["en", "en"])
    assert answer["std"] is answer["spread"] is answer["p_alike"] is None
    assert answer["ci"] == {key: [None, None] for key in KEYS}
    assert all(why.startswith("none: ") for why in answer["ci_method"].values())
    assert answer["worst"] == answer["best"] == answer["mean"] == pytest.approx(0.6)


def test_nothing_scored_is_none() -> None:
    answer = compute([None, math.nan], ["en", "hi"], groups=["g", "g"])
    assert [answer[key] for key in (*KEYS, *INFERRED, "worst_language", "best_language")] == [None] * (len(KEYS) + len(INFERRED) + 2)
    assert (answer["by_language"], answer["by_branch"]) == ({"en": None, "hi": None}, {})
    assert (answer["n"], answer["n_missing"], answer["n_languages"]) == (0, 2, 0)
    assert answer["ci"] == {key: [None, None] for key in KEYS}
    assert answer["ci_method"] == dict.fromkeys(KEYS, "none: nothing was observed")
    assert answer["contrasts"] == answer["ranks"] == answer["worst_share"] == {}
    assert "NaN" not in json.dumps(answer)


def test_a_tie_goes_to_the_first_code() -> None:
    answer = compute([0.5, 0.5], ["hi", "en"], n_resamples=0)
    assert (answer["worst_language"], answer["best_language"]) == ("en", "en")


def test_every_declared_language_is_taken() -> None:
    answer = compute([0.5] * len(LANGUAGES), list(LANGUAGES), n_resamples=0)
    assert answer["n_languages"] == len(LANGUAGES)
    assert sorted(answer["by_branch"]) == sorted({language.branch for language in LANGUAGES.values()})


def test_languages_of_a_prompt_are_one_draw() -> None:
    rng = np.random.default_rng(0)
    prompts, codes = 60, ["en", "fr", "hi"]
    easy = rng.normal(size=prompts)
    scores = easy[:, None] + np.array([1.0, 0.5, 0.0]) + 0.01 * rng.normal(size=(prompts, 3))
    ids = [str(prompt) for prompt in range(prompts) for _ in codes]
    joint = compute(scores.ravel(), codes * prompts, clusters=ids)
    apart = compute(scores.ravel(), codes * prompts)
    # What makes a prompt hard is shared by its languages: it moves the mean, and leaves the spread alone.
    mean = scipy.stats.ttest_1samp(scores.mean(axis=1), 0).confidence_interval()
    assert joint["ci"]["mean"] == pytest.approx([mean.low, mean.high])
    (low, high), (wide_low, wide_high) = joint["ci"]["spread"], apart["ci"]["spread"]
    assert low < np.std([1.0, 0.5, 0.0]) < high
    assert high - low < 0.5 * (wide_high - wide_low)
    assert joint["ranks"] == {"en": [1, 1], "fr": [2, 2], "hi": [3, 3]}
    assert joint["worst_share"] == {"en": 0.0, "fr": 0.0, "hi": 1.0}


def test_what_is_inferred_is_that_of_the_group_means() -> None:
    rng = np.random.default_rng(1)
    codes = ["en", "de", "fr", "hi"]
    # In points from 0 to 100: numbers that are not taken to have ends.
    scores = rng.normal([80, 78, 70, 50], 10, (30, 4))
    ids = [str(prompt) for prompt in range(30) for _ in codes]
    answer = compute(scores.ravel(), codes * 30, clusters=ids, confidence_level=0.9)
    assert answer["ci_method"] == {
        "mean": "t",
        "std": "noncentral chi-square",
        "spread": "noncentral chi-square",
        "worst": "corrected for selection",
        "best": "corrected for selection",
        "branch_spread": "noncentral chi-square",
        "script_spread": "noncentral chi-square",
    }
    assert answer["ci"]["std"] == answer["ci"]["spread"]
    low, high = answer["ci"]["worst"]
    assert low < answer["worst"] < high
    for code, contrast in answer["contrasts"].items():
        own = scores[:, codes.index(code)] - np.delete(scores, codes.index(code), axis=1).mean(axis=1)
        theirs = scipy.stats.ttest_1samp(own, 0)
        assert contrast["difference"] == pytest.approx(own.mean())
        assert contrast["p"] == pytest.approx(theirs.pvalue)
        bounds = theirs.confidence_interval(1 - 0.1 / 4)
        assert contrast["ci"] == pytest.approx([bounds.low, bounds.high])
    # Two scripts: the Latin ones' mean against the one language in Devanagari.
    latin = scores[:, :3].mean(axis=1) - scores[:, 3]
    assert answer["script_p_alike"] == pytest.approx(scipy.stats.ttest_1samp(latin, 0).pvalue, rel=1e-6)
    assert answer["script_spread"] == pytest.approx(math.sqrt((latin.mean() ** 2 - latin.var(ddof=1) / 30) / 4))


def test_intervals_need_five_clusters_in_every_language() -> None:
    codes = ["en", "fr", "hi"]
    few = compute([0.1, 0.2, 0.3] * 4 + [0.1, 0.2], [*codes * 4, "en", "fr"])
    assert few["ci"] == {key: [None, None] for key in KEYS}
    assert few["ranks"] == {code: [1, 3] for code in codes}
    assert few["contrasts"] == {}
    many = compute(np.linspace(0, 1, 60), codes * 20)
    assert all(low <= many[key] <= high for key, (low, high) in many["ci"].items() if key != "std")


def test_scores_with_ends_that_all_agree_keep_a_width() -> None:
    answer = compute([1.0] * 60, ["en", "fr", "hi"] * 20)
    assert (answer["spread"], answer["p_alike"]) == (0.0, 1.0)
    low, high = answer["ci"]["worst"]
    assert 0.5 < low < 0.95 < high == 1
    assert answer["ci"]["spread"][0] == 0 < answer["ci"]["spread"][1] < 0.2


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None, max_examples=50)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    def run(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        scores, languages, groups, clusters = zip(*rows, strict=True)
        return compute(scores, languages, groups=groups, clusters=clusters, n_resamples=20)

    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[2] == group])
        assert {key: alone[key] for key in part} == part
    assert sum(part["n"] for part in answer["by_group"].values()) == answer["n"]


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None)
def test_what_numpy_says(rows: list[tuple[Any, ...]]) -> None:
    scores, languages, *_ = zip(*rows, strict=True)
    answer = compute(scores, languages, n_resamples=0)
    scored: dict[str, list[float]] = {}
    for score, code in zip(scores, languages, strict=True):
        if score is not None:
            scored.setdefault(code, []).append(score)
    means = {code: np.mean(values) for code, values in scored.items()}
    assert {k: v for k, v in answer["by_language"].items() if v is not None} == pytest.approx(means, abs=1e-9)
    assert set(answer["by_language"]) == set(languages)
    if means:
        values = list(means.values())
        assert answer["mean"] == pytest.approx(np.mean(values), abs=1e-9)
        assert answer["worst"] == answer["by_language"][answer["worst_language"]]
        assert answer["best"] == answer["by_language"][answer["best_language"]]
        if len(means) > 1:
            assert answer["std"] == pytest.approx(np.std(values), abs=1e-9)
            assert 0 <= answer["std"] <= (answer["best"] - answer["worst"]) / 2 + 1e-9


def test_language_means_take_arrays() -> None:
    assert language_means(np.array([0.2, np.nan, 0.4]), ["hi", "en", "hi"]) == {"en": None, "hi": pytest.approx(0.3)}


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"languages": ["en", "xx"]}, "column 'languages', row 1: expected one of en, zh, hi, .*got 'xx'. Fix: "),
        ({"languages": ["en", "EN"]}, "column 'languages', row 1"),
        ({"languages": ["en", None]}, "column 'languages', row 1: expected str, got None"),
        ({"scores": ["0.5", 1.0]}, "column 'scores', row 0: expected float or None, got '0.5'"),
        ({"scores": [0.5, math.inf]}, "column 'scores', row 1: .*not finite"),
        ({"scores": [0.5, True]}, "column 'scores', row 1"),
        ({"scores": [0.5]}, "column 'languages', row 1: expected 1 rows as in 'scores', got 2"),
        ({"scores": []}, "column 'scores', row 0: expected at least one row"),
        ({"clusters": [1, 2]}, "column 'clusters', row 0: expected str, got 1"),
        ({"n_resamples": 0.5}, "n_resamples: expected"),
    ],
)
def test_wrong_input_is_refused(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**{"scores": [0.5, None], "languages": ["en", "hi"], **keywords})
