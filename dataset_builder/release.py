"""What of a built folder may be published: it is read and checked, rows without a usable licence are named, toxic rows set apart."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from huggingface_hub import metadata_load

from t2i_parity.dataset_builder import geo_published
from t2i_parity.dataset_builder.benchmark import EVAL_YAML
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.licenses import KNOWN, UNKNOWN, License, terms
from t2i_parity.dataset_builder.repository import content_sha256, write_repository
from t2i_parity.dataset_builder.schema import CONFIGS, Row, check_table, config
from t2i_parity.dataset_builder.storage import Folder, card_configs, decode_classes, read_parquet
from t2i_parity.dataset_builder.varieties import VARIETIES

CARD = "README.md"
BESIDE_THE_DATA = (CARD, "croissant.json", EVAL_YAML, "assets/**")
"""What of a folder is published beside the files that its configs name."""
DATA_SUFFIX = ".parquet"

TOXIC = "toxic"


@dataclass(frozen=True, slots=True)
class Release:
    """A built folder, read and checked: its tables by config, the files to publish by their path on the hub, and what stays here.

    ``published`` says whether the means that the geographical study printed are among the files; they are no prompts, and no table here.
    """

    edition: str
    tables: Mapping[str, pa.Table]
    files: Mapping[str, Path]
    left: tuple[str, ...] = ()
    published: bool = False

    @property
    def rows(self) -> int:
        """How many prompts there are in all configs."""
        return sum(map(len, self.tables.values()))

    @property
    def content_sha256(self) -> str:
        """One hash over the ids and texts of all configs."""
        return content_sha256(pa.concat_tables([table.select(["prompt_id", "text_sha256"]) for table in self.tables.values()]))

    @property
    def toxic(self) -> int:
        """How many rows are labelled toxic."""
        return sum(pc.sum(_toxic(table)).as_py() or 0 for table in self.tables.values())

    @property
    def message(self) -> tuple[str, str]:
        """Title and body of the commit: edition, rows, content hash."""
        edition = f", {self.edition} edition" if self.edition else ""
        rows = "\n".join(f"- {name}: {len(table):,} rows" for name, table in self.tables.items())
        rows += f"\n- {geo_published.NAME}: {len(geo_published.published()):,} published values" if self.published else ""
        title = f"T2I Parity prompts{edition}: {self.rows:,} rows, content {self.content_sha256[:12]}"
        return title, f"{rows}\n\nSHA-256 over ids and texts: {self.content_sha256}"

    def replaces(self, path: str) -> bool:
        """Whether a file on the hub is data of an earlier release: load_dataset would mix its rows with these."""
        folders = {each.split("/")[0] for each in self.files if each.endswith(DATA_SUFFIX)} | {*CONFIGS, geo_published.NAME}
        return path.endswith(DATA_SUFFIX) and "/" in path and path.split("/")[0] in folders


@dataclass(frozen=True, slots=True)
class Licensed:
    """The rows of one config that come from one source under one licence."""

    config: str
    source: str
    license: License
    rows: int

    @property
    def asks(self) -> tuple[str, ...]:
        """What whoever uses or passes on the rows must keep to, beyond naming the source."""
        told = {"share-alike": self.license.share_alike, "non-commercial": self.license.non_commercial}
        return tuple(term for term, holds in told.items() if holds)

    @property
    def refusal(self) -> str | None:
        """Why the rows may not be published as part of a collection, None where they may."""
        if self.license.id.lower() == UNKNOWN:
            return "no licence stated"
        return f"{self.license.id} forbids derivatives" if self.license.no_derivatives else None

    def __str__(self) -> str:
        return f"{self.rows:,} of {self.source} in {self.config}"


@dataclass(frozen=True, slots=True)
class Dropped:
    """How many rows were left out of a config: for their own licence, and for what they were made from or compared with."""

    config: str
    unlicensed: int
    dependent: int


# Reading ------------------------------------------------------------------------------------------------------------


def read_release(folder: Path) -> Release:
    """A folder that ``write_repository`` wrote.

    Raises InputError when it is none, when a table does not hold what ``schema.check_table`` asks, or when the card declares other
    columns or counts than the files have: ``load_dataset`` would refuse those from the hub.
    """
    entries = card_configs(folder)
    if not entries:
        raise InputError(
            f"{folder} is not a prompts repository: it has no {CARD} that declares configs. Build one with: "
            "t2i-parity build --edition starter --out DIR"
        )
    described = {entry.get("config_name"): entry for entry in (metadata_load(folder / CARD) or {}).get("dataset_info") or []}
    tables: dict[str, pa.Table] = {}
    files = {path: folder / path for pattern in BESIDE_THE_DATA for path in _matching(folder, pattern)}
    for entry in entries:
        name = str(entry.get("config_name"))
        declared = None if name == geo_published.NAME else config(name)
        paths = [path for pattern in _patterns(entry) for path in _matching(folder, pattern)]
        if not paths:
            raise InputError(f"{folder}: no file matches what {CARD} names for config {name}. Build the folder anew")
        read = [read_parquet(Folder(str(folder)), str(folder / path)) for path in paths]
        if any(table.schema != read[0].schema for table in read):
            raise InputError(f"{folder}: the files of config {name} differ in their columns: {', '.join(paths)}. Build the folder anew")
        rows = pa.concat_tables(read)
        if declared is None:
            geo_published.check(rows, where=f"{folder} (config {name})")
        else:
            check_table(rows, declared.all_columns, where=f"{folder} (config {name})")
            tables[name] = rows
        _check_described(rows, described.get(name, {}), where=f"{folder}: config {name}")
        files |= {path: folder / path for path in paths}
    if not tables:
        raise InputError(
            f"{folder} holds no prompts, only {geo_published.NAME}, which is published beside them. Build both with: "
            "t2i-parity build --edition starter --out DIR"
        )
    inside = (path.relative_to(folder).as_posix() for path in sorted(folder.rglob("*")) if path.is_file())
    left = tuple(path for path in inside if path not in files and not _hidden(path))
    return Release(_edition(folder), tables, files, left, published=len(tables) < len(entries))


def _patterns(entry: Mapping[str, Any]) -> Iterator[str]:
    for data_files in entry.get("data_files") or []:
        path = data_files["path"]
        yield from [path] if isinstance(path, str) else path


def _matching(folder: Path, pattern: str) -> list[str]:
    found = glob.glob(pattern, root_dir=folder, recursive=True)
    return sorted(Path(path).as_posix() for path in found if (folder / path).is_file())


def _hidden(path: str) -> bool:
    return any(part.startswith(".") for part in path.split("/"))


def _edition(folder: Path) -> str:
    """The edition that the card's heading names, '' when it names none."""
    heading = re.search(r"^# .*, (.+) edition$", (folder / CARD).read_text(encoding="utf-8"), re.MULTILINE)
    return re.sub(r"\\(.)", r"\1", heading[1]) if heading else ""


