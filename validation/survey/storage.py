"""Where answers are kept: each is on the disk before its participant sees the next question.

A survey's folder holds ``plans/<participant>.json`` (what is asked, in which order), ``ratings/open-<participant>.jsonl`` (the answers
of one who has not finished, a line each, synced one by one) and ``ratings/part-*.parquet`` (those of everybody who has). A kill loses no
answer that was acknowledged; a line that it tore was not. Between the writing of a part and the clearing of its journal rows stand in both,
with the same ``rating_id``: readers count them once, and the next opening clears them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate.parts import Parts
from t2i_parity.validation.survey.ratings import JOURNAL, SCHEMA, latest
from t2i_parity.validation.survey.study import Item

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

SECRET_VARIABLE = "T2I_PARITY_SURVEY_SECRET"
"""The environment variable that holds a survey's secret where its folder does not last, as on a Space."""
CODE_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Without I, L, O and U, which are misread."""
CODE_LENGTH = 16
PARTS_AT_MOST = 50
"""Parts, each of one participant, from which the next opening makes one."""
_MISREAD = str.maketrans("ILO", "110")
_PARTICIPANT = re.compile(r"[0-9a-f]{24}")

AnswerRow: TypeAlias = dict[str, Any]
"""One answer of a participant: the columns of ``ratings.SCHEMA``."""


@dataclass(frozen=True, slots=True)
class Secret:
    """What turns a participant's code into a hash that only this survey can compute, and what lets its keeper in."""

    text: str = field(repr=False)

    @classmethod
    def of(cls, folder: Path) -> Secret:
        """From the environment, or from the file beside the folder (``<folder>.secret``), which is made where there is none.

        It stands beside the folder, not in it, so that publishing the folder does not publish it. Raises InputError when it is too short.
        """
        if (text := os.environ.get(SECRET_VARIABLE, "")) != "":
            if len(text) < 20:
                raise InputError(f"{SECRET_VARIABLE} is too short to be a secret; give it at least 20 random characters")
            return cls(text)
        file = folder.with_name(f"{folder.name}.secret")
        if not file.exists():
            if folder.exists() and any(folder.glob("plans/*.json")):
                raise InputError(
                    f"{folder} holds a survey and {file.name} beside it is gone: its participants' codes would not be known any more. Put "
                    f"the file back, give its text as {SECRET_VARIABLE}, or give another --out"
                )
            file.parent.mkdir(parents=True, exist_ok=True)
            with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as opened:
                opened.write(secrets.token_urlsafe(32))
                opened.flush()
                os.fsync(opened.fileno())
        return cls(file.read_text(encoding="utf-8").strip())

    def participant(self, code: str) -> str:
        """The hash by which a participant is known in the ratings."""
        return self._derived("participant", code)[:24]

    @property
    def keeper(self) -> str:
        """The token that opens the keeper's page."""
        return self._derived("keeper", "")[:32]

    def is_keeper(self, token: str) -> bool:
        """Whether this is the keeper's token, in a time that tells nothing about it."""
        return hmac.compare_digest(token.encode("utf-8"), self.keeper.encode("utf-8"))

    def _derived(self, purpose: str, text: str) -> str:
        return hmac.new(self.text.encode("utf-8"), f"{purpose}:{text}".encode(), hashlib.sha256).hexdigest()


def new_code() -> str:
    """A participant's code: 80 random bits in four groups of four letters and digits."""
    letters = "".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH))
    return "-".join(letters[place : place + 4] for place in range(0, CODE_LENGTH, 4))


def normal_code(text: str) -> str | None:
    """A code as somebody typed it, in its own form; None for what is none.

    >>> normal_code(" k7qf 2m9x-abcd-o123 "), normal_code("../../etc")
    ('K7QF-2M9X-ABCD-0123', None)
    """
    letters = "".join(text.upper().replace("-", " ").split()).translate(_MISREAD)
    if len(letters) != CODE_LENGTH or any(letter not in CODE_LETTERS for letter in letters):
        return None
    return "-".join(letters[place : place + 4] for place in range(0, CODE_LENGTH, 4))


@dataclass(slots=True)
class Session:
    """One participant: country, questions, and how many are answered. ``lock`` is held while an answer is written."""

    participant: str
    country: str
    items: Sequence[Item]
    rows: list[AnswerRow] = field(default_factory=list)
    finished: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def done(self) -> int:
        """Answered questions."""
        return len(self.items) if self.finished else len(self.rows)


