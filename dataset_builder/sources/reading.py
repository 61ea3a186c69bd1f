"""Where an upstream's files stand: a local folder or file, a URL that fsspec opens, or a dataset on the hub. One way to read them all."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import TypeVar

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from fsspec import AbstractFileSystem
from fsspec.core import url_to_fs

from t2i_parity.dataset_builder.errors import InputError, first_line

SPLIT = (
    "data/{split}-*.parquet",
    "{split}-*.parquet",
    "*/{split}-*.parquet",
    "data/{split}.parquet",
    "{split}.parquet",
    "{split}/*.parquet",
)
"""Where the parquet files of a split stand in a dataset repository, the likeliest first."""

_HUB_ID = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")
_HUB_PAGE = re.compile(r"https?://huggingface\.co/datasets/([\w.-]+/[\w.-]+)(?:/tree/([\w.-]+))?/?")
_GITHUB_PAGE = re.compile(r"https?://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?(?:/tree/([\w.-]+)(/[\w./-]*)?)?/?")
_COMMIT = re.compile(r"[0-9a-f]{7,40}")
_CSV = pyarrow.csv.ParseOptions(newlines_in_values=True)
_Answer = TypeVar("_Answer")


class Upstream:
    """The files of one upstream at a ``place``, each read whole and hashed.

    ``place`` is the path of a folder or file, a URL, a page of GitHub or of the hub, or a hub id with or without ``@revision``.
    ``commit`` is what is read, where that is known; ``only`` the file's name, where the place is a single file; ``sha256`` holds the
    digest of every file read so far.
    """

    def __init__(self, place: str | Path) -> None:
        self.place = str(place)
        self.commit: str | None = None
        self.only: str | None = None
        self.sha256: dict[str, str] = {}
        self._hub_id: str | None = None
        self._names: list[str] | None = None
        """The files there, where they can be listed; so far only those of the hub."""
        url = self.place
        path = Path(self.place)
        hub = _HUB_PAGE.fullmatch(url) or _HUB_ID.fullmatch(url)
        github = _GITHUB_PAGE.fullmatch(url)
        if path.is_file():
            url, self.only = str(path.parent), path.name
        elif path.is_dir():
            pass
        elif hub is not None:
            self._hub_id = hub[1]
            self.commit, self._names = self._asked(_hub_files, hub[1], hub[2])
        elif github is not None:
            self.commit = github[2] if _COMMIT.fullmatch(github[2] or "") else None
            url = f"https://raw.githubusercontent.com/{github[1]}/{github[2] or 'HEAD'}{github[3] or ''}"
        elif "://" not in url:
            raise InputError(
                f"no such folder or file: {self.place}. Give a path that exists, a URL with its protocol, or the id of a dataset on the hub"
            )
        elif PurePosixPath(url).suffix in (".csv", ".json", ".jsonl", ".parquet"):
            url, _, self.only = url.rpartition("/")
        self._fs: AbstractFileSystem
        self._fs, root = self._asked(url_to_fs, url)
        self._root = root.rstrip("/")

    def where(self, name: str) -> str:
        """A file as messages name it."""
        return self.place if self.only == name else f"{self.place.rstrip('/')}/{name}"

    def first(self, *names: str) -> str | None:
        """The first of several files that is there, or None."""
        if self.only is not None:
            return self.only if self.only in names else None
        return next((name for name in names if self._exists(name)), None)

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        if self._hub_id is not None:
            content = self._asked(_hub_file, self._hub_id, name, str(self.commit))
        else:
            content = self._asked(self._fs.cat_file, f"{self._root}/{name}")
        self.sha256[name] = hashlib.sha256(content).hexdigest()
        return content

    def csv(self, name: str) -> pa.Table:
        """A CSV file, every column as text, whatever it looks like: "NA", "null" and "001" stay what they are."""
        content = self.read(name).removeprefix(b"\xef\xbb\xbf")
        try:
            header = pyarrow.csv.open_csv(pa.BufferReader(content), parse_options=_CSV).schema.names
            as_text = pyarrow.csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()), strings_can_be_null=False)
            return pyarrow.csv.read_csv(pa.BufferReader(content), parse_options=_CSV, convert_options=as_text)
        except pa.ArrowInvalid as error:
            raise InputError(f"{self.where(name)} is not a readable CSV file ({first_line(error)})") from error

    def split(self, split: str) -> tuple[str, pa.Table]:
        """The name of a dataset's split as messages give it, and its rows. Raises InputError when there are none, or a file is torn."""
        names = next(filter(None, (self._matching(pattern.format(split=split)) for pattern in SPLIT)), None)
        if names is None:
            raise InputError(
                f"{self.place}: no parquet file of the split {split}; expected {SPLIT[0].format(split=split)} or the like in the folder"
                + (f", found {', '.join(sorted(self._names)[:20]) or 'no file'}" if self._names is not None else "")
            )
        tables = []
        for name in names:
            try:
                tables.append(pq.read_table(pa.BufferReader(self.read(name))))
            except pa.ArrowInvalid as error:
                raise InputError(f"{self.where(name)} is not a readable parquet file ({first_line(error)})") from error
        where = self.where(names[0]) if len(names) == 1 else f"{self.where(names[0])} and {len(names) - 1} more"
        return where, pa.concat_tables(tables, promote_options="default")

    def _exists(self, name: str) -> bool:
        return name in (self._names or ()) if self._hub_id is not None else self._asked(self._fs.exists, f"{self._root}/{name}")

    def _matching(self, pattern: str) -> list[str]:
        """The files that a pattern matches, sorted. A web server lists nothing: there the pattern's one likely name is looked for."""
        if self.only is not None:
            return []
        if self._names is None and "http" in self._fs.protocol:
            name = pattern.replace("-*", "-00000-of-00001")
            return [name] if "*" not in name and self._exists(name) else []
        if self._names is None:
            paths = self._asked(partial(self._fs.find, self._root, maxdepth=2))
            self._names = [path.removeprefix(f"{self._root}/") for path in paths]
        return sorted(name for name in self._names if fnmatch.fnmatchcase(name, pattern) and name.count("/") == pattern.count("/"))

    def _asked(self, question: Callable[..., _Answer], *arguments: str | None) -> _Answer:
        """What disk or network answer; what goes wrong there is told as bad input."""
        try:
            return question(*arguments)
        except Exception as error:  # every file system raises exceptions of its own
            what = f"{self.place} is neither a folder here nor a dataset that the hub gave" if self._hub_id else f"cannot read {self.place}"
            raise InputError(
                f"{what} ({first_line(error)}). Check the name and the connection (for a gated dataset: ask for access on its page, then "
                "hf auth login), or fetch the files by hand and give their folder"
            ) from error


def _hub_files(repo_id: str, revision: str | None) -> tuple[str, list[str]]:
    from huggingface_hub import HfApi

    info = HfApi().dataset_info(repo_id, revision=revision)
    return str(info.sha), [sibling.rfilename for sibling in info.siblings or ()]


def _hub_file(repo_id: str, name: str, commit: str) -> bytes:
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(repo_id, name, repo_type="dataset", revision=commit)).read_bytes()
