"""Chat models that read text and images: one protocol, and two kinds of services behind it.

``OpenAiChat`` speaks to whatever offers ``chat/completions`` (vLLM, OpenAI, Gemini's compatible endpoint), ``GeminiChat`` to Gemini's own
``generateContent``. A model that runs in this process has the same protocol (``generate.backends.local_vlm``). What was said is untrusted
text: nothing here runs it, and no key is ever part of an answer, a record or a message.
"""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol
from urllib.parse import quote

from t2i_parity.cards.documents import Json, JsonObject
from t2i_parity.dataset_builder.endpoints import Client, Endpoint, RequestError
from t2i_parity.dataset_builder.errors import InputError

Role = Literal["system", "user", "assistant"]

GEMINI_URL = "https://generativelanguage.googleapis.com/v1beta"
GEMINI_KEY = "GEMINI_API_KEY"

ODD_ANSWERS = 2
"""How often a request is sent whose answer is JSON of another shape than the service promises."""

REFUSALS = frozenset({"content_filter", "content_policy_violation", "moderation_blocked", "invalid_prompt"})
"""Error codes of a 400 that say that the service declines this content, as against a request that is malformed."""

WITHHELD = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "LANGUAGE"})
"""Gemini's finish reasons that withhold an answer."""


# What is asked


@dataclass(frozen=True, slots=True)
class ChatImage:
    """An encoded picture."""

    data: bytes
    mime: Literal["image/png", "image/jpeg", "image/webp"] = "image/png"

    @property
    def base64(self) -> str:
        """The bytes as JSON can carry them."""
        return base64.b64encode(self.data).decode("ascii")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn; a user's pictures come before the text."""

    role: Role
    text: str
    images: tuple[ChatImage, ...] = ()


@dataclass(frozen=True, slots=True)
class JsonSchema:
    """The form that an answer must have, for services that can hold a model to it; ``name`` in letters, digits and ``_``."""

    name: str
    schema: Json


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What is asked, and how it shall be answered.

    ``temperature`` None leaves it to the service (some models accept no other). ``top_logprobs`` is how many alternatives of each token are
    wanted with their log-probabilities; 0 asks for none.
    """

    messages: tuple[Message, ...]
    max_tokens: int = 1024
    temperature: float | None = 0.0
    seed: int | None = None
    schema: JsonSchema | None = None
    top_logprobs: int = 0

    def then(self, answer: str, text: str) -> ChatRequest:
        """The same conversation, after an answer and what is said to it."""
        return replace(self, messages=(*self.messages, Message("assistant", answer), Message("user", text)))


def ask(text: str, *, system: str | None = None, images: Sequence[ChatImage] = (), **how: Any) -> ChatRequest:
    """A request of one turn; ``how`` are the fields of :class:`ChatRequest`.

    >>> [message.role for message in ask("What is this?", system="Be brief.", max_tokens=8).messages]
    ['system', 'user']
    """
    first = (Message("system", system),) if system else ()
    return ChatRequest((*first, Message("user", text, tuple(images))), **how)


# What is answered


@dataclass(frozen=True, slots=True)
class Token:
    """A token of an answer, its natural log-probability, and the likeliest ones in its place, best first (itself mostly among them)."""

    text: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that were read and written, those of reasoning among the written."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens, as the service asks for them on the day; None where it is not known."""

    input: float | None = None
    output: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """An estimate in US dollars, None when a price is not known.

        >>> Prices(0.30, 2.50).cost(Usage(1_000_000, 100_000))
        0.55
        """
        if self.input is None or self.output is None:
            return None
        return (self.input * usage.input_tokens + self.output * usage.output_tokens) / 1e6


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer.

    ``finish`` is ``stop``, ``length`` (cut at ``max_tokens``), ``refused``, or another word of the service's. ``refusal`` says why a model
    or service declined, and is None when it did not. ``tokens`` is None when no log-probabilities came.
    """

    text: str
    finish: str = "stop"
    refusal: str | None = None
    tokens: tuple[Token, ...] | None = None
    usage: Usage | None = None


class ChatModel(Protocol):
    """Whatever answers conversations."""

    @property
    def name(self) -> str:
        """The model's name, as a record keeps it."""

    @property
    def usage(self) -> Usage:
        """Tokens of all answers so far."""

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion | RequestError]:
        """An answer to each request, in their order, or why there is none. Raises InputError when no request would be answered."""


# Services


