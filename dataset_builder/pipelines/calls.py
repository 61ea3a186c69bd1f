"""How a step asks a model: every call with what reads its answer, through the cache, repaired once, its faults counted by name.

In an estimate nobody is asked: what is in the cache is read, everything else is answered by what the call expects, and its tokens counted.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any, Generic, TypeVar

from t2i_parity.dataset_builder.answers import AnswerError, Unanswered, answers
from t2i_parity.dataset_builder.chat import ChatModel, ChatRequest, Completion, Usage
from t2i_parity.dataset_builder.pipelines.cache import AnswerCache, CachedChat, request_key
from t2i_parity.dataset_builder.pipelines.constraints import FaultError
from t2i_parity.dataset_builder.pipelines.roles import Role
from t2i_parity.dataset_builder.pipelines.template import Template

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Call(Generic[Value]):
    """One request, what reads its answer (raises FaultError), and what the answer is taken to be in an estimate: value and text."""

    request: ChatRequest
    read: Callable[[Completion], Value]
    expected: Value
    expected_text: str


@dataclass(frozen=True, slots=True)
class Got(Generic[Value]):
    """A value, or why there is none: the fault's name and what was said of it."""

    value: Value | None
    fault: str | None = None
    why: str | None = None


@dataclass
class Tally:
    """What the calls of one step came to; ``caught`` counts every unusable answer by the fault's name, the repaired ones too."""

    role: str = ""
    calls: int = 0
    reused: int = 0
    asked: int = 0
    paid: Usage = field(default_factory=Usage)
    caught: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)
    estimated: Usage = field(default_factory=Usage)


@dataclass
class Desk:
    """Where the steps of a pipeline ask: the roles, their models (loaded when first asked), the cache; ``estimate`` asks nobody."""

    roles: dict[str, Role]
    cache: AnswerCache
    estimate: bool = False
    progress: Callable[[int], None] = lambda done: None
    _chats: dict[str, ChatModel] = field(default_factory=dict)

    def ask(self, role_name: str, template: Template, calls: Sequence[Call[Value]], tally: Tally) -> list[Got[Value]]:
        """A value or a fault for each call, in their order. Identical calls are asked once.

        Raises InputError when no request would be answered; what was answered before is kept.
        """
        role = self.roles[role_name]
        tally.role = role_name
        tally.calls += len(calls)
        model = role.settings.identity
        keys: list[Hashable] = [request_key(model, template.id, call.request)[0] for call in calls]
        unique = list(dict(zip(keys, calls, strict=True)).items())
        got: dict[Hashable, Got[Value]] = {}
        if self.estimate:
            for key, call in unique:
                got[key] = self._estimated(str(key), call, tally)
            tally.reused += len(calls) - len(unique)
        else:
            cached = CachedChat(self._chat(role), self.cache, model, template.id)
            chunks = [unique[start : start + role.at_once] for start in range(0, len(unique), role.at_once)]
            lock = threading.Lock()

            def one(chunk: list[tuple[Hashable, Call[Value]]]) -> None:
                found = _answered(cached, [call for _, call in chunk], role.settings.attempts, tally, lock)
                with lock:
                    got.update(zip((key for key, _ in chunk), found, strict=True))
                    self.progress(len(chunk))

            _over(one, chunks, role.threads)
            tally.asked += cached.asked
            tally.reused += cached.reused + len(calls) - len(unique)
            tally.paid += cached.paid
        results = [got[key] for key in keys]
        tally.lost.update(result.fault for result in results if result.fault)
        return results

    def _chat(self, role: Role) -> ChatModel:
        if role.name not in self._chats:
            same = next((name for name in self._chats if self.roles[name].settings == role.settings), None)
            self._chats[role.name] = self._chats[same] if same else role.chat()
        return self._chats[role.name]

    def _estimated(self, key: str, call: Call[Value], tally: Tally) -> Got[Value]:
        known = self.cache.get(key)
        if known is not None:
            tally.reused += 1
            try:
                return Got(call.read(known))
            except FaultError as error:
                # What a repair would say is not known here; a refusal stays one.
                return Got(None, error.fault, str(error)) if error.fault == "refused" else Got(call.expected)
            except AnswerError:
                return Got(call.expected)
        tally.asked += 1
        asked = sum(tokens(message.text) + 4 for message in call.request.messages)
        tally.estimated += Usage(asked, min(tokens(call.expected_text), call.request.max_tokens))
        return Got(call.expected)


def tokens(text: str) -> int:
    """About how many tokens a text has for a language model of today: those of Mistral's tekken, which ships in a package.

    >>> tokens("A red boat on a lake")
    6
    """
    return len(_tekken().encode(text, bos=False, eos=False))


@cache
def _tekken() -> Any:
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    with resources.as_file(resources.files("mistral_common") / "data" / "tekken_240911.json") as path:
        return Tekkenizer.from_file(path)


# Inside


@dataclass(frozen=True, slots=True)
class _Refused:
    why: str


def _over(work: Callable[[Any], None], chunks: Sequence[Any], threads: int) -> None:
    """``work`` over all chunks; the first error ends it, and leaves undone what has not begun."""
    if threads == 1 or len(chunks) < 2:
        for chunk in chunks:
            work(chunk)
        return
    pool = ThreadPoolExecutor(min(threads, len(chunks)), thread_name_prefix="construct")
    try:
        for future in [pool.submit(work, chunk) for chunk in chunks]:
            future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _answered(chat: CachedChat, calls: Sequence[Call[Value]], attempts: int, tally: Tally, lock: threading.Lock) -> list[Got[Value]]:
    last: dict[int, str] = {}

    def reader(place: int, call: Call[Value]) -> Callable[[Completion], Value | _Refused]:
        def read(completion: Completion) -> Value | _Refused:
            try:
                return call.read(completion)
            except AnswerError as error:
                last[place] = error.fault if isinstance(error, FaultError) else "wrong_form"
                with lock:
                    tally.caught[last[place]] += 1
                if last[place] == "refused":
                    # A refusal in words is one too: nobody is pressed to answer after all.
                    return _Refused(str(error))
                raise

        return read

    found = answers(chat, [call.request for call in calls], [reader(place, call) for place, call in enumerate(calls)], attempts=attempts)
    got: list[Got[Value]] = []
    for place, answer in enumerate(found):
        if not isinstance(answer, Unanswered):
            said = answer.value
            got.append(Got(None, "refused", said.why) if isinstance(said, _Refused) else Got(said))
            continue
        if answer.refused:
            last[place] = "refused"
            with lock:
                tally.caught["refused"] += 1
        elif answer.completion is None or place not in last:
            last[place] = "request_failed"
        got.append(Got(None, last[place], answer.reason))
    return got
