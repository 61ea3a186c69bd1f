"""Tables 1 and 2 of the geographical study as rows of a dataset: published means to cite and to compare with, each with its source.

They are facts, printed means with their half-widths, and no prompts: so they have a schema of their own. An edition that has the config
``geo`` brings them along as the config ``geo_published``; ``t2i-parity build geo_published`` writes them alone. Both need no network:
the values stand in ``geo_published.jsonl``.
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

from t2i_parity.dataset_builder.countries import COUNTRIES
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.sources.geo import SOURCE
from t2i_parity.dataset_builder.storage import Folder, card_configs, parquet_bytes

if TYPE_CHECKING:
    from datasets import Features

NAME = "geo_published"
SPLIT = "test"
FILE = f"{NAME}/{SPLIT}-00000-of-00001.parquet"
PATTERN = f"{NAME}/{SPLIT}-*.parquet"
TITLE = "Published means of the geographical study, Tables 1 and 2"
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
    """One column of the dataset: name, type, meaning, and whether it says where a value comes from (then it is never null)."""

    name: str
    kind: str
    doc: str
    provenance: bool = False


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
    Column("source", "string", "the work that printed it", provenance=True),
    Column("source_id", "string", "the place there", provenance=True),
    Column("source_revision", "string", "the revision of the work", provenance=True),
    Column("source_url", "string", "where the work stands", provenance=True),
    Column("license", "string", "SPDX id of the work's licence", provenance=True),
    Column("derivation", "string", "verbatim: copied as printed", provenance=True),
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
                "source": SOURCE.title,
                "source_id": f"Table {each.table}, {COUNTRIES[each.country].name if each.country else 'Average'}",
                "source_revision": SOURCE.revision,
                "source_url": SOURCE.url,
                "license": SOURCE.license,
                "derivation": "verbatim",
            }
        )
    return pa.Table.from_pylist(rows, schema=features().arrow_schema)


def holds(rows: pa.Table) -> bool:
    """Whether a table is of these values: it has their columns, and no prompt.

    >>> holds(table()), holds(pa.table({"prompt": ["a cat"]}))
    (True, False)
    """
    return {"value_id", "measure", "value", "half_width"} <= set(rows.column_names) and "prompt" not in rows.column_names


def check(rows: pa.Table, *, where: str) -> None:
    """Raises InputError, naming ``where``, for a table that is not, value by value, what the study printed."""
    wanted = table()
    if rows.schema != wanted.schema:
        names = [name for name in dict.fromkeys((*wanted.column_names, *rows.column_names)) if _type(rows, name) != _type(wanted, name)]
        raise InputError(f"{where}: other columns or types than declared ({', '.join(names)}). Build the folder anew")
    if len(rows) != len(wanted):
        raise InputError(f"{where}: expected the {len(wanted):,} values that the study printed, got {len(rows):,}. Build the folder anew")
    for name in wanted.column_names:
        for row, (found, expected) in enumerate(zip(rows[name].to_pylist(), wanted[name].to_pylist(), strict=True)):
            if found != expected:
                raise InputError(f"{where}: row {row}, column {name}: expected {expected!r}, got {found!r}. Build the folder anew")


def _type(rows: pa.Table, name: str) -> pa.DataType | None:
    return rows.schema.field(name).type if name in rows.column_names else None


def write(out: Path) -> pa.Table:
    """Write the dataset and its card, so that ``load_dataset(out)`` opens it; returns the table.

    Raises InputError when ``out`` is a file, or holds another dataset.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out expects a folder to write the dataset into")
    if (out / "README.md").exists() and [entry.get("config_name") for entry in card_configs(out)] != [NAME]:
        raise InputError(f"{out} holds another dataset; give --out a folder of its own for {NAME}")
    from t2i_parity.cards.published import published_card

    rows = table()
    folder = Folder(str(out))
    folder.write(parquet_bytes(rows), FILE)
    front: dict[str, Any] = {
        "license": SOURCE.license.lower(),
        "pretty_name": "Published geographical representativeness, 27 countries",
        "tags": ["text-to-image", "evaluation", "geographic-bias"],
        "configs": [{"config_name": NAME, "default": True, "data_files": [{"split": SPLIT, "path": PATTERN}]}],
    }
    columns = [(column.name, column.doc) for column in COLUMNS]
    card = published_card(front, NAME, SPLIT, columns, len(rows), SOURCE.title, SOURCE.url)
    folder.write(card.encode("utf-8"), "README.md")
    return rows
