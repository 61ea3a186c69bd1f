"""Text-rendering precision, declared: what a reader read becomes four scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2i_parity.metrics._common import Answer, FloatArray
from t2i_parity.metrics.scores import MetricSpec, Observed, RowScore, ScoreSpec, Settings, Task
from t2i_parity.metrics.text_rendering_precision import core


def _keywords(part: Observed, settings: Settings) -> dict[str, Any]:
    wanted = [row["render_text"] for row in part.rows]
    if None in wanted:
        raise ValueError(
            f"row {wanted.index(None)} ({part.rows[wanted.index(None)]['prompt_id']}) has no render_text to compare what was read with; "
            "readers are for prompts of the config lingt2i_text"
        )
    return {
        "predictions": part.columns["text"],
        "references": wanted,
        "tokenizer": core.load_tokenizer(settings.tokenizer),
        "normalization": settings.normalization,
        "variant": settings.variant,
    }


def _compute(part: Observed, *, groups: Sequence[str], settings: Settings) -> Answer:
    return core.compute(**_keywords(part, settings), groups=groups, clusters=part.pairs, **settings.resampling)


def _per_row(part: Observed, settings: Settings) -> Mapping[str, FloatArray]:
    return core.per_row(**_keywords(part, settings))


SPEC = MetricSpec(
    name=core.NAME,
    title="Text rendering",
    about="How much of a wanted text a reader finds in the image: characters, tokens, and whole texts; precision is the mean of the three.",
    scores=(
        ScoreSpec(
            core.NAME,
            "precision",
            "Precision",
            "1 when a reader finds exactly the wanted text in every image, 0 when nothing matches.",
            row=RowScore("precision"),
            board="Text rendering: precision",
            headline="Text-rendering precision",
            task=Task("text_rendering", "lingt2i_text"),
        ),
        ScoreSpec(
            core.NAME,
            "ned_char",
            "Characters",
            "How alike the characters are: 1 less the normalised edit distance.",
            row=RowScore("ned_char"),
            board="Text rendering: characters",
        ),
        ScoreSpec(
            core.NAME,
            "ned_token",
            "Tokens",
            "How alike the tokens are: 1 less the normalised edit distance.",
            row=RowScore("ned_token"),
            board="Text rendering: tokens",
        ),
        ScoreSpec(
            core.NAME,
            "sentence_accuracy",
            "Whole texts",
            "The share of images that are read exactly as wanted.",
            kind="proportion",
            row=RowScore("exact", binary=True),
            board="Text rendering: whole texts",
        ),
    ),
    columns=("text",),
    instrument="reader",
    compute=_compute,
    per_row=_per_row,
    unequal="precision",
    place="text",
    order=10,
)
