"""Countries and nouns of the geographical-representativeness study (Basu et al. 2023, §2), each declared once, and every other country.

Three nested sets: the 27 *studied* countries; those that the study names as *contacted* in vain (§5); *all* of ISO 3166-1, which
also lists dependent territories and a few uninhabited places.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES

if TYPE_CHECKING:
    from babel import Locale

CountrySet = Literal["studied", "contacted", "all"]
SETS: tuple[CountrySet, ...] = get_args(CountrySet)
"""The three sets, each holding the one before it."""


@dataclass(frozen=True, slots=True)
class Country:
    """A country by its ISO 3166-1 alpha-3 code, its name in the study, its name inside an English prompt, and the smallest set it is in."""

    alpha3: str
    name: str
    in_prompt: str
    group: CountrySet = "studied"


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

_CONTACTED = (
    # "less than 5 responses"
    ("NPL", "Nepal"), ("BGD", "Bangladesh"), ("MYS", "Malaysia"), ("TUR", "Turkey"), ("SGP", "Singapore"), ("ARG", "Argentina"),
    ("KEN", "Kenya"), ("VEN", "Venezuela"), ("PAK", "Pakistan"), ("IDN", "Indonesia"), ("NGA", "Nigeria"), ("ROU", "Romania"),
    ("COL", "Colombia"), ("NAM", "Namibia"),
    # "zero responses"
    ("LAO", "Laos"), ("ARM", "Armenia"), ("YEM", "Yemen"), ("THA", "Thailand"), ("VNM", "Vietnam"), ("LKA", "Sri Lanka"),
    ("KAZ", "Kazakhstan"), ("UKR", "Ukraine"), ("SLE", "Sierra Leone"), ("BFA", "Burkina Faso"), ("MAR", "Morocco"),
    ("SEN", "Senegal"), ("PHL", "Philippines", "the Philippines"), ("EGY", "Egypt"), ("PER", "Peru"), ("ETH", "Ethiopia"),
    ("MOZ", "Mozambique"), ("KGZ", "Kyrgyz Republic", "Kyrgyzstan"), ("TZA", "Tanzania"), ("MLI", "Mali"), ("ECU", "Ecuador"),
    ("MMR", "Myanmar"), ("KHM", "Cambodia"), ("RUS", "Russia"), ("AND", "Andorra"), ("TUN", "Tunisia"), ("GAB", "Gabon"),
    ("AGO", "Angola"), ("DZA", "Algeria"), ("LBY", "Libya"), ("BWA", "Botswana"), ("SYC", "Seychelles", "the Seychelles"),
)  # fmt: skip

CONTACTED: dict[str, Country] = {code: Country(code, name, (*in_prompt, name)[0], "contacted") for code, name, *in_prompt in _CONTACTED}
"""The 46 countries outside the 27 that the study names among the 88 it contacted, in its order (§5).

With the 27 that makes 73: the study does not name the other 15. It lists Finland both among the 27 and under "zero responses".
"""

NOUNS: tuple[str, ...] = ("city", "beach", "house", "festival", "road", "dress", "flag", "park", "wedding", "kitchen")
"""The ten most common nouns of Conceptual Captions that the study asks for, in its order."""

_ARTICLE = frozenset({
    "ALA", "ARE", "ATF", "BES", "BHS", "CAF", "CCK", "COD", "COG", "COK", "COM", "CYM", "DOM", "FLK", "FRO", "GMB", "IMN", "IOT", "MDV",
    "MHL", "MNP", "NLD", "PCN", "SLB", "TCA", "UMI", "VGB", "VIR",
})  # fmt: skip
"""The countries outside both lists above whose English name takes "the" inside a sentence."""


def countries(which: CountrySet) -> dict[str, Country]:
    """The countries of a set by alpha-3 code: the studied, then the contacted, then the rest of ISO 3166-1 in the order of their codes.

    Raises InputError, naming the sets, for another one.

    >>> len(countries("studied")), len(countries("contacted")), len(countries("all"))
    (27, 73, 249)
    """
    if which not in SETS:
        raise InputError(f"unknown set of countries {which!r}: expected one of {', '.join(SETS)}")
    if which == "studied":
        return dict(COUNTRIES)
    if which == "contacted":
        return {**COUNTRIES, **CONTACTED}
    return dict(_all())


@cache
def _all() -> dict[str, Country]:
    named = {**COUNTRIES, **CONTACTED}
    for alpha3 in sorted(_alpha2()):
        if alpha3 not in named:
            name = local_name(alpha3, "en")
            named[alpha3] = Country(alpha3, name, f"the {name}" if alpha3 in _ARTICLE else name, "all")
    return named


def local_name(alpha3: str, language: str) -> str:
    """A country's name in a language, from CLDR (the package Babel) unless the language declares it.

    Raises InputError when ISO 3166-1 has no such country, or CLDR no name for it.

    >>> local_name("JPN", "pt"), local_name("COG", "fr"), local_name("COK", "ru")
    ('Japão', 'République du Congo', 'острова Кука')
    """
    if alpha3 not in _alpha2():
        raise InputError(f"unknown country {alpha3!r}: expected an ISO 3166-1 alpha-3 code, such as {', '.join(list(COUNTRIES)[:3])}")
    declared = LANGUAGES.get(language)
    if declared and alpha3 in declared.countries:
        return declared.countries[alpha3]
    name = _locale((declared and declared.locale) or language).territories.get(_alpha2()[alpha3])
    if name is None:
        raise InputError(f"CLDR has no name of {alpha3} in the language {language!r}; write one into the language's field countries")
    for short, long in declared.written_out if declared else ():
        name = name.replace(short, long)
    return unicodedata.normalize("NFC", name)


@cache
def _alpha2() -> dict[str, str]:
    import pycountry

    return {country.alpha_3: country.alpha_2 for country in pycountry.countries}


@cache
def _locale(language: str) -> Locale:
    from babel import Locale, UnknownLocaleError

    try:
        return Locale.parse(language, sep="_" if "_" in language else "-")
    except (UnknownLocaleError, ValueError) as error:
        raise InputError(f"CLDR has no names of countries in the language {language!r}") from error
