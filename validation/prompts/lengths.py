"""Lengths: no text is far longer or shorter than the others of its config and language."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from t2i_parity.validation.prompts.model import Check, Fault, Rows, spaced
from t2i_parity.validation.prompts.texts import shorten

TOKENIZER = "google/mt5-base"
"""The tokenizer by which LingT2I counts the lengths of its prompts (§3.2)."""
FAR = 6.0
"""The robust z of a length's logarithm from which it is far from the others."""
SPREAD = 0.15
"""The least spread of the logarithms that is reckoned with: up to two and a half times the usual length, nothing is far."""
ENOUGH = 30
"""Fewer texts have no usual length."""

Count = Callable[[list[str]], list[int]]


@cache
def token_counter() -> Count | None:
    """Counts of mT5 tokens, None where the tokenizer is not on this machine: nothing is fetched for a side figure."""
    from huggingface_hub import try_to_load_from_cache

    if not any(isinstance(try_to_load_from_cache(TOKENIZER, name), str) for name in ("spiece.model", "tokenizer.json")):
        return None
    from t2i_parity.metrics.text_rendering_precision.core import load_tokenizer

    encode = load_tokenizer(TOKENIZER).encode
    return lambda texts: [len(tokens) for tokens in encode(texts)]


def sizes(rows: Rows) -> dict[str, list[int]]:
    """Characters, words and (where the tokenizer is at hand) tokens of every row's own text."""
    counted = {"characters": [len(text) for text in rows.texts], "words": [len(text.split()) for text in rows.texts]}
    counter = token_counter()
    if counter is not None:
        counted["tokens"] = counter(rows.texts)
    return counted


def robust_z(values: Sequence[int]) -> NDArray[np.float64]:
    """How far each value's logarithm is from the median, in units that are standard deviations where values are normal.

    >>> robust_z([10, 11, 9, 10, 12, 8, 200]).round(1).tolist()[-1] > 6
    True
    """
    logs = np.log1p(np.asarray(values, dtype=np.float64))
    away = logs - np.median(logs)
    z: NDArray[np.float64] = away / max(1.4826 * float(np.median(np.abs(away))), SPREAD)
    return z


def _length(rows: Rows) -> Iterator[Fault]:
    counted = rows.memo(sizes)
    for (code, _), whole in rows.groups.items():
        members = [number for number in whole if rows.texts[number]]
        if len(members) < ENOUGH:
            continue
        told: set[int] = set()
        for unit, values in counted.items():
            if unit == "words" and not spaced(code):
                continue
            of_group = [values[number] for number in members]
            usual = statistics.median(of_group)
            for place in np.flatnonzero(np.abs(robust_z(of_group)) > FAR).tolist():
                number = members[place]
                if number not in told:
                    told.add(number)
                    found = f"{of_group[place]:,} {unit}: {shorten(rows.texts[number])}"
                    yield Fault(number, rows.own, found, f"about {usual:,.0f} {unit}", "look whether the text is whole, and one text")


CHECKS = (Check("length", "warning", "no text is far longer or shorter than the others of its language", _length, ("language",)),)
