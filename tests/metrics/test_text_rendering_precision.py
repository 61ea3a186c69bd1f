"""Text-rendering precision against jiwer, a plain edit distance, and cases worked by hand."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Hashable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from t2i_parity.metrics.text_rendering_precision import core
from t2i_parity.metrics.text_rendering_precision.core import compute, load_tokenizer, ned, per_row

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
PAIRS = st.lists(st.tuples(st.none() | TEXT, TEXT), min_size=1, max_size=12)
point = partial(compute, tokenizer=str.split, n_resamples=0)


def letters(text: str) -> list[str]:
    return list(text)


def edit_distance(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        previous, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (x != y))
    return row[-1]


# By hand


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("", "", 1.0),
        ("", "a", 0.0),
        ("a", "", 0.0),
        ("kitten", "sitting", 1 - 3 / 7),
        ("Open", "OPEN", 1 / 4),
        (" a", "a", 1 / 2),
        ("a  b", "a b", 3 / 4),
        ("नमस्ते", "नमस्त", 5 / 6),
        ("é", "e\u0301", 0.0),
        ("👍🏽", "👍", 1 / 2),
        ("نفق", "نفق", 1.0),
        ("नमस्", "हिन्", 1 / 4),
    ],
)
def test_ned_by_hand(prediction: str, reference: str, expected: float) -> None:
    assert ned([prediction], [reference])[0] == pytest.approx(expected, rel=1e-15)


def test_precision_by_hand() -> None:
    # Row 0: chars 3 of 6, tokens 1 of 2, not exact. Row 1: all 1.
    answer = point(["no cat", "yes"], ["no dog", "yes"])
    assert answer == {
        "precision": pytest.approx((0.75 + 0.75 + 0.5) / 3),
        "ned_char": 0.75,
        "ned_token": 0.75,
        "sentence_accuracy": 0.5,
        "n": 2,
        "n_missing": 0,
        "signature": "text_rendering_precision|tok:str.split|norm:none|variant:paper|v:1.0",
    }
    reference = point(["no cat", "yes"], ["no dog", "yes"], variant="reference")
    assert reference["precision"] == pytest.approx(0.4 * 0.75 + 0.4 * 0.75 + 0.2 * 0.5)
    assert reference["signature"].endswith("|variant:reference|v:1.0")


def test_the_papers_precision_is_thirds_of_the_means_and_the_codes_a_weighting_of_rows() -> None:
    predictions, references = ["ab cd", "x", "same"], ["ab ce", "yz", "same"]
    rows = per_row(predictions, references, tokenizer=str.split, variant="reference")
    assert rows["precision"] == pytest.approx(0.4 * rows["ned_char"] + 0.4 * rows["ned_token"] + 0.2 * rows["exact"])
    assert point(predictions, references, variant="reference")["precision"] == pytest.approx(rows["precision"].mean())
    answer = point(predictions, references)
    assert answer["precision"] == pytest.approx((answer["ned_char"] + answer["ned_token"] + answer["sentence_accuracy"]) / 3)


def test_missing_predictions_are_counted_and_never_scored() -> None:
    answer = compute([None, "a", None], ["a", "a", "b"], tokenizer=letters, groups=["x", "y", "y"])
    assert (answer["n"], answer["n_missing"], answer["precision"]) == (1, 2, 1.0)
    gone = answer["by_group"]["x"]
    assert gone == {
        **dict.fromkeys(core.KEYS),
        "n": 0,
        "n_missing": 1,
        "ci": {key: [None, None] for key in core.KEYS},
        "ci_method": dict.fromkeys(core.KEYS, "none: nothing was observed"),
    }
    assert np.isnan(per_row([None, "a"], ["a", "a"], tokenizer=letters)["precision"]).tolist() == [True, False]
    assert "NaN" not in json.dumps(answer)


def test_an_empty_prediction_is_a_score_of_zero_and_not_missing() -> None:
    answer = point([""], ["a"])
    assert (answer["n"], answer["n_missing"], answer["precision"]) == (1, 0, 0.0)


def test_normalisation_only_when_asked() -> None:
    composed, decomposed = "é", "e\u0301"
    assert point([composed], [decomposed])["precision"] == 0.0
    answer = point([composed], [decomposed], normalization="nfc")
    assert (answer["precision"], answer["signature"].split("|")[2]) == (1.0, "norm:nfc")
    # NFC, not NFKC, and no case folding, in either unit.
    for units in core.UNITS:
        for left, right in (("ﬁ", "fi"), ("Ａ", "A"), ("한", "ㅎㅏㄴ"), ("STRASSE", "STRAßE"), ("open", "OPEN"), ("a b", "a  b")):
            answer = point([left], [right], normalization="nfc", units=units)
            assert (answer["sentence_accuracy"], answer["ned_char"] < 1) == (0.0, True)


@given(st.lists(TEXT, min_size=1, max_size=6), st.sampled_from(core.UNITS))
def test_texts_are_compared_as_they_come(texts: list[str], units: str) -> None:
    forms = [[unicodedata.normalize(form, text) for text in texts] for form in ("NFC", "NFD")]
    exact = per_row(*forms, tokenizer=letters, units=units)["exact"]
    assert exact.tolist() == [float(a == b) for a, b in zip(*forms, strict=True)]


# Units


@pytest.mark.parametrize(
    ("prediction", "reference", "codepoints", "graphemes"),
    [
        # One vowel sign wrong: one of two syllables; a conjunct with its vowel is one cluster.
        ("नमे", "नमा", 2 / 3, 1 / 2),
        ("क्षत्रि", "क्षत्र", 6 / 7, 1 / 2),
        ("👍🏽", "👍", 1 / 2, 0.0),
        ("👨\u200d👩\u200d👧!", "👨\u200d👩\u200d👧", 5 / 6, 1 / 2),
        ("🇫🇷🇩🇪", "🇫🇷🇪🇸", 1 / 2, 1 / 2),
        ("cafe\u0301", "cafe", 4 / 5, 3 / 4),
        ("kitten", "sitting", 4 / 7, 4 / 7),
        ("中文字", "中文", 2 / 3, 2 / 3),
        ("", "", 1.0, 1.0),
        ("", "e\u0301", 0.0, 0.0),
    ],
)
def test_units_by_hand(prediction: str, reference: str, codepoints: float, graphemes: float) -> None:
    for units, expected in (("codepoints", codepoints), ("graphemes", graphemes)):
        assert point([prediction], [reference], units=units)["ned_char"] == pytest.approx(expected)


def test_units_touch_only_ned_char_and_are_named_only_when_chosen() -> None:
    predictions, references = ["नमे", "a b", None], ["नमा", "a b", "x"]
    default, graphemes = (point(predictions, references, units=units) for units in core.UNITS)
    assert default == point(predictions, references)
    assert default["signature"] == "text_rendering_precision|tok:str.split|norm:none|variant:paper|v:1.0"
    assert graphemes["signature"] == "text_rendering_precision|tok:str.split|norm:none|variant:paper|units:graphemes|v:1.0"
    changed = {key for key in default if default[key] != graphemes[key]}
    assert changed == {"precision", "ned_char", "signature"}


def test_clusters_are_those_of_another_implementation(root: Path) -> None:
    clusters = pytest.importorskip("uniseg.graphemecluster").grapheme_clusters
    lines = (root / "dataset_builder" / "starter" / "lingt2i_text.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [text for line in lines for text in json.loads(line)["texts"].values()]
    assert len(texts) > 500
    assert core.GRAPHEMES.encode(texts) == [list(clusters(text)) for text in texts]


@given(TEXT, TEXT)
def test_graphemes_score_as_a_tokenizer_of_them_would(a: str, b: str) -> None:
    rows = per_row([a], [b], tokenizer=regex.compile(r"\X").findall, units="graphemes")
    assert rows["ned_char"][0] == rows["ned_token"][0]
    assert 0 <= rows["ned_char"][0] <= 1


# Against others


@given(st.lists(st.tuples(st.text("abc नमस्ते中文", min_size=1), st.text("abc नमस्ते中文", min_size=1)), min_size=1, max_size=8))
@settings(deadline=None)
def test_distances_are_jiwers(pairs: list[tuple[str, str]]) -> None:
    # jiwer strips and wants a word in the reference
    pairs = [(" ".join(a.split()) or "a", " ".join(b.split()) or "b") for a, b in pairs]
    for prediction, reference in pairs:
        rows = per_row([prediction], [reference], tokenizer=str.split)
        characters, words = jiwer.process_characters(reference, prediction), jiwer.process_words(reference, prediction)
        wrong = characters.substitutions + characters.deletions + characters.insertions
        assert rows["ned_char"][0] == pytest.approx(1 - wrong / max(len(prediction), len(reference)))
        wrong = words.substitutions + words.deletions + words.insertions
        longer = max(len(prediction.split()), len(reference.split()))
        assert rows["ned_token"][0] == pytest.approx(1 - wrong / longer)


@given(TEXT, TEXT)
def test_ned_is_the_plain_edit_distance(a: str, b: str) -> None:
    expected = 1 - edit_distance(a, b) / max(len(a), len(b)) if a or b else 1.0
    assert ned([a], [b])[0] == pytest.approx(expected)


# Properties


@given(TEXT, TEXT)
def test_ned_is_bounded_symmetric_and_one_only_for_equals(a: str, b: str) -> None:
    there, back, same = ned([a, b, a], [b, a, a])
    assert 0 <= there <= 1
    assert there == back
    assert same == 1
    assert (there == 1) == (a == b)


@given(PAIRS)
@settings(deadline=None)
def test_identical_texts_score_one_and_all_keys_lie_in_range(pairs: list[tuple[str | None, str]]) -> None:
    references = [reference for _, reference in pairs]
    same = point(references, references)
    assert [same[key] for key in core.KEYS] == pytest.approx([1.0] * 4)
    answer = point([prediction for prediction, _ in pairs], references)
    assert all(answer[key] is None or -1e-12 <= answer[key] <= 1 + 1e-12 for key in core.KEYS)
    assert answer["n"] + answer["n_missing"] == len(pairs)


@given(st.lists(st.tuples(st.none() | TEXT, TEXT, st.sampled_from("gh"), st.sampled_from("xyz")), min_size=1, max_size=12))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_and_other_groups_change_nothing(rows: list[tuple[str | None, str, str, str]]) -> None:
    def run(rows: list[tuple[str | None, str, str, str]]) -> dict[str, Any]:
        predictions, references, groups, clusters = zip(*rows, strict=True)
        return compute(predictions, references, tokenizer=letters, groups=groups, clusters=clusters, n_resamples=20)

    answer = run(rows)
    assert run(rows[::-1]) == answer
    for group, part in answer["by_group"].items():
        alone = run([row for row in rows if row[2] == group])
        assert {key: alone[key] for key in part} == part
        assert alone["by_group"] == {group: part}
    parts = answer["by_group"].values()
    assert sum(part["n"] for part in parts) == answer["n"]
    if answer["n"]:
        whole = sum(part["ned_char"] * part["n"] for part in parts if part["n"]) / answer["n"]
        assert answer["ned_char"] == pytest.approx(whole)


@given(st.lists(TEXT, min_size=1, max_size=6))
def test_nfc_makes_normal_forms_equal(texts: list[str]) -> None:
    forms = [[unicodedata.normalize(form, text) for text in texts] for form in ("NFC", "NFD")]
    assert compute(*forms, tokenizer=letters, normalization="nfc", n_resamples=0)["sentence_accuracy"] == 1.0


# Tokenizers


def test_tekken_is_offline_lossless_and_named() -> None:
    tokenizer = load_tokenizer("tekken")
    assert tokenizer.name == "mistral-common/tekken_240911"
    texts = ["", "GRAND OPENING", "नमस्ते", "中文字", "é", "e\u0301"]
    tokens = [tuple(sequence) for sequence in tokenizer.encode(texts)]
    assert tokens[0] == ()
    assert len(set(tokens)) == len(texts)
    assert load_tokenizer("tekken") is tokenizer


def test_a_folder_is_read_without_special_tokens_and_named_by_content(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    transformers = pytest.importorskip("transformers")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "[CLS]": 1, "no": 2, "cat": 3}, unk_token="[UNK]"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    words.post_processor = tokenizers.processors.TemplateProcessing(single="[CLS] $A", special_tokens=[("[CLS]", 1)])
    for name in ("one", "two"):
        saved = transformers.PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", cls_token="[CLS]")
        saved.save_pretrained(tmp_path / name / "words")
    one, two = (load_tokenizer(str(tmp_path / name / "words")) for name in ("one", "two"))
    assert [list(tokens) for tokens in one.encode(["no cat", ""])] == [[2, 3], []]
    assert one.name == two.name
    assert one.name.startswith("words@")
    assert str(tmp_path) not in compute(["no cat"], ["no dog"], tokenizer=one, n_resamples=0)["signature"]


def test_without_the_studys_tokenizer_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    with pytest.raises(RuntimeError) as error:
        compute(["a"], ["a"])
    told = str(error.value)
    assert "'google/mt5-base' could not be loaded" in told
    for fix in (
        "pip install transformers sentencepiece",
        "hf download google/mt5-base",
        "tokenizer='tekken'",
        "signature",
    ):
        assert fix in told
    assert "\n" not in told


def test_a_callable_gives_its_name() -> None:
    class Named:
        name = "by-space@2"

        def __call__(self, text: str) -> list[str]:
            return text.split()

    assert load_tokenizer(Named()).name == "by-space@2"
    assert load_tokenizer(letters).name == "letters"
    ready = load_tokenizer(letters)
    assert load_tokenizer(ready) is ready
    named = Named()
    named.name = "a|b"
    with pytest.raises(ValueError, match="signature field 'tok'"):
        compute(["a"], ["a"], tokenizer=named)


def test_tokens_are_compared_by_equality_not_by_hash() -> None:
    # hash(-1) == hash(-2), and rapidfuzz takes "a" for the number 97
    for left, right in ((-1, -2), ("a", 97)):
        tokens = {"left": [left], "right": [right]}
        assert per_row(["left"], ["right"], tokenizer=tokens.__getitem__)["ned_token"][0] == 0.0


def test_tokens_past_the_last_code_point_are_told_apart() -> None:
    last = 0x10FFFF

    def encode(texts: list[str]) -> list[list[int]]:
        return [list(range(last + 2)) if text == "all" else [int(part) for part in text.split()] for text in texts]

    many = core.Tokenizer("many", encode)
    pairs = [("all", ""), (f"{last} {last + 1}", f"{last} {last}"), (f"7 {last + 1}", "7"), ("7 8", "7 9")]
    rows = per_row(*zip(*pairs, strict=True), tokenizer=many)
    assert rows["ned_token"].tolist() == [0.0, 0.5, 0.5, 0.5]


def test_a_tokenizer_gets_some_texts_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{number} {number % 7}" for number in range(25)]
    whole = per_row(texts, texts[::-1], tokenizer=str.split)
    monkeypatch.setattr(core, "_TEXTS_AT_ONCE", 4)
    sizes: list[int] = []

    def encode(texts: list[str]) -> list[list[str]]:
        sizes.append(len(texts))
        return [text.split() for text in texts]

    rows = per_row(texts, texts[::-1], tokenizer=core.Tokenizer("some", encode))
    assert sizes == [4] * 6 + [1]
    assert {name: values.tolist() for name, values in rows.items()} == {name: values.tolist() for name, values in whole.items()}
    with pytest.raises(ValueError, match=r"zip\(\)"):
        per_row(texts, texts, tokenizer=core.Tokenizer("short", lambda texts: [[]]))


def test_each_distinct_text_is_tokenized_once() -> None:
    seen: list[str] = []

    def watching(text: str) -> list[str]:
        seen.append(text)
        return text.split()

    point(["a", "b", "a", None], ["a", "a", "c", "d"], tokenizer=watching)
    assert sorted(seen) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("tokenizer", "told"),
    [
        (7, "tokenizer: expected a hub id"),
        ("", "tokenizer: expected a hub id"),
        (None, "tokenizer: expected a hub id"),
        (len, "expected a sequence of tokens for 'a', got int"),
        (lambda text: {"input_ids": [1]}, "expected a sequence of tokens for 'a', got dict"),
        (lambda text: [[1]], "hashed"),
    ],
)
def test_what_does_not_tokenize_is_refused(tokenizer: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(["a"], ["a"], tokenizer=tokenizer)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [
        ({"variant": "papers"}, "variant: expected one of 'paper', 'reference', got 'papers'"),
        ({"normalization": "NFC"}, "normalization: expected one of 'none', 'nfc'"),
        ({"normalization": None}, "normalization: expected"),
        ({"units": "characters"}, "units: expected one of 'codepoints', 'graphemes', got 'characters'"),
        ({"groups": ["g"]}, "column 'groups', row 1"),
        ({"clusters": ["c", None]}, "column 'clusters', row 1: expected str, got None"),
        ({"references": ["a", None]}, "column 'references', row 1: expected str, got None"),
        ({"confidence_level": 2.0}, "confidence_level"),
    ],
)
def test_wrong_keywords_are_refused(keywords: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        compute(**{"predictions": ["a", None], "references": ["a", "b"], "tokenizer": letters, **keywords})


def test_sentence_accuracy_has_wilsons_interval() -> None:
    answer = compute(["a", "b", "c", "d", "e", None], ["a", "b", "x", "d", "y", "d"], tokenizer=str.split)
    assert answer["ci"]["sentence_accuracy"] == pytest.approx(proportion_confint(3, 5, method="wilson"), abs=1e-9)
    assert answer["ci_method"]["sentence_accuracy"] == "wilson"
    few = compute(["a", "b", "c", "d", None], ["a", "b", "x", "d", "e"], tokenizer=str.split)
    assert few["ci"] == {key: [None, None] for key in core.KEYS}
    assert set(few["ci_method"].values()) == {"none: 4 clusters, fewer than 5"}
    assert {"ci", "ci_method"}.isdisjoint(compute(["a"], ["a"], tokenizer=str.split, n_resamples=0))
    perfect = compute(["a"] * 20, ["a"] * 20, tokenizer=str.split)
    assert all(low < 0.9 < high == 1 for low, high in perfect["ci"].values())
