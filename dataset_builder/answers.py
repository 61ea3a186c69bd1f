"""Answers of language models, read: JSON out of what surrounds it, checked against a schema, and asked for again when it does not fit.

Nothing is completed or guessed: an answer that is cut off, that holds two different objects, or that lacks a field is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from t2i_parity.dataset_builder.chat import ChatModel, ChatRequest, Completion, Usage
from t2i_parity.dataset_builder.endpoints import RequestError
from t2i_parity.dataset_builder.errors import require

Value = TypeVar("Value")

LONGEST = 200_000
"""Characters of the longest answer that is read at all."""

_FENCE = re.compile(r"```[^\S\n]*[\w+-]*[^\S\n]*\n(.*?)```", re.DOTALL)
_PAIRS = {"{": "}", "[": "]"}


class AnswerError(Exception):
    """Why an answer cannot be used, worded so that the model can be told."""


@dataclass(frozen=True, slots=True)
class Answered(Generic[Value]):
    """What an answer said, the answer itself, how many times the model was asked, and the tokens of all of them."""

    value: Value
    completion: Completion
    attempts: int
    usage: Usage


@dataclass(frozen=True, slots=True)
class Unanswered:
    """Why there is no usable answer; ``refused`` when the model or its service declined, ``completion`` the last answer if one came."""

    reason: str
    refused: bool = False
    attempts: int = 0
    usage: Usage = field(default_factory=Usage)
    completion: Completion | None = None


def answers(
    chat: ChatModel,
    requests: Sequence[ChatRequest],
    read: Callable[[Completion], Value] | Sequence[Callable[[Completion], Value]],
    *,
    attempts: int = 2,
) -> list[Answered[Value] | Unanswered]:
    """Ask each request until ``read`` (one for all requests, or one for each) can use its answer, at most ``attempts`` times.

    ``read`` raises AnswerError when it cannot. Asking the same again would give the same, so the model is shown its answer and told what
    was wrong with it. A refusal and a request that failed are not asked again: services are asked again on a lower floor.
    """
    reads = [read] * len(requests) if callable(read) else list(read)
    results: list[Answered[Value] | Unanswered] = [Unanswered("not asked")] * len(requests)
    usage = [Usage()] * len(requests)
    pending = dict(enumerate(requests))
    for attempt in range(1, attempts + 1):
        again = {}
        for (place, request), answer in zip(pending.items(), chat.complete(list(pending.values())), strict=True):
            if isinstance(answer, RequestError):
                results[place] = Unanswered(str(answer), False, attempt, usage[place])
                continue
            usage[place] += answer.usage or Usage()
            if answer.refusal is not None:
                results[place] = Unanswered(answer.refusal, True, attempt, usage[place], answer)
                continue
            try:
                results[place] = Answered(reads[place](answer), answer, attempt, usage[place])
            except AnswerError as error:
                asked = "once" if attempt == 1 else f"{attempt} times"
                reason = f"no usable answer, asked {asked}: {error}; the last one was {shortened(answer.text)}"
                results[place] = Unanswered(reason, False, attempt, usage[place], answer)
                again[place] = request.then(
                    answer.text,
                    f"That answer cannot be used: {error}. Answer the same question again, in exactly the form that was asked for, "
                    "and with nothing else.",
                )
        pending = again
        if not pending:
            break
    return results


def whole(completion: Completion) -> str:
    """The text of an answer. Raises AnswerError when it is empty or was cut off."""
    if completion.finish == "length":
        raise AnswerError("it was cut off at the limit of its length (max_tokens)")
    if not completion.text.strip():
        raise AnswerError("it was empty")
    return completion.text


def json_in(text: str) -> Any:
    """The one JSON object or array that a text holds, bare, in a code fence or amid prose; trailing commas are forgiven.

    Raises AnswerError when there is none, when it does not end, when a key stands twice, or when there are two that differ.

    >>> json_in('Sure:\\n```json\\n{"people": [{"age": "Adult",},],}\\n```\\nAnything else?')
    {'people': [{'age': 'Adult'}]}
    """
    if len(text) > LONGEST:
        raise AnswerError(f"it is longer than {LONGEST} characters")
    found: list[Any] = []
    for part in [*_FENCE.findall(text), _FENCE.sub("", text)]:
        for candidate in _candidates(part):
            try:
                value = json.loads(_without_trailing_commas(candidate), object_pairs_hook=_object, parse_constant=_no_constant)
            except (ValueError, RecursionError):
                continue
            if value not in found:
                found.append(value)
    if not found:
        raise AnswerError("it holds no complete JSON object")
    if len(found) > 1:
        raise AnswerError(f"it holds {len(found)} different JSON objects where one was asked for")
    return found[0]


def fitting(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value, when it fits a JSON schema (draft 2020-12). Raises AnswerError naming the place that does not.

    >>> fitting({"n": 4}, {"properties": {"n": {"maximum": 3}}})
    Traceback (most recent call last):
    t2i_parity.dataset_builder.answers.AnswerError: at n: 4 is greater than the maximum of 3
    """
    jsonschema = require("jsonschema", package="jsonschema", extra="prompts")
    error = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(value))
    if error is not None:
        place = ".".join(str(part) for part in error.absolute_path)
        raise AnswerError(f"{f'at {place}: ' if place else ''}{shortened(error.message, quoted=False)}")
    return value


def shortened(text: str, width: int = 160, *, quoted: bool = True) -> str:
    """The beginning of a text on one line, for a message.

    >>> shortened("a\\nb")
    "'a b'"
    """
    line = " ".join(text.split())
    line = line if len(line) <= width else line[: width - 1] + "…"
    return repr(line) if quoted else line


# Inside


def _candidates(text: str) -> list[str]:
    """The bracketed stretches of a text that close, outermost ones; brackets inside strings do not count."""
    found = []
    closing: list[str] = []
    start, in_string, escaped = 0, False, False
    for place, letter in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif letter == "\\":
                escaped = True
            elif letter == '"':
                in_string = False
        elif closing and letter == '"':
            in_string = True
        elif letter in _PAIRS:
            if not closing:
                start = place
            closing.append(_PAIRS[letter])
        elif closing and letter == closing[-1]:
            closing.pop()
            if not closing:
                found.append(text[start : place + 1])
        elif closing and letter in "}]":
            closing = []
    return found


def _without_trailing_commas(text: str) -> str:
    """JSON without the commas that stand before a closing bracket; those inside strings stay."""
    return re.sub(r'("(?:[^"\\]|\\.)*")|(?<![\[{,\s]),(?=\s*[}\]])', lambda match: match.group(1) or "", text, flags=re.DOTALL)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({key for key, _ in pairs}) < len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
