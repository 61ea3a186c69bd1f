"""A model that paints one colour, taken from the prompt's letters: a family of its own, which takes no source."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from PIL import Image

from t2i_parity.dataset_builder.schema import Column
from t2i_parity.generate.models import FAMILIES


@dataclass(frozen=True, slots=True)
class SwatchSettings:
    """``side``: of the square, in pixels."""

    side: int = 16


@FAMILIES.entry("swatch", "a colour for each prompt")
class Swatch:
    """The model."""

    name = "swatch"
    device = "cpu"
    columns: tuple[Column, ...] = ()

    def __init__(self, source: str, settings: SwatchSettings) -> None:
        self.settings = settings

    def record(self) -> dict[str, Any]:
        """All that decides the pixels."""
        return {"model": self.name, "side": self.settings.side, "version": 1}

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Every prompt has a colour."""

    def truncated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
        """Prompts are taken whole."""
        return {}

    def generate(self, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[Image.Image]:
        """A square in the colour of the prompt and its seed."""
        colours = [hashlib.sha256(f"{seed} {row['prompt']}".encode()).digest() for row, seed in zip(rows, seeds, strict=True)]
        size = (self.settings.side, self.settings.side)
        return [Image.new("RGB", size, (colour[0], colour[1], colour[2])) for colour in colours]
