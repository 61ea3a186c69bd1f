"""What was checked on the prompts themselves, as a round trip through another model, summed up by variety (Kim et al. 2026, Appendix D)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.generate.audit.pairs import Pair
from t2i_parity.generate.entries import Scores, ScoreSettings
from t2i_parity.generate.specs.audit import PROMPT_CHECKS
from t2i_parity.metrics._common import Resampling, Signature, estimate, ratio
from t2i_parity.metrics.scores import Group, Score

MOST_VERDICTS = 12
"""A check with more different verdicts than this holds names, not judgements; its verdicts are not counted out."""


def summary(subset: str, rows: Sequence[Prompt], pairs: Sequence[Pair], settings: ScoreSettings) -> Scores:
    """Of every check on the varieties' rows: its mean score, and the share of each verdict, by variety and label.

    A row without the check is missing. What the typos' maker noted is told where the typos are.
    """
    found: dict[tuple[str, str, str], list[tuple[str, Mapping[str, Any] | None]]] = {}
    names = dict.fromkeys(
        each["check"] for pair in pairs for each in rows[pair.other].get("checks") or [] if not each["check"].startswith("typo_")
    )
    for pair in pairs:
        by_name = {each["check"]: each for each in rows[pair.other].get("checks") or []}
        for name in names:
            found.setdefault((name, pair.variety, pair.label), []).append((pair.pair_id, by_name.get(name)))
    resampling = Resampling(settings.confidence_level, settings.n_resamples, settings.seed)
    scores: Scores = []
    for (name, code, label), cells in found.items():
        there = [(pair, check) for pair, check in cells if check is not None]
        if not there:
            continue
        by = "; ".join(sorted({str(check["by"]) for _, check in there}))
        signature = Signature("prompt_checks", {"check": plain(name), "by": plain(by)}, "1.0")
        group = Group(variety=code, label=label)
        numbers = [(pair, float(check["score"])) for pair, check in there if check["score"] is not None]
        if numbers:
            parts = np.array([[1.0, value] for _, value in numbers])
            values, ci = estimate(
                parts, [pair for pair, _ in numbers], lambda sums: ratio(sums[..., 1:], sums[..., :1]), ["score"], resampling
            )
            answer = {**values, **ci, "n": len(numbers), "n_missing": len(cells) - len(numbers)}
            scores.append(Score.of(PROMPT_CHECKS["score"], answer, subset, group, signature, level=settings.confidence_level))
        verdicts = Counter(str(check["verdict"]) for _, check in there if check["verdict"] is not None)
        total = sum(verdicts.values())
        if len(verdicts) <= MOST_VERDICTS:
            for verdict, count in sorted(verdicts.items()):
                cell, missing = Group(group, verdict=plain(verdict)), len(cells) - total
                scores.append(Score(PROMPT_CHECKS["share"], subset, cell, count / total, total, missing, None, signature))
    return scores


def plain(text: str) -> str:
    """A text as a group or signature may hold it.

    >>> plain("a|b: c,d")
    'a b c d'
    """
    return " ".join(re.sub(r"[|:,\n\r]", " ", text).split())[:80]
