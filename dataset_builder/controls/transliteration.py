"""Transliteration control (LingT2I, §4.4): the same prompt in Latin letters. Does a gap between languages come from the script?

The study takes 450 Arabic, Hindi and Chinese prompts of content alignment (TA-C) and does not name its transliteration. Ours writes
ASCII: Hanyu Pinyin without tones, a syllable a word, for Chinese (package pypinyin, which reads characters in their phrases); Hepburn
for Japanese (cutlet with unidic-lite, since kanji have no reading of their own); the universal romanizer uroman, written by Ulf
Hermjakob, USC Information Sciences Institute, for the rest. Arabic is written without short vowels, so its Latin form has none.

Rows keep their language; their ``script`` is Latn and their subset ends in ``_transliterated``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import metadata
from typing import Any

from t2i_parity.dataset_builder.controls import TRANSLITERATED, derived, originals
from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.schema import NewRow, Row

VERSION = "1.0"
STUDY_LANGUAGES = ("ar", "hi", "zh")
STUDY_DIMENSION = "TA-C"

_PUNCTUATION = str.maketrans({
    "，": ", ", "、": ", ", "。": ". ", "！": "! ", "？": "? ", "：": ": ", "；": "; ", "（": " (", "）": ") ", "《": ' "', "》": '" ',
    "「": ' "', "」": '" ', "『": ' "', "』": '" ', "・": " ", "　": " ", "“": ' "', "”": '" ', "„": '"', "«": '"', "»": '"', "‘": "'",
    "’": "'", "—": "-", "–": "-", "…": "...", "،": ",", "؛": ";", "؟": "?", "।": ".", "॥": ".", "॰": ".", "〜": "-", "～": "-",
    "·": " ", "ʼ": "'", "ʻ": "'", "ʿ": "'", "ʾ": "'",
})  # fmt: skip


def transliterate(text: str, language: str) -> str:
    """A text of a language in ASCII letters.

    Raises InputError when no transliteration is declared for the language, when its package is missing, or when a character
    comes through in another script.
    """
    scheme = LANGUAGES[language].transliteration if language in LANGUAGES else None
    if scheme is None:
        known = ", ".join(code for code, each in LANGUAGES.items() if each.transliteration)
        raise InputError(f"there is no transliteration for the language {language!r}: expected one of {known}")
    latin = _METHODS[scheme][0](text.translate(_PUNCTUATION), LANGUAGES[language].iso639_3).translate(_PUNCTUATION)
    latin = "".join(character for character in unicodedata.normalize("NFKD", latin) if not unicodedata.category(character).startswith("M"))
    latin = re.sub(r"\s+([,.;:!?)])", r"\1", " ".join(latin.split()))
    left = sorted({character for character in latin if not character.isascii()})
    if left:
        raise InputError(f"{text!r} ({language}) cannot be written in Latin letters whole: {' '.join(left)} came through")
    return latin


def derive(rows: Sequence[Row], *, languages: Iterable[str] = (), dimension: str | None = None) -> Iterator[NewRow]:
    """One row a prompt in another script than Latin (of the given languages and dimension), in Latin letters.

    Rows that a control made, and rows of text rendering, whose prompts are English but for the text, are passed over.
    Raises InputError for a language without a transliteration, and when nothing is left to transliterate.
    """
    wanted = set(languages)
    found = False
    for row in originals(rows):
        language = row["language"]
        if (wanted and language not in wanted) or (dimension is not None and row.get("dimension") != dimension):
            continue
        if row.get("render_text") is not None or LANGUAGES[language].script == "Latn":
            continue
        found = True
        yield derived(
            row,
            "latn",
            prompt=transliterate(row["prompt"], language),
            script="Latn",
            subset=f"{row['subset']}_transliterated",
            derivation=TRANSLITERATED,
            producer=producer(language),
        )
    if not found:
        raise InputError(
            "there is nothing to transliterate: no row in another script than Latin"
            + (f" in {', '.join(sorted(wanted))}" if wanted else "")
            + (f" of the dimension {dimension}" if dimension else "")
        )


def producer(language: str) -> str:
    """What writes a language in Latin letters: scheme, packages and their versions."""
    scheme, packages = _METHODS[LANGUAGES[language].transliteration or ""][1:]
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    return f"dataset_builder.controls.transliteration {VERSION}, {scheme}; {versions}"


def _pinyin(text: str, _code: str) -> str:
    module = require("pypinyin", package="pypinyin", extra="controls")

    def read(run: re.Match[str]) -> str:
        before, after = text[: run.start()][-1:], text[run.end() :][:1]
        return f"{' ' * before.isalnum()}{' '.join(module.lazy_pinyin(run[0]))}{' ' * after.isalnum()}"

    return re.sub(r"[\u3007\u3400-\u9fff\U00020000-\U0003ffff]+", read, text)


def _romaji(text: str, _code: str) -> str:
    return str(_cutlet().romaji(text, capitalize=False))


def _uroman(text: str, code: str) -> str:
    return str(_romanizer().romanize_string(text, lcode=code))


@cache
def _cutlet() -> Any:
    module = require("cutlet", package="cutlet", extra="japanese")
    require("unidic_lite", package="unidic-lite", extra="japanese")
    reader = module.Cutlet("hepburn")
    reader.use_foreign_spelling = False
    return reader


@cache
def _romanizer() -> Any:
    return require("uroman", package="uroman", extra="controls").Uroman()


_METHODS: Mapping[str, tuple[Callable[[str, str], str], str, tuple[str, ...]]] = {
    "pinyin": (_pinyin, "pinyin without tones", ("pypinyin",)),
    "hepburn": (_romaji, "Hepburn", ("cutlet", "unidic-lite")),
    "uroman": (_uroman, "uroman", ("uroman",)),
}
"""By what a language names: the function of a text and the language's ISO 639-3 code, the scheme's name, the packages whose versions
decide the text."""
