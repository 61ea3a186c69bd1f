"""Analyses over a run: each function by hand, against an independent one, and all of them through the command."""

from __future__ import annotations

import json
import math
import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from commands import command, error_of
from hypothesis import given, settings
from hypothesis import strategies as st
from judged_runs import content_run, row_of

from t2i_parity.generate.analysis import (
    bias_by_alignment,
    by_kind,
    culture_statistics,
    culture_tag_contrast,
    demographics,
    fragmentation,
    fragmentation_against_scores,
    new_language,
    trade_offs,
    transliteration_contrast,
)
from t2i_parity.generate.report_analysis import PLACES
from t2i_parity.generate.run import Run, image_features
from t2i_parity.metrics._inference import new_group_interval
from t2i_parity.metrics.text_rendering_precision.common import Resampling
from t2i_parity.metrics.text_rendering_precision.core import load_tokenizer

REAL = os.environ.get("T2I_PARITY_REFERENCE")
QUICK = Resampling(n_resamples=200)
FEW = Resampling(n_resamples=20)
NONE = Resampling(n_resamples=0)


def letters(texts: list[str]) -> list[list[str]]:
    return [list(text) for text in texts]


# Fragmentation


def test_fragmentation_by_hand() -> None:
    texts = ["a cat", "un chat noir", "猫", "two dogs"]
    found = {each["language"]: each for each in fragmentation(texts, ["en", "fr", "zh", "en"], ["1", "1", "2", "3"], letters)}
    assert found["en"] == {
        "language": "en", "tokens": 6.5, "tokens_per_word": (5 / 2 + 8 / 2) / 2, "tokens_per_character": (5 / 4 + 8 / 7) / 2,
        "relative_to_english": 1.0, "n": 2,
    }  # fmt: skip
    assert found["fr"]["tokens_per_word"] == 4.0
    assert found["fr"]["relative_to_english"] == 12 / 5
    assert found["zh"]["relative_to_english"] is None, "its meaning has no English text"
    assert found["zh"]["tokens_per_word"] == 1.0


def test_a_real_tokenizer_breaks_hindi_into_more_pieces_than_english() -> None:
    encode = load_tokenizer("tekken").encode
    texts = ["Three goats on a flat roof", "सपाट छत पर तीन बकरियाँ", "तीन बकरियाँ"]
    english, hindi = fragmentation(texts, ["en", "hi", "hi"], ["1", "1", "2"], encode)
    assert hindi["tokens_per_word"] > english["tokens_per_word"]
    assert 1 <= english["tokens_per_word"] < 2


def languages_of(rho: str) -> tuple[list[str], list[str], list[str], list[float | None]]:
    """Ten languages whose texts grow, eight meanings each; scores that fall with them, noisily, or not at all."""
    codes = ["en", "zh", "hi", "es", "ar", "fr", "pt", "ru", "ja", "ko"]
    rng = np.random.default_rng(3)
    texts, languages, pairs, scores = [], [], [], []
    for (place, code), meaning in product(enumerate(codes), range(8)):
        texts.append("x" * (3 + place))
        languages.append(code)
        pairs.append(str(meaning))
        scores.append(float({"falls": -place + rng.normal(0, 0.5), "none": rng.normal()}[rho]))
    return texts, languages, pairs, scores


def test_more_fragments_and_worse_scores_give_a_negative_rho_and_noise_none() -> None:
    for kind, low, high in (("falls", -1.0, -0.95), ("none", -0.7, 0.7)):
        texts, languages, pairs, scores = languages_of(kind)
        scores[0] = None
        per_word = fragmentation_against_scores(texts, languages, pairs, scores, letters, Resampling(n_resamples=300))[0]
        assert per_word["measure"] == "tokens_per_word"
        assert (per_word["n_languages"], per_word["n"], per_word["n_missing"]) == (10, 79, 1)
        assert low <= per_word["rho"] <= high
        means = [np.nanmean([np.nan if score is None else score for score, code in zip(scores, languages, strict=True) if code == each])
                 for each in dict.fromkeys(languages)]  # fmt: skip
        assert math.isclose(per_word["rho"], scipy.stats.spearmanr(range(10), means).statistic)
        assert per_word["ci"]["rho"][0] <= per_word["rho"] <= per_word["ci"]["rho"][1]
        assert (per_word["p_value"] < 0.001) == (kind == "falls")


