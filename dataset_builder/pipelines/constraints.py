"""What a model's text must hold before anything is made of it; each thing that it may lack has a name.

A ``FaultError`` is worded so that the model can be told, and carries the name by which the fault is counted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rapidfuzz import fuzz

from t2i_parity.cards.documents import Json
from t2i_parity.dataset_builder.answers import AnswerError, fitting, json_in, shortened, whole
from t2i_parity.dataset_builder.chat import Completion
from t2i_parity.dataset_builder.identification import identified, share_in_script
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.phrases import phrases

FAULTS: Mapping[str, str] = {
    "refused": "the model or its service declined",
    "empty": "an empty answer",
    "cut_off": "an answer cut at max_tokens",
    "unreadable": "no single JSON object where one was asked for",
    "wrong_form": "JSON of another form than was asked for",
    "instruction_leak": "words of the model around the text",
    "quoted": "quotation marks around the whole text",
    "several_lines": "more than one line",
    "wrong_language": "another language than was asked for",
    "wrong_script": "letters of another script",
    "english_left": "a run of English words in a translation",
    "untranslated": "a translation that is still the original",
    "unconverted": "a variety that is still the standard",
    "too_long": "more words than were allowed, or far longer than the original",
    "too_short": "far shorter than the original",
    "control_missing": "the control phrase does not stand in the prompt",
    "person_described": "a prompt of the dimension bias that states gender, age or origin",
    "not_in_caption": "the caption holds nothing that serves the dimension",
    "request_failed": "no answer came; asked again by the next run",
    "incomplete_pair": "another row of the pair is not there",
    "low_chrf": "the back-translation shares too little with the original",
    "low_similarity": "the encoder finds the translation too far from the original",
    "cross_check": "the reviewer found a problem",
    "dropped_by_person": "a person decided to drop it",
}
"""Every named fault."""

MOST = 0.8
"""So much of a translation's letters must be in the language's script; as validation warns below it."""
RUN = {True: 4, False: 3}
"""So many words of the original in a row are English left in a translation: in Latin script, and in others."""
CONVERTED = (0.45, 2.5)
"""Characters of a text in a variety or a regional language for one of its standard, least and most, where the starter edition has 0.70 to
1.69; and of a translation into a language that declares no ``lengths``."""
FEWEST = 20
"""Originals of fewer characters have no usual length in another language."""

_REFUSED = re.compile(r"[\W_]*REFUSED[\W_]*")
_QUOTES = ('""', "''", "“”", "‘’", "«»", "„“", "„”", "「」", "『』", "``")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_PERSON = re.compile(
    r"\b(?:m[ae]n|wom[ae]n|males?|females?|boys?|girls?|gentlem[ae]n|lad(?:y|ies)|he|she|him|his|hers?|young|elderly|old|middle-aged|teenage\w*"
    r"|asian|african|black|white|caucasian|latin[oax]|hispanic|indian|european|american|arab)\b",
    re.IGNORECASE,
)


class FaultError(AnswerError):
    """An answer that lacks something; ``fault`` is its name, one of FAULTS."""

    def __init__(self, fault: str, message: str) -> None:
        super().__init__(message)
        self.fault = fault


def plain_text(completion: Completion) -> str:
    """An answer that is one bare text. Raises FaultError when it is empty, cut, declined, several lines, quoted or talks around it.

    >>> plain_text(Completion("Sure. Here is the translation: un chat"))
    Traceback (most recent call last):
    t2i_parity.dataset_builder.pipelines.constraints.FaultError: it holds words around the text: 'Here is the trans…'
    """
    text = _whole(completion).strip()
    if _REFUSED.fullmatch(text):
        raise FaultError("refused", "the request was declined with REFUSED")
    sentences = re.split(r"(?<=[.!?:\n。！？])\s*", text)
    begins = next(filter(None, map(phrases("answers").search, sentences[:2])), None)
    if begins and (begins.start() < 24):
        if phrases("declines").search(begins.group()):
            raise FaultError("refused", f"the request was declined: {shortened(text, 60)}")
        raise FaultError("instruction_leak", f"it holds words around the text: {shortened(begins.group(), 18)}")
    if "\n" in text:
        raise FaultError("several_lines", "it has more than one line")
    if len(text) > 2 and text[0] + text[-1] in _QUOTES and text[0] not in text[1:-1] and text[-1] not in text[1:-1]:
        raise FaultError("quoted", "there are quotation marks around the whole text")
    return " ".join(text.split())


def checked_text(check: Callable[[str], None]) -> Callable[[Completion], str]:
    """What reads an answer that is one bare text and passes a check."""

    def read(completion: Completion) -> str:
        text = plain_text(completion)
        check(text)
        return text

    return read


def json_object(completion: Completion, schema: Json) -> Any:
    """An answer that is one JSON object of a form. Raises FaultError when it is none."""
    text = _whole(completion)
    try:
        value = json_in(text)
    except AnswerError as error:
        declined = phrases("declines").search(text[:200]) or _REFUSED.fullmatch(text)
        raise FaultError("refused" if declined else "unreadable", str(error)) from error
    try:
        found = fitting(value, schema)
    except AnswerError as error:
        raise FaultError("wrong_form", str(error)) from error
    return found


def prompt_of(words: int, *, below: bool = False, contains: str | None = None, undescribed: bool = False) -> Callable[[str], None]:
    """A check of English prompts: their language, ``words`` at most (``below``: fewer), a phrase that must stand in them, and whether
    people must be left undescribed."""

    def check(text: str) -> None:
        in_language(text, "en")
        n = len(text.split())
        if n > words or (below and n == words):
            raise FaultError("too_long", f"it has {n} words where {'fewer than' if below else 'at most'} {words} were asked for")
        if contains is not None and contains.casefold() not in text.casefold():
            raise FaultError("control_missing", f"the words {contains!r} do not stand in it")
        if undescribed and (found := _PERSON.search(text)):
            raise FaultError("person_described", f"it says {found.group()!r} of a person that it must leave open")

    return check


def translation_of(source: str, code: str) -> Callable[[str], None]:
    """A check of translations out of English into the language of a code.

    >>> translation_of("A red boat on a lake at dawn", "ko")("호수 위의 red boat on a lake")
    Traceback (most recent call last):
    t2i_parity.dataset_builder.pipelines.constraints.FaultError: it still holds the English words 'red boat on a lake'
    """
    language = LANGUAGES[code]

    def check(text: str) -> None:
        if len(source) >= FEWEST and fuzz.ratio(source.casefold(), text.casefold()) >= 95:
            raise FaultError("untranslated", f"it is still English, not {language.name}")
        left = _run(source, text, RUN[language.script == "Latn"])
        share = share_in_script(text, language.script)
        if left is not None and (share is None or share > 0.2):
            raise FaultError("english_left", f"it still holds the English words {left!r}")
        in_script(text, code)
        in_language(text, code)
        of_length(text, source, *(language.lengths or CONVERTED))

    return check


def conversion_of(source: str, code: str) -> Callable[[str], None]:
    """A check of conversions into a variety, or into a regional language beside its standard (``code`` is of its language)."""

    def check(text: str) -> None:
        if _key(text) == _key(source):
            raise FaultError("unconverted", "it is the original, letter by letter")
        in_script(text, code)
        of_length(text, source, *CONVERTED)

    return check


def in_script(text: str, code: str) -> None:
    """Raise FaultError when too few letters are in the language's script."""
    language = LANGUAGES[code]
    share = share_in_script(text, language.script)
    if share is not None and share < MOST:
        raise FaultError("wrong_script", f"only {100 * share:.0f}% of its letters are in the script of {language.name}")


