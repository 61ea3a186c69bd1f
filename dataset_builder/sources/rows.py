"""Rows of one's own, in any declared language: a JSONL, CSV or parquet file with columns of the schema.

``prompt`` and ``language`` must be there, and what the config cannot do without (``render_text``, ``label``, ``noun``). The rest is filled
in: ``prompt_id`` and ``source_id`` from the file's name and the row's number, ``pair_id`` from ``prompt_id``, the dimension TR for texts
to be rendered, and a provenance that says no more than is known: the file and its SHA-256, no licence, written as it stands by a person.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.licenses import UNKNOWN
from t2i_parity.dataset_builder.schema import CONFIGS, DEFAULT_CONFIG, table
from t2i_parity.dataset_builder.sources.base import Source

DEFAULTS = {"subset": "own", "derivation": "verbatim", "license": UNKNOWN, "producer": "a person, as the file has it"}


def _read(_source: Source, place: str, part: str) -> dict[str, pa.Table]:
    if not place:
        raise InputError("rows of one's own lie in a file: --source rows --input rows=FILE, a .jsonl, .csv or .parquet file")
    config, path = part or DEFAULT_CONFIG, Path(place)
    try:
        content = path.read_bytes()
        given = _rows(path, content)
    except (OSError, ValueError, pa.ArrowException, csv.Error) as error:
        raise InputError(f"{path} cannot be read as rows ({first_line(error)}); expected a .jsonl, .csv or .parquet file") from error
    if not given:
        raise InputError(f"{path} holds no rows")
    digest = sha256(content).hexdigest()[:16]
    rows = []
    for number, row in enumerate(given):
        identity = str(row.get("prompt_id") or f"{path.stem}-{number}")
        filled = {
            **DEFAULTS,
            "prompt_id": identity,
            "pair_id": identity,
            "source": path.name,
            "source_id": str(number),
            "source_revision": f"sha256:{digest}",
            **({"dimension": "TR"} if config == "lingt2i_text" else {}),
        }
        rows.append({**filled, **{name: value for name, value in row.items() if value not in (None, "")}})
    try:
        return {config: table(config, rows)}
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{path}: a column holds values of another type than the config {config} has ({first_line(error)})") from error


def _rows(path: Path, content: bytes) -> list[Mapping[str, Any]]:
    if path.suffix == ".parquet":
        found: list[Mapping[str, Any]] = pq.read_table(io.BytesIO(content)).to_pylist()
        return found
    text = content.decode("utf-8-sig")
    if path.suffix == ".csv":
        # Never guessed: a cell is the text that it holds, "null" and "1996" too.
        return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    if path.suffix != ".jsonl":
        raise ValueError(f"it is called {path.name}")
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines):
        if not isinstance(line, dict):
            raise ValueError(f"line {number + 1} is no JSON object")
    return lines


SOURCE = Source(
    name="rows",
    title="rows of one's own",
    url="",
    license=UNKNOWN,
    revision=None,
    counts={},
    read=_read,
    default="",
    parts=tuple(CONFIGS),
)
