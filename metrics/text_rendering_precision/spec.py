"""Text-rendering precision, declared: what a reader read becomes four scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2i_parity.metrics._common import Answer, FloatArray
from t2i_parity.metrics.scores import MetricSpec, Observed, RowScore, ScoreSpec, Settings, Task
from t2i_parity.metrics.text_rendering_precision import core, null


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


def _parity(key: str, title: str) -> tuple[ScoreSpec, ...]:
    """Of one score: what is expected, what is left, and the tests."""
    about = "The score less what a language-blind model of the quality that the run shows in the other languages would score."
    return (
        ScoreSpec(null.NAME, f"{key}_expected", f"{title}, expected", "What such a model would score.", direction="none"),
        ScoreSpec(null.NAME, f"{key}_difference", f"{title}, less expected", about, kind="paired_difference"),
        ScoreSpec(null.NAME, f"{key}_p", f"{title}, p", "That nothing is left.", "p", "none", "p_value"),
        ScoreSpec(null.NAME, f"{key}_p_holm", f"{title}, Holm p", "Corrected over the languages.", "p", "none", "p_value"),
        ScoreSpec(null.NAME, f"{key}_p_alike", f"{title}, p of all", "That nothing is left in any language.", "p", "none", "p_value"),
    )


PARITY = MetricSpec(
    name=null.NAME,
    title="Against a language-blind model",
    about="Precision goes with a text's length, its script and the tokenizer. So every language is held against what a model of the run's "
    "own quality that damages all languages' characters alike would score in it.",
    scores=(*_parity("precision", "Precision"), *_parity("ned_char", "Characters")),
    instrument="of",
    place="gap",
    order=11,
)
"""Made beside every score of text rendering that two or more languages have."""
