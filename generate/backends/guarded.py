"""What the guardrails have in common: a pipeline that answers as the one it guards, except when it is called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PIL import Image

from t2i_parity.dataset_builder.errors import InputError, require


class Guarded:
    """A pipeline behind a guardrail, which says what a call does. All else, its components and methods, is the given pipeline's own."""

    def __init__(self, pipeline: Any) -> None:
        self._given = pipeline

    def __getattr__(self, name: str) -> Any:
        if name == "_given":  # not there yet, as while a copy is made
            raise AttributeError(name)
        return getattr(self._given, name)


def nothing_withheld(images: Sequence[Image.Image]) -> list[str | None]:
    """The answer of a guardrail that does not look at finished images."""
    return [None] * len(images)


def stable_diffusion_1(pipeline: Any, guardrail: str) -> Any:
    """The pipeline, when it is one with a single CLIP text encoder and a UNet, as Stable Diffusion 1 and 2 are.

    Raises InputError for any other, since the guardrail was made for these.
    """
    diffusers = require("diffusers", package="diffusers", extra="generate")
    if not isinstance(pipeline, diffusers.StableDiffusionPipeline):
        raise InputError(
            f"{guardrail} guards StableDiffusionPipeline (Stable Diffusion 1 and 2), and this model is a {type(pipeline).__name__}. "
            "Give a model such as CompVis/stable-diffusion-v1-4, or another --guardrail"
        )
    return pipeline
