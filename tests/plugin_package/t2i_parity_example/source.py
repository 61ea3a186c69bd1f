"""A source of prompts: pairs in two varieties of English, from a table that comes with this package or lies in another folder."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.dataset_builder.sources.base import Account, Source

VARIETIES = ("SAE", "AAVE")


def _read(source: Source, place: str, part: str) -> dict[str, pa.Table]:
    account = Account(source, place)
    name = account.first("pairs.csv")
    found = None if name is None else account.csv(name, ("id", "label", *VARIETIES))
    account.count(place, "pairs", 0 if found is None else len(found), source.expected["pairs"])
    account.close()
    rows = [
        {
            **source.provenance(),
            "prompt_id": f"{source.name}-{row['id']}-{variety}",
            "pair_id": f"{source.name}-{row['id']}",
            "prompt": row[variety],
            "language": "en",
            "variety": variety,
            "subset": source.name,
            "label": row["label"],
            "source_id": row["id"],
            "source_revision": account.revision(),
            "derivation": "verbatim",
            "producer": "the authors of the example",
        }
        for row in (found.to_pylist() if found is not None else [])
        for variety in VARIETIES
    ]
    return {"dialect": table("dialect", rows)}


SOURCE = SOURCES.entry("example_pairs", "eight pairs in two varieties of English")(
    Source(
        name="example_pairs",
        title="Example pairs",
        url="https://example.org/pairs",
        license="CC0-1.0",
        revision="1",
        counts={"dialect": 16},
        read=_read,
        default=str(Path(__file__).parent),
        expected={"pairs": 8},
    )
)
