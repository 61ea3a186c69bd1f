"""A guardrail that withholds images in which red prevails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from t2i_parity.generate.guardrails import GUARDRAILS


@GUARDRAILS.entry("no-red", "withholds images in which red prevails")
class NoRed:
    """The guardrail; it takes no settings, looks at finished pictures, and so guards every model."""

    name = "no-red"
    reads_prompts = False

    def record(self) -> dict[str, Any]:
        """All that decides what is withheld."""
        return {"guardrail": self.name, "version": 1}

    def guard(self, pipeline: Any) -> Any:
        """The pipeline itself."""
        return pipeline

    def withheld(self, images: Sequence[Image.Image]) -> list[str | None]:
        """Why an image is withheld."""
        means = [np.asarray(image).reshape(-1, 3).mean(axis=0) for image in images]
        return ["red prevails" if red > max(green, blue) else None for red, green, blue in means]
