"""Guardrails: what stands between a pipeline's prompt and its image. Each wraps a loaded diffusers pipeline, and is one file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from generate.declared import Declared, find


class Guardrail(Protocol):
    """What is put around a pipeline; the noise of an image does not depend on it, so that guarded and unguarded images are pairs."""

    @property
    def name(self) -> str:
        """What it is called in commands and records."""

    def record(self) -> dict[str, Any]:
        """Every setting that changes an image, as JSON; its fingerprint goes into each image_id."""

    def guard(self, pipeline: Any) -> Any:
        """The guarded pipeline, sharing the given one's weights. Raises InputError for a pipeline that it cannot guard."""

    def arguments(self, prompts: list[str]) -> dict[str, Any]:
        """What a call of the guarded pipeline takes beside the usual arguments, for these prompts."""


GUARDRAILS: tuple[Declared, ...] = ()
"""Every guardrail. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> Guardrail:
    """The guardrail a user named. Raises InputError, naming the known ones, when there is none."""
    return cast(Guardrail, find(GUARDRAILS, name, "guardrail").load(options))
