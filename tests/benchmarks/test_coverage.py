"""The benchmark of coverage, reduced and seeded: no interval and no test of any kind is far from what it says."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

# Under a name of its own: a package that many have installed is called coverage.
_SPEC = importlib.util.spec_from_file_location("coverage_of_intervals", Path(__file__).with_name("coverage.py"))
assert _SPEC is not None
assert _SPEC.loader is not None
benchmark = importlib.util.module_from_spec(_SPEC)
sys.modules[_SPEC.name] = benchmark
_SPEC.loader.exec_module(benchmark)


@pytest.mark.parametrize("part", benchmark.PARTS, ids=lambda part: str(part.__name__))
def test_intervals_hold_the_truth_and_tests_are_quiet(part: object) -> None:
    samples = {benchmark.groups: 20, benchmark.strata: 400}.get(part, 60)
    found = list(benchmark.cells(samples, (12, 60), parts=(part,)))
    assert found
    assert [str(cell) for cell in found if cell.verdict in ("LOW", "HIGH")] == []
    assert all(cell.verdict == "refused" for cell in found if cell.n // cell.m < 5)
    # Over all cells of a part, what single ones are too small to show.
    intervals = [cell for cell in found if not cell.test and cell.verdict != "refused"]
    if intervals:
        assert sum(cell.held for cell in intervals) >= 0.93 * sum(cell.samples - cell.refused for cell in intervals)
    tests = [cell for cell in found if cell.test and cell.verdict != "refused"]
    if tests:
        assert sum(cell.held for cell in tests) <= 0.055 * sum(cell.samples for cell in tests)
