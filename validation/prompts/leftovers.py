"""Leftovers of how a text was made: placeholders, words of the language model, refusals, markup, quotes and stray spaces."""

from __future__ import annotations

import re
from collections.abc import Iterator

from t2i_parity.cards.validation import Severity
from t2i_parity.dataset_builder.phrases import phrases
from t2i_parity.validation.prompts.model import Check, Fault, Rows, declared
from t2i_parity.validation.prompts.texts import Found, in_texts

_TAGS = (
    "a|abbr|article|b|big|blockquote|body|br|center|code|div|em|font|h[1-6]|head|hr|html|i|iframe|img|input|label|li|link|main|mark|meta|ol|p|"
    "pre|s|script|section|small|span|strong|style|sub|sup|svg|table|tbody|td|th|thead|tr|u|ul|video"
)
_HTML = re.compile(rf"</?(?:{_TAGS})(?:\s[^<>]*)?/?>|<!--|&(?:[a-zA-Z]{{2,8}}|#\d{{1,6}}|#x[0-9a-fA-F]{{1,5}});", re.IGNORECASE)
_MARKDOWN = re.compile(
    r"\*\*[^*\n]+\*\*|(?<!\w)__[^_\n]+__(?!\w)|(?<![\w*])\*[^\s*][^*\n]*[^\s*]\*(?![\w*])|```|`[^`\n]+`|!?\[[^\]\n]+\]\([^)\n]+\)|~~[^~\n]+~~"
)
_MARKDOWN_START = re.compile(r"(?:#{1,6}|[-*+•]|>|\d{1,2}[.)])\s+(?=\S)")
_PLACEHOLDER = re.compile(
    r"<[A-Za-z_][\w -]{0,30}>"  # <sks1>
    r"|\{\{?[\w .:-]{0,40}\}\}?|\$\{|\{%"  # {text}, {{ name }}, ${name}
    r"|\[[A-Z][A-Z0-9]*(?:[ _-][A-Z0-9]+)+\]|\[(?:TEXT|INPUT|PROMPT|OUTPUT|LANGUAGE|DIALECT|NAME|PLACEHOLDER|INSERT[^\]]*|TRANSLATION)\]"
    r"|(?<![\w%])%(?:s|d|r|\(\w+\)[sdr])(?!['’\w])"
    r"|(?<!_)_{3,}|lorem ipsum|\bFIXME\b|<\|[^|]{1,30}\|>|\[/?INST\]",
    re.IGNORECASE,
)

_STOP = r"\s*[,!.:，。！、：،]"
_REFUSED = re.compile(r"\bREFUSED\b")
_OUTER = "\"'“”„«»「」『』‘’*[]()<> .!:"
_QUOTES = ('""', "''", "“”", "‘’", "«»", "„“", "„”", "「」", "『』", "``")

_EXOTIC = re.compile("[\u1680\u2000-\u200a\u205f\u3000\u2028\u2029\u0085]")
_SPACES = re.compile(r"^\s+|\s+$|[^\S\u3000\n]{2,}|[\t\r\v\f]")
_BREAKS = re.compile(r"\n")


def _placeholders(rows: Rows) -> Iterator[Fault]:
    def find(text: str, _column: str, _code: str | None) -> Found | None:
        for found in _PLACEHOLDER.finditer(text):
            # Brackets and blanks count in capitals only, as templates have them; a tag of HTML is markup.
            if text[found.start()] == "[" and found.group() != found.group().upper():
                continue
            if _HTML.match(found.group()):
                continue
            return found.start(), found.end(), "what the placeholder stands for", "fill the template anew, or drop the row", None
        return None

    return in_texts(rows, find)


def _leaked(rows: Rows) -> Iterator[Fault]:
    def find(text: str, column: str, _code: str | None) -> Found | None:
        begins = len(text) - len(text.lstrip(" \n\"'“”«»「『*#>"))
        found = phrases("answers").match(text, begins)
        severity: Severity | None = None
        if found is None and column == "prompt":
            found, severity = phrases("assents", _STOP).match(text, begins), "warning"
        return found and (found.start(), found.end(), "the text alone", "cut what the language model says around it", severity)

    return in_texts(rows, find)


def _refusal(rows: Rows) -> Iterator[Fault]:
    def find(text: str, _column: str, _code: str | None) -> Found | None:
        found = _REFUSED.search(text)
        if found is None:
            return None
        alone = text.strip(_OUTER) == found.group()
        return found.start(), found.end(), "a text", "make the text anew, or drop its pair", None if alone else "warning"

    return in_texts(rows, find)


def _markup(rows: Rows) -> Iterator[Fault]:
    def find(text: str, column: str, _code: str | None) -> Found | None:
        found = _HTML.search(text) if "<" in text or "&" in text else None
        if found:
            return found.start(), found.end(), "plain text, not HTML", "remove the tags, and write entities as characters", None
        found = _MARKDOWN.search(text) or (_MARKDOWN_START.match(text) if column == "prompt" else None)
        return found and (found.start(), found.end(), "plain text, not Markdown", "remove the markup", "warning")

    return in_texts(rows, find)


def _quoted(rows: Rows) -> Iterator[Fault]:
    for number, text in enumerate(rows["prompt"]):
        if text and len(text) > 2 and text[0] + text[-1] in _QUOTES and text[0] not in text[1:-1] and text[-1] not in text[1:-1]:
            yield Fault(number, "prompt", f"{text[:12]}…{text[-12:]}", "a text without quotes around all of it", "remove the quotes")


def _spaces(rows: Rows) -> Iterator[Fault]:
    def find(text: str, column: str, code: str | None) -> Found | None:
        found = _SPACES.search(text)
        if found is None and "\n" in text and column == "prompt":
            found = _BREAKS.search(text)
        if found is None:
            found = _EXOTIC.search(text)
            if found is None or (found.group() == "\u3000" and (spoken := declared(code)) and spoken.written.wide):
                return None
        return found.start(), found.end(), "single spaces, between words only", "strip the text and join its words by one space", None

    return in_texts(rows, find)


CHECKS = (
    Check("placeholder", "error", "no placeholder of a template: <sks1>, {text}, [DIALECT_NAME], %s", _placeholders),
    Check(
        "leaked_instruction",
        "error",
        "no words of the language model around the text, in eleven languages (assent alone: warning)",
        _leaked,
    ),
    Check("refusal", "error", "no REFUSED in place of a text (inside one: warning)", _refusal),
    Check("markup", "error", "no HTML (Markdown: warning)", _markup),
    Check("quoted", "warning", "no quotes around the whole prompt", _quoted),
    Check("spaces", "warning", "no leading, trailing, double or unusual spaces, no tabs, no line breaks in prompts", _spaces),
)
