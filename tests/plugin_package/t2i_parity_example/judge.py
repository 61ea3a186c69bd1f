"""A judge that says how bright an image is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from t2i_parity.generate.judges import JUDGES


@dataclass(frozen=True, slots=True)
class BrightnessSettings:
    """``channel``: a letter of RGB, or L for all of it."""

    channel: str = "L"


@JUDGES.entry("brightness", "how bright an image is, from 0 to 1")
class Brightness:
    """The judge."""

    name = "brightness"
    columns: Mapping[str, pa.DataType] = {"brightness": pa.float64()}

    def __init__(self, settings: BrightnessSettings) -> None:
        self.settings = settings

    def signature(self) -> str:
        """The channel and our version."""
        return f"brightness|channel:{self.settings.channel}|v:1"

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Every image has a brightness."""

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The mean of each image."""
        channel = self.settings.channel
        pictures = [row["image"].convert("L") if channel == "L" else row["image"].getchannel(channel) for row in rows]
        return [{"brightness": float(np.asarray(picture).mean() / 255)} for picture in pictures]
