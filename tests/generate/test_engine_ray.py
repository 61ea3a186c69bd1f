"""The engine on Ray: the same rows as from one process, and what killed workers and killed drivers cost.

``T2I_PARITY_RAY_KILLS`` sets how often the driver is killed (2 by default, since each life takes seconds; 20 by hand).
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from commands import PROGRAM, command, error_of
from painters import kept, loading, painted, watcher
from rich.console import Console

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.run import Run

# The cluster of these tests is theirs alone; Ray reads this when it is imported.
os.environ["RAY_AUTH_MODE"] = "disabled"
pytest.importorskip("ray")

from t2i_parity.generate.engine import ray_data
from t2i_parity.generate.engine.ray_data import JudgePlan, RayImages

KILLS = int(os.environ.get("T2I_PARITY_RAY_KILLS", "2"))
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of one node that outlives the commands that use it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("ray") / "log"
    arguments = [Path(sys.executable).parent / "ray", "start", "--head", "--block", f"--port={port}", "--num-cpus=4", "--num-gpus=0",
                 "--include-dashboard=false", "--object-store-memory=200000000"]  # fmt: skip
    with open(log, "w") as told:
        head = subprocess.Popen(arguments, stdout=told, stderr=subprocess.STDOUT, env=ENVIRONMENT)
    deadline = time.monotonic() + 120
    while "Ray runtime started" not in log.read_text():
        assert head.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
    yield f"127.0.0.1:{port}"
    # Its processes end with it; asked to end, it would first wait for half a minute.
    head.kill()
    head.wait()


def on_ray(address: str, run: Path, count: int, recipe: Any, *, actors: int = 2, batch_size: int = 4) -> Any:
    with RayImages.on(address, recipe, actors=actors, gpus=None) as maker:
        return painted(run, count, maker, batch_size=batch_size)


def waited(condition: Callable[[], Any], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_ray_makes_what_one_process_makes(address: str, tmp_path: Path) -> None:
    tally = on_ray(address, tmp_path / "ray", 40, loading(raises="p5", refuses="p6", fails="p7"))
    assert (tally.done, tally.failed) == (40, 3)
    painted(tmp_path / "local", 40, loading(raises="p5", refuses="p6", fails="p7")())
    assert kept(tmp_path / "ray") == kept(tmp_path / "local"), "ids, pixels, attempts, batch sizes and reasons"
    assert on_ray(address, tmp_path / "ray", 44, loading()).before == 40


def test_a_row_that_kills_every_worker_costs_no_other(address: str, tmp_path: Path) -> None:
    tally = on_ray(address, tmp_path / "run", 12, loading(1, kills="p5", log=tmp_path / "log"))
    assert (tally.done, tally.failed) == (12, 1)
    found = kept(tmp_path / "run")
    assert found["p5"]["reason"] == "a Ray worker died over this row 2 times"
    assert {row["status"] for name, row in found.items() if name != "p5"} == {"ok"}
    calls = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    assert sum("p5" in call for call in calls) == 2


def test_a_killed_worker_costs_no_row_and_doubles_none(address: str, tmp_path: Path) -> None:
    import threading

    victims: list[int] = []

    def kill() -> None:
        waited(lambda: len(list((tmp_path / "run" / ".journal" / "images").glob("batch-*"))) >= 3)
        victims.extend(workers("MapWorker")[:1])
        for victim in victims:
            os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    tally = on_ray(address, tmp_path / "run", 60, loading(seconds=0.1), batch_size=2)
    killer.join()
    assert victims, "a worker was there to be killed"
    assert (tally.done, tally.failed) == (60, 0)
    assert len(kept(tmp_path / "run")) == 60


def workers(kind: str) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            name = (process / "cmdline").read_text() if process.name.isdigit() else ""
            environment = (process / "environ").read_text() if name.startswith("ray::") and kind in name else ""
            if f"PYTHONPATH={ENVIRONMENT['PYTHONPATH']}" in environment:
                found.append(int(process.name))
    return found


def test_what_concerns_the_whole_run_ends_it_and_keeps_what_is_done(address: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^the account is empty$"):
        on_ray(address, tmp_path / "run", 12, loading(unpaid="p8"), actors=1, batch_size=2)
    assert {f"p{number}" for number in range(4)} <= set(kept(tmp_path / "run"))
    with pytest.raises(InputError, match="come to 3 GPUs, and the Ray cluster has 0"), ray_data.cluster(address) as ray:
        RayImages(ray, loading(), actors=3, gpus=1)


def test_judges_are_stages_of_one_graph(address: str, tmp_path: Path) -> None:
    run = tmp_path / "run"
    painted(run, 30, loading(fails="p3")())
    pictures = kept(run)
    poison, blinding = pictures["p7"]["image_id"], pictures["p9"]["image_id"]
    plans = {
        "a": JudgePlan(watcher("a", raises=blinding), actors=2),
        "b": JudgePlan(watcher("b", kills=poison), retries=1),
        "c": JudgePlan(watcher("c", unusable=1)),
        "d": JudgePlan(watcher("d")),
    }
    opened = Run.open(str(run))
    with ray_data.cluster(address), opened.locked(), pytest.raises(InputError, match="c has no key"):
        ray_data.judge(opened, plans, batch_size=8, console=Console(quiet=True))
    seen = {name: {row["image_id"]: row for row in opened.observations(name).read().to_pylist()} for name in "abd"}
    assert {name: len(found) for name, found in seen.items()} == {"a": 30, "b": 30, "d": 30}
    assert seen["a"][blinding]["reason"] == "ValueError: blinded"
    assert seen["b"][poison]["reason"] == "a Ray worker died over this row 2 times"
    assert {row["reason"] for row in seen["d"].values()} == {None, "no image: failed: my last word"}
    assert {row["width"] for row in seen["d"].values()} == {16, None}
    assert opened.observations("c").ids() == set()
    with ray_data.cluster(address), opened.locked():
        tallies = ray_data.judge(opened, {name: JudgePlan(watcher(name)) for name in "ac"}, batch_size=8, console=Console(quiet=True))
    assert {name: (tally.before, tally.done) for name, tally in tallies.items()} == {"a": (30, 0), "c": (0, 30)}


def test_the_commands_on_ray(address: str, prompts: Path, tmp_path: Path) -> None:
    argv = ("generate", "--model", "glyph", "--prompts", prompts, "--config", "lingt2i_text", "--limit", "20")
    command(*argv, "--out", tmp_path / "ray", "--engine", "ray", "--ray-address", address, "--actors", "2")
    command(*argv, "--out", tmp_path / "local")
    one, other = kept(tmp_path / "ray"), kept(tmp_path / "local")
    assert one == other
    done = command(
        "judge",
        tmp_path / "ray",
        "--with",
        "tesseract",
        "--engine",
        "ray",
        "--ray-address",
        address,
        "--actors",
        "tesseract=2",
        "--gpus-per-actor",
        "0",
    )
    assert "20 observations made now" in done.stdout
    command("judge", tmp_path / "local", "--with", "tesseract")
    tables = [Run.open(str(tmp_path / name)).observations("tesseract").read().sort_by("image_id") for name in ("ray", "local")]
    assert tables[0].equals(tables[1])
    assert "expected N or JUDGE=N" in error_of("judge", tmp_path / "ray", "--with", "tesseract", "--engine", "ray", "--actors", "eyes=2")
    nowhere = error_of(*argv, "--out", tmp_path / "x", "--engine", "ray", "--ray-address", "127.0.0.1:1")
    assert "no Ray cluster at 127.0.0.1:1" in nowhere


DRIVER = """
import sys
from painters import loading, painted
from t2i_parity.generate.engine.ray_data import RayImages
with RayImages.on(sys.argv[1], loading(seconds=0.02, log=sys.argv[2] + ".log"), actors=2, gpus=None) as maker:
    tally = painted(sys.argv[2], 400, maker, batch_size=2)
    print(tally.done, tally.stopped)
