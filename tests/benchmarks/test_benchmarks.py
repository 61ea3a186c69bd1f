"""The metrics' benchmarks run, at a size that shows nothing but that: times are for people, who run the scripts by hand."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

SCRIPTS = ("clip_judge.py", "mcnemar.py", "resampling.py", "text_rendering_evaluate.py", "text_rendering_pairs.py")


@pytest.mark.filterwarnings("ignore:Degrees of freedom")
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_benchmark_prints_its_table(script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", [script, "--size", "120", "--repeats", "1"])
    runpy.run_path(str(HERE / script), run_name="__main__")
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == ["ours", "s", "peer", "s", "ratio", "at", "most"]
    assert rows
    assert any(row.endswith(("holds", "MISSED")) for row in rows)


def test_texts_are_mixed_damaged_and_the_same_every_time() -> None:
    from measure import mixed_pairs

    readings, references, languages = mixed_pairs(60)
    assert mixed_pairs(60) == (readings, references, languages)
    assert len(set(languages)) == 10
    damaged = sum(reading != reference for reading, reference in zip(readings, references, strict=True))
    assert 20 <= damaged <= 40
