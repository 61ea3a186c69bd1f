"""Characters: none that is broken, none that cannot be seen, and each written in its usual form."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator

from t2i_parity.validation.prompts.model import Check, Fault, Rows, declared
from t2i_parity.validation.prompts.texts import Found, characters, code_point, excerpt, in_texts, letters, shorten

_BIDI_CONTROLS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BIDI_MARKS = frozenset("\u200e\u200f\u061c")
_JOINERS = "\u200c\u200d"
_UNSEEN = frozenset("\u00ad\u034f\u115f\u1160\u180e\u200b\u2060\u2061\u2062\u2063\u2064\u3164\ufeff\uffa0\u2028\u2029")
_JOINING = re.compile("[\u0600-\u06ff\u0900-\u0dff]")
"""Arabic and the scripts of India, in which joiners shape letters."""
_LOST = re.compile(r"(?<!\?)\?{3,}")


def _empty(rows: Rows) -> Iterator[Fault]:
    for column in rows.text_columns:
        for number, text in enumerate(rows[column]):
            # A sign may hold an emoticon; punctuation alone says nothing.
            if text is not None and not any(map(str.isalnum, text)) and not any(unicodedata.category(sign)[0] == "S" for sign in text):
                yield Fault(
                    number, column, shorten(text) or "an empty text", "a text with a letter or digit", "write the text, or drop the row"
                )


def _nfc(rows: Rows) -> Iterator[Fault]:
    def find(text: str, _column: str, _code: str | None) -> Found | None:
        if unicodedata.is_normalized("NFC", text):
            return None
        normal = unicodedata.normalize("NFC", text)
        place = next((place for place, (one, other) in enumerate(zip(text, normal, strict=False)) if one != other), len(normal))
        return place, place + 2, f"the composed form {code_point(normal[min(place, len(normal) - 1)])}", "normalise the text to NFC", None

    return in_texts(rows, find)


def _bad(sees: Callable[[str], bool], expected: str, fix: str) -> Callable[[Rows], Iterator[Fault]]:
    """A check against characters that stand in no text."""

    def run(rows: Rows) -> Iterator[Fault]:
        pattern = characters(rows, sees)
        if pattern is None:
            return iter(())

        def find(text: str, _column: str, _code: str | None) -> Found | None:
            found = pattern.search(text)
            return found and (found.start(), found.end(), f"{expected}, not {code_point(found.group())}", fix, None)

        return in_texts(rows, find)

    return run


def _is_control(sign: str) -> bool:
    # Line breaks and tabs are told of with the spaces; an emoji may be younger than this Python's Unicode.
    return sign not in "\n\r\t\v\f" and unicodedata.category(sign) in ("Cc", "Co", "Cn", "Cs") and not "\U0001f000" <= sign <= "\U0001fbff"


def _is_unseen(sign: str) -> bool:
    return sign in _UNSEEN or "\U000e0000" <= sign <= "\U000e007f"


def _zero_width(rows: Rows) -> Iterator[Fault]:
    pattern = characters(rows, lambda sign: sign in _JOINERS or _is_unseen(sign))
    if pattern is None:
        return iter(())

    def find(text: str, _column: str, _code: str | None) -> Found | None:
        for found in pattern.finditer(text):
            if found.group() in _JOINERS and _joins(text, found.start()):
                continue
            return found.start(), found.end(), f"nothing unseen, not {code_point(found.group())}", "remove the character", None
        return None

    return in_texts(rows, find)


def _joins(text: str, place: int) -> bool:
    """Whether a joiner stands where one has work to do: inside an Arabic or Indian word, or between the parts of an emoji."""
    before, after = text[place - 1 : place], text[place + 1 : place + 2]
    if not before or not after:
        return False
    if _JOINING.match(before):
        return bool(_JOINING.match(after)) or text[place] == "\u200d"
    return text[place] == "\u200d" and all(unicodedata.category(sign) in ("So", "Sk", "Mn") for sign in (before, after))


def _bidi(rows: Rows) -> Iterator[Fault]:
    pattern = characters(rows, lambda sign: sign in _BIDI_CONTROLS or sign in _BIDI_MARKS)
    if pattern is None:
        return iter(())

    def find(text: str, _column: str, code: str | None) -> Found | None:
        found = pattern.search(text)
        if found is None:
            return None
        # A mark has work to do beside right-to-left letters, and the model gets it all the same: a warning there.
        spoken = declared(code)
        mild = found.group() in _BIDI_MARKS and spoken is not None and spoken.direction == "rtl"
        return (
            found.start(), found.end(), f"no direction control, such as {code_point(found.group())}", "remove the character",
            "warning" if mild else None,
        )  # fmt: skip

    return in_texts(rows, find)


def _replacement(rows: Rows) -> Iterator[Fault]:
    def find(text: str, _column: str, _code: str | None) -> Found | None:
        place = text.find("\ufffd")
        if place >= 0:
            return place, place + 1, "the character that was lost (U+FFFD stands in its place)", "take the text from its source again", None
        found = _LOST.search(text) if "???" in text else None
        return found and (found.start(), found.end(), "the characters that were lost (? stands in their place)",
                          "take the text from its source again", "warning")  # fmt: skip

    return in_texts(rows, find)


def _mojibake(rows: Rows) -> Iterator[Fault]:
    from ftfy import fix_encoding
    from ftfy.badness import is_bad

    def find(text: str, _column: str, _code: str | None) -> Found | None:
        if text.isascii() or not is_bad(text):
            return None
        fixed = fix_encoding(text)
        if fixed == text:
            return None
        place = next((place for place, (one, other) in enumerate(zip(text, fixed, strict=False)) if one != other), len(fixed))
        return place, place + 6, excerpt(fixed, place), "decode the source as UTF-8 (ftfy.fix_encoding mends a text)", None

    return in_texts(rows, find)


def _compatibility(rows: Rows) -> Iterator[Fault]:
    pattern = characters(rows, _is_compatibility)
    if pattern is None:
        return iter(())

    def find(text: str, _column: str, code: str | None) -> Found | None:
        wide = (spoken := declared(code)) is not None and spoken.written.wide
        for found in pattern.finditer(text):
            # East Asian writing has wide Latin letters of its own; half-width kana are an encoding's.
            if wide and "\uff01" <= found.group() <= "\uff5e":
                continue
            usual = unicodedata.normalize("NFKC", found.group())
            return found.start(), found.end(), f"{shorten(usual)}, not {code_point(found.group())}", "write the usual letters", None
        return None

    return in_texts(rows, find)


def _is_compatibility(sign: str) -> bool:
    """Presentation forms, ligatures, wide and narrow letters; not symbols such as ™, ½ or ²."""
    inside = (
        "\ufb00" <= sign <= "\ufdff" or "\ufe70" <= sign <= "\ufefc" or "\uff10" <= sign <= "\uffdc" or "\U0001d400" <= sign <= "\U0001d7ff"
    )
    return inside and letters(sign) > 0 and unicodedata.normalize("NFKC", sign) != sign


CHECKS = (
    Check("empty", "error", "every text has a letter, a digit or a symbol", _empty),
    Check("nfc", "error", "texts are in Unicode's composed form, NFC", _nfc),
    Check("control_characters", "error", "no control, private-use or unassigned characters",
          _bad(_is_control, "no control or unassigned character", "remove the character")),
    Check("bidi_marks", "error", "no direction controls (a mark in Arabic: warning)", _bidi),
    Check("zero_width", "error", "nothing that cannot be seen, but for joiners where they shape letters", _zero_width),
    Check("replacement_character", "error", "no U+FFFD (runs of ???: warning)", _replacement),
    Check("mojibake", "error", "no text that was decoded wrongly", _mojibake),
    Check("compatibility_forms", "warning", "no presentation forms, ligatures or wide letters in place of the usual ones", _compatibility),
)  # fmt: skip
