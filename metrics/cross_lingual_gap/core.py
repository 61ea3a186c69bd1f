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
    lexical_order,
    number,
    ratio,
)
from .inference import GroupMeans, worst_shares
from .languages import LANGUAGES

NAME = "cross_lingual_gap"
VERSION = "1.0"
COLUMNS = (Column("scores", "float", missing=True), Column("languages", "str"), GROUPS, CLUSTERS)
KEYS = ("mean", "std", "spread", "worst", "best", "branch_spread", "script_spread")
INFERRED = ("spread", "p_alike", "branch_spread", "branch_p_alike", "script_spread", "script_p_alike")


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
    """Mean, spread, worst and best of the language means, in the unit of the scores (Table 2).

    ``std`` is the study's number, the population standard deviation of the means: it describes, and is above 0 for a fair system too,
    the more the fewer rows there are; its interval is that of ``spread``. ``spread`` is that of the true means, the noise of sampling
    taken out, and ``p_alike`` tests whether all languages are served alike.

    Args:
        scores: one number a row, higher is better; None or NaN where missing (counted in ``n_missing``, never scored).
        languages: BCP-47 code of each row.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name, as the same prompt in ten languages, count as one draw
            (default: each row alone).

    Returns a dict with ``mean``, ``std``, ``spread``, ``p_alike``, ``worst``, ``best``, the codes ``worst_language``
    and ``best_language`` of the lowest and highest mean (the first in a tie), ``by_language``, ``by_branch`` and
    ``by_script`` (means of language means), ``branch_spread``, ``branch_p_alike``, ``script_spread`` and
    ``script_p_alike`` (of these means), ``n_languages``, ``n``, ``n_missing`` and ``signature``; and, unless
    ``n_resamples`` is 0, ``ci`` with ``ci_method``, ``contrasts`` (each language against the mean of the others:
    ``difference``, ``ci`` that holds for all at once, ``p``, ``p_holm``), ``ranks`` (the places from 1, the highest,
    that it may truly have) and ``worst_share`` (in what share of resamples it is the lowest). The intervals of
    ``worst`` and ``best`` are corrected for their selection. A language without any score is None in ``by_language``
    and left out of the rest; ``std`` is None with fewer than two languages, what is inferred also where one has fewer
    than five clusters. Scores that all lie from 0 to 1 are taken to have these ends.

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

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        means = language_means(score[rows], language[rows].tolist())
        scored = {code: mean for code, mean in means.items() if mean is not None}
        over = np.array(list(scored.values()))
        ends = {
            "worst_language": min(scored, key=scored.__getitem__, default=None),
            "best_language": max(scored, key=scored.__getitem__, default=None),
        }
        values = {
            "mean": float(over.mean()) if scored else None,
            # The spread over a single language is not known, rather than 0.
            "std": float(over.std()) if len(scored) > 1 else None,
            "worst": float(over.min()) if scored else None,
            "best": float(over.max()) if scored else None,
        }
        parts = {
            "by_language": means,
            "by_branch": _mean_by(scored, "branch"),
            "by_script": _mean_by(scored, "script"),
        }
        counts = {"n_languages": len(scored), "n": len(kept), "n_missing": len(rows) - len(kept)}
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        return {**values, **ends, **parts, **counts, **_inferred(score[kept], language[kept].tolist(), of_kept, resampling)}

    signature = Signature(NAME, {"mean": "languages", "std": "population"}, VERSION)
    return {**by_group(describe, len(score), columns["groups"]), "signature": str(signature)}


def _inferred(score: FloatArray, languages: Sequence[str], clusters: Sequence[str] | None, resampling: Resampling) -> Answer:
    """What the sample lets one say of the truth behind its means."""
    if not len(score):
        nothing: Answer = dict.fromkeys(INFERRED)
        none = {"ci": {key: [None, None] for key in KEYS}, "ci_method": dict.fromkeys(KEYS, "none: nothing was observed")}
        return {**nothing, **none, "contrasts": {}, "ranks": {}, "worst_share": {}} if resampling.n_resamples else nothing
    low, high = (0.0, 1.0) if score.min() >= 0 and score.max() <= 1 else (None, None)
    found = GroupMeans.of(score, languages, clusters, low=low, high=high)
    level = float(resampling.confidence_level)
    gaps: Answer = {}
    between: dict[str, tuple[tuple[float, float] | None, str]] = {}
    for field in ("branch", "script"):
        of = {code: getattr(LANGUAGES[code], field) for code in found.codes}
        members = {group: [code for code in found.codes if of[code] == group] for group in sorted(set(of.values()))}
        pooled = found.pooled(members)
        gaps |= {f"{field}_spread": pooled.spread(), f"{field}_p_alike": pooled.alike_p()}
        between[f"{field}_spread"] = (pooled.spread_interval(level), "noncentral chi-square")
    answer: Answer = {"spread": found.spread(), "p_alike": found.alike_p(), **gaps}
    if not resampling.n_resamples:
        return answer
    intervals = {
        "mean": (found.mean_interval(level), "t"),
        # Of the true standard deviation, both: the published number estimates it with the noise left in.
        **dict.fromkeys(("std", "spread"), (found.spread_interval(level), "noncentral chi-square")),
        "worst": (found.extreme_interval(level), "corrected for selection"),
        "best": (found.extreme_interval(level, worst=False), "corrected for selection"),
        **between,
    }
    few = "none: a single one, or one of fewer than five clusters, or all agree"
    methods = {key: how if ends is not None else few for key, (ends, how) in intervals.items()}
    return {
        **answer,
        "ci": {key: _bounds(ends) for key, (ends, _) in intervals.items()},
        "ci_method": methods,
        "contrasts": {
            each.code: {"difference": each.difference, "ci": _bounds(each.interval), "p": each.p, "p_holm": each.p_holm}
            for each in found.contrasts(level)
        },
        "ranks": {code: list(places) for code, places in zip(found.codes, found.ranks(level), strict=True)},
        "worst_share": worst_shares(score, languages, clusters, resampling),
    }


def _bounds(ends: tuple[float, float] | None) -> list[float | None]:
    return [None, None] if ends is None else list(ends)


def _mean_by(means: dict[str, float], field: str) -> dict[str, float]:
    members: dict[str, list[float]] = {}
    for code, mean in means.items():
        members.setdefault(getattr(LANGUAGES[code], field), []).append(mean)
    return {name: float(np.mean(members[name])) for name in sorted(members)}
