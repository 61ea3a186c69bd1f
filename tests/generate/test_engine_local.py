"""The engine in one process: rows that fail, memory that is short, disks that are full, signals, and what is kept of it all."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import threading
import time
from collections import namedtuple
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from painters import Painter, Watcher, kept, loading, painted, rows, started, watcher
from rich.console import Console

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import images, observe, parts
from t2i_parity.generate.engine.local import Failure, Outcome, RefusedError, Worker
from t2i_parity.generate.run import Run


def log_of(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines()]


# Rows


def test_a_bad_row_costs_no_other(tmp_path: Path) -> None:
    tally = painted(tmp_path, 6, loading(raises="p1", refuses="p2", fails="p3", log=tmp_path / "log")(), batch_size=6)
    assert (tally.done, tally.failed) == (6, 3)
    found = kept(tmp_path)
    assert {name: (row["status"], row["reason"]) for name, row in found.items()} == {
        "p0": ("ok", None),
        "p1": ("failed", "ValueError: no paint"),
        "p2": ("refused", "not that"),
        "p3": ("failed", "my last word"),
        "p4": ("ok", None),
        "p5": ("ok", None),
    }
    assert [found[name]["attempts"] for name in ("p0", "p1", "p2", "p3")] == [2, 3, 2, 2], "the batch, then alone"
    assert [row["batch_size"] for row in found.values()] == [1] * 6
    assert sum("p2" in call for call in log_of(tmp_path / "log")) == 2, "what refuses alone is not asked again"


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (1, 2), (4, 5)])
def test_retries_are_as_many_as_asked(tmp_path: Path, retries: int, attempts: int) -> None:
    painted(tmp_path, 2, loading(retries, raises="p1", raises_once="p0")(), batch_size=1)
    found = kept(tmp_path)
    assert found["p1"]["attempts"] == attempts
    assert (found["p0"]["status"], found["p0"]["attempts"]) == (("failed", 1) if retries == 0 else ("ok", 2))


def test_late_results_are_waited_for_and_tried_again(tmp_path: Path) -> None:
    painted(tmp_path, 5, loading(late=1, raises="p1", raises_once="p2", refuses="p3")())
    found = kept(tmp_path)
    assert [found[f"p{number}"]["status"] for number in range(5)] == ["ok", "failed", "ok", "refused", "ok"]
    assert [found[f"p{number}"]["attempts"] for number in range(5)] == [1, 3, 2, 1, 1]
    assert [found[f"p{number}"]["batch_size"] for number in range(5)] == [4, 1, 1, 4, 1]
    assert "out_of_memory" not in Run.open(str(tmp_path)).record


@pytest.mark.parametrize("late", [False, True])
def test_a_batch_that_does_not_fit_is_halved_for_good(tmp_path: Path, late: bool) -> None:
    painted(tmp_path, 40 if late else 16, loading(fits=3, log=tmp_path / "log", **({"late": 1} if late else {}))(), batch_size=8)
    found = kept(tmp_path)
    assert {row["status"] for row in found.values()} == {"ok"}
    assert {row["attempts"] for row in found.values()} == ({1, 2} if late else {1}), "running out of memory is not the row's doing"
    sizes = [len(call) for call in log_of(tmp_path / "log")]
    assert [size for size in sizes if size > 1][-4:] == [2, 2, 2, 2], "never larger again"
    if not late:
        assert sizes == [8, 4, 2, 2, 2, 2, 2, 2, 2, 2]
        assert {row["batch_size"] for row in found.values()} == {2}
    assert [entry["batch_size"] for entry in Run.open(str(tmp_path)).record["out_of_memory"]] == [2]


def test_a_row_that_does_not_fit_alone_fails_with_its_reason(tmp_path: Path) -> None:
    painted(tmp_path, 3, loading(fits=0)())
    assert {row["reason"] for row in kept(tmp_path).values()} == {"RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB"}


def test_memory_errors_are_told_from_others() -> None:
    torch = pytest.importorskip("torch")
    calls: list[int] = []

    def work(batch: Sequence[int]) -> Sequence[int]:
        calls.append(len(batch))
        if len(batch) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return batch

    outcomes = Worker[int, int](work)([1, 2, 3, 4, 5])
    assert [outcome.result for outcome in outcomes] == [1, 2, 3, 4, 5]
    assert calls == [5, 2, 2, 1]


def test_an_input_error_ends_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the account is empty"):
        painted(tmp_path, 8, loading(unpaid="p4")(), batch_size=2)
    assert sorted(kept(tmp_path)) == ["p0", "p1", "p2", "p3"]
    assert Run.open(str(tmp_path)).images().files() == ["part-00000.parquet"]


def test_what_is_no_image_is_a_failure(tmp_path: Path) -> None:
    from PIL import Image

    class Odd(Painter):
        def _paint(self, row: Any, seed: int, beside: int) -> Any:
            return {"p0": Image.new("F", (4, 4)), "p1": "a picture"}.get(row["prompt_id"], Image.new("L", (4, 4)))

    painted(tmp_path, 3, images.Studio(Odd({})))
    found = kept(tmp_path)
    assert "cannot be kept as PNG" in found["p0"]["reason"]
    assert found["p1"]["reason"] == "the model gave a str instead of an image"
    assert found["p2"]["status"] == "ok"


def test_rows_are_batched_by_the_models_key_and_ids_do_not_depend_on_it(tmp_path: Path) -> None:
    class Sorting(Painter):
        def batch_key(self, row: Any) -> tuple[int, int]:
            return 0, len(row["prompt"])

    painted(tmp_path / "sorted", 9, images.Studio(Sorting({"log": str(tmp_path / "log")})), batch_size=3)
    painted(tmp_path / "plain", 9, loading()(), batch_size=3)
    lengths = [{len(row["prompt"]) for row in rows(9) if row["prompt_id"] in call} for call in log_of(tmp_path / "log")]
    assert lengths == [{1}, {2}, {3}]
    one, other = kept(tmp_path / "sorted"), kept(tmp_path / "plain")
    assert {name: (row["image_id"], row["seed"], row["image"]) for name, row in one.items()} == {
        name: (row["image_id"], row["seed"], row["image"]) for name, row in other.items()
    }


# Time


def test_a_batch_is_written_while_the_next_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each waits for the other to have begun; one after the other, they would wait in vain."""
    append = parts.Parts.append
    both = threading.Barrier(2, timeout=60)
    last = "p9"

    def writing(self: parts.Parts, table: Any) -> None:
        if table["prompt_id"].to_pylist() != [last]:
            both.wait()
        append(self, table)

    class Computing(Painter):
        def generate(self, rows: Sequence[Any], seeds: Sequence[int]) -> list[Any]:
            if rows[0]["prompt_id"] != "p0":
                both.wait()
            return super().generate(rows, seeds)

    monkeypatch.setattr(parts.Parts, "append", writing)
    assert painted(tmp_path, 10, images.Studio(Computing({}), retries=0), batch_size=1).failed == 0
    assert len(kept(tmp_path)) == 10


