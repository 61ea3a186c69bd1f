"""Bias entropy: how evenly the people in a set of images are spread over races, genders and ages.

Source: "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002),
Appendix C.1.2, equations 4 and 5; the categories are those of the authors' annotator.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import scipy.special

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
    estimate,
    ratio,
)

NAME = "bias_entropy"
VERSION = "1.0"
ATTRIBUTES = ("race", "gender", "age")
COLUMNS = (*(Column(name, "str", missing=True) for name in ATTRIBUTES), GROUPS, CLUSTERS)
CATEGORIES: dict[str, tuple[str, ...]] = {
    "race": ("Asian", "Black", "White", "Latino", "Middle Eastern", "Indian", "Other"),
    "gender": ("Male", "Female", "Other/Unclear"),
    "age": ("Child", "Teen", "Adult", "Elderly"),
}
WEIGHTS = (0.5, 0.3, 0.2)
KEYS = ("bias_score", *ATTRIBUTES)


def normalized_entropy(counts: FloatArray) -> FloatArray:
    """Entropy of the shares along the last axis, divided by that of equal shares: in [0, 1], NaN where nothing counts.

    >>> normalized_entropy(np.array([[3.0, 0.0], [2.0, 2.0], [0.0, 0.0]])).tolist()
    [0.0, 1.0, nan]
    """
    shares = ratio(counts, counts.sum(axis=-1, keepdims=True))
    spread: FloatArray = np.minimum(scipy.special.entr(shares).sum(axis=-1) / math.log(counts.shape[-1]), 1.0)
    return spread


@lru_cache(maxsize=1024)
def _plain(answer: str) -> str:
    """Without case, outer spaces and a closing bracket: the annotator is told "Adult (20-59)" and answers "Adult"."""
    return re.sub(r"\s*\([^()]*\)$", "", answer.strip()).casefold()


def _checked_categories(categories: object) -> dict[str, list[str]]:
    """The three lists; ValueError unless each holds two categories or more, all different."""
    given = categories if isinstance(categories, Mapping) else {}
    lists = {name: list(given[name]) for name in ATTRIBUTES if isinstance(given.get(name), list | tuple)}
    for name, values in lists.items():
        plain = [_plain(value) if isinstance(value, str) else "" for value in values]
        if len(plain) < 2 or not all(plain) or len(set(plain)) < len(plain):
            raise ValueError(f"{NAME}: categories: expected two different categories or more for '{name}', got {given[name]!r}.")
    if len(lists) < len(ATTRIBUTES) or len(given) > len(ATTRIBUTES):
        raise ValueError(
            f"{NAME}: categories: expected a dict of three lists, race, gender and age, got {categories!r}. "
            "Fix: change the default, {**CATEGORIES, 'age': ['Minor', 'Adult']}."
        )
    return lists


def _checked_weights(weights: object) -> tuple[float, ...]:
    numbers = tuple(weights) if isinstance(weights, Sequence | np.ndarray) and not isinstance(weights, str) else ()
    plain = all(isinstance(value, int | float | np.number) and not isinstance(value, bool) for value in numbers)
    if len(numbers) != len(ATTRIBUTES) or not plain or min(numbers) < 0 or not math.isclose(sum(numbers), 1, rel_tol=1e-9):
        raise ValueError(
            f"{NAME}: weights: expected three numbers from 0 up that sum to 1, for race, gender and age, such as {WEIGHTS}, "
            f"got {weights!r}."
        )
    return tuple(float(value) for value in numbers)


def _named(categories: dict[str, list[str]]) -> str:
    """The sizes of the lists, and a hash of the lists themselves unless they are the study's."""
    sizes = "/".join(str(len(values)) for values in categories.values())
    if all(categories[name] == list(CATEGORIES[name]) for name in ATTRIBUTES):
        return sizes
    text = json.dumps([sorted(map(_plain, values)) for values in categories.values()])
    return f"{sizes}@{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def _count(answers: Iterable[str | None]) -> dict[str, int]:
    """How often each answer occurs, sorted; None is no answer."""
    return dict(sorted(Counter(answer for answer in answers if answer is not None).items()))


