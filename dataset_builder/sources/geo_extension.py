"""The geo prompts beyond the study's 280: the countries it contacted in vain, all of ISO 3166-1, and nine other languages.

The study's two templates (Basu et al. 2023, §2) in phrases of our own (``geo_phrases.jsonl``): one a language and noun, so that article,
gender, case and counter are right. A country's name is never inflected: Chinese, Japanese, Korean, Hindi and Arabic put it where
the bare name is right; French, Spanish, Portuguese and Russian, where the preposition or the case would depend on the name, add it as
a label, as in "… d'une maison typique (pays : Japon)". A comparison between languages is therefore one between constructions too;
one between countries within a language is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata, resources
from typing import Any

from t2i_parity.dataset_builder.countries import NOUNS, Country, CountrySet, local_name
from t2i_parity.dataset_builder.countries import countries as countries_of
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.sources import geo
from t2i_parity.dataset_builder.vocabulary import stamp

TITLE = "T2I Parity geo extension"
REVISION = "1.0"
LICENSE = "CC-BY-4.0"
_BY = "phrases written with a large language model (Claude), machine translation, no native-speaker review"


def local_prompt(noun: str, country: Country | None, language: str) -> str:
    """The prompt for a noun in a language, with or without a country; in English it is the study's.

    Raises InputError for a language or noun that has no phrases.

    >>> from t2i_parity.dataset_builder.countries import COUNTRIES
    >>> local_prompt("house", COUNTRIES["JPN"], "fr")
    "image haute définition d'une maison typique (pays : Japon)"
    """
    if language == "en":
        return geo.prompt(noun, country)
    phrases = phrases_of(language)
    if noun not in phrases:
        known = ", ".join(each for each in LANGUAGES if each == "en" or phrases_of(each))
        raise InputError(
            f"there are no phrases for the noun {noun!r} in {language!r}: expected one of {', '.join(NOUNS)} in one of {known}"
        )
    unspecified, in_country = phrases[noun]
    return unspecified if country is None else in_country.format(country=local_name(country.alpha3, language))


def phrases_of(language: str) -> Mapping[str, tuple[str, str]]:
    """A language's phrases by noun, without a country and with one: its own, or those beside this file; {} for none."""
    declared = LANGUAGES.get(language)
    return (declared.phrases if declared else {}) or _phrases().get(language, {})


def extended_rows(countries: CountrySet = "contacted", languages: Iterable[str] | None = None) -> Iterator[dict[str, Any]]:
    """10 nouns × (unspecified + a set of countries) × languages, less the study's own 280, which ``geo.rows`` gives.

    ``languages`` are the ten of LingT2I and those of the user's that have phrases, unless they are given.

    The sets are nested, and a row is the same whichever was asked for: its subset is ``geo_studied`` (the study's countries and the
    unspecified prompt, in the other languages), ``geo_contacted`` or ``geo_all``, after the smallest set that its country is in.
    ``pair_id`` is the study's, one a noun; ``derived_from`` is the English row. Raises InputError for an unknown set or a language
    without phrases.
    """
    chosen = countries_of(countries)
    usual = (*LINGT2I_LANGUAGES, *(code for code, each in LANGUAGES.items() if each.phrases))
    for language in dict.fromkeys(usual if languages is None else languages):
        english = language == "en"
        for noun in NOUNS:
            for country in (None, *chosen.values()):
                group = country.group if country else "studied"
                if english and group == "studied":
                    continue
                key = f"{noun}-{country.alpha3 if country else 'unspecified'}"
                yield {
                    "prompt_id": f"geo-{key}" if english else f"geo-{key}-{language}",
                    "pair_id": f"geo-{noun}",
                    "prompt": local_prompt(noun, country, language),
                    "language": language,
                    "subset": f"geo_{group}",
                    "country": country.alpha3 if country else None,
                    "noun": noun,
                    "source": TITLE,
                    "source_id": key if english else f"{key}-{language}",
                    "source_revision": REVISION,
                    "license": LICENSE,
                    "derivation": "templated" if english else "translated",
                    "derived_from": None if english else f"geo-{key}",
                    "producer": _producer(language),
                }


def _producer(language: str) -> str:
    filled = f"filled by dataset_builder.sources.geo_extension {REVISION}; names of countries from CLDR (Babel {metadata.version('babel')})"
    if language == "en":
        return f"templates of Basu et al. 2023 §2, {filled}, articles and exceptions declared in dataset_builder.countries"
    by = f"phrases of the vocabulary {stamp([language])}" if LANGUAGES[language].phrases else _BY
    return "; ".join(filter(None, (by, filled, LANGUAGES[language].construction)))


@cache
def _phrases() -> dict[str, dict[str, tuple[str, str]]]:
    text = (resources.files(__package__) / "geo_phrases.jsonl").read_text(encoding="utf-8")
    found: dict[str, dict[str, tuple[str, str]]] = {}
    for line in map(json.loads, text.splitlines()):
        found.setdefault(line["language"], {})[line["noun"]] = line["unspecified"], line["in_country"]
    return found
