"""Writing: the letters are of the declared script, no word mixes scripts, and the spelling is the language's own."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from fontTools import unicodedata as scripts

from t2i_parity.dataset_builder.languages import LANGUAGES, SCRIPTS, Script
from t2i_parity.validation.prompts.model import Check, Fault, Rows
from t2i_parity.validation.prompts.texts import Found, code_point, excerpt, in_texts

HALF, MOST = 0.5, 0.8
"""Of a text's letters, so many must be in its script, or it is an error; so many should be, or it is a warning (names stay Latin)."""
ABBREVIATION = 3
"""So few letters of another script are a sign of their own: WC, DVD."""
TRADITIONAL = 0.2
"""The share of traditional characters from which a text in simplified Chinese is said to be written in the others."""

_LATIN, _OTHER = "A-Za-zÀ-ÖØ-öø-ɏ", "Ͱ-ͽͿ-ϿЀ-ӿ"
_MIXED = re.compile(f"[{_LATIN}][{_OTHER}]|[{_OTHER}][{_LATIN}]")


def _script(rows: Rows) -> Iterator[Fault]:
    letters = {sign for text in rows.texts for sign in text if sign.isalpha()}
    of = {sign: scripts.script(sign) for sign in letters}
    declared = {code: LANGUAGES[code].script if code in LANGUAGES else None for code in set(rows["language"])}
    outside: dict[str, re.Pattern[str] | None] = {}
    for number, (text, code, written, derivation) in enumerate(
        zip(rows.texts, rows["language"], rows["script"], rows["derivation"], strict=True)
    ):
        script = written if derivation == "transliterated" else declared[code]
        if script is None:
            continue
        if script not in outside:
            inside = SCRIPTS.get(script, Script(script, script)).inside
            foreign = "".join(sorted(sign for sign in letters if of[sign] not in inside))
            outside[script] = re.compile(f"[{re.escape(foreign)}]") if foreign else None
        pattern = outside[script]
        wrong = pattern.findall(text) if pattern else []
        if len(wrong) <= ABBREVIATION:
            continue
        total = sum(map(str.isalpha, text))
        share = 1 - len(wrong) / total
        if share < MOST:
            first = text.index(wrong[0])
            yield Fault(
                number, rows.own, f"{100 * share:.0f}% of {total} letters are {script}: {excerpt(text, first)}",
                f"{script}, at least {100 * MOST:.0f}% of the letters", "translate the text, or correct the row's language",
                None if share < HALF else "warning",
            )  # fmt: skip


def _mixed(rows: Rows) -> Iterator[Fault]:
    def find(text: str, _column: str, _code: str | None) -> Found | None:
        found = _MIXED.search(text)
        if found is None:
            return None
        signs = " beside ".join(code_point(sign) for sign in found.group())
        return found.start(), found.end(), f"words in one script each, not {signs}", "replace the letter that only looks like it", None

    return in_texts(rows, find)


def traditional(sign: str) -> bool:
    """Whether a Chinese character is a traditional one that simplified writing has not: in Big5, but not in GB 2312.

    >>> traditional("國"), traditional("国"), traditional("人")
    (True, False, False)
    """
    return not _encodes(sign, "gb2312") and _encodes(sign, "big5")


def _encodes(sign: str, encoding: str) -> bool:
    try:
        sign.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _spelling(rows: Rows) -> Iterator[Fault]:
    alphabet = {sign for text in rows.texts for sign in text}
    classic = re.escape("".join(sorted(sign for sign in alphabet if unicodedata.category(sign) == "Lo" and traditional(sign))))
    patterns = {
        code: (re.compile(f"[{each.not_its_letters[0]}]"), each.not_its_letters[1])
        for code, each in LANGUAGES.items()
        if each.not_its_letters
    }
    for number, (text, code) in enumerate(zip(rows.texts, rows["language"], strict=True)):
        if code in patterns:
            pattern, named = patterns[code]
            found = pattern.search(text)
            if found:
                wanted = f"letters of {LANGUAGES[code].name}, not {named}"
                yield Fault(number, rows.own, f"{code_point(found.group())}: {excerpt(text, found.start())}", wanted, "respell the word")
        elif classic and code in LANGUAGES and LANGUAGES[code].script == "Hans":
            signs = re.findall(f"[{classic}]", text)
            if len(signs) > TRADITIONAL * max(1, sum(map(str.isalpha, text))):
                yield Fault(
                    number, rows.own, f"traditional {''.join(signs)}", "simplified characters", "convert the text to simplified Chinese"
                )


CHECKS = (
    Check("script", "error", f"at least {100 * MOST:.0f}% of the letters are in the language's script (error: below {100 * HALF:.0f}%)",
          _script, ("language",)),
    Check("mixed_script", "warning", "no word mixes Latin with Cyrillic or Greek letters that look alike", _mixed, ()),
    Check("spelling", "warning", "Chinese is simplified; Arabic has no Persian, Russian no Ukrainian letters", _spelling, ("language",)),
)  # fmt: skip
