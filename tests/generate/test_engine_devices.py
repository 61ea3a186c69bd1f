"""One process a device: the same rows as from one, whatever befalls the processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from painters import kept, loading, painted

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.devices import Devices
from t2i_parity.generate.run import Run


def children() -> list[int]:
    """The processes that multiprocessing began for this one."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        # Threads and processes end while they are looked at.
        with suppress(OSError):
            for child in (task / "children").read_text().split():
                with suppress(OSError):
                    if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                        found.append(int(child))
    return found


def test_two_processes_make_what_one_makes(tmp_path: Path) -> None:
    with Devices(loading(raises="p5", refuses="p6", log=tmp_path / "log", seconds=0.01), ["cpu:0", "cpu:1"]) as maker:
        assert maker.ask("device") == "cpu:0,cpu:1"
        assert maker.ask("batch_keys", []) is None
        tally = painted(tmp_path / "two", 40, maker)
        assert len(children()) == 2
    assert children() == []
    assert (tally.done, tally.failed) == (40, 2)
    painted(tmp_path / "one", 40, loading(raises="p5", refuses="p6", device="cpu")())
    two, one = kept(tmp_path / "two"), kept(tmp_path / "one")
    assert two == one, "attempts, batch sizes, reasons and pixels too"


def test_a_short_memory_is_noted_from_any_process(tmp_path: Path) -> None:
    with Devices(loading(fits=2), ["cpu", "cpu"]) as maker:
        painted(tmp_path, 16, maker)
    assert {row["batch_size"] for row in kept(tmp_path).values()} == {2}
    assert [entry["batch_size"] for entry in Run.open(str(tmp_path)).record["out_of_memory"]] == [2]


def test_a_row_that_kills_its_process_costs_no_other(tmp_path: Path) -> None:
    with Devices(loading(1, kills="p5"), ["cpu:0"]) as maker:
        tally = painted(tmp_path, 12, maker)
    assert (tally.done, tally.failed) == (12, 1)
    found = kept(tmp_path)
    assert found["p5"]["reason"] == "the process on cpu:0 died over this row 2 times (killed by SIGKILL)"
    assert found["p5"]["attempts"] == 2
    assert {row["status"] for name, row in found.items() if name != "p5"} == {"ok"}


def test_a_process_that_is_killed_is_begun_anew(tmp_path: Path) -> None:
    with Devices(loading(seconds=0.05), ["cpu:0", "cpu:1"]) as maker:
        victim = children()[0]
        threading.Timer(0.5, os.kill, (victim, signal.SIGKILL)).start()
        tally = painted(tmp_path, 80, maker, batch_size=2)
        assert victim not in children()
        assert len(children()) == 2
    assert (tally.done, tally.failed) == (80, 0)
    assert len(kept(tmp_path)) == 80


class Unloadable:
    """What cannot be made."""

    retries = 0

    def __init__(self, ends: bool) -> None:
        self.ends = ends

    def on(self, device: str) -> Unloadable:
        return self

    def __call__(self) -> Any:
        if self.ends:
            os._exit(3)
        raise InputError("the weights are not there")

    def failed(self, rows: Sequence[Any], reason: str, attempts: int) -> Any:
        raise NotImplementedError


def test_what_cannot_be_loaded_is_told() -> None:
    with pytest.raises(InputError, match="the weights are not there"):
        Devices(Unloadable(False), ["cpu"])
    with pytest.raises(InputError, match=r"the process on cpu ended before its model was loaded \(exit code 3\)"):
        Devices(Unloadable(True), ["cpu"])
    assert children() == []


def test_devices_of_different_kinds_are_refused() -> None:
    with Devices(loading(), ["cpu:0", "gpu:0"]) as maker, pytest.raises(InputError, match=r"not the same on all of them .*one kind"):
        maker.ask("record")


def test_an_input_error_in_a_process_ends_the_run(tmp_path: Path) -> None:
    with Devices(loading(unpaid="p8"), ["cpu"]) as maker, pytest.raises(InputError, match="the account is empty"):
        painted(tmp_path, 12, maker, batch_size=2)
    assert {f"p{number}" for number in range(6)} <= set(kept(tmp_path)) <= {f"p{number}" for number in (*range(8), 10, 11)}


BEGINNER = """
import sys
from painters import loading, painted
from t2i_parity.generate.engine.devices import Devices
if __name__ == "__main__":
    with Devices(loading(seconds=0.1, log=sys.argv[1] + ".log"), ["cpu:0", "cpu:1"]) as maker:
        print("ready", flush=True)
        tally = painted(sys.argv[1], 200, maker, batch_size=2)
        print(tally.done, tally.stopped, flush=True)
"""


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that paints 200 rows with two more, and has some of them."""
    script = tmp_path / "begin.py"
    script.write_text(BEGINNER)
    process = subprocess.Popen(
        [sys.executable, script, tmp_path / "run"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "run" / ".journal" / "images").glob("batch-*"))) < 4:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.005)
    yield process
    if process.poll() is None:
        process.kill()
    process.wait()


def test_a_kill_costs_two_batches_a_device_and_leaves_no_process(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    workers = [int(child) for child in Path(f"/proc/{begun.pid}/task/{begun.pid}/children").read_text().split()]
    assert len(workers) >= 2
    begun.kill()
    begun.wait()
    before = set(kept(tmp_path / "run"))
    assert 8 <= len(before) < 200
    deadline = time.monotonic() + 30
    while any(alive(worker) for worker in workers):
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.02)
    batches = [line.split() for line in (tmp_path / "run.log").read_text().splitlines()]
    assert len([batch for batch in batches if not before.issuperset(batch)]) <= 2 * 2
    painted(tmp_path / "run", 200, loading(device="cpu")())
    assert len(kept(tmp_path / "run")) == 200


def test_a_signal_ends_all_cleanly(begun: subprocess.Popen[str], tmp_path: Path) -> None:
    begun.send_signal(signal.SIGTERM)
    told, _ = begun.communicate(timeout=60)
    assert begun.returncode == 0
    done, stopped = told.split()
    assert stopped == "True"
    assert len(kept(tmp_path / "run")) == int(done)
    assert Run.open(str(tmp_path / "run")).images().files() == ["part-00000.parquet"]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_real_pipeline_on_two_devices(prompts: Path, tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    from small_models import stable_diffusion

    argv = [
        "generate", "--model", stable_diffusion(tmp_path / "small-sd"), "--prompts", prompts, "--config", "lingt2i_content",
        "--languages", "en,ar", "--limit", "8", "--batch-size", "2", "--set", "steps=2", "--set", "width=64", "--set", "height=64",
    ]  # fmt: skip
    command(*argv, "--out", tmp_path / "two", "--devices", "cpu,cpu")
    assert Run.open(str(tmp_path / "two")).record["device"] == "cpu,cpu"
    # The same run goes on without them: where it runs is no part of what it is.
    assert "0 images made now, 8 were there" in command(*argv, "--out", tmp_path / "two", "--set", "device=cpu").stdout
    assert "--devices goes with --engine local" in error_of(*argv, "--out", tmp_path / "x", "--devices", "cpu", "--engine", "ray")
    assert "expects names separated by commas" in error_of(*argv, "--out", tmp_path / "x", "--devices", "cpu,")
