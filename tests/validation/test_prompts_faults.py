"""One fault at a time, planted in clean tables: it is found, named by its row, and nothing else is."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from prompt_tables import Tables, change, clean, drop, found, put, row, told, value

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.storage import decode_classes
from t2i_parity.validation.prompts.registry import CHECKS

CONTENT, TEXT, DIALECT, REGIONAL, GEO = "lingt2i_content", "lingt2i_text", "dialect", "dialect_crosslingual", "geo"


def in_the_middle(piece: str) -> Callable[[str], str]:
    """A piece put after the text's first word."""

    def put_in(text: str) -> str:
        place = text.index(" ") if " " in text else 3
        return text[:place] + piece + text[place:]

    return put_in


def instead(old: str, new: str) -> Callable[[str], str]:
    """One piece for another, which must be there."""

    def replace(text: str) -> str:
        assert old in text, text
        return text.replace(old, new, 1)

    return replace


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


THIRD = {"variety": "SAE", "pair_id": "starter-BEN-ANI-003"}

# name: (check, severity, config, which row, column, what the text becomes)
CHARACTERS: dict[str, tuple[str, str, str, dict[str, Any], str, Callable[[str], str]]] = {
    "decomposed letters": ("nfc", "error", CONTENT, {"language": "fr"}, "prompt", lambda text: decomposed(text)),
    "decomposed Hangul": ("nfc", "error", CONTENT, {"language": "ko"}, "prompt", lambda text: decomposed(text[:1]) + text[1:]),
    "a bell": ("control_characters", "error", CONTENT, {"language": "en"}, "prompt", in_the_middle("\x07")),
    "a private-use character": ("control_characters", "error", CONTENT, {"language": "zh"}, "prompt", in_the_middle("\ue000")),
    "an override": ("bidi_marks", "error", CONTENT, {"language": "en"}, "prompt", in_the_middle("\u202e")),
    "an isolate in Arabic": ("bidi_marks", "error", CONTENT, {"language": "ar"}, "prompt", in_the_middle("\u2067")),
    "a mark in Arabic": ("bidi_marks", "warning", CONTENT, {"language": "ar"}, "prompt", in_the_middle("\u200f")),
    "a zero-width space": ("zero_width", "error", CONTENT, {"language": "ja"}, "prompt", in_the_middle("\u200b")),
    "a soft hyphen": ("zero_width", "error", CONTENT, {"language": "pt"}, "prompt", in_the_middle("\u00ad")),
    "a byte order mark": ("zero_width", "error", CONTENT, {"language": "ru"}, "prompt", lambda text: "\ufeff" + text),
    "a joiner in Spanish": ("zero_width", "error", CONTENT, {"language": "es"}, "prompt", lambda text: text[:2] + "\u200d" + text[2:]),
    "hidden tags": ("zero_width", "error", CONTENT, {"language": "en"}, "prompt", lambda text: text + "\U000e0041"),
    "a replacement character": ("replacement_character", "error", CONTENT, {"language": "hi"}, "prompt", in_the_middle(" \ufffd")),
    "question marks for letters": ("replacement_character", "warning", CONTENT, {"language": "ru"}, "prompt", in_the_middle(" ????")),
    "mojibake": ("mojibake", "error", CONTENT, {"language": "es"}, "prompt", instead("alféizar", "alfÃ©izar")),
    "mojibake in the rendered text": ("mojibake", "error", TEXT, {"language": "pt"}, "render_text", instead("EMERGÊNCIA", "EMERGÃŠNCIA")),
    "a ligature": ("compatibility_forms", "warning", CONTENT, {"language": "en"}, "prompt", in_the_middle(" ﬁne")),
    "wide Latin letters": ("compatibility_forms", "warning", CONTENT, {"language": "fr"}, "prompt", in_the_middle(" ＡＢ")),
    "an Arabic presentation form": ("compatibility_forms", "warning", TEXT, {"language": "ar"}, "render_text", in_the_middle(" ﻻ")),
    "a double space": ("spaces", "warning", CONTENT, {"language": "en"}, "prompt", in_the_middle(" ")),
    "a leading space": ("spaces", "warning", CONTENT, {"language": "ko"}, "prompt", lambda text: " " + text),
    "a trailing line break": ("spaces", "warning", DIALECT, {"variety": "IndE"}, "prompt", lambda text: text + "\n"),
    "a tab": ("spaces", "warning", CONTENT, {"language": "fr"}, "prompt", in_the_middle("\t")),
    "a wide space in Spanish": ("spaces", "warning", CONTENT, {"language": "es"}, "prompt", instead(" ", "\u3000")),
    "<sks1>": ("placeholder", "error", CONTENT, {"language": "en"}, "prompt", in_the_middle(" <sks1>")),
    "{text}": ("placeholder", "error", CONTENT, {"language": "es"}, "prompt", in_the_middle(" {text}")),
    "[DIALECT_NAME]": ("placeholder", "error", DIALECT, {"variety": "AAVE"}, "prompt", in_the_middle(" [DIALECT_NAME]")),
    "%s": ("placeholder", "error", CONTENT, {"language": "hi"}, "prompt", in_the_middle(" %s")),
    "a placeholder in the rendered text": ("placeholder", "error", TEXT, {"language": "fr"}, "render_text", in_the_middle(" {name}")),
    "REFUSED": ("refusal", "error", DIALECT, {"variety": "CollSgE"}, "prompt", lambda text: "REFUSED."),
    "REFUSED inside": ("refusal", "warning", DIALECT, {"variety": "CollSgE"}, "prompt", lambda text: text + " REFUSED"),
    "assent": ("leaked_instruction", "warning", DIALECT, {"variety": "JamE"}, "prompt", lambda text: "Sure! " + text),
    "a tag of HTML": ("markup", "error", CONTENT, {"language": "pt"}, "prompt", in_the_middle("<br/>")),
    "an entity of HTML": ("markup", "error", CONTENT, {"language": "en"}, "prompt", in_the_middle(" &amp;")),
    "bold Markdown": ("markup", "warning", CONTENT, {"language": "en"}, "prompt", instead("A glass", "A **glass**")),
    "a Markdown list": ("markup", "warning", CONTENT, {"language": "es"}, "prompt", lambda text: "- " + text),
    "quotes around all": ("quoted", "warning", DIALECT, {"variety": "ChcE"}, "prompt", lambda text: f"“{text}”"),
    "punctuation alone": ("empty", "error", CONTENT, {"language": "en"}, "prompt", lambda text: "…"),
    "a Cyrillic letter in a Latin word": ("mixed_script", "warning", CONTENT, {"language": "en"}, "prompt", instead("glass", "gl\u0430ss")),
    "a Greek letter in a Cyrillic word": ("mixed_script", "warning", CONTENT, {"language": "ru"}, "prompt", instead("о", "oo")),
    "traditional Chinese": (
        "spelling", "warning", TEXT, {"language": "zh", "pair_id": "starter-TR-003"}, "render_text", lambda text: "請勿踐踏草坪",
    ),
    "a Persian letter": ("spelling", "warning", CONTENT, {"language": "ar"}, "prompt", instead("ك", "ک")),
    "a Ukrainian letter": ("spelling", "warning", CONTENT, {"language": "ru"}, "prompt", instead("и", "і")),
    "names left in Latin letters": (
        "script", "warning", CONTENT, {"language": "hi"}, "prompt", lambda text: text + " Rijksmuseum Amsterdam Netherlands",
    ),
    "another language": (
        "language", "warning", CONTENT, {"language": "es"}, "prompt",
        lambda text: "Un bicchiere d'acqua ghiacciata con una fetta di limone sul davanzale della finestra soleggiata",
    ),
    "another language, shortly": ("language", "note", TEXT, {"language": "es"}, "render_text", lambda text: "Vietato entrare qui oggi"),
    "a variety that was not converted": ("unconverted", "warning", DIALECT, {"variety": "JamE"}, "prompt", lambda text: SAE),
    "Bavarian that is German": ("unconverted", "warning", REGIONAL, {"language": "bar"}, "prompt", lambda text: GERMAN),
    "another pair's text": ("duplicate", "warning", DIALECT, THIRD, "prompt", lambda text: SAE),
    "nearly another pair's text": (
        "near_duplicate", "note", DIALECT, THIRD, "prompt", lambda text: SAE.replace("boy", "girl"),
    ),
    "a description that changed": (
        "description", "warning", TEXT, {"language": "fr"}, "prompt", instead("At night", "In the morning"),
    ),
}  # fmt: skip
SAE = starter.tables()[DIALECT]["prompt"][0].as_py()
GERMAN = starter.tables()[REGIONAL]["prompt"][0].as_py()


