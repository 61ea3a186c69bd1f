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
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES, language


def interface_languages() -> tuple[str, ...]:
    """The languages that a participant may choose from, the original first: the ten, and a user's own that bring their texts."""
    return (*LINGT2I_LANGUAGES, *(code for code, each in LANGUAGES.items() if each.survey))


def texts(code: str) -> Mapping[str, str]:
    """Every text of a language by its key. Raises InputError for a language that has none, or not all of them.

    >>> texts("fr")["begin"], texts("ar")["reviewed"]
    ('Commencer', 'machine-made translation, not reviewed by a native speaker')
    """
    own = LANGUAGES[code].survey if code in LANGUAGES else {}
    found = own or _shipped().get(code, {})
    missing = [key for key in _shipped()["en"] if key not in found]
    if missing:
        raise InputError(
            f"the survey has no texts in {code!r} for {', '.join(missing)}; write them into the language's field survey, by these keys"
        )
    return found


@cache
def _shipped() -> dict[str, dict[str, str]]:
    lines = [json.loads(line) for line in (resources.files(__package__) / "texts.jsonl").read_text(encoding="utf-8").splitlines()]
    return {code: {line["key"]: line[code] for line in lines} for code in lines[0] if code != "key"}


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
        if code in interface_languages():
            return code
    return interface_languages()[0]


def direction(code: str) -> str:
    """``ltr`` or ``rtl``."""
    return language(code).direction
