"""One Jinja2 environment for all pages: HTML is escaped by default, Markdown and YAML by the filters given here."""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from typing import Any

import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#|~<>!$&])")


def markdown_text(value: object) -> str:
    """Untrusted text as literal Markdown on one line: no markup, no HTML, no table cell broken, nothing reordered.

    >>> markdown_text("a|b <i>")
    'a\\\\|b \\\\<i\\\\>'
    """
    return _MARKDOWN.sub(r"\\\1", visible(" ".join(str(value).split())))


def visible(value: object) -> str:
    """Text with its control characters and bidi controls spelled out, so that nothing reorders or hides what stands around it.

    >>> visible("a\\u202eb")
    'a⟨U+202E⟩b'
    """
    return "".join(f"⟨U+{ord(sign):04X}⟩" if _is_control(sign) else sign for sign in str(value))


def _is_control(sign: str) -> bool:
    # Joiners (U+200C, U+200D) are also format characters, but shape Arabic, Hindi and emoji, and reorder nothing.
    bidi = sign in "\u061c\u200e\u200f" or "\u202a" <= sign <= "\u202e" or "\u2066" <= sign <= "\u2069"
    return bidi or (sign not in "\n\t" and unicodedata.category(sign) in ("Cc", "Cs"))


def yaml_block(value: Any) -> str:
    """A value as YAML, keys in the order given; quoting is the library's, so untrusted text cannot break out."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000).rstrip("\n")


def script_json(content: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin a comment.

    >>> print(script_json("</script>"))
    "\\u003c/script\\u003e"
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def number(value: float | None, digits: int = 3) -> str:
    """A score for people; what is missing is a dash, never 0.

    >>> number(0.98765), number(None)
    ('0.988', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def p_value(value: float | None) -> str:
    """A p-value for people.

    >>> p_value(0.00004), p_value(0.0312), p_value(None)
    ('< 0.001', '0.031', '–')
    """
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def points(value: float | None) -> str:
    """A shift in percentage points, always with its sign.

    >>> points(-1.25), points(3.0), points(-0.01), points(None)
    ('−1.2', '+3.0', '0.0', '–')
    """
    if value is None:
        return "–"
    text = f"{value:+.1f}"
    return "0.0" if text in ("+0.0", "-0.0") else text.replace("-", "−")


def percent(value: float | None) -> str:
    """A rate.

    >>> percent(0.125), percent(None)
    ('12.5%', '–')
    """
    return "–" if value is None else f"{100 * value:.1f}%"


@cache
def environment() -> Environment:
    """The shared environment over ``cards/templates``; a name that a template misspells is an error."""
    env = Environment(
        loader=PackageLoader("t2i_parity.cards", "templates"),
        autoescape=select_autoescape(["html.j2"], default_for_string=False, default=False),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters.update(md=markdown_text, yaml=yaml_block, number=number, p_value=p_value)
    return env
