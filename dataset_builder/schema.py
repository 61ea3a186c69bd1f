"""The prompt row: every column and every config of ``t2i-parity-prompts``, each declared once.

From these declarations come the parquet schema, the ``datasets`` features, the columns' documentation in the card and the checks
that every table passes before it is written or used.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES

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
                Column("verbatim_prompt", "string", "the prompt as its source has it, with a placeholder where the text goes, or null"),
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


def text_hashes(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """``text_sha256`` of every text, null for a null, straight from the column's buffer."""
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    sha256 = hashlib.sha256
    digests: list[str] = []
    for chunk in (chunk.cast(pa.large_string()) for chunk in chunks if len(chunk)):
        _, offsets, content = chunk.buffers()
        bounds = np.frombuffer(offsets, np.int64)[chunk.offset : chunk.offset + len(chunk) + 1].tolist()
        text = memoryview(content or b"")
        digests += [sha256(text[start:stop]).hexdigest() for start, stop in itertools.pairwise(bounds)]
    hashed = pa.array(digests, pa.string())
    return pc.if_else(texts.is_valid(), hashed, pa.scalar(None, pa.string())) if texts.null_count else hashed


class Check(TypedDict):
    """What was checked on a prompt: by which check, with which verdict or number, by whom."""

    check: str
    verdict: str | None
    score: float | None
    by: str | None


Row: TypeAlias = Mapping[str, Any]
"""A row of any config, class names as strings: which columns it has, the config says."""
NewRow: TypeAlias = dict[str, Any]
"""A row that is being put together."""
Values: TypeAlias = str | Sequence[Any] | pa.Array | pa.ChunkedArray | None
"""A column: one value a row, or a single string (or None) that stands in every row."""


def table(config_name: str, rows: Iterable[Row]) -> pa.Table:
    """Rows (dictionaries with class names as strings) as a checked table of the config's schema: ``table_from_columns``, transposed."""
    names = {column.name for column in config(config_name).all_columns}
    found = list(rows)
    for number, row in enumerate(found):
        if not row.keys() <= names:
            unknown = ", ".join(sorted(row.keys() - names))
            raise InputError(f"row {number} of config {config_name} has columns that are not declared: {unknown}")
    given = dict.fromkeys(name for row in found for name in row)
    columns: dict[str, Values] = {name: [row.get(name) for row in found] for name in given}
    if "checks" in columns:
        columns["checks"] = [row.get("checks") or [] for row in found]
    return table_from_columns(config_name, columns, rows=len(found))


def table_from_columns(config_name: str, columns: Mapping[str, Values], *, rows: int) -> pa.Table:
    """Columns (class names as strings) as a checked table of the config's schema with so many rows.

    ``script`` (where it is not given) and ``text_sha256`` are filled in, ``checks`` defaults to an empty list, nullable columns to null.
    Raises InputError, naming row and column, for a class name that is not declared and for what ``check_table`` refuses.
    """
    declared = config(config_name)
    unknown = set(columns) - {column.name for column in declared.all_columns}
    if unknown:
        raise InputError(f"config {config_name} has no columns named {', '.join(sorted(unknown))}")
    schema = declared.arrow_schema()
    types = {column.name: schema.field(column.name).type for column in declared.all_columns}
    built: dict[str, pa.Array | pa.ChunkedArray] = {}
    for column in declared.all_columns:
        if isinstance(column.kind, tuple):
            names = _column(columns.get(column.name), pa.string(), rows)
            built[column.name] = _encoded(names, column.kind, f"config {config_name}", column.name)
        elif column.kind == "checks" and column.name not in columns:
            built[column.name] = _empty_lists(types[column.name], rows)
        else:
            built[column.name] = _column(columns.get(column.name), types[column.name], rows)
    scripts = pa.array([language.script for language in LANGUAGES.values()])
    # A transliterated text is not in its language's own script, and says so.
    built["script"] = pc.coalesce(built["script"], scripts.take(pc.index_in(built["language"], value_set=pa.array(list(LANGUAGES)))))
    built["text_sha256"] = text_hashes(built["prompt"])
    done = pa.table(built, schema=schema).combine_chunks()
    _check(done, declared.all_columns, f"config {config_name}", hashed=True)
    return done


