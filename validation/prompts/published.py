"""The config of published values: no prompts, so it has a few checks of its own instead of theirs."""

from __future__ import annotations

from collections.abc import Iterator

from t2i_parity.dataset_builder.geo_published import COLUMNS, NAME, features, table
from t2i_parity.validation.prompts.model import Check, Fault, Rows
from t2i_parity.validation.prompts.table import same
from t2i_parity.validation.prompts.texts import shorten

ANEW = "build the folder anew"


def is_published(rows: Rows) -> bool:
    """Whether the config is that of the published values."""
    return rows.config == NAME


def _schema(rows: Rows) -> Iterator[Fault]:
    there, schema = rows.table.column_names, features().arrow_schema
    for column in COLUMNS:
        if column.name not in there:
            yield Fault(None, column.name, "no such column", column.doc, ANEW)
        elif not same(wanted := schema.field(column.name).type, found := rows.table.schema.field(column.name).type):
            yield Fault(None, column.name, f"type {found}", f"type {wanted}", ANEW)
    for name in there:
        if name not in schema.names:
            known = "a column that dataset_builder/geo_published.py declares"
            yield Fault(None, name, "a column that is not declared", known, "drop the column, or declare it", "warning")


def _values(rows: Rows) -> Iterator[Fault]:
    printed = {row["value_id"]: row for row in table().to_pylist()}
    if len(rows) != len(printed):
        yield Fault(None, None, f"{len(rows):,} rows", f"{len(printed):,}, one for each printed mean", ANEW)
    names = [column.name for column in COLUMNS if not column.provenance and column.name in rows.table.column_names]
    seen: set[str] = set()
    for number, row in enumerate(rows.table.select(names).to_pylist()):
        value_id = row["value_id"]
        if value_id not in printed:
            yield Fault(number, "value_id", shorten(str(value_id)), "the id of a printed mean", ANEW)
            continue
        if value_id in seen:
            yield Fault(number, "value_id", shorten(value_id), "an id that no other row has", ANEW)
        seen.add(value_id)
        for name in names:
            if row[name] != printed[value_id][name]:
                yield Fault(number, name, shorten(str(row[name])), f"{printed[value_id][name]}, as printed", ANEW)


def _provenance(rows: Rows) -> Iterator[Fault]:
    for column in COLUMNS:
        if column.provenance and column.name in rows.usable:
            for number, value in enumerate(rows[column.name]):
                if not value:
                    yield Fault(number, column.name, "nothing", column.doc, ANEW)
                elif column.name == "derivation" and value != "verbatim":
                    yield Fault(number, column.name, shorten(value), column.doc, ANEW)


CHECKS = (
    Check("published_columns", "error", "every declared column of the published values is there, of its type", _schema, ()),
    Check("published_values", "error", "every mean that the study printed stands there once, as printed", _values, ("value_id",)),
    Check("published_provenance", "error", "every published value says where it was printed and under which licence", _provenance, ()),
)
