"""A pipeline as a graph of steps over texts: each step's result is a file, made again when what decides it changes.

A kill loses the step that was under way, not its answers: those are in the cache, and the step is made from them again. A step with
requests that failed is made again by the next run, which asks those alone.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from t2i_parity.cards.documents import Json
from t2i_parity.dataset_builder.chat import Usage
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.pipelines.calls import Call, Desk, Got, Tally
from t2i_parity.dataset_builder.pipelines.template import Template
from t2i_parity.dataset_builder.schema import Check
from t2i_parity.dataset_builder.storage import Folder

VERSION = "1"
"""Part of every fingerprint: a change of what steps do with answers is a change of this."""


@dataclass(frozen=True, slots=True)
class Text:
    """One text on its way from a caption to a row.

    ``id`` is its prompt_id (or, of an intermediate text, an id of the same form), ``made_from`` the id of the text it was made from,
    ``data`` what later steps and the row need (JSON values), ``checks`` the row's. ``fault`` names why it went no further.
    """

    id: str
    text: str
    caption: str
    language: str = "en"
    variety: str | None = None
    made_from: str | None = None
    producer: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    fault: str | None = None
    why: str | None = None

    @property
    def pair(self) -> str:
        """The pair that it belongs to."""
        return str(self.data["pair"])

    def but(self, **changes: Any) -> Text:
        """The same text with changes; ``data`` is added to."""
        if "data" in changes:
            changes["data"] = {**self.data, **changes["data"]}
        return replace(self, **changes)

    def failed(self, fault: str, why: str | None = None) -> Text:
        """The same text, out."""
        return replace(self, fault=fault, why=why)

    def checked(self, *checks: Check) -> Text:
        """The same text with more checks."""
        return replace(self, checks=(*self.checks, *checks))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step came to: its texts, good ones and faulty ones, and what its calls were."""

    step: str
    texts: tuple[Text, ...]
    tally: Tally
    fingerprint: str
    reused: bool = False

    @property
    def good(self) -> list[Text]:
        """Those that go on."""
        return [text for text in self.texts if text.fault is None]

    @property
    def faulty(self) -> list[Text]:
        """Those that do not."""
        return [text for text in self.texts if text.fault is not None]


Run = Callable[[Desk, Tally, Mapping[str, list[Text]]], Sequence[Text]]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what it needs, what it does with the good texts of those, and what decides its result beside them."""

    name: str
    needs: tuple[str, ...]
    run: Run
    decided_by: Json = field(default_factory=dict)
    about: str = ""


class Workplace:
    """The folder where a pipeline keeps its steps and its cache; one process works in it at a time.

    Raises InputError when another one does, or the folder cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; --work expects a folder")
        try:
            path.mkdir(parents=True, exist_ok=True)
            self._lock = FileLock(path / ".lock")
            self._lock.acquire(timeout=0)
        except Timeout as error:
            raise InputError(f"another construction works in {path}; wait for it, or give another --work folder") from error
        except OSError as error:
            raise InputError(f"{path} cannot be used as the work folder ({first_line(error)})") from error
        self._folder = Folder(str(path))

    def close(self) -> None:
        """Let others in."""
        self._lock.release()

    def write(self, content: str, *names: str) -> Path:
        """Write a file below the folder, whole or not at all; its path."""
        self._folder.write(content.encode("utf-8"), *names)
        return self.path.joinpath(*names)

    def run(
        self, steps: Sequence[Step], desk: Desk, told: Callable[[Step], None] = lambda step: None, folder: str = "steps"
    ) -> dict[str, Outcome]:
        """Every step's outcome, in order; what is there under the same fingerprint is taken from its file.

        Raises InputError when no request would be answered.
        """
        done: dict[str, Outcome] = {}
        for number, step in enumerate(steps):
            if missing := [name for name in step.needs if name not in done]:
                raise ValueError(f"step {step.name} needs {', '.join(missing)}, which does not come before it")
            told(step)
            decided = {
                "version": VERSION,
                "step": step.name,
                "by": dict(step.decided_by),
                "from": {name: done[name].fingerprint for name in step.needs},
            }
            fingerprint = _sha256(decided)
            names = (folder, f"{number:02d}-{step.name}.jsonl")
            outcome = self._kept(step.name, fingerprint, names)
            if outcome is None:
                tally = Tally()
                texts = tuple(step.run(desk, tally, {name: done[name].good for name in step.needs}))
                # What failed on its way is asked again; whatever was made without it is then made anew.
                lacking = sum(text.fault == "request_failed" for text in texts)
                made_of = _sha256([fingerprint, [_line(text) for text in texts]]) if lacking else fingerprint
                outcome = Outcome(step.name, texts, tally, made_of)
                if not desk.estimate:
                    self._keep(outcome, fingerprint, names, complete=not lacking)
            done[step.name] = outcome
        return done

    # Inside

    def _kept(self, step: str, fingerprint: str, names: tuple[str, ...]) -> Outcome | None:
        path = self.path.joinpath(*names)
        if not path.is_file():
            return None
        try:
            first, *lines = path.read_text(encoding="utf-8").splitlines()
            header = json.loads(first)
            if header["fingerprint"] != fingerprint or not header["complete"] or header["texts"] != len(lines):
                return None
            counted = header["tally"]
            tally = Tally(
                counted["role"],
                counted["calls"],
                counted["calls"],
                0,
                Usage(),
                Counter(counted["caught"]),
                Counter(counted["lost"]),
            )
            return Outcome(step, tuple(Text(**{**json.loads(line), "checks": tuple(json.loads(line)["checks"])}) for line in lines), tally,
                           fingerprint, True)  # fmt: skip
        except (ValueError, KeyError, TypeError):
            return None

    def _keep(self, outcome: Outcome, fingerprint: str, names: tuple[str, ...], *, complete: bool) -> None:
        tally = outcome.tally
        header = {
            "step": outcome.step,
            "fingerprint": fingerprint,
            "complete": complete,
            "texts": len(outcome.texts),
            "tally": {"role": tally.role, "calls": tally.calls, "caught": dict(tally.caught), "lost": dict(tally.lost)},
        }
        lines = [json.dumps(header, ensure_ascii=False), *(_line(text) for text in outcome.texts)]
        self.write("\n".join(lines) + "\n", *names)


def asked(
    desk: Desk, tally: Tally, role: str, template: Template, made: Sequence[tuple[Text, Call[Any]]], finish: Callable[[Text, Any], Text]
) -> list[Text]:
    """Each text after its call: ``finish`` makes it from the value, and a fault takes it out."""
    got: list[Got[Any]] = desk.ask(role, template, [call for _, call in made], tally)
    return [
        text.failed(answer.fault, answer.why) if answer.fault is not None else finish(text, answer.value)
        for (text, _), answer in zip(made, got, strict=True)
    ]


def _line(text: Text) -> str:
    # JSON escapes the separators that str.splitlines knows beside the line break.
    line = json.dumps(asdict(text), ensure_ascii=False)
    for sign in ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"):
        line = line.replace(sign, f"\\u{ord(sign):04x}")
    return line


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=False, sort_keys=True, default=str).encode("utf-8")).hexdigest()
