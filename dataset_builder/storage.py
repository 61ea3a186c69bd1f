"""Files and parquet, written so that a reader sees the whole of it or nothing: the one place that touches storage."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from t2i_parity.dataset_builder.errors import InputError, first_line

TEMPORARY = ".tmp-"
"""How the name of a file begins that is being written; loaders ignore names that begin with a dot."""


class Folder:
    """A folder behind any fsspec URL, written to file by file and atomically."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.fs: AbstractFileSystem
        self.fs, self.root = url_to_fs(url)
        self.local = "file" in (self.fs.protocol if isinstance(self.fs.protocol, tuple) else (self.fs.protocol,))

    def path(self, *names: str) -> str:
        """The path of a file below the folder."""
        return str(PurePosixPath(self.root, *names))

    def exists(self, *names: str) -> bool:
        """Whether a file or folder is there."""
        return bool(self.fs.exists(self.path(*names)))

    def read(self, *names: str) -> bytes:
        """A file's bytes."""
        content: bytes = self.fs.cat_file(self.path(*names))
        return content

    def write(self, content: bytes, *names: str) -> None:
        """Write a file so that a reader sees all of it or nothing. An object store gives that by itself; a disk needs a rename."""
        path = PurePosixPath(self.path(*names))
        try:
            self.fs.makedirs(str(path.parent), exist_ok=True)
            if not self.local:
                self.fs.pipe_file(str(path), content)
                return
            temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
            try:
                with open(temporary, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, path)
            finally:
                if os.path.exists(temporary):
                    os.unlink(temporary)
        except OSError as error:
            raise InputError(
                f"cannot write {path}: {error.strerror or error}. What was written before is kept; free space or permit writing there, "
                "and run the same command again to go on"
            ) from error

    def names(self, *folder: str) -> list[str]:
        """The names of the files in a folder that is perhaps not there, sorted."""
        path = self.path(*folder)
        if not self.fs.isdir(path):
            return []
        self.fs.invalidate_cache()
        return sorted(PurePosixPath(entry).name for entry in self.fs.ls(path, detail=False))

    def remove(self, *names: str) -> None:
        """Remove one file."""
        self.fs.rm_file(self.path(*names))


def parquet_bytes(table: pa.Table, *, row_group_rows: int = 10_000) -> bytes:
    """A table as parquet, the same bytes for the same table and pyarrow: zstd, content-defined chunks."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", row_group_size=row_group_rows, use_content_defined_chunking=True)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_parquet(folder: Folder, path: str, columns: Sequence[str] | None = None) -> pa.Table:
    """One parquet file. Raises InputError naming the file and the fix when it is torn or is none."""
    try:
        with folder.fs.open(path, "rb") as file:
            return pq.ParquetFile(file).read(None if columns is None else list(columns))
    except (pa.ArrowInvalid, OSError) as error:
        raise torn(path, error) from error


def torn(path: str, error: Exception) -> InputError:
    """What is said of a parquet file that cannot be read."""
    return InputError(
        f"{path} is not a readable parquet file ({first_line(error)}). Move it away and run the command that wrote it again: "
        "its rows are made anew, every other file stays as it is"
    )


def decode_classes(table: pa.Table) -> pa.Table:
    """The table with every ClassLabel column as strings."""
    from datasets import ClassLabel, Features

    if not table.schema.metadata or b"huggingface" not in table.schema.metadata:
        return table
    features = Features.from_arrow_schema(table.schema)
    for name, feature in features.items():
        if isinstance(feature, ClassLabel):
            names = [None if value is None else feature.int2str(value) for value in table[name].to_pylist()]
            table = table.set_column(table.column_names.index(name), name, pa.array(names, pa.string()))
    return table.replace_schema_metadata(None)


def card_configs(folder: Path) -> list[dict[str, Any]]:
    """The ``configs`` that a dataset folder's README.md declares, [] when it declares none."""
    readme = folder / "README.md"
    if not readme.is_file():
        return []
    text = readme.read_text(encoding="utf-8")
    if not text.startswith("---\n") or "\n---" not in text[4:]:
        return []
    try:
        metadata = yaml.safe_load(text[4 : text.index("\n---", 4)])
    except yaml.YAMLError as error:
        raise InputError(f"{readme}: the front matter is not valid YAML ({first_line(error)})") from error
    found = metadata.get("configs", []) if isinstance(metadata, dict) else []
    return [entry for entry in found if isinstance(entry, dict)]
