"""Cross-lingual gap: mean and spread of a score over languages, each language counting once.

Source: "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002),
Table 2 (average and standard deviation over languages) and §4.1 (language branches).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .common import (
    CLUSTERS,
    GROUPS,
    Answer,
    Column,
    FloatArray,
    IntArray,
    Resampling,
    Signature,
    by_group,
    check_columns,
    estimate,
    lexical_order,
    number,
    ratio,
)
from .languages import LANGUAGES

NAME = "cross_lingual_gap"
VERSION = "1.0"
COLUMNS = (Column("scores", "float", missing=True), Column("languages", "str"), GROUPS, CLUSTERS)
KEYS = ("mean", "std", "worst", "best")


def language_means(scores: FloatArray, languages: Sequence[str]) -> dict[str, float | None]:
    """Mean score of each language in ``languages``, sorted by code; NaN scores are left out, None where none is left.

    >>> language_means(np.array([1.0, 0.0, np.nan]), ["en", "en", "hi"])
    {'en': 0.5, 'hi': None}
    """
    parts, codes = _parts(scores, languages)
    rows = parts[~np.isnan(scores)]
    means = _means(rows[lexical_order(rows)].sum(axis=0))
    return {code: number(mean) for code, mean in zip(codes, means, strict=True)}


def _parts(scores: FloatArray, languages: Sequence[str]) -> tuple[FloatArray, list[str]]:
    """(n, 2·languages): each row's score, and 1, in its language's columns."""
    codes = sorted(set(languages))
    here = np.array(languages)[:, None] == np.array(codes)[None, :]
    return np.hstack([np.where(here, np.nan_to_num(scores)[:, None], 0.0), here.astype(np.float64)]), codes


def _means(sums: FloatArray) -> FloatArray:
    score, count = np.split(sums, 2, axis=-1)
    return ratio(score, count)


def compute(
    scores: Sequence[float | None],
    languages: Sequence[str],
    *,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Mean, population standard deviation, worst and best of the language means, in the unit of the scores (Table 2).

    Args:
        scores: one number a row, higher is better; None or NaN where missing (counted in ``n_missing``, never scored).
        languages: BCP-47 code of each row.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name, as the same prompt in ten languages, are resampled together
            (default: each row alone).

    Returns a dict with ``mean``, ``std``, ``worst``, ``best``, the codes ``worst_language`` and ``best_language`` (the
    first in a tie), ``by_language``, ``by_branch`` and ``by_script`` (means of language means), ``n_languages``, ``n``,
    ``n_missing``, ``ci`` (unless ``n_resamples`` is 0) and ``signature``. A language without any score is None in
    ``by_language`` and left out of the rest; ``std`` is None with fewer than two languages.

    Raises ValueError on wrong input, naming column and row, and on a language that is not declared.

    >>> answer = compute([0.9, 0.7, 0.4, None], ["en", "en", "hi", "hi"], n_resamples=0)
    >>> answer["by_language"], round(answer["std"], 3), answer["worst_language"]
    ({'en': 0.8, 'hi': 0.4}, 0.2, 'hi')
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    given = {"scores": scores, "languages": languages, "groups": groups, "clusters": clusters}
    columns = check_columns(NAME, COLUMNS, given)
    for row, code in enumerate(columns["languages"]):
        if code not in LANGUAGES:
            raise ValueError(
                f"{NAME}: column 'languages', row {row}: expected one of {', '.join(LANGUAGES)}, got {code!r}. "
                "Fix: map it to one of these codes, or declare the language in languages.py."
            )
    score = np.array([np.nan if cell is None else cell for cell in columns["scores"]], np.float64)
    language = np.array(columns["languages"])
    observed = ~np.isnan(score)

    def statistics(sums: FloatArray) -> FloatArray:
        means = _means(sums)
        # The spread over a single language is not known, rather than 0.
        std = means.std(axis=-1) if means.shape[-1] > 1 else np.full(means.shape[:-1], np.nan)
        return np.stack([means.mean(axis=-1), std, means.min(axis=-1), means.max(axis=-1)], axis=-1)

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        means = language_means(score[rows], language[rows].tolist())
        scored = {code: mean for code, mean in means.items() if mean is not None}
        if scored:
            values, ci = estimate(_parts(score[kept], language[kept].tolist())[0], of_kept, statistics, KEYS, resampling)
        else:
            values = dict.fromkeys(KEYS)
            ci = {"ci": {key: [None, None] for key in KEYS}} if n_resamples else {}
        ends = {
            "worst_language": min(scored, key=scored.__getitem__, default=None),
            "best_language": max(scored, key=scored.__getitem__, default=None),
        }
        parts = {
            "by_language": means,
            "by_branch": _mean_by(scored, "branch"),
            "by_script": _mean_by(scored, "script"),
        }
        counts = {"n_languages": len(scored), "n": len(kept), "n_missing": len(rows) - len(kept)}
        return {**values, **ends, **parts, **counts, **ci}

    signature = Signature(NAME, {"mean": "languages", "std": "population"}, VERSION)
    return {**by_group(describe, len(score), columns["groups"]), "signature": str(signature)}


def _mean_by(means: dict[str, float], field: str) -> dict[str, float]:
    members: dict[str, list[float]] = {}
    for code, mean in means.items():
        members.setdefault(getattr(LANGUAGES[code], field), []).append(mean)
    return {name: float(np.mean(members[name])) for name in sorted(members)}
