"""What participants read, in ten languages (``texts.jsonl``: one text a line, all languages side by side, for reviewers).

The wording is our own. The English text is the original; the others were made by a machine, no native speaker has reviewed them, and the
line ``reviewed`` says so. A country's name is never inflected, nor a noun: where grammar would need that, they stand in parentheses or
quotes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources

from t2i_parity.dataset_builder.countries import countries, local_name
from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES, language

INTERFACE_LANGUAGES = LINGT2I_LANGUAGES
"""The languages that a participant may choose from, the original first."""


@cache
def texts(code: str) -> Mapping[str, str]:
    """Every text of a language by its key. Raises KeyError for a language that has none.

    >>> texts("fr")["begin"], texts("ar")["reviewed"]
    ('Commencer', 'machine-made translation, not reviewed by a native speaker')
    """
    lines = (resources.files(__package__) / "texts.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["key"]: line[code] for line in map(json.loads, lines)}


def question(noun: str, country: str, code: str) -> str:
    """The study's question (§2, "Questionnaire Details"), in our own words.

    >>> question("house", "JPN", "en")
    'How well does this computer-made picture of a house match what you see around you in Japan?'
    """
    return texts(code)["question"].format(noun=noun_name(noun, code), country=inside(country, code))


def inside(country: str, code: str) -> str:
    """A country's name as the question has it: in English with the article that it takes there.

    >>> inside("USA", "en"), inside("USA", "fr")
    ('the United States of America', 'États-Unis')
    """
    return countries("all")[country].in_prompt if code == "en" else local_name(country, code)


def noun_name(noun: str, code: str) -> str:
    """A noun in a language, in English with its article; one that the study does not have stays as the prompt says it.

    >>> noun_name("house", "es"), noun_name("bus stop", "es")
    ('casa', 'bus stop')
    """
    return texts(code).get(f"noun_{noun}", noun)


def spoken(header: str) -> str:
    """The interface language that a browser would like best (its header Accept-Language), English where there is none.

    >>> spoken("ar-EG,ar;q=0.9,en;q=0.8"), spoken("it"), spoken("")
    ('ar', 'en', 'en')
    """
    for wish in header.split(","):
        code = wish.split(";")[0].strip().split("-")[0].lower()
        if code in INTERFACE_LANGUAGES:
            return code
    return INTERFACE_LANGUAGES[0]


def direction(code: str) -> str:
    """``ltr`` or ``rtl``."""
    return language(code).direction
