"""Culture alignment: how often an image shows an identifiable culture, and how often it is the expected one.

Source: "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002),
§4.3, Cultural Tendency.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from .common import (
    CLUSTERS,
    GROUPS,
    Answer,
    Column,
    FloatArray,
    IntArray,
    Mean,
    Resampling,
    Signature,
    by_group,
    check_columns,
    estimate,
    ratio,
)

NAME = "culture_alignment"
VERSION = "1.0"
COLUMNS = (Column("culture", "str", missing=True), Column("expected", "str"), GROUPS, CLUSTERS)
KEYS = ("cue_rate", "match_rate", "match_rate_known", "western_rate", "western_shift_rate")

# Ours: the study counts 13 tags and prints none of them but the Western one.
KNOWN = (
    "Western",
    "Chinese",
    "Indian",
    "Hispanic",
    "Arab",
    "French",
    "Lusophone",
    "Russian",
    "Japanese",
    "Korean",
    "German",
)
UNSPECIFIC = ("Other", "Mixed", "Unknown")
NO_CUE = ("None",)
WESTERN = ("Western",)


def compute(
    culture: Sequence[str | None],
    expected: Sequence[str],
    *,
    known: Sequence[str] = KNOWN,
    unspecific: Sequence[str] = UNSPECIFIC,
    no_cue: Sequence[str] = NO_CUE,
    western: Sequence[str] = WESTERN,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Culture alignment (§4.3): rates in [0, 1].

    Args:
        culture: the culture tag that a judge gave each image, one of ``known``, ``unspecific`` or ``no_cue``; None
            where the judgement failed (counted in ``n_missing``, never scored). No identifiable culture is an answer,
            a ``no_cue`` tag, and no None.
        expected: the culture of each prompt's language, one of ``known``.
        known: the tags of specific cultures.
        unspecific: the tags of a cue that belongs to no specific culture.
        no_cue: the tags of an image without any identifiable culture.
        western: those of ``known`` that count as Western.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name count as one draw (default: each row alone).

    Tags are compared without regard to case and outer spaces. Returns a dict with ``cue_rate`` (images with a cue among
    those judged), ``match_rate`` (expected culture among those with a cue), ``match_rate_known`` (the same among those
    with a known culture), ``western_rate`` (Western ones among those judged), ``western_shift_rate`` (the same among
    those whose expected culture is not Western), ``counts`` (rows of each tag), ``n_cue``, ``n_known``, ``n``,
    ``n_missing``, ``ci`` and ``ci_method`` (unless ``n_resamples`` is 0) and ``signature``; None stands for a rate that is not defined.

    Raises ValueError on wrong input, naming column and row, and on a tag that is not declared.

    >>> answer = compute(["Indian", "none", "Mixed", None], ["Indian", "Arab", "Korean", "Indian"], n_resamples=0)
    >>> answer["cue_rate"], answer["match_rate"], answer["match_rate_known"], answer["n_missing"]
    (0.6666666666666666, 0.5, 1.0, 1)
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    kinds = {"known": known, "unspecific": unspecific, "no_cue": no_cue}
    tags = {kind: _tags(kind, given) for kind, given in kinds.items()}
    kind_of = {fold: kind for kind, folds in tags.items() for fold in folds}
    if len(kind_of) < sum(map(len, tags.values())):
        twice = next(fold for fold, kind in kind_of.items() if sum(fold in folds for folds in tags.values()) > 1)
        raise ValueError(f"{NAME}: {kind_of[twice]}: {twice!r} stands in two of known, unspecific and no_cue. Fix: give it once.")
    of_west = _tags("western", western)
    for fold in of_west:
        if fold not in tags["known"]:
            raise ValueError(f"{NAME}: western: expected tags among known, got {of_west[fold]!r}.")
    given = {"culture": culture, "expected": expected, "groups": groups, "clusters": clusters}
    columns = check_columns(NAME, COLUMNS, given)
    shown = _known_tags("culture", columns["culture"], {fold: tag for folds in tags.values() for fold, tag in folds.items()})
    wanted = _known_tags("expected", columns["expected"], tags["known"])

    observed = np.array([tag is not None for tag in shown])
    kind = np.array([kind_of.get(tag or "", "") for tag in shown])
    cue, specific = np.isin(kind, ["known", "unspecific"]), kind == "known"
    match = np.array([tag == other for tag, other in zip(shown, wanted, strict=True)])
    west, east = np.array([tag in of_west for tag in shown]), np.array([tag not in of_west for tag in wanted])
    parts = np.column_stack([observed, cue, match, specific, west, east, west & east]).astype(np.float64)

    over = ((1, 0), (2, 1), (2, 3), (4, 0), (6, 5))
    shares = {key: Mean(*columns_of) for key, columns_of in zip(KEYS, over, strict=True)}

    def statistics(sums: FloatArray) -> FloatArray:
        return ratio(sums[..., [total for total, _ in over]], sums[..., [count for _, count in over]])

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        values, ci = estimate(parts[kept], of_kept, statistics, KEYS, resampling, shares)
        here = [shown[row] for row in kept]
        counts = {tag: here.count(fold) for folds in tags.values() for fold, tag in folds.items() if fold in here}
        sizes = {"n_cue": int(cue[kept].sum()), "n_known": int(specific[kept].sum()), "n": len(kept)}
        return {**values, "counts": counts, **sizes, "n_missing": len(rows) - len(kept), **ci}

    fields = {"tags": _digest(tags), "western": "+".join(sorted(of_west))}
    return {**by_group(describe, len(shown), columns["groups"]), "signature": str(Signature(NAME, fields, VERSION))}


def _tags(keyword: str, given: object) -> dict[str, str]:
    """Folded tag to the tag as declared. Raises ValueError where ``given`` is no list of tags."""
    if not isinstance(given, list | tuple) or not all(isinstance(tag, str) and tag.strip() for tag in given):
        raise ValueError(f"{NAME}: {keyword}: expected a list of tags, got {given!r}.")
    return {_fold(tag): tag for tag in given}


def _fold(tag: str) -> str:
    return tag.strip().casefold()


def _known_tags(column: str, cells: Sequence[str | None], declared: dict[str, str]) -> list[str | None]:
    folded = [None if cell is None else _fold(cell) for cell in cells]
    for row, fold in enumerate(folded):
        if fold is not None and fold not in declared:
            raise ValueError(
                f"{NAME}: column '{column}', row {row}: expected one of {', '.join(declared.values())}, got {cells[row]!r}. "
                f"Fix: map it to one of these, or declare it: known=[…]{', unspecific=[…], no_cue=[…]' * (column == 'culture')}."
            )
    return folded


def _digest(tags: dict[str, dict[str, str]]) -> str:
    """How many tags are declared and a hash over them: short, and equal where the same tags mean the same."""
    text = json.dumps({kind: sorted(folds) for kind, folds in tags.items()}, ensure_ascii=False)
    return f"{sum(map(len, tags.values()))}@{hashlib.sha256(text.encode()).hexdigest()[:8]}"