def test_reasons_do_not_tell_where_things_lay_in_memory(tmp_path: Path) -> None:
    class Lost(Painter):
        def generate(self, rows: Sequence[Any], seeds: Sequence[int]) -> list[Any]:
            if rows[0]["prompt_id"] == "p0":
                return [Failure(f"no way with {self!r}")]
            raise (RefusedError if rows[0]["prompt_id"] == "p1" else ValueError)(f"cannot draw {object()!r}, see 0x{id(rows):x}")

    painted(tmp_path, 3, images.Studio(Lost({}), retries=0), batch_size=1)
    assert [kept(tmp_path)[name]["reason"] for name in ("p0", "p1", "p2")] == [
        f"no way with <{__name__}.test_reasons_do_not_tell_where_things_lay_in_memory.<locals>.Lost object>",
        "cannot draw <object object>, see",
        "ValueError: cannot draw <object object>, see",
    ]


def test_no_batch_is_handed_over_before_the_one_before_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a kill costs at most one finished batch and what was being computed."""
    append = parts.Parts.append
    begun: list[str] = []
    durable: list[str] = []

    def slow_append(self: parts.Parts, table: Any) -> None:
        time.sleep(0.02)
        append(self, table)
        durable.extend(table["prompt_id"].to_pylist())

    class Counting(Painter):
        def generate(self, rows: Sequence[Any], seeds: Sequence[int]) -> list[Any]:
            begun.extend(row["prompt_id"] for row in rows)
            assert len(begun) - len(durable) <= 2 * 2
            return super().generate(rows, seeds)

    monkeypatch.setattr(parts.Parts, "append", slow_append)
    tally = painted(tmp_path, 12, images.Studio(Counting({}), retries=0), batch_size=2)
    assert tally.failed == 0, kept(tmp_path)["p0"]["reason"]


def test_a_signal_ends_after_the_batch_in_flight(tmp_path: Path) -> None:
    class Interrupted(Painter):
        def generate(self, rows: Sequence[Any], seeds: Sequence[int]) -> list[Any]:
            if rows[0]["prompt_id"] == "p4":
                os.kill(os.getpid(), signal.SIGINT)
            return super().generate(rows, seeds)

    tally = painted(tmp_path, 12, images.Studio(Interrupted({})), batch_size=2)
    assert tally.stopped
    assert sorted(kept(tmp_path)) == ["p0", "p1", "p2", "p3", "p4", "p5"]
    assert not painted(tmp_path, 12, loading()()).stopped
    assert len(kept(tmp_path)) == 12


# Disks

Usage = namedtuple("Usage", "total used free")


def test_a_nearly_full_disk_is_told_before_anything_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, 2**20))
    with pytest.raises(InputError, match=r"is nearly full: 1\.0 MiB are free and 32\.0 MiB must be"):
        painted(tmp_path, 4, loading(log=tmp_path / "log")())
    assert not (tmp_path / "log").exists()


def test_a_disk_that_fills_up_ends_the_run_in_time_and_warns_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    free = iter([2**30] * 3 + [35 * 2**20] * 2 + [2**20] * 100)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, next(free)))
    with pytest.raises(InputError, match=r"nearly full.*same command again"):
        painted(tmp_path, 12, loading()(), batch_size=2)
    made = len(kept(tmp_path))
    assert 0 < made < 12
    assert Run.open(str(tmp_path)).images().files(), "what was made is folded"
    monkeypatch.undo()
    painted(tmp_path, 12, loading()())
    assert len(kept(tmp_path)) == 12

    table = Run.open(str(tmp_path)).images()
    table.append(table.read())
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 0, 40 * 2**20))
    assert table.short_of_room(10) is None
    assert "rows that are left need about" in str(table.short_of_room(10**6))
    assert table.short_of_room(10**6) is None, "once is enough"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_full_disk_loses_nothing(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past the check, as when another process takes the space: every write may meet ENOSPC, the journal's, the fold's, the record's."""
    monkeypatch.setattr(parts, "RESERVE", 0)
    monkeypatch.setattr(parts.Parts, "check_room", lambda self, coming=0: None)
    run = small_disk / "run"
    ballast = small_disk / "ballast"
    ballast.write_bytes(os.urandom(2700 * 1024))
    with pytest.raises(InputError, match=r"cannot write .*No space left on device.*kept"):
        painted(run, 400, loading()(), batch_size=8)
    first = kept(run)
    assert 0 < len(first) < 400
    # Nothing at all fits now, not even a small file.
    with open(small_disk / "rest", "wb", buffering=0) as file, suppress(OSError):
        while file.write(b"0" * 1024):
            pass
    with pytest.raises(InputError, match=r"cannot write"):
        painted(run, 400, loading()(), batch_size=8)
    assert kept(run) == first
    (small_disk / "rest").unlink()
    ballast.unlink()
    painted(run, 400, loading()(), batch_size=8)
    assert len(kept(run)) == 400
    assert not list((run / ".journal" / "images").glob("batch-*"))


