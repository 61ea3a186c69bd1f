"""What every source is: where it stands, what it must hold, how it becomes tables; and the account of all that it does not hold."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.sources.reading import Upstream
from t2i_parity.dataset_builder.storage import decode_classes

NAMED = 10
"""How many rows or values of one kind an account names one by one before it only counts them."""


@dataclass(frozen=True, slots=True)
class Source:
    """One upstream: its name here and in the ``source`` column, where it stands, its licence, what it must hold and how it is read.

    ``revision`` is the pinned one, None where none is known to us; ``default`` the place to read from when nobody gives one, None for a
    source that is made from templates; ``counts`` the rows that it gives each config; ``expected`` what its importer counts (rows a file,
    split or category); ``sha256`` its files' digests, None where unknown; ``parts`` what it is published in, the usual one first.
    """

    name: str
    title: str
    url: str
    license: str
    revision: str | None
    counts: Mapping[str, int]
    read: Callable[[Source, str, str], dict[str, pa.Table]]
    default: str | None = None
    expected: Mapping[str, int] = field(default_factory=dict)
    sha256: Mapping[str, str | None] = field(default_factory=dict)
    parts: tuple[str, ...] = ("",)

    def tables(self, place: str | Path | None = None, part: str | None = None) -> dict[str, pa.Table]:
        """Its rows as checked tables, one a config, from ``place`` (path, URL or hub id; the default place when None).

        Raises InputError when the place cannot be read, and UpstreamError, telling all that differs, when it holds something else.
        """
        if place is not None and self.default is None:
            raise InputError(f"the source {self.name} is made from templates and takes no input, got {place}")
        chosen = self.parts[0] if part is None else part
        if chosen not in self.parts:
            known = f"expected one of {', '.join(self.parts)}" if self.parts[0] else "it has no parts"
            raise InputError(f"unknown part {part!r} of {self.title}: {known}")
        return self.read(self, str(place if place is not None else self.default), chosen)

    def rows(self, place: str | Path | None = None, part: str | None = None) -> Iterator[dict[str, Any]]:
        """Its rows one by one as dictionaries, class labels as names, over all its configs."""
        for table in self.tables(place, part).values():
            for batch in decode_classes(table).to_batches(max_chunksize=1_000):
                yield from batch.to_pylist()

    def provenance(self) -> dict[str, str]:
        """The provenance columns that are the same in every row."""
        return {"source": self.title, "source_url": self.url, "license": self.license}


class UpstreamError(InputError):
    """An upstream is not what its importer was written for; ``differences`` holds all that differs, and the message tells it."""

    def __init__(self, source: Source, place: str, differences: list[str]) -> None:
        self.differences = differences
        several = len(differences) > 1
        told = "; ".join(f"({number}) {text}" if several else text for number, text in enumerate(differences, start=1))
        super().__init__(
            f"{place} is not {source.title}{f' at {source.revision}' if source.revision else ''} as its importer expects it, "
            f"{len(differences)} difference{'s' if several else ''}: {told}. Take the files from {source.default}; "
            f"if the upstream itself has changed, what is expected stands in {source.read.__module__}"
        )


class Account:
    """All that differs from what a source must hold, collected while it is read. Rows are counted from 0, as ``dataset[row]`` does."""

    def __init__(self, source: Source, place: str) -> None:
        self.source = source
        self.upstream = Upstream(place)
        self.differences: list[str] = []
        self._keys: dict[str, str] = {}

    def first(self, *names: str) -> str | None:
        """The first of several files that is there; None when none is, which is then a difference."""
        found = self.upstream.first(*names)
        if found is None:
            self.add("", f"no file {' or '.join(names)} in {self.upstream.place}")
        return found

    def read(self, name: str, key: str | None = None) -> bytes:
        """A file's bytes; ``key`` is what the source's ``sha256`` calls it, when that is not the last part of its name."""
        self._keys[name] = key or PurePosixPath(name).name
        return self.upstream.read(name)

    def csv(self, name: str, columns: Collection[str], key: str | None = None) -> pa.Table | None:
        """A CSV file as text columns; None when it cannot be read or its columns are other ones, which is then a difference."""
        self._keys[name] = key or PurePosixPath(name).name
        try:
            table = self.upstream.csv(name)
        except InputError as error:
            self.add("", str(error))
            return None
        return table if self.columns(self.upstream.where(name), table.column_names, columns) else None

    def split(self, name: str, kinds: Mapping[str, pa.DataType]) -> tuple[str, pa.Table | None]:
        """A split as messages name it, and its columns of the given types; None when they are others, which is then a difference.

        A further column may be there when it is empty: the splits of one dataset share their columns.
        """
        try:
            where, raw = self.upstream.split(name)
        except InputError as error:
            self.add("", str(error))
            return name, None
        filled = [column for column in raw.column_names if column in kinds or raw[column].null_count < len(raw)]
        return where, self._typed(where, raw, kinds) if self.columns(where, filled, kinds) else None

    def add(self, where: str, text: str) -> None:
        """One difference."""
        self.differences.append(f"{where}: {text}" if where else text)

    def rows(self, where: str, which: Any, text: str) -> None:
        """One difference of some rows, given as a list of numbers or as an Arrow mask that is true or null there; none without rows."""
        numbers = which if isinstance(which, list) else np.flatnonzero(pc.fill_null(which, True)).tolist()
        if numbers:
            self.add(where, f"{_rows(numbers)}: {text}")

    def reasons(self, where: str, wrong: Mapping[str, list[int]]) -> None:
        """One difference a reason, with the rows that it concerns."""
        for text, rows in list(wrong.items())[:NAMED]:
            self.rows(where, rows, text)
        if len(wrong) > NAMED:
            self.add(where, f"{sum(map(len, list(wrong.values())[NAMED:])):,} more rows are wrong for {len(wrong) - NAMED:,} more reasons")

    def each(self, where: str, expected: str, found: Mapping[str, object]) -> None:
        """One difference of several things that are not as expected, each with what was found; none when there are no such things."""
        if found:
            named = [f"{what}: {value}" for what, value in list(found.items())[:NAMED]]
            more = f" and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
            self.add(where, f"{expected}, got {', '.join(named)}{more}")

    def columns(self, where: str, found: list[str], expected: Collection[str]) -> bool:
        """Whether a file has the expected columns, in any order; without them its rows cannot be read."""
        good = sorted(found) == sorted(expected)
        if not good:
            self.add(where, f"expected the columns {_listed(expected)}, got {_listed(found)}")
        return good

    def count(self, where: str, what: str, found: int, expected: int) -> None:
        """A number of rows."""
        if found != expected:
            self.add(where, f"expected {expected:,} {what}, got {found:,}")

    def known(self, where: str, column: str, values: pa.ChunkedArray, declared: Iterable[str]) -> None:
        """Values that nobody declared, each with its rows."""
        names = list(declared)
        strange = [value for value in values.unique().to_pylist() if value not in names]
        for value in strange[:NAMED]:
            self.rows(where, _equal(values, value), f"unknown {column} {value!r}, expected one of {_listed(names)}")
        if len(strange) > NAMED:
            self.add(where, f"{len(strange) - NAMED:,} more values of {column} that are unknown")

    def texts(self, where: str, column: str, values: pa.ChunkedArray) -> None:
        """Texts that are missing or blank."""
        self.rows(where, pc.equal(pc.utf8_trim_whitespace(values), ""), f"{column} is empty")

    def unique(self, where: str, column: str, values: pa.ChunkedArray) -> None:
        """Ids that stand more than once, each with its rows."""
        if len(values.unique()) == len(values):
            return
        counts = values.value_counts()
        repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1)).to_pylist()
        for value in repeated[:NAMED]:
            self.rows(where, _equal(values, value), f"the same {column} {value!r}")
        if len(repeated) > NAMED:
            self.add(where, f"{len(repeated) - NAMED:,} more values of {column} that stand in several rows")

    def close(self) -> None:
        """Compare the digests of the files read with the declared ones; then raise UpstreamError if anything at all differs."""
        for name, digest in self.upstream.sha256.items():
            expected = self._declared(name)
            if expected is not None and digest != expected:
                self.add(self.upstream.where(name), f"expected the SHA-256 {expected}, got {digest}")
        if self.differences:
            raise UpstreamError(self.source, self.upstream.place, self.differences)

    def revision(self) -> str:
        """For ``source_revision``: the commit that the place names, or the pinned one, with the files' digest unless that proves it."""
        if self.upstream.commit is not None:
            return self.upstream.commit
        if self.source.revision is not None and all(map(self._declared, self.upstream.sha256)):
            return self.source.revision
        digest = hashlib.sha256("".join(sorted(self.upstream.sha256.values())).encode()).hexdigest()[:16]
        return ", ".join(filter(None, (self.source.revision, f"files sha256:{digest}")))

    def _typed(self, where: str, table: pa.Table, kinds: Mapping[str, pa.DataType]) -> pa.Table | None:
        columns: dict[str, pa.ChunkedArray] = {}
        for name, kind in kinds.items():
            try:
                columns[name] = table[name].cast(kind)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
                self.add(where, f"column {name}: expected {kind}, got {table[name].type}")
        return pa.table(columns) if len(columns) == len(kinds) else None

    def _declared(self, name: str) -> str | None:
        return self.source.sha256.get(self._keys.get(name) or PurePosixPath(name).name)


def _equal(values: pa.ChunkedArray, value: str | None) -> Any:
    return values.is_null() if value is None else pc.fill_null(pc.equal(values, value), False)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(name or "(unnamed)" for name in names)


def _rows(numbers: list[int]) -> str:
    named, more = numbers[:NAMED], len(numbers) - NAMED
    if more > 0:
        return f"rows {', '.join(map(str, named))} and {more:,} more"
    return f"row {named[0]}" if len(named) == 1 else f"rows {', '.join(map(str, named[:-1]))} and {named[-1]}"