"""


def killed(driver: subprocess.Popen[bytes], run: Path, before: set[str], chance: random.Random) -> set[str]:
    """The ids that are durable after a kill at a random moment past the first batch of this life; nothing from before is lost."""
    journal = run / ".journal" / "images"
    there = set(journal.glob("batch-*"))
    waited(lambda: set(journal.glob("batch-*")) - there)
    time.sleep(chance.uniform(0, 0.2))
    driver.kill()
    assert driver.wait() == -signal.SIGKILL, "the run was over before the kill"
    ids = Run.open(str(run)).images().read()["image_id"].to_pylist()
    assert len(ids) == len(set(ids)), "no row stands twice"
    assert before <= set(ids), "what was durable stays"
    return set(ids)


def test_a_killed_driver_costs_what_was_not_appended(address: str, tmp_path: Path) -> None:
    chance = random.Random(3)
    run = tmp_path / "run"
    before: set[str] = set()
    for _ in range(KILLS):
        driver = subprocess.Popen([sys.executable, "-c", DRIVER, address, str(run)], stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        before = killed(driver, run, before, chance)
    made = on_ray(address, run, 400, loading())
    assert (made.before, made.done, made.failed) == (len(before), 400 - len(before), 0)
    assert len(kept(run)) == 400
    assert not list((run / ".journal" / "images").iterdir())
    # Each actor has two batches at once, one block may wait for each, and one is being written.
    begun = [line.split() for line in (tmp_path / "run.log").read_text().splitlines()]
    assert sum(len(batch) for batch in begun) - len(before) <= KILLS * 2 * (2 * 3 + 2)


SLOW = """
import time
from ray.data._internal.execution.streaming_executor import StreamingExecutor
step = StreamingExecutor._scheduling_loop_step
def slow(self, topology):
    going_on = step(self, topology)
    if self._shutdown:
        time.sleep(2.5)
        return step(self, topology)
    return going_on
