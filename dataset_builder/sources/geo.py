"""The 280 prompts of the geographical-representativeness study (Basu et al. 2023, §2, "Input Prompts"), from its two templates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from t2i_parity.dataset_builder.countries import COUNTRIES, NOUNS, Country
from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.sources.base import Source

UNSPECIFIED = "high definition image of a {noun}"
WITH_COUNTRY = "high definition image of a typical {noun} in {country}"


def prompt(noun: str, country: Country | None) -> str:
    """The study's prompt for a noun, with or without a country.

    >>> prompt("house", COUNTRIES["JPN"])
    'high definition image of a typical house in Japan'
    """
    if country is None:
        return UNSPECIFIED.format(noun=noun)
    return WITH_COUNTRY.format(noun=noun, country=country.in_prompt)


def rows() -> Iterator[dict[str, Any]]:
    """10 nouns × (unspecified + 27 countries). The study prints no list of its prompts: only the templates and names are its own."""
    for noun in NOUNS:
        for country in (None, *COUNTRIES.values()):
            key = f"{noun}-{country.alpha3 if country else 'unspecified'}"
            yield {
                **SOURCE.provenance(),
                "prompt_id": f"geo-{key}",
                "pair_id": f"geo-{noun}",
                "prompt": prompt(noun, country),
                "language": "en",
                "subset": "geo",
                "country": country.alpha3 if country else None,
                "noun": noun,
                "source_id": key,
                "source_revision": SOURCE.revision,
                "derivation": "templated",
                "producer": "templates of Basu et al. 2023 §2, filled by dataset_builder.sources.geo 1.0",
            }


def _read(source: Source, place: str, part: str) -> dict[str, pa.Table]:
    return {"geo": table("geo", rows())}


SOURCE = Source(
    name="geo",
    title="Basu et al. 2023, Inspecting the Geographical Representativeness of Images from Text-to-Image Models",
    url="https://arxiv.org/abs/2305.11080",
    license="CC-BY-4.0",
    revision="arXiv:2305.11080",
    counts={"geo": 280},
    read=_read,
)
