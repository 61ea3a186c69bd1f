"""The prompts as a benchmark of the hub: the tasks that ``eval.yaml`` declares, and by which a model's page shows its results."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import yaml

from t2i_parity.cards.dataset import SUMMARY, TITLE

if TYPE_CHECKING:
    from t2i_parity.metrics.scores import Score, ScoreSpec

EVAL_YAML = "eval.yaml"
FRAMEWORK = "t2i-parity"


@dataclass(frozen=True, slots=True)
class Task:
    """One number that a model's page shows: the score ``spec`` on ``config``, of which higher is better.

    ``of`` is the metric whose inequality is measured, where it is one of the worst language's.
    """

    id: str
    config: str
    spec: ScoreSpec
    about: str
    of: str = ""

    def value(self, scores: Iterable[Score]) -> list[Score]:
        """The scores of a run that answer the task: one a signature."""
        found = [score for score in scores if score.spec == self.spec and score.subset == self.config and score.value is not None]
        if self.of:
            return [score for score in found if score.signature.flat["of"] == self.of]
        return [score for score in found if not score.group]


@cache
def tasks() -> tuple[Task, ...]:
    """Every score that is declared as a task, and the same in its worst language.

    Shifts between varieties are none: they have a sign, and 0 is the best of them.
    """
    # The metrics bring scipy, which building prompts needs nowhere else.
    from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
    from t2i_parity.metrics.specs import OWN

    found = []
    for metric in OWN:
        for score in metric.scores:
            if score.task is not None:
                name, config = score.task.id, score.task.config
                found.append(Task(name, config, score, f"{score.headline} over all languages"))
                found.append(Task(f"{name}_worst_language", config, GAP["worst"], "The same in the worst language", metric.name))
    return tuple(found)


def eval_yaml(configs: Collection[str], split: str) -> str:
    """The ``eval.yaml`` of a prompts repository with these configs, as the hub reads it; empty where none of them has a task.

    >>> print(eval_yaml(["lingt2i_text"], "test").splitlines()[-3])
    - id: text_rendering_worst_language
    """
    asked = [{"id": task.id, "config": task.config, "split": split} for task in tasks() if task.config in configs]
    if not asked:
        return ""
    content = {"name": TITLE, "description": SUMMARY, "evaluation_framework": FRAMEWORK, "tasks": asked}
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=1000)