StreamingExecutor._scheduling_loop_step = slow
"""
"""Makes Ray Data's loop notice late that it is to end, as on a busy machine; it waits for two seconds itself."""


@pytest.mark.parametrize(("after", "before"), [(0.0, ""), (0.5, ""), (1.0, ""), (0.1, SLOW), (0.4, SLOW)])
def test_a_signal_ends_the_driver_cleanly(address: str, tmp_path: Path, after: float, before: str) -> None:
    run = tmp_path / "run"
    # Slow enough to be far from done, however late the signal.
    program = before + DRIVER.replace("0.02", "0.2") + "time.sleep(2)\n" * bool(before)
    argv = [sys.executable, "-c", program, address, str(run)]
    driver = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
    waited(lambda: list((run / ".journal" / "images").glob("batch-*")))
    time.sleep(after)
    driver.send_signal(signal.SIGTERM)
    told, _ = driver.communicate(timeout=120)
    assert driver.returncode == 0
    # Ray itself tells on the same stream that a worker is gone.
    done, stopped = next(line for line in told.splitlines() if line.endswith(("True", "False"))).split()
    assert stopped == "True"
    assert len(kept(run)) == int(done) < 400
    assert Run.open(str(run)).images().files() == ["part-00000.parquet"]


@pytest.mark.skipif("T2I_PARITY_RAY_KILLS" not in os.environ, reason="minutes: set T2I_PARITY_RAY_KILLS=20")
def test_a_killed_driver_of_a_real_pipeline(address: str, prompts: Path, tmp_path: Path) -> None:
    pytest.importorskip("diffusers")
    from small_models import stable_diffusion

    chance = random.Random(4)
    run = tmp_path / "run"
    argv = [
        "generate", "--model", str(stable_diffusion(tmp_path / "small-sd")), "--prompts", str(prompts), "--config", "lingt2i_content",
        "--languages", "en,ar", "--batch-size", "2", "--set", "steps=2", "--set", "width=64", "--set", "height=64",
        "--out", str(run), "--engine", "ray", "--ray-address", address,
    ]  # fmt: skip
    before: set[str] = set()
    for number in range(KILLS):
        driver = subprocess.Popen([*PROGRAM, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
        before = killed(driver, run, before, chance)
        print(f"kill {number + 1}: {len(before)} durable", flush=True)
    assert f"{240 - len(before)} images made now, {len(before)} were there" in command(*argv).stdout
    found = kept(run)
    assert len(found) == 240
    assert {row["status"] for row in found.values()} == {"ok"}
