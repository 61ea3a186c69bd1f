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
from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.sources import geo

TITLE = "T2I Parity geo extension"
REVISION = "1.0"
LICENSE = "CC-BY-4.0"
CONSTRUCTIONS: Mapping[str, str] = {
    "zh": "bare country name before the noun phrase",
    "hi": "country name with the postposition of the noun's gender",
    "es": "country as a label in parentheses",
    "ar": "country name after في",
    "fr": "country as a label in parentheses",
    "pt": "country as a label in parentheses",
    "ru": "country as a label in parentheses",
    "ja": "country name with の",
    "ko": "country name with 의",
}
"""How each language's prompts name the country without inflecting its name; it stands in every row's ``producer``."""


def local_prompt(noun: str, country: Country | None, language: str) -> str:
    """The prompt for a noun in a language, with or without a country; in English it is the study's.

    Raises InputError for a language or noun that has no phrases.

    >>> from t2i_parity.dataset_builder.countries import COUNTRIES
    >>> local_prompt("house", COUNTRIES["JPN"], "fr")
    "image haute définition d'une maison typique (pays : Japon)"
    """
    if language == "en":
        return geo.prompt(noun, country)
    if (language, noun) not in _phrases():
        known = ", ".join(dict.fromkeys(("en", *(code for code, _ in _phrases()))))
        raise InputError(
            f"there are no phrases for the noun {noun!r} in {language!r}: expected one of {', '.join(NOUNS)} in one of {known}"
        )
    phrases = _phrases()[language, noun]
    if country is None:
        return phrases["unspecified"]
    return phrases["in_country"].format(country=local_name(country.alpha3, language))


def extended_rows(countries: CountrySet = "contacted", languages: Iterable[str] = LINGT2I_LANGUAGES) -> Iterator[dict[str, Any]]:
    """10 nouns × (unspecified + a set of countries) × languages, less the study's own 280, which ``geo.rows`` gives.

    The sets are nested, and a row is the same whichever was asked for: its subset is ``geo_studied`` (the study's countries and the
    unspecified prompt, in the other languages), ``geo_contacted`` or ``geo_all``, after the smallest set that its country is in.
    ``pair_id`` is the study's, one a noun; ``derived_from`` is the English row. Raises InputError for an unknown set or a language
    without phrases.
    """
    chosen = countries_of(countries)
    for language in dict.fromkeys(languages):
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


@cache
def _producer(language: str) -> str:
    filled = f"filled by dataset_builder.sources.geo_extension {REVISION}; names of countries from CLDR (Babel {metadata.version('babel')})"
    if language == "en":
        return f"templates of Basu et al. 2023 §2, {filled}, articles and exceptions declared in dataset_builder.countries"
    return (
        f"phrases written with a large language model (Claude), machine translation, no native-speaker review; {filled}; "
        f"{CONSTRUCTIONS[language]}"
    )


@cache
def _phrases() -> dict[tuple[str, str], dict[str, str]]:
    text = (resources.files(__package__) / "geo_phrases.jsonl").read_text(encoding="utf-8")
    return {(line["language"], line["noun"]): line for line in map(json.loads, text.splitlines())}
