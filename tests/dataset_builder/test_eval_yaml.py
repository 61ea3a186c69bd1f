"""The benchmark that ``eval.yaml`` declares: its tasks are configs that there are, and scores that are made."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from commands import command

from t2i_parity.dataset_builder.benchmark import Task, eval_yaml, tasks
from t2i_parity.dataset_builder.schema import CONFIGS
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Group, Score


def test_it_declares_the_tasks_of_the_configs_that_are_there(prompts: Path, tmp_path: Path) -> None:
    told = yaml.safe_load((prompts / "eval.yaml").read_text(encoding="utf-8"))
    assert list(told) == ["name", "description", "evaluation_framework", "tasks"]
    assert told["tasks"] == [{"id": task.id, "config": task.config, "split": "test"} for task in tasks()]
    command("build", "dialect", "--limit", 12, "--out", tmp_path)
    assert not (tmp_path / "eval.yaml").exists()
    assert eval_yaml(["geo"], "test") == ""


@pytest.mark.parametrize("task", tasks(), ids=lambda task: task.id)
def test_every_task_is_a_score_that_is_made(task: Task) -> None:
    assert task.config in CONFIGS
    assert task.spec in specs()[task.spec.metric].scores
    assert task.spec.direction == "higher"
    if task.of:
        assert task.spec.name == "cross_lingual_gap.worst"
        assert specs()[task.of].unequal
    else:
        assert specs()[task.spec.metric].compute is not None


def test_the_worst_language_is_that_of_its_own_metric() -> None:
    def score(metric: str, key: str, signature: str, value: float | None = 0.5, subset: str = "lingt2i_content", **group: str) -> Score:
        return Score(specs()[metric][key], subset, Group(group), value, 6, 0, None, Signature.parse(signature))

    scores = [
        score("clip_score", "clip_score", "clip_score|v:1.0"),
        score("clip_score", "clip_score", "clip_score|v:1.0", subset="lingt2i_text"),
        score("clip_score", "clip_score", "clip_score|v:1.0", language="hi"),
        score("cross_lingual_gap", "worst", "cross_lingual_gap|of:{clip_score|v:1.0}|v:1.0", language="hi"),
        score("cross_lingual_gap", "worst", "cross_lingual_gap|of:{trigscore|v:1.0}|v:1.0", language="ar"),
        score("trigscore", "trigscore", "trigscore|v:1.0", None),
    ]
    by_id = {task.id: task for task in tasks()}
    assert [found.group for found in by_id["clip_score"].value(scores)] == [Group()]
    assert [found.group for found in by_id["clip_score_worst_language"].value(scores)] == [Group(language="hi")]
    assert by_id["trigscore"].value(scores) == []
