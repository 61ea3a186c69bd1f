"""The EasyText importer, on small files of the upstream layout and on the real ones where they are given."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from upstreams import LAYOUT, easytext, sources

from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.dataset_builder.sources.base import UpstreamError

SOURCE = sources()["easytext"]
REAL = os.environ.get("T2I_PARITY_REFERENCE")


def test_texts_go_to_their_placeholders(tmp_path: Path) -> None:
    rows = list(SOURCE.rows(easytext(tmp_path)))
    assert [row["prompt_id"] for row in rows] == [f"easytext-{number}" for number in range(1, 7)]
    assert rows[2]["prompt"] == "A sign with DREAM BIG, BE THE BEST, STAY HEALTHY on it."
    assert rows[2]["verbatim_prompt"] == "A sign with <sks1>, <sks2>, <sks3> on it."
    assert rows[2]["render_text"] == "DREAM BIG BE THE BEST STAY HEALTHY"
    assert json.loads(rows[2]["render_layout"]) == LAYOUT * 3
    assert {(row["license"], row["dimension"], row["subset"]) for row in rows} == {("unknown", "TR", "easytext")}


def test_all_that_differs_is_told_at_once(tmp_path: Path) -> None:
    root = easytext(tmp_path)
    (root / "prompt" / "1.txt").write_text("no place")
    (root / "condition" / "2-position.txt").write_text("[")
    (root / "condition" / "3-text-wb.png").unlink()
    (root / "prompt" / "4.txt").write_bytes(b"\xff")
    with pytest.raises(UpstreamError) as told:
        SOURCE.tables(root)
    assert [difference.split(" (")[0].replace(f"{root}/", "") for difference in told.value.differences] == [
        "prompt/1.txt: expected the placeholders <sks1>, each once",
        "prompt/2.txt: sample 2 cannot be read: render_layout is not JSON",
        f"no file condition/3-text-wb.png in {root}",
        "prompt/4.txt: sample 4 cannot be read: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte",
    ]


def test_files_that_are_not_the_published_ones_are_told(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError) as told:
        SOURCES["easytext"].tables(easytext(tmp_path))
    assert len(told.value.differences) == 18
    assert all("expected the SHA-256" in difference for difference in told.value.differences)


@pytest.mark.skipif(REAL is None, reason="T2I_PARITY_REFERENCE names no folder with the published files")
def test_the_published_files_are_read() -> None:
    rows = list(SOURCES["easytext"].rows(Path(str(REAL)) / "easytext"))
    assert len(rows) == 6
    assert {row["source_revision"] for row in rows} == {"615559db"}
    assert [len(json.loads(row["render_layout"])) for row in rows] == [1, 3, 6, 3, 1, 2]
    assert "The CHASING THE is in bold" in rows[1]["prompt"]
    assert all("<sks" in row["verbatim_prompt"] and "<sks" not in row["prompt"] for row in rows)
