"""Geographical representativeness against statsmodels, the study's Table 1, and cases worked by hand."""

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
from statsmodels.stats.weightstats import DescrStatsW

from t2i_parity.dataset_builder.countries import COUNTRIES
from t2i_parity.metrics.geo_representativeness.core import CONDITIONS, KEYS, compute, paired_t_p

# Table 1 of arXiv 2305.11080: country; both models, DALL·E 2, Stable Diffusion, each with the country's name and unspecified.
TABLE_1 = {
    "USA": (3.54, 3.35, 3.56, 3.24, 3.51, 3.46),
    "IND": (3.74, 3.24, 4.00, 3.44, 3.48, 3.03),
    "CAN": (3.62, 2.82, 3.78, 2.73, 3.47, 2.91),
    "ZAF": (3.25, 2.74, 3.49, 2.70, 3.02, 2.78),
    "BRA": (3.70, 2.69, 4.00, 2.65, 3.40, 2.72),
    "GBR": (3.82, 2.65, 4.14, 2.41, 3.48, 2.88),
    "MEX": (3.83, 2.59, 4.18, 2.74, 3.49, 2.45),
    "ESP": (3.44, 2.46, 3.62, 2.29, 3.26, 2.63),
    "PRT": (3.73, 2.46, 4.02, 2.47, 3.44, 2.45),
    "ITA": (3.58, 2.40, 3.66, 2.40, 3.50, 2.39),
    "BEL": (3.49, 2.40, 3.76, 2.28, 3.21, 2.52),
    "FRA": (3.32, 2.34, 3.54, 2.38, 3.09, 2.30),
    "POL": (3.62, 2.29, 4.14, 2.23, 3.10, 2.35),
    "DEU": (3.64, 2.26, 4.03, 2.04, 3.26, 2.49),
    "AUS": (3.35, 2.26, 3.55, 2.10, 3.15, 2.41),
    "CZE": (3.43, 2.25, 3.68, 2.18, 3.18, 2.31),
    "HUN": (3.41, 2.24, 3.65, 2.06, 3.18, 2.42),
    "NZL": (3.10, 2.23, 3.10, 2.24, 3.11, 2.22),
    "EST": (3.36, 2.22, 3.89, 2.18, 2.84, 2.26),
    "SVN": (3.29, 2.21, 3.48, 2.19, 3.10, 2.23),
    "CHL": (3.12, 2.15, 3.62, 2.26, 2.62, 2.04),
    "ISR": (3.14, 2.15, 3.62, 2.10, 2.66, 2.19),
    "KOR": (3.49, 2.10, 3.92, 2.24, 3.06, 1.96),
    "LVA": (3.52, 2.10, 4.11, 1.87, 2.93, 2.32),
    "FIN": (3.62, 2.03, 3.93, 1.95, 3.30, 2.10),
    "JPN": (3.55, 1.95, 3.97, 1.97, 3.13, 1.94),
    "GRC": (3.43, 1.94, 3.65, 1.92, 3.22, 1.97),
}
MEAN = st.integers(1000, 5000).map(lambda thousandths: thousandths / 1000)
RATING = st.none() | st.integers(1, 5) | st.floats(1, 5)
ROW = st.tuples(
    RATING,
    st.sampled_from(["IND", "JPN", "GRC"]),
    st.sampled_from(CONDITIONS),
    st.sampled_from(["house", "road"]),
    st.sampled_from("pqr"),
    st.sampled_from("gh"),
)
COLUMNS = ("ratings", "countries", "conditions", "nouns", "participants", "groups")
Load = Callable[..., Any]
ROWS: dict[str, list[Any]] = {
    "ratings": [None, 4, 2, 3.5, 1, 5],
    "countries": ["IND", "IND", "JPN", "JPN", "IND", "JPN"],
    "conditions": ["unspecified", "country", "unspecified", "country", "unspecified", "country"],
}