class Answers:
    """The answers of all participants, in a folder on this machine."""

    def __init__(self, folder: Path, *, writing: AbstractContextManager[Any] | None = None) -> None:
        """``writing`` is held around whatever changes files that are already there (what uploads the folder has such a lock)."""
        self.folder = Folder(str(folder))
        self.root = folder
        self.parts = Parts(self.folder, "ratings", key="rating_id", schema=SCHEMA)
        self.sessions: dict[str, Session] = {}
        self._writing = writing or threading.RLock()
        # What uploads a folder never deletes: there, rows of parts made one would stand in both.
        self._compacts = writing is None

    @contextmanager
    def opened(self) -> Iterator[Answers]:
        """Hold the folder, and read what is in it. Raises InputError when another survey holds it or a file is torn."""
        lock = FileLock(self.root / ".lock")
        try:
            (self.root / "plans").mkdir(parents=True, exist_ok=True)
            (self.root / "ratings").mkdir(exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise InputError(f"another survey is writing into {self.root}; end it, or give another --out") from None
        except OSError as error:
            raise InputError(f"cannot write into {self.root}: {error.strerror or error}. Permit it, or give another --out") from error
        try:
            self._load()
            yield self
        finally:
            lock.release()

    def finished_rows(self) -> pa.Table:
        """The rows of everybody who has finished."""
        return latest(self.parts.read())

    # Writing

    def begin(self, participant: str, country: str, items: Sequence[Item]) -> Session:
        """A new participant; durable when this returns."""
        plan = {"participant": participant, "country": country, "items": [asdict(item) for item in items]}
        self.folder.write(json.dumps(plan, ensure_ascii=False).encode("utf-8"), "plans", f"{participant}.json")
        _sync(self.root / "plans")
        session = Session(participant, country, items)
        self.sessions[participant] = session
        return session

    def add(self, session: Session, row: AnswerRow) -> None:
        """Append an answer, durable when this returns; the last one moves the participant's answers into a part.

        The caller holds ``session.lock``. Raises OSError when it could not be written; then nothing of it is kept.
        """
        path = self._journal(session.participant)
        line = json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n"
        new = not path.exists()
        with open(path, "ab") as file:
            before = file.tell()
            try:
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
            except OSError:
                os.ftruncate(file.fileno(), before)
                raise
        if new:
            _sync(path.parent)
        session.rows.append(dict(row))
        if len(session.rows) == len(session.items):
            self._finish(session)

    def _finish(self, session: Session) -> None:
        """Fold a whole participation; where that fails the journal stays, and the next opening does it."""
        with self._writing:
            self.parts.append(pa.Table.from_pylist(session.rows, schema=SCHEMA))
            self.parts.fold()
            self._journal(session.participant).unlink(missing_ok=True)
        session.finished = True
        session.rows = []

    def _compact(self) -> None:
        """Make one part of many, each of which is a participant; a kill on the way leaves rows in two, which the next opening clears."""
        files = self.parts.files()
        rows = self.finished_rows()
        written = sum(pq.read_metadata(self.root / "ratings" / name).num_rows for name in files)
        if len(files) > PARTS_AT_MOST or written > len(rows):
            self.parts.replace(rows)

    # Reading

    def _journal(self, participant: str) -> Path:
        return self.root / "ratings" / f"{JOURNAL}{participant}.jsonl"

    def _load(self) -> None:
        self.parts.recover()
        self.parts.fold()
        if self._compacts:
            self._compact()
        counts: dict[str, int] = {}
        for participant in self.parts.read(["rating_id", "participant"])["participant"].to_pylist():
            counts[participant] = counts.get(participant, 0) + 1
        for path in sorted((self.root / "plans").glob("*.json")):
            session = _session(path)
            if counts.get(session.participant, 0) >= len(session.items):
                session.finished = True
                self._journal(session.participant).unlink(missing_ok=True)
            else:
                session.rows = _read_journal(self._journal(session.participant))
                if len(session.rows) >= len(session.items):
                    self._finish(session)
            self.sessions[session.participant] = session


def _session(path: Path) -> Session:
    try:
        plan = json.loads(path.read_bytes())
        items = [Item(**{**item, "shown": tuple(item["shown"])}) for item in plan["items"]]
        session = Session(plan["participant"], plan["country"], items)
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is not a participant's plan ({first_line(error)}). Restore it, or move it away") from error
    if not _PARTICIPANT.fullmatch(session.participant) or path.stem != session.participant:
        raise InputError(f"{path} is the plan of another participant than its name says; restore it, or move it away")
    return session


def _read_journal(path: Path) -> list[AnswerRow]:
    """The rows of a journal, one an order; what a kill left of a last line is cut off, since it was not acknowledged."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        with open(path, "r+b") as file:
            file.truncate(len(whole))
            os.fsync(file.fileno())
    rows: list[AnswerRow] = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = json.loads(line)
            if row["order"] != len(rows):
                raise ValueError(f"order {row['order']}, expected {len(rows)}")
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path}, line {number}: not the answer expected there ({first_line(error)}). Restore the file") from error
        rows.append(row)
    return rows


def today() -> str:
    """The day in UTC as the time of its beginning: when exactly somebody answered is nobody's business.

    >>> len(today()), today()[10:]
    (25, 'T00:00:00+00:00')
    """
    return f"{datetime.now(timezone.utc).date().isoformat()}T00:00:00+00:00"


def data_uri(webp: bytes) -> str:
    """A picture that has no address of its own.

    >>> data_uri(b"abc")
    'data:image/webp;base64,YWJj'
    """
    return f"data:image/webp;base64,{base64.b64encode(webp).decode('ascii')}"


def _sync(folder: Path) -> None:
    """Make a new name in a folder durable, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
