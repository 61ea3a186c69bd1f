"""Models of other repositories, as programs of their own: JSON lines in and out, images through a folder (adapters/README.md).

What a program sends is not trusted: its files must lie in the exchange folder, its images are decoded within bounds, its answers must
name requests that are open. A program that dies, falls silent or garbles its answers is started anew; one that answers wrongly ends
the run, since an image might then stand beside another row's prompt.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import weakref
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from time import monotonic
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from t2i_parity.cards.documents import Json, JsonObject
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.schema import Column
from t2i_parity.generate import layout
from t2i_parity.generate.backends.backgrounds import CANVAS
from t2i_parity.generate.backends.identity import place_name
from t2i_parity.generate.backends.received import MOST_BYTES, decoded
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.models.adapters import ADAPTERS, PROGRAMS, Manifest
from t2i_parity.generate.rows import PlannedRow, WordedRow

PROTOCOL = 1
LONGEST_LINE = 2**20
"""No answer is longer, in bytes."""
PATIENCE = 3.0
"""Seconds that a program which closed its output has to end, so that its exit code can be told."""
TAIL = 30
"""So many of the last lines that a program wrote to standard error are shown when it fails."""

Side = Annotated[int, Field(ge=16, le=8192)]
Seconds = Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True)
class AdapterSettings:
    """What ``--set`` takes.

    ``python`` is the interpreter of the model's own environment, ``folder`` the clone that the program is started in, ``program`` one of
    your own in place of ours, ``places`` what it needs on disk or on the hub (NAME=PATH,…), ``options`` a JSON object that it gets as it
    is. ``condition`` is the image that a program of your own takes. The program has ``start_timeout`` seconds to load its model and
    ``timeout`` for an image; after ``restarts`` failures in a row the run ends.
    """

    python: str | None = None
    folder: str | None = None
    program: str | None = None
    places: str = ""
    options: str = "{}"
    width: Side | None = None
    height: Side | None = None
    steps: Annotated[int, Field(ge=1)] | None = None
    guidance: float | None = None
    condition: Literal["none", "positions", "glyphs"] | None = None
    start_timeout: Seconds = 1800.0
    timeout: Seconds = 600.0
    restarts: Annotated[int, Field(ge=0)] = 5


class Adapter:
    """A model behind a program, with the interface of a model. The program is started, and has loaded, when the object is made."""

    def __init__(self, source: str, settings: AdapterSettings) -> None:
        self.settings = settings
        self._source = source
        self._manifest = ADAPTERS.get(source)
        if self._manifest is None and settings.program is None:
            raise InputError(
                f"there is no adapter {source!r}: expected one of {', '.join(sorted(ADAPTERS))}, or a program of your own with "
                "--set program=PATH (generate/models/adapters/README.md says what it must do)"
            )
        self._options = _object(settings.options)
        self._places = _places(settings.places, self._manifest)
        self._shown = {name: _shown(place) for name, place in self._places.items()}
        self._program = _program(settings, self._manifest)
        self._kind = settings.condition or _kind(self._manifest)
        self._argv = [*_interpreter(settings, self._manifest, self._program), str(self._program)]
        self._folder = _folder(settings, self._manifest, self._program)
        self._exchange = tempfile.TemporaryDirectory(prefix="t2i-parity-exchange-")
        self._running: _Running | None = None
        self._number = 0
        self._failures = 0
        self._ready = self._start()
        self.name = str(self._ready["model"])
        self.device = str(self._ready.get("device") or "a program")

    @property
    def columns(self) -> tuple[Column, ...]:
        """Those of a text to render, for a program that takes a condition image."""
        return layout.columns() if self._kind != "none" else ()

    def record(self) -> JsonObject:
        """What the program says it is, the program itself by hash, the clone's commit, and all that it was told. Paths by their names."""
        settings, seeds = self.settings, self._ready.get("seeds")
        return {
            "model": self.name,
            "revision": self._ready.get("revision"),
            "adapter": self._source,
            "protocol": PROTOCOL,
            "program": self._program.name,
            "program_sha256": sha256(self._program.read_bytes()).hexdigest(),
            "code_commit": _commit(self._folder),
            "places": self._shown,
            "options": self._options,
            "width": settings.width,
            "height": settings.height,
            "steps": settings.steps,
            "guidance": settings.guidance,
            "condition": self._kind,
            "seeds": "honoured" if seeds is True else "not honoured" if seeds is False else "not told",
            **(layout.template_record() if self._kind == "none" else {}),
        }

    def check(self, rows: Sequence[WordedRow]) -> None:
        """Raise InputError when a row's layout is none, or a font for a condition image is missing."""
        if self._kind != "none":
            layout.check(rows)

    def truncated(self, rows: Sequence[PlannedRow]) -> dict[str, dict[str, int]]:
        """Unknown: a program does not tell how much of a prompt it reads."""
        return {}

    def close(self) -> None:
        """End the program and remove the exchange folder."""
        self._stop()
        self._exchange.cleanup()

    def generate(self, rows: Sequence[PlannedRow], seeds: Sequence[int]) -> list[Image.Image | Failure]:
        """One image a row, or why there is none. A row that was alone when the program failed, twice, has failed."""
        results: dict[int, Image.Image | Failure] = {}
        blamed: Counter[int] = Counter()
        while waiting := [place for place in range(len(rows)) if place not in results]:
            if self._running is None:
                self._start()
            flight = waiting[: 1 if blamed or self._failures else max(1, _count(self._ready.get("batch")))]
            requests = {place: self._request(rows[place], seeds[place]) for place in flight}
            results.update({place: request for place, request in requests.items() if isinstance(request, Failure)})
            try:
                self._exchanged({place: each for place, each in requests.items() if not isinstance(each, Failure)}, results)
            except _BrokenError as problem:
                told = self._told(problem)
                self._stop()
                self._failures += 1
                left = [place for place in flight if place not in results]
                if len(left) == 1:
                    blamed[left[0]] += 1
                    if blamed[left[0]] == 2:
                        results[left[0]] = Failure(f"the program failed on this row twice: {told}")
                if self._failures > self.settings.restarts:
                    raise InputError(
                        f"the program of {self._source} failed {self._failures} times in a row: {told}. Correct it, and run the same "
                        "command again"
                    ) from problem
        return [results[place] for place in range(len(rows))]

    # Inside

    def _start(self) -> Any:
        """Start the program and hear what it is. Raises InputError when it does not say so in time, or is another than before."""
        environment = {name: value for name, value in os.environ.items() if name not in _OURS and not name.endswith("_API_KEY")}
        try:
            running = _Running(self._argv, self._folder, environment | {"PYTHONUNBUFFERED": "1"})
        except OSError as error:
            raise InputError(f"the program of {self._source} could not be started ({error.strerror}): {' '.join(self._argv)}") from error
        self._running = running
        weakref.finalize(self, running.end)
        hello: JsonObject = {
            "type": "hello",
            "protocol": PROTOCOL,
            "exchange": self._exchange.name,
            "places": self._places,
            "options": self._options,
            "steps": self.settings.steps,
            "guidance": self.settings.guidance,
        }
        try:
            running.send(hello)
            ready = running.receive(monotonic() + self.settings.start_timeout)
        except _BrokenError as problem:
            told = self._told(problem)
            self._stop()
            raise InputError(f"the program of {self._source} did not become ready: {told}") from problem
        if ready.get("type") != "ready" or ready.get("protocol") != PROTOCOL or not isinstance(ready.get("model"), str):
            self._stop()
            raise InputError(
                f"the program of {self._source} did not become ready: expected an answer with type ready, protocol {PROTOCOL} and model, "
                f"got {json.dumps(ready)[:200]}"
            )
        before = getattr(self, "_ready", ready)
        if any(ready.get(name) != before.get(name) for name in ("model", "revision")):
            self._stop()
            raise InputError(f"the program of {self._source} came back as another model: {json.dumps(ready)[:200]}")
        return ready

    def _stop(self) -> None:
        if self._running is not None:
            self._running.end()
            self._running = None

    def _request(self, row: PlannedRow, seed: int) -> JsonObject | Failure:
        """The request for one image, or why it cannot be made. Its id is ours and has nothing of the row in it."""
        self._number += 1
        identity = f"{self._number:06d}"
        condition, told_layout = None, row.get("render_layout")
        try:
            texts = layout.texts_of(row) if row.get("render_text") else []
            if self._kind != "none":
                if self._kind == "glyphs" and row.get("condition_image") is None:
                    image, told_layout = layout.glyphs(row)
                else:
                    image = layout.condition_image(row, self._kind, self.settings.width or CANVAS)
                condition = str(Path(self._exchange.name) / f"{identity}-condition.png")
                image.save(condition)
        except ValueError as error:
            return Failure(f"the condition image cannot be drawn: {error}")
        return {
            "type": "image",
            "id": identity,
            "prompt": layout.worded(row) if self._kind == "none" else row["prompt"],
            "seed": seed,
            "width": self.settings.width,
            "height": self.settings.height,
            "language": row.get("language"),
            "render_text": row.get("render_text"),
            "render_texts": texts,
            "render_layout": told_layout,
            "condition_image": condition,
        }

    def _exchanged(self, requests: Mapping[int, Json], results: dict[int, Image.Image | Failure]) -> None:
        """Send requests, and take their answers in whichever order they come."""
        assert self._running is not None
        open_requests = {}
        for place, request in requests.items():
            self._running.send(request)
            open_requests[str(request["id"])] = place
        while open_requests:
            answer = self._running.receive(monotonic() + self.settings.timeout)
            identity = answer.get("id")
            if not isinstance(identity, str) or identity not in open_requests:
                known = isinstance(identity, str) and identity.isdigit() and 0 < int(identity) <= self._number
                self._stop()
                raise InputError(
                    f"the program of {self._source} answered "
                    + (f"the request {identity} a second time" if known else f"a request that nobody made: {json.dumps(answer)[:200]}")
                    + ". An image might stand beside another row's prompt, so nothing more is taken from it. Correct the program: "
                    "one answer a request, with its id"
                )
            results[open_requests.pop(identity)] = self._result(answer)
            self._failures = 0
            (Path(self._exchange.name) / f"{identity}-condition.png").unlink(missing_ok=True)

    def _result(self, answer: Any) -> Image.Image | Failure:
        if answer.get("refused") is not None:
            return Failure(str(answer["refused"])[:400], refused=True)
        if answer.get("error") is not None:
            return Failure(f"the program reported: {str(answer['error'])[:400]}")
        name = answer.get("file")
        if not isinstance(name, str) or not name:
            return Failure(f"the program answered without file, error or refused: {json.dumps(dict(answer))[:200]}")
        base = Path(self._exchange.name).resolve()
        path = base / name
        try:
            if not path.resolve().is_relative_to(base) or path.is_symlink():
                return Failure("the program named a file outside the exchange folder")
            found = path.stat()
            if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_BYTES:
                return Failure(f"the program named something that is no image file, or is larger than {MOST_BYTES:,} bytes")
            content = path.read_bytes()
            path.unlink()
        except (OSError, ValueError) as error:
            return Failure(f"the program's image cannot be read ({type(error).__name__})")
        return decoded(content)

    def _told(self, problem: _BrokenError) -> str:
        log = self._running.tail() if self._running else ""
        return f"{problem}" + (f"; it last wrote: {log}" if log else "")


