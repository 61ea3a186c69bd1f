"""Models and judges that do as their options say, for tests of the engines: they fail, refuse, die, run out of memory, count."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import PROMPT_COLUMNS
from t2i_parity.generate import images
from t2i_parity.generate.engine.local import Failure, RefusedError
from t2i_parity.generate.run import Run


class Painter:
    """Paints a plain picture of its row's seed.

    Options hold prompt_ids: ``raises``, ``raises_once``, ``refuses``, ``fails``, ``kills`` (the process), ``unpaid`` (ends the run); and
    ``fits``, the largest batch that fits into memory; ``late``, to answer with futures; ``log``, a file with a line a call; ``seconds`` a
    batch; ``device``.
    """

    name = "painter"
    columns = ()

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)
        self.device = self.options.get("device", "here")
        self.checked: list[Any] = []
        self._raised: set[str] = set()
        self._late = ThreadPoolExecutor(1)

    def record(self) -> dict[str, Any]:
        return {"model": self.name, "kind": self.device.partition(":")[0]}

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.checked = list(rows)

    def truncated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
        return {}

    def generate(self, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[Image.Image | Failure | Future[Any]]:
        ids = [row["prompt_id"] for row in rows]
        assert self.checked, "a model is checked before it generates"
        self._log(ids)
        time.sleep(float(self.options.get("seconds", 0)))
        if len(rows) > int(self.options.get("fits", 10**6)) and "late" not in self.options:
            raise RuntimeError("CUDA out of memory. Tried to allocate 20.00 GiB")
        if self.options.get("kills") in ids:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.options.get("unpaid") in ids:
            raise InputError("the account is empty")
        if "late" in self.options:
            return [self._late.submit(self._paint, row, seed, len(rows)) for row, seed in zip(rows, seeds, strict=True)]
        return [self._paint(row, seed, len(rows)) for row, seed in zip(rows, seeds, strict=True)]

    def _paint(self, row: Mapping[str, Any], seed: int, beside: int) -> Image.Image | Failure:
        identity = row["prompt_id"]
        if beside > int(self.options.get("fits", 10**6)):
            raise MemoryError
        if identity == self.options.get("raises"):
            raise ValueError("no paint")
        if identity == self.options.get("raises_once") and identity not in self._raised:
            self._raised.add(identity)
            raise ValueError("a hiccup")
        if identity == self.options.get("refuses"):
            raise RefusedError("not that")
        if identity == self.options.get("fails"):
            return Failure("my last word")
        return Image.new("RGB", (16, 16), tuple(seed.to_bytes(4, "big")[:3]))

    def _log(self, ids: Sequence[str]) -> None:
        if "log" in self.options:
            with open(self.options["log"], "a") as file:
                file.write(" ".join(ids) + "\n")


def loading(retries: int = 2, **options: object) -> images.Loading:
    """What loads a painter, in whichever process."""
    return images.Loading(Painter, {name: str(value) for name, value in options.items()}, retries)


def rows(count: int) -> list[dict[str, Any]]:
    """Prompt rows p0, p1, …"""
    return [
        {**dict.fromkeys(PROMPT_COLUMNS), "prompt_id": f"p{number}", "pair_id": f"m{number}", "prompt": "x" * (number % 3 + 1),
         "language": "en", "subset": "s", "text_sha256": str(number)}
        for number in range(count)
    ]  # fmt: skip


def started(folder: Path | str) -> Run:
    """A run to paint into."""
    return Run.start(str(folder), "generation", identity={"model": "painter"}, details={})


def painted(folder: Path | str, count: int, maker: Any, *, batch_size: int = 4, **more: Any) -> Any:
    """Paint so many rows into a run; returns the tally."""
    from rich.console import Console

    run = started(folder)
    maker.ask("check", rows(count))
    plan = images.planned(rows(count), maker.ask("record"), seed=42, images_per_prompt=1)
    with run.locked():
        return images.generate(run, plan, maker, batch_size=batch_size, console=Console(quiet=True), **more)


def kept(folder: Path | str) -> dict[str, dict[str, Any]]:
    """The image rows of a run by prompt_id; asserts that none stands twice and that every file is readable."""
    found = Run.open(str(folder)).images().read().to_pylist()
    by_prompt = {row["prompt_id"]: row for row in found}
    assert len(by_prompt) == len(found)
    return by_prompt


class Watcher:
    """A judge that sees the size of a picture.

    Options: ``name``; ``raises`` and ``kills``, image_ids; ``unusable``, to end its whole run; ``log``, a file with a line a batch.
    """

    columns: Mapping[str, pa.DataType] = {"width": pa.int64()}

    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)
        self.name = self.options["name"]
        self.checked = 0

    def signature(self) -> str:
        return f"{self.name}|v:1"

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        self.checked = len(rows)

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Failure]:
        assert self.checked
        ids = [row["image_id"] for row in rows]
        if "log" in self.options:
            with open(self.options["log"], "a") as file:
                file.write(" ".join(str(id(row["image"])) for row in rows) + "\n")
        if "unusable" in self.options:
            raise InputError(f"{self.name} has no key")
        if self.options.get("kills") in ids:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.options.get("raises") in ids:
            raise ValueError("blinded")
        return [{"width": row["image"].width} for row in rows]


def watcher(name: str, **options: object) -> Any:
    """What makes a watcher, in whichever process."""
    return partial(Watcher, {"name": name, **{key: str(value) for key, value in options.items()}})