class _Service:
    """What the two kinds of services share: many requests at once, answers of an odd shape asked for again, usage summed."""

    def __init__(self, endpoint: Endpoint, model: str, sleep: Callable[[float], None] = time.sleep) -> None:
        if not model:
            raise InputError(f"{endpoint.url} needs the name of a model")
        self.name = model
        self.client = Client(endpoint, sleep=sleep)
        self._usage = Usage()
        self._lock = threading.Lock()

    @property
    def usage(self) -> Usage:
        """Tokens of all answers so far, as the service counted them."""
        return self._usage

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion | RequestError]:
        """As in :class:`ChatModel`; ``endpoint.concurrency`` requests at a time."""
        results: list[Completion | RequestError] = [RequestError("not asked")] * len(requests)
        todo = list(range(len(requests)))
        for _ in range(ODD_ANSWERS):
            answers = self.client.post_all(self._path(), [self._body(requests[number]) for number in todo])
            odd = []
            for number, answer in zip(todo, answers, strict=True):
                try:
                    results[number] = _refused(answer) if isinstance(answer, RequestError) else self._completion(answer)
                except (LookupError, TypeError, ValueError, AttributeError) as error:
                    said = json.dumps(answer, ensure_ascii=False)[:300] if isinstance(answer, dict) else str(answer)
                    results[number] = RequestError(f"the answer is not of the promised form ({type(error).__name__}: {error}): {said}")
                    odd.append(number)
            todo = odd
            if not todo:
                break
        with self._lock:
            for result in results:
                if isinstance(result, Completion) and result.usage:
                    self._usage += result.usage
        return results

    def _path(self) -> str:
        raise NotImplementedError

    def _body(self, request: ChatRequest) -> JsonObject:
        raise NotImplementedError

    def _completion(self, answer: Any) -> Completion:
        raise NotImplementedError


