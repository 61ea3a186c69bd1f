"""Parquet parts that survive a crash: what was appended is there, what was not is not, and nothing stands twice.

A batch is appended as a small file in a hidden journal (loaders ignore names that begin with a dot), and the journal is folded into a
visible part when it has grown enough, or at the end. A kill at any moment loses at most the batch that was not appended yet; a kill
between the writing of a part and the clearing of its journal leaves rows in both, which the next opening clears by their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dataset_builder.storage import TEMPORARY, Folder, parquet_bytes, read_parquet, torn


class Parts:
    """One table of a run, kept as parts; ``key`` is its id column."""

    def __init__(
        self,
        folder: Folder,
        name: str,
        *,
        key: str,
        schema: pa.Schema | None = None,
        part_rows: int = 1_000,
        part_bytes: int = 256 * 2**20,
        row_group_rows: int = 100,
    ) -> None:
        self.folder = folder
        self.name = name
        self.key = key
        self.schema = schema
        self.part_rows = part_rows
        self.part_bytes = part_bytes
        self.row_group_rows = row_group_rows
        self._journal: list[tuple[str, int, int]] = []

    # Reading

    def files(self) -> list[str]:
        """The finished parts' names."""
        return [name for name in self.folder.names(self.name) if name.startswith("part-") and name.endswith(".parquet")]

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Every appended row, journal included, each id once. Raises InputError naming a file that is torn."""
        tables = [self._read(path, columns) for path in self._paths()]
        if not tables:
            if self.schema is None:
                return pa.table({})
            return self.schema.empty_table() if columns is None else self.schema.empty_table().select(columns)
        table = pa.concat_tables(tables, promote_options="default")
        return _first_of_each(table, self.key) if self.key in table.column_names else table

    def batches(self, columns: list[str], rows: int, *, skip: Collection[str] = ()) -> Iterator[list[dict[str, Any]]]:
        """Rows of the given columns in lists of at most ``rows``, read group by group so that memory stays flat.

        Rows whose ids are in ``skip`` are left out, and groups that hold no others are not read.
        """
        seen = set(skip)
        for path in self._paths():
            with self.folder.fs.open(path, "rb") as file:
                parquet = self._open(path, file)
                groups = [
                    group
                    for group in range(parquet.num_row_groups)
                    if not seen.issuperset(parquet.read_row_group(group, [self.key])[self.key].to_pylist())
                ]
                for batch in parquet.iter_batches(batch_size=rows, row_groups=groups, columns=columns) if groups else ():
                    fresh = [row for row in batch.to_pylist() if row[self.key] not in seen]
                    seen.update(row[self.key] for row in fresh)
                    if fresh:
                        yield fresh

    def pick(self, ids: set[str], columns: list[str]) -> dict[str, dict[str, Any]]:
        """The rows of the given ids by id; only the row groups that hold one are read whole."""
        found: dict[str, dict[str, Any]] = {}
        for path in self._paths():
            with self.folder.fs.open(path, "rb") as file:
                parquet = self._open(path, file)
                for group in range(parquet.num_row_groups):
                    here = parquet.read_row_group(group, [self.key])[self.key].to_pylist()
                    if ids.intersection(here):
                        rows = parquet.read_row_group(group, columns)
                        keep = [number for number, identity in enumerate(here) if identity in ids]
                        found.update((row[self.key], row) for row in rows.take(keep).to_pylist())
        return found

    def ids(self) -> set[str]:
        """The ids of all appended rows."""
        return set(self.read([self.key])[self.key].to_pylist()) if self._paths() else set()

    # Writing

    def recover(self) -> None:
        """Bring a folder that a crash left into order: clear half-written files, and journal files that a part already holds."""
        for place in ((self.name,), self._journal_place()):
            for name in self.folder.names(*place):
                if name.startswith(TEMPORARY):
                    self.folder.remove(*place, name)
        finished: set[str] = set()
        for name in self.files():
            finished.update(self._read(self.folder.path(self.name, name), [self.key])[self.key].to_pylist())
        self._journal = []
        for name in self._journal_names():
            path = self.folder.path(*self._journal_place(), name)
            ids = self._read(path, [self.key])[self.key].to_pylist()
            if finished.issuperset(ids):
                self.folder.remove(*self._journal_place(), name)
            else:
                self._journal.append((name, len(ids), int(self.folder.fs.size(path))))

    def append(self, table: pa.Table) -> None:
        """Append one batch; it is durable when this returns."""
        content = parquet_bytes(table, row_group_rows=self.row_group_rows)
        name = f"batch-{self._next(self._journal_names(), 'batch-'):06d}.parquet"
        self.folder.write(content, *self._journal_place(), name)
        self._journal.append((name, len(table), len(content)))
        if sum(rows for _, rows, _ in self._journal) >= self.part_rows or sum(size for *_, size in self._journal) >= self.part_bytes:
            self.fold()

    def fold(self) -> None:
        """Fold the journal into one more part."""
        if not self._journal:
            return
        tables = [self._read(self.folder.path(*self._journal_place(), name)) for name, *_ in self._journal]
        number = self._next(self.files(), "part-")
        content = parquet_bytes(pa.concat_tables(tables), row_group_rows=self.row_group_rows)
        self.folder.write(content, self.name, f"part-{number:05d}.parquet")
        for name, *_ in self._journal:
            self.folder.remove(*self._journal_place(), name)
        self._journal = []

    def drop(self, ids: Iterable[str]) -> int:
        """Take rows out again, so that they can be made anew; returns how many there were."""
        wanted = pa.array(sorted(ids), pa.string())
        dropped = 0
        self.fold()
        for name in self.files():
            table = self._read(self.folder.path(self.name, name))
            kept = table.filter(pc.invert(pc.is_in(table[self.key], value_set=wanted)))
            if len(kept) < len(table):
                dropped += len(table) - len(kept)
                if len(kept):
                    self.folder.write(parquet_bytes(kept, row_group_rows=self.row_group_rows), self.name, name)
                else:
                    self.folder.remove(self.name, name)
        return dropped

    def replace(self, table: pa.Table) -> None:
        """Make the table the whole content, as one part (for what is computed anew each time)."""
        old = self.files()
        self.folder.write(parquet_bytes(table, row_group_rows=self.row_group_rows), self.name, "part-00000.parquet")
        for name in old:
            if name != "part-00000.parquet":
                self.folder.remove(self.name, name)

    # Inside

    def _journal_place(self) -> tuple[str, ...]:
        return (".journal", *PurePosixPath(self.name).parts)

    def _journal_names(self) -> list[str]:
        return [name for name in self.folder.names(*self._journal_place()) if name.startswith("batch-")]

    def _paths(self) -> list[str]:
        return [self.folder.path(self.name, name) for name in self.files()] + [
            self.folder.path(*self._journal_place(), name) for name in self._journal_names()
        ]

    @staticmethod
    def _next(names: list[str], prefix: str) -> int:
        return max((int(name[len(prefix) :].split(".")[0]) for name in names), default=-1) + 1

    def _open(self, path: str, file: Any) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise torn(path, error) from error

    def _read(self, path: str, columns: list[str] | None = None) -> pa.Table:
        return read_parquet(self.folder, path, columns)


def _first_of_each(table: pa.Table, key: str) -> pa.Table:
    seen: set[str] = set()
    keep = []
    for value in table[key].to_pylist():
        keep.append(value not in seen)
        seen.add(value)
    return table if all(keep) else table.filter(pa.array(keep))
