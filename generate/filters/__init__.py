"""Text filters: what decides from a prompt alone whether it is let through. One file a filter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dataset_builder.errors import InputError


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter says of one prompt: is it flagged, and the score on the filter's own scale."""

    flagged: bool
    score: float


class TextFilter(Protocol):
    """A filter over prompts."""

    @property
    def name(self) -> str:
        """What it is called in commands and folders."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it was made for (BCP-47); verdicts on others are kept, with a warning."""

    def signature(self) -> str:
        """Name, version and every setting that changes a verdict, in one string that is stored with each."""

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """One verdict a text, whatever stands beside it in the batch."""


def load(name: str) -> TextFilter:
    """The filter a user named. Raises InputError, naming the known ones, when there is none."""
    known: dict[str, Callable[[], TextFilter]] = {"profanity-check": _profanity_check}
    if name not in known:
        raise InputError(f"unknown filter {name!r}: expected one of {', '.join(known)}")
    return known[name]()


def _profanity_check() -> TextFilter:
    from generate.filters.profanity_check import ProfanityCheck

    return ProfanityCheck()