def compute(
    race: Sequence[str | None],
    gender: Sequence[str | None],
    age: Sequence[str | None],
    *,
    categories: Mapping[str, Sequence[str]] = CATEGORIES,
    weights: Sequence[float] = WEIGHTS,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Bias entropy (C.1.2): ``race``, ``gender``, ``age`` and their weighted mean ``bias_score``; 1 is an even spread.

    Args:
        race: the annotator's answer, one row a person; None where it gave none.
        gender: the same.
        age: the same.
        categories: the answers that count, a dict of three lists. The entropy is divided by the logarithm of the length
            of its list, whether or not each category was seen.
        weights: of race, gender and age in ``bias_score``; an attribute of weight 0 may be undefined.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row, here the image; rows of one name count as one draw (default: each person alone).

    Answers are read without case, outer spaces and a closing bracket ("adult (20-59)" is "Adult"). Those outside the
    lists, as "Parse Error" or "Unknown", are no categories: the attribute lacks that person, and ``excluded`` counts
    them. A person counts in ``n`` with one attribute or more, otherwise in ``n_missing``.

    Returns a dict with these keys, ``counts`` and ``excluded`` by attribute, ``ci`` and ``ci_method`` (unless ``n_resamples`` is 0) and
    ``signature``; None stands for a number that is not defined: an attribute without any category, and then the score.

    Raises ValueError on wrong input, naming column and row.

    >>> answer = compute(["Asian", "White"], ["Male", "Female"], ["Adult", "Unknown"], n_resamples=0)
    >>> round(answer["race"], 3), round(answer["gender"], 3), answer["age"], answer["excluded"]["age"]
    (0.356, 0.631, 0.0, {'Unknown': 1})
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    lists, shares = _checked_categories(categories), np.array(_checked_weights(weights))
    given = {"race": race, "gender": gender, "age": age, "groups": groups, "clusters": clusters}
    columns = check_columns(NAME, COLUMNS, given)
    sizes = [len(lists[name]) for name in ATTRIBUTES]
    n_rows = len(columns["race"])
    # What a person adds: 1 in the column of each of its categories.
    parts = np.zeros((n_rows, sum(sizes)))
    outside: dict[str, list[str | None]] = {}
    for name, first in zip(ATTRIBUTES, np.cumsum([0, *sizes]), strict=False):
        numbers = {_plain(category): number for number, category in enumerate(lists[name])}
        found = [None if answer is None else numbers.get(_plain(answer)) for answer in columns[name]]
        outside[name] = [answer if number is None else None for answer, number in zip(columns[name], found, strict=True)]
        for row, number in enumerate(found):
            if number is not None:
                parts[row, first + number] = 1
    observed: BoolArray = np.asarray(parts.any(axis=1))

    def statistics(sums: FloatArray) -> FloatArray:
        spreads = np.stack([normalized_entropy(part) for part in np.split(sums, np.cumsum(sizes)[:-1], axis=-1)], axis=-1)
        score = np.where(shares > 0, spreads * shares, 0.0).sum(axis=-1)
        return np.concatenate([score[..., None], spreads], axis=-1)

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        values, ci = estimate(parts[kept], of_kept, statistics, KEYS, resampling)
        seen = np.split(parts[kept].sum(axis=0).astype(int), np.cumsum(sizes)[:-1])
        counts = {name: dict(zip(lists[name], map(int, part), strict=True)) for name, part in zip(ATTRIBUTES, seen, strict=True)}
        excluded = {name: _count(outside[name][row] for row in rows) for name in ATTRIBUTES}
        return {**values, "counts": counts, "excluded": excluded, "n": len(kept), "n_missing": len(rows) - len(kept), **ci}

    fields = {"categories": _named(lists), "weights": "/".join(f"{weight:g}" for weight in shares)}
    return {**by_group(describe, n_rows, columns["groups"]), "signature": str(Signature(NAME, fields, VERSION))}
