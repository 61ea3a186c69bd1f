"""Stable Diffusion's safety checker: a CLIP image encoder that compares the finished image with seventeen concepts.

It looks at pictures only, so that it guards every model; an image that it blocks is withheld, and recorded as refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends.identity import files_sha256
from t2i_parity.generate.rows import Record

HUB_ID = "CompVis/stable-diffusion-safety-checker"


@dataclass(frozen=True, slots=True)
class SafetyCheckerSettings:
    """What ``--guard`` takes: the checker, by hub id or folder, and its revision on the hub; ``device`` is where it runs (auto: where the
    pipeline does, and on the CPU beside a model that is none)."""

    source: str = HUB_ID
    revision: str | None = None
    device: str = "auto"


class SafetyChecker:
    """The guardrail, with its weights loaded."""

    name = "safety-checker"
    reads_prompts = False

    def __init__(self, settings: SafetyCheckerSettings) -> None:
        warnings.filterwarnings("ignore", category=FutureWarning, module="torch")
        self.settings = settings
        self._torch = require("torch", package="torch", extra="generate")
        transformers = require("transformers", package="transformers", extra="generate")
        require("diffusers", package="diffusers", extra="generate")
        from diffusers.pipelines.stable_diffusion.safety_checker import StableDiffusionSafetyChecker
        from diffusers.utils import logging

        # Its line about black images is not true here: the image is withheld, and its row says so.
        logging.get_logger("diffusers.pipelines.stable_diffusion.safety_checker").setLevel(logging.ERROR)
        try:
            self._checker = StableDiffusionSafetyChecker.from_pretrained(settings.source, revision=settings.revision).eval()
            self._features = transformers.CLIPImageProcessor.from_pretrained(settings.source, revision=settings.revision)
        except Exception as error:  # the client raises many kinds, all of which mean: not to be had
            raise InputError(
                f"{settings.source!r} is neither a folder nor a hub id with a safety checker and its preprocessor_config.json "
                f"({first_line(error)}). Give one with --guard source=…; the stock one is {HUB_ID}"
            ) from error
        self._move("cpu" if settings.device == "auto" else settings.device)

    def record(self) -> Record:
        """The checker and its commit on the hub, or a hash of a folder's files."""
        folder = Path(self.settings.source)
        if folder.is_dir():
            return {"guardrail": self.name, "checker": folder.resolve().name, "files_sha256": files_sha256(folder)}
        commit = getattr(self._checker.config, "_commit_hash", None)
        return {"guardrail": self.name, "checker": self.settings.source, "revision": commit or self.settings.revision}

    def guard(self, pipeline: Any) -> Any:
        """The pipeline itself: nothing is done to an image before it is finished."""
        if self.settings.device == "auto":
            self._move(pipeline.device)
        return pipeline

    def withheld(self, images: Sequence[Image.Image]) -> list[str | None]:
        """For each image whether it came too close to a concept, as words; None for one that passes."""
        if not images:
            return []
        pictures = [image.convert("RGB") for image in images]
        pixels = self._features(pictures, return_tensors="pt").pixel_values.to(self._device)
        # The checker blackens what it is given in place; it is given nothing that is kept.
        blank = np.zeros((len(pictures), 1, 1, 3), dtype=np.float32)
        with self._torch.inference_mode():
            _, flagged = self._checker(clip_input=pixels, images=blank)
        return ["blocked by the safety checker" if each else None for each in flagged]

    def _move(self, device: Any) -> None:
        self._device = device
        self._checker.to(device)