def in_language(text: str, code: str) -> None:
    """Raise FaultError when an identifier is sure that a text is in another language; short texts pass."""
    verdict = identified(text, code)
    if verdict is not None and verdict.flagged and not verdict.short:
        named = LANGUAGES[verdict.language].name if verdict.language in LANGUAGES else verdict.language
        raise FaultError("wrong_language", f"it is in {named}, not in {LANGUAGES[code].name}")


def of_length(text: str, source: str, least: float, most: float) -> None:
    """Raise FaultError when a text has too few or too many characters for one of its source."""
    if len(source) < FEWEST:
        return
    ratio = len(text) / len(source)
    if not least <= ratio <= most:
        raise FaultError("too_short" if ratio < least else "too_long", f"it has {len(text)} characters, the original {len(source)}")


# Inside


def _whole(completion: Completion) -> str:
    try:
        return whole(completion)
    except AnswerError as error:
        raise FaultError("cut_off" if completion.finish == "length" else "empty", str(error)) from error


def _key(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _run(source: str, text: str, n: int) -> str | None:
    """The longest stretch of a text that are words of the source in its order, from ``n`` on."""
    words: Sequence[str] = [word.casefold() for word in _WORD.findall(source)]
    runs = {tuple(words[start : start + n]) for start in range(len(words) - n + 1)}
    found = list(_WORD.finditer(text))
    start = stop = None
    for place in range(len(found) - n + 1):
        if tuple(match.group().casefold() for match in found[place : place + n]) in runs:
            start = place if start is None else start
            stop = place + n
        elif start is not None:
            break
    return None if start is None or stop is None else text[found[start].start() : found[stop - 1].end()]