def columns(rows: list[tuple[Any, ...]]) -> dict[str, Any]:
    return dict(zip(COLUMNS, zip(*rows, strict=True), strict=True))


def of_table(place: int) -> dict[str, Any]:
    """Table 1 as one rating a country and condition: ``place`` 0 is both models, 2 DALL·E 2, 4 Stable Diffusion."""
    rows = [
        (scores[place + offset], code, condition)
        for code, scores in TABLE_1.items()
        for offset, condition in ((0, "country"), (1, "unspecified"))
    ]
    return dict(zip(COLUMNS[:3], zip(*rows, strict=True), strict=True))


# Published


def test_table_1_is_of_the_studied_countries() -> None:
    assert sorted(TABLE_1) == sorted(COUNTRIES)


@pytest.mark.parametrize(
    ("place", "with_country", "unspecified", "gain"),
    [(0, 3.486, 2.390, 1.097), (2, 3.781, 2.343, 1.438), (4, 3.192, 2.434, 0.758)],
)
def test_the_studys_averages_and_gains(place: int, with_country: float, unspecified: float, gain: float) -> None:
    answer = compute(**of_table(place), n_resamples=0)
    assert answer["gr_country"] == pytest.approx(with_country, abs=5e-4)
    assert answer["gr_unspecified"] == pytest.approx(unspecified, abs=5e-4)
    assert answer["gain"] == pytest.approx(gain, abs=5e-4)
    assert answer["n_countries"] == 27
    # §3.3: p < 0.05; the card: p < 1e-12.
    assert answer["p_value"] < 1e-12


def test_the_studys_counts_of_countries() -> None:
    by_country = compute(**of_table(0), n_resamples=0)["by_country"]
    assert sum(part["gr_unspecified"] < 3 for part in by_country.values()) == 25
    assert sum(3 <= part["gr_country"] <= 3.5 for part in by_country.values()) == 14
    assert all(part["gain"] > 0 for part in by_country.values())


def test_both_models_together_are_table_1s_overall_columns() -> None:
    models = [of_table(place) for place in (2, 4)]
    given = {name: [*models[0][name], *models[1][name]] for name in COLUMNS[:3]}
    answer = compute(**given, models=["DALL·E 2"] * 54 + ["Stable Diffusion"] * 54, n_resamples=0)
    for code, (with_country, unspecified, *_) in TABLE_1.items():
        assert answer["by_country"][code]["gr_country"] == pytest.approx(with_country, abs=0.0101)
        assert answer["by_country"][code]["gr_unspecified"] == pytest.approx(unspecified, abs=0.0051)
    assert answer["by_model"]["DALL·E 2"]["gain"] == pytest.approx(1.438, abs=5e-4)
    assert answer["by_model"]["Stable Diffusion"]["gain"] == pytest.approx(0.758, abs=5e-4)


def test_the_two_models_unspecified_scores_differ_by_the_papers_own_test() -> None:
    # §3.5 finds no significant difference; the card tells that the printed means give p = 0.047.
    table = np.array(list(TABLE_1.values()))
    p = paired_t_p(table[:, 3], table[:, 5])
    assert p == pytest.approx(0.047, abs=5e-4)


# By hand


def test_all_keys_by_hand() -> None:
    answer = compute(
        [2, 4, 4, 5, 1, 3, None, 2],
        ["IND", "IND", "IND", "IND", "JPN", "JPN", "JPN", "GRC"],
        ["unspecified", "unspecified", "country", "country", "unspecified", "country", "country", "country"],
        n_resamples=0,
    )
    # India 3 and 4.5, Japan 1 and 3, Greece none and 2; gains 1.5 and 2.
    assert answer == {
        "gr_unspecified": 2.0,
        "gr_country": pytest.approx(9.5 / 3),
        "gain": 1.75,
        # t = 1.75 / (0.25 / √1 ) = 7 on one degree of freedom: p = 2 · (1/2 − arctan(7)/π)
        "p_value": pytest.approx(1 - 2 * math.atan(7) / math.pi),
        "by_country": {
            "GRC": {"gr_unspecified": None, "gr_country": 2.0, "gain": None, "n": 1, "n_missing": 0},
            "IND": {"gr_unspecified": 3.0, "gr_country": 4.5, "gain": 1.5, "n": 4, "n_missing": 0},
            "JPN": {"gr_unspecified": 1.0, "gr_country": 3.0, "gain": 2.0, "n": 2, "n_missing": 1},
        },
        "n_countries": 2,
        "n": 7,
        "n_missing": 1,
        "signature": "geo_representativeness|mean:countries|test:paired-t|v:1.0",
    }


