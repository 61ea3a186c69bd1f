"""What tells one set of weights from another: the SHA-256 of whole files, for models, judges, filters, guardrails and encoders alike.

Concept erasure and fine-tuning edit weights in place, anywhere in a file, so every byte counts. Reading gigabytes takes long; a hash that
took reading of 16 MiB or more is kept in a small file, by the files' paths, sizes, times of change, inodes and devices.

The file is ``t2i-parity/hashes.json`` in the user's cache folder (``XDG_CACHE_HOME``, or ``~/.cache``). ``T2I_PARITY_HASH_CACHE`` names
another, or switches it off with ``off``. What the cache cannot see: bytes changed beneath the file system (on the raw disk, on a server
whose clock stands still), or through a memory map that the system has not written back; and it believes who can write that file.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from t2i_parity.dataset_builder.errors import InputError

VARIABLE = "T2I_PARITY_HASH_CACHE"
OFF = "off"
_WEIGHTS = frozenset((".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".onnx", ".npy", ".p", ".pkl", ".gguf", ".msgpack"))
_WORTH_KEEPING = 16 * 2**20
_MOST = 1000
"""Hashes kept, about 140 bytes each."""
_STILL = 2.0
"""Seconds for which a file must have been left alone: within one tick of its clock, a change of it would not show."""


def files_sha256(folder: Path) -> str:
    """A hash over all that a folder holds: names relative to it, sizes, and every byte.

    Links are followed; what is hidden is no part of a model. Raises InputError when something cannot be read.
    """
    return _folder(folder, _files(folder))


def file_sha256(file: Path) -> str:
    """The SHA-256 of a file's content. Raises InputError when it cannot be read."""
    return _kept("file", [("", file)])


def content_name(place: Path) -> str:
    """A file or folder as signatures name it: the last part of its path, and 12 hex digits of its content's hash."""
    return f"{place.resolve().name}@{(files_sha256(place) if place.is_dir() else file_sha256(place))[:12]}"


def place_name(place: Path) -> str:
    """As ``content_name``, of a place in which a program may also write: of a folder, the files of weights alone, where it holds any."""
    weights = [path for path in _files(place) if path.suffix in _WEIGHTS] if place.is_dir() else [place]
    if not weights:
        return place.resolve().name
    return f"{place.resolve().name}@{_folder(place, weights)[:12]}" if place.is_dir() else content_name(place)


def _folder(folder: Path, files: Sequence[Path]) -> str:
    return _kept("folder", [(path.relative_to(folder).as_posix(), path) for path in files])


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(_walk(folder, frozenset()))
    except OSError as error:
        raise _unread(error, folder) from error


def _unread(error: OSError, place: Path) -> InputError:
    return InputError(f"{error.filename or place} cannot be read ({error.strerror or error}), and all of a model is hashed")


def _walk(folder: Path, above: frozenset[Path]) -> Iterator[Path]:
    above |= {folder.resolve()}
    for path in folder.iterdir():
        if path.name.startswith("."):
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and path.resolve() not in above:
            yield from _walk(path, above)


def _kept(form: str, files: Sequence[tuple[str, Path]]) -> str:
    """The hash of named files, from the cache where they stand there as they are now."""
    try:
        key, size, changed = _state(form, files)
        if size < _WORTH_KEEPING or (cache := _cache_file()) is None:
            return _hashed(form, files)
        if (known := _read(cache).get(key)) is not None:
            return known
        found = _hashed(form, files)
        if changed + _STILL < time.time() and _state(form, files)[0] == key:
            _write(cache, key, found)
    except OSError as error:
        raise _unread(error, files[0][1]) from error
    return found


def _state(form: str, files: Sequence[tuple[str, Path]]) -> tuple[str, int, float]:
    """A key of the files as they are now, their size together, and when the last of them was changed.

    The time of the inode's change stands in it too: whoever sets a file's own time back moves that one on.
    """
    stats = [(name, str(path.resolve()), path.stat()) for name, path in files]
    seen = [[name, path, at.st_size, at.st_mtime_ns, at.st_ctime_ns, at.st_ino, at.st_dev] for name, path, at in stats]
    key = hashlib.sha256(json.dumps([form, seen]).encode("utf-8")).hexdigest()
    return key, sum(at.st_size for *_, at in stats), max((max(at.st_mtime, at.st_ctime) for *_, at in stats), default=0.0)


def _hashed(form: str, files: Sequence[tuple[str, Path]]) -> str:
    digest = hashlib.sha256()
    for name, path in files:
        if form == "folder":
            digest.update(json.dumps([name, path.stat().st_size]).encode("utf-8"))
        with path.open("rb") as opened:
            while block := opened.read(2**20):
                digest.update(block)
    return digest.hexdigest()


def _cache_file() -> Path | None:
    named = os.environ.get(VARIABLE, "")
    if named == OFF:
        return None
    try:
        return Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "t2i-parity" / "hashes.json"
    except RuntimeError:  # a user without a home
        return None


def _read(cache: Path) -> dict[str, str]:
    """What the cache holds, oldest first; nothing where it is torn or no cache of ours: hashing again is always right."""
    try:
        if not cache.is_file() or cache.stat().st_size > 1024 * _MOST:
            return {}
        held = json.loads(cache.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(held, dict):
        return {}
    digits = re.compile("[0-9a-f]{64}")
    return {key: value for key, value in held.items() if isinstance(value, str) and digits.fullmatch(key) and digits.fullmatch(value)}


def _write(cache: Path, key: str, digest: str) -> None:
    """Keep a hash. A folder that cannot be written costs time at the next start, and nothing else."""
    held = [*_read(cache).items(), (key, digest)][-_MOST:]
    with suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=cache.parent, prefix=".hashes-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(dict(held), file, indent=0)
            os.replace(name, cache)
        except OSError:
            os.unlink(name)
