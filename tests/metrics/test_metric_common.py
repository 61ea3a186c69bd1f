"""Signatures, input checks, resampling and paired tests, which every metric shares."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st
from right_intervals import mean_by_loop, tango_by_search
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.metrics._common import (
    MIN_CLUSTERS,
    Column,
    Resampling,
    Signature,
    check_columns,
    check_number,
    compare,
    correct_over_groups,
    estimate,
    mcnemar_p,
    mean_interval,
    paired_interval,
    paired_rates,
    ranked,
    ratio,
    stratified_interval,
    tango_interval,
)

TEXT = Column("text", "str", missing=True)
TOKENS, WEIGHTS = Column("c", "list[str]", missing=True), Column("c", "list[float]")
VERDICT = Column("c", "float", missing=True, within=(0, 1), flags=True)
WORD = st.text(st.characters(exclude_characters="|:\n"), min_size=1, max_size=8)
ESCAPED = str.maketrans({"%": "%25", "{": "%7B", "}": "%7D"})


# Signatures


@given(WORD, st.dictionaries(WORD.filter(lambda key: key != "v"), WORD, max_size=4), WORD)
def test_signature_reads_back_what_it_writes(metric: str, fields: dict[str, str], version: str) -> None:
    signature = Signature(metric, fields, version)
    assert Signature.parse(str(signature)) == signature
    assert str(signature).rsplit("|", 1)[-1] == f"v:{version.translate(ESCAPED)}"
    assert compare(signature, str(signature)) == {}


def test_signature_keeps_its_order_and_colons() -> None:
    text = "text_rendering_precision|tok:google/mt5-base|norm:none|variant:paper|v:1.0"
    assert str(Signature.parse(text)) == text
    assert Signature.parse("m|tok:a:b|v:1").fields == {"tok": "a:b"}


def test_compare_names_the_keys_that_differ() -> None:
    assert compare("m|tok:a|norm:none|v:1.0", "m|norm:nfc|tok:a|v:1.1") == {
        "norm": ("none", "nfc"),
        "v": ("1.0", "1.1"),
    }
    assert compare("m|v:1.0", "other|tok:a|v:1.0") == {"metric": ("m", "other"), "tok": (None, "a")}


@pytest.mark.parametrize("text", ["", "m", "m|tok:a", "m|v:1|tok:a", "m|tok|v:1", "m|tok:a|tok:b|v:1", "|v:1"])
def test_what_is_no_signature_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a signature"):
        Signature.parse(text)


def test_signature_refuses_its_own_separators() -> None:
    with pytest.raises(ValueError, match=r"'tok'.*'a\|b'"):
        Signature("m", {"tok": "a|b"}, "1.0")


# Input checks


@pytest.mark.parametrize(
    "values",
    [
        ["a", None],
        ("a", None),
        np.array(["a", None], dtype=object),
        pd.Series(["a", None]),
        pd.Series(["a", None], dtype=object),
        pa.array(["a", None]),
    ],
    ids=lambda values: type(values).__module__,
)
def test_any_column_of_text_is_taken(values: object) -> None:
    assert check_columns("m", [TEXT], {"text": values}) == {"text": ["a", None]}


def test_numpy_flags_and_numbers_are_taken() -> None:
    columns = [Column("flag", "bool"), Column("score", "float", missing=True)]
    given = {"flag": np.array([True, False]), "score": np.array([0.5, np.nan], dtype=np.float32)}
    checked = check_columns("m", columns, given)
    assert checked["flag"] == [True, False]
    assert checked["score"][0] == 0.5
    assert np.isnan(checked["score"][1])
    assert check_columns("m", columns, {"flag": [np.True_, False], "score": [1, None]})["score"] == [1, None]


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        (TEXT, "abc", r"row 0: expected a list.*got the str 'abc'. Fix: text=\["),
        (TEXT, b"abc", "got the bytes"),
        (TEXT, {"a": 1}, "got the dict"),
        (TEXT, {"a"}, "got the set"),
        (TEXT, (x for x in "ab"), "got the generator"),
        (TEXT, 3, "got the int 3"),
        (TEXT, np.array("a"), "got the ndarray"),
        (TEXT, [], "row 0: expected at least one row"),
        (TEXT, ["a", 1], r"row 1: expected str or None, got 1 \(int\)"),
        (TEXT, ["a", ["b"]], r"row 1: .*got \['b'\] \(list\)"),
        (TEXT, ["a", float("nan")], r"row 1: .*got nan \(float\)"),
        (TEXT, ["é", "a\ud800"], "row 1: .*surrogate"),
        (Column("c", "str"), ["a", None], "row 1: expected str, got None. Fix: fill the cell in"),
        (Column("c", "str", allowed=("x", "y")), ["x", "z"], "row 1: expected str .'x' or 'y'., got 'z'"),
        (Column("c", "bool"), [True, 2], r"row 1: expected bool, got 2 \(int\).*or 1 or 0"),
        (Column("c", "bool"), [True, 1.0], r"row 1: expected bool, got 1.0 \(float\)"),
        (Column("c", "bool"), [True, "yes"], "row 1: expected bool, got 'yes'"),
        (Column("c", "float"), [0.1, "0.2"], "row 1: expected float, got '0.2'"),
        (Column("c", "float"), [0.1, True], r"row 1: expected float, got True \(bool\)"),
        (Column("c", "float"), [0.1, float("inf")], "row 1: .*got inf, which is not finite"),
        (Column("c", "float"), [0.1, 10**400], "row 1: .*not finite"),
        (Column("c", "float"), [None, 0.1], "row 0: expected float, got None"),
        (Column("c", "float"), [0.1, float("nan")], "row 1: .*got nan, which is not finite"),
        (VERDICT, [0.1, 1.01], "row 1: expected float from 0 to 1 or bool or None, got 1.01"),
        (VERDICT, [0.1, "true"], "row 1: .*got 'true'"),
        (TOKENS, ["ab", ["a"]], r"row 0: expected list\[str\] or None, got 'ab' \(str\). Fix: give one list a row"),
        (TOKENS, [["a"], ["b", 1]], r"row 1: expected list\[str\] or None, item 1: got 1 \(int\)"),
        (TOKENS, [["a"], ["b", "c\ud800"]], "row 1: .*item 1: got .*surrogate"),
        (TOKENS, [["a"], [None]], "row 1: .*item 0: got None"),
        (WEIGHTS, [[0.1], None], r"row 1: expected list\[float\], got None"),
        (WEIGHTS, [[0.1], [0.2, float("nan")]], "row 1: .*item 1: got nan, which is not finite"),
        (WEIGHTS, [[0.1], {0.2}], r"row 1: .*got {0.2} \(set\)"),
    ],
)
def test_a_wrong_column_is_told_by_name_row_and_fix(column: Column, values: object, told: str) -> None:
    with pytest.raises(ValueError, match=f"^m: column '{column.name}'.*{told}") as error:
        check_columns("m", [column], {column.name: values})
    assert "Fix: " in str(error.value)


@pytest.mark.parametrize(
    "values",
    [
        [["a", "b"], None, []],
        (("a", "b"), None, ()),
        [np.array(["a", "b"]), None, np.array([])],
        pd.Series([["a", "b"], None, []]),
        pa.array([["a", "b"], None, []]),
    ],
    ids=lambda values: type(values).__module__,
)
def test_any_column_of_lists_is_taken(values: object) -> None:
    assert check_columns("m", [TOKENS], {"c": values}) == {"c": [["a", "b"], None, []]}


def test_lists_of_numbers_may_be_an_array() -> None:
    assert check_columns("m", [WEIGHTS], {"c": np.array([[1, 2], [3, 4]])}) == {"c": [[1, 2], [3, 4]]}


def test_ones_and_zeros_are_flags() -> None:
    for values in ([1, 0, None], np.array([1, 0, None]), pd.Series([1, 0, None], dtype="Int64"), [True, np.int64(0), None]):
        checked = check_columns("m", [Column("c", "bool", missing=True)], {"c": values})["c"]
        assert checked == [True, False, None]
        assert [type(cell) for cell in checked[:2]] == [bool, bool]


def test_verdicts_become_numbers() -> None:
    for values in ([True, 0.25, None, False], np.array([True, False]), [np.True_, np.float32(0.5)]):
        checked = check_columns("m", [VERDICT], {"c": values})["c"]
        assert not any(isinstance(cell, bool | np.bool_) for cell in checked)
        assert checked == [None if cell is None else float(cell) for cell in values]


def test_single_precision_may_pass_a_bound_by_a_hair() -> None:
    assert check_columns("m", [VERDICT], {"c": [np.float32(1) + np.float32(1.2e-7)]})["c"][0] > 1


@pytest.mark.parametrize("value", [1, 2, -0.01, float("nan"), float("inf"), True, "0.5", None, [0.5]])
def test_a_number_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"^m: threshold: expected a number from 0 to less than 1, got "):
        check_number("m", "threshold", value, 0, 1)


def test_a_number_in_range_is_a_float() -> None:
    for value in (0, 0.5, np.float32(0.5), np.int64(0)):
        assert type(check_number("m", "threshold", value, 0, 1)) is float


def test_columns_of_unequal_length_are_told() -> None:
    with pytest.raises(ValueError, match=r"column 'c', row 1: expected 2 rows as in 'text', got 1"):
        check_columns("m", [TEXT, Column("c", "str")], {"text": ["a", "b"], "c": ["a"]})


def test_a_missing_column_is_told_and_an_optional_one_is_none() -> None:
    with pytest.raises(ValueError, match="column 'text' is missing"):
        check_columns("m", [TEXT], {})
    assert check_columns("m", [TEXT, Column("g", "str", optional=True)], {"text": ["a"]})["g"] is None


@pytest.mark.parametrize(
    "settings",
    [
        {"confidence_level": 95},
        {"confidence_level": 1.0},
        {"confidence_level": True},
        {"confidence_level": "0.9"},
        {"n_resamples": -1},
        {"n_resamples": 10.0},
        {"n_resamples": True},
        {"seed": -1},
        {"seed": None},
    ],
    ids=str,
)
def test_resampling_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"^{next(iter(settings))}: expected"):
        Resampling(**settings)


# Resampling


def mean(sums: np.ndarray) -> np.ndarray:
    return ratio(sums[..., :1], sums[..., 1:])


def rows_of(values: np.ndarray) -> np.ndarray:
    return np.column_stack([values, np.ones(len(values))])


def interval(values: np.ndarray, clusters: list[str] | None = None, **settings: Any) -> list[float]:
    _, ci = estimate(rows_of(values), clusters, mean, ["mean"], Resampling(**settings))
    return ci["ci"]["mean"]


def test_interval_is_scipys_percentile_bootstrap() -> None:
    values = np.random.default_rng(1).normal(size=200)
    ours = interval(values, n_resamples=500, confidence_level=0.9, seed=7)
    theirs = scipy.stats.bootstrap(
        (np.sort(values),),
        np.mean,
        n_resamples=500,
        confidence_level=0.9,
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    assert ours == pytest.approx(list(theirs), rel=1e-12)


def test_interval_of_a_rate_is_the_exact_binomial_resample() -> None:
    n, k = 80, 24
    values = np.r_[np.ones(k), np.zeros(n - k)]
    exact = scipy.stats.binom.ppf([0.025, 0.975], n, k / n) / n
    assert interval(values, n_resamples=20_000) == pytest.approx(exact, abs=1.01 / n)


def test_repeating_rows_within_a_cluster_adds_no_certainty() -> None:
    values = np.random.default_rng(2).normal(size=90)
    repeated = np.repeat(values, 5)
    clusters = [str(row // 5) for row in range(len(repeated))]
    assert interval(repeated, clusters) == pytest.approx(interval(values), rel=1e-12)
    low, high = interval(repeated)
    assert high - low < 0.7 * (interval(values)[1] - interval(values)[0])


def test_intervals_of_clusters_agree_with_a_plain_loop() -> None:
    rng = np.random.default_rng(3)
    cluster = rng.integers(0, 40, size=300)
    values = rng.normal(size=300) + rng.normal(size=40)[cluster]
    members = [values[cluster == c] for c in range(40)]
    means = [np.concatenate([members[c] for c in rng.integers(0, 40, 40)]).mean() for _ in range(4000)]
    assert interval(values, [f"c{c}" for c in cluster], n_resamples=4000) == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.03)


def test_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(4).normal(size=101)
    whole = interval(values, n_resamples=300)
    monkeypatch.setattr("t2i_parity.metrics._common._RESAMPLE_BYTES", 48 * 101 * 7)
    # Draws come in pairs of 32 bits, so that another batch size is another, equally good resample.
    assert interval(values, n_resamples=300) == pytest.approx(whole, abs=0.05)


def test_resampling_stays_under_200_mb() -> None:
    values = np.random.default_rng(5).normal(size=100_000)
    tracemalloc.start()
    interval(values, n_resamples=40)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-5, 5), st.sampled_from("abcdef")), min_size=1, max_size=90),
    st.randoms(use_true_random=False),
    st.integers(0, 100),
)
def test_neither_order_nor_cluster_names_change_a_digit(rows: list[tuple[float, str]], random: Any, seed: int) -> None:
    def run(rows: list[tuple[float, str]], names: str) -> Any:
        values = rows_of(np.array([value for value, _ in rows]))
        clusters = [names["abcdef".index(cluster)] for _, cluster in rows]
        return [estimate(values, c, mean, ["mean"], Resampling(n_resamples=20, seed=seed)) for c in (clusters, None)]

    shuffled = random.sample(rows, len(rows))
    assert run(rows, "abcdef") == run(shuffled, "zyxwvu")


def test_no_interval_where_none_can_be_known() -> None:
    def told(rows: np.ndarray, clusters: list[str] | None = None) -> Any:
        values, ci = estimate(rows, clusters, mean, ["it"], Resampling())
        return values["it"], ci["ci"]["it"], ci["ci_method"]["it"]

    assert told(rows_of(np.array([]))) == (None, [None, None], "none: nothing was observed")
    assert told(rows_of(np.array([0.5]))) == (0.5, [None, None], "none: 1 cluster, fewer than 5")
    assert told(rows_of(np.array([0.5, 0.75] * 3)), list("abcdab"))[1:] == ([None, None], "none: 4 clusters, fewer than 5")
    # It rests on one row of five: a third of the resamples lack it.
    rare = np.column_stack([np.eye(5)[0], np.eye(5)[0]])
    assert told(rare) == (1.0, [None, None], "none: too many resamples leave it undefined")
    assert told(rows_of(np.full(9, 0.5))) == (0.5, [None, None], "none: all resamples agree")


def test_no_resamples_no_interval() -> None:
    assert estimate(rows_of(np.arange(3.0)), None, mean, ["mean"], Resampling(n_resamples=0)) == ({"mean": 1.0}, {})


# Intervals of means, of pairs, over strata


@given(st.integers(MIN_CLUSTERS, 200), st.data(), st.sampled_from([0.8, 0.95, 0.99]))
@settings(deadline=None, max_examples=60)
def test_a_rate_of_rows_alone_has_wilsons_interval(n: int, data: st.DataObject, level: float) -> None:
    right = data.draw(st.integers(0, n))
    ends = mean_interval(np.repeat([1.0, 0.0], [right, n - right]), level=level)
    assert ends == pytest.approx(proportion_confint(right, n, 1 - level, "wilson"), abs=1e-9)


def test_a_mean_over_clusters_has_the_interval_of_a_plain_loop() -> None:
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 12, 90)
    names = [f"c{c}" for c in cluster]
    values = np.clip(rng.normal(0.6, 0.1, 90) + rng.normal(0, 0.1, 12)[cluster], 0.01, 0.99)
    assert mean_interval(values, names) == pytest.approx(mean_by_loop(values.tolist(), names))
    # The same in other units.
    wide = mean_interval(1 + 4 * values, names, low=1.0, high=5.0)
    assert wide == pytest.approx([1 + 4 * end for end in mean_by_loop(values.tolist(), names)])
    rates = (rng.random(90) < 0.4).astype(float)
    assert mean_interval(rates, names) == pytest.approx(mean_by_loop(rates.tolist(), names), abs=0.01)


def test_a_mean_without_ends_has_students_interval() -> None:
    values = np.random.default_rng(1).normal(size=30)
    theirs = scipy.stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert mean_interval(values, level=0.9, low=None, high=None) == pytest.approx((theirs.low, theirs.high))


@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("end", [0.0, 1.0])
def test_rows_that_all_lie_at_an_end_keep_a_width(end: float, m: int) -> None:
    clusters = None if m == 1 else [str(row // m) for row in range(20 * m)]
    ends = mean_interval(np.full(20 * m, end), clusters)
    assert ends is not None
    # Rows of a cluster that agree are worth one: no narrower than Wilson's interval of twenty rows, and not much wider.
    low, high = proportion_confint(20 * end, 20, method="wilson")
    width = high - low
    assert end in (pytest.approx(ends[0], abs=1e-12), pytest.approx(ends[1], abs=1e-12))
    assert width - 1e-9 <= ends[1] - ends[0] < 1.2 * width


PAIR = st.tuples(st.floats(0, 1), st.floats(0, 1), st.sampled_from("uvwxyz"))


@given(st.lists(PAIR, min_size=1, max_size=40), st.booleans(), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=60)
def test_intervals_hold_what_they_are_of_whatever_the_order(pairs: list[tuple[float, float, str]], flags: bool, random: Any) -> None:
    def run(pairs: list[tuple[float, float, str]], names: str, clustered: bool) -> Any:
        first, second = (np.array([round(pair[side]) if flags else pair[side] for pair in pairs], np.float64) for side in (0, 1))
        clusters = [names["uvwxyz".index(pair[2])] for pair in pairs] if clustered else None
        return first.mean(), mean_interval(first, clusters), (second - first).mean(), paired_interval(first, second, clusters)

    for clustered in (False, True):
        value, ends, difference, shift = run(pairs, "uvwxyz", clustered)
        _, *again = run(random.sample(pairs, len(pairs)), "zyxwvu", clustered)
        assert [again[0], again[2]] == [ends, shift]
        n = len({pair[2] for pair in pairs}) if clustered else len(pairs)
        assert (ends is None) == (shift is None) == (n < MIN_CLUSTERS)
        if ends is not None and shift is not None:
            assert 0 <= ends[0] <= value + 1e-9
            assert value - 1e-9 <= ends[1] <= 1
            assert ends[0] < ends[1]
            assert -1 <= shift[0] <= difference + 1e-9
            assert difference - 1e-9 <= shift[1] <= 1
            assert shift[0] < shift[1]


@pytest.mark.parametrize(
    ("up", "down", "n"), [(0, 0, 216), (1, 0, 32), (12, 3, 60), (40, 41, 90), (9, 0, 9), (3, 17, 20), (0, 5, 400), (2.5, 0.8, 17.3)]
)
@pytest.mark.parametrize("z", [1.2815515655446004, 1.959963984540054, 2.7])
def test_tango_is_a_search_for_what_a_score_test_does_not_refuse(up: float, down: float, n: float, z: float) -> None:
    assert tango_interval(up, down, n, z) == pytest.approx(tango_by_search(up, down, n, z), abs=2e-5)
    assert tango_interval(down, up, n, z) == pytest.approx([-end for end in reversed(tango_interval(up, down, n, z))], abs=1e-12)


def test_without_a_discordant_pair_tango_is_plus_and_minus_z2_over_n_plus_z2() -> None:
    z = 1.959963984540054
    assert tango_interval(0, 0, 54, z) == pytest.approx((-(z**2) / (54 + z**2), z**2 / (54 + z**2)))


def test_paired_flags_have_tangos_interval_and_repeated_ones_tell_no_more() -> None:
    rng = np.random.default_rng(2)
    first, second = (rng.random((2, 80)) < [[0.3], [0.5]]).astype(float)
    up, down = int((second > first).sum()), int((second < first).sum())
    once = paired_interval(first, second)
    assert once == pytest.approx(tango_by_search(up, down, 80), abs=2e-5)
    clusters = [str(row) for row in range(80)]
    repeated = paired_interval(np.tile(first, 5), np.tile(second, 5), clusters * 5)
    assert once is not None
    assert repeated is not None
    assert 1 < (repeated[1] - repeated[0]) / (once[1] - once[0]) < 1.05
    # Twice the variance of rows alone is half as many pairs.
    t = float(scipy.stats.t.ppf(0.975, 79))
    variance = np.var(second - first, ddof=1) / 80
    size = 400 / (variance / (((up + down) / 80 - (up - down) ** 2 / 6400) / 399))
    assert repeated == pytest.approx(tango_by_search(up * size / 80, down * size / 80, size, t), abs=2e-4)


def test_paired_scores_have_students_interval_over_clusters() -> None:
    rng = np.random.default_rng(3)
    first, second = np.clip(rng.normal([[0.4], [0.55]], 0.1, (2, 60)), 0, 1)
    clusters = [str(row // 3) for row in range(60)]
    sums = (second - first).reshape(20, 3).mean(axis=1)
    theirs = scipy.stats.ttest_1samp(sums, 0).confidence_interval()
    assert paired_interval(first, second, clusters) == pytest.approx((theirs.low, theirs.high))
    still = paired_interval(first, first)
    assert still is not None
    # No pair differs: two half pairs, one each way, among sixty.
    assert still == pytest.approx([way * scipy.stats.t.ppf(0.975, 59) / math.sqrt(60 * 59) for way in (-1, 1)])


def test_strata_are_a_plain_loop_and_a_thin_one_keeps_the_interval() -> None:
    rng = np.random.default_rng(4)
    strata = ["a"] * 8 + ["b"] * 12 + ["c"] * 2 + ["d"]
    influence = rng.normal(size=23) * np.repeat([1.0, 2.0, 0.5, 1.0], [8, 12, 2, 1])
    parts = [influence[:8], influence[8:20], influence[20:22]]
    within = [sum((part - sum(part) / len(part)) ** 2) / (len(part) - 1) for part in parts]
    variances = [len(part) * each for part, each in zip(parts, within, strict=True)]
    total = sum(variances) + sum(within) / 3
    df = total**2 / sum(variance**2 / (len(part) - 1) for part, variance in zip(parts, variances, strict=True))
    half = scipy.stats.t.ppf(0.975, df) * math.sqrt(total)
    ends, how = stratified_interval(influence, strata, 2.0)
    assert ends == pytest.approx((2.0 - half, 2.0 + half))
    assert how == "t, stratified"


def test_strata_that_show_nothing_have_no_interval() -> None:
    assert stratified_interval(np.ones(4), list("aabb"), 0.0) == (None, "none: 4 clusters, fewer than 5")
    told = (None, "none: no stratum shows how its clusters vary")
    assert stratified_interval(np.arange(5.0), list("abcde"), 0.0) == told
    assert stratified_interval(np.zeros(6), list("aabbcc"), 0.0) == told


# Pairs


@pytest.mark.parametrize(
    ("only_variety", "only_reference", "p"),
    [(17, 0, 1.0421e-4), (2, 2, 0.6170750774519739), (6, 6, 0.7728299926844475), (0, 0, 1.0)],
)
def test_the_studys_code_always_takes_chi2(only_variety: int, only_reference: int, p: float) -> None:
    assert float(mcnemar_p(only_variety, only_reference, "chi2")) == pytest.approx(p, rel=1e-4 if p < 1e-3 else 1e-12)


def test_mcnemar_is_statsmodels() -> None:
    b, c = (grid.ravel() for grid in np.meshgrid(np.arange(33), np.arange(33)))
    exact, chi2, paper = (mcnemar_p(b, c, test) for test in ("exact", "chi2", "paper"))
    for i in range(0, len(b), 7):
        if not b[i] + c[i]:
            assert (exact[i], chi2[i], paper[i]) == (1.0, 1.0, 1.0)
            continue
        table = [[0, b[i]], [c[i], 0]]
        assert exact[i] == pytest.approx(mcnemar(table, exact=True).pvalue, rel=1e-9)
        assert chi2[i] == pytest.approx(mcnemar(table, exact=False, correction=True).pvalue, rel=1e-9)
        assert paper[i] == (exact[i] if b[i] + c[i] < 25 else 1.0 if b[i] == c[i] else chi2[i])


def test_mcnemar_by_hand() -> None:
    assert float(mcnemar_p(3, 0, "exact")) == 2 / 8
    assert float(mcnemar_p(5, 1, "exact")) == 2 * 7 / 64
    assert float(mcnemar_p(12, 12)) == float(mcnemar_p(30, 30)) == 1.0
    assert float(mcnemar_p(30, 31)) == 1.0 > float(mcnemar_p(30, 32))
    with pytest.raises(ValueError, match="counts from 0 up"):
        mcnemar_p(-1, 2)
    with pytest.raises(ValueError, match="test: expected one of"):
        mcnemar_p(1, 2, "mid-p")


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from(["paper", "exact", "chi2"]))
def test_p_is_a_symmetric_probability(b: int, c: int, test: str) -> None:
    p = float(mcnemar_p(b, c, test))
    assert 0 <= p <= 1
    assert p == float(mcnemar_p(c, b, test))


FLAGS = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=60)


@given(FLAGS)
@settings(deadline=None, max_examples=60)
def test_paired_rates_count_and_test_what_is_counted(pairs: list[tuple[bool, bool, bool]]) -> None:
    flags = np.array([pair[:2] for pair in pairs], np.float64).reshape(-1, 2)
    counted = np.array([pair[2] for pair in pairs], bool)
    answer, ci = paired_rates("r", flags, counted, None, Resampling(n_resamples=20))
    kept = [pair[:2] for pair in pairs if pair[2]]
    assert list(ci["ci"]) == ["r_reference", "r_variety", "delta_pp"]
    if not kept:
        assert set(answer.values()) == {None}
        return
    table = [[kept.count((a, b)) for b in (True, False)] for a in (True, False)]
    assert answer["r_reference"] == pytest.approx(sum(table[0]) / len(kept))
    assert answer["r_variety"] == pytest.approx((table[0][0] + table[1][0]) / len(kept))
    assert answer["delta_pp"] == pytest.approx(100 * (answer["r_variety"] - answer["r_reference"]))
    assert (answer["only_variety"], answer["only_reference"]) == (table[1][0], table[0][1])
    discordant = table[1][0] + table[0][1]
    expected = mcnemar(table, exact=discordant < 25, correction=True).pvalue if discordant else 1.0
    assert answer["p_value"] == pytest.approx(1.0 if table[1][0] == table[0][1] else expected)


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=8))
@settings(deadline=None, max_examples=25)
def test_holms_correction_is_statsmodels_over_the_groups_that_were_tested(p_values: list[float | None]) -> None:
    answer = {"p": 0.5, "by_group": {str(number): {"p": p} for number, p in enumerate(p_values)}}
    corrected = [group["p_holm"] for group in correct_over_groups(answer, "p")["by_group"].values()]
    tested = [p for p in p_values if p is not None]
    expected = iter(multipletests(tested, method="holm")[1]) if tested else iter(())
    assert corrected == pytest.approx([None if p is None else next(expected) for p in p_values])
    assert "p_holm" not in answer
    assert correct_over_groups({"p": 0.5}, "p") == {"p": 0.5}


def test_scores_of_unequal_signature_are_not_ranked() -> None:
    one, other = "m|tok:tekken|v:1.0", "m|tok:google/mt5-base|v:1.0"
    with pytest.raises(ValueError, match=r"a and c cannot be ranked: their signatures differ in tok: 'tekken' and 'google/mt5-base'"):
        ranked({"a": (0.1, one), "b": (0.2, one), "c": (0.3, other)})
    assert ranked({"a": (0.1, one), "b": (0.2, one)}, higher_is_better=False) == [("a", 0.1), ("b", 0.2)]
    assert ranked({"b": (0.1, one), "a": (0.1, one)}) == [("a", 0.1), ("b", 0.1)]
    assert ranked({}) == []