def test_a_country_counts_once_however_many_rated() -> None:
    answer = compute([5] * 99 + [1], ["IND"] * 99 + ["JPN"], ["country"] * 100, n_resamples=0)
    assert answer["gr_country"] == 3.0
    assert answer["gr_unspecified"] is answer["gain"] is answer["p_value"] is None


def test_nouns_and_models_are_broken_down() -> None:
    given = {**ROWS, "nouns": ["house", "house", "house", "road", "road", "house"], "models": ["sd"] * 6}
    answer = compute(**given, n_resamples=20)
    assert sorted(answer["by_noun"]) == ["house", "road"]
    house = compute([None, 4, 2, 5], *(([*ROWS[c][:3], ROWS[c][5]]) for c in COLUMNS[1:3]), n_resamples=20)
    assert answer["by_noun"]["house"] == {key: value for key, value in house.items() if key != "signature"}
    whole = {key: value for key, value in answer.items() if key not in ("signature", "by_noun", "by_model")}
    assert answer["by_model"] == {"sd": whole}
    grouped = compute(**given, groups=["x"] * 6, n_resamples=20)["by_group"]["x"]
    assert grouped == {key: value for key, value in answer.items() if key != "signature"}


def test_all_missing_is_none() -> None:
    answer = compute([None, math.nan], ["IND", "JPN"], ["country", "unspecified"], nouns=["house", "house"])
    assert [answer[key] for key in (*KEYS, "p_value")] == [None] * 4
    assert (answer["n"], answer["n_missing"], answer["n_countries"]) == (0, 2, 0)
    assert answer["ci"] == {key: [None, None] for key in KEYS}
    assert answer["by_noun"]["house"]["by_country"]["IND"]["gr_country"] is None
    assert "NaN" not in json.dumps(answer)


def test_no_p_value_where_t_is_not_defined() -> None:
    assert paired_t_p(np.array([2.0]), np.array([3.0])) is None
    assert paired_t_p(np.array([]), np.array([])) is None
    assert paired_t_p(np.array([2.0, 3.0]), np.array([3.0, 4.0])) is None
    # Equal but for rounding: 0.1 + 0.2 is not 0.3.
    assert paired_t_p(np.array([0.1 + 0.2, 1.0]), np.array([1.3, 2.0])) is None


# Against others


@given(st.lists(st.tuples(MEAN, MEAN), min_size=2, max_size=27))
def test_p_is_statsmodels(pairs: list[tuple[float, float]]) -> None:
    unspecified, country = np.array(pairs).T
    p = paired_t_p(unspecified, country)
    gains = DescrStatsW(country - unspecified)
    if p is None:
        assert gains.std == pytest.approx(0, abs=1e-8)
    else:
        assert p == pytest.approx(gains.ttest_mean(0)[1], rel=1e-6, abs=1e-12)


