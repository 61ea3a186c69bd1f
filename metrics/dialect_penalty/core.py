"""Dialect penalty: how a filter's detection rates shift between a reference wording (SAE) and a variety of it.

Source: "Not Safe for All: Auditing the Dialect Penalty in Text-to-Image Safety Pipelines" (arXiv 2608.29589), §3.3,
§4.1.2, Tables 1 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .common import (
    CLUSTERS,
    GROUPS,
    MCNEMAR_TESTS,
    SIGN_FLIP,
    Answer,
    BoolArray,
    Column,
    FloatArray,
    IntArray,
    Mean,
    Paired,
    Resampling,
    Signature,
    by_group,
    check_choice,
    check_columns,
    correct_over_groups,
    estimate,
    paired_p,
    ratio,
    repeated,
)

NAME = "dialect_penalty"
VERSION = "1.1"
COLUMNS = (
    Column("reference", "bool", missing=True),
    Column("variety", "bool", missing=True),
    Column("label", "str", allowed=("benign", "toxic")),
    Column("typo", "bool", missing=True, optional=True),
    GROUPS,
    CLUSTERS,
)
KEYS = ("delta_tpr_pp", "delta_fpr_pp", "tpr_reference", "tpr_variety", "fpr_reference", "fpr_variety")
TYPO_KEYS = ("delta_typo_tpr_pp", "delta_typo_fpr_pp", "bias_gap_tpr_pp", "bias_gap_fpr_pp")


def compute(
    reference: Sequence[bool | None],
    variety: Sequence[bool | None],
    label: Sequence[str],
    *,
    typo: Sequence[bool | None] | None = None,
    test: str = "paper",
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Dialect penalty (§3.3): rates in [0, 1], keys ending ``_pp`` in percentage points, variety minus reference.

    Args:
        reference: was the reference wording flagged? One row a pair; None where the filter gave no answer.
        variety: was the variety's wording flagged?
        label: "toxic" (its rate is the TPR) or "benign" (the FPR).
        typo: was the reference with typos flagged? Adds ``delta_typo_*_pp`` (typo minus reference) and
            ``bias_gap_*_pp`` (Δdialect − Δtypo; §4.1.2). One typo seed a call.
        test: "paper" (exact below 25 discordant pairs, else χ² with continuity correction), "exact" or "chi2" (which
            the study's code used throughout); see :func:`mcnemar_p`. Where clusters repeat within a label, none of
            them holds, and a sign-flip test over clusters stands in their place; the signature says ``test:sign-flip``.
        groups: one name a row, here the variety; adds ``by_group``, with p-values also corrected over the groups by
            Holm's method (``p_tpr_holm``, ``p_fpr_holm``).
        clusters: one name a row; rows of one name count as one draw, in tests too (default: each pair alone).

    A pair counts only when each of its given observations is there; the others are ``n_missing``, by label
    ``n_missing_toxic`` and ``n_missing_benign``. Returns a dict of plain numbers with ``n``, ``n_missing``, ``ci`` and
    ``ci_method`` (unless ``n_resamples`` is 0) and ``signature``; None stands for a number that is not
    defined, as a TPR without toxic pairs.

    Raises ValueError on wrong input, naming column and row.

    >>> answer = compute([True, False, False], [True, True, False], ["toxic", "toxic", "benign"], n_resamples=0)
    >>> answer["delta_tpr_pp"], answer["p_tpr"], answer["delta_fpr_pp"]
    (50.0, 1.0, 0.0)
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    check_choice(NAME, "test", test, MCNEMAR_TESTS)
    given = {
        "reference": reference,
        "variety": variety,
        "label": label,
        "typo": typo,
        "groups": groups,
        "clusters": clusters,
    }
    columns = check_columns(NAME, COLUMNS, given)
    names = ["reference", "variety", *(["typo"] if typo is not None else [])]
    flags = np.array([[np.nan if cell is None else cell for cell in columns[name]] for name in names], np.float64).T
    toxic: BoolArray = np.array([cell == "toxic" for cell in columns["label"]])
    observed: BoolArray = np.asarray(np.isfinite(flags).all(axis=1))
    # What a pair adds: one count and its flags, in the toxic or in the benign half.
    ones = np.column_stack([np.ones(len(flags)), flags])
    parts = np.hstack([ones * toxic[:, None], ones * ~toxic[:, None]])
    keys = [*KEYS, *(TYPO_KEYS if typo is not None else ())]
    # The columns of ``parts`` in each half: how many pairs, how many references flagged, varieties, typos.
    halves = {"tpr": 0, "fpr": 1 + len(names)}
    kinds: dict[str, Mean | Paired] = {}
    for rate, at in halves.items():
        kinds[f"delta_{rate}_pp"] = Paired(at + 1, at + 2, at, 100.0)
        kinds[f"{rate}_reference"], kinds[f"{rate}_variety"] = Mean(at + 1, at), Mean(at + 2, at)
        kinds[f"delta_typo_{rate}_pp"] = Paired(at + 1, at + 3, at, 100.0)
        # Less what typos shift, the reference falls out of it.
        kinds[f"bias_gap_{rate}_pp"] = Paired(at + 3, at + 2, at, 100.0)

    def statistics(sums: FloatArray) -> FloatArray:
        tpr, fpr = (ratio(half[..., 1:], half[..., :1]) for half in np.split(sums, 2, axis=-1))
        shifts = [100 * (rates[..., 1:] - rates[..., :1]) for rates in (tpr, fpr)]
        values = [shifts[0][..., 0], shifts[1][..., 0], tpr[..., 0], tpr[..., 1], fpr[..., 0], fpr[..., 1]]
        if typo is not None:
            values += [shift[..., 1] for shift in shifts] + [shift[..., 0] - shift[..., 1] for shift in shifts]
        return np.stack(values, axis=-1)

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        values, ci = estimate(parts[kept], of_kept, statistics, keys, resampling, kinds)
        answer: Answer = dict(values)
        shift = flags[kept, 1] - flags[kept, 0]
        of_rows = None if clusters is None else [columns["clusters"][row] for row in rows]
        applied = SIGN_FLIP if repeated(of_rows, [columns["label"][row] for row in rows]) else test
        for rate, half in (("tpr", toxic[kept]), ("fpr", ~toxic[kept])):
            only_variety, only_reference = (int(np.sum(shift[half] == way)) for way in (1, -1))
            of_half = None if of_kept is None else [of_kept[place] for place in np.flatnonzero(half)]
            answer[f"p_{rate}"] = paired_p(shift[half], of_half, applied, resampling.seed) if half.any() else None
            answer[f"{rate}_only_variety"] = only_variety if half.any() else None
            answer[f"{rate}_only_reference"] = only_reference if half.any() else None
        n_toxic, of_toxic = int(toxic[kept].sum()), int(toxic[rows].sum())
        counts = {
            "n_toxic": n_toxic,
            "n_benign": len(kept) - n_toxic,
            "n": len(kept),
            "n_missing_toxic": of_toxic - n_toxic,
            "n_missing_benign": len(rows) - of_toxic - (len(kept) - n_toxic),
            "n_missing": len(rows) - len(kept),
        }
        return {**answer, **counts, **ci, "signature": str(Signature(NAME, {"test": applied}, VERSION))}

    return correct_over_groups(by_group(describe, len(flags), columns["groups"]), "p_tpr", "p_fpr")
