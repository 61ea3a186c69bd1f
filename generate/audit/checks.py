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
from t2i_parity.metrics._common import Signature, mean_interval
from t2i_parity.metrics.scores import Group, Interval, Score

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
    level = settings.confidence_level
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
            values, of = np.array([value for _, value in numbers]), [pair for pair, _ in numbers]
            ends = mean_interval(values, of, level, low=None, high=None) if settings.n_resamples else None
            lacking = len(cells) - len(numbers)
            mean, interval = float(values.mean()), Interval.of(ends, level, "t")
            scores.append(Score(PROMPT_CHECKS["score"], subset, group, mean, len(numbers), lacking, interval, signature))
        given = [(pair, str(check["verdict"])) for pair, check in there if check["verdict"] is not None]
        verdicts = Counter(verdict for _, verdict in given)
        total = sum(verdicts.values())
        if len(verdicts) <= MOST_VERDICTS:
            for verdict, count in sorted(verdicts.items()):
                cell, missing = Group(group, verdict=plain(verdict)), len(cells) - total
                flags = np.array([float(each == verdict) for _, each in given])
                ends = mean_interval(flags, [pair for pair, _ in given], level) if settings.n_resamples else None
                interval = Interval.of(ends, level, "wilson")
                scores.append(Score(PROMPT_CHECKS["share"], subset, cell, count / total, total, missing, interval, signature))
    return scores


def plain(text: str) -> str:
    """A text as a group or signature may hold it.

    >>> plain("a|b: c,d")
    'a b c d'
    """
    return " ".join(re.sub(r"[|:,\n\r]", " ", text).split())[:80]
