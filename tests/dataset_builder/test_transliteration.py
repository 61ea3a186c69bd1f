"""Transliteration: by hand where the packages are installed, all starter prompts, and what is told when they are not."""

from __future__ import annotations

import sys

import pytest

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.controls import rows_of, transliteration
from t2i_parity.dataset_builder.controls.transliteration import transliterate
from t2i_parity.dataset_builder.errors import InputError

PACKAGES = {"zh": "pypinyin", "ja": "cutlet", "hi": "uroman", "ar": "uroman", "ru": "uroman", "ko": "uroman"}


@pytest.fixture(scope="module")
def content() -> list[dict]:
    return rows_of(starter.tables()["lingt2i_content"])


@pytest.mark.parametrize(
    ("language", "text", "latin"),
    [
        ("zh", "红色的房子，在重庆。", "hong se de fang zi, zai chong qing."),
        ("zh", "“银行”里的3个人", '"yin hang" li de 3 ge ren'),
        ("zh", "绿色LED灯", "lv se LED deng"),
        ("hi", "नीला घर।", "niilaa ghar."),
        ("ar", "بيت أزرق، وكتاب", "byt azrq, wktab"),
        ("ru", "Дом у реки", "Dom u reki"),
        ("ja", "青い家と猫", "aoi ie to neko"),
        ("ko", "파란 집", "paran jib"),
    ],
)
def test_by_hand(language: str, text: str, latin: str) -> None:
    pytest.importorskip(PACKAGES[language])
    assert transliterate(text, language) == latin


@pytest.mark.parametrize("language", PACKAGES)
def test_every_starter_prompt_comes_out_in_ascii(language: str, content: list[dict]) -> None:
    pytest.importorskip(PACKAGES[language])
    rows = list(transliteration.derive(content, languages=[language]))
    original = {row["prompt_id"]: row for row in content}
    assert len(rows) == sum(row["language"] == language for row in content)
    for row in rows:
        assert row["prompt"].isascii()
        assert row["prompt"] == " ".join(row["prompt"].split())
        assert len(row["prompt"]) > len(original[row["derived_from"]]["prompt"]) / 3
        assert row["language"] == language
        assert row["script"] == "Latn"
        assert row["subset"] == "lingt2i_content_transliterated"
        assert row["derivation"] == "transliterated"
        assert row["pair_id"] == original[row["derived_from"]]["pair_id"]
        assert PACKAGES[language] in row["producer"]
    assert len({row["prompt"] for row in rows}) == len(rows)


def test_the_studys_control(content: list[dict]) -> None:
    for package in ("uroman", "pypinyin"):
        pytest.importorskip(package)
    rows = list(transliteration.derive(content, languages=transliteration.STUDY_LANGUAGES, dimension=transliteration.STUDY_DIMENSION))
    assert {row["language"] for row in rows} == {"ar", "hi", "zh"}
    assert {row["dimension"] for row in rows} == {"TA-C"}
    with pytest.raises(InputError, match="nothing to transliterate"):
        list(transliteration.derive(rows))


def test_text_rendering_and_latin_prompts_are_passed_over(content: list[dict]) -> None:
    with pytest.raises(InputError, match="nothing to transliterate: no row in another script than Latin"):
        list(transliteration.derive(rows_of(starter.tables()["lingt2i_text"])))
    with pytest.raises(InputError, match="than Latin in fr of the dimension TA-C"):
        list(transliteration.derive(content, languages=["fr"], dimension="TA-C"))


def test_what_cannot_be_written_is_told() -> None:
    pytest.importorskip("pypinyin")
    with pytest.raises(InputError, match=r"cannot be written in Latin letters whole: ☃ came through"):
        transliterate("雪人☃", "zh")
    with pytest.raises(InputError, match="no transliteration for the language 'th'"):
        transliterate("บ้าน", "th")


@pytest.mark.parametrize(
    ("language", "package", "extra"), [("zh", "pypinyin", "controls"), ("hi", "uroman", "controls"), ("ja", "cutlet", "japanese")]
)
def test_a_missing_package_names_the_pip_command(language: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    transliteration._romanizer.cache_clear()
    transliteration._cutlet.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InputError, match=rf"pip install 't2i-parity\[{extra}\]'"):
        transliterate("家", language)
