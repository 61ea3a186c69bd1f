"""SIGKILL at random moments, through the real command with a real pipeline: nothing that was finished is lost but the last batch."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import command
from killing import Stable

from t2i_parity.generate.run import Run

pytest.importorskip("diffusers")

BATCH = 2
KILLS = int(os.environ.get("T2I_PARITY_KILLS", "20"))
"""How often; more by hand."""


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from small_models import stable_diffusion

    return stable_diffusion(tmp_path_factory.mktemp("models") / "small-sd")


@pytest.fixture(scope="module")
def stable() -> Iterator[Stable]:
    stable = Stable()
    yield stable
    stable.close()


def arguments(pipeline: Path, prompts: Path, out: Path) -> list[str]:
    return [
        "generate", "--model", str(pipeline), "--prompts", str(prompts), "--config", "lingt2i_content", "--languages", "en,ar",
        "--set", "steps=2", "--set", "width=64", "--set", "height=64", "--batch-size", str(BATCH), "--out", str(out),
    ]  # fmt: skip


def durable(run: Path) -> list[str]:
    """The ids of all rows, every file read to its end."""
    if not (run / "run.json").exists():
        return []
    json.loads((run / "run.json").read_text())
    return Run.open(str(run)).images().read()["image_id"].to_pylist()


def begun(log: Path) -> list[list[str]]:
    return [line.split() for line in log.read_text().splitlines()] if log.exists() else []


def wait_for(condition: object, process: int) -> None:
    deadline = time.monotonic() + 120
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_killed_at_random_moments(pipeline: Path, prompts: Path, tmp_path: Path, stable: Stable) -> None:
    chance = random.Random(7)
    run, log = tmp_path / "run", tmp_path / "log"
    argv = arguments(pipeline, prompts, run)
    killed = while_starting = 0
    before: set[str] = set()
    for number in range(KILLS):
        process = stable.start(argv, log, part_rows=7)
        batches = len(begun(log))
        if number % 5:
            # Past the first batch of this life, or it would mostly die while it loads.
            wait_for(lambda batches=batches: len(begun(log)) > batches, process)
        else:
            while_starting += 1
        time.sleep(chance.uniform(0, 0.3))
        os.kill(process, signal.SIGKILL)
        assert stable.wait() == -signal.SIGKILL, "the run was over before all kills; give it more rows"
        killed += 1

        ids = durable(run)
        assert len(ids) == len(set(ids)), "no row stands twice"
        assert before <= set(ids), "what was durable stays"
        before = set(ids)
        lost = [batch for batch in begun(log)[batches:] if not before.issuperset(batch)]
        assert len(lost) <= 2, "at most one finished batch, and the one that was being computed"
        assert not any(set(batch) & before for batch in lost), "a batch is kept whole or not at all"
    assert killed == KILLS
    assert while_starting < KILLS

    # The lock is not stuck, and the rest is made; what is there is not made again.
    lives = len(begun(log))
    assert stable.start(argv, log, part_rows=7)
    assert stable.wait() == 0
    ids = durable(run)
    assert len(ids) == len(set(ids)) == 240
    assert not before & {identity for batch in begun(log)[lives:] for identity in batch}
    assert sum(len(batch) for batch in begun(log)) <= 240 + KILLS * 2 * BATCH
    assert not list((run / ".journal" / "images").iterdir())
    assert "0 images made now, 240 were there" in command(*argv).stdout