def test_the_p_value_of_few_languages_counts_every_order() -> None:
    texts = ["x", "xx", "xxx"]
    found = fragmentation_against_scores(texts, ["en", "fr", "es"], ["1"] * 3, [0.9, 0.5, 0.1], letters, NONE)[0]
    assert found["rho"] == -1.0
    assert math.isclose(found["p_value"], 2 / 6)
    two = fragmentation_against_scores(texts[:2], ["en", "fr"], ["1"] * 2, [0.9, 0.5], letters, NONE)[0]
    assert (two["rho"], two["p_value"]) == (None, None)


# Trade-offs


def test_trade_offs_are_those_of_scipy_and_are_missing_where_nothing_varies() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=60).round(1), rng.normal(size=60).round(1)
    groups = ["en"] * 40 + ["hi"] * 20
    scores: dict[str, list[float | None]] = {"a": a.tolist(), "b": (a + b).tolist(), "c": [1.0] * 60}
    scores["b"][5] = None
    found = {
        (each["first"], each["second"], each["group"]): each for each in trade_offs(scores, [str(n) for n in range(60)], groups, QUICK)
    }
    kept = [row for row in range(40) if row != 5]
    english = found["a", "b", "en"]
    assert math.isclose(english["rho"], scipy.stats.spearmanr(a[kept], (a + b)[kept]).statistic)
    assert (english["n"], english["n_missing"]) == (39, 1)
    assert english["ci"]["rho"][0] < english["rho"] < english["ci"]["rho"][1]
    assert found["a", "c", "hi"]["rho"] is None
    assert found["a", "c", "hi"]["ci"] == {"rho": [None, None]}


@pytest.mark.skipif(REAL is None, reason="T2I_PARITY_REFERENCE names no folder with the published files")
def test_the_published_matrix_of_trig_comes_out() -> None:
    folder = Path(str(REAL)) / "trig"
    rows = json.loads((folder / "formatted_flux.json").read_text(encoding="utf-8"))
    published = json.loads((folder / "relation_flux" / "result.json").read_text(encoding="utf-8"))
    assert len(rows) == len(published["metrics"]) == 42
    for place, name in enumerate(published["metrics"]):
        first, second = zip(*rows[name].values(), strict=True)
        (found,) = trade_offs({"first": first, "second": second}, list(rows[name]), ["en"] * len(first), NONE)
        assert math.isclose(found["rho"], published["correlation_matrix"][place][place], abs_tol=1e-12), name
        assert found["n"] == len(first)


# Branches, people, cultures


def test_branches_count_their_languages_alike() -> None:
    scores = [1.0, 1.0, 1.0, 0.0, 0.2]
    found = by_kind(scores, ["es", "es", "es", "fr", "hi"], list("abcab"), "branch", NONE)
    assert [(each["branch"], each["mean"], each["languages"]) for each in found] == [
        ("Romance", 0.5, ["es", "fr"]),
        ("Indo-Aryan", 0.2, ["hi"]),
    ]
    assert [each["script"] for each in by_kind(scores, ["es"] * 4 + ["hi"], list("abcab"), "script", NONE)] == ["Latn", "Deva"]


def test_a_branch_that_lacks_a_language_takes_no_place_before_a_whole_one() -> None:
    languages, pairs = ["es", "fr", "hi", "es", "fr", "hi"], list("aaabbb")
    found = by_kind([0.9, None, 0.5, 0.9, None, 0.5], languages, pairs, "branch", NONE)
    assert [(each["branch"], each["languages"], each["without_score"]) for each in found] == [
        ("Indo-Aryan", ["hi"], []),
        ("Romance", ["es"], ["fr"]),
    ]