@given(st.lists(ROW, min_size=1, max_size=20))
@settings(deadline=None)
def test_what_numpy_says(rows: list[tuple[Any, ...]]) -> None:
    ratings, countries, conditions, *_ = zip(*rows, strict=True)
    answer = compute(ratings, countries, conditions, n_resamples=0)
    means: dict[str, dict[str, float]] = {condition: {} for condition in CONDITIONS}
    for condition in CONDITIONS:
        for code in set(countries):
            of = [rating for rating, *where in rows if rating is not None and where[:2] == [code, condition]]
            if of:
                means[condition][code] = float(np.mean(of))
    for condition, key in zip(CONDITIONS, ("gr_unspecified", "gr_country"), strict=True):
        shown = {code: part[key] for code, part in answer["by_country"].items() if part[key] is not None}
        assert shown == pytest.approx(means[condition])
        assert answer[key] == (pytest.approx(np.mean(list(means[condition].values()))) if means[condition] else None)
        assert answer[key] is None or 1 - 1e-9 <= answer[key] <= 5 + 1e-9
    both = sorted(set(means["country"]) & set(means["unspecified"]))
    gains = [means["country"][code] - means["unspecified"][code] for code in both]
    assert answer["gain"] == (pytest.approx(np.mean(gains), abs=1e-12) if both else None)
    assert answer["n_countries"] == len(both)
    assert answer["n"] == sum(part["n"] for part in answer["by_country"].values())
    assert set(answer["by_country"]) == set(countries)


def study(seed: int = 0) -> dict[str, Any]:
    """Ten participants in each of four countries, each with a leaning of their own, rate ten images a condition."""
    rng = np.random.default_rng(seed)
    rows = []
    for code, level in zip(("IND", "JPN", "GRC", "USA"), (2.4, 2.2, 2.0, 3.0), strict=True):
        for who in range(10):
            leaning = rng.normal(0, 0.6)
            for condition in CONDITIONS:
                for noun in ("house", "road"):
                    scores = level + leaning + (condition == "country") + rng.normal(0, 0.5, 5)
                    rows += [(float(score), code, condition, noun, f"p{who}", "g") for score in np.clip(scores, 1, 5)]
    return columns(rows)


def test_participants_are_the_default_clusters_within_their_country() -> None:
    given = study()
    given.pop("nouns")
    given.pop("groups")
    default = compute(**given)
    ids = [f"{code}-{who}" for code, who in zip(given["countries"], given["participants"], strict=True)]
    assert compute(**{**given, "participants": None}, clusters=ids)["ci"] == default["ci"]
    # p0 of India and p0 of Japan are two people.
    assert compute(**given, clusters=given["participants"])["ci"] != default["ci"]
    alone = compute(**{**given, "participants": None})["ci"]
    widths = {key: (default["ci"][key][1] - default["ci"][key][0]) / (alone[key][1] - alone[key][0]) for key in KEYS}
    # A leaning moves both conditions alike: it widens the levels' intervals, and not the gain's.
    assert widths["gr_country"] > 1.5
    assert widths["gr_unspecified"] > 1.5
    assert widths["gain"] < 1.2


def plain_interval(given: dict[str, Any], condition: str | None) -> tuple[float, float]:
    """By hand, of the mean over countries in a condition, or of the gain: Student's t over participants within countries."""
    ratings, country, named, who = (np.array(given[name]) for name in (*COLUMNS[:3], "participants"))
    codes = sorted(set(country))
    value, variances = 0.0, []
    for code in codes:
        here = country == code
        people = sorted(set(who[here]))
        added = np.zeros(len(people))
        for side, sign in (("country", 1.0), ("unspecified", -1.0)):
            if condition not in (None, side):
                continue
            sign = 1.0 if condition else sign
            rows = here & (named == side)
            mean = ratings[rows].mean()
            value += sign * mean / len(codes)
            for place, person in enumerate(people):
                of = rows & (who == person)
                added[place] += sign * (ratings[of].sum() - mean * of.sum()) / rows.sum() / len(codes)
        variances.append((len(people), len(people) * added.var(ddof=1) if len(people) > 1 else math.nan))
    shown = [variance / n for n, variance in variances if n > 1]
    filled = [n * float(np.mean(shown)) if n == 1 else variance for n, variance in variances]
    df = sum(filled) ** 2 / sum(part**2 / (n - 1) for (n, _), part in zip(variances, filled, strict=True) if n > 1)
    half = scipy.stats.t.ppf(0.975, df) * math.sqrt(sum(filled))
    return value - half, value + half


