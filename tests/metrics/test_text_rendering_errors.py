"""Where rendered text goes wrong, against alignments worked by hand and a plain position loop."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.metrics.text_rendering_precision.errors import (
    CLASSES,
    PATTERNS,
    POSITIONS,
    STROKES,
    character_class,
    error_analysis,
    failure_patterns,
)

# Letters of the ten languages' scripts, marks, digits, a bidi control, an emoji of two code points.
ALPHABET = "aBé e\u0301नमस्तेनفقбЖ中业龍あア한7٣,!€\u200f\n👍🏽"
TEXT = st.text(ALPHABET, max_size=8) | st.text(st.characters(codec="utf-8"), max_size=8)
ROWS = st.lists(
    st.tuples(st.none() | TEXT, TEXT, st.sampled_from(["en", "zh", "ar"]), st.sampled_from("gh"), st.sampled_from("xyz")),
    min_size=1,
    max_size=10,
)
CLUSTERS = regex.compile(r"\X").findall
point = partial(error_analysis, n_resamples=0)


def one(reading: str, reference: str, language: str = "en", **keywords: Any) -> dict[str, Any]:
    return point([reading], [reference], languages=[language], **keywords)


def told(cells: dict[str, dict[str, Any]]) -> dict[str, tuple[float, float]]:
    """The cells that have a rate, as (errors, n)."""
    return {name: (round(cell["rate"] * cell["n"], 9), cell["n"]) for name, cell in cells.items() if cell["n"]}


def cells_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [answer[part] for part in ("characters", "strokes", "positions", "patterns")]
    return [*(cell for part in parts for cell in part.values()), answer["insertions"]]


def flagged(reading: str, reference: str) -> list[str]:
    flags = failure_patterns([reading], [reference])
    return [name for name in ("erroneous", *PATTERNS) if flags[name][0]]


# By hand


@pytest.mark.parametrize(
    ("reading", "reference", "characters", "inserted"),
    [
        # I replaced by l: one of twelve capitals.
        ("GRAND OPENlNG", "GRAND OPENING", {"all": (1, 13), "upper": (1, 12), "space": (0, 1)}, 0),
        # Space and exclamation mark deleted, a comma replaced.
        ("a;b7", "a,b 7!", {"all": (3, 6), "lower": (0, 2), "punctuation": (2, 2), "space": (1, 1), "digit": (0, 1)}, 0),
        # Nothing wrong in the reference; two characters too many.
        ("Cafés!", "Café", {"all": (0, 4), "upper": (0, 1), "lower": (0, 3)}, 2),
        # The vowel sign of the last syllable dropped: a mark, not a letter.
        ("नमस्त", "नमस्ते", {"all": (1, 6), "other_letter": (0, 4), "mark": (1, 2)}, 0),
        # An empty reading leaves every character out; € is a symbol, a line break space, a zero-width joiner neither.
        ("", "€\n\u200d", {"all": (3, 3), "symbol": (1, 1), "space": (1, 1), "control": (1, 1)}, 0),
        ("abc", "", {}, 3),
        ("é", "e\u0301", {"all": (2, 2), "lower": (1, 1), "mark": (1, 1)}, 0),
    ],
)
def test_characters_by_hand(reading: str, reference: str, characters: dict[str, Any], inserted: int) -> None:
    answer = one(reading, reference)
    assert told(answer["characters"]) == characters
    assert answer["insertions"]["n"] == len(reading)
    assert (answer["insertions"]["rate"] or 0) * len(reading) == pytest.approx(inserted)


@pytest.mark.parametrize(
    ("character", "name"),
    [
        *(("ǅ", "upper"), ("ß", "lower"), ("ー", "other_letter"), ("٣", "digit"), ("〇", "digit"), ("½", "digit")),
        *(("\u3000", "space"), ("\t", "space"), ("\x00", "control"), ("\u200c", "control"), ("。", "punctuation")),
        *(("👍", "symbol"), ("\u0301", "mark"), ("é", "lower"), ("한", "other_letter")),
    ],
)
def test_classes_by_hand(character: str, name: str) -> None:
    assert character_class(character) == name


def test_strokes_by_hand() -> None:
    # 一 1, 中 4, 业 5, 国 8, 電 13, 龍 16, 鬱 29; 语 is read for 国, 鬱 is left out. Kana and 々 have no strokes.
    answer = one("一中业语電龍あ々", "一中业国電龍鬱あ々", "zh")
    assert told(answer["strokes"]) == {"1-5": (0, 3), "6-10": (1, 1), "11-15": (0, 1), "16-20": (0, 1), "21+": (1, 1)}
    assert answer["signature"].endswith(f"|strokes:{version('strokes')}|v:1.0")


def test_an_ideograph_without_a_stroke_count_is_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strokes.strokes", lambda character: {"中": 4}.get(character, 0))
    assert told(one("中", "中龘", "zh")["strokes"]) == {"1-5": (0, 1), "unknown": (1, 1)}


@pytest.mark.parametrize(
    ("reading", "reference", "errors"),
    [
        # Ten characters, one a tenth: d and h.
        ("abcXefgXij", "abcdefghij", [0, 0, 0, 1, 0, 0, 0, 1, 0, 0]),
        # Two characters, the second wrong: the later five tenths.
        ("aX", "ab", [0] * 5 + [1] * 5),
        # Four characters: the last covers .75–1, half of the eighth tenth and the rest.
        ("abcX", "abcd", [0] * 7 + [0.5, 1, 1]),
        ("X", "a", [1] * 10),
        ("", "", [None] * 10),
    ],
)
def test_positions_by_hand(reading: str, reference: str, errors: list[float | None]) -> None:
    positions = one(reading, reference)["positions"]
    assert tuple(positions) == POSITIONS
    assert [cell["rate"] for cell in positions.values()] == errors
    assert [cell["n"] for cell in positions.values()] == [len(reference) / 10] * 10


@pytest.mark.parametrize(
    ("reading", "reference", "flags"),
    [
        ("OPEN", "OPEN", []),
        ("NEPO", "OPEN", ["erroneous", "reversed"]),
        ("قفن", "نفق", ["erroneous", "reversed"]),
        # One of nine wrong besides the direction: still nearly the reverse.
        ("GNINEPO-X", "X OPENING", ["erroneous", "reversed"]),
        # By grapheme clusters and by code points.
        ("तेस्मन", "तेस्मन"[::-1], ["erroneous", "reversed"]),
        ("".join(CLUSTERS("नमस्ते")[::-1]), "नमस्ते", ["erroneous", "reversed"]),
        # A palindrome has no wrong direction, and one wrong letter of it is no evidence of one.
        ("level", "level", []),
        ("leveX", "level", ["erroneous", "other"]),
        ("OPEM", "OPEN", ["erroneous", "other"]),
        # Romanized; Arabic asked, Hebrew letters read; katakana asked, kanji read.
        ("nafaq", "نفق", ["erroneous", "other_script"]),
        ("מנהרה", "نفق", ["erroneous", "other_script"]),
        ("喫茶店", "カフェ", ["erroneous", "other_script"]),
        # Half is not most; a script that the reference uses too is not another; digits and marks are no letters.
        ("نفna", "نفق", ["erroneous", "other"]),
        ("CANTING KFC", "KFC 餐厅", ["erroneous", "other"]),
        ("二〇二四", "2024", ["erroneous", "other"]),
        ("123", "نفق", ["erroneous", "other"]),
        ("", "نفق", ["erroneous", "other"]),
        # Structural or semantic: not told apart.
        ("营亚中", "营业中", ["erroneous", "other"]),
        ("Closed", "Open", ["erroneous", "other"]),
        ("\u202bنفق\u202c", "نفق", ["erroneous", "other"]),
    ],
)
def test_patterns_by_hand(reading: str, reference: str, flags: list[str]) -> None:
    assert flagged(reading, reference) == flags


def test_patterns_are_shares_of_erroneous_rows() -> None:
    readings = ["OPEN", "NEPO", "nafaq", "OPEM", "نفق", None]
    references = ["OPEN", "OPEN", "نفق", "OPEN", "نفق", "OPEN"]
    answer = point(readings, references, languages=["en", "en", "ar", "en", "ar", "en"])
    third = {"rate": 1 / 3, "n": 3}
    assert answer["patterns"] == {"erroneous": {"rate": 0.6, "n": 5}, "reversed": third, "other_script": third, "other": third}
    assert (answer["n"], answer["n_missing"]) == (5, 1)
    assert answer["by_language"]["ar"]["patterns"]["other_script"] == {"rate": 1.0, "n": 1}
    assert answer["by_script"]["Latn"] == answer["by_language"]["en"]
    flags = failure_patterns(readings, references)
    assert {name: np.flatnonzero(flags[name] == 1).tolist() for name in ("erroneous", *PATTERNS)} == {
        "erroneous": [1, 2, 3],
        "reversed": [1],
        "other_script": [2],
        "other": [3],
    }
    assert all(np.isnan(values).tolist() == [False] * 5 + [True] for values in flags.values())


def test_bidi_controls_are_counted_in_readings() -> None:
    readings = ["\u202bنفق\u202c", "نفق", "\u200eab", None]
    references = ["نفق", "\u202bنفق", "ab", "ab"]
    assert point(readings, references, languages=["ar", "ar", "en", "en"])["bidi_controls"] == {"n": 3, "rows": 2}
    assert failure_patterns(readings, references)["bidi_controls"][:3].tolist() == [2, 0, 1]
    # They are characters like any other: the first reading holds two too many of five.
    assert one(readings[0], references[0], "ar")["insertions"] == {"rate": 0.4, "n": 5}


def test_scripts_are_the_languages_writing_systems() -> None:
    codes = ["zh", "ja", "ko", "en", "fr", "arz"]
    answer = point(["x"] * 6, ["y"] * 6, languages=codes)
    assert list(answer["by_language"]) == sorted(codes)
    assert {script: part["n"] for script, part in answer["by_script"].items()} == {"Arab": 1, "Hans": 1, "Jpan": 1, "Kore": 1, "Latn": 2}
    assert "by_group" not in answer


def test_normalisation_only_when_asked() -> None:
    composed, decomposed = "é", "e\u0301"
    assert one(composed, decomposed)["characters"]["all"]["rate"] == 1.0
    answer = one(composed, decomposed, normalization="nfc")
    assert (answer["characters"]["all"], answer["signature"].split("|")[1]) == ({"rate": 0.0, "n": 1}, "norm:nfc")
    # Neither folded nor made compatible.
    for reading, reference in (("ﬁ", "fi"), ("Ａ", "A"), ("STRASSE", "STRAßE"), ("open", "OPEN")):
        assert one(reading, reference, normalization="nfc")["characters"]["all"]["rate"] > 0


def test_intervals_hold_their_rates_and_keep_a_width() -> None:
    readings, references = ["aX"] * 5 + ["ab"] * 15, ["ab"] * 20
    answer = error_analysis(readings, references, languages=["en"] * 20)
    cell = answer["characters"]["lower"]
    assert 0 < cell["ci"][0] < cell["rate"] < cell["ci"][1] < 1
    # A share of rows is a rate, of 5 in 20; a tenth without an error may have had one.
    assert answer["patterns"]["erroneous"]["ci"] == pytest.approx(proportion_confint(5, 20, method="wilson"), abs=1e-9)
    assert answer["positions"]["0.0-0.1"]["rate"] == 0
    assert answer["positions"]["0.0-0.1"]["ci"][0] == 0 < answer["positions"]["0.0-0.1"]["ci"][1] < 0.3
    assert answer["characters"]["upper"] == {"rate": None, "n": 0, "ci": [None, None]}
    together = error_analysis(readings, references, languages=["en"] * 20, clusters=["one"] * 20)
    assert together["characters"]["lower"]["ci"] == [None, None]
    assert "ci" not in point(readings, references, languages=["en"] * 20)["insertions"]
    assert "NaN" not in json.dumps(answer)


# The optional package


def test_without_the_stroke_package_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "strokes", None)
    with pytest.raises(RuntimeError, match=r"Fix: pip install strokes, or leave them out with strokes=False"):
        one("中", "中", "zh")
    answer = one("中", "中", "zh", strokes=False)
    assert told(answer["strokes"]) == {}
    assert "|strokes:none|" in answer["signature"]
    # It is asked for only where there are ideographs.
    assert one("Cafe", "Café", "fr")["characters"]["all"] == {"rate": 0.25, "n": 4}


# Against others


@given(ROWS)
@settings(deadline=None, max_examples=60)
def test_errors_are_rapidfuzzs_and_lie_where_a_plain_loop_puts_them(rows: list[tuple[Any, ...]]) -> None:
    readings, references, languages, *_ = zip(*rows, strict=True)
    answer = point(readings, references, languages=languages)
    seen = [(reading, reference) for reading, reference, *_ in rows if reading is not None]
    errors = dict.fromkeys(CLASSES, 0)
    numbers = dict.fromkeys(CLASSES, 0)
    tenths = np.zeros(10)
    for reading, reference in seen:
        for character in reference:
            numbers[character_class(character)] += 1
        for operation, place, _ in Levenshtein.editops(reference, reading).as_list():
            if operation != "insert":
                errors[character_class(reference[place])] += 1
                start, end = 10 * place / len(reference), 10 * (place + 1) / len(reference)
                for tenth in range(10):
                    tenths[tenth] += max(0.0, min(end, tenth + 1) - max(start, tenth)) * len(reference) / 10
    for name in CLASSES:
        cell = answer["characters"][name]
        assert cell == {"rate": pytest.approx(errors[name] / numbers[name]) if numbers[name] else None, "n": numbers[name]}
    length = sum(numbers.values())
    if length:
        assert [cell["rate"] for cell in answer["positions"].values()] == pytest.approx(tenths / (length / 10))
    distance = sum(Levenshtein.distance(reference, reading) for reading, reference in seen)
    inserted = (answer["insertions"]["rate"] or 0) * answer["insertions"]["n"]
    assert inserted + sum(errors.values()) == pytest.approx(distance)


# Properties


@given(ROWS)
@settings(deadline=None)
def test_rates_lie_in_range_and_parts_add_up(rows: list[tuple[Any, ...]]) -> None:
    readings, references, languages, groups, _ = zip(*rows, strict=True)
    answer = point(readings, references, languages=languages, groups=groups)
    for cell in cells_of(answer):
        assert (cell["rate"] is None) == (cell["n"] == 0)
        assert cell["rate"] is None or 0 <= cell["rate"] <= 1
    assert answer["n"] + answer["n_missing"] == len(rows)
    characters = told(answer["characters"])
    if characters:
        whole = np.sum([characters[name] for name in CLASSES if name in characters], axis=0)
        assert characters["all"] == pytest.approx(tuple(whole))
        assert sum(errors for errors, _ in told(answer["positions"]).values()) == pytest.approx(characters["all"][0])
    for parts in (answer["by_language"], answer["by_script"], answer["by_group"]):
        for place, cell in enumerate(cells_of(answer)):
            assert sum(cells_of(part)[place]["n"] for part in parts.values()) == pytest.approx(cell["n"])
    assert tuple(answer["strokes"]) == STROKES


@given(st.lists(TEXT, min_size=1, max_size=6))
@settings(deadline=None)
def test_without_damage_there_are_no_errors(texts: list[str]) -> None:
    answer = point(texts, texts, languages=["en"] * len(texts))
    assert all(not cell["rate"] for cell in cells_of(answer))
    flags = failure_patterns(texts, texts)
    assert not any(flags[name].any() for name in ("erroneous", *PATTERNS))


@given(TEXT.filter(lambda text: len(text) > 1))
@settings(deadline=None)
def test_the_reverse_of_a_text_is_flagged_reversed(text: str) -> None:
    for backwards in (text[::-1], "".join(CLUSTERS(text)[::-1])):
        flags = failure_patterns([backwards], [text])
        assert flags["reversed"][0] == (backwards != text)
        assert flags["other"][0] == 0


@given(st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8))
def test_every_erroneous_row_has_a_pattern(pairs: list[tuple[str, str]]) -> None:
    readings, references = zip(*pairs, strict=True)
    flags = failure_patterns(readings, references)
    some = np.max([flags[name] for name in PATTERNS], axis=0)
    assert some.tolist() == flags["erroneous"].tolist() == [float(a != b) for a, b in pairs]


@given(ROWS, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=30)
def test_the_order_of_rows_changes_nothing(rows: list[tuple[Any, ...]], random: Any) -> None:
    def run(rows: Sequence[tuple[Any, ...]]) -> dict[str, Any]:
        readings, references, languages, groups, clusters = zip(*rows, strict=True)
        return error_analysis(readings, references, languages=languages, groups=groups, clusters=clusters, n_resamples=15)

    answer = run(rows)
    assert run(random.sample(rows, len(rows))) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[3] == group])
        assert {key: alone[key] for key in part} == part


# Wrong inputs


@pytest.mark.parametrize(
    ("given_", "problem"),
    [
        ({"languages": ["en", "tlh"]}, "column 'languages', row 1: expected str .'en' or 'zh' or .*got 'tlh'"),
        ({"languages": ["en"]}, "column 'languages', row 1"),
        ({"languages": None}, "column 'languages' is missing"),
        ({"predictions": "ab"}, "column 'predictions', row 0: expected a list"),
        ({"references": ["a", None]}, "column 'references', row 1: expected str, got None"),
        ({"groups": ["g", 1]}, "column 'groups', row 1"),
        ({"clusters": []}, "column 'clusters', row 0"),
        ({"normalization": "nfkc"}, "normalization: expected one of 'none', 'nfc'"),
        ({"n_resamples": -1}, "n_resamples: expected"),
    ],
)
def test_wrong_inputs_are_told(given_: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        error_analysis(**{"predictions": ["a", None], "references": ["a", "b"], "languages": ["en", "en"], **given_})


def test_all_readings_missing() -> None:
    answer = error_analysis([None, None], ["a", "中"], languages=["en", "zh"], n_resamples=10)
    assert (answer["n"], answer["n_missing"]) == (0, 2)
    assert all(cell == {"rate": None, "n": 0, "ci": [None, None]} for cell in cells_of(answer))
    assert not any(math.isnan(value) for value in (answer["bidi_controls"]["n"], answer["bidi_controls"]["rows"]))


def test_the_precision_does_not_load_what_only_errors_need(root: Path) -> None:
    code = "import sys, t2i_parity.metrics.text_rendering_precision.core; print({'strokes', 'fontTools'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_groups_that_differ_by_a_nul_stay_apart() -> None:
    answer = error_analysis(["a", "b"], ["a", "a"], languages=["en", "en"], groups=["g", "g\0"], n_resamples=0)
    assert {group: part["n"] for group, part in answer["by_group"].items()} == {"g": 1, "g\0": 1}