def test_a_language_that_is_not_among_them_scores_within_the_interval_in_95_of_100() -> None:
    rng = np.random.default_rng(0)
    # Ten languages and an eleventh, whose true means are 0.06 apart; 0.03 of noise in each.
    means = rng.normal(0.7, 0.06, (4000, 11)) + rng.normal(0, 0.03, (4000, 11))
    held = 0
    for row in means:
        low, high = new_group_interval(row[:10]) or (0.0, 0.0)
        held += low <= row[10] <= high
    assert 0.93 <= held / 4000 <= 0.97
    assert new_group_interval(np.array([0.5, 0.6])) is None
    (told,) = new_language({"a": [0.5, 0.7, None, 0.9, 0.9], "b": [0.5, 0.5, None, None, None]}, ["en", "hi", "fr", "ar", "ar"], QUICK)
    assert (told["score"], told["languages"], told["n"], told["n_missing"]) == ("a", 3, 4, 1)
    assert told["expected"] == pytest.approx(0.7)
    assert told["ci"]["expected"] == [0.0, 1.0], "a fraction has ends"


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.data())
def test_any_mix_of_languages_dimensions_and_readers_is_analysed_and_no_gap_is_filled(data: st.DataObject) -> None:
    codes = data.draw(st.lists(st.sampled_from(["en", "hi", "ar", "fr", "es", "zh"]), min_size=1, unique=True))
    dead = data.draw(st.sets(st.sampled_from(codes)))
    n = data.draw(st.integers(1, 6))
    cells = list(product((str(number) for number in range(n)), codes))
    rng = np.random.default_rng(n)
    pairs, languages = [pair for pair, _ in cells], [code for _, code in cells]
    scores = {name: [None if code in dead else float(rng.random()) for code in languages] for name in ("a", "b")}
    scores["dead"] = [None] * len(cells)
    tables = [by_kind(values, languages, pairs, kind, FEW) for values in scores.values() for kind in ("branch", "script")]
    for table in tables:
        for record in table:
            assert (record["mean"] is None) == (not record["languages"])
            assert not set(record["languages"]) & (set(record["without_score"]) | dead)
        assert [bool(record["without_score"]) for record in table] == sorted(bool(record["without_score"]) for record in table)
    tables += [trade_offs(scores, pairs, languages, FEW), new_language(scores, languages, FEW)]
    texts = [f"{code} text" for code in languages]
    tables += [fragmentation(texts, languages, pairs, letters)]
    tables += [fragmentation_against_scores(texts, languages, pairs, values, letters, FEW) for values in scores.values()]
    names = ["branch", "script"] * 3 + ["trade_offs", "new_language", "fragmentation"] + ["fragmentation"] * 3
    blocks = {kind: make for place in PLACES for kind, make in place.blocks.items()}
    for name, table in zip(names, tables, strict=True):
        if table:
            for block in blocks[name]("title", json.loads(json.dumps(table))):
                assert len({len(row.cells) for row in block.rows}) == 1
    assert all(record["rho"] is None for record in tables[6] if "dead" in (record["first"], record["second"]))


def person(race: str, gender: str | None = "Male", age: str = "Adult") -> dict[str, Any]:
    return {"race": race, "gender": gender, "age": age}


def test_shares_of_people_by_language() -> None:
    people = [[person("Indian"), person("Indian", "Female")], [person("White", None)], None, []]
    found = {(each["language"], each["attribute"], each["category"]): each for each in demographics(people, ["hi", "en", "en", "hi"])}
    assert found["hi", "race", "Indian"]["share"] == 1.0
    assert (found["hi", "race", "Indian"]["n"], found["hi", "race", "Indian"]["n_missing"]) == (2, 1)
    assert found["hi", "gender", "Female"]["share"] == 0.5
    assert found["hi", "race", "White"]["share"] == 0.0
    assert (found["en", "gender", "Male"]["share"], found["en", "gender", "Male"]["n_missing"]) == (None, 2)
    assert demographics([None, []], ["en", "en"]) == []


def test_bias_in_shared_intervals_of_alignment() -> None:
    """Badly aligned images show one kind of person only, well aligned ones all kinds: the low interval scores 0, the high one more."""
    races = ["Asian", "Black", "White", "Latino", "Middle Eastern", "Indian", "Other"]
    people = [[person("White")]] * 14 + [[person(race, gender)] for race in races for gender in ("Male", "Female")]
    alignment = [0.1 + 0.001 * n for n in range(14)] + [0.3 + 0.001 * n for n in range(14)]
    languages = ["en", "hi"] * 14
    found = {(each["low"], each["language"]): each for each in bias_by_alignment(people, alignment, languages, edges=[0.2])}
    assert found[0.1, "all"]["bias_score"] == 0.0
    assert found[0.2, "all"]["bias_score"] > 0.6
    assert found[0.2, "hi"]["bias_score"] is None, "seven people are too few"
    assert (found[0.2, "hi"]["n"], found[0.2, "hi"]["images"]) == (7, 7)
    assert len(bias_by_alignment(people, alignment, languages, buckets=2)) == 2 * 3
    assert bias_by_alignment(people, [None] * 28, languages) == []
    with pytest.raises(ValueError, match="expected ascending numbers"):
        bias_by_alignment(people, alignment, languages, edges=[0.3, 0.2])


