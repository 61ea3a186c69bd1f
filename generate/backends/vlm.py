"""What all judges that ask a vision-language model share: which model, how it is asked, what its answer becomes.

Three backends: ``transformers`` runs the model here, ``openai`` asks any service with ``chat/completions`` (vLLM, OpenAI and others),
``gemini`` asks Gemini's own. The same model answers differently behind each, log-probabilities above all, so the backend stands in the
signature; addresses and keys never do. A judge is a prompt and a way to read the answer: one file each.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import pyarrow as pa
from PIL import Image
from pydantic import Field

from t2i_parity.dataset_builder.answers import Answered, Unanswered, answers
from t2i_parity.dataset_builder.chat import ChatImage, ChatModel, ChatRequest, Completion, JsonSchema, Prices, Usage, ask, over_http
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.backends.local_vlm import DEFAULT_MODEL, MAX_PIXELS, MIN_PIXELS, Dtype, shared
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow
from t2i_parity.metrics._common import Signature

Count = Annotated[int, Field(ge=1)]
Price = Annotated[float, Field(ge=0)]
Pixels = Annotated[int, Field(ge=28 * 28)]

COMMON_COLUMNS: Mapping[str, pa.DataType] = {
    "answer": pa.string(),
    "attempts": pa.int32(),
    "input_tokens": pa.int64(),
    "output_tokens": pa.int64(),
    "cost": pa.float64(),
}
"""Beside what a judge saw: the answer as it was given, how many times it was asked for, tokens, and US dollars where prices are set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmSettings:
    """What ``--set`` takes with every judge of this kind.

    ``url``, ``key_variable`` (the *name* of the environment variable that holds the key), ``timeout`` (seconds), ``request_attempts``,
    ``per_minute``, ``concurrency``, ``token_limit`` and ``thinking_tokens`` are for services; ``revision``, ``dtype``, ``device``,
    ``min_pixels``, ``max_pixels`` and ``local_batch`` for ``transformers``. ``temperature=service`` leaves it to the service;
    ``structured`` asks a service to hold the model to the answer's JSON schema; ``attempts`` is how often a model is asked whose answer
    cannot be read.
    ``input_price`` and ``output_price`` are US dollars for a million tokens.
    """

    backend: Literal["transformers", "openai", "gemini"] = "transformers"
    model: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["service"] = 0.0
    max_tokens: Count = 1024
    attempts: Count = 2
    structured: bool = True
    url: str | None = None
    key_variable: str | None = None
    timeout: Annotated[float, Field(gt=0)] = 120.0
    request_attempts: Count = 6
    per_minute: Annotated[float, Field(gt=0)] | None = None
    concurrency: Count = 8
    token_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    thinking_tokens: Annotated[int, Field(ge=0)] | None = None
    input_price: Price | None = None
    output_price: Price | None = None
    revision: str | None = None
    dtype: Dtype = "auto"
    device: str = "auto"
    min_pixels: Pixels = MIN_PIXELS
    max_pixels: Pixels = MAX_PIXELS
    local_batch: Count = 16


@dataclass(frozen=True, slots=True)
class Prompt:
    """Words of ours that a judge asks with, versioned: a change of any of them changes every judgement.

    ``system`` and ``user`` have ``{names}`` to be filled in; ``parts`` are the texts that some of those stand for, such as definitions.
    """

    name: str
    version: str
    system: str
    user: str
    parts: Mapping[str, str] | None = None

    @property
    def signature(self) -> str:
        """Name, version, and the beginning of a SHA-256 over all words, so that an edit shows even without a new version.

        >>> Prompt("p", "1", "s", "u").signature
        'p@1+ec31d88a'
        """
        words = json.dumps([self.system, self.user, dict(self.parts or {})], ensure_ascii=False)
        return f"{self.name}@{self.version}+{hashlib.sha256(words.encode('utf-8')).hexdigest()[:8]}"

    def request(self, images: Sequence[ChatImage], *, how: Mapping[str, Any], **values: str) -> ChatRequest:
        """The prompt with its names filled in, from ``parts`` and ``values``; braces inside those stay as they are."""
        words = {**(self.parts or {}), **values}
        return ask(self.user.format(**words), system=self.system.format(**words), images=images, **how)