def test_clean_tables_have_no_finding() -> None:
    report = found(clean())
    assert report.findings == []
    assert {check.name for check in report.checks if check.skipped is None} == {check.name for check in CHECKS} - {"counts"}


@pytest.mark.parametrize("name", CHARACTERS)
def test_a_text_fault_is_found_alone(name: str) -> None:
    check, severity, config, which, column, new = CHARACTERS[name]
    tables = clean()
    number = row(tables, config, **which)
    change(tables, config, number, column, new)
    report = found(tables)
    assert told(report) == {(check, severity, config, number, column)}
    finding = report.findings[0]
    assert finding.prompt_id == value(tables, config, number, "prompt_id")
    assert finding.found
    assert finding.expected
    assert finding.fix


LEAKS = {
    "en": "Here is the translation: ",
    "zh": "以下是翻译：",
    "hi": "यहाँ हिंदी अनुवाद है: ",
    "es": "Aquí está la traducción: ",
    "ar": "إليك الترجمة: ",
    "fr": "Voici la traduction : ",
    "pt": "Aqui está a tradução: ",
    "ru": "Вот перевод: ",
    "ja": "以下は日本語訳です：",
    "ko": "다음은 번역입니다: ",
    "de": "Hier ist die Übersetzung: ",
}
REFUSALS = {
    "en": "I can't help with that request.",
    "zh": "抱歉，我无法翻译这段内容。",
    "hi": "क्षमा करें, मैं इसका अनुवाद नहीं कर सकता।",
    "es": "Lo siento, no puedo ayudar con eso.",
    "ar": "عذرًا، لا أستطيع المساعدة في ذلك.",
    "fr": "Je ne peux pas traduire ce texte.",
    "pt": "Desculpe, não posso traduzir este texto.",
    "ru": "Извините, я не могу помочь с этим.",
    "ja": "申し訳ありませんが、翻訳できません。",
    "ko": "죄송하지만 번역할 수 없습니다.",
    "de": "Ich kann dabei nicht helfen.",
}