def of(meaning: str, language: str, subset: str = "lingt2i_content") -> dict[str, Any]:
    return row_of(meaning, language, subset=subset)


def test_culture_statistics_leave_controls_out() -> None:
    rows = [of("1", "hi"), of("2", "hi"), of("1", "en"), of("1", "en", "culture_tag_hi")]
    found = {each["language"]: each for each in culture_statistics(["Indian", "None", None, "Indian"], rows, NONE)}
    assert found["all"]["cue_rate"] == 0.5
    assert (found["all"]["n"], found["all"]["n_missing"]) == (2, 1)
    assert found["hi"]["match_rate"] == 1.0


def test_language_against_tag() -> None:
    rows, culture = [], []
    for meaning in range(7):
        rows += [of(str(meaning), "hi"), of(str(meaning), "en", "culture_tag_hi"), of(str(meaning), "en", "culture_neutral")]
        culture += ["Indian" if meaning < 2 else "None", None if meaning == 6 else " indian", "None"]
    rows.append(of("9", "ja"))
    culture.append("Japanese")
    every, hindi = culture_tag_contrast(culture, rows, QUICK)
    assert (hindi["target"], hindi["n"], hindi["n_missing"]) == ("hi", 6, 1)
    assert math.isclose(hindi["translated"], 1 / 3)
    assert (hindi["tagged"], hindi["neutral"], hindi["tag_effect"]) == (1.0, 0.0, 1.0)
    assert math.isclose(hindi["language_effect"], 1 / 3)
    assert -1 <= hindi["ci"]["language_effect"][0] <= 1 / 3 <= hindi["ci"]["language_effect"][1] <= 1
    assert {**every, "target": "hi"} == hindi
    assert culture_tag_contrast(culture[-1:], rows[-1:], QUICK) == []


def test_own_script_against_latin_letters() -> None:
    """The study's numbers for Arabic and Hindi: .80 to .30, .68 to .60."""
    rows, scores = [], []
    for (code, before, after), meaning in product((("ar", 0.8, 0.3), ("hi", 0.68, 0.6)), range(5)):
        rows += [of(str(meaning), code), of(str(meaning), code, "lingt2i_content_transliterated")]
        scores += [before + 0.01 * (meaning - 2), after + 0.02 * (meaning - 2)]
    rows += [of("7", "ar", "lingt2i_content_transliterated"), of("8", "hi")]
    scores += [0.9, 0.9]
    every, arabic, hindi = transliteration_contrast(scores, rows, QUICK)
    assert math.isclose(arabic["difference"], -0.5)
    assert math.isclose(hindi["original"], 0.68)
    assert (arabic["n"], arabic["n_missing"], every["n"], every["n_missing"]) == (5, 1, 10, 1)
    assert math.isclose(every["difference"], -0.29)
    assert arabic["ci"]["difference"][0] < -0.5 < arabic["ci"]["difference"][1] < 0


# The command


