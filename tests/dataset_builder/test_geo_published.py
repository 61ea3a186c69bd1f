"""The published means of the geographical study as a dataset of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import command, error_of

from dataset_builder.geo_published import COLUMNS, published, table
from dataset_builder.licenses import terms


def test_load_dataset_opens_what_build_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import load_dataset

    done = command("build", "geo_published", "--out", tmp_path / "published")
    assert "308 published means of 27 countries" in done.stdout
    opened = load_dataset(str(tmp_path / "published"), "geo_published", split="test", cache_dir=str(tmp_path / "cache"))
    assert opened.to_list() == table().to_pylist()
    assert opened.column_names == [column.name for column in COLUMNS]
    card = (tmp_path / "published" / "README.md").read_text(encoding="utf-8")
    assert "license: cc-by-4.0" in card
    assert "arXiv:2305.11080" in card or "2305.11080" in card
    first = (tmp_path / "published" / "geo_published" / "test-00000-of-00001.parquet").read_bytes()
    command("build", "geo_published", "--out", tmp_path / "published")
    assert (tmp_path / "published" / "geo_published" / "test-00000-of-00001.parquet").read_bytes() == first


def test_every_value_of_both_tables_stands_once_with_its_provenance() -> None:
    rows = table().to_pylist()
    assert len({row["value_id"] for row in rows}) == len(rows) == 28 * 6 + 28 * 5
    assert all(row["source"] and row["source_url"] and row["source_revision"] and row["derivation"] == "verbatim" for row in rows)
    assert {row["license"] for row in rows} == {"CC-BY-4.0"}
    assert terms("CC-BY-4.0").known
    cell = next(row for row in rows if row["value_id"] == "geo_published-table1-IND-dalle2-unspecified")
    assert (cell["value"], cell["half_width"], cell["source_id"]) == (3.44, 0.49, "Table 1, India")
    cell = next(row for row in rows if row["value_id"] == "geo_published-table2-ISR-both-both")
    assert (cell["measure"], cell["value"], cell["half_width"]) == ("influence", 2.62, 0.75)
    cell = next(row for row in rows if row["value_id"] == "geo_published-table2-average-sd-country")
    assert (cell["country"], cell["value"], cell["half_width"]) == (None, 3.38, 0.10)
    assert all(1 <= each.value <= 5 and 0 < each.half_width < 1 for each in published())


def test_what_cannot_be_built_is_told(tmp_path: Path) -> None:
    assert "leave out --limit" in error_of("build", "geo_published", "--out", tmp_path / "a", "--limit", "3")
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert "is a file" in error_of("build", "geo_published", "--out", tmp_path / "file")
    command("build", "geo", "--out", tmp_path / "prompts", "--limit", "3")
    assert "holds another dataset" in error_of("build", "geo_published", "--out", tmp_path / "prompts")
