"""TRIGScore: a judge's rating of an image, read from the log-probabilities that it gave to the rating words.

Source: "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002),
Appendix C.1.2, equations 1 to 3.
"""

from __future__ import annotations

import math
import string
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
    check_choice,
    check_columns,
    estimate,
    ratio,
)

NAME = "trigscore"
VERSION = "1.0"
COLUMNS = (Column("tokens", "list[str]", missing=True), Column("logprobs", "list[float]", missing=True), GROUPS, CLUSTERS)
SCALE = ("excellent", "good", "medium", "bad", "terrible")
VARIANTS = ("paper", "reference")
KEYS = ("trigscore", "confidence")

# A token of one Latin letter begins too many words to be a rating.
_SHORTEST = 2
# What tokenizers write for a space, and what may stand around a word.
_AROUND = string.whitespace + string.punctuation + "▁Ġ–—"
# The authors' code: a token counts for a word when it starts with this, or for want of it with the word.
_STEMS = {"excellent": "ex", "medium": "med", "terrible": "terr"}
_REFERENCE_EPSILON = 1e-12


def words_of(token: str, scale: Sequence[str] = SCALE, variant: str = "paper") -> list[str]:
    """The words of ``scale`` that a judge's token stands for, whatever its case and what stands around it.

    variant "paper": the word itself, or its beginning of two characters or more (one where it is not Latin), as
    tokenizers cut words. Two or more words mean that the token could begin any of them: it counts for none. variant
    "reference": as in the authors' code, every word with whose stem the token starts ("ex", "good", "med", "bad",
    "terr"; "exactly" counts as excellent).

    >>> words_of(" Good"), words_of("ter"), words_of("exactly"), words_of("ter", ["terrible", "terrific"])
    (['good'], ['terrible'], [], ['terrible', 'terrific'])
    """
    if variant == "reference":
        text = token.strip().lower().lstrip("▁" + string.whitespace).lstrip(".,:;!?'\"-–—()[]{}")
        return [word for word in scale if text.startswith(_STEMS.get(word.lower(), word.lower()))]
    text = token.strip(_AROUND).casefold()
    same = [word for word in scale if word.casefold() == text]
    if same or len(text) < (_SHORTEST if text.isascii() else 1):
        return same
    return [word for word in scale if word.casefold().startswith(text)]


def per_row(
    tokens: Sequence[Sequence[str] | None],
    logprobs: Sequence[Sequence[float] | None],
    *,
    scale: Sequence[str] = SCALE,
    variant: str = "paper",
) -> Answer:
    """Scores of each row: arrays ``score`` and ``confidence`` in [0, 1], NaN where missing, and the list ``reason``.

    ``reason`` says why a row is missing and is None where it is scored. Arguments and errors as in :func:`compute`.

    >>> rows = per_row([["good", "bad"], ["I", "The"]], [[-0.5, -0.5], [-0.1, -3.0]], variant="reference")
    >>> rows["score"].tolist(), rows["confidence"].round(3).tolist(), rows["reason"]
    ([0.5, nan], [0.5, nan], [None, "no rating word among 'I', 'The'"])
    """
    check_choice(NAME, "variant", variant, VARIANTS)
    scale = _checked_scale(scale)
    columns = check_columns(NAME, COLUMNS[:2], {"tokens": tokens, "logprobs": logprobs})
    values = np.linspace(1, 0, len(scale))
    known: dict[str, list[str]] = {}
    score, confidence = np.full((2, len(columns["tokens"])), np.nan)
    reason: list[str | None] = []
    for row, (words, weights) in enumerate(zip(columns["tokens"], columns["logprobs"], strict=True)):
        if words is None or weights is None:
            reason.append("no answer from the judge")
            continue
        if len(words) != len(weights):
            raise ValueError(
                f"{NAME}: column 'logprobs', row {row}: expected {len(words)} items as in 'tokens', got {len(weights)}. "
                "Fix: give each token its log-probability."
            )
        sums = np.full(len(scale), -np.inf)
        ambiguous = []
        for token, weight in zip(words, weights, strict=True):
            if token not in known:
                known[token] = words_of(token, scale, variant)
            if len(known[token]) > 1 and variant == "paper":
                ambiguous.append(token)
                continue
            for word in known[token]:
                place = scale.index(word)
                sums[place] = np.logaddexp(sums[place], weight)
        if not np.isfinite(sums).any():
            reason.append(_why_missing(words, ambiguous))
            continue
        # numpy's own exp differs in the last digit from one kind of processor to another.
        mass = np.array([math.exp(each) for each in sums - sums.max()])
        shares = mass / (mass.sum() + (_REFERENCE_EPSILON if variant == "reference" else 0))
        confidence[row] = shares.max()
        expected = float((values * shares).sum())
        score[row] = round(expected, 3) if variant == "reference" else confidence[row] * expected
        reason.append(None)
    return {"score": score, "confidence": confidence, "reason": reason}