def _column(values: Values, kind: pa.DataType, rows: int) -> pa.Array | pa.ChunkedArray:
    if values is None or isinstance(values, str):
        return pa.repeat(pa.scalar(values, kind), rows)
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values if values.type == kind else values.cast(kind)
    return pa.array(values, kind)


def _empty_lists(kind: pa.DataType, rows: int) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.zeros(rows + 1, np.int32)), pa.array([], kind.value_type), type=kind)


def _encoded(names: pa.Array | pa.ChunkedArray, classes: tuple[str, ...], where: str, column: str) -> pa.Array | pa.ChunkedArray:
    codes = pc.index_in(names, value_set=pa.array(classes)).cast(pa.int64())
    if codes.null_count:
        row = pc.index(codes.is_null(), True).as_py()
        raise InputError(f"row {row} of {where}, column {column}: expected one of {', '.join(classes)}, got {names[row].as_py()!r}")
    return codes


def check_table(rows: pa.Table, columns: Iterable[Column], *, where: str) -> None:
    """What every prompts table must hold before anything is built on it; ``columns`` are those that the work at hand needs.

    Raises InputError, naming ``where``, the row and the column, for a missing column, a null where none may stand, an undeclared
    language or variety, a duplicate ``prompt_id`` or a ``text_sha256`` that is not the prompt's.
    """
    _check(rows, list(columns), where, hashed=False)


def _check(rows: pa.Table, needed: Sequence[Column], where: str, *, hashed: bool) -> None:
    """``check_table``; ``hashed`` says that ``text_sha256`` was made from the prompts just now."""
    for column, known, place in (("language", LANGUAGES, "languages.py"), ("variety", VARIETIES, "varieties.py")):
        if column in rows.column_names:
            _known(rows, column, known, where, f"dataset_builder/{place}")
    check_columns(rows, needed, where=where)
    if len(rows["prompt_id"].unique()) != len(rows):
        first: dict[str, int] = {}
        for number, prompt_id in enumerate(rows["prompt_id"].to_pylist()):
            if prompt_id in first:
                raise InputError(
                    f"{where}: rows {first[prompt_id]} and {number} have the same prompt_id {prompt_id!r}; ids must be unique. "
                    "Drop one of the rows, or give it an id of its own"
                )
            first[prompt_id] = number
    if hashed or "text_sha256" not in rows.column_names:
        return
    expected, found = text_hashes(rows["prompt"]), rows["text_sha256"].cast(pa.string())
    agree = pc.fill_null(pc.equal(found, expected), False)
    if not pc.all(agree, min_count=0).as_py():
        row = pc.index(agree, False).as_py()
        raise InputError(
            f"{where}: row {row}, column text_sha256: expected {expected[row].as_py()}, the SHA-256 of the row's prompt, "
            f"got {found[row].as_py()}; the prompt was changed after it was built. Build the prompts anew"
        )


def check_columns(rows: pa.Table, needed: Iterable[Column], *, where: str) -> None:
    """Raise InputError, naming ``where`` and the column, for one that is not there, and the row of a null where none may stand."""
    needed = list(needed)
    missing = [column.name for column in needed if column.name not in rows.column_names]
    if missing:
        raise InputError(
            f"{where}: missing column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; found {', '.join(rows.column_names)}. "
            "Name a config that has them, or build the prompts anew with: t2i-parity build --edition starter --out DIR"
        )
    for column in needed:
        values = rows[column.name]
        if not column.nullable and values.null_count:
            row = pc.index(values.is_null(), True).as_py()
            raise InputError(f"{where}: row {row}, column {column.name} is null, and this column may not be. Fill it in, or drop the row")


def _known(rows: pa.Table, column: str, declared: Mapping[str, object], where: str, place: str) -> None:
    for value in rows[column].unique().to_pylist():
        if value is not None and value not in declared:
            raise InputError(
                f"{where}: row {rows[column].to_pylist().index(value)}, column {column}: unknown {column} {value!r}, "
                f"expected one of {', '.join(declared)}. A new one is one entry in {place}, or in a file of your own: --vocabulary FILE"
            )
