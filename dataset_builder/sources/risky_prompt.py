"""T2I-RiskyPrompt (Zhang et al. 2026, arXiv:2510.22300): the prompts from which the dialect-penalty study took its toxic ones.

Upstream layout: one JSON object keyed by id, each value ``{"prompt": text, "label": {"Primary--Sub": [reasons]}}``. A prompt may stand in
several categories: ``category`` is the first, as the study takes it, and every one is a row of ``checks``, by the upstream's annotators.
Two prompts occur twice; both rows are kept under ids of their own. No licence is stated.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.schema import table_from_columns
from t2i_parity.dataset_builder.sources.base import Account, Source
from t2i_parity.dataset_builder.sources.dialect_pairs import CATEGORIES

FILE = "T2I-RiskyPrompt.json"
SUBCATEGORIES = {category.name.casefold(): category.name for category in CATEGORIES.values() if category.label == "toxic"}
"""The fourteen, as Table 13 of the dialect-penalty study prints them, by their case-folded names."""


def _read(source: Source, place: str, part: str) -> dict[str, pa.Table]:
    account = Account(source, place)
    name = account.upstream.only or account.first(FILE)
    entries = _entries(account, name) if name else []
    account.close()
    ids = [f"t2i-riskyprompt-{key}" for key, _, _ in entries]
    columns = {
        **source.provenance(),
        "prompt_id": [f"{identity}-SAE" for identity in ids],
        "pair_id": ids,
        "prompt": [prompt for _, prompt, _ in entries],
        "language": "en",
        "variety": "SAE",
        "subset": "t2i_riskyprompt",
        "label": "toxic",
        "category": [categories[0] for _, _, categories in entries],
        "source_id": [f"{FILE}#{key}" for key, _, _ in entries],
        "source_revision": account.revision(),
        "derivation": "verbatim",
        "producer": "T2I-RiskyPrompt authors (Zhang et al. 2026)",
        "checks": [
            [{"check": "risk category", "verdict": category, "score": None, "by": "T2I-RiskyPrompt authors"} for category in categories]
            for _, _, categories in entries
        ],
    }
    return {"dialect": table_from_columns("dialect", columns, rows=len(entries))}


def _entries(account: Account, name: str) -> list[tuple[str, str, list[str]]]:
    """Id, prompt and categories of every entry that is as it should be; the account tells the others."""
    where = account.upstream.where(name)
    try:
        pairs = json.loads(account.read(name, FILE), object_pairs_hook=_Pairs)
    except ValueError as error:
        account.add(where, f"not readable as JSON ({error})")
        return []
    if not isinstance(pairs, _Pairs):
        account.add(where, "expected one JSON object keyed by id")
        return []
    account.count(where, "entries", len(pairs), account.source.expected[FILE])
    keys = [key for key, _ in pairs]
    account.unique(where, "id", pa.chunked_array([pa.array(keys, pa.string())]))
    entries: list[tuple[str, str, list[str]]] = []
    wrong: dict[str, list[int]] = {}
    for row, (key, value) in enumerate(pairs):
        try:
            entries.append((key, *_entry(value)))
        except InputError as error:
            wrong.setdefault(str(error), []).append(row)
    account.reasons(where, wrong)
    return entries


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with its keys in order, repeated ones too, which a dictionary would hide."""


def _entry(value: Any) -> tuple[str, list[str]]:
    fields = dict(value) if isinstance(value, _Pairs) else {}
    if set(fields) != {"prompt", "label"}:
        raise InputError(f"expected an entry with prompt and label, got {', '.join(sorted(fields)) or 'none'}")
    prompt, label = fields["prompt"], fields["label"]
    if not isinstance(prompt, str) or not prompt.strip():
        raise InputError("prompt is empty")
    if not isinstance(label, _Pairs) or not label:
        raise InputError("label holds no category")
    categories = []
    for key, _ in label:
        known = SUBCATEGORIES.get(key.rpartition("--")[2].replace("_", " ").strip().casefold())
        if known is None or "--" not in key:
            raise InputError(f"unknown category {key!r}, expected Primary--Sub with a Sub of {', '.join(SUBCATEGORIES.values())}")
        categories.append(known)
    return prompt.strip(), list(dict.fromkeys(categories))


SOURCE = Source(
    name="risky_prompt",
    title="T2I-RiskyPrompt",
    url="https://github.com/datar001/T2I-RiskyPrompt",
    license="unknown",
    revision=None,  # no commit that holds the file is known to us: what is read goes into every row
    counts={"dialect": 6_433},
    read=_read,
    default="https://github.com/datar001/T2I-RiskyPrompt/tree/main",
    expected={FILE: 6_433},
    sha256={FILE: None},
)
