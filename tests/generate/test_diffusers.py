"""A diffusers pipeline of small random weights through the same command, and what a kill does to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from commands import PROGRAM, command, error_of

from t2i_parity.generate.run import Run

pytest.importorskip("diffusers")


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from small_models import stable_diffusion

    return stable_diffusion(tmp_path_factory.mktemp("models") / "small-sd")


def arguments(pipeline: Path, prompts: Path, out: Path, *more: object, steps: int = 2) -> list[str]:
    return [
        "generate", "--model", str(pipeline), "--prompts", str(prompts), "--config", "lingt2i_content", "--languages", "en,ar",
        "--limit", "8", "--set", f"steps={steps}", "--set", "width=64", "--set", "height=64", "--out", str(out), *map(str, more),
    ]  # fmt: skip


def rows(run: Path) -> list[dict]:
    return Run.open(str(run)).images().read().to_pylist()


def test_eight_prompts_in_two_languages(pipeline: Path, prompts: Path, tmp_path: Path) -> None:
    command(*arguments(pipeline, prompts, tmp_path / "run"))
    made = rows(tmp_path / "run")
    assert len(made) == 8
    assert {row["language"] for row in made} == {"en", "ar"}
    assert {row["status"] for row in made} == {"ok"}
    assert {(row["width"], row["height"]) for row in made} == {(64, 64)}
    assert len({row["pair_id"] for row in made}) == 4, "whole pairs are taken"
    record = Run.open(str(tmp_path / "run")).record
    model = record["identity"]["model"]
    assert model["pipeline"] == "StableDiffusionPipeline"
    assert model["scheduler"] == "DDIMScheduler"
    assert model["steps"] == 2
    assert len(model["files_sha256"]) == 64
    assert record["device"] in ("cpu", "cuda", "mps")
    assert set(next(iter(record["truncated"].values()))) <= {"en", "ar"}


def test_the_batch_does_not_matter(pipeline: Path, prompts: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    pixels = []
    for size in (1, 4):
        out = tmp_path / str(size)
        command(*arguments(pipeline, prompts, out, "--batch-size", size))
        loaded = load_dataset(str(out), "images", split="test").sort("image_id")
        pixels.append(np.stack([np.asarray(row["image"], dtype=np.int16) for row in loaded]))
    assert np.abs(pixels[0] - pixels[1]).max() <= 2


def test_killed_midway_and_run_again_it_has_each_image_once(pipeline: Path, prompts: Path, tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    command(*arguments(pipeline, prompts, whole, "--batch-size", 1, steps=40))
    wanted = {row["image_id"]: row["image"]["bytes"] for row in rows(whole)}
    assert len(wanted) == 8

    killed = tmp_path / "killed"
    argv = arguments(pipeline, prompts, killed, "--batch-size", 1, steps=40)
    process = subprocess.Popen(
        [*PROGRAM, *argv],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = killed / ".journal" / "images"
    deadline = time.monotonic() + 120
    while len(list(journal.glob("batch-*"))) < 3 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    durable = [row["image_id"] for row in rows(killed)]
    assert 3 <= len(durable) < 8
    assert not list((killed / "images").glob("*")), "no half-made part is visible"

    done = command(*argv)
    assert f"{8 - len(durable)} images made now, {len(durable)} were there" in done.stdout
    made = rows(killed)
    ids = [row["image_id"] for row in made]
    assert len(ids) == len(set(ids))
    assert set(ids) == set(wanted)
    assert not list(journal.glob("*"))


def test_a_stop_signal_ends_after_the_batch_in_flight(pipeline: Path, prompts: Path, tmp_path: Path) -> None:
    argv = arguments(pipeline, prompts, tmp_path / "run", "--batch-size", 1, steps=60)
    process = subprocess.Popen(
        [*PROGRAM, *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    journal = tmp_path / "run" / ".journal" / "images"
    deadline = time.monotonic() + 120
    while len(list(journal.glob("batch-*"))) < 1 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "the same command goes on from here" in told
    assert (tmp_path / "run" / "images" / "part-00000.parquet").exists()
    command(*argv)
    assert len(rows(tmp_path / "run")) == 8


def test_two_runs_into_one_folder_are_refused(pipeline: Path, prompts: Path, tmp_path: Path) -> None:
    command(*arguments(pipeline, prompts, tmp_path / "run"))
    with Run.open(str(tmp_path / "run")).locked():
        before = (tmp_path / "run" / "run.json").read_bytes()
        assert "another process is writing into" in error_of(*arguments(pipeline, prompts, tmp_path / "run"))
        assert (tmp_path / "run" / "run.json").read_bytes() == before
    command(*arguments(pipeline, prompts, tmp_path / "run"))


def test_a_folder_that_is_no_model_is_told(prompts: Path, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    message = error_of(*arguments(tmp_path / "model", prompts, tmp_path / "run"))
    assert "is not a diffusers pipeline: it has no model_index.json" in message
    assert not (tmp_path / "run").exists()


def test_a_model_with_missing_files_is_told(pipeline: Path, prompts: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(pipeline, tmp_path / "model")
    for weights in (tmp_path / "model" / "unet").glob("*.safetensors"):
        weights.unlink()
    message = error_of(*arguments(tmp_path / "model", prompts, tmp_path / "run"))
    assert "did not load as a text-to-image pipeline" in message
    assert not (tmp_path / "run").exists()


def test_a_model_that_neither_disk_nor_hub_has_is_told(prompts: Path, tmp_path: Path) -> None:
    message = error_of(*arguments(Path("nobody/no-such-model"), prompts, tmp_path / "run"))
    assert "'nobody/no-such-model' is neither a folder nor a pipeline that the hub gave" in message


def test_text_rendering_is_judged_on_a_pipelines_images(pipeline: Path, prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    argv = [part if part != "lingt2i_content" else "lingt2i_text" for part in arguments(pipeline, prompts, run)]
    command(*argv)
    command("judge", run, "--with", "tesseract")
    command("score", run, "--tokenizer", "tekken", "--resamples", 50)
    overall = next(score for score in Run.open(str(run)).scores() if score.spec.name == "text_rendering_precision.precision")
    assert overall.n == 8
    assert overall.value < 0.3, "random weights write no text"
