"""The prompts as a benchmark of the hub: the tasks that ``eval.yaml`` declares, and by which a model's page shows its results."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from t2i_parity.cards.dataset import SUMMARY, TITLE

EVAL_YAML = "eval.yaml"
FRAMEWORK = "t2i-parity"


@dataclass(frozen=True, slots=True)
class Task:
    """One number that a model's page shows: the score ``metric`` on ``config``, of which higher is better.

    ``of`` is the metric whose inequality is measured, where it is one of the worst language's.
    """

    id: str
    config: str
    metric: str
    about: str
    of: str = ""

    def value(self, scores: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """The entries of scores.json that answer the task: one a signature."""
        found = [entry for entry in scores if entry["metric"] == self.metric and entry["value"] is not None]
        if self.of:
            return [entry for entry in found if f"|of:{self.of}," in entry["signature"]]
        return [entry for entry in found if entry["group"] == "all"]


_WORST = "cross_lingual_gap.worst"

TASKS: tuple[Task, ...] = (
    Task("text_rendering", "lingt2i_text", "text_rendering_precision.precision", "Text-rendering precision over all languages"),
    Task("text_rendering_worst_language", "lingt2i_text", _WORST, "The same in the worst language", "text_rendering_precision"),
    Task("trigscore", "lingt2i_content", "trigscore.trigscore", "TRIGScore over all languages"),
    Task("trigscore_worst_language", "lingt2i_content", _WORST, "The same in the worst language", "trigscore"),
    Task("clip_score", "lingt2i_content", "clip_score.clip_score", "CLIPScore over all languages"),
    Task("clip_score_worst_language", "lingt2i_content", _WORST, "The same in the worst language", "clip_score"),
)
"""Every task. Shifts between varieties are none: they have a sign, and 0 is the best of them."""


def eval_yaml(configs: Collection[str], split: str) -> str:
    """The ``eval.yaml`` of a prompts repository with these configs, as the hub reads it; empty where none of them has a task.

    >>> print(eval_yaml(["lingt2i_text"], "test").splitlines()[-3])
    - id: text_rendering_worst_language
    """
    tasks = [{"id": task.id, "config": task.config, "split": split} for task in TASKS if task.config in configs]
    if not tasks:
        return ""
    content = {"name": TITLE, "description": SUMMARY, "evaluation_framework": FRAMEWORK, "tasks": tasks}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
