"""The countries and nouns of the geographical-representativeness study (Basu et al. 2023, §2), each declared once."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Country:
    """A country by its ISO 3166-1 alpha-3 code, its name in the study's tables, and its name as it stands inside a prompt."""

    alpha3: str
    name: str
    in_prompt: str


def _country(alpha3: str, name: str, in_prompt: str | None = None) -> Country:
    return Country(alpha3, name, in_prompt or name)


_STUDIED = (
    _country("USA", "United States", "the United States of America"),
    _country("CAN", "Canada"),
    _country("MEX", "Mexico"),
    _country("BRA", "Brazil"),
    _country("CHL", "Chile"),
    _country("GBR", "United Kingdom", "the United Kingdom"),
    _country("ITA", "Italy"),
    _country("ESP", "Spain"),
    _country("GRC", "Greece"),
    _country("JPN", "Japan"),
    _country("KOR", "South Korea"),
    _country("IND", "India"),
    _country("ISR", "Israel"),
    _country("AUS", "Australia"),
    _country("ZAF", "South Africa"),
    _country("BEL", "Belgium"),
    _country("POL", "Poland"),
    _country("PRT", "Portugal"),
    _country("DEU", "Germany"),
    _country("FRA", "France"),
    _country("LVA", "Latvia"),
    _country("HUN", "Hungary"),
    _country("CZE", "Czech Republic", "the Czech Republic"),
    _country("EST", "Estonia"),
    _country("NZL", "New Zealand"),
    _country("FIN", "Finland"),
    _country("SVN", "Slovenia"),
)

COUNTRIES: dict[str, Country] = {country.alpha3: country for country in _STUDIED}
"""The 27 studied countries by alpha-3 code, in the order of the study's list."""

NOUNS: tuple[str, ...] = ("city", "beach", "house", "festival", "road", "dress", "flag", "park", "wedding", "kitchen")
"""The ten most common nouns of Conceptual Captions that the study asks for, in its order."""
