"""The table itself: declared columns and types, declared values, ids that are unique, texts that are the ones hashed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

import pyarrow as pa

from t2i_parity.dataset_builder.countries import countries
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.schema import CONFIGS, DIMENSIONS, MINIMUM, Column, text_hashes
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.validation.prompts.model import Check, Fault, Rows
from t2i_parity.validation.prompts.texts import shorten

DECLARED: Mapping[str, tuple[Collection[str], str]] = {
    "language": (LANGUAGES, "dataset_builder/languages.py"),
    "variety": (VARIETIES, "dataset_builder/varieties.py"),
    "dimension": (DIMENSIONS, "dataset_builder/schema.py"),
    "country": (countries("all"), "dataset_builder/countries.py"),
}


def declared(rows: Rows) -> tuple[Column, ...]:
    """The columns that a config must have: those of its declaration, or of any dataset of prompts for a config of somebody else's."""
    return CONFIGS[rows.config].all_columns if rows.config in CONFIGS else MINIMUM


def _columns(rows: Rows) -> Iterator[Fault]:
    columns = declared(rows)
    there = rows.table.column_names
    missing = [column for column in columns if column.name not in there]
    for column in missing:
        yield Fault(None, column.name, "no such column", column.doc, "build the prompts anew, or add the column")
    if not len(rows):
        yield Fault(None, None, "no rows", "at least one row", "build the prompts anew")
    if rows.config in CONFIGS:
        schema = CONFIGS[rows.config].arrow_schema()
        for name in there:
            if name not in schema.names:
                known = "a column that dataset_builder/schema.py declares"
                yield Fault(None, name, "a column that is not declared", known, "drop the column, or declare it", "warning")
    else:
        schema = pa.schema([(column.name, pa.string()) for column in columns])
    for column in columns:
        if column.name not in there:
            continue
        wanted, found = schema.field(column.name).type, rows.table.schema.field(column.name).type
        if not same(wanted, found) and not (isinstance(column.kind, tuple) and same(pa.string(), found)):
            yield Fault(None, column.name, f"type {found}", f"type {wanted}", "write the column with dataset_builder.schema.table")
            continue
        if isinstance(column.kind, tuple) and pa.types.is_integer(found) and column.name not in rows.classes:
            yield Fault(
                None, column.name, f"{found} without class names", ", ".join(column.kind), "write the table with its datasets features"
            )
        if not column.nullable and rows.table[column.name].null_count:
            for number, valid in enumerate(rows.table[column.name].is_valid().to_pylist()):
                if not valid:
                    yield Fault(number, column.name, "null", column.doc, "fill it in, or drop the row")


def same(wanted: pa.DataType, found: pa.DataType) -> bool:
    return bool(wanted == found) or (pa.types.is_string(wanted) and pa.types.is_large_string(found))


def _values(rows: Rows) -> Iterator[Fault]:
    # A wrong code usually stands in many rows; every one is named, since each is to be mended.
    for name, (known, place) in DECLARED.items():
        if name not in rows.usable or (name == "dimension" and rows.config not in CONFIGS):
            continue
        for number, value in enumerate(rows[name]):
            if value is not None and value not in known:
                yield Fault(number, name, shorten(value), f"one of {', '.join(known)}", f"correct it, or declare it in {place}")
    for column in declared(rows):
        if not isinstance(column.kind, tuple) or column.name not in rows.usable:
            continue
        raw = rows.table[column.name].to_pylist()
        for number, value in enumerate(rows[column.name]):
            if raw[number] is not None and value not in column.kind:
                yield Fault(number, column.name, str(raw[number]), f"one of {', '.join(column.kind)}", "give it one of these classes")
    if "variety" in rows.usable:
        for number, (variety, language) in enumerate(zip(rows["variety"], rows["language"], strict=True)):
            if variety in VARIETIES and language in LANGUAGES and VARIETIES[variety].language != language:
                wanted = f"{VARIETIES[variety].language}, the language of {variety}"
                yield Fault(number, "language", language, wanted, "correct the language or the variety")
    if "script" in rows.usable:
        for number, (script, language, derivation) in enumerate(zip(rows["script"], rows["language"], rows["derivation"], strict=True)):
            if script is not None and language in LANGUAGES and derivation != "transliterated" and script != LANGUAGES[language].script:
                wanted = f"{LANGUAGES[language].script}, the script of {LANGUAGES[language].name}"
                yield Fault(number, "script", shorten(script), wanted, "correct the script or the language")


def _ids(rows: Rows) -> Iterator[Fault]:
    fix = "drop one of the rows, or give it an id of its own"
    first: dict[str, int] = {}
    for number, prompt_id in enumerate(rows["prompt_id"]):
        if prompt_id is None:
            continue
        if prompt_id in first:
            yield Fault(number, "prompt_id", shorten(prompt_id), f"an id that row {first[prompt_id]} has not", fix)
        first.setdefault(prompt_id, number)
    # An id that stands in two configs is told of the later one.
    for name, other in rows.prompts.configs.items():
        if name == rows.config:
            break
        for prompt_id in sorted(set(other["prompt_id"]).intersection(first)):
            wanted = f"an id that config {name} has not"
            yield Fault(first[prompt_id], "prompt_id", shorten(prompt_id), wanted, fix)


def _hashes(rows: Rows) -> Iterator[Fault]:
    wanted = text_hashes(rows.table["prompt"]).to_pylist()
    fix = "the prompt was changed after it was built: build the prompts anew"
    for number, (found, hashed) in enumerate(zip(rows["text_sha256"], wanted, strict=True)):
        if hashed is not None and found is not None and found != hashed:
            yield Fault(number, "text_sha256", shorten(found), f"{hashed}, the SHA-256 of the prompt", fix)


def _derived_from(rows: Rows) -> Iterator[Fault]:
    places: dict[str, tuple[str, int]] = {}
    for name, other in rows.prompts.configs.items():
        for number, prompt_id in enumerate(other["prompt_id"]):
            if prompt_id is not None:
                places.setdefault(prompt_id, (name, number))
    fix = "name the prompt_id of the row that it was made from, or null"
    for number, parent in enumerate(rows["derived_from"]):
        if parent is None:
            continue
        if parent not in places:
            yield Fault(number, "derived_from", shorten(parent), "the prompt_id of a row of this repository", fix)
        elif parent == rows["prompt_id"][number]:
            yield Fault(number, "derived_from", shorten(parent), "another row than this one", fix)
        elif _loops(rows, number, places):
            yield Fault(number, "derived_from", shorten(parent), "a chain that ends at an original", "break the circle of derivations")


def _loops(rows: Rows, number: int, places: Mapping[str, tuple[str, int]]) -> bool:
    """Whether following ``derived_from`` from a row comes back to it."""
    start = (rows.config, number)
    at, seen = start, {start}
    while True:
        config, place = at
        parent = rows.prompts.configs[config]["derived_from"][place]
        if parent is None or parent not in places:
            return False
        at = places[parent]
        if at == start:
            return True
        if at in seen:
            return False
        seen.add(at)


CHECKS = (
    Check("columns", "error", "every declared column is there, of its type, without nulls where none may stand", _columns, ()),
    Check("values", "error", "languages, varieties, scripts, dimensions, countries and classes are declared ones", _values, ()),
    Check("ids", "error", "prompt_id is unique, also over configs", _ids, ("prompt_id",)),
    Check("text_sha256", "error", "text_sha256 is the hash of the prompt", _hashes, ("prompt", "text_sha256")),
    Check(
        "derived_from", "error", "derived_from names a row of the repository, without circles", _derived_from, ("derived_from", "prompt_id")
    ),
)
