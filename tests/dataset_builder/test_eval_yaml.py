"""The benchmark that ``eval.yaml`` declares: its tasks are configs that there are, and scores that are made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import command

from t2i_parity.dataset_builder.benchmark import TASKS, Task, eval_yaml
from t2i_parity.dataset_builder.schema import CONFIGS
from t2i_parity.generate.score import MEASURES


def test_it_declares_the_tasks_of_the_configs_that_are_there(prompts: Path, tmp_path: Path) -> None:
    told = yaml.safe_load((prompts / "eval.yaml").read_text(encoding="utf-8"))
    assert list(told) == ["name", "description", "evaluation_framework", "tasks"]
    assert told["tasks"] == [{"id": task.id, "config": task.config, "split": "test"} for task in TASKS]
    command("build", "dialect", "--limit", 12, "--out", tmp_path)
    assert not (tmp_path / "eval.yaml").exists()
    assert eval_yaml(["geo"], "test") == ""


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.id)
def test_every_task_is_a_score_that_is_made(task: Task) -> None:
    assert task.config in CONFIGS
    made = {f"{measure.metric}.{key}": measure for measure in MEASURES for key in measure.keys}
    if task.of:
        assert task.metric == "cross_lingual_gap.worst"
        assert any(measure.metric == task.of and measure.of_rows for measure in MEASURES)
    else:
        assert made[task.metric].higher_is_better


def test_the_worst_language_is_that_of_its_own_metric() -> None:
    def entry(metric: str, group: str, signature: str, value: float | None = 0.5) -> dict[str, Any]:
        return {"metric": metric, "group": group, "signature": signature, "value": value}

    scores = [
        entry("clip_score.clip_score", "all", "clip_score|v:1.0"),
        entry("clip_score.clip_score", "language:hi", "clip_score|v:1.0"),
        entry("cross_lingual_gap.worst", "language:hi", "cross_lingual_gap|of:clip_score,v=1.0|v:1.0"),
        entry("cross_lingual_gap.worst", "language:ar", "cross_lingual_gap|of:trigscore,v=1.0|v:1.0"),
        entry("trigscore.trigscore", "all", "trigscore|v:1.0", None),
    ]
    by_id = {task.id: task for task in TASKS}
    assert [found["group"] for found in by_id["clip_score"].value(scores)] == ["all"]
    assert [found["group"] for found in by_id["clip_score_worst_language"].value(scores)] == ["language:hi"]
    assert by_id["trigscore"].value(scores) == []
