"""The stage that embeds an audit's prompts: an encoder of ``dataset_builder.controls.encoders``, or any function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.controls import encoders
from t2i_parity.dataset_builder.controls.encoders import TextEncoder, Vectors
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.filters import signed
from t2i_parity.generate.filters.python_function import imported

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


class FunctionEncoder:
    """A function of the user's that turns a list of texts into vectors of one width; they are brought to length 1."""

    def __init__(self, function: str, version: str = "unknown") -> None:
        self._function: Callable[[list[str]], Any] = imported(function)
        self._signature = signed("python", {"function": function, "v": version})

    def signature(self) -> str:
        """The function's name, and the version that the user gives it."""
        return self._signature

    def encode(self, texts: Sequence[str]) -> Vectors:
        """What the function answers, each vector divided by its length."""
        try:
            # A vector without a length has no direction: it stays not a number, and is told to be a failure.
            with np.errstate(invalid="ignore"):
                return encoders.unit(np.atleast_2d(np.asarray(self._function(list(texts)), np.float64)))
        except (TypeError, ValueError) as error:
            raise InputError(f"{self._signature}: expected one vector of numbers a text ({first_line(error)})") from error


def load(spec: str, options: Mapping[str, str]) -> tuple[str, Encoding]:
    """The encoder that a user named, by name or as module:function, and what its embeddings are called in the run."""
    if ":" in spec:
        unknown = sorted(set(options) - {"version"})
        if unknown:
            raise InputError(f"the encoder {spec} has no setting {unknown[0]!r}; it takes: version")
        name = spec.rpartition(":")[2].rpartition(".")[2]
        return name, Encoding(name, FunctionEncoder(spec, **options))
    return spec, Encoding(spec, encoders.load(spec, **options))