@pytest.mark.parametrize("language", [code for code, each in LANGUAGES.items() if each.answers])
def test_words_of_the_model_are_found_in_every_language(language: str) -> None:
    for new in (lambda text: LEAKS[language] + text, lambda text: REFUSALS[language]):
        tables = clean()
        config = REGIONAL if language == "de" else CONTENT
        number = row(tables, config, language=language)
        change(tables, config, number, "prompt", new)
        assert told(found(tables)) == {("leaked_instruction", "error", config, number, "prompt")}


def test_a_prompt_in_another_language_or_script_is_found_as_both() -> None:
    for language, text, checks in (
        ("hi", "A lighthouse on a cliff above a stormy sea, seen from a fishing boat", {("script", "error"), ("language", "warning")}),
        ("fr", None, {("untranslated", "error"), ("language", "warning")}),
        ("ja", "一座悬崖上的灯塔俯瞰着波涛汹涌的大海，从渔船上看过去", {("language", "warning")}),
    ):
        tables = clean()
        number = row(tables, CONTENT, language=language)
        put(tables, CONTENT, number, "prompt", text or value(tables, CONTENT, row(tables, CONTENT, language="en"), "prompt"))
        assert told(found(tables)) == {(check, severity, CONTENT, number, "prompt") for check, severity in checks}