def _why_missing(tokens: list[str], ambiguous: list[str]) -> str:
    if not tokens:
        return "no tokens"
    why = f"no rating word among {', '.join(map(repr, tokens[:5]))}{' …' if len(tokens) > 5 else ''}"
    return f"{why}; {', '.join(map(repr, ambiguous))} could begin more than one" if ambiguous else why


def _checked_scale(scale: object) -> list[str]:
    """The words of ``scale``, best first; ValueError unless they are two or more, and different."""
    words = list(scale) if isinstance(scale, Sequence) and not isinstance(scale, str) else []
    texts = [word.strip(_AROUND).casefold() if isinstance(word, str) else "" for word in words]
    if len(words) < 2 or not all(texts) or len(set(texts)) < len(texts):
        raise ValueError(f"{NAME}: scale: expected two different words or more, the best first, such as {SCALE}, got {scale!r}.")
    return words


def compute(
    tokens: Sequence[Sequence[str] | None],
    logprobs: Sequence[Sequence[float] | None],
    *,
    scale: Sequence[str] = SCALE,
    variant: str = "paper",
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """TRIGScore (C.1.2): ``trigscore`` and ``confidence``, the means over the images of S′ and C, in [0, 1].

    Args:
        tokens: the tokens that the judge found likeliest as its one-word answer, one list an image; None where the
            judge failed.
        logprobs: the log-probability of each token, in the same order.
        scale: the rating words, from the best (1) to the worst (0), in equal steps.
        variant: "paper", S′ = C·S, or "reference", the authors' code: S, rounded to three places, and its way of
            telling which word a token stands for (see :func:`words_of`).
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name count as one draw (default: each row alone).

    An image without any rating word among its tokens is missing (counted in ``n_missing``, never scored as 0); see
    :func:`per_row` for the reason. Returns a dict of plain numbers with ``n``, ``n_missing``, ``ci`` and ``ci_method`` (unless
    ``n_resamples`` is 0) and ``signature``; None stands for a number that is not defined.

    Raises ValueError on wrong input, naming column and row.

    >>> answer = compute([["Good", "Excellent"], None], [[-0.5, -0.5], None], n_resamples=0)
    >>> answer["trigscore"], answer["confidence"], answer["n"], answer["n_missing"]
    (0.4375, 0.5, 1, 1)
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    columns = check_columns(NAME, COLUMNS, {"tokens": tokens, "logprobs": logprobs, "groups": groups, "clusters": clusters})
    rated = per_row(columns["tokens"], columns["logprobs"], scale=scale, variant=variant)
    signature = Signature(NAME, {"scale": ">".join(scale), "variant": variant}, VERSION)
    parts = np.stack([rated["score"], rated["confidence"], np.ones(len(rated["score"]))], axis=1)
    observed = ~np.isnan(rated["score"])

    def statistics(sums: FloatArray) -> FloatArray:
        return ratio(sums[..., :2], sums[..., 2:])

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        values, ci = estimate(parts[kept], of_kept, statistics, KEYS, resampling, {key: Mean(place, 2) for place, key in enumerate(KEYS)})
        return {**values, "n": len(kept), "n_missing": len(rows) - len(kept), **ci}

    return {**by_group(describe, len(parts), columns["groups"]), "signature": str(signature)}
