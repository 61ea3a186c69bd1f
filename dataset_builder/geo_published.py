"""Tables 1 and 2 of the geographical study as rows of a dataset: published means to cite and to compare with, each with its source.

They are facts, printed means with their half-widths, and no prompts: so they are a dataset of their own with a schema of its own, which
``t2i-parity build geo_published`` writes, offline. The values stand in ``geo_published.jsonl``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dataset_builder.countries import COUNTRIES
from dataset_builder.errors import InputError
from dataset_builder.sources import geo
from dataset_builder.storage import Folder, parquet_bytes

if TYPE_CHECKING:
    from datasets import Features

NAME = "geo_published"
SPLIT = "test"
OVERALL = "overall"
"""What stands for the model where a mean is over both models."""


@dataclass(frozen=True, slots=True)
class Published:
    """One printed mean and the half-width beside it, as printed; ``country`` is None for the average over the 27."""

    table: int
    country: str | None
    measure: str
    model: str | None
    condition: str | None
    value: float
    half_width: float


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the dataset: name, type, meaning."""

    name: str
    kind: str
    doc: str


COLUMNS: tuple[Column, ...] = (
    Column("value_id", "string", "stable id, unique"),
    Column(
        "measure", "string", "representativeness or realism (mean ratings from 1 to 5), or influence: how much realism swayed the ratings"
    ),
    Column("country", "string", "ISO 3166-1 alpha-3 of the raters' country, null for the average over the 27"),
    Column("country_name", "string", "its name in the study, null for the average"),
    Column("model", "string", "DALL·E 2, Stable Diffusion, or overall; null for influence"),
    Column("condition", "string", "country: the prompt named the raters' country; else unspecified; null for influence"),
    Column("value", "float64", "the mean, as printed"),
    Column("half_width", "float64", "what is printed after ±; the study does not say which interval it is"),
    Column("note", "string", "what is known about the printed value, or null"),
    Column("source", "string", "the work that printed it"),
    Column("source_id", "string", "the place there"),
    Column("source_revision", "string", "the revision of the work"),
    Column("source_url", "string", "where the work stands"),
    Column("license", "string", "SPDX id of the work's licence"),
    Column("derivation", "string", "verbatim: copied as printed"),
)
NOTES: Mapping[int, str] = {
    1: "the table's heading sets the symbol p over the columns with a country and p_c over those without; its words are right",
}


@cache
def published() -> tuple[Published, ...]:
    """Every printed mean of both tables, in their order.

    >>> published()[0].value, len(published())
    (3.54, 308)
    """
    text = (resources.files(__package__) / f"{NAME}.jsonl").read_text(encoding="utf-8")
    return tuple(Published(**json.loads(line)) for line in text.splitlines())


def features() -> Features:
    """The ``datasets`` features."""
    from datasets import Features, Value

    return Features({column.name: Value(column.kind) for column in COLUMNS})


def table() -> pa.Table:
    """The dataset."""
    rows = []
    for each in published():
        model = {None: "both", OVERALL: OVERALL, "DALL·E 2": "dalle2", "Stable Diffusion": "sd"}[each.model]
        key = f"table{each.table}-{each.country or 'average'}-{model}-{each.condition or 'both'}"
        rows.append(
            {
                "value_id": f"{NAME}-{key}",
                "measure": each.measure,
                "country": each.country,
                "country_name": COUNTRIES[each.country].name if each.country else None,
                "model": each.model,
                "condition": each.condition,
                "value": each.value,
                "half_width": each.half_width,
                "note": NOTES.get(each.table),
                "source": geo.SOURCE.title,
                "source_id": f"Table {each.table}, {COUNTRIES[each.country].name if each.country else 'Average'}",
                "source_revision": geo.SOURCE.revision,
                "source_url": geo.SOURCE.url,
                "license": geo.SOURCE.license,
                "derivation": "verbatim",
            }
        )
    return pa.Table.from_pylist(rows, schema=features().arrow_schema)


def write(out: Path) -> pa.Table:
    """Write the dataset and its card, so that ``load_dataset(out)`` opens it; returns the table.

    Raises InputError when ``out`` is a file, or holds another dataset.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out expects a folder to write the dataset into")
    if (out / "README.md").exists() and not (out / NAME).is_dir():
        raise InputError(f"{out} holds another dataset; give --out a folder of its own for {NAME}")
    from cards.published import published_card

    rows = table()
    folder = Folder(str(out))
    path = f"{NAME}/{SPLIT}-00000-of-00001.parquet"
    folder.write(parquet_bytes(rows), path)
    front: dict[str, Any] = {
        "license": geo.SOURCE.license.lower(),
        "pretty_name": "Published geographical representativeness, 27 countries",
        "tags": ["text-to-image", "evaluation", "geographic-bias"],
        "configs": [{"config_name": NAME, "default": True, "data_files": [{"split": SPLIT, "path": f"{NAME}/{SPLIT}-*.parquet"}]}],
    }
    columns = [(column.name, column.doc) for column in COLUMNS]
    card = published_card(front, NAME, SPLIT, columns, len(rows), geo.SOURCE.title, geo.SOURCE.url)
    folder.write(card.encode("utf-8"), "README.md")
    return rows