def test_a_whole_column_in_another_language_is_an_error() -> None:
    tables = clean()
    rows = decode_classes(tables[CONTENT]).to_pylist()
    spanish = {each["pair_id"]: each["prompt"] for each in rows if each["language"] == "es"}
    portuguese = [number for number, each in enumerate(rows) if each["language"] == "pt"]
    for number in portuguese:
        put(tables, CONTENT, number, "prompt", spanish[rows[number]["pair_id"]])
    report = found(tables)
    assert told(report) == {
        ("language", "error", CONTENT, None, "prompt"),
        *(("language", "warning", CONTENT, n, "prompt") for n in portuguese),
    }
    assert [finding.n for finding in report.findings if finding.row is None] == [6]


def test_a_text_far_longer_or_shorter_than_the_others_is_found() -> None:
    tables = starter.tables()
    long, short = row(tables, DIALECT, variety="AAVE"), row(tables, DIALECT, variety="IndE")
    others = [each["prompt"] for each in decode_classes(tables[DIALECT]).to_pylist() if each["variety"] == "AAVE"]
    put(tables, DIALECT, long, "prompt", " ".join(others[20:28]))
    put(tables, DIALECT, short, "prompt", "One dog")
    assert told(found(tables)) == {("length", "warning", DIALECT, number, "prompt") for number in (long, short)}


# The table itself


def without(column: str) -> Callable[[Tables], None]:
    def plant(tables: Tables) -> None:
        tables[DIALECT] = tables[DIALECT].drop_columns(column)

    return plant


def retyped(tables: Tables) -> None:
    prompts = tables[DIALECT]
    place = prompts.column_names.index("category")
    tables[DIALECT] = prompts.set_column(place, "category", pa.array(range(len(prompts))))


def nameless(tables: Tables) -> None:
    tables[DIALECT] = tables[DIALECT].replace_schema_metadata({b"huggingface": b"{}"})


def added(tables: Tables) -> None:
    tables[GEO] = tables[GEO].append_column("mood", pa.array(["good"] * len(tables[GEO])))


def twice(tables: Tables) -> None:
    put(tables, GEO, 3, "prompt_id", value(tables, GEO, 2, "prompt_id"))


def across(tables: Tables) -> None:
    put(tables, GEO, 3, "prompt_id", value(tables, DIALECT, 0, "prompt_id"))


def rehashed(tables: Tables) -> None:
    put(tables, CONTENT, 7, "text_sha256", "0" * 64)


def circle(tables: Tables) -> None:
    put(tables, DIALECT, 0, "derived_from", value(tables, DIALECT, 1, "prompt_id"))


def incomplete(tables: Tables) -> None:
    drop(tables, CONTENT, [row(tables, CONTENT, language="hi")])


def listed(tables: Tables) -> None:
    incomplete(tables)
    for number, pair in enumerate(tables[CONTENT]["pair_id"].to_pylist()):
        if pair == value(tables, CONTENT, 0, "pair_id"):
            known = [{"check": "pair_complete", "verdict": "incomplete", "score": None, "by": "us"}]
            put(tables, CONTENT, number, "checks", known)


def alone(tables: Tables) -> None:
    drop(tables, REGIONAL, [row(tables, REGIONAL, language="arz")])


def doubled(tables: Tables) -> None:
    tables[DIALECT] = pa.concat_tables([tables[DIALECT], tables[DIALECT].slice(1, 1)])
    put(tables, DIALECT, 36, "prompt_id", "another")


def relabelled(tables: Tables) -> None:
    put(tables, DIALECT, 2, "label", 1)


def unclassed(tables: Tables) -> None:
    put(tables, DIALECT, 2, "label", 7)


def unlicensed(tables: Tables) -> None:
    for number in range(12):
        put(tables, DIALECT, number, "license", "unknown")


def own_licence(tables: Tables) -> None:
    put(tables, GEO, 3, "license", "ask me")


def no_derivatives(tables: Tables) -> None:
    put(tables, GEO, 3, "license", "CC-BY-ND-4.0")


