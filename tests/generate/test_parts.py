"""Parts survive what befalls them: kills at any moment, torn files, repeated folding."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate.parts import Parts


def parts_in(folder: Path, **options: int) -> Parts:
    return Parts(Folder(str(folder)), "images", key="id", schema=pa.schema([("id", pa.string()), ("n", pa.int64())]), **options)


def batch(*numbers: int) -> pa.Table:
    return pa.table({"id": [str(number) for number in numbers], "n": list(numbers)})


def test_what_was_appended_is_read_back(tmp_path: Path) -> None:
    parts = parts_in(tmp_path, part_rows=3)
    for number in range(5):
        parts.append(batch(number))
    assert len(parts.files()) == 1
    assert parts.ids() == {"0", "1", "2", "3", "4"}
    parts.fold()
    assert parts.files() == ["part-00000.parquet", "part-00001.parquet"]
    assert parts.read()["n"].to_pylist() == [0, 1, 2, 3, 4]
    assert [row["n"] for rows in parts.batches(["id", "n"], 2) for row in rows] == [0, 1, 2, 3, 4]


def test_skipped_rows_are_left_out(tmp_path: Path) -> None:
    parts = parts_in(tmp_path, row_group_rows=2)
    parts.append(batch(*range(7)))
    parts.fold()
    parts.append(batch(7, 8))
    rows = [row["n"] for each in parts.batches(["id", "n"], 3, skip={"0", "1", "3", "8"}) for row in each]
    assert rows == [2, 4, 5, 6, 7]
    assert not list(parts.batches(["id"], 3, skip=parts.ids()))


def test_rows_in_a_part_and_in_the_journal_count_once(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    parts.append(batch(1, 2))
    journal = next((tmp_path / ".journal" / "images").glob("*.parquet"))
    content = journal.read_bytes()
    parts.fold()
    # As a kill between the writing of the part and the clearing of the journal leaves it.
    journal.write_bytes(content)
    again = parts_in(tmp_path)
    assert again.read()["n"].to_pylist() == [1, 2]
    again.recover()
    assert not journal.exists()
    again.append(batch(3))
    again.fold()
    assert again.read()["n"].to_pylist() == [1, 2, 3]


def test_dropped_rows_can_be_made_anew(tmp_path: Path) -> None:
    parts = parts_in(tmp_path)
    parts.append(batch(1, 2, 3))
    assert parts.drop(["2", "9"]) == 1
    assert parts.ids() == {"1", "3"}
    assert parts.drop(["1", "3"]) == 2
    assert parts.files() == []


def test_pick_reads_the_wanted_rows(tmp_path: Path) -> None:
    parts = parts_in(tmp_path, row_group_rows=2)
    parts.append(batch(*range(7)))
    parts.fold()
    assert {row["n"] for row in parts.pick({"2", "5"}, ["id", "n"]).values()} == {2, 5}


@pytest.mark.parametrize("content", [b"", b"PAR1 torn", b"not parquet at all" * 100])
def test_a_torn_part_is_named_and_nothing_is_lost(tmp_path: Path, content: bytes) -> None:
    parts = parts_in(tmp_path)
    parts.append(batch(1))
    parts.fold()
    torn = tmp_path / "images" / "part-00001.parquet"
    torn.write_bytes(content)
    for read in (parts.read, parts.ids, parts.recover, lambda: list(parts.batches(["id"], 2))):
        with pytest.raises(InputError, match=r"part-00001\.parquet is not a readable parquet file .*Move it away"):
            read()
    torn.unlink()
    assert parts.read()["n"].to_pylist() == [1]


def test_an_unwritable_target_is_told(tmp_path: Path) -> None:
    (tmp_path / "images").write_text("a file where the folder should be")
    parts = parts_in(tmp_path)
    parts.append(batch(1))
    with pytest.raises(InputError, match=r"cannot write .*kept"):
        parts.fold()
    assert parts.ids() == {"1"}


WRITER = """
import sys
import pyarrow as pa
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate.parts import Parts
parts = Parts(Folder(sys.argv[1]), "images", key="id", schema=pa.schema([("id", pa.string()), ("n", pa.int64())]), part_rows=7)
parts.recover()
done = parts.ids()
for number in range(400):
    if str(number) not in done:
        parts.append(pa.table({"id": [str(number)], "n": [number]}))
        print(number, flush=True)
parts.fold()
"""


def test_kills_at_random_moments_lose_at_most_the_batch_in_flight(tmp_path: Path) -> None:
    chance = random.Random(5)
    for _ in range(6):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        told = {process.stdout.readline().strip()} - {""}
        time.sleep(chance.uniform(0, 0.05))
        os.kill(process.pid, signal.SIGKILL)
        told |= {line.strip() for line in process.stdout if line.endswith("\n")}
        process.wait()
        parts = parts_in(tmp_path)
        rows = parts.read()["id"].to_pylist()
        assert len(rows) == len(set(rows))
        assert told <= set(rows), "a row that was reported durable is gone"
    subprocess.run([sys.executable, "-c", WRITER, str(tmp_path)], check=True, capture_output=True)
    assert sorted(parts_in(tmp_path).read()["n"].to_pylist()) == list(range(400))
    assert not list((tmp_path / ".journal" / "images").glob("*"))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(1, 6))
def test_any_batches_and_part_sizes_give_the_same_rows(tmp_path_factory: pytest.TempPathFactory, sizes: list[int], rows: int) -> None:
    parts = parts_in(tmp_path_factory.mktemp("parts"), part_rows=rows)
    start = 0
    for size in sizes:
        parts.append(batch(*range(start, start + size)))
        start += size
    parts.fold()
    assert parts.read()["n"].to_pylist() == list(range(start))


def test_a_memory_filesystem_will_do() -> None:
    parts = Parts(Folder("memory://parts-test"), "images", key="id", schema=batch().schema)
    parts.append(batch(1))
    parts.fold()
    assert parts.read()["n"].to_pylist() == [1]
