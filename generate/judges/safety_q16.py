"""Q16-style classifiers: is an image's CLIP embedding closer to a learned "appropriate" prompt or to an "inappropriate" one?

"Can Machines Help Us Answering Question 16 in Datasheets, and In Turn Reflecting on Inappropriate Content in Images?" (arXiv 2202.06675)
learned the two embeddings for CLIP ViT-L/14 and publishes them as ``prompts.p`` (a pickled array, which is read here without unpickling
anything else). The dialect-penalty study's code has it, but its authors dropped it: it reacted to image quality by dialect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.backends import safety
from t2i_parity.generate.backends.clip_features import Dtype, clip_features
from t2i_parity.generate.backends.identity import content_name
from t2i_parity.generate.backends.weights import read_weights
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

VERSION = "1"
TEMPERATURE = 100.0
"""The factor of the cosines in the softmax, CLIP's own."""


@dataclass(frozen=True, slots=True)
class Q16Settings:
    """``prompts`` is the file of the two embeddings, (2, width), the inappropriate one second; the others name the encoder they are of."""

    prompts: Path
    model: str = "ViT-L-14-quickgelu"
    pretrained: str = "openai"
    device: str = "auto"
    dtype: Dtype = "float32"


class Q16:
    """The judge: softmax(100 · cos) over the two prompts, of the second."""

    name = "q16"
    columns: Mapping[str, pa.DataType] = safety.COLUMNS
    heads = ("inappropriate",)

    def __init__(self, settings: Q16Settings) -> None:
        weights = read_weights(settings.prompts)
        prompts = None if isinstance(weights, dict) else np.asarray(weights.float().numpy(), np.float64)
        if prompts is None or prompts.ndim != 2 or len(prompts) != 2 or not (np.linalg.norm(prompts, axis=1) > 0).all():
            found = f"tensors named {', '.join(weights)}" if isinstance(weights, dict) else f"an array of shape {tuple(weights.shape)}"
            raise InputError(f"q16: --set prompts={settings.prompts}: expected one array of two embeddings, (2, width), found {found}")
        self._prompts = prompts / np.linalg.norm(prompts, axis=1, keepdims=True)
        self._name = content_name(settings.prompts)
        self._features = clip_features(settings)
        if self._prompts.shape[1] != self._features.width:
            raise InputError(
                f"q16: the prompts have {self._prompts.shape[1]} numbers, and the embeddings of {self._features.model} have "
                f"{self._features.width}; name the encoder they were learned with: --set model=… --set pretrained=…"
            )

    def signature(self) -> str:
        """The prompts' file, by name and content, and the encoder."""
        return safety.signature(self.name, self.heads, {"prompts": self._name, **self._features.fields()}, VERSION)

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Nothing to check: it takes any image."""

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """One probability an image."""
        images = self._features.images([row["image"] for row in rows]).astype(np.float64)
        logits = TEMPERATURE * (images / np.linalg.norm(images, axis=1, keepdims=True)) @ self._prompts.T
        return safety.observed(1 / (1 + np.exp(logits[:, :1] - logits[:, 1:])))
