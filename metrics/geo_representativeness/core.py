"""Geographical representativeness: how well images reflect people's surroundings, with and without the country's name.

Source: "Inspecting the Geographical Representativeness of Images from Text-to-Image Models" (arXiv 2305.11080), §2,
§3.1–3.3 and Table 1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.stats

from .common import (
    CLUSTERS,
    GROUPS,
    Answer,
    BoolArray,
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
    stratified_interval,
)

NAME = "geo_representativeness"
VERSION = "1.0"
CONDITIONS = ("unspecified", "country")
COLUMNS = (
    Column("ratings", "float", missing=True, within=(1, 5)),
    Column("countries", "str"),
    Column("conditions", "str", allowed=CONDITIONS),
    Column("nouns", "str", optional=True),
    Column("models", "str", optional=True),
    Column("participants", "str", optional=True),
    GROUPS,
    CLUSTERS,
)
KEYS = ("gr_unspecified", "gr_country", "gain")
# Differences whose spread is below this are equal but for rounding: Student's t is not defined on them.
NO_SPREAD = 1e-9


def paired_t_p(unspecified: FloatArray, country: FloatArray) -> float | None:
    """Two-sided p-value of the paired t-test over countries (§3.3); None below two countries or where all gains agree.

    >>> round(paired_t_p(np.array([2.0, 2.5, 3.0]), np.array([3.0, 4.0, 3.5])), 4)
    0.0742
    """
    gains = country - unspecified
    if len(gains) < 2 or gains.std() < NO_SPREAD:
        return None
    return float(scipy.stats.ttest_rel(country, unspecified).pvalue)


def compute(
    ratings: Sequence[float | None],
    countries: Sequence[str],
    conditions: Sequence[str],
    *,
    nouns: Sequence[str] | None = None,
    models: Sequence[str] | None = None,
    participants: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Geographical representativeness (§2, Table 1), on the scale of the ratings, 1 to 5; each country counts once.

    Args:
        ratings: how well one image reflects one participant's surroundings, from 1, not at all, to 5, to a great
            extent; None or NaN where there is no answer (counted in ``n_missing``, never scored).
        countries: the participant's country, as its ISO 3166-1 alpha-3 code.
        conditions: "country" where the prompt named that country, else "unspecified".
        nouns: what the image was to show; adds ``by_noun``.
        models: what made the image; adds ``by_model``.
        participants: who rated; then each of them is by default one draw. An id counts within its country.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name count as one draw (default: participants, else each row alone).

    Returns a dict with ``gr_unspecified`` and ``gr_country`` (mean over countries of the mean rating in a country),
    ``gain`` (mean over the countries rated in both conditions of the difference), ``p_value`` (see
    :func:`paired_t_p`), ``by_country``, ``n_countries`` (rated in both conditions), ``n``, ``n_missing``, ``ci`` and
    ``ci_method`` (unless ``n_resamples`` is 0) and ``signature``; None stands for a number that is not defined.

    Raises ValueError on wrong input, naming column and row.

    >>> answer = compute([2, 3, 4, 4], ["IND", "IND", "GRC", "GRC"], ["unspecified", "country"] * 2, n_resamples=0)
    >>> answer["gr_unspecified"], answer["gr_country"], answer["gain"], answer["by_country"]["IND"]["gain"]
    (3.0, 3.5, 0.5, 1.0)
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    given = {
        "ratings": ratings,
        "countries": countries,
        "conditions": conditions,
        "nouns": nouns,
        "models": models,
        "participants": participants,
        "groups": groups,
        "clusters": clusters,
    }
    columns = check_columns(NAME, COLUMNS, given)
    for row, code in enumerate(columns["countries"]):
        if not re.fullmatch("[A-Z]{3}", code):
            raise ValueError(
                f"{NAME}: column 'countries', row {row}: expected an ISO 3166-1 alpha-3 code, such as 'IND', got {code!r}. "
                "Fix: map your countries to their codes."
            )
    rating = np.array([np.nan if cell is None else cell for cell in columns["ratings"]], np.float64)
    country = np.array(columns["countries"])
    named = np.array([condition == "country" for condition in columns["conditions"]])
    observed = ~np.isnan(rating)
    units = columns["clusters"]
    if units is None and participants is not None:
        units = [f"{code} {who}" for code, who in zip(columns["countries"], columns["participants"], strict=True)]

    def of_all(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        codes = np.unique(country[rows])
        parts = _parts(rating[kept], country[kept], named[kept], codes)
        means = _means(parts[lexical_order(parts)].sum(axis=0), len(codes))
        there = ~np.isnan(means)

        both: BoolArray = np.asarray(there.all(axis=0))
        # How the two means of each country enter each number.
        none = np.zeros(len(codes))
        weights = [np.stack(sides) for sides in ((_shares(there[0]), none), (none, _shares(there[1])), (-_shares(both), _shares(both)))]
        values = {
            key: number(float(np.sum(np.nan_to_num(means) * weight))) if weight.any() else None
            for key, weight in zip(KEYS, weights, strict=True)
        }
        of_kept = [str(row) for row in kept] if units is None else [units[row] for row in kept]
        ci = _intervals(parts, of_kept, country[kept], means, weights, values, resampling)
        by_country = {
            str(code): {
                "gr_unspecified": number(means[0, place]),
                "gr_country": number(means[1, place]),
                "gain": number(means[1, place] - means[0, place]),
                "n": int(np.sum(country[kept] == code)),
                "n_missing": int(np.sum(country[rows] == code) - np.sum(country[kept] == code)),
            }
            for place, code in enumerate(codes)
        }
        paired = means[:, both]
        counts = {"n_countries": paired.shape[1], "n": len(kept), "n_missing": len(rows) - len(kept)}
        return {**values, "p_value": paired_t_p(paired[0], paired[1]), "by_country": by_country, **counts, **ci}

    def describe(rows: IntArray) -> Answer:
        answer = of_all(rows)
        for column, key in (("nouns", "by_noun"), ("models", "by_model")):
            if columns[column] is not None:
                of_rows = [columns[column][row] for row in rows]
                parts = by_group(lambda part: of_all(rows[part]), len(rows), of_rows)
                answer[key] = parts["by_group"]
        return answer

    signature = Signature(NAME, {"mean": "countries", "test": "paired-t"}, VERSION)
    return {**by_group(describe, len(rating), columns["groups"]), "signature": str(signature)}


def _parts(rating: FloatArray, country: Any, named: Any, codes: Any) -> FloatArray:
    """(n, 4·countries): each row's rating, and 1, in its condition's and its country's column."""
    here = country[:, None] == codes[None, :]
    here = np.hstack([here & ~named[:, None], here & named[:, None]])
    return np.hstack([np.where(here, rating[:, None], 0.0), here.astype(np.float64)])


