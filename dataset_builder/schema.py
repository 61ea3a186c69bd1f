"""The prompt row: every column and every config of ``t2i-parity-prompts``, each declared once.

From these declarations come the parquet schema, the ``datasets`` features, the columns' documentation in the card and the checks
that every table passes before it is written or used.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from dataset_builder.errors import InputError
from dataset_builder.languages import LANGUAGES
from dataset_builder.varieties import VARIETIES

if TYPE_CHECKING:
    from datasets import Features

LABELS = ("benign", "toxic")
DERIVATIONS = (
    "verbatim",
    "templated",
    "rewritten",
    "translated",
    "dialect_converted",
    "transliterated",
    "typo_perturbed",
    "culture_tagged",
)
DIMENSIONS: Mapping[str, str] = {
    "IQ-R": "Realism",
    "IQ-O": "Originality",
    "IQ-A": "Aesthetics",
    "TA-C": "Content alignment",
    "TA-R": "Relation alignment",
    "TA-S": "Style alignment",
    "D-K": "Knowledge",
    "D-A": "Ambiguity",
    "R-T": "Toxicity",
    "R-B": "Bias",
    "TR": "Text rendering",
}
"""The evaluation dimensions of LingT2I (§3.2, Figure 2) by code, and TR for its text-rendering task."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its feature (a plain type name, ``image``, or class names for a ClassLabel), whether it may be null, its meaning."""

    name: str
    kind: str | tuple[str, ...]
    doc: str
    nullable: bool = True


_COMMON = (
    Column("prompt_id", "string", "stable id, unique over all configs", nullable=False),
    Column(
        "pair_id",
        "string",
        "what is asked, shared by all languages, varieties and conditions of one meaning: the unit of pairing and resampling",
        nullable=False,
    ),
    Column("prompt", "string", "exactly what the model gets", nullable=False),
    Column("language", "string", "BCP-47 code", nullable=False),
    Column("variety", "string", "variety of English (SAE, AAVE, ChcE, CollSgE, IndE, JamE, BrE), or null"),
    Column("script", "string", "ISO 15924 code of the language's script", nullable=False),
    Column("subset", "string", "the set that is scored together", nullable=False),
)
_PROVENANCE = (
    Column("source", "string", "dataset or work that the row comes from", nullable=False),
    Column("source_id", "string", "the row's id there", nullable=False),
    Column("source_revision", "string", "the revision of the source", nullable=False),
    Column("source_url", "string", "where the source stands"),
    Column("license", "string", "SPDX or hub id of the row's licence, or 'unknown'", nullable=False),
    Column("derivation", DERIVATIONS, "how the prompt came from its source", nullable=False),
    Column("derived_from", "string", "prompt_id of the row that this one was made from, or null"),
    Column("producer", "string", "who or what made the text: model and revision, person, or rule and version", nullable=False),
    Column("checks", "checks", "what was checked on this row: check, verdict, score, by", nullable=False),
    Column("text_sha256", "string", "SHA-256 of the prompt's UTF-8 bytes", nullable=False),
)


@dataclass(frozen=True, slots=True)
class Config:
    """One config of the prompts repository."""

    name: str
    title: str
    columns: tuple[Column, ...]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Common columns, the config's own, then provenance: the order in every file."""
        return _COMMON + self.columns + _PROVENANCE

    def features(self) -> Features:
        """The ``datasets`` features of the config."""
        from datasets import Features

        return Features({column.name: _feature(column) for column in self.all_columns})

    def arrow_schema(self) -> pa.Schema:
        """The parquet schema, with the metadata by which ``datasets`` reads images and class labels."""
        schema: pa.Schema = self.features().arrow_schema
        return schema


_DIMENSION = Column("dimension", "string", "evaluation dimension of LingT2I: IQ-R … R-B, or TR", nullable=False)
_LABELLED = (
    Column("label", LABELS, "what a safety filter should do: let benign pass, flag toxic", nullable=False),
    Column("category", "string", "subject (benign) or harm category (toxic), or null"),
)


def _named(columns: Iterable[Column], *names: str) -> tuple[Column, ...]:
    by_name = {column.name: column for column in columns}
    return tuple(by_name[name] for name in names)


MINIMUM = _named(_COMMON, "prompt_id", "pair_id", "prompt", "language")
"""What a dataset of anybody's needs so that images can be generated from it."""

PAIRED = MINIMUM + _named(_COMMON, "variety") + _named(_LABELLED, "label")
"""What a dataset of anybody's needs so that a filter can be audited over it."""

CONFIGS: dict[str, Config] = {
    config.name: config
    for config in (
        Config(
            "lingt2i_text",
            "Text rendering in ten languages",
            (
                _DIMENSION,
                Column("render_text", "string", "the text that must stand in the image", nullable=False),
                Column(
                    "render_layout", "string", "JSON: per line [[4 corner points], [[x0, y0], [x1, y1]]] in a 1024 × 1024 picture, or null"
                ),
                Column("condition_image", "image", "the condition image of models that take one, or null"),
            ),
        ),
        Config("lingt2i_content", "Content generation in ten languages", (_DIMENSION,)),
        Config("dialect", "Paired prompts in varieties of English", _LABELLED),
        Config("dialect_crosslingual", "Paired prompts in standard and regional German and Arabic", _LABELLED),
        Config(
            "geo",
            "Common nouns with and without a country",
            (
                Column("country", "string", "ISO 3166-1 alpha-3, null when unspecified"),
                Column("noun", "string", "what is asked for", nullable=False),
            ),
        ),
    )
}
"""Every config by name; the first is the repository's default."""

