"""Text-to-image models: what every family offers, and how a model is found by what the user typed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from PIL import Image

from dataset_builder.schema import Column
from generate.engine.local import Failure
from generate.settings import settings


class TextToImageModel(Protocol):
    """A model that turns prompt rows into images."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def columns(self) -> tuple[Column, ...]:
        """The prompt columns that it needs."""

    @property
    def device(self) -> str:
        """Where it runs."""

    def record(self) -> dict[str, Any]:
        """All that decides the pixels, as JSON: goes into run.json, and its fingerprint into every image_id. No secrets."""

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise InputError, before anything is generated, when something that these rows need is not there."""

    def truncated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
        """How many prompts the model sees only the beginning of: per part that cuts them, and per language."""

    def generate(self, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> Sequence[Image.Image | Failure]:
        """One image a row, from the row's seed alone (the place in the batch must not matter), or why there is none."""


def load(spec: str, options: Mapping[str, str]) -> TextToImageModel:
    """The model a user named: ``glyph``, or a diffusers pipeline by folder or hub id.

    Raises InputError for an unknown option, a value of the wrong type, or a model that is not there.
    """
    if spec == "glyph":
        from generate.models.glyph import Glyph, GlyphSettings

        return Glyph(settings(GlyphSettings, options, spec))
    from generate.models.diffusers_pipeline import DiffusersPipeline, PipelineSettings

    return DiffusersPipeline(spec, settings(PipelineSettings, options, spec))
