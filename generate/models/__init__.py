"""Text-to-image models: what every family offers, and how a model is found by what the user typed.

A new model of a family is one entry of the catalog, a new family one file and one entry here. A package of somebody else's adds one by
``@FAMILIES.entry(name, about)`` over its class, in a module that it names in the entry-point group ``t2i_parity.plugins``;
``--model module:Class`` needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Protocol

from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.registry import Entry, Registry, packages
from t2i_parity.dataset_builder.schema import Column
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import PlannedRow, Record, WordedRow


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

    def record(self) -> Record:
        """All that decides the pixels, as JSON: goes into run.json, and its fingerprint into every image_id. No secrets."""

    def check(self, rows: Sequence[WordedRow]) -> None:
        """Raise InputError, before anything is generated, when something that these rows need is not there."""

    def truncated(self, rows: Sequence[PlannedRow]) -> dict[str, dict[str, int]]:
        """How many prompts the model sees only the beginning of: per part that cuts them, and per language."""

    def generate(self, rows: Sequence[PlannedRow], seeds: Sequence[int]) -> Sequence[Image.Image | Failure | Future[Image.Image | Failure]]:
        """One image a row, from the row's seed alone (the place in the batch must not matter), or why there is none.

        What is not done yet when the next batch can begin, such as decoding beside the denoiser, may come as a future.
        """


_TORCH = packages("generate", "torch", "transformers")
_HERE = "t2i_parity.generate.models."

FAMILIES: Registry[TextToImageModel] = Registry(
    "family of models",
    (
        Entry("diffusers", f"{_HERE}diffusers_pipeline:DiffusersPipeline", "pipelines of diffusers",
              (*_TORCH, *packages("generate", "diffusers", "accelerate"))),
        Entry("glyph", f"{_HERE}glyph:Glyph", "a typesetter"),
        Entry("janus", f"{_HERE}janus:Janus", "Janus models of transformers", (*_TORCH, *packages("clip", "torchvision"))),
        Entry("gemini", f"{_HERE}gemini:Gemini", "image models behind Google's Gemini API"),
        Entry("openai", f"{_HERE}openai_images:OpenAIImages", "OpenAI-compatible images endpoints"),
        Entry("adapter", f"{_HERE}adapter:Adapter", "programs of the models' own authors"),
    ),
)  # fmt: skip
"""Every family by the word that stands before the colon on the command line. A new one is one entry and one file.

The class is made with ``(source, settings)``: what to run within the family (a hub id, a folder, an API's model, an adapter's name, "" for
a family that is one model), and an object of the class that it annotates as its settings, read from ``--set name=value``.
"""


def resolve(spec: str, options: Mapping[str, str]) -> tuple[Entry, str, dict[str, str]]:
    """What a user named: the family, the source within it, and the settings, a catalogued model's defaults under the user's own.

    ``spec`` is a name of the catalog, ``family:source``, a family's name, ``module:Class`` of a family of one's own, or a diffusers
    pipeline by folder or hub id.
    """
    from t2i_parity.generate.models.catalog import CATALOG

    if spec in CATALOG:
        entry = CATALOG[spec]
        return FAMILIES.find(entry.family), entry.source, {**entry.defaults, **options}
    family, colon, source = spec.partition(":")
    if family in FAMILIES:
        return FAMILIES.find(family), source, dict(options)
    if not Path(spec).exists() and "/" not in spec and "\\" not in spec:
        if colon:
            return FAMILIES.find(spec), "", dict(options)
        told = CATALOG.unknown(spec)
        raise InputError(
            f"{told} A family goes before a colon ({', '.join(FAMILIES)}), and any diffusers pipeline runs by folder or hub id"
        )
    return FAMILIES.find("diffusers"), spec, dict(options)


def load(spec: str, options: Mapping[str, str]) -> TextToImageModel:
    """The model a user named (see ``resolve``).

    Raises InputError for an unknown option, a value of the wrong type, or a model that is not there.
    """
    family, source, chosen = resolve(spec, options)
    return FAMILIES.make(family, chosen, source, owner=spec)
