"""Countries and the geo prompts: the study's are untouched, every other country and language is whole."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from importlib import resources

import pytest

from t2i_parity.dataset_builder.countries import CONTACTED, COUNTRIES, NOUNS, countries, local_name
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.sources import geo, geo_extension

OTHERS = [code for code in LINGT2I_LANGUAGES if code != "en"]
LETTERS = {
    "Latn": "LATIN",
    "Hans": "CJK",
    "Deva": "DEVANAGARI",
    "Arab": "ARABIC",
    "Cyrl": "CYRILLIC",
    "Jpan": "HIRAG|KATAK|CJK",
    "Kore": "HANGUL",
}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return list(geo_extension.extended_rows("all"))


def test_the_sets_are_nested_and_say_where_a_country_belongs() -> None:
    studied, contacted, every = (countries(which) for which in ("studied", "contacted", "all"))
    assert list(studied) == list(COUNTRIES) == list(contacted)[:27] == list(every)[:27]
    assert list(contacted) == list(every)[:73]
    assert (len(studied), len(CONTACTED), len(every)) == (27, 46, 249)
    assert Counter(country.group for country in every.values()) == {"studied": 27, "contacted": 46, "all": 176}
    assert all(code == country.alpha3 for code, country in every.items())
    assert CONTACTED["KGZ"].name == "Kyrgyz Republic"
    assert CONTACTED["KGZ"].in_prompt == "Kyrgyzstan"
    with pytest.raises(InputError, match="unknown set of countries 'most': expected one of studied, contacted, all"):
        countries("most")  # type: ignore[arg-type]


def test_english_names_take_their_article() -> None:
    names = {code: country.in_prompt for code, country in countries("all").items()}
    expected = {
        "NLD": "the Netherlands",
        "GMB": "the Gambia",
        "PHL": "the Philippines",
        "COD": "the Democratic Republic of the Congo",
        "COG": "the Republic of the Congo",
        "VCT": "Saint Vincent and the Grenadines",
        "TTO": "Trinidad and Tobago",
        "HKG": "Hong Kong",
        "SDN": "Sudan",
        "CZE": "the Czech Republic",
    }
    assert {code: names[code] for code in expected} == expected
    plural = [name for name in names.values() if re.search(r"(Islands|Territor\w+|Republic( of the Congo)?|Emirates|Lands)$", name)]
    bare = [name for name in plural if not name.startswith("the ")]
    assert bare == ["Heard Island and McDonald Islands", "South Georgia and the South Sandwich Islands"]


@pytest.mark.parametrize("language", LINGT2I_LANGUAGES)
def test_every_country_has_one_clean_name_of_its_own(language: str) -> None:
    names = [local_name(code, language) for code in countries("all")]
    assert len(set(names)) == 249
    for name in names:
        assert name == name.strip()
        assert unicodedata.is_normalized("NFC", name)
        assert not re.search(r"[()（）/]| [-–] |о-в|St\.", name), name
        assert not [character for character in name if unicodedata.category(character) in ("Cc", "Cf")], name


def test_names_that_cannot_be_had_are_told() -> None:
    with pytest.raises(InputError, match="unknown country 'XXX': expected an ISO 3166-1 alpha-3 code"):
        local_name("XXX", "fr")
    with pytest.raises(InputError, match="no names of countries in the language 'xx'"):
        local_name("FRA", "xx")


def test_every_language_has_both_phrases_of_every_noun() -> None:
    text = (resources.files("t2i_parity.dataset_builder.sources") / "geo_phrases.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    assert [(line["language"], line["noun"]) for line in lines] == [(code, noun) for code in OTHERS for noun in NOUNS]
    for line in lines:
        assert line["in_country"].count("{country}") == 1
        assert "{" not in line["unspecified"]
        assert unicodedata.is_normalized("NFC", line["in_country"] + line["unspecified"])
        for phrase in (line["unspecified"], line["in_country"].replace("{country}", "")):
            names = [unicodedata.name(character) for character in phrase if character.isalpha()]
            assert all(re.match(LETTERS[LANGUAGES[line["language"]].script], name) for name in names), phrase
    assert len({line["unspecified"] for line in lines}) == len({line["in_country"] for line in lines}) == 90


def test_250_conditions_of_ten_nouns_in_ten_languages(rows: list[dict]) -> None:
    built = table("geo", [*geo.rows(), *rows])
    assert len(built) == 25_000
    cells = Counter(zip(built["language"].to_pylist(), built["noun"].to_pylist(), strict=True))
    assert set(cells.values()) == {250}
    assert len(cells) == 100
    assert len({(row["language"], row["prompt"]) for row in rows}) == len(rows)
    assert set(built["pair_id"].to_pylist()) == {f"geo-{noun}" for noun in NOUNS}


def test_rows_are_the_same_whatever_was_asked_for(rows: list[dict]) -> None:
    by_id = {row["prompt_id"]: row for row in rows}
    few = list(geo_extension.extended_rows("contacted", ["ru", "en"]))
    assert all(by_id[row["prompt_id"]] == row for row in few)
    assert Counter(row["subset"] for row in few) == {"geo_studied": 280, "geo_contacted": 2 * 460}
    assert list(geo_extension.extended_rows("studied", ["en"])) == []
    assert not {row["prompt_id"] for row in geo.rows()} & set(by_id)


@pytest.mark.parametrize(
    ("noun", "country", "language", "text"),
    [
        ("wedding", None, "ru", "изображение свадьбы в высоком разрешении"),
        ("dress", "COK", "ru", "изображение типичного платья в высоком разрешении (страна: острова Кука)"),
        ("road", "NLD", "fr", "image haute définition d'une route typique (pays : Pays-Bas)"),
        ("flag", "IND", "hi", "भारत के एक सामान्य झंडे की हाई-डेफ़िनिशन तस्वीर"),
        ("road", "IND", "hi", "भारत की एक सामान्य सड़क की हाई-डेफ़िनिशन तस्वीर"),
        ("house", "JPN", "ja", "日本の典型的な家の高精細な画像"),
        ("park", "EGY", "ar", "صورة عالية الدقة لحديقة عامة نموذجية في مصر"),
        ("house", "KEN", "zh", "肯尼亚一栋典型房子的高清图片"),
        ("kitchen", "PRT", "pt", "imagem em alta definição do interior de uma cozinha típica (país: Portugal)"),
        ("house", "NLD", "en", "high definition image of a typical house in the Netherlands"),
    ],
)
def test_prompts_by_hand(noun: str, country: str | None, language: str, text: str) -> None:
    assert geo_extension.local_prompt(noun, countries("all")[country] if country else None, language) == unicodedata.normalize("NFC", text)


def test_extended_rows_say_that_they_are_ours(rows: list[dict]) -> None:
    studied = {row["prompt_id"] for row in geo.rows()}
    ids = studied | {row["prompt_id"] for row in rows}
    for row in rows:
        assert row["source"] == "T2I Parity geo extension"
        assert row["license"] == "CC-BY-4.0"
        assert "Babel" in row["producer"]
        if row["language"] == "en":
            assert row["derivation"] == "templated"
        else:
            assert row["derivation"] == "translated"
            assert "no native-speaker review" in row["producer"]
            assert row["derived_from"] in ids


def test_languages_without_phrases_are_told() -> None:
    with pytest.raises(InputError, match=r"no phrases for the noun 'city' in 'de': expected one of city, .* in one of en, zh, hi"):
        list(geo_extension.extended_rows("studied", ["de"]))