def analysed_run(folder: Path) -> Run:
    """Images of six meanings in three languages with all that is analysed observed of them, scored."""
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": "m"}}, "packages": {}})
    run.write_record()
    rows = [row_of(str(meaning), code, dimension="TA-C") for meaning in range(6) for code in ("en", "hi", "ar")]
    rows += [row_of(str(meaning), "hi", subset="lingt2i_content_transliterated", dimension="TA-C") for meaning in range(6)]
    rows += [
        row_of(str(meaning), "en", subset=subset, dimension="TA-C")
        for meaning in range(6)
        for subset in ("culture_tag_hi", "culture_neutral")
    ]
    for number, row in enumerate(rows):
        row["prompt"] = {"en": "a cat", "hi": "एक काली बिल्ली यहाँ", "ar": "قطة"}[row["language"]] + "!" * (number % 3)
    run.images().replace(pa.Table.from_pylist(rows, schema=image_features().arrow_schema))
    ids = [row["image_id"] for row in rows]

    def observe(judge: str, **columns: list[Any]) -> None:
        fixed = {"judge": [f"{judge}|model:tiny|v:1"] * len(ids), "status": ["ok"] * len(ids), "reason": pa.nulls(len(ids), pa.string())}
        run.observations(judge).replace(pa.table({"image_id": ids, **columns, **fixed}))

    rng = np.random.default_rng(0)
    observe("clip", similarity=rng.uniform(0.1, 0.4, len(ids)).tolist())
    observe("rater", rating_tokens=[["good", "bad"]] * len(ids), rating_logprobs=rng.uniform(-3, -0.1, (len(ids), 2)).tolist())
    observe("annotator", people=[[person("Indian" if row["language"] == "hi" else "White")] for row in rows])
    observe("curator", culture=["Indian" if row["language"] == "hi" or "tag" in row["subset"] else "None" for row in rows])
    command("score", run.url, "--resamples", "0")
    return Run.open(run.url)


def test_a_run_is_analysed_whole(tmp_path: Path) -> None:
    run = analysed_run(tmp_path / "run")
    done = command("analyse", run.url, "--tokenizer", "tekken", "--resamples", "100", "--buckets", "2")
    found = json.loads((tmp_path / "run" / "analysis.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in found["analyses"]] == [
        "fragmentation", "fragmentation against clip clip_score", "fragmentation against rater trigscore",
        "branch clip clip_score", "script clip clip_score", "transliteration clip clip_score",
        "branch rater trigscore", "script rater trigscore", "transliteration rater trigscore", "new_language", "trade_offs",
        "demographics annotator", "bias_by_alignment annotator", "culture curator", "culture_tags curator",
    ]  # fmt: skip
    by_name = {each["name"]: each["records"] for each in found["analyses"]}
    assert [each["n"] for each in by_name["fragmentation"]] == [6, 6, 6], "controls are no prompts of a language"
    tags = next(each for each in by_name["culture_tags curator"] if each["target"] == "hi")
    assert (tags["translated"], tags["tagged"], tags["neutral"], tags["n"]) == (1.0, 1.0, 0.0, 6)
    assert by_name["transliteration clip clip_score"][1]["n"] == 6
    told = next(each for each in by_name["trade_offs"] if each["group"] == "hi")
    scored = {row["image_id"]: row for row in run.scored().read().to_pylist()}
    hindi = [row for row in scored.values() if row["language"] == "hi" and row["subset"] == "lingt2i_content"]
    rho = scipy.stats.spearmanr([row["clip_clip_score"] for row in hindi], [row["rater_trigscore"] for row in hindi]).statistic
    assert math.isclose(told["rho"], rho, abs_tol=1e-12)
    assert "Language against culture tag, curator" in done.stdout
    assert f"15 analyses in {run.url}/analysis.json" in done.stdout
    again = tmp_path / "again.json"
    command("analyse", run.url, "--resamples", "0", "--edges", "0.2,0.3", "--json", again)
    other = json.loads(again.read_text(encoding="utf-8"))
    assert other["analyses"][0]["name"] == "branch clip clip_score", "fragmentation needs a tokenizer"
    assert "ci" not in other["analyses"][0]["records"][0]


def test_what_cannot_be_analysed_is_told(tmp_path: Path) -> None:
    bare = content_run(tmp_path / "bare")
    assert "is no scored run of images; score it first: t2i-parity score" in error_of("analyse", bare)
    run = analysed_run(tmp_path / "run")
    assert "--edges 0.3,x: expected numbers" in error_of("analyse", run.url, "--edges", "0.3,x")
    assert "edges: expected ascending numbers" in error_of("analyse", run.url, "--edges", "0.3,0.1")
    assert "no-such-tokenizer" in error_of("analyse", run.url, "--tokenizer", "no-such-tokenizer")
    assert "confidence_level: expected a float" in error_of("analyse", run.url, "--confidence", "2")
