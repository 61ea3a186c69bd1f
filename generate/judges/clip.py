"""CLIP similarity: does the image show the text? The cosine of their embeddings, with the encoder of the metric ``clip_score``.

The default checkpoint is LingT2I's (MetaCLIP 2 worldwide, §4). The dialect-penalty study (§3.3) takes CLIP ViT-L/14 and compares every
image of a pair with the text in the standard variety: ``--set model=ViT-L-14-quickgelu --set pretrained=openai --set anchor=reference``.
Its code averages the embeddings of a long text's pieces; here a long text is cut, keeps its end token, and the row says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.audit.pairs import is_typo, reference_of, variety_of
from t2i_parity.generate.backends.clip_features import Dtype, clip_features
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.clip_score.core import DEFAULT_MODEL, DEFAULT_PRETRAINED, scores_of

VERSION = "1"


@dataclass(frozen=True, slots=True)
class ClipSettings:
    """What ``--set`` takes.

    ``model`` and ``pretrained`` are open_clip's names, or a file, folder or hub repository (see the metric's ``Encoder``). ``anchor`` is
    the text that an image is compared with: its ``own`` prompt, or the prompt of its pair in the ``reference`` variety or language.
    ``device`` is torch's name of one, ``dtype`` what the network computes in; embeddings are normalised in float32 in any case.
    """

    model: str = DEFAULT_MODEL
    pretrained: str = DEFAULT_PRETRAINED
    anchor: Literal["own", "reference"] = "own"
    device: str = "auto"
    dtype: Dtype = "float32"


class Clip:
    """The judge: ``similarity`` in [−1, 1], and ``truncated``, whether the text was longer than the model takes."""

    name = "clip"
    columns: Mapping[str, pa.DataType] = {"similarity": pa.float64(), "truncated": pa.bool_()}

    def __init__(self, settings: ClipSettings) -> None:
        self.settings = settings
        self._features = clip_features(settings)
        self._references: dict[tuple[str, str], str] = {}

    def signature(self) -> str:
        """Checkpoint, anchor and precision."""
        return str(Signature(self.name, {**self._features.fields(), "anchor": self.settings.anchor}, VERSION))

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Look up each pair's reference text. Raises InputError when a row's pair has none in the run, or has two."""
        if self.settings.anchor == "own":
            return
        for row in rows:
            if reference_of(variety_of(row)) is None and not is_typo(row):
                known = self._references.setdefault((row["pair_id"], variety_of(row)), row["prompt"])
                if known != row["prompt"]:
                    raise InputError(
                        f"anchor=reference: the pair {row['pair_id']!r} has two texts in {variety_of(row)} ({known!r}, {row['prompt']!r}); "
                        "expected one. Judge runs of one set of prompts, or leave the anchor at own"
                    )
        for number, row in enumerate(rows):
            self._anchor(row, f"row {number} ({row['prompt_id']})")

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The cosine of each image and its text."""
        texts = [row["prompt"] if self.settings.anchor == "own" else self._anchor(row, row["prompt_id"]) for row in rows]
        of_texts, truncated = self._features.texts(texts)
        of_images = self._features.images([row["image"] for row in rows])
        lengths = np.linalg.norm(of_images.astype(np.float64), axis=1) * np.linalg.norm(of_texts.astype(np.float64), axis=1)
        usable = np.isfinite(lengths) & (lengths > 0)
        similarities = np.full(len(rows), np.nan)
        if usable.any():
            similarities[usable] = scores_of(of_images[usable], of_texts[usable])
        return [
            {"similarity": float(similarity), "truncated": bool(cut)}
            if there
            else Failure("the encoder gave an embedding that is zero or not finite")
            for similarity, cut, there in zip(similarities, truncated, usable, strict=True)
        ]

    def _anchor(self, row: ImageRow, place: str) -> str:
        code = variety_of(row)
        reference = reference_of(code) or code
        text = self._references.get((row["pair_id"], reference))
        if text is None:
            raise InputError(
                f"anchor=reference: {place} is {code}, and its pair {row['pair_id']!r} has no row in {reference} in this run, whose text "
                "its image is to be compared with. Generate that row too, or leave the anchor at own"
            )
        return text
