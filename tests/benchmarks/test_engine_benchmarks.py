"""The engine's benchmarks run, at a size that shows nothing but that."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def test_the_overhead_is_measured() -> None:
    pytest.importorskip("diffusers")
    from engine_overhead import run
    from measure import table

    rows = run(8, 1, batch_seconds=0.05)
    assert all(row.seconds > 0 and row.peer_seconds > 0 for row in rows)
    assert "the bare loop" in table(rows)


def test_resuming_is_measured_and_quick() -> None:
    from engine_resume import run

    rows = run(1500, 1)
    assert [row.at_most for row in rows] == [1.0, 1.0]
    assert all(row.seconds > 0 for row in rows)