_OURS = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__")
"""What says where our own packages are, which the model's environment must not see."""


class _BrokenError(Exception):
    """The program died, fell silent, or wrote what is no answer."""


class _Running:
    """A started program, its answers as they come, and the end of what it wrote to standard error."""

    def __init__(self, argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            argv,
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Of its own group, so that Ctrl-C ends our batch and not the program in the middle of it.
            start_new_session=True,
        )
        self._ended = False
        self._log: deque[str] = deque(maxlen=TAIL)
        self._answers: Queue[bytes | None] = Queue(maxsize=1000)
        self._reader = Thread(target=_read_answers, args=(self._process.stdout, self._answers), daemon=True)
        self._logger = Thread(target=_read_log, args=(self._process.stderr, self._log), daemon=True)
        self._reader.start()
        self._logger.start()

    def send(self, message: Json) -> None:
        """Write one line. Raises _BrokenError when nobody reads it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode("ascii") + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            raise _BrokenError(self._how_it_ended()) from None

    def receive(self, deadline: float) -> Any:
        """The next answer. Lines that do not begin as an object are taken for stray prints and go into the log."""
        while True:
            try:
                line = self._answers.get(timeout=max(0.0, deadline - monotonic()))
            except Empty:
                raise _BrokenError("it gave no answer in the time it has (--set timeout=…, start_timeout=…)") from None
            if line is None:
                raise _BrokenError(self._how_it_ended())
            if len(line) > LONGEST_LINE:
                raise _BrokenError(f"it wrote a line of more than {LONGEST_LINE:,} bytes to standard output")
            text = line.decode("utf-8", "replace").strip()
            if not text.startswith("{"):
                if text:
                    self._log.append(f"(on standard output, where only answers belong) {text[:300]}")
                continue
            try:
                answer = json.loads(text)
            except ValueError:
                raise _BrokenError(f"it wrote a line that is no JSON object to standard output: {text[:200]}") from None
            return answer

    def tail(self) -> str:
        """The last lines of its log, one after the other."""
        self._logger.join(timeout=0.5 if self._process.poll() is not None else 0.0)
        return " | ".join(line for line in list(self._log) if line)

    def end(self) -> None:
        """End it: by closing its input first, then by force, with every process that it started."""
        if self._ended:
            return
        self._ended = True
        process = self._process
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        for number, patience in ((None, 1.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            if number is not None:
                self._signal(number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                break
        # What it started may outlive it.
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _how_it_ended(self) -> str:
        try:
            code = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed its output and goes on"
        if code < 0:
            return f"it was ended by {signal.Signals(-code).name}"
        return f"it ended with exit code {code}"


def _read_answers(stream: Any, answers: Queue[bytes | None]) -> None:
    while line := stream.readline(LONGEST_LINE + 1):
        answers.put(line)
        if len(line) > LONGEST_LINE:
            break
    answers.put(None)


def _read_log(stream: Any, log: deque[str]) -> None:
    while line := stream.readline(4096):
        log.append(line.decode("utf-8", "replace").strip()[:300])


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 1


def _kind(manifest: Manifest | None) -> Literal["none", "positions", "glyphs"]:
    taken = manifest.catalogued.text_input if manifest else "prompt"
    if taken == "positions" or taken == "glyphs":
        return taken
    return "none"


def _needs(manifest: Manifest) -> str:
    steps = "; ".join(f"({number}) {step}" for number, step in enumerate(manifest.steps(), 1))
    return f"What {manifest.name} needs: {steps}"


def _program(settings: AdapterSettings, manifest: Manifest | None) -> Path:
    if settings.program is not None:
        path = Path(settings.program).resolve()
    else:
        assert manifest is not None
        path = PROGRAMS / manifest.program
    if not path.is_file():
        raise InputError(f"--set program={settings.program}: there is no such file")
    return path


def _interpreter(settings: AdapterSettings, manifest: Manifest | None, program: Path) -> list[str]:
    if settings.python is not None:
        found = shutil.which(settings.python)
        if found is None:
            raise InputError(
                f"--set python={settings.python}: there is no such program; give the model's own, such as ENVIRONMENT/bin/python"
            )
        return [os.path.abspath(found)]
    if manifest is not None:
        raise InputError(f"{manifest.name} runs in an environment of its own, and --set python=… is not given. {_needs(manifest)}")
    if program.suffix == ".py":
        return [sys.executable]
    if not os.access(program, os.X_OK):
        raise InputError(f"--set program={settings.program}: it is not executable; make it so, or give its interpreter with --set python=…")
    return []


def _folder(settings: AdapterSettings, manifest: Manifest | None, program: Path) -> Path:
    if settings.folder is None:
        if manifest is not None and manifest.files:
            raise InputError(f"{manifest.name} runs in a clone of its repository, and --set folder=… is not given. {_needs(manifest)}")
        return program.parent
    folder = Path(settings.folder).resolve()
    if not folder.is_dir():
        raise InputError(f"--set folder={settings.folder}: there is no such folder")
    missing = [name for name in (manifest.files if manifest else ()) if not (folder / name).is_file()]
    if missing:
        assert manifest is not None
        raise InputError(f"--set folder={settings.folder}: {', '.join(missing)} is not in it. {_needs(manifest)}")
    return folder


def _places(text: str, manifest: Manifest | None) -> dict[str, str]:
    """Where each thing is that the program needs; what lies on disk must be there."""
    places: dict[str, str] = {place.name: place.hub_id for place in manifest.places if place.hub_id} if manifest else {}
    known = [place.name for place in manifest.places] if manifest else None
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = pair.partition("=")
        if not equals or not name or not value or (known is not None and name not in known):
            raise InputError(f"--set places={text}: expected NAME=PATH,…" + (f" with the names {', '.join(known)}" if known else ""))
        path = Path(value).expanduser()
        if path.exists():
            value = str(path.resolve())
        elif path.is_absolute() or value.startswith((".", "~")):
            raise InputError(f"--set places: there is nothing at {value}, which is given for {name}")
        places[name] = value
    if manifest is not None and (missing := [place for place in manifest.places if place.name not in places]):
        raise InputError(
            f"{manifest.name} needs {'; '.join(f'{place.name} ({place.about})' for place in missing)}: give them with "
            f"--set places={','.join(f'{place.name}=PATH' for place in missing)}. {_needs(manifest)}"
        )
    return places


def _shown(place: str) -> str:
    """A place as a record holds it: a hub id, or the name and hash of what lies on disk without the way there."""
    return place_name(Path(place)) if Path(place).is_absolute() else place


def _commit(folder: Path) -> str | None:
    """The commit of the clone, None where it is no clone."""
    try:
        done = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _object(text: str) -> JsonObject:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"--set options={text}: expected a JSON object ({error})") from error
    if not isinstance(found, dict):
        raise InputError(f"--set options={text}: expected a JSON object")
    return found
