"""The starter edition: as much as was promised, in the languages that it says, with the provenance of every row."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from pathlib import Path

import pytest
from commands import command, error_of
from datasets import load_dataset

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.countries import COUNTRIES, NOUNS
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.schema import CONFIGS, DIMENSIONS
from t2i_parity.dataset_builder.storage import decode_classes
from t2i_parity.dataset_builder.varieties import STUDY_VARIETIES

SCRIPTS = {
    "Latn": "LATIN",
    "Hans": "CJK",
    "Deva": "DEVANAGARI",
    "Arab": "ARABIC",
    "Cyrl": "CYRILLIC",
    "Jpan": "HIRAGANA|KATAKANA|CJK",
    "Kore": "HANGUL",
}


@pytest.fixture(scope="module")
def rows() -> dict[str, list[dict]]:
    return {name: decode_classes(table).to_pylist() for name, table in starter.tables().items()}


def test_every_config_is_there(rows: dict[str, list[dict]]) -> None:
    assert set(rows) == set(CONFIGS)


def test_content_has_twelve_meanings_in_each_dimension_and_language(rows: dict[str, list[dict]]) -> None:
    cells = Counter((row["dimension"], row["language"]) for row in rows["lingt2i_content"])
    assert set(cells) == {(dimension, code) for dimension in DIMENSIONS if dimension != "TR" for code in LINGT2I_LANGUAGES}
    assert min(cells.values()) >= 12


def test_text_has_sixty_strings_a_language_on_twelve_backgrounds(rows: dict[str, list[dict]]) -> None:
    by_language = {code: {row["render_text"] for row in rows["lingt2i_text"] if row["language"] == code} for code in LINGT2I_LANGUAGES}
    assert all(len(texts) >= 60 for texts in by_language.values())
    backgrounds = {row["prompt"].replace(row["render_text"], "") for row in rows["lingt2i_text"]}
    assert len(backgrounds) >= 12
    english = by_language["en"]
    assert any(re.search(r"\d", text) for text in english)
    assert any(re.search(r"[A-Z]{3}", text) and re.search(r"[a-z]", text) for text in english)
    assert max(map(len, english)) > 50
    assert min(map(len, english)) < 10
    for row in rows["lingt2i_text"]:
        assert f"“{row['render_text']}”" in row["prompt"]


def test_dialect_has_its_meanings_in_every_variety(rows: dict[str, list[dict]]) -> None:
    cells = Counter((row["label"], row["variety"]) for row in rows["dialect"])
    for variety in ("SAE", *STUDY_VARIETIES):
        assert cells["benign", variety] >= 120
        assert cells["toxic", variety] >= 60
    assert len({row["category"] for row in rows["dialect"] if row["label"] == "toxic"}) >= 5
    texts = {(row["pair_id"], row["variety"]): row["prompt"] for row in rows["dialect"]}
    for (pair, variety), text in texts.items():
        assert variety == "SAE" or text != texts[pair, "SAE"], pair


def test_crosslingual_has_forty_meanings_in_both_pairs(rows: dict[str, list[dict]]) -> None:
    counts = Counter(row["language"] for row in rows["dialect_crosslingual"])
    assert set(counts) == {"de", "bar", "ar", "arz"}
    assert min(counts.values()) >= 40


def test_geo_is_the_papers_280_prompts(rows: dict[str, list[dict]]) -> None:
    prompts = [row["prompt"] for row in rows["geo"]]
    assert len(prompts) == len(set(prompts)) == 280
    assert len(COUNTRIES) == 27
    assert len(NOUNS) == 10
    assert "high definition image of a house" in prompts
    assert "high definition image of a typical wedding in the Czech Republic" in prompts
    assert Counter(row["country"] for row in rows["geo"])[None] == 10


def test_ids_are_unique_over_all_configs(rows: dict[str, list[dict]]) -> None:
    ids = [row["prompt_id"] for table in rows.values() for row in table]
    assert len(ids) == len(set(ids))


def test_texts_are_clean_and_in_their_script(rows: dict[str, list[dict]]) -> None:
    for table in rows.values():
        for row in table:
            text = row["prompt"]
            assert text == text.strip(), row["prompt_id"]
            assert "  " not in text, row["prompt_id"]
            assert unicodedata.is_normalized("NFC", text), row["prompt_id"]
            assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Co", "Cn")], row["prompt_id"]
            wanted = row.get("render_text") or text
            names = [unicodedata.name(c, "") for c in wanted if unicodedata.category(c).startswith("L")]
            inside = sum(bool(re.match(SCRIPTS[LANGUAGES[row["language"]].script], name)) for name in names)
            assert inside >= 0.9 * len(names), (row["prompt_id"], wanted)


def test_translations_are_translations(rows: dict[str, list[dict]]) -> None:
    english = {row["pair_id"]: row["prompt"] for row in rows["lingt2i_content"] if row["language"] == "en"}
    for row in rows["lingt2i_content"]:
        assert row["language"] == "en" or row["prompt"] != english[row["pair_id"]], row["prompt_id"]


def test_every_row_says_where_it_comes_from(rows: dict[str, list[dict]]) -> None:
    ids = {row["prompt_id"] for table in rows.values() for row in table}
    for table in rows.values():
        for row in table:
            assert row["derived_from"] is None or row["derived_from"] in ids
            if row["derivation"] in ("translated", "dialect_converted"):
                assert "machine" in row["producer"], row["prompt_id"]
                assert "no native-speaker review" in row["producer"], row["prompt_id"]


def test_two_builds_are_byte_identical(prompts: Path, tmp_path: Path) -> None:
    command("build", "--edition", "starter", "--out", tmp_path / "again")
    files = sorted(path.relative_to(prompts) for path in prompts.rglob("*") if path.is_file())
    assert files == sorted(path.relative_to(tmp_path / "again") for path in (tmp_path / "again").rglob("*") if path.is_file())
    assert len(files) == 10
    for name in files:
        assert (prompts / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


@pytest.mark.parametrize("config", list(CONFIGS))
def test_load_dataset_opens_each_config(prompts: Path, config: str, rows: dict[str, list[dict]]) -> None:
    loaded = load_dataset(str(prompts), config, split="test")
    assert loaded.features == CONFIGS[config].features()
    assert loaded["prompt_id"][:] == [row["prompt_id"] for row in rows[config]]
    streamed = load_dataset(str(prompts), config, split="test", streaming=True)
    assert next(iter(streamed))["prompt"] == rows[config][0]["prompt"]


def test_the_default_config_is_text_rendering(prompts: Path) -> None:
    assert "render_text" in load_dataset(str(prompts), split="test").column_names


def test_a_selection_is_built(tmp_path: Path) -> None:
    command("build", "--only", "language=hi,en", "--only", "dimension=TA-C,TR", "--out", tmp_path / "some")
    content = load_dataset(str(tmp_path / "some"), "lingt2i_content", split="test")
    assert {row["language"] for row in content} == {"hi", "en"}
    assert {row["dimension"] for row in content} == {"TA-C"}
    assert not (tmp_path / "some" / "geo").exists(), "geo has no dimension"
    command("build", "lingt2i_content", "--mini", "--out", tmp_path / "mini")
    mini = load_dataset(str(tmp_path / "mini"), "lingt2i_content", split="test")
    pairs = {row["pair_id"] for row in mini}
    assert len(mini) == 10 * len(pairs), "whole pairs"
    assert 10 <= len(pairs) < 40
    assert "expected NAME=VALUE" in error_of("build", "--only", "colour=red", "--out", tmp_path / "none")
    assert "'tlh'" in error_of("build", "--only", "language=tlh", "--out", tmp_path / "none")
    assert not (tmp_path / "none").exists()
