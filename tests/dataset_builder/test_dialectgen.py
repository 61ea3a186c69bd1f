"""The DialectGen importer, on files of the upstream layout that the tests write, and on the real ones where they are given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import command, error_of
from datasets import load_dataset
from upstreams import accept
from upstreams import dialectgen as upstream

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.sources import dialectgen
from t2i_parity.dataset_builder.sources.base import UpstreamError

REAL = os.environ.get("T2I_PARITY_REFERENCE")


@pytest.fixture
def unproven(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that a test writes are not the published ones: no digests are asked of them."""
    accept(monkeypatch)


@pytest.mark.usefixtures("unproven")
def test_all_pairs_are_read_with_their_varieties(tmp_path: Path) -> None:
    root = upstream(tmp_path / "upstream")
    command("build", "dialect", "--source", "dialectgen", "--input", root, "--out", tmp_path / "out")
    loaded = load_dataset(str(tmp_path / "out"), "dialect", split="test")
    rows = loaded.to_list()
    counts = {variety: sum(row["variety"] == variety for row in rows) for variety in ("AAVE", "BrE", "ChcE", "IndE", "CollSgE")}
    assert counts == {"AAVE": 204, "BrE": 222, "ChcE": 204, "IndE": 216, "CollSgE": 204}
    assert sum(row["variety"] == "SAE" for row in rows) == 1050
    assert {loaded.features["label"].int2str(row["label"]) for row in rows} == {"benign"}
    pairs = {row["pair_id"] for row in rows}
    assert len(pairs) == 1050
    first = [row for row in rows if row["pair_id"] == "dialectgen-concise-aae-0001"]
    assert [(row["variety"], row["prompt"]) for row in first] == [("SAE", "a word 0"), ("AAVE", "a w0, by aae")]


@pytest.mark.usefixtures("unproven")
def test_a_changed_upstream_stops_with_what_differs(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ine\.csv: expected 216 pairs.*got 215"):
        list(dialectgen.rows(upstream(tmp_path / "short", ine=215)))
    root = upstream(tmp_path / "columns")
    path = root / "text" / "concise" / "che.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("SAE_Prompt", "Prompt"), encoding="utf-8")
    with pytest.raises(InputError, match=r"che\.csv: expected the columns .*SAE_Prompt"):
        list(dialectgen.rows(root))


def test_files_that_are_not_the_published_ones_are_told(tmp_path: Path) -> None:
    with pytest.raises(UpstreamError) as told:
        list(dialectgen.rows(upstream(tmp_path / "upstream", che=203)))
    assert len(told.value.differences) == 6
    assert any("che.csv: expected 204 pairs, got 203" in difference for difference in told.value.differences)
    assert sum("expected the SHA-256" in difference for difference in told.value.differences) == 5


@pytest.mark.usefixtures("unproven")
def test_an_empty_prompt_is_told_with_its_row(tmp_path: Path) -> None:
    root = upstream(tmp_path / "upstream")
    path = root / "text" / "concise" / "bre.csv"
    path.write_text(path.read_text(encoding="utf-8").replace("a word 7,", " ,"), encoding="utf-8")
    with pytest.raises(InputError, match=r"bre\.csv: row 7: SAE_Prompt is empty"):
        list(dialectgen.rows(root))


def test_a_folder_without_the_files_is_told(tmp_path: Path) -> None:
    message = error_of("build", "dialect", "--source", "dialectgen", "--input", tmp_path, "--out", tmp_path / "out")
    assert "aae.csv" in message
    assert "github.com/DialectGen/DialectGen" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(REAL is None, reason="T2I_PARITY_REFERENCE names no folder with the published files")
@pytest.mark.parametrize("part", dialectgen.PARTS)
def test_the_published_files_are_read(part: str) -> None:
    root = Path(str(REAL)) / "dialectgen"
    rows = list(dialectgen.rows(root, part))
    assert len(rows) == 2100
    assert {row["source_revision"] for row in rows} == {dialectgen.REVISION}
    inside = list(dialectgen.rows(root / "text" / part, part))
    assert inside == rows
