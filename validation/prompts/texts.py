"""Texts for checks: shown so that nothing in them stays unseen, and compared without what does not matter."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

from t2i_parity.cards.validation import Severity
from t2i_parity.validation.prompts.model import Fault, Rows

AROUND = 24
"""How many characters on each side of a fault are shown."""


def code_point(sign: str) -> str:
    """A character by number and name.

    >>> code_point(chr(0x200B))
    'U+200B ZERO WIDTH SPACE'
    """
    return f"U+{ord(sign):04X} {unicodedata.name(sign, unicodedata.category(sign))}"


def spell(text: str) -> str:
    """Text with everything that cannot be seen, or seen apart, spelled out.

    >>> spell("a" + chr(0x200B) + "b" + chr(0xA0) + "c")
    'a⟨U+200B⟩b⟨U+00A0⟩c'
    """
    return "".join(sign if _seen(sign) else f"⟨U+{ord(sign):04X}⟩" for sign in text)


def _seen(sign: str) -> bool:
    return sign == " " or (sign.isascii() and sign.isprintable()) or unicodedata.category(sign)[0] not in "CZ"


def excerpt(text: str, start: int, stop: int | None = None) -> str:
    """What stands around a place in a text.

    >>> excerpt("a" * 50 + "<b>" + "c" * 50, 50, 53)
    '…aaaaaaaaaaaaaaaaaaaaaaaa<b>cccccccccccccccccccccccc…'
    """
    stop = start if stop is None else min(stop, start + 2 * AROUND)
    left, right = max(0, start - AROUND), stop + AROUND
    return f"{'…' if left else ''}{spell(text[left:right])}{'…' if right < len(text) else ''}"


def shorten(text: str, width: int = 80) -> str:
    """The beginning of a text, spelled out."""
    return spell(text[:width]) + ("…" if len(text) > width else "")


def keys(texts: Iterable[str]) -> list[str]:
    """Texts without case, spaces and punctuation, to see whether two are one. Vowel signs and symbols stay.

    >>> keys(["A red, RED door.", "a red red door"])
    ['aredreddoor', 'aredreddoor']
    """
    folded = [text.casefold() for text in texts]
    alphabet = set().union(*folded) if folded else set()
    drop = {ord(sign): None for sign in alphabet if unicodedata.category(sign)[0] in "PZC"}
    return [text.translate(drop) for text in folded]


def letters(text: str) -> int:
    """The number of letters of a text."""
    return sum(map(str.isalpha, text))


Found = tuple[int, int, str, str, Severity | None]
"""A fault inside a text: where it starts and ends, what was expected, how to mend it, and its severity where it is milder."""


def in_texts(rows: Rows, find: Callable[[str, str, str | None], Found | None]) -> Iterator[Fault]:
    """Faults that ``find`` (text, column, language) sees; one that stands in the text to be rendered is not told again of the prompt."""
    told: set[tuple[int, str]] = set()
    languages = rows["language"]
    for column in reversed(rows.text_columns):
        for number, text in enumerate(rows[column]):
            if not text:
                continue
            found = find(text, column, languages[number])
            if found is None:
                continue
            start, stop, expected, fix, severity = found
            key = (number, text[start:stop])
            if key not in told:
                told.add(key)
                yield Fault(number, column, excerpt(text, start, stop), expected, fix, severity)


def characters(rows: Rows, bad: Callable[[str], bool]) -> re.Pattern[str] | None:
    """A pattern of the characters of these rows that are ``bad``, None when there are none: most tables have none, and are not searched."""
    alphabet = rows.memo(_alphabet)
    found = sorted(filter(bad, alphabet))
    return re.compile(f"[{re.escape(''.join(found))}]") if found else None


def _alphabet(rows: Rows) -> frozenset[str]:
    signs: set[str] = set()
    for column in rows.text_columns:
        values: Sequence[str | None] = rows[column]
        signs.update("".join(text for text in values if text))
    return frozenset(signs)
