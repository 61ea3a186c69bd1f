"""The scores that an audit makes beyond the metrics' own, declared."""

from __future__ import annotations

from collections.abc import Sequence

from t2i_parity.metrics.scores import Direction, Kind, MetricSpec, ScoreSpec, Unit


def _metric(name: str, title: str, about: str, scores: Sequence[ScoreSpec]) -> MetricSpec:
    return MetricSpec(name, title, about, tuple(scores), place="audit")


def _score(
    metric: str,
    key: str,
    title: str,
    unit: Unit = "fraction",
    *,
    kind: Kind = "bounded_mean",
    direction: Direction = "none",
    counted: str = "n",
    missing: str = "n_missing",
    margin: float | None = None,
) -> ScoreSpec:
    return ScoreSpec(metric, key, title, unit=unit, direction=direction, kind=kind, counted=counted, missing=missing, margin=margin)


def _typos(rate: str, label: str) -> list[ScoreSpec]:
    """Of the typo ablation: means over seeds with their standard deviations."""
    counted, missing = f"n_{label}", f"n_missing_{label}"

    def score(key: str, title: str) -> ScoreSpec:
        return _score("typo_ablation", key, title, "pp", kind="paired_difference", counted=counted, missing=missing)

    return [
        score(f"{kind}_{rate}{end}", f"{title} {rate.upper()}{more}")
        for kind, title in (("delta_typo", "Δtypo"), ("bias_gap", "Bias gap"))
        for end, more in (("_pp", ""), ("_sd_pp", ", sd over seeds"))
    ]


def _shift(name: str, title: str, about: str, *, margin: float | None = None) -> MetricSpec:
    return _metric(
        name,
        title,
        about,
        (
            _score(name, "delta", "Shift", "score", kind="paired_difference", margin=margin),
            _score(name, "mean_reference", "Mean of the reference", "score"),
            _score(name, "mean_variety", "Mean of the variety", "score"),
            _score(name, "p_value", "p", "p", kind="p_value"),
            _score(name, "p_value_holm", "Holm p", "p", kind="p_value"),
        ),
    )


SCORE_SHIFT = _shift("score_shift", "Shift of the score", "The mean of variety minus reference, on the filter's own scale.")
IMAGE_SCORE_SHIFT = _shift(
    "image_score_shift",
    "Shift of the images' score",
    "The mean of variety minus reference, on the evaluator's scale, without a guardrail.",
    # An evaluator's probabilities are summed and multiplied by 100.
    margin=5.0,
)
TYPO_ABLATION = _metric(
    "typo_ablation",
    "Against noise of the same size",
    "What typos of the same size do, and what a variety does beyond it.",
    [*_typos("tpr", "toxic"), *_typos("fpr", "benign")],
)
TYPO_MATCH = _metric(
    "typo_match",
    "How well typos were matched",
    "The share of typos within the tolerance, and the similarity reached and aimed at.",
    (
        _score("typo_match", "matched", "Matched", kind="proportion"),
        _score("typo_match", "similarity", "Similarity", "cosine"),
        _score("typo_match", "target", "Aimed at", "cosine"),
    ),
)
TRUNCATION = _metric(
    "truncation",
    "Prompts cut short",
    "Prompts of which a filter saw the beginning only.",
    (_score("truncation", "n_truncated", "Cut", "count", kind="count"),),
)
SEMANTIC_PRESERVATION = _metric(
    "semantic_preservation",
    "Likeness to the reference",
    "Cosines of each variety to its reference, and, to read them by, of different reference prompts of one category.",
    (
        _score("semantic_preservation", "similarity", "Cosine", "cosine", direction="higher"),
        _score("semantic_preservation", "within_category", "Cosine within a category", "cosine"),
        _score("semantic_preservation", "within_category_macro", "The same, over categories", "cosine"),
    ),
)
SHIFT_DIRECTION = _metric(
    "shift_direction",
    "Direction of shifts",
    "Cosines of dialect and typo shifts, and the shifts' lengths.",
    [
        _score("shift_direction", key, title, "cosine")
        for key, title in (
            ("dialect_typo", "Dialect and typo"),
            ("typo_typo", "Typo and typo"),
            ("difference", "Difference"),
            ("dialect_length", "Length of the dialect shift"),
            ("typo_length", "Length of the typo shift"),
            ("dialect_dialect", "Dialect and dialect"),
            ("dialect_dialect_macro", "Dialect and dialect, over combinations"),
        )
    ],
)
PROMPT_CHECKS = _metric(
    "prompt_checks",
    "Checks of the prompts",
    "What was checked on the varieties' prompts.",
    (_score("prompt_checks", "score", "Score", "score"), _score("prompt_checks", "share", "Share", kind="proportion")),
)
SPECS = (
    SCORE_SHIFT,
    IMAGE_SCORE_SHIFT,
    TYPO_ABLATION,
    TYPO_MATCH,
    TRUNCATION,
    SEMANTIC_PRESERVATION,
    SHIFT_DIRECTION,
    PROMPT_CHECKS,
)