def _check_described(table: pa.Table, described: Mapping[str, Any], *, where: str) -> None:
    from datasets import Features

    rows = sum(split["num_examples"] for split in described.get("splits", []))
    if described.get("splits") and rows != len(table):
        raise InputError(f"{where} has {len(table):,} rows, and {CARD} says {rows:,}. Build the folder anew")
    if not described.get("features"):
        return
    told, held = Features._from_yaml_list(described["features"]), Features.from_arrow_schema(table.schema)
    if told != held:
        names = [name for name in {**held, **told} if held.get(name) != told.get(name)]
        raise InputError(
            f"{where}: {CARD} declares {'other columns than the files have' if set(told) != set(held) else 'other types'} "
            f"({', '.join(names)}), and load_dataset would refuse that. Build the folder anew"
        )


# Licences -----------------------------------------------------------------------------------------------------------


def licensed(tables: Mapping[str, pa.Table]) -> list[Licensed]:
    """Which rows stand under which licence.

    Raises InputError, naming source, rows and config, for a licence that is not declared.
    """
    found = []
    for name, table in tables.items():
        counts = table.group_by(["source", "license"]).aggregate([("prompt_id", "count")]).to_pylist()
        for entry in sorted(counts, key=lambda entry: (entry["source"], entry["license"])):
            group = Licensed(name, entry["source"], terms(entry["license"]), entry["prompt_id_count"])
            if not group.license.known and group.license.id.lower() != UNKNOWN:
                raise InputError(
                    f"{group}: unknown licence {group.license.id!r}, expected one of {', '.join(KNOWN)}, or {UNKNOWN} where the source "
                    "states none. A new one is one entry in dataset_builder/licenses.py"
                )
            found.append(group)
    return found


