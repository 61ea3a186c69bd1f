"""Who is asked: one chat model a role, from ``--set [ROLE.]name=value``.

The writer takes captions apart and writes prompts, varieties included; the translator translates; the reviewer translates back and checks
the others, and should be another model than they.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from t2i_parity.dataset_builder.chat import ChatModel, Prices, over_http
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.registry import of
from t2i_parity.dataset_builder.settings import settings

ROLES = ("writer", "translator", "reviewer")

Count = Annotated[int, Field(ge=1)]
Price = Annotated[float, Field(ge=0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleSettings:
    """What ``--set`` takes for a role, or for all when no role stands before the name.

    ``url``, ``key_variable`` (the *name* of the environment variable that holds the key), ``timeout`` (seconds), ``request_attempts``,
    ``per_minute``, ``concurrency``, ``token_limit`` and ``thinking_tokens`` are for services; ``revision``, ``dtype``, ``device`` and
    ``local_batch`` for ``transformers``. ``temperature=service`` leaves it to the service. ``attempts`` is how often a model is asked
    whose answer cannot be used. ``input_price`` and ``output_price`` are US dollars for a million tokens, for the estimate.
    """

    backend: Literal["openai", "gemini", "transformers"] = "openai"
    model: str | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | Literal["service"] = 0.0
    seed: int | None = None
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
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    device: str = "auto"
    local_batch: Count = 16

    @property
    def prices(self) -> Prices:
        """What tokens cost."""
        return Prices(self.input_price, self.output_price)

    @property
    def identity(self) -> str:
        """The model as records name it: backend, name (of a folder its last part and a hash of its files), revision and what thinking it is
        allowed; no address, no key, no path."""
        folder = Path(self.model or "") if self.backend == "transformers" and Path(self.model or "").is_dir() else None
        if folder is not None:
            return f"{self.backend}:{folder.resolve().name}@{_files_sha256(folder)[:12]}"
        more = [f"@{self.revision}"] if self.revision else []
        more += [f" (thinking {self.thinking_tokens})"] if self.thinking_tokens is not None else []
        return f"{self.backend}:{self.model}{''.join(more)}"

    @property
    def how(self) -> dict[str, Any]:
        """The fields of a ChatRequest that the settings decide."""
        return {
            "max_tokens": self.max_tokens,
            "temperature": None if self.temperature == "service" else self.temperature,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class Role:
    """A role with its settings."""

    name: str
    settings: RoleSettings

    def chat(self) -> ChatModel:
        """The model itself. Raises InputError when it cannot be had."""
        chosen = self.settings
        if chosen.backend == "transformers":
            local: ChatModel = of("chat model").load("transformers")(
                chosen.model,
                revision=chosen.revision,
                dtype=chosen.dtype,
                device=chosen.device,
                batch_size=chosen.local_batch,
            )
            return local
        return over_http(
            chosen.backend,
            model=chosen.model or "",
            url=chosen.url,
            key_variable=chosen.key_variable,
            timeout=chosen.timeout,
            attempts=chosen.request_attempts,
            per_minute=chosen.per_minute,
            concurrency=chosen.concurrency,
            token_limit=chosen.token_limit,
            thinking_tokens=chosen.thinking_tokens,
        )

    @property
    def threads(self) -> int:
        """How many requests are on their way at once; a model in this process has batches instead."""
        return 1 if self.settings.backend == "transformers" else self.settings.concurrency

    @property
    def at_once(self) -> int:
        """How many requests go into one call: one where each answer shall be kept the moment it comes."""
        return self.settings.local_batch if self.settings.backend == "transformers" else 1


def roles(options: Mapping[str, str]) -> dict[str, Role]:
    """Every role, from ``name=value`` for all of them and ``role.name=value`` for one.

    Raises InputError for an unknown role or setting, and for a role whose model is not named.

    >>> found = roles({"model": "a", "url": "http://127.0.0.1:1/v1", "reviewer.model": "b"})
    >>> [role.settings.model for role in found.values()]
    ['a', 'a', 'b']
    """
    shared = {name: value for name, value in options.items() if "." not in name}
    own: dict[str, dict[str, str]] = {role: {} for role in ROLES}
    for name, value in options.items():
        whose, dot, setting = name.partition(".")
        if dot and whose not in own:
            raise InputError(f"--set {name}={value}: there is no role {whose!r}; expected one of {', '.join(ROLES)}")
        if dot:
            own[whose][setting] = value
    found = {name: Role(name, settings(RoleSettings, {**shared, **own[name]}, name)) for name in ROLES}
    for name, role in found.items():
        if not role.settings.model:
            raise InputError(f"the {name} has no model: give --set model=NAME for all roles, or --set {name}.model=NAME for this one")
    return found


@cache
def _files_sha256(folder: Path) -> str:
    """One hash over the files of a model's folder, by name."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode())
            with path.open("rb") as file:
                while block := file.read(1 << 24):
                    digest.update(block)
    return digest.hexdigest()
