"""Answers that were paid for, kept by what was asked: SQLite, each written and synced as it comes, so that a kill loses what was in flight.

The key is a hash over the model, its service, the template's hash and the whole request (messages, limits, temperature, seed, schema):
whatever may change an answer changes the key. What failed on its way was not paid for, and is not kept.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path

from t2i_parity.dataset_builder.chat import ChatModel, ChatRequest, Completion, Usage
from t2i_parity.dataset_builder.endpoints import RequestError
from t2i_parity.dataset_builder.errors import InputError, first_line

_TABLE = """CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, model TEXT NOT NULL, template TEXT NOT NULL, request TEXT NOT NULL, answer TEXT NOT NULL,
    input_tokens INTEGER, output_tokens INTEGER, answered_at TEXT NOT NULL)"""


def request_key(model: str, template: str, request: ChatRequest) -> tuple[str, str]:
    """The key of a request to a model (named with its service), and the request as JSON.

    >>> from t2i_parity.dataset_builder.chat import ask
    >>> request_key("m", "t@1+0", ask("hi"))[0] == request_key("m", "t@1+0", ask("hi", temperature=0.5))[0]
    False
    """
    asked = asdict(request)
    for message in asked["messages"]:
        if message.pop("images"):
            raise ValueError("construction asks about texts alone")
    told = json.dumps(asked, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(f"{model}\0{template}\0{told}".encode()).hexdigest(), told


class AnswerCache:
    """The answers in one file, used from any number of threads of one process.

    Raises InputError when the file is no such cache or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(_TABLE)
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{path} cannot be used as the cache of answers ({first_line(error)}). Give a work folder that can be written, and move "
                "away what stands there if it is something else"
            ) from error

    def get(self, key: str) -> Completion | None:
        """The answer of a key, None when it was never given."""
        with self._lock:
            found = self._db.execute("SELECT answer, input_tokens, output_tokens FROM answers WHERE key = ?", (key,)).fetchone()
        if found is None:
            return None
        answer = json.loads(found[0])
        usage = None if found[1] is None else Usage(found[1], found[2])
        return Completion(answer["text"], answer["finish"], answer["refusal"], None, usage)

    def put(self, key: str, model: str, template: str, request: str, answer: Completion) -> None:
        """Keep an answer; when it returns, the answer is on the disk."""
        said = json.dumps({"text": answer.text, "finish": answer.finish, "refusal": answer.refusal}, ensure_ascii=False)
        tokens = (answer.usage.input_tokens, answer.usage.output_tokens) if answer.usage else (None, None)
        now = datetime.now(timezone.utc).isoformat(timespec="seconds")
        try:
            with self._lock:
                self._db.execute(
                    "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (key, model, template, request, said, *tokens, now)
                )
        except sqlite3.Error as error:
            raise InputError(
                f"{self.path}: an answer could not be kept ({first_line(error)}). Make room, and run the same command again: what was "
                "answered before is kept"
            ) from error

    def __len__(self) -> int:
        with self._lock:
            return int(self._db.execute("SELECT count(*) FROM answers").fetchone()[0])

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


@dataclass
class CachedChat:
    """A chat model behind the cache, for requests of one template. ``model`` names model and service; ``asked`` counts what was paid."""

    chat: ChatModel
    cache: AnswerCache
    model: str
    template: str
    asked: int = 0
    reused: int = 0
    paid: Usage = field(default_factory=Usage)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """The model's name."""
        return self.chat.name

    @property
    def usage(self) -> Usage:
        """Tokens of what was paid for here."""
        return self.paid

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion | RequestError]:
        """As in :class:`~dataset_builder.chat.ChatModel`; what is known is not asked again, and what is asked is kept at once."""
        keyed = [request_key(self.model, self.template, request) for request in requests]
        known: dict[str, Completion | RequestError] = {}
        for key, _ in keyed:
            if key not in known and (kept := self.cache.get(key)) is not None:
                known[key] = kept
        todo = {key: (told, request) for (key, told), request in zip(keyed, requests, strict=True) if key not in known}
        answers = self.chat.complete([request for _, request in todo.values()]) if todo else []
        for (key, (told, _)), answer in zip(todo.items(), answers, strict=True):
            known[key] = answer
            if isinstance(answer, Completion):
                self.cache.put(key, self.model, self.template, told, answer)
        with self._lock:
            self.asked += len(todo)
            self.reused += len(requests) - len(todo)
            for answer in answers:
                if isinstance(answer, Completion) and answer.usage:
                    self.paid += answer.usage
        return [known[key] for key, _ in keyed]
