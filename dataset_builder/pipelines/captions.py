"""Captions to start from: DOCCI's and COCO's own layouts, CSV, JSON lines and parquet with a column of texts, from anywhere.

Each caption keeps the id that its source gives it, so that a row can be traced to it; texts are others', and are only ever quoted.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.schema import LABELS, NewRow, Row, text_sha256
from t2i_parity.dataset_builder.sources.reading import Upstream

TEXT_COLUMNS = ("caption", "text", "description", "prompt", "sentence")
ID_COLUMNS = ("caption_id", "id", "example_id", "image_id", "prompt_id")
LONGEST = 8_000
"""Characters of the longest caption that is taken; DOCCI's longest has about 2,800."""


@dataclass(frozen=True, slots=True)
class Caption:
    """One caption: its id in its source, its text, and what the source says of it."""

    id: str
    text: str
    category: str | None = None
    label: str = "benign"


@dataclass(frozen=True, slots=True)
class Captions:
    """The captions of a source and what rows say of it."""

    items: tuple[Caption, ...]
    source: str
    revision: str
    url: str | None
    license: str


def read_captions(
    place: str,
    *,
    column: str | None = None,
    id_column: str | None = None,
    split: str = "train",
    license: str | None = None,
    name: str | None = None,
    limit: int | None = None,
    default_label: str = "benign",
) -> Captions:
    """The captions at a place: a file (.csv, .jsonl, .json of COCO, .parquet), a folder of parquet files, or a dataset's id on the hub.

    ``column`` is the texts' and ``id_column`` the ids'; the usual names are tried without them. A list in the column (COCO on the
    hub) gives its first text. Columns ``category`` and ``label`` are read where they are. Raises InputError naming file, row and column.
    """
    upstream = Upstream(place)
    where, rows = _rows(upstream, place, split)
    rows = list(rows)
    if not rows:
        raise InputError(f"{where} holds no captions")
    chosen = _column(rows[0], column, TEXT_COLUMNS, where, "--text-column")
    ids = _column(rows[0], id_column, ID_COLUMNS, where, "--id-column", needed=id_column is not None)
    found: list[Caption] = []
    seen: dict[str, int] = {}
    for number, row in enumerate(rows):
        value = row.get(chosen)
        value = value[0] if isinstance(value, list) and value else value
        if not isinstance(value, str) or not value.strip():
            raise InputError(f"{where}: row {number}, column {chosen}: expected a text, got {value!r}. Drop the row, or fill it in")
        text = " ".join(value.split())
        if len(text) > LONGEST:
            raise InputError(f"{where}: row {number}, column {chosen}: {len(text)} characters, at most {LONGEST} are taken")
        key = str(row[ids]) if ids else f"{number}"
        if key in seen:
            raise InputError(
                f"{where}: rows {seen[key]} and {number} have the same id {key!r} in column {ids}; name one that tells captions apart with "
                "--id-column"
            )
        seen[key] = number
        label = str(row.get("label") or default_label)
        if label not in LABELS:
            raise InputError(f"{where}: row {number}, column label: expected one of {', '.join(LABELS)}, got {label!r}")
        category = row.get("category")
        found.append(Caption(key, text, None if category is None else str(category), label))
    revision = upstream.commit or text_sha256("\n".join(f"{name} {digest}" for name, digest in sorted(upstream.sha256.items())))[:16]
    kept = found[:limit] if limit is not None else found
    return Captions(
        tuple(kept),
        name or PurePosixPath(upstream.only or place.rstrip("/")).name,
        revision,
        place if "://" in place else (f"https://huggingface.co/datasets/{place.partition('@')[0]}" if upstream.commit else None),
        license or "unknown",
    )


# Inside


def _rows(upstream: Upstream, place: str, split: str) -> tuple[str, Iterator[Row] | Sequence[Row]]:
    name = upstream.only
    if name is None:
        # DOCCI's own layout, then COCO's, then whatever parquet files a split has.
        docci = upstream.first("docci_descriptions.jsonlines")
        coco = upstream.first(*(f"{folder}captions_{split}{year}.json" for year in (2017, 2014) for folder in ("annotations/", "")))
        name = docci or coco
        if name is None:
            where, table = upstream.split(split)
            return where, table.to_pylist()
    where = upstream.where(name)
    suffix = PurePosixPath(name).suffix
    if suffix == ".csv":
        return where, upstream.csv(name).to_pylist()
    content = upstream.read(name)
    try:
        if suffix == ".parquet":
            return where, pq.read_table(io.BytesIO(content)).to_pylist()
        text = content.decode("utf-8-sig")
        if suffix in (".jsonl", ".jsonlines"):
            rows = [json.loads(line) for line in text.split("\n") if line.strip()]
            if any(not isinstance(row, dict) for row in rows):
                raise ValueError("a line is no JSON object")
            return where, [row for row in rows if row.get("split", split) == split] if name.startswith("docci_") else rows
        if suffix == ".json":
            return where, _coco(json.loads(text))
    except (ValueError, KeyError, TypeError, pa.ArrowInvalid) as error:
        raise InputError(f"{where} cannot be read as captions ({first_line(error)})") from error
    raise InputError(f"{where}: expected .csv, .jsonl, .json (COCO's captions) or .parquet")


def _coco(content: Any) -> list[NewRow]:
    """COCO's annotations: the first caption (the lowest id) of every image."""
    first: dict[int, NewRow] = {}
    for annotation in content["annotations"]:
        image, number = int(annotation["image_id"]), int(annotation["id"])
        if image not in first or number < first[image]["caption_id"]:
            first[image] = {"caption_id": number, "caption": annotation["caption"], "image_id": image}
    return [first[image] for image in sorted(first)]


def _column(row: Row, given: str | None, usual: Sequence[str], where: str, option: str, *, needed: bool = True) -> str:
    for name in [given] if given else usual:
        if name in row:
            return str(name)
    if not needed:
        return ""
    wanted = f"no column {given!r}" if given else f"none of the columns {', '.join(usual)}"
    raise InputError(f"{where} has {wanted}; it has {', '.join(map(str, row))}. Name one with {option}")