def _means(sums: FloatArray, n_countries: int) -> FloatArray:
    """(…, 2, countries): mean rating of each condition and country; NaN where there is none."""
    total, count = np.split(sums, 2, axis=-1)
    return ratio(total, count).reshape(*sums.shape[:-1], 2, n_countries)


def _shares(there: BoolArray) -> FloatArray:
    """Every country that is there counts alike."""
    return ratio(there.astype(np.float64), np.float64(there.sum()) * np.ones(len(there)))


def _intervals(
    parts: FloatArray,
    units: Sequence[str],
    country: Any,
    means: FloatArray,
    weights: Sequence[FloatArray],
    values: dict[str, float | None],
    resampling: Resampling,
) -> Answer:
    """``ci`` and ``ci_method``: participants were drawn within their countries, or, where one rates in several, over all of them."""
    if not resampling.n_resamples:
        return {}
    # A sum depends in its last digit on the order of what it adds.
    first = lexical_order(parts)
    parts, country = parts[first], country[first]
    codes: dict[str, int] = {}
    at = np.array([codes.setdefault(units[row], len(codes)) for row in first], np.intp)
    sums = np.zeros((len(codes), parts.shape[1]))
    np.add.at(sums, at, parts)
    strata: dict[int, set[str]] = {}
    for unit, code in zip(at.tolist(), country.tolist(), strict=True):
        strata.setdefault(unit, set()).add(code)
    nested = all(len(members) == 1 for members in strata.values())
    of = np.array([min(strata[unit]) if nested else "" for unit in range(len(codes))])
    order = np.lexsort((*sums.T[::-1], of))
    total, count = np.split(sums[order], 2, axis=1)
    # What each participant adds to the error of each mean, and so to that of each number.
    added = ratio(total - count * np.nan_to_num(means.ravel()), np.broadcast_to(count.sum(axis=0), count.shape))
    added = np.nan_to_num(added)
    ci: Answer = {}
    methods: Answer = {}
    for key, weight in zip(KEYS, weights, strict=True):
        there = (count * weight.ravel() != 0).any(axis=1)
        value = values[key]
        ends, how = (None, "none: nothing was observed")
        if value is not None:
            ends, how = stratified_interval(
                (added * weight.ravel()).sum(axis=1)[there], of[order][there].tolist(), value, float(resampling.confidence_level)
            )
        # No mean lies beyond the scale's ends, and no difference of two beyond its width.
        low, high = (-4.0, 4.0) if key == "gain" else (1.0, 5.0)
        ci[key] = [None, None] if ends is None else [max(ends[0], low), min(ends[1], high)]
        methods[key] = how
    return {"ci": ci, "ci_method": methods}
