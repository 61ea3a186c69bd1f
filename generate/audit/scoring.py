"""An audit run's observations → scores: text level, embeddings, checks of the prompts, and what was gathered from image runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.generate.audit import checks, embedding, image_level, text_level
from t2i_parity.generate.audit.pairs import by_subset
from t2i_parity.generate.entries import Scores, ScoreSettings, seen_by, stamped
from t2i_parity.generate.run import Run
from t2i_parity.metrics._common import Signature


def score_audit(run: Run, judges: Sequence[str], settings: ScoreSettings) -> tuple[Scores, pa.Table, dict[str, list[str]]]:
    """Every score of the audit, its prompts with the verdicts beside them, and the columns of observations that nothing is made from.

    Embeddings stay where they are.
    """
    prompts = run.prompts().read()
    rows = prompts.to_pylist()
    pairs = by_subset(rows)
    ids = [row["prompt_id"] for row in rows]
    scores: Scores = []
    unused: dict[str, list[str]] = {}
    encoders: list[tuple[dict[str, list[Any]], Signature]] = []
    for judge in judges:
        observed, signature = seen_by(run, judge, "prompt_id", ids)
        if "vector" in observed:
            encoders.append((observed, signature))
        elif {"flagged", "score"} <= set(observed):
            scores += _filter_scores(rows, pairs, observed, signature, settings)
            prefix = judge.replace("-", "_")
            prompts = prompts.append_column(f"{prefix}_flagged", pa.array(observed["flagged"], pa.bool_()))
            prompts = prompts.append_column(f"{prefix}_score", pa.array(observed["score"], pa.float64()))
        else:
            unused[judge] = list(observed)
    for subset, of_subset in pairs.items():
        scores += text_level.typo_match(subset, rows, of_subset)
        scores += checks.summary(subset, rows, of_subset, settings)
    for observed, signature in encoders:
        vectors = [None if cell is None else np.asarray(cell, np.float64) for cell in observed["vector"]]
        for subset, of_subset in pairs.items():
            scores += embedding.preservation(subset, rows, of_subset, vectors, signature, settings)
            scores += embedding.directions(subset, of_subset, vectors, signature, settings)
    if run.outcomes().files():
        scores += image_level.score(run.outcomes().read().to_pylist(), rows, pairs, settings)
    if not scores:
        told = "; ".join(f"{judge} has the columns {', '.join(columns)}" for judge, columns in unused.items())
        raise InputError(f"{run.url}: nothing was observed that an audit is made from ({told}); expected flagged and score, or vector")
    of_subset_rows = {subset: [rows[place] for pair in found for place in (pair.reference, pair.other)] for subset, found in pairs.items()}
    scores = [replace(score, signature=stamped(score.signature, of_subset_rows[score.subset])) for score in scores]
    return scores, prompts, unused


def _filter_scores(
    rows: Sequence[Prompt],
    pairs: Mapping[str, list[Any]],
    observed: Mapping[str, list[Any]],
    signature: Signature,
    settings: ScoreSettings,
) -> Scores:
    flags, values = observed["flagged"], observed["score"]
    scores: Scores = []
    for subset, of_subset in pairs.items():
        scores += text_level.penalty(subset, of_subset, flags, signature, settings)
        scores += text_level.score_shifts(subset, of_subset, values, signature, settings)
        scores += text_level.typo_ablation(subset, of_subset, flags, signature, settings)
        scores += text_level.categories(subset, of_subset, flags, signature, settings)
        if "truncated" in observed:
            places = dict.fromkeys(place for pair in of_subset for place in (pair.reference, pair.other))
            scores += text_level.truncation(subset, rows, places, observed["truncated"], signature)
    return scores