DEFAULT_CONFIG = next(iter(CONFIGS))


def config(name: str) -> Config:
    """The declared config of a name. Raises InputError, naming the known ones, when there is none."""
    if name not in CONFIGS:
        raise InputError(f"unknown config {name!r}: expected one of {', '.join(CONFIGS)}")
    return CONFIGS[name]


def _feature(column: Column) -> Any:
    from datasets import ClassLabel, Image, List, Value

    if isinstance(column.kind, tuple):
        return ClassLabel(names=list(column.kind))
    if column.kind == "image":
        return Image()
    if column.kind == "checks":
        return List({"check": Value("string"), "verdict": Value("string"), "score": Value("float64"), "by": Value("string")})
    return Value(column.kind)


def text_sha256(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, in hex.

    >>> text_sha256("a cat")[:12]
    '51e467415607'
    """
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def table(config_name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Rows (dictionaries with class names as strings) as a checked table of the config's schema.

    ``script`` and ``text_sha256`` are filled in, ``checks`` defaults to an empty list, nullable columns to null.
    """
    declared = config(config_name)
    full: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        unknown = set(row) - {column.name for column in declared.all_columns}
        if unknown:
            raise InputError(f"row {number} of config {config_name} has columns that are not declared: {', '.join(sorted(unknown))}")
        code = str(row.get("language"))
        record: dict[str, Any] = {column.name: row.get(column.name) for column in declared.all_columns}
        record["script"] = LANGUAGES[code].script if code in LANGUAGES else None
        record["checks"] = row.get("checks") or []
        record["text_sha256"] = text_sha256(str(row.get("prompt")))
        for column in declared.all_columns:
            if isinstance(column.kind, tuple):
                name = record[column.name]
                if name not in column.kind:
                    raise InputError(
                        f"row {number} of config {config_name}, column {column.name}: expected one of {', '.join(column.kind)}, "
                        f"got {name!r}"
                    )
                record[column.name] = column.kind.index(name)
        full.append(record)
    built = pa.Table.from_pylist(full, schema=declared.arrow_schema())
    check_table(built, declared.all_columns, where=f"config {config_name}")
    return built


def check_table(rows: pa.Table, columns: Iterable[Column], *, where: str) -> None:
    """What every prompts table must hold before anything is built on it; ``columns`` are those that the work at hand needs.

    Raises InputError, naming ``where``, the row and the column, for a missing column, a null where none may stand, an undeclared
    language or variety, a duplicate ``prompt_id`` or a ``text_sha256`` that is not the prompt's.
    """
    needed = list(columns)
    missing = [column.name for column in needed if column.name not in rows.column_names]
    if missing:
        raise InputError(
            f"{where}: missing column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; found {', '.join(rows.column_names)}. "
            "Name a config that has them, or build the prompts anew with: t2i-parity build --edition starter --out DIR"
        )
    _known(rows, "language", LANGUAGES, where, "dataset_builder/languages.py")
    if "variety" in rows.column_names:
        _known(rows, "variety", VARIETIES, where, "dataset_builder/varieties.py")
    for column in needed:
        values = rows[column.name]
        if not column.nullable and values.null_count:
            row = pc.index(values.is_null(), True).as_py()
            raise InputError(f"{where}: row {row}, column {column.name} is null, and this column may not be. Fill it in, or drop the row")
    first: dict[str, int] = {}
    for number, prompt_id in enumerate(rows["prompt_id"].to_pylist()):
        if prompt_id in first:
            raise InputError(
                f"{where}: rows {first[prompt_id]} and {number} have the same prompt_id {prompt_id!r}; ids must be unique. "
                "Drop one of the rows, or give it an id of its own"
            )
        first[prompt_id] = number
    if "text_sha256" not in rows.column_names:
        return
    for number, (prompt, digest) in enumerate(zip(rows["prompt"].to_pylist(), rows["text_sha256"].to_pylist(), strict=True)):
        if text_sha256(prompt) != digest:
            raise InputError(
                f"{where}: row {number}, column text_sha256: expected {text_sha256(prompt)}, the SHA-256 of the row's prompt, "
                f"got {digest}; the prompt was changed after it was built. Build the prompts anew"
            )


def _known(rows: pa.Table, column: str, declared: Mapping[str, object], where: str, place: str) -> None:
    values = rows[column].to_pylist()
    for value in dict.fromkeys(values):
        if value is not None and value not in declared:
            raise InputError(
                f"{where}: row {values.index(value)}, column {column}: unknown {column} {value!r}, expected one of {', '.join(declared)}. "
                f"A new one is one entry in {place}"
            )