def refusal(groups: Iterable[Licensed]) -> str | None:
    """Why rows may not be published, by source and config; None where all may."""
    refused = [f"{group} ({group.refusal})" for group in groups if group.refusal]
    if not refused:
        return None
    return (
        f"rows that may not be published: {'; '.join(refused)}. They stay usable here; publish the rest with --drop-unlicensed, "
        "or state the licence where the rows are built if their source does"
    )


def drop_unlicensed(tables: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], list[Dropped]]:
    """The tables without rows that may not be published, and what was left out.

    With such a row goes whatever was made from it, and where others of its pair are compared with it, the whole pair. A config
    that has no row left is gone.
    """
    refused = {group.license.id for group in licensed(tables) if group.refusal}
    columns = {name: _needed(table) for name, table in tables.items()}
    every = [(name, row) for name, rows in columns.items() for row in rows]
    unlicensed = {row["prompt_id"] for _, row in every if row["license"] in refused}
    compared_with = _references(every)
    gone = set(unlicensed)
    while True:
        references = gone & compared_with
        pairs = {(name, row["pair_id"]) for name, row in every if row["prompt_id"] in references}
        more = {row["prompt_id"] for name, row in every if row["derived_from"] in gone or (name, row["pair_id"]) in pairs}
        if more <= gone:
            break
        gone |= more
    kept, dropped = {}, []
    for name, rows in columns.items():
        ids = [row["prompt_id"] for row in rows]
        own, all_gone = sum(each in unlicensed for each in ids), sum(each in gone for each in ids)
        if all_gone:
            dropped.append(Dropped(name, own, all_gone - own))
        if all_gone < len(ids):
            kept[name] = tables[name].filter(pa.array([each not in gone for each in ids], pa.bool_()))
    return kept, dropped


def _needed(table: pa.Table) -> list[Row]:
    names = ("prompt_id", "pair_id", "license", "derived_from", "language", "variety", "country")
    rows: list[Row] = table.select([name for name in names if name in table.column_names]).to_pylist()
    return rows


def _references(rows: Iterable[tuple[str, Row]]) -> set[str]:
    """The rows with which others of their pair are compared: the reference variety, the standard language, no country."""
    pairs: dict[tuple[str, str], list[Row]] = {}
    for name, row in rows:
        pairs.setdefault((name, row["pair_id"]), []).append(row)
    found = set()
    for pair in pairs.values():
        codes = {_compared_with(row) for row in pair}
        countries = any(row.get("country") for row in pair)
        for row in pair:
            if (row["variety"] or row["language"]) in codes or (countries and row["country"] is None):
                found.add(row["prompt_id"])
    return found


def _compared_with(row: Row) -> str | None:
    return VARIETIES[row["variety"]].reference if row["variety"] else LANGUAGES[row["language"]].standard


# Toxic rows ---------------------------------------------------------------------------------------------------------


def _toxic(table: pa.Table) -> pa.Array:
    if "label" not in table.column_names:
        return pa.repeat(pa.scalar(False), len(table))
    return pc.equal(decode_classes(table.select(["label"]))["label"], TOXIC).combine_chunks()


def split_toxic(tables: Mapping[str, pa.Table]) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """The tables without their toxic rows, and the toxic rows; configs keep their names, one without rows is left out."""
    parts: tuple[dict[str, pa.Table], dict[str, pa.Table]] = ({}, {})
    for name, table in tables.items():
        toxic = _toxic(table)
        for part, mask in zip(parts, (pc.invert(toxic), toxic), strict=True):
            chosen = table.filter(mask)
            if len(chosen):
                part[name] = chosen
    return parts


# Writing anew -------------------------------------------------------------------------------------------------------


def rebuilt(tables: Mapping[str, pa.Table], edition: str, place: Path, *, gated: bool = False, published: bool = False) -> Release:
    """A folder of these tables, written into ``place``; with ``gated`` its card says what whoever asks for access agrees to.

    ``published`` adds what the geographical study printed.
    """
    if not tables:
        raise InputError("no row is left to publish")
    # As declared, down to the names inside lists: files whose rows stayed the same keep their bytes, and are not sent again.
    schemas = {name: config(name).arrow_schema() for name in tables}
    aligned = {name: table.cast(schemas[name]) if table.column_names == schemas[name].names else table for name, table in tables.items()}
    write_repository(aligned, place, edition=edition, gated=gated, published=published)
    return read_release(place)
