"""CLIPScore, declared: an encoder's similarities become their mean, and how many prompts it saw cut short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from t2i_parity.metrics._common import Answer, FloatArray
from t2i_parity.metrics.clip_score import core
from t2i_parity.metrics.scores import MetricSpec, Observed, RowScore, ScoreSpec, Settings, Task


def _compute(part: Observed, *, groups: Sequence[str], settings: Settings) -> Answer:
    fields = part.judge.fields
    return core.aggregate(
        part.columns["similarity"],
        truncated=part.columns.get("truncated"),
        model=str(fields.get("model", part.judge.metric)),
        pretrained=str(fields.get("pretrained", "unknown")),
        groups=groups,
        clusters=part.pairs,
        **settings.resampling,
    )


def _per_row(part: Observed, settings: Settings) -> Mapping[str, FloatArray]:
    return {"clip_score": np.array([np.nan if value is None else value for value in part.columns["similarity"]], np.float64)}


SPEC = MetricSpec(
    name=core.NAME,
    title="CLIPScore",
    about="How well images fit their prompts: the cosine of their embeddings under one multilingual encoder. Encoders do not know all "
    "languages equally well, so a difference between languages is that of the model and the encoder together.",
    scores=(
        ScoreSpec(
            core.NAME,
            "clip_score",
            "CLIPScore",
            "How well images show their prompts, by an image-text encoder.",
            row=RowScore("clip_score"),
            board="Image and prompt: CLIPScore",
            headline="CLIPScore",
            task=Task("clip_score", "lingt2i_content"),
        ),
        ScoreSpec(
            core.NAME,
            "n_truncated",
            "Prompts cut short",
            "Prompts of which the encoder saw the beginning only.",
            unit="count",
            direction="none",
            kind="count",
            optional="truncated",
        ),
    ),
    columns=("similarity",),
    instrument="encoder",
    compute=_compute,
    per_row=_per_row,
    unequal="clip_score",
    order=30,
)
