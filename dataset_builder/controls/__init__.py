"""Controls: rows derived from other rows, that change one thing and keep the rest, so that an effect can be told from its rivals.

Each is a function over decoded rows (dictionaries with class names as strings, as ``rows_of`` gives them) that returns new rows
beside them: the pair, the label and the licence are the original's, ``derived_from`` names it, and ``subset`` is the control's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

Row = Mapping[str, Any]

NEUTRAL = "culture_neutral"
"""The subset of the neutral twins of ``culture_tags``: copies, whose derivation does not show that a control made them."""

_OF_THE_TEXT = ("script", "text_sha256", "checks")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """A prompts table as decoded rows."""
    from t2i_parity.dataset_builder.storage import decode_classes

    return list(decode_classes(table).to_pylist())


def derived(original: Row, key: str, **changes: Any) -> dict[str, Any]:
    """A row made from another: its columns, less what was true of its text alone, with the changes; ``key`` ends its ``prompt_id``."""
    row = {name: value for name, value in original.items() if name not in _OF_THE_TEXT}
    return {**row, "prompt_id": f"{original['prompt_id']}-{key}", "derived_from": original["prompt_id"], **changes}


def check(name: str, verdict: str | None = None, score: float | None = None, by: str | None = None) -> dict[str, Any]:
    """One entry of the column ``checks``."""
    return {"check": name, "verdict": verdict, "score": score, "by": by}


def originals(rows: Sequence[Row]) -> list[Row]:
    """The rows that no control made: what controls are derived from."""
    made = ("typo_perturbed", "transliterated", "culture_tagged")
    return [row for row in rows if row.get("derivation") not in made and row.get("subset") != NEUTRAL]
