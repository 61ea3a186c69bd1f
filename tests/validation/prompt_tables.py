"""A small prompts repository without fault, and ways to plant one in it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from t2i_parity.cards.validation import Validation
from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.storage import decode_classes
from t2i_parity.validation.prompts.model import Prompts
from t2i_parity.validation.prompts.runner import validate

SOURCE = "somebody's prompts"
"""A source that no design is declared for, so that few rows are no fault."""
MEANINGS = {"lingt2i_content": 6, "lingt2i_text": 6, "dialect": 6, "dialect_crosslingual": 8, "geo": 3}

Place = tuple[str, int]
Tables = dict[str, pa.Table]


@cache
def _clean() -> Mapping[str, pa.Table]:
    made = {}
    for config, full in starter.tables().items():
        rows = decode_classes(full).to_pylist()
        pairs = list(dict.fromkeys(row["pair_id"] for row in rows))[: MEANINGS[config]]
        made[config] = table(config, [{**row, "source": SOURCE} for row in rows if row["pair_id"] in pairs])
    return made


def clean() -> Tables:
    """Every config with its first few meanings in every language, variety and country."""
    return dict(_clean())


def row(tables: Tables, config: str, **wanted: Any) -> int:
    """The first row that has these values."""
    for number, values in enumerate(decode_classes(tables[config]).to_pylist()):
        if all(values[name] == value for name, value in wanted.items()):
            return number
    raise AssertionError(wanted)


def value(tables: Tables, config: str, number: int, column: str) -> Any:
    """A cell."""
    return tables[config][column][number].as_py()


def put(tables: Tables, config: str, number: int, column: str, new: Any) -> None:
    """Another value in a cell; a prompt keeps its hash, and a text to be rendered its prompt, so that only one thing is wrong."""
    prompts = tables[config]
    if column == "render_text":
        prompt = value(tables, config, number, "prompt").replace(value(tables, config, number, column), new)
        put(tables, config, number, "prompt", prompt)
        prompts = tables[config]
    place = prompts.column_names.index(column)
    values = prompts[column].to_pylist()
    values[number] = new
    prompts = prompts.set_column(place, prompts.schema.field(column), pa.array(values, prompts.schema.field(column).type))
    if column == "prompt" and new is not None and "text_sha256" in prompts.column_names:
        hashes = prompts["text_sha256"].to_pylist()
        hashes[number] = hashlib.sha256(new.encode("utf-8")).hexdigest()
        where = prompts.column_names.index("text_sha256")
        prompts = prompts.set_column(where, prompts.schema.field("text_sha256"), pa.array(hashes, pa.string()))
    tables[config] = prompts


def change(tables: Tables, config: str, number: int, column: str, new: Callable[[Any], Any]) -> None:
    """``put`` of what ``new`` makes of the value."""
    put(tables, config, number, column, new(value(tables, config, number, column)))


def drop(tables: Tables, config: str, numbers: Iterable[int]) -> None:
    """Take rows out."""
    gone = set(numbers)
    tables[config] = tables[config].take([number for number in range(len(tables[config])) if number not in gone])


def found(tables: Mapping[str, pa.Table], licence: str | None = "other", config: str | None = None) -> Validation:
    """What the checks say."""
    return validate(Prompts("planted", tables, licence), config)


def told(report: Validation) -> set[tuple[str, str, str, int | None, str | None]]:
    """Findings as (check, severity, config, row, column)."""
    return {(finding.check, finding.severity, finding.config, finding.row, finding.column) for finding in report.findings}
