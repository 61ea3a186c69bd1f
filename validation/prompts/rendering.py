"""What is asked for stands in the prompt: the text to be rendered, its place, its description, the noun."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from t2i_parity.dataset_builder.sources.layout import canonical
from t2i_parity.validation.prompts.model import Check, Fault, NotRunError, Rows
from t2i_parity.validation.prompts.texts import shorten

CANVAS = 1024
"""Width and height of the picture that layouts are measured in."""


def _render_text(rows: Rows) -> Iterator[Fault]:
    layouts = rows["render_layout"]
    for number, (prompt, text) in enumerate(zip(rows["prompt"], rows["render_text"], strict=True)):
        if not prompt or not text or text in prompt:
            continue
        # A text of several lines may stand in the prompt line by line, at several places.
        if len(_lines(layouts[number])) > 1 and all(word in prompt for word in text.split()):
            continue
        wanted = f"the prompt to hold it: {shorten(prompt)}"
        yield Fault(number, "render_text", shorten(text), wanted, "fill the text into the prompt anew")


def _description(rows: Rows) -> Iterator[Fault]:
    prompts, texts, templates = rows["prompt"], rows["render_text"], rows["verbatim_prompt"]
    for (_, pair), members in rows.designed.items():
        around = {}
        for number in members:
            if templates[number]:
                around[number] = templates[number]
            elif prompts[number] and texts[number] and texts[number] in prompts[number]:
                around[number] = prompts[number].replace(texts[number], "{}", 1)
        if len(set(around.values())) < 2:
            continue
        usual = Counter(around.values()).most_common(1)[0][0]
        for number, description in around.items():
            if description != usual:
                place = next((place for place, (a, b) in enumerate(zip(description, usual, strict=False)) if a != b), 0)
                wanted = f"{shorten(usual[place:])}, as in the other rows of pair {shorten(pair)}"
                yield Fault(number, "prompt", shorten(description[place:]), wanted, "keep the description the same in every language")


def _layout(rows: Rows) -> Iterator[Fault]:
    layouts = rows["render_layout"]
    if not any(layout is not None for layout in layouts):
        raise NotRunError("no row has a layout")
    known: dict[str, str | None] = {}
    for number, layout in enumerate(layouts):
        if layout is None:
            continue
        if layout not in known:
            known[layout] = wrong_layout(layout)
        found = known[layout]
        if found is not None:
            wanted = f"per line [[4 corner points], [[x0, y0], [x1, y1]]] within 0 … {CANVAS}"
            yield Fault(number, "render_layout", found, wanted, "correct the layout, or write null")


def wrong_layout(layout: str) -> str | None:
    """What is wrong with a layout, None when nothing is.

    >>> wrong_layout("[[[[0, 0], [9, 0], [9, 9], [0, 9]], [[0, 0], [9, 9]]]]")
    >>> wrong_layout("[[[[0, 0], [9, 0], [9, 9], [0, 9]], [[0, 0], [9, 2000]]]]")
    'line 0: the point [9, 2000] lies outside the picture'
    """
    try:
        lines = json.loads(canonical(layout))
    except (ValueError, RecursionError) as error:
        return f"{error}: {shorten(layout)}"
    for place, line in enumerate(lines):
        for point in (point for part in line for point in part):
            if not all(0 <= value <= CANVAS for value in point):
                return f"line {place}: the point {point} lies outside the picture"
        (left, top), (right, bottom) = line[1]
        if left == right or top == bottom:
            return f"line {place}: the box {line[1]} has no area"
    return None


def _lines(layout: str | None) -> list[Any]:
    """The lines of a layout, [] for one that is none."""
    try:
        lines = json.loads(layout or "[]")
    except (ValueError, RecursionError):
        return []
    return lines if isinstance(lines, list) else []


def _noun(rows: Rows) -> Iterator[Fault]:
    for number, (prompt, noun, code) in enumerate(zip(rows["prompt"], rows["noun"], rows["language"], strict=True)):
        # The column has the English noun, whatever the prompt's language.
        if code == "en" and prompt and noun and noun.casefold() not in prompt.casefold():
            yield Fault(number, "noun", shorten(noun), f"the prompt to hold it: {shorten(prompt)}", "fill the template anew")


CHECKS = (
    Check("render_text", "error", "the text to be rendered stands in the prompt", _render_text, ("prompt", "render_text")),
    Check("description", "warning", "the description around the text is the same in every language of a pair", _description,
          ("prompt", "render_text", "pair_id")),
    Check("render_layout", "error", f"layouts are JSON of the declared form, within {CANVAS} × {CANVAS}", _layout, ("render_layout",)),
    Check("noun", "error", "the noun stands in an English prompt", _noun, ("prompt", "noun", "language")),
)  # fmt: skip
