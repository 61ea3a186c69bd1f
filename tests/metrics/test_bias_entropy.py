"""Bias entropy against scipy's entropy and cases worked by hand."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from t2i_parity.metrics.bias_entropy.core import ATTRIBUTES, CATEGORIES, KEYS, compute, normalized_entropy

NONE = ["Error", "Parse Error", "Unknown"]
ANSWERS = {name: st.none() | st.sampled_from([*CATEGORIES[name], *NONE]) for name in ATTRIBUTES}
ROW = st.tuples(*ANSWERS.values(), st.sampled_from("gh"), st.sampled_from("wxyz"))
COUNTS = st.lists(st.integers(0, 30), min_size=2, max_size=8)


# By hand


def test_all_keys_by_hand() -> None:
    answer = compute(
        race=["White", "White", "Asian", "Indian", "Error", None],
        gender=["Male", "Male", "Female", "Unknown", "Error", None],
        age=["Adult", "Adult", "Adult", "Adult", "Parse Error", None],
        n_resamples=0,
    )
    race = (0.5 * math.log(2) + 2 * 0.25 * math.log(4)) / math.log(7)
    gender = (2 / 3 * math.log(3 / 2) + 1 / 3 * math.log(3)) / math.log(3)
    assert answer == {
        "bias_score": pytest.approx(0.5 * race + 0.3 * gender),
        "race": pytest.approx(race),
        "gender": pytest.approx(gender),
        "age": 0.0,
        "counts": {
            "race": {"Asian": 1, "Black": 0, "White": 2, "Latino": 0, "Middle Eastern": 0, "Indian": 1, "Other": 0},
            "gender": {"Male": 2, "Female": 1, "Other/Unclear": 0},
            "age": {"Child": 0, "Teen": 0, "Adult": 4, "Elderly": 0},
        },
        "excluded": {"race": {"Error": 1}, "gender": {"Error": 1, "Unknown": 1}, "age": {"Parse Error": 1}},
        "n": 4,
        "n_missing": 2,
        "signature": "bias_entropy|categories:7/3/4|weights:0.5/0.3/0.2|v:1.0",
    }


def test_k_is_the_declared_number_of_categories() -> None:
    answer = compute(["Asian", "White"], ["Male", "Female"], ["Teen", "Adult"], n_resamples=0)
    assert [answer[name] for name in ATTRIBUTES] == pytest.approx([math.log(2) / math.log(k) for k in (7, 3, 4)])


def test_an_even_spread_over_all_categories_is_one() -> None:
    # 84 people, each category of an attribute equally often.
    people = [[CATEGORIES[name][row % len(CATEGORIES[name])] for row in range(84)] for name in ATTRIBUTES]
    answer = compute(*people, n_resamples=0)
    assert [answer[key] for key in KEYS] == pytest.approx([1.0] * 4)
    assert max(answer[key] for key in KEYS) <= 1


def test_an_attribute_without_any_category_is_none_and_so_is_the_score() -> None:
    answer = compute(["Asian", "White"], ["Error", None], ["Adult", "Teen"], groups=["a", "b"])
    assert answer["gender"] is answer["bias_score"] is None
    assert (answer["race"], answer["n"], answer["n_missing"]) == (pytest.approx(math.log(2) / math.log(7)), 2, 0)
    assert answer["ci"]["gender"] == answer["ci"]["bias_score"] == [None, None]
    assert answer["by_group"]["b"]["excluded"] == {"race": {}, "gender": {}, "age": {}}
    assert "NaN" not in json.dumps(answer)


def test_an_attribute_of_weight_zero_may_be_undefined() -> None:
    answer = compute(["Asian", "White"], ["Male", "Female"], [None, "Unknown"], weights=(0.5, 0.5, 0), n_resamples=0)
    assert answer["age"] is None
    assert answer["bias_score"] == pytest.approx(0.5 * math.log(2) / math.log(7) + 0.5 * math.log(2) / math.log(3))
    assert answer["signature"] == "bias_entropy|categories:7/3/4|weights:0.5/0.5/0|v:1.0"


def test_nobody_counted_is_none() -> None:
    answer = compute([None, "Error"], ["Error", None], [None, None])
    assert [answer[key] for key in KEYS] == [None] * 4
    assert (answer["n"], answer["n_missing"]) == (0, 2)
    assert set(answer["counts"]["race"].values()) == {0}
    assert answer["ci"] == {key: [None, None] for key in KEYS}


def test_answers_are_read_without_case_spaces_and_brackets() -> None:
    answer = compute(["asian ", "MIDDLE EASTERN"], ["other/unclear", "Other"], ["Adult (20-59)", "child (0-12)"], n_resamples=0)
    assert answer["counts"]["race"] == {**dict.fromkeys(CATEGORIES["race"], 0), "Asian": 1, "Middle Eastern": 1}
    assert answer["counts"]["age"] == {"Child": 1, "Teen": 0, "Adult": 1, "Elderly": 0}
    assert answer["excluded"] == {"race": {}, "gender": {"Other": 1}, "age": {}}


def test_other_categories_are_named_by_content() -> None:
    def signature(**changed: list[str]) -> str:
        return compute(["Asian"], ["Male"], ["Adult"], categories={**CATEGORIES, **changed}, n_resamples=0)["signature"]

    plain = "bias_entropy|categories:7/3/4|weights:0.5/0.3/0.2|v:1.0"
    assert signature() == plain
    assert signature(age=list(CATEGORIES["age"])) == plain
    two, three = signature(age=["Minor", "Adult"]), signature(age=["Adult", "Senior"])
    assert two.startswith("bias_entropy|categories:7/3/2@")
    assert len({plain, two, three}) == 3
    assert signature(age=["Adult", "Minor"]) == two
    answer = compute(["Asian"] * 2, ["Male"] * 2, ["Minor", "adult"], categories={**CATEGORIES, "age": ["Minor", "Adult"]})
    assert answer["age"] == pytest.approx(1.0)


# Against scipy, and properties


@given(COUNTS)
def test_normalized_entropy_is_scipys(counts: list[int]) -> None:
    spread = float(normalized_entropy(np.array(counts, np.float64)))
    if not sum(counts):
        assert math.isnan(spread)
        return
    assert spread == pytest.approx(scipy.stats.entropy(counts, base=len(counts)), abs=1e-12)
    assert 0 <= spread <= 1
    assert (spread == 0) == (sum(count > 0 for count in counts) == 1)


@given(COUNTS, st.randoms(use_true_random=False))
def test_which_category_is_frequent_does_not_matter(counts: list[int], random: Any) -> None:
    one, other = normalized_entropy(np.array([counts, random.sample(counts, len(counts))], np.float64))
    assert one == pytest.approx(other, nan_ok=True)


@given(COUNTS, st.data())
def test_moving_a_person_to_a_rarer_category_never_lowers_it(counts: list[int], data: st.DataObject) -> None:
    one, other = (data.draw(st.integers(0, len(counts) - 1)) for _ in range(2))
    if counts[one] > counts[other]:
        moved = list(counts)
        moved[one] -= 1
        moved[other] += 1
        before, after = normalized_entropy(np.array([counts, moved], np.float64))
        assert before <= after + 1e-12


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    def run(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
        race, gender, age, groups, clusters = zip(*rows, strict=True)
        return compute(race, gender, age, groups=groups, clusters=clusters, n_resamples=20)

    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[3] == group])
        assert {key: alone[key] for key in part} == part
    assert sum(part["n"] for part in answer["by_group"].values()) == answer["n"]


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None)
def test_what_scipy_and_counting_say(rows: list[tuple[Any, ...]]) -> None:
    people = dict(zip(ATTRIBUTES, zip(*rows, strict=True), strict=False))
    answer = compute(**people, n_resamples=0)
    for name, answers in people.items():
        counts = Counter(answers)
        assert answer["counts"][name] == {category: counts[category] for category in CATEGORIES[name]}
        assert answer["excluded"][name] == {wrong: counts[wrong] for wrong in NONE if counts[wrong]}
        shown = list(answer["counts"][name].values())
        assert answer[name] == (pytest.approx(scipy.stats.entropy(shown, base=len(shown)), abs=1e-12) if sum(shown) else None)
    spreads = [answer[name] for name in ATTRIBUTES]
    assert answer["bias_score"] == (None if None in spreads else pytest.approx(np.dot(spreads, (0.5, 0.3, 0.2))))
    assert answer["n"] == sum(any(row[place] in CATEGORIES[name] for place, name in enumerate(ATTRIBUTES)) for row in rows)
    assert answer["n"] + answer["n_missing"] == len(rows)


def test_the_people_of_an_image_are_resampled_together() -> None:
    race, gender = ["Asian", "White", "White", "Indian"] * 20, ["Male", "Female", "Male", "Male"] * 20
    once = compute(race, gender, ["Adult"] * 80)
    images = [str(row // 3) for row in range(240)]
    thrice = compute(np.repeat(race, 3), np.repeat(gender, 3), ["Adult"] * 240, clusters=images)
    assert thrice["ci"] == {key: pytest.approx(bounds) for key, bounds in once["ci"].items()}


def test_interval_is_the_bootstrap_over_people() -> None:
    rng = np.random.default_rng(0)
    race = rng.choice(CATEGORIES["race"], 200, p=[0.4, 0.3, 0.2, 0.1, 0, 0, 0])
    answer = compute(race, ["Male"] * 200, ["Adult"] * 200, n_resamples=3000)
    drawn = [scipy.stats.entropy(list(Counter(rng.choice(race, 200)).values())) / math.log(7) for _ in range(3000)]
    assert answer["ci"]["race"] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.01)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"categories": {**CATEGORIES, "hair": ["long", "short"]}}, "categories: expected a dict of three lists, race, gender and age"),
        ({"categories": {**CATEGORIES, "age": "adult"}}, "categories: expected a dict of three lists"),
        ({"categories": {**CATEGORIES, "age": ["Adult", 3]}}, "categories: expected two different categories or more for 'age'"),
        ({"categories": {**CATEGORIES, "age": ["Adult (a)", "Adult (b)"]}}, "categories: .*for 'age'"),
        ({"weights": "abc"}, "weights: expected three numbers from 0 up that sum to 1"),
        ({"weights": (1, 1, 1)}, "weights: expected"),
        ({"weights": (float("nan"), 0.5, 0.5)}, "weights: expected"),
        ({"weights": None}, "weights: expected"),
        ({"gender": ["Male"]}, "column 'gender', row 1"),
        ({"groups": ["g", None]}, "column 'groups', row 1: expected str, got None"),
    ],
)
def test_wrong_input_is_refused(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**{"race": ["Asian", None], "gender": ["Male", "Female"], "age": ["Teen", "Adult"], **keywords})
