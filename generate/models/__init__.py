"""Text-to-image models: what every family offers, and how a model is found by what the user typed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol, cast

from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.schema import Column
from t2i_parity.dataset_builder.settings import settings
from t2i_parity.generate.engine.local import Failure


class TextToImageModel(Protocol):
    """A model that turns prompt rows into images.

    A model may have more, which engines ask for and do without: ``batch_key(row)``, what rows are sorted by before they are batched
    (pixels, then the text's length), on which neither ids nor pixels depend; ``prepare(rows)``, called once with the rows that are really
    to be made, before the first of them; ``execution()``, how it is carried out, as JSON for run.json: what changes pixels by rounding
    alone and stands in no image_id, asked for after ``check``; ``rows_at_once``, the usual size of a batch; ``announce(images)``, a line
    to be told before so many images are made; ``guard(guardrail)``, for what runs a diffusers pipeline.
    """

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

    def generate(
        self, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]
    ) -> Sequence[Image.Image | Failure | Future[Image.Image | Failure]]:
        """One image a row, from the row's seed alone (the place in the batch must not matter), or why there is none.

        What is not done yet when the next batch can begin, such as decoding beside the denoiser, may come as a future.
        """


@dataclass(frozen=True, slots=True)
class Family:
    """A way of running models: the module, its class, and the class of its settings. Neither is imported before it is asked for.

    The class is made with ``(source, settings)``: what to run within the family (a hub id, a folder, an API's model, an adapter's
    name), and an object of the settings class read from ``--set name=value``.
    """

    module: str
    implementation: str
    settings: str
    about: str

    @property
    def present(self) -> bool:
        """Whether its module is there; a family that is announced and not built yet is listed, and refused when asked for."""
        return importlib.util.find_spec(self.module) is not None

    def settings_class(self) -> type:
        """The dataclass of its settings. Raises InputError for a family that is not built yet."""
        return cast(type, getattr(self._module(), self.settings))

    def load(self, source: str, options: Mapping[str, str], owner: str) -> TextToImageModel:
        """The model. Raises InputError for a setting it does not take, for a package that is not installed, and for a model not there."""
        model = getattr(self._module(), self.implementation)(source, settings(self.settings_class(), options, owner))
        return cast(TextToImageModel, model)

    def _module(self) -> ModuleType:
        if not self.present:
            raise InputError(f"{self.about} are not part of this version: the module {self.module} is missing")
        return importlib.import_module(self.module)


FAMILIES: Mapping[str, Family] = {
    "diffusers": Family("t2i_parity.generate.models.diffusers_pipeline", "DiffusersPipeline", "PipelineSettings", "pipelines of diffusers"),
    "glyph": Family("t2i_parity.generate.models.glyph", "Glyph", "GlyphSettings", "a typesetter"),
    "janus": Family("t2i_parity.generate.models.janus", "Janus", "JanusSettings", "Janus models of transformers"),
    "gemini": Family("t2i_parity.generate.models.gemini", "Gemini", "GeminiSettings", "image models behind Google's Gemini API"),
    "openai": Family(
        "t2i_parity.generate.models.openai_images", "OpenAIImages", "OpenAIImagesSettings", "OpenAI-compatible images endpoints"
    ),
    "adapter": Family("t2i_parity.generate.models.adapter", "Adapter", "AdapterSettings", "programs of the models' own authors"),
}
"""Every family by the word that stands before the colon on the command line. A new one is one entry and one file."""


def resolve(spec: str, options: Mapping[str, str]) -> tuple[Family, str, dict[str, str]]:
    """What a user named: the family, the source within it, and the settings, a catalogued model's defaults under the user's own.

    ``spec`` is a name of the catalog, ``family:source``, or a diffusers pipeline by folder or hub id.
    """
    from t2i_parity.generate.models.catalog import CATALOG

    if spec in CATALOG:
        entry = CATALOG[spec]
        return FAMILIES[entry.family], entry.source, {**entry.defaults, **options}
    family, colon, source = spec.partition(":")
    if colon and family in FAMILIES:
        return FAMILIES[family], source, dict(options)
    return FAMILIES["diffusers"], spec, dict(options)


def load(spec: str, options: Mapping[str, str]) -> TextToImageModel:
    """The model a user named (see ``resolve``).

    Raises InputError for an unknown option, a value of the wrong type, or a model that is not there.
    """
    family, source, chosen = resolve(spec, options)
    return family.load(source, chosen, spec)