class OpenAiChat(_Service):
    """A service with ``chat/completions`` under ``endpoint.url``, which ends in ``/v1`` with most.

    ``token_limit`` is what the service calls the longest answer: OpenAI's reasoning models take ``max_completion_tokens`` alone.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(endpoint, model, sleep)
        self._token_limit = token_limit

    def _path(self) -> str:
        return "chat/completions"

    def _body(self, request: ChatRequest) -> JsonObject:
        body: JsonObject = {
            "model": self.name,
            "messages": [_openai_message(message) for message in request.messages],
            self._token_limit: request.max_tokens,
        }
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.seed is not None:
            body["seed"] = request.seed
        if request.schema is not None:
            form: JsonObject = {"name": request.schema.name, "strict": True, "schema": dict(request.schema.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        if request.top_logprobs:
            body |= {"logprobs": True, "top_logprobs": request.top_logprobs}
        return body

    def _completion(self, answer: Any) -> Completion:
        choice = answer["choices"][0]
        message = choice["message"]
        text = message.get("content") or ""
        if not isinstance(text, str):
            raise TypeError(f"content is a {type(text).__name__}")
        finish = str(choice.get("finish_reason") or "stop")
        refusal = message.get("refusal") or ("the service's content filter withheld the answer" if finish == "content_filter" else None)
        listed = (choice.get("logprobs") or {}).get("content")
        tokens = None
        if listed is not None:
            tokens = tuple(
                _token(each["token"], each["logprob"], [(other["token"], other["logprob"]) for other in each.get("top_logprobs") or []])
                for each in listed
            )
        counted = answer.get("usage") or {}
        usage = Usage(int(counted["prompt_tokens"]), int(counted.get("completion_tokens") or 0)) if "prompt_tokens" in counted else None
        return Completion(text, "refused" if refusal else finish, str(refusal) if refusal else None, tokens, usage)


class GeminiChat(_Service):
    """Gemini's own ``generateContent``.

    ``thinking_tokens`` bounds what a thinking model may spend before it answers (0 for none; None leaves it to the service).
    """

    def __init__(
        self, endpoint: Endpoint, model: str, *, thinking_tokens: int | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        super().__init__(endpoint, model.removeprefix("models/"), sleep)
        self._thinking_tokens = thinking_tokens

    def _path(self) -> str:
        return f"models/{quote(self.name, safe='')}:generateContent"

    def _body(self, request: ChatRequest) -> JsonObject:
        how: JsonObject = {"maxOutputTokens": request.max_tokens}
        if request.temperature is not None:
            how["temperature"] = request.temperature
        if request.seed is not None:
            how["seed"] = request.seed
        if request.schema is not None:
            how |= {"responseMimeType": "application/json", "responseJsonSchema": dict(request.schema.schema)}
        if request.top_logprobs:
            how |= {"responseLogprobs": True, "logprobs": request.top_logprobs}
        if self._thinking_tokens is not None:
            how["thinkingConfig"] = {"thinkingBudget": self._thinking_tokens}
        system = [{"text": message.text} for message in request.messages if message.role == "system"]
        turns = [_gemini_turn(message) for message in request.messages if message.role != "system"]
        return {**({"systemInstruction": {"parts": system}} if system else {}), "contents": turns, "generationConfig": how}

    def _completion(self, answer: Any) -> Completion:
        counted = answer.get("usageMetadata") or {}
        usage = None
        if "promptTokenCount" in counted:
            written = sum(int(counted.get(name) or 0) for name in ("candidatesTokenCount", "thoughtsTokenCount"))
            usage = Usage(int(counted["promptTokenCount"]), written)
        blocked = (answer.get("promptFeedback") or {}).get("blockReason")
        if blocked:
            return Completion("", "refused", f"the service blocked the prompt: {blocked}", None, usage)
        candidate = answer["candidates"][0]
        reason = str(candidate.get("finishReason") or "STOP")
        parts = (candidate.get("content") or {}).get("parts") or []
        text = "".join(part["text"] for part in parts if "text" in part and not part.get("thought"))
        if reason in WITHHELD:
            return Completion(text, "refused", f"the service withheld the answer: {reason}", None, usage)
        finish = {"STOP": "stop", "MAX_TOKENS": "length"}.get(reason, reason.lower())
        listed = candidate.get("logprobsResult")
        tokens = None
        if listed is not None:
            top = listed.get("topCandidates") or []
            tokens = tuple(
                _token(chosen["token"], chosen["logProbability"], _gemini_alternatives(top[place] if place < len(top) else {}))
                for place, chosen in enumerate(listed.get("chosenCandidates") or [])
            )
        return Completion(text, finish, None, tokens, usage)


def over_http(
    backend: Literal["openai", "gemini"],
    *,
    model: str,
    url: str | None = None,
    key_variable: str | None = None,
    timeout: float = 120.0,
    attempts: int = 6,
    per_minute: float | None = None,
    concurrency: int = 8,
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens",
    thinking_tokens: int | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> OpenAiChat | GeminiChat:
    """A chat model behind a service; the arguments are those of :class:`~dataset_builder.endpoints.Endpoint` and of the two classes.

    Raises InputError when the address or the model is not given, or the key's variable is not set.
    """
    if backend == "gemini":
        endpoint = Endpoint(
            url or GEMINI_URL,
            key_variable or (None if url else GEMINI_KEY),
            "x-goog-api-key",
            "",
            timeout,
            attempts,
            per_minute,
            concurrency,
        )
        return GeminiChat(endpoint, model, thinking_tokens=thinking_tokens, sleep=sleep)
    if not url:
        raise InputError(
            "backend openai needs an address, --set url=…: http://127.0.0.1:8000/v1 for a vLLM server on this machine, or "
            "https://api.openai.com/v1 with --set key_variable=OPENAI_API_KEY"
        )
    endpoint = Endpoint(url, key_variable, timeout=timeout, attempts=attempts, per_minute=per_minute, concurrency=concurrency)
    return OpenAiChat(endpoint, model, token_limit=token_limit, sleep=sleep)


# Inside


def _openai_message(message: Message) -> JsonObject:
    if not message.images:
        return {"role": message.role, "content": message.text}
    pictures: list[JsonObject] = [
        {"type": "image_url", "image_url": {"url": f"data:{image.mime};base64,{image.base64}"}} for image in message.images
    ]
    return {"role": message.role, "content": [*pictures, {"type": "text", "text": message.text}]}


def _gemini_turn(message: Message) -> JsonObject:
    pictures: list[JsonObject] = [{"inlineData": {"mimeType": image.mime, "data": image.base64}} for image in message.images]
    return {"role": "model" if message.role == "assistant" else "user", "parts": [*pictures, {"text": message.text}]}


def _gemini_alternatives(listed: Any) -> list[tuple[str, float]]:
    return [(each["token"], each["logProbability"]) for each in listed.get("candidates") or []]


def _token(text: str, logprob: float, top: Sequence[tuple[str, float]]) -> Token:
    """A token, checked; alternatives without a finite number have probability 0 and are left out."""
    kept = [(str(other), float(weight)) for other, weight in top if math.isfinite(float(weight))]
    return Token(str(text), float(logprob), tuple(sorted(kept, key=lambda each: -each[1])))


def _refused(error: RequestError) -> Completion | RequestError:
    """The refusal that a 400 stands for, else the error as it is."""
    if error.status != 400:
        return error
    try:
        said = json.loads(error.body)["error"]
        codes = {said.get("code"), said.get("type"), (said.get("innererror") or {}).get("code")}
    except (ValueError, KeyError, TypeError, AttributeError):
        return error
    return Completion("", "refused", str(error)) if codes & REFUSALS else error