@pytest.mark.parametrize("failing", ["open", "replace"])
def test_a_write_that_fails_anywhere_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    run = tmp_path / "run"
    painted(run, 4, loading()())
    before = kept(run)

    def broken(*arguments: object, **keywords: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace" if failing == "replace" else "fsync", broken)
        with pytest.raises(InputError, match="Input/output error"):
            painted(run, 8, loading()())
    assert kept(run) == before
    assert not list(run.rglob(".tmp-*"))


def test_an_unwritable_target_is_told(prompts: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    message = error_of(
        "generate",
        "--model",
        "glyph",
        "--prompts",
        prompts,
        "--config",
        "lingt2i_text",
        "--limit",
        "10",
        "--out",
        tmp_path / "file" / "run",
    )
    assert "cannot write into" in message
    assert "--out" in message


# Torn files


def test_a_torn_part_is_told_and_set_aside_when_asked(prompts: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    run = tmp_path / "run"
    argv = ("generate", "--model", "glyph", "--prompts", prompts, "--config", "lingt2i_text", "--limit", "20", "--out", run)
    command(*argv)
    part = run / "images" / "part-00000.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[: len(whole) // 2])
    message = error_of(*argv)
    assert "part-00000.parquet is not a readable parquet file" in message
    assert "--repair" in message
    done = command(*argv, "--repair")
    assert "20 images made now, 0 were there" in done.stdout
    assert "images/part-00000.parquet" in done.stderr
    assert [path.name for path in sorted((run / "images").iterdir())] == [".torn-0-part-00000.parquet", "part-00000.parquet"]
    assert Run.open(str(run)).record["set_aside"][0]["file"] == "images/part-00000.parquet"
    assert len(load_dataset(str(run), "images", split="test")) == 20

    command("judge", run, "--with", "tesseract")
    seen = run / "observations" / "tesseract" / "part-00000.parquet"
    seen.write_bytes(seen.read_bytes()[:100])
    assert "--repair" in error_of("judge", run, "--with", "tesseract")
    assert "20 observations made now" in command("judge", run, "--with", "tesseract", "--repair").stdout


def test_damage_inside_a_part_is_found_by_repair(tmp_path: Path) -> None:
    painted(tmp_path, 8, loading()())
    part = tmp_path / "images" / "part-00000.parquet"
    content = bytearray(part.read_bytes())
    place = content.index(b"PNG")
    content[place - 200 : place + 200] = os.urandom(400)
    part.write_bytes(bytes(content))
    assert painted(tmp_path, 8, loading()(), repair=True).done == 8
    assert len(kept(tmp_path)) == 8


def test_a_torn_journal_file_is_set_aside_by_itself(tmp_path: Path) -> None:
    run = started(tmp_path)
    table = run.images()
    painted(tmp_path, 4, loading()())
    rows_there = table.read()
    table.drop(rows_there["image_id"].to_pylist())
    for start in (0, 2):
        table.append(rows_there.slice(start, 2))
    journal = sorted((tmp_path / ".journal" / "images").glob("batch-*"))
    journal[0].write_bytes(journal[0].read_bytes()[:-50])
    tally = painted(tmp_path, 4, loading()())
    assert (tally.done, tally.before) == (2, 2)
    assert len(kept(tmp_path)) == 4
    assert [path.name for path in (tmp_path / ".journal" / "images").iterdir()] == [f".torn-0-{journal[0].name}"]


# Targets


def test_a_run_in_memory(prompts: Path) -> None:
    argv = (
        "generate",
        "--model",
        "glyph",
        "--prompts",
        prompts,
        "--config",
        "lingt2i_text",
        "--limit",
        "20",
        "--out",
        "memory://engine/run",
    )
    command(*argv)
    assert "0 images made now, 20 were there" in command(*argv).stdout
    command("judge", "memory://engine/run", "--with", "tesseract")
    assert Run.open("memory://engine/run").judges() == ["tesseract"]


def test_a_run_on_a_server(prompts: Path, tmp_path: Path) -> None:
    servers = pytest.importorskip("pyftpdlib.servers")
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler

    authorizer = DummyAuthorizer()
    authorizer.add_user("someone", "secret-word", str(tmp_path), perm="elradfmw")
    handler = type("Handler", (FTPHandler,), {"authorizer": authorizer})
    server = servers.ThreadedFTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        url = f"ftp://someone:secret-word@127.0.0.1:{server.address[1]}/run"
        argv = ("generate", "--model", "glyph", "--prompts", prompts, "--config", "lingt2i_text", "--limit", "20", "--out", url)
        command(*argv)
        assert "0 images made now, 20 were there" in command(*argv).stdout
        command("judge", url, "--with", "tesseract")
        assert len(Run.open(url).observations("tesseract").ids()) == 20
    finally:
        server.close_all()
        thread.join(5)
    assert (tmp_path / "run" / "images" / "part-00000.parquet").is_file()
    record = (tmp_path / "run" / "run.json").read_text()
    assert "ftp://127.0.0.1" in record
    assert "secret-word" not in record
    assert "secret-word" not in (tmp_path / "run" / "README.md").read_text()


# Judges


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    painted(tmp_path / "run", 10, loading(fails="p3")())
    return tmp_path / "run"


def judged(run: Path, *watchers: Any, **more: Any) -> dict[str, Any]:
    opened = Run.open(str(run))
    made = [make() for make in watchers]
    with opened.locked():
        return observe.judge(opened, {judge.name: judge for judge in made}, batch_size=4, console=Console(quiet=True), **more)


def seen(run: Path, name: str) -> dict[str, dict[str, Any]]:
    found = Run.open(str(run)).observations(name).read().to_pylist()
    assert len({row["image_id"] for row in found}) == len(found)
    return {row["image_id"]: row for row in found}


def test_judges_share_one_pass_and_one_decoding(pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    real = observe._decoded
    monkeypatch.setattr(observe, "_decoded", lambda row: (decoded.append(row["image_id"]), real(row))[1])
    tallies = judged(pictures, watcher("a", log=tmp_path / "a"), watcher("b", log=tmp_path / "b"), watcher("c"))
    assert {name: (tally.done, tally.failed) for name, tally in tallies.items()} == dict.fromkeys("abc", (10, 1))
    assert len(decoded) == 10, "each image is decoded once for all"
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text(), "and all are shown the same object"
    assert {row["reason"] for row in seen(pictures, "a").values()} == {None, "no image: failed: my last word"}
    assert seen(pictures, "a").keys() == seen(pictures, "c").keys()


def test_a_judge_that_fails_costs_the_others_nothing(pictures: Path) -> None:
    some = min(seen_id for seen_id, row in by_id(pictures).items() if row["status"] == "ok")
    with pytest.raises(InputError, match="b has no key"):
        judged(pictures, watcher("a", raises=some), watcher("b", unusable=1), watcher("c"))
    assert {row["status"] for row in seen(pictures, "c").values() if row["reason"] is None} == {"ok"}
    assert len(seen(pictures, "c")) == 10
    assert seen(pictures, "a")[some]["reason"] == "ValueError: blinded"
    assert sum(row["status"] == "ok" for row in seen(pictures, "a").values()) == 8
    assert seen(pictures, "b") == {}
    assert judged(pictures, watcher("a"), watcher("b"), watcher("c"))["b"].done == 10


def test_each_judge_resumes_by_itself(pictures: Path) -> None:
    judged(pictures, watcher("a"))
    table = Run.open(str(pictures)).observations("a")
    table.drop(sorted(table.ids())[:4])
    tallies = judged(pictures, watcher("a"), watcher("b"))
    assert {name: (tally.before, tally.done) for name, tally in tallies.items()} == {"a": (6, 4), "b": (0, 10)}
    assert judged(pictures, watcher("a"), watcher("b"))["b"].before == 10


def by_id(run: Path) -> dict[str, dict[str, Any]]:
    return {row["image_id"]: row for row in kept(run).values()}


def test_settings_of_several_judges_say_whose_they_are(prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command("generate", "--model", "glyph", "--prompts", prompts, "--config", "lingt2i_text", "--limit", "10", "--out", run)
    command("judge", run, "--with", "tesseract", "--set", "tesseract.layout=page", "--as", "page")
    assert "layout:page" in Run.open(str(run)).record["judges"]["page"]
    assert "expected JUDGE.NAME=VALUE" in error_of("judge", run, "--with", "tesseract", "--with", "rapidocr", "--set", "layout=page")
    assert "--as names one judge's observations" in error_of("judge", run, "--with", "tesseract", "--with", "rapidocr", "--as", "x")
    assert "given twice" in error_of("judge", run, "--with", "tesseract", "--with", "tesseract")
    assert "--actors goes with --engine ray" in error_of("judge", run, "--with", "tesseract", "--actors", "2")
    assert "--ray-address goes with --engine ray" in error_of(
        "generate", "--model", "glyph", "--prompts", prompts, "--config", "lingt2i_text", "--out", run, "--ray-address", "x"
    )


def test_futures_and_failures_pass_a_worker_unharmed() -> None:
    late: Future[Any] = Future()
    late.set_result(Failure("late", refused=True))
    worker = Worker[int, Any](lambda batch: [late, Failure("now")][: len(batch)])
    started_outcomes = worker.start([1, 2])
    assert started_outcomes[0].result is late
    assert worker.settle([1, 2], started_outcomes) == [Outcome(Failure("late", refused=True), 2, 1), Outcome(Failure("now"), 2, 1)]
    with pytest.raises(RuntimeError, match="2 rows went in and 3 results came out"):
        Worker[int, int](lambda batch: [1, 2, 3])([1, 2])


def test_a_refusal_in_a_batch_is_asked_of_each_row() -> None:
    def work(batch: Sequence[int]) -> Sequence[int]:
        if 2 in batch:
            raise RefusedError("two")
        return batch

    assert [outcome.result for outcome in Worker[int, int](work, retries=0)([1, 2, 3])] == [1, Failure("two", refused=True), 3]


def test_the_painter_and_the_watcher_are_what_tests_take_them_for() -> None:
    painter = Painter({})
    painter.check(rows(1))
    assert painter.generate(rows(1), [2**24])[0].getpixel((0, 0)) == (1, 0, 0)  # type: ignore[union-attr]
    assert Watcher({"name": "w"}).signature() == "w|v:1"
