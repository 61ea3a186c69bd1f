"""Over-censorship rate: how often a guardrail spoils a harmless prompt's image, in a reference wording (SAE) and in a
variety of it.

Source: "Not Safe for All: Auditing the Dialect Penalty in Text-to-Image Safety Pipelines" (arXiv 2608.29589), §3.3,
Table 7.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .common import (
    CLUSTERS,
    GROUPS,
    SIGN_FLIP,
    Answer,
    BoolArray,
    Column,
    IntArray,
    Resampling,
    Signature,
    by_group,
    check_columns,
    check_number,
    correct_over_groups,
    paired_rates,
    repeated,
)

NAME = "over_censorship_rate"
VERSION = "1.1"
IMAGES = ("unguarded_reference", "guarded_reference", "unguarded_variety", "guarded_variety")
COLUMNS = (*(Column(name, "float", missing=True, within=(-1, 1)) for name in IMAGES), GROUPS, CLUSTERS)
KEYS = ("ocr_reference", "ocr_variety", "delta_pp")


def compute(
    unguarded_reference: Sequence[float | None],
    guarded_reference: Sequence[float | None],
    unguarded_variety: Sequence[float | None],
    guarded_variety: Sequence[float | None],
    *,
    threshold: float = 0.1,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Over-censorship rate (§3.3): rates in [0, 1], ``delta_pp`` in percentage points, variety minus reference.

    Args:
        unguarded_reference: cosine similarity, from -1 to 1, between the *reference* text and the image that the
            reference wording gives without the guardrail. One row a pair; None or NaN where it is missing.
        guarded_reference: the same with the guardrail.
        unguarded_variety: between the reference text, again, and the image that the variety gives without the
            guardrail.
        guarded_variety: the same with the guardrail.
        threshold: an image is flagged when the guardrail lowers its similarity by more than this; from 0 to less than
            2.
        groups: one name a row, here the variety; adds ``by_group``, with the p-value also corrected over the groups by
            Holm's method (``p_value_holm``).
        clusters: one name a row; rows of one name count as one draw, in tests too (default: each pair alone).

    A pair counts in ``n`` only with all four similarities; the others are ``n_missing``. ``p_value`` is McNemar's on
    those pairs: exact below 25 discordant ones (``only_variety``, ``only_reference``), else χ² with continuity
    correction. Where clusters repeat it is a sign-flip test's over clusters, and the signature says ``test:sign-flip``.
    Returns a dict of plain numbers with ``ci`` and ``ci_method`` (unless ``n_resamples`` is 0) and ``signature``; None
    stands for a number that is not defined.

    Raises ValueError on wrong input, naming column and row.

    >>> answer = compute([0.31, 0.29], [0.30, 0.12], [0.28, 0.27], [0.11, 0.10], n_resamples=0)
    >>> answer["ocr_reference"], answer["ocr_variety"], answer["delta_pp"], answer["p_value"]
    (0.5, 1.0, 50.0, 1.0)
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    threshold = check_number(NAME, "threshold", threshold, 0, 2)
    given = {
        "unguarded_reference": unguarded_reference,
        "guarded_reference": guarded_reference,
        "unguarded_variety": unguarded_variety,
        "guarded_variety": guarded_variety,
        "groups": groups,
        "clusters": clusters,
    }
    columns = check_columns(NAME, COLUMNS, given)
    similarity = np.array([[np.nan if cell is None else cell for cell in columns[name]] for name in IMAGES], np.float64).T
    observed: BoolArray = np.asarray(np.isfinite(similarity).all(axis=1))
    flags = (similarity[:, 0::2] - similarity[:, 1::2] > threshold).astype(np.float64)

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_rows = None if clusters is None else [columns["clusters"][row] for row in rows]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        test = SIGN_FLIP if repeated(of_rows) else "paper"
        # McNemar's test is the study's, and told by no field.
        fields = {"threshold": str(threshold), **({"test": test} if test == SIGN_FLIP else {})}
        values, ci = paired_rates("ocr", flags[kept], np.ones(len(kept), bool), of_kept, resampling, test)
        counts = {"n": len(kept), "n_missing": len(rows) - len(kept)}
        return {**values, **counts, **ci, "signature": str(Signature(NAME, fields, VERSION))}

    return correct_over_groups(by_group(describe, len(flags), columns["groups"]), "p_value")
