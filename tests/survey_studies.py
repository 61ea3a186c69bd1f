"""Small studies for the tests of the survey: runs of photographs that ship with a package, as two models might have made them."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from browser import PATIENCE
from commands import PROGRAM
from picture_runs import photographs, picture_run
from PIL import Image

from t2i_parity.generate.run import Run

NOUNS = ("house", "beach", "kitchen")


def study_run(folder: Path, model: str, countries: Sequence[str], *, side: int = 96, extra: Sequence[dict[str, Any]] = ()) -> Run:
    """A run over the geo prompts of some nouns, unspecified and by country; ``extra`` rows have the first photograph too."""
    rng = np.random.default_rng(len(model))
    photos = list(photographs().values())
    rows: list[dict[str, Any]] = []
    pictures: list[Image.Image] = []
    for noun in NOUNS:
        for country in (None, *countries):
            key = f"{noun}-{country or 'unspecified'}"
            ids = {"image_id": f"{model}-{key}", "prompt_id": f"geo-{key}", "pair_id": f"geo-{noun}"}
            rows.append({**ids, "noun": noun, "country": country})
            photo = photos[len(rows) % len(photos)]
            left, top = int(rng.integers(0, photo.width // 3)), int(rng.integers(0, photo.height // 3))
            size = min(photo.width - left, photo.height - top)
            pictures.append(photo.crop((left, top, left + size, top + size)).resize((side, side)))
    rows += list(extra)
    pictures += [photos[0].resize((side, side))] * len(extra)
    run = picture_run(folder, rows, pictures)
    run.record["identity"]["model"]["model"] = model
    run.write_record()
    return run


@dataclass
class Server:
    """A survey that runs as a process of its own, as a keeper starts it."""

    process: subprocess.Popen[str]
    url: str
    keeper: str

    def kill(self) -> None:
        """End it without a word."""
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(*arguments: object, port: int, program: Sequence[str] = PROGRAM, **settings: Any) -> Server:
    """Start a survey and wait until it is open."""
    words = [str(argument) for argument in arguments]
    process = subprocess.Popen([*program, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **settings)
    assert process.stdout is not None
    told = ""
    for line in process.stdout:
        told += line
        if found := re.search(r"with the token (\w+)", told):
            server = Server(process, f"http://127.0.0.1:{port}/", found.group(1))
            _wait(port)
            return server
    raise AssertionError(f"the survey did not open: {told}")


@contextlib.contextmanager
def survey(*arguments: object, port: int | None = None, **settings: Any) -> Iterator[Server]:
    """``t2i-parity survey`` with these arguments, until the end of the block."""
    at = port or free_port()
    server = start("survey", *arguments, "--port", at, port=at, **settings)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            try:
                server.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                server.kill()
        if server.process.stdout is not None:
            server.process.stdout.close()


def _wait(port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, "the survey does not listen"
        time.sleep(0.05)


def environment(**more: str) -> dict[str, str]:
    """This process's environment and more."""
    return {**os.environ, **more}
