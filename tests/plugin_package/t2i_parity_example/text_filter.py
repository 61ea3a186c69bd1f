"""A text filter that flags what names a weapon."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from t2i_parity.generate.filters import FILTERS, Verdict


@dataclass(frozen=True, slots=True)
class WeaponsSettings:
    """``words``: what counts as one, parted by commas."""

    words: str = "gun,knife,bomb"


@FILTERS.entry("weapons", "flags a text that names a weapon")
class Weapons:
    """The filter."""

    name = "weapons"
    languages = ("en",)
    at_once = 64

    def __init__(self, settings: WeaponsSettings) -> None:
        self.settings = settings
        self._pattern = re.compile(rf"\b({'|'.join(map(re.escape, settings.words.split(',')))})\b", re.IGNORECASE)

    def signature(self) -> str:
        """The words and our version."""
        return f"weapons|words:{self.settings.words}|v:1"

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """Flagged or not; there is no score."""
        return [Verdict(self._pattern.search(text) is not None, None) for text in texts]