def test_interval_agrees_with_a_plain_loop_over_participants() -> None:
    given = study()
    # Countries of few participants: two in Japan, and a single one in Greece.
    kept = [
        row for row, (code, who) in enumerate(zip(given["countries"], given["participants"], strict=True)) if code not in ("JPN", "GRC")
    ]
    kept += [row for row, code in enumerate(given["countries"]) if code == "JPN" and given["participants"][row] in ("p0", "p1")]
    kept += [row for row, code in enumerate(given["countries"]) if code == "GRC" and given["participants"][row] == "p0"]
    for rows in (range(len(given["ratings"])), kept):
        part = {name: [column[row] for row in rows] for name, column in given.items()}
        answer = compute(**part)
        for key, condition in (("gr_unspecified", "unspecified"), ("gr_country", "country"), ("gain", None)):
            assert answer["ci"][key] == pytest.approx(plain_interval(part, condition))
            assert answer["ci_method"][key] == "t, stratified"


def test_one_country_of_two_raters_keeps_all_intervals() -> None:
    given = study()
    of = zip(given["countries"], given["participants"], strict=True)
    kept = [row for row, (code, who) in enumerate(of) if code != "GRC" or who in ("p0", "p1")]
    thin = compute(**{name: [column[row] for row in kept] for name, column in given.items()})
    for key in KEYS:
        low, high = thin["ci"][key]
        assert low < thin[key] < high


def test_participants_of_several_countries_are_one_stratum() -> None:
    rng = np.random.default_rng(0)
    people = [f"p{who}" for who in range(12) for _ in ("IND", "JPN")]
    ratings = np.clip(rng.normal(3, 0.7, 24), 1, 5)
    answer = compute(ratings, ["IND", "JPN"] * 12, ["country"] * 24, clusters=people)
    theirs = scipy.stats.ttest_1samp(ratings.reshape(12, 2).mean(axis=1), 0).confidence_interval()
    assert answer["ci"]["gr_country"] == pytest.approx([theirs.low, theirs.high])


def test_an_interval_needs_five_clusters() -> None:
    answer = compute([2, 3, 4, 5], ["IND", "JPN"] * 2, ["country"] * 4)
    assert answer["ci"]["gr_country"] == [None, None]
    assert answer["ci_method"]["gr_country"] == "none: 4 clusters, fewer than 5"
    assert compute([2, 3, 4, 5, 4], ["IND", "JPN", "IND", "JPN", "IND"], ["country"] * 5)["ci"]["gr_country"] != [None, None]


@given(st.lists(ROW, min_size=1, max_size=16))
@settings(deadline=None, max_examples=25)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[Any, ...]]) -> None:
    answer = compute(**columns(rows), n_resamples=10)
    assert compute(**columns(rows[::-1]), n_resamples=10) == answer
    for group, part in answer["by_group"].items():
        alone = compute(**columns([row for row in rows if row[5] == group]), n_resamples=10)
        assert {key: alone[key] for key in part} == part


# As people load it


def test_optional_columns_in_both_configurations(load: Load) -> None:
    extra = {
        "nouns": ["house", "road"] * 3,
        "models": ["sd", "sd", "d2"] * 2,
        "participants": ["p", "p", "q", "q", "r", "r"],
        "groups": ["a", "b", "b", "a", "a", "b"],
    }
    expected = compute(**ROWS, **extra, n_resamples=20)
    assert {"by_noun", "by_model", "by_group"} <= set(expected)
    assert load("geo_representativeness").compute(**ROWS, **extra, n_resamples=20) == expected
    grouped = load("geo_representativeness", "grouped")
    grouped.add_batch(**ROWS, **extra)
    assert grouped.compute(n_resamples=20) == expected
    grouped.add_batch(**ROWS)
    assert grouped.compute(n_resamples=20) == compute(**ROWS, n_resamples=20)
