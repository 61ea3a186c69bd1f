"""Text filters: what decides from a prompt alone whether it is let through. One file a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from generate.declared import Declared, find
from generate.engine.local import Failure


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

    def judge(self, texts: Sequence[str]) -> Sequence[Verdict | Failure]:
        """One verdict a text, whatever stands beside it in the batch; or why there is none."""


FILTERS: tuple[Declared, ...] = (
    Declared("profanity-check", "generate.filters.profanity_check", "ProfanityCheck", "ProfanityCheckSettings", "a linear SVM over words"),
)
"""Every filter. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> TextFilter:
    """The filter a user named. Raises InputError, naming the known ones, when there is none."""
    return cast(TextFilter, find(FILTERS, name, "filter").load(options))
