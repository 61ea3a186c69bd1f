"""Culture-tag control (LingT2I, §4.4): the language of a prompt against a culture named in it.

The study compares three versions of one English prompt: its translation, the English text "with an explicit culture tag (e.g., “in
Hindi style”)" and the English text alone. The translation is there already; ``derive`` makes the other two. The study prints
that one tag; the others are made like it, from the language's name, and English, which it does not tag, gets "in Western style".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from t2i_parity.dataset_builder.controls import NEUTRAL, TAGGED, control_of, derived, originals
from t2i_parity.dataset_builder.countries import countries
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES, Culture, Having
from t2i_parity.dataset_builder.schema import NewRow, Row

VERSION = "1.0"


CULTURES: Mapping[str, Culture] = Having(lambda language: language.culture)
"""The culture of each language that has one: the ten, and a user's own that names one of theirs."""

_OTHERS = (
    "Aboriginal", "Africa", "African", "America", "Asia", "Asian", "Austrian", "Aztec", "Balinese", "Bavarian", "Bulgarian", "Byzantine",
    "Caribbean", "Celtic", "Cuban", "Czech", "Danish", "Dutch", "Ethiopian", "Europe", "Filipino", "Finnish", "German", "Gothic", "Greek",
    "Hawaiian", "Hungarian", "Icelandic", "Inca", "Indonesian", "Inuit", "Iranian", "Israeli", "Italian", "Jewish", "Kenyan", "Korea",
    "Malay", "Maori", "Maya", "Mayan", "Mediterranean", "Mongolian", "Moorish", "Māori", "Nepali", "Nigerian", "Nordic", "Norwegian",
    "Ottoman", "Persian", "Peruvian", "Polynesian", "Roman", "Romanian", "Scandinavian", "Swedish", "Swiss", "Thai", "Turkish", "Tuscan",
    "Ukrainian", "Venetian", "Victorian", "Vietnamese", "Viking",
)  # fmt: skip
"""Words for other cultures, eras and continents."""

_NO_PLACES = frozenset({"Chad", "Georgia", "Jersey", "Jordan", "Turkey"})
"""Countries whose name is as often a person's, a bird's or a cloth's."""


def expected_culture(row: Row) -> str | None:
    """The culture that an image of a row is expected to show, as ``culture_alignment`` calls it: the tag's, else the language's.

    None where that question has no answer: the prompt asks for a text (whose script is then no tendency of the model) or for a country, or
    its language or variety has no culture of its own here.

    >>> expected_culture({"subset": "lingt2i_content", "language": "hi"})
    'Indian'
    >>> expected_culture({"derivation": "culture_tagged", "prompt_id": "a-style-ja", "derived_from": "a", "language": "en"})
    'Japanese'
    >>> expected_culture({"subset": "dialect", "language": "en", "variety": "IndE"}) is None
    True
    """
    if row.get("render_text") is not None or row.get("country") is not None or row.get("variety") not in (None, "SAE", "BrE"):
        return None
    control = control_of(row)
    tag = control.of if control is not None and control.kind == TAGGED else None
    code = tag or LANGUAGES[row["language"]].standard or row["language"]
    return CULTURES[code].expected if code in CULTURES else None


def tagged(prompt: str, phrase: str) -> str:
    """An English prompt with a tag at its end, before a closing full stop.

    >>> tagged("A bridge over a river.", "in Hindi style")
    'A bridge over a river, in Hindi style.'
    """
    text = prompt.rstrip()
    stop = "." if text.endswith(".") and not text.endswith("..") else ""
    return f"{text.removesuffix('.') if stop else text}, {phrase}{stop}"


def names_a_culture(prompt: str) -> bool:
    """Whether an English prompt names a culture or a country, by a list of words; landmarks and customs pass unseen.

    >>> names_a_culture("A Japanese garden"), names_a_culture("A sofa in Brazil"), names_a_culture("A garden")
    (True, True, False)
    """
    return _named().search(prompt) is not None


def derive(rows: Sequence[Row], *, cultures: Iterable[str] = LINGT2I_LANGUAGES, dimension: str | None = None) -> Iterator[NewRow]:
    """For each English prompt its neutral twin and one tagged prompt a culture (by language code), all English.

    The twin is the original text as a row of its own (subset ``culture_neutral``), so that a run over this control holds both sides;
    a tagged row's subset is ``culture_tag_<code>``, and ``CULTURES[code].expected`` is what ``culture_alignment`` expects of it. Prompts
    that name a culture or a country themselves have no neutral twin and are passed over, as are rows of text rendering, of other
    varieties of English than the standard and of other controls.

    Raises InputError for an undeclared culture, and when no English prompt is left.
    """
    chosen = list(dict.fromkeys(cultures))
    for code in chosen:
        if code not in CULTURES:
            raise InputError(f"unknown culture {code!r}: expected one of {', '.join(CULTURES)}")
    found = False
    for row in originals(rows):
        if row["language"] != "en" or row.get("variety") not in (None, "SAE") or row.get("render_text") is not None:
            continue
        if (dimension is not None and row.get("dimension") != dimension) or names_a_culture(row["prompt"]):
            continue
        found = True
        rule = f"dataset_builder.controls.culture_tags {VERSION}"
        yield derived(row, "neutral", subset=NEUTRAL, derivation="verbatim", producer=f"{row['producer']}; {rule}, unchanged")
        for code in chosen:
            yield derived(
                row,
                f"style-{code}",
                prompt=tagged(row["prompt"], CULTURES[code].phrase),
                subset=f"culture_tag_{code}",
                derivation=TAGGED,
                producer=f"{rule}, {CULTURES[code].phrase}",
            )
    if not found:
        raise InputError(
            "there is no English prompt" + (f" of the dimension {dimension}" if dimension else "") + " that names no culture to tag"
        )


@cache
def _named() -> re.Pattern[str]:
    words = {word for culture in CULTURES.values() for word in culture.named_by}
    words |= {name.removeprefix("the ") for country in countries("all").values() for name in (country.name, country.in_prompt)}
    words = (words | set(_OTHERS)) - _NO_PLACES
    return re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, words), key=len, reverse=True))})\b")
