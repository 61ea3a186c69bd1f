"""Copies: translations that are still the original, and texts that stand in a table twice, or nearly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
from rapidfuzz import fuzz, process

from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.validation.prompts.model import Check, Fault, NotRunError, Rows, spaced
from t2i_parity.validation.prompts.texts import keys, letters, shorten

SAME = 95
"""From this similarity on (of 100), a long translation is a copy of its original."""
NEAR = 92
"""From this similarity on (of 100), two texts of a language are nearly one."""
FEW_LETTERS = 16
"""Shorter texts may be the same in two languages by right: names, numbers, words that both have."""
NEAR_LETTERS = 24
RAREST, RAREST_UNSPACED, SHARED = 5, 8, 3
"""Texts are compared when three of the five rarest words that each shares with any other are the same (where no spaces are written,
of eight pairs of characters)."""
CROWD = 50
"""A block of more texts than this is a template's, and each is compared with the one before it only."""


def _keys(rows: Rows) -> list[str]:
    return keys(rows.texts)


def _untranslated(rows: Rows) -> Iterator[Fault]:
    folded = rows.memo(_keys)
    languages = rows["language"]
    for members in rows.designed.values():
        english = next((number for number in members if languages[number] == "en"), None)
        if english is None or letters(rows.texts[english]) < FEW_LETTERS:
            continue
        for number in members:
            if languages[number] in ("en", None) or not folded[number]:
                continue
            if fuzz.ratio(folded[number], folded[english], score_cutoff=SAME):
                name = LANGUAGES[languages[number]].name if languages[number] in LANGUAGES else languages[number]
                yield Fault(
                    number,
                    rows.own,
                    f"the English of row {english}: {shorten(rows.texts[number])}",
                    f"a text in {name}",
                    "translate the text",
                )


def _unconverted(rows: Rows) -> Iterator[Fault]:
    folded = rows.memo(_keys)
    languages, varieties = rows["language"], rows["variety"]
    if not any(code in LANGUAGES and LANGUAGES[code].standard for code in set(languages)) and not set(varieties) - {None}:
        raise NotRunError("no varieties and no regional languages here")
    for members in rows.designed.values():
        by_cell = {(languages[number], varieties[number]): number for number in members}
        for number in members:
            language, variety = LANGUAGES.get(languages[number] or ""), VARIETIES.get(varieties[number] or "")
            if variety and variety.reference:
                other, name = by_cell.get((languages[number], variety.reference)), variety.name
            elif language and language.standard:
                other, name = by_cell.get((language.standard, varieties[number])), language.name
            else:
                continue
            if other is not None and folded[number] == folded[other] and folded[number]:
                told = f"the text of row {other}: {shorten(rows.texts[number])}"
                yield Fault(
                    number, rows.own, told, f"a text in {name} that differs from its standard", "convert the text, or drop its pair"
                )


def _duplicate(rows: Rows) -> Iterator[Fault]:
    folded, pairs = rows.memo(_keys), rows["pair_id"]
    for members in rows.groups.values():
        first: dict[str, int] = {}
        for number in members:
            key = folded[number]
            if not key:
                continue
            if key not in first:
                first[key] = number
            elif pairs[number] is None or pairs[number] != pairs[first[key]]:
                # Short translations of different words may meet: two originals have become one.
                yield Fault(
                    number, rows.own, f"{shorten(rows.texts[number])}, as in row {first[key]}", "a text that no other pair has",
                    "drop one of the pairs, or ask for something else", None if letters(rows.texts[number]) >= FEW_LETTERS else "note",
                )  # fmt: skip


def _near(rows: Rows) -> Iterator[Fault]:
    if "noun" in rows.usable:
        raise NotRunError("prompts of one template are alike by right")
    folded, pairs, derivations = rows.memo(_keys), rows["pair_id"], rows["derivation"]
    # Prompts of one template are alike by right; texts that were filled into one are not.
    templated = rows.own == "prompt"
    for (code, _), members in rows.groups.items():
        kept = [
            number for number in members if len(folded[number]) >= NEAR_LETTERS and not (templated and derivations[number] == "templated")
        ]
        candidates = sorted(
            (one, other)
            for one, other in _candidates([rows.texts[number] for number in kept], kept, spaced(code))
            if folded[one] != folded[other] and (pairs[one] is None or pairs[one] != pairs[other])
        )
        if not candidates:
            continue
        scores = process.cpdist(
            [folded[one] for one, _ in candidates], [folded[other] for _, other in candidates],
            scorer=fuzz.ratio, score_cutoff=NEAR, dtype=np.float32, workers=-1,
        )  # fmt: skip
        best: dict[int, tuple[float, int]] = {}
        for (one, other), score in zip(candidates, scores.tolist(), strict=True):
            if score >= NEAR and score > best.get(other, (0, 0))[0]:
                best[other] = (score, one)
        for number, (score, one) in sorted(best.items()):
            found = f"{shorten(rows.texts[number])}, {score:.0f}% as in row {one}: {shorten(rows.texts[one])}"
            yield Fault(number, rows.own, found, "a text unlike those of the other pairs", "look whether both are wanted")


def _candidates(texts: list[str], numbers: list[int], words: bool) -> set[tuple[int, int]]:
    """Pairs of rows that share ``SHARED`` of their rarest pieces: what differs in one or two words is among them."""
    pieces = [_pieces(text, words) for text in texts]
    known = Counter(piece for each in pieces for piece in each)
    blocks: dict[tuple[str, ...], list[int]] = {}
    for number, each in zip(numbers, pieces, strict=True):
        shared = [piece for piece in each if known[piece] > 1]
        rarest = sorted(shared, key=lambda piece: (known[piece], piece))[: RAREST if words else RAREST_UNSPACED]
        for block in combinations(sorted(rarest), SHARED):
            blocks.setdefault(block, []).append(number)
    found: set[tuple[int, int]] = set()
    for members in blocks.values():
        if 1 < len(members) <= CROWD:
            found.update(combinations(members, 2))
        else:
            found.update(pairwise(members))
    return found


def _pieces(text: str, words: bool) -> set[str]:
    folded = text.casefold()
    return set(folded.split()) if words else {folded[place : place + 2] for place in range(len(folded) - 1)}


CHECKS = (
    Check("untranslated", "error", "no translation is a copy of the English", _untranslated, ("pair_id", "language")),
    Check("unconverted", "warning", "no text in a variety or regional language is a copy of its standard", _unconverted,
          ("pair_id", "language")),
    Check("duplicate", "warning", "no two pairs have the same text in a language (short texts: note)", _duplicate, ("language",)),
    Check("near_duplicate", "note", f"no two pairs have nearly the same text ({NEAR}%) in a language", _near, ("language",)),
)  # fmt: skip
