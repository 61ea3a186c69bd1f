"""The stage that embeds an audit's prompts: an encoder of ``dataset_builder.controls.encoders``, or any function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.controls import encoders
from t2i_parity.dataset_builder.controls.encoders import TextEncoder
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.local import Failure

VECTOR_COLUMNS: Mapping[str, pa.DataType] = {"vector": pa.list_(pa.float32())}


@dataclass(frozen=True, slots=True)
class Embedded:
    """One prompt's embedding, of length 1."""

    vector: Sequence[float]

    def row(self) -> dict[str, Any]:
        """As it is kept."""
        return {"vector": self.vector}


class Encoding:
    """An encoder where filters are asked: ``judge`` embeds. A text without a direction (a zero, a NaN) is a failure, not a vector."""

    def __init__(self, name: str, encoder: TextEncoder) -> None:
        self.name = name
        self._encoder = encoder

    def signature(self) -> str:
        """The encoder's."""
        return self._encoder.signature()

    def judge(self, texts: Sequence[str]) -> list[Embedded | Failure]:
        """One embedding a text."""
        vectors = np.asarray(self._encoder.encode(list(texts)), np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise InputError(
                f"{self.name}: {len(texts)} texts went in, and an array of shape {vectors.shape} came out; one vector a text is expected"
            )
        lengths = np.linalg.norm(vectors, axis=1)
        return [
            Embedded(vector.tolist()) if abs(length - 1) < 1e-3 else Failure(f"the embedding has the length {length:g}, not 1")
            for vector, length in zip(vectors, lengths, strict=True)
        ]


def load(spec: str, options: Mapping[str, str]) -> Encoding:
    """The encoder that a user named, by name or as module:Object."""
    return Encoding(encoders.ENCODERS.find(spec).name, encoders.load(spec, options))