def unchanged_no_derivatives(tables: Tables) -> None:
    put(tables, DIALECT, 0, "license", "CC-BY-ND-4.0")


def share_alike(tables: Tables) -> None:
    for number in range(len(tables[GEO])):
        put(tables, GEO, number, "license", "cc-by-nc-sa-4.0")


def orphan_licence(tables: Tables) -> None:
    put(tables, DIALECT, 0, "license", "CC-BY-SA-4.0")


def cell(config: str, number: int, column: str, new: Any) -> Callable[[Tables], None]:
    return lambda tables: put(tables, config, number, column, new)


BOX = "[[[[0, 0], [9, 0], [9, 9], [0, 9]], [[0, 0], [9, {}]]]]"
TABLE: dict[str, tuple[Callable[[Tables], None], set[tuple[str, str, str, int | None, str | None]]]] = {
    "a column is missing": (without("category"), {("columns", "error", DIALECT, None, "category")}),
    "a column has another type": (retyped, {("columns", "error", DIALECT, None, "category")}),
    "classes have no names": (nameless, {("columns", "error", DIALECT, None, column) for column in ("label", "derivation")}),
    "a column is not declared": (added, {("columns", "warning", GEO, None, "mood")}),
    "a null": (cell(GEO, 5, "producer", None), {("columns", "error", GEO, 5, "producer")}),
    "a null prompt": (cell(GEO, 5, "prompt", None), {("columns", "error", GEO, 5, "prompt")}),
    "an undeclared language": (
        cell(REGIONAL, 0, "language", "xx"),
        {("values", "error", REGIONAL, 0, "language"), ("pair_complete", "error", REGIONAL, 0, "pair_id")},
    ),
    "an undeclared variety": (
        cell(DIALECT, 3, "variety", "Martian"),
        {("values", "error", DIALECT, 3, "variety"), ("pair_complete", "error", DIALECT, 0, "pair_id")},
    ),
    "another script": (cell(CONTENT, 3, "script", "Cyrl"), {("values", "error", CONTENT, 3, "script")}),
    "an undeclared dimension": (
        cell(CONTENT, 3, "dimension", "X-Y"),
        {("values", "error", CONTENT, 3, "dimension"), ("pair_agrees", "error", CONTENT, 3, "dimension")},
    ),
    "an undeclared country": (
        cell(GEO, 3, "country", "XXX"), {("values", "error", GEO, 3, "country"), ("pair_complete", "error", GEO, 0, "pair_id")},
    ),
    "a class without a name": (unclassed, {("values", "error", DIALECT, 2, "label"), ("pair_agrees", "error", DIALECT, 2, "label")}),
    "an id twice": (twice, {("ids", "error", GEO, 3, "prompt_id")}),
    "an id in two configs": (across, {("ids", "error", GEO, 3, "prompt_id")}),
    "another hash": (rehashed, {("text_sha256", "error", CONTENT, 7, "text_sha256")}),
    "no such original": (cell(CONTENT, 1, "derived_from", "nobody"), {("derived_from", "error", CONTENT, 1, "derived_from")}),
    "its own original": (cell(GEO, 1, "derived_from", "geo-city-USA"), {("derived_from", "error", GEO, 1, "derived_from")}),
    "a circle of originals": (circle, {("derived_from", "error", DIALECT, number, "derived_from") for number in (0, 1)}),
    "a pair lacks a language": (incomplete, {("pair_complete", "error", CONTENT, 0, "pair_id")}),
    "a pair lacks its regional half": (alone, {("pair_complete", "error", REGIONAL, 2, "pair_id")}),
    "a pair is listed as incomplete": (listed, {("pair_complete", "note", CONTENT, 0, "pair_id")}),
    "a pair has a variety twice": (doubled, {("pair_twice", "error", DIALECT, 36, "pair_id")}),
    "a pair has two labels": (relabelled, {("pair_agrees", "error", DIALECT, 2, "label")}),
    "another text is rendered": (
        lambda tables: tables.update({TEXT: tables[TEXT].set_column(
            tables[TEXT].column_names.index("render_text"), tables[TEXT].schema.field("render_text"),
            pa.array(["EMERGENCY DOOR", *tables[TEXT]["render_text"].to_pylist()[1:]]))}),
        {("render_text", "error", TEXT, 0, "render_text")},
    ),
    "another noun": (
        cell(GEO, 40, "prompt", "high definition image of a typical shore in Chile"), {("noun", "error", GEO, 40, "noun")},
    ),
    "a layout that is not JSON": (cell(TEXT, 4, "render_layout", "[[1, 2"), {("render_layout", "error", TEXT, 4, "render_layout")}),
    "a layout of another form": (cell(TEXT, 4, "render_layout", "[[1, 2]]"), {("render_layout", "error", TEXT, 4, "render_layout")}),
    "a box outside the picture": (cell(TEXT, 4, "render_layout", BOX.format(1025)), {("render_layout", "error", TEXT, 4, "render_layout")}),
    "a box without area": (cell(TEXT, 4, "render_layout", BOX.format(0)), {("render_layout", "error", TEXT, 4, "render_layout")}),
    "no licence": (unlicensed, {("license", "warning", DIALECT, 0, "license")}),
    "a licence that nobody knows": (own_licence, {("license", "warning", GEO, 3, "license")}),
    "no derivatives, changed": (no_derivatives, {("license", "error", GEO, 3, "license")}),
    "no derivatives, unchanged": (unchanged_no_derivatives, {("license", "warning", DIALECT, 0, "license")}),
    "share alike": (share_alike, {("license", "note", GEO, 0, "license")}),
    "an original's licence is lost": (
        orphan_licence,
        {("license", "note", DIALECT, 0, "license"), *(("license_of_parent", "error", DIALECT, n, "license") for n in range(1, 6))},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TABLE)
def test_a_fault_of_the_table_is_found_alone(name: str) -> None:
    plant, wanted = TABLE[name]
    tables = clean()
    plant(tables)
    assert told(found(tables)) == wanted


def test_the_rows_of_a_finding_are_counted() -> None:
    tables = clean()
    unlicensed(tables)
    assert [finding.n for finding in found(tables).findings] == [12]


def test_a_repository_under_one_licence_holds_none_that_asks_more() -> None:
    tables = clean()
    assert found(tables, "cc-by-4.0").findings == []
    put(tables, DIALECT, 5, "license", "CC-BY-NC-4.0")
    assert told(found(tables, "cc-by-4.0")) == {
        ("license", "note", DIALECT, 5, "license"),
        ("license_of_repository", "error", DIALECT, 5, "license"),
    }
    assert told(found(tables, None)) == {("license", "note", DIALECT, 5, "license")}


def test_too_few_and_too_many_rows_of_a_design_are_found() -> None:
    tables = starter.tables()
    drop(tables, DIALECT, range(6))
    missing = told(found(tables, config=DIALECT))
    assert missing == {("counts", "error", DIALECT, None, "label × variety")}
    report = found(tables, config=DIALECT)
    assert report.findings[0].found == "label benign, variety SAE: 119 rows"
    assert len(report.findings) == 6

    rows = decode_classes(tables[GEO]).to_pylist()
    more = {**rows[0], "prompt_id": "one-more", "pair_id": "geo-castle", "noun": "castle", "prompt": "high definition image of a castle"}
    tables[GEO] = table(GEO, [*rows, more])
    assert told(found(tables, config=GEO)) == {("counts", "error", GEO, None, "noun × country")} | {
        ("pair_complete", "error", GEO, 280, "pair_id")
    }


def test_planted_faults_are_of_thirty_kinds_or_more() -> None:
    kinds = {entry[0] for entry in CHARACTERS.values()} | {finding[0] for _, wanted in TABLE.values() for finding in wanted}
    kinds |= {"leaked_instruction", "untranslated", "length", "counts", "license_of_repository"}
    assert kinds == {check.name for check in CHECKS}
    assert len(kinds) >= 30
