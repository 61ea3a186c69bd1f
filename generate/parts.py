"""Parquet parts that survive a crash: what was appended is there, what was not is not, and nothing stands twice.

A batch is appended as a small file in a hidden journal (loaders ignore names that begin with a dot), and the journal is folded into a
visible part when it has grown enough, or at the end. A kill at any moment loses at most the batch that was not appended yet; a kill
between the writing of a part and the clearing of its journal leaves rows in both, which the next opening clears by their ids.

What no kill of ours leaves, but a disk can, is a torn file. One of the journal is set aside under a hidden name (its few rows are made
anew); a part is set aside only when asked, since the person may have a copy of it.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.storage import TEMPORARY, Folder, parquet_bytes, read_parquet, torn

TORN = ".torn-"
"""How the name of a file begins that could not be read and was set aside; loaders ignore names that begin with a dot."""
RESERVE = 32 * 2**20
"""Bytes that stay free on a disk, beside what folding the journal needs, so that the record and the card can still be written."""


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
        self._next_batch: int | None = None
        self._appended_rows = self._appended_bytes = 0
        self._warned = False

    # Reading

    def files(self) -> list[str]:
        """The finished parts' names."""
        return [name for name in self.folder.names(self.name) if name.startswith("part-") and name.endswith(".parquet")]

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Every appended row, journal included, each id once; columns that files of an earlier version lack are null.

        Raises InputError naming a file that is torn.
        """
        tables = [self._read(path, columns) for path in self._paths()]
        if not tables:
            if self.schema is None:
                return pa.table({})
            return self.schema.empty_table() if columns is None else self.schema.empty_table().select(columns)
        table = pa.concat_tables(tables, promote_options="default")
        types = {} if self.schema is None else {field.name: field.type for field in self.schema}
        for name in types if columns is None else columns:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(len(table), types.get(name, pa.null())))
        return _first_of_each(table, self.key) if self.key in table.column_names else table

    def batches(self, columns: list[str], rows: int, *, skip: Collection[str] = ()) -> Iterator[list[dict[str, Any]]]:
        """Rows of the given columns in lists of at most ``rows``, read group by group so that memory stays flat.

        Rows whose ids are in ``skip`` are left out, and groups that hold no others are not read. Columns that a file lacks are null.
        """
        seen, blank = set(skip), dict.fromkeys(columns)
        for path in self._paths():
            with self.folder.fs.open(path, "rb") as file:
                parquet = self._open(path, file)
                groups = [
                    group
                    for group in range(parquet.num_row_groups)
                    if not seen.issuperset(parquet.read_row_group(group, [self.key])[self.key].to_pylist())
                ]
                batches = parquet.iter_batches(batch_size=rows, row_groups=groups, columns=columns) if groups else iter(())
                while True:
                    try:
                        batch = next(batches, None)
                    except (pa.ArrowInvalid, OSError) as error:
                        raise torn(path, error) from error
                    if batch is None:
                        break
                    fresh = [{**blank, **row} for row in batch.to_pylist() if row[self.key] not in seen]
                    seen.update(row[self.key] for row in fresh)
                    if fresh:
                        yield fresh

    def groups(self, *, skip: Collection[str] = ()) -> list[tuple[str, int, list[str]]]:
        """Where rows lie that are not in ``skip``: (path, row group, their ids), each id once; for readers in other processes."""
        seen = set(skip)
        found = []
        for path in self._paths():
            with self.folder.fs.open(path, "rb") as file:
                parquet = self._open(path, file)
                for group in range(parquet.num_row_groups):
                    here = parquet.read_row_group(group, [self.key])[self.key].to_pylist()
                    fresh = [identity for identity in here if identity not in seen]
                    seen.update(fresh)
                    if fresh:
                        found.append((path, group, fresh))
        return found

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

    def recover(self, *, repair: bool = False) -> list[str]:
        """Bring a folder that a crash left into order; returns the names of torn files that it set aside.

        Half-written files are cleared, and journal files that a part already holds. A torn journal file is set aside. A torn part raises
        InputError; with ``repair``, every part is read to its end and set aside if that fails.
        """
        aside = []
        for place in ((self.name,), self._journal_place()):
            for name in self.folder.names(*place):
                if name.startswith(TEMPORARY):
                    self.folder.remove(*place, name)
        finished: set[str] = set()
        for name in self.files():
            try:
                table = self._read(self.folder.path(self.name, name), None if repair else [self.key])
            except InputError as error:
                if not repair:
                    raise InputError(f"{error}. Or let the command that wrote it do both: --repair") from error
                aside.append(self._set_aside((self.name,), name))
            else:
                finished.update(table[self.key].to_pylist())
        self._journal = []
        for name in self._journal_names():
            path = self.folder.path(*self._journal_place(), name)
            try:
                ids = self._read(path)[self.key].to_pylist()
            except InputError:
                aside.append(self._set_aside(self._journal_place(), name))
                continue
            if finished.issuperset(ids):
                self.folder.remove(*self._journal_place(), name)
            else:
                self._journal.append((name, len(ids), int(self.folder.fs.size(path))))
        return aside

    def append(self, table: pa.Table) -> None:
        """Append one batch; it is durable when this returns. Raises InputError, before it writes, when the disk is nearly full."""
        content = parquet_bytes(table, row_group_rows=self.row_group_rows)
        self.check_room(len(content))
        if self._next_batch is None:
            self._next_batch = self._next(self._journal_names(), "batch-")
        name = f"batch-{self._next_batch:06d}.parquet"
        self.folder.write(content, *self._journal_place(), name)
        self._next_batch += 1
        self._journal.append((name, len(table), len(content)))
        self._appended_rows += len(table)
        self._appended_bytes += len(content)
        if sum(rows for _, rows, _ in self._journal) >= self.part_rows or sum(size for *_, size in self._journal) >= self.part_bytes:
            self.fold()

    def fold(self) -> None:
        """Fold the journal into one more part."""
        if not self._journal:
            return
        tables = [self._read(self.folder.path(*self._journal_place(), name)) for name, *_ in self._journal]
        number = self._next(self.files(), "part-")
        content = parquet_bytes(pa.concat_tables(tables, promote_options="default"), row_group_rows=self.row_group_rows)
        self.folder.write(content, self.name, f"part-{number:05d}.parquet")
        for name, *_ in self._journal:
            self.folder.remove(*self._journal_place(), name)
        self._journal = []

    def check_room(self, coming: int = 0) -> None:
        """Raise InputError when the disk has not the room for so many bytes more, for folding the journal, and a reserve."""
        needed = coming + sum(size for *_, size in self._journal) + RESERVE
        if (free := self._free()) is not None and free < needed:
            raise InputError(
                f"the disk of {self.folder.root} is nearly full: {_size(free)} are free and {_size(needed)} must be. "
                "All that was finished is kept; free space there, and run the same command again to go on"
            )

    def short_of_room(self, rows: int) -> str | None:
        """A warning, once, when so many rows more, as large as those appended so far, will not fit on the disk."""
        if self._warned or not self._appended_rows or (free := self._free()) is None:
            return None
        needed = rows * self._appended_bytes // self._appended_rows
        if needed <= free:
            return None
        self._warned = True
        return (
            f"the {rows} rows that are left need about {_size(needed)}, and {_size(free)} are free on the disk of {self.folder.root}: "
            "the run will stop before it is full, and go on with the same command when there is space"
        )

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

    def _free(self) -> int | None:
        """Bytes free on a local disk; None where that cannot be asked."""
        if not self.folder.local:
            return None
        place = Path(self.folder.root).absolute()
        return shutil.disk_usage(next(folder for folder in (place, *place.parents) if folder.is_dir())).free

    def _set_aside(self, place: tuple[str, ...], name: str) -> str:
        """Give a torn file a hidden name that is not taken; returns its old name."""
        taken = self.folder.names(*place)
        number = next(number for number in range(len(taken) + 1) if f"{TORN}{number}-{name}" not in taken)
        self.folder.fs.mv(self.folder.path(*place, name), self.folder.path(*place, f"{TORN}{number}-{name}"))
        return str(PurePosixPath(*place, name))

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


def _size(count: int) -> str:
    """Bytes for people.

    >>> _size(3 * 2**20), _size(5 * 10**9)
    ('3.0 MiB', '4.7 GiB')
    """
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
