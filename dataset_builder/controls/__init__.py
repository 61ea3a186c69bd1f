"""Controls: rows derived from other rows, that change one thing and keep the rest, so that an effect can be told from its rivals.

Each is a function over decoded rows (dictionaries with class names as strings, as ``rows_of`` gives them) that returns new rows
beside them: the pair, the label and the licence are the original's, ``derived_from`` names it, and ``subset`` is the control's own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from t2i_parity.dataset_builder.schema import Check, NewRow, Row

TRANSLITERATED, TYPOS, TAGGED, NEUTRAL = "transliterated", "typo_perturbed", "culture_tagged", "culture_neutral"
"""What a control makes: rows of the derivation by that name, and the neutral twins of tagged rows, which are copies, word for word."""

CONTROLS = frozenset({TRANSLITERATED, TYPOS, TAGGED})
"""The derivations that only controls have."""

_KEYS = {TYPOS: re.compile(r"typo-(.+)-(\d+)"), TAGGED: re.compile(r"style-(.+)")}
_SUBSETS = {
    TYPOS: re.compile(r"typo_(.+)_seed(\d+)"),
    TAGGED: re.compile(r"culture_tag_(.+)"),
    NEUTRAL: re.compile("culture_neutral"),
    TRANSLITERATED: re.compile(r".+_transliterated"),
}
"""The subsets that controls make; they tell of rows without a derivation, as runs of version 0.1 have them."""

_OF_THE_TEXT = ("script", "text_sha256", "checks")


def rows_of(table: pa.Table) -> list[NewRow]:
    """A prompts table as decoded rows."""
    from t2i_parity.dataset_builder.storage import decode_classes

    return list(decode_classes(table).to_pylist())


def derived(original: Row, key: str, **changes: Any) -> NewRow:
    """A row made from another: its columns, less what was true of its text alone, with the changes; ``key`` ends its ``prompt_id``."""
    row = {name: value for name, value in original.items() if name not in _OF_THE_TEXT}
    return {**row, "prompt_id": f"{original['prompt_id']}-{key}", "derived_from": original["prompt_id"], **changes}


@dataclass(frozen=True, slots=True)
class Control:
    """What made a control's row: its ``kind``; ``of``, the culture that it is tagged with or what its typos are matched to; their seed."""

    kind: str
    of: str | None = None
    seed: int | None = None


def control_of(row: Row) -> Control | None:
    """What a control did to make a row, by its derivation; None for a row that no control made.

    >>> control_of({"derivation": "culture_tagged", "prompt_id": "p-1-style-hi", "derived_from": "p-1"})
    Control(kind='culture_tagged', of='hi', seed=None)
    >>> control_of({"subset": "typo_AAVE_seed2"})
    Control(kind='typo_perturbed', of='AAVE', seed=2)
    >>> control_of({"derivation": "translated", "prompt_id": "p-2", "derived_from": "p-1", "subset": "typo_AAVE_seed2"}) is None
    True
    """
    derivation, parent, subset = row.get("derivation"), row.get("derived_from"), row.get("subset") or ""
    if derivation is None:
        kind = next((kind for kind, name in _SUBSETS.items() if name.fullmatch(subset)), None)
    elif derivation in CONTROLS:
        kind = derivation
    else:
        # Nothing else copies a row; what a source holds of several varieties is verbatim too, but in another variety.
        kind = NEUTRAL if derivation == "verbatim" and parent is not None and row.get("variety") in (None, "SAE") else None
    if kind is None:
        return None
    key = str(row.get("prompt_id")).removeprefix(f"{parent}-")
    told = (kind in _KEYS and _KEYS[kind].fullmatch(key)) or (kind in _SUBSETS and _SUBSETS[kind].fullmatch(subset))
    found = told.groups() if told else ()
    return Control(kind, found[0] if found else None, int(found[1]) if len(found) > 1 else None)


def check(name: str, verdict: str | None = None, score: float | None = None, by: str | None = None) -> Check:
    """One entry of the column ``checks``."""
    return {"check": name, "verdict": verdict, "score": score, "by": by}


def originals(rows: Sequence[Row]) -> list[Row]:
    """The rows that no control made: what controls are derived from."""
    return [row for row in rows if control_of(row) is None]