class VlmJudge:
    """A judge that asks one question about each image. Subclasses say what (``request``) and read the answer (``read``)."""

    name: str
    prompt: Prompt
    saw: Mapping[str, pa.DataType]
    """What it saw: its own columns."""
    schema: JsonSchema | None = None
    """The form of the answer, for judges that ask for JSON."""
    version = "1.0"
    """Of the way in which answers are read."""

    def __init__(self, settings: VlmSettings) -> None:
        self.settings = settings
        self.chat, self._served = opened(settings)
        self._usage = Usage()
        self._prices = Prices(settings.input_price, settings.output_price)
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="png")

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """What it saw, then the columns that all judges of this kind have."""
        return {**self.saw, **COMMON_COLUMNS}

    def signature(self) -> str:
        """Model, backend, prompt and every setting that changes an answer; no address and no key."""
        fields = {
            **self._served,
            "prompt": self.prompt.signature,
            **self.own_fields(),
            "temperature": str(self.settings.temperature),
            "max_tokens": str(self.settings.max_tokens),
            "attempts": str(self.settings.attempts),
        }
        if self.schema is not None:
            enforced = self.settings.structured and self.settings.backend != "transformers"
            fields["schema"] = "enforced" if enforced else "asked"
        return str(Signature(self.name, fields, self.version))

    def own_fields(self) -> Mapping[str, str]:
        """What a subclass adds to the signature."""
        return {}

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Raise InputError when rows are of a kind that the judge cannot judge."""

    def request(self, row: ImageRow, picture: ChatImage) -> ChatRequest:
        """What is asked about a row's picture."""
        return self.prompt.request([picture], how=self.how(), language=language_of(row), prompt=row["prompt"])

    def read(self, completion: Completion) -> Observation:
        """The observation's own columns. Raises AnswerError when the answer cannot be used."""
        raise NotImplementedError

    def how(self) -> dict[str, Any]:
        """The fields of a request that settings decide."""
        temperature = None if self.settings.temperature == "service" else self.settings.temperature
        schema = self.schema if self.settings.structured else None
        return {"max_tokens": self.settings.max_tokens, "temperature": temperature, "schema": schema}

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """What the model answered about each image, or why there is no usable answer."""
        pictures = self._pool.map(encoded, [row["image"] for row in rows])
        asked = [self.request(row, picture) for row, picture in zip(rows, pictures, strict=True)]
        return [self.observation(result) for result in self.answers(asked)]

    def answers(self, asked: Sequence[ChatRequest], attempts: int | None = None) -> list[Answered[Observation] | Unanswered]:
        """What was answered, in the order of the requests, each asked ``attempts`` times at most; their tokens go on the bill."""
        results = answers(self.chat, asked, self.read, attempts=attempts or self.settings.attempts)
        self._usage = sum((result.usage for result in results), self._usage)
        return results

    def observation(self, result: Answered[Observation] | Unanswered) -> Observation | Failure:
        """A row's observation with the columns that all judges of this kind have."""
        if isinstance(result, Unanswered):
            return Failure(result.reason, refused=result.refused)
        return {**result.value, "answer": result.completion.text, **self.spent(result.attempts, result.usage)}

    def spent(self, attempts: int, usage: Usage) -> Observation:
        """Attempts, tokens and cost as columns; tokens that the service did not count are null."""
        counted = usage != Usage()
        return {
            "attempts": attempts,
            "input_tokens": usage.input_tokens if counted else None,
            "output_tokens": usage.output_tokens if counted else None,
            "cost": self._prices.cost(usage) if counted else None,
        }

    def bill(self) -> str:
        """What all answers so far took, those that could not be used among them, for people to read."""
        usage = self._usage
        cost = self._prices.cost(usage)
        dollars = "" if cost is None else f", about ${cost:.4f}"
        return f"{usage.input_tokens:,} tokens read and {usage.output_tokens:,} written{dollars}"


def opened(settings: VlmSettings) -> tuple[ChatModel, dict[str, str]]:
    """The chat model that settings name, and what a signature tells of it.

    Raises InputError when the model is not named or not there, when a key is not set, or when what a backend needs is not installed.
    """
    if settings.backend == "transformers":
        local = shared(
            settings.model or DEFAULT_MODEL,
            revision=settings.revision,
            dtype=settings.dtype,
            device=settings.device,
            min_pixels=settings.min_pixels,
            max_pixels=settings.max_pixels,
            batch_size=settings.local_batch,
        )
        return local, {
            "backend": "transformers",
            "model": _plain(local.identity.model),
            "revision": local.identity.revision,
            "dtype": local.dtype,
            "pixels": local.pixels,
        }
    if not settings.model:
        raise InputError(f"backend {settings.backend} needs the model's name as the service knows it: --set model=NAME")
    served = over_http(
        settings.backend,
        model=settings.model,
        url=settings.url,
        key_variable=settings.key_variable,
        timeout=settings.timeout,
        attempts=settings.request_attempts,
        per_minute=settings.per_minute,
        concurrency=settings.concurrency,
        token_limit=settings.token_limit,
        thinking_tokens=settings.thinking_tokens,
    )
    thinking = {} if settings.thinking_tokens is None else {"thinking": str(settings.thinking_tokens)}
    return served, {"backend": settings.backend, "model": _plain(served.name), **thinking}


def encoded(picture: Image.Image) -> ChatImage:
    """A picture as PNG: nothing is lost on the way to the model."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return ChatImage(buffer.getvalue())


def language_of(row: ImageRow) -> str:
    """What a row's language is called in a prompt: its variety's name where it has one.

    >>> language_of({"language": "hi", "variety": None}), language_of({"language": "en", "variety": "IndE"})
    ('Hindi', 'Indian English')
    """
    variety = row.get("variety")
    return VARIETIES[variety].name if variety else LANGUAGES[row["language"]].name


def one_of(value: Any, choices: Sequence[str]) -> Any:
    """The choice that a value is, whatever its case and outer spaces, and without a closing bracket; else the value as it is.

    >>> one_of(" adult (20-59)", ["Child", "Adult"]), one_of("grown-up", ["Child", "Adult"])
    ('Adult', 'grown-up')
    """
    if not isinstance(value, str):
        return value
    folded = {choice.casefold(): choice for choice in choices}
    text = value.strip().casefold()
    return folded.get(text, folded.get(text.split("(")[0].strip(), value))


def _plain(model: str) -> str:
    """A model's name fit for a signature: a server may call a model by its path, which tells of a machine and not of the model."""
    name = PurePosixPath(model).name if model.startswith(("/", "~", ".")) else model
    return name.replace("|", "_").replace("\n", " ")
