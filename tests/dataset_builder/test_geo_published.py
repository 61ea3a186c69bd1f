"""The published means of the geographical study: beside the prompts, as a config of their repository, and alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, error_of

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.geo_published import COLUMNS, FILE, NAME, check, features, published, table
from t2i_parity.dataset_builder.licenses import terms
from t2i_parity.dataset_builder.prompts import load_prompts
from t2i_parity.dataset_builder.release import read_release, rebuilt
from t2i_parity.dataset_builder.schema import CONFIGS


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
    command("build", "--mini", "--out", tmp_path / "edition")
    assert not (tmp_path / "edition" / NAME).exists(), "a selection is one of prompts"
    command("build", "geo_published", "--out", tmp_path / "alone")
    assert "holds no prompts, only geo_published" in error_of("push", tmp_path / "alone", "--to", "lab/prompts", "--dry-run")
    command("validate", tmp_path / "alone", "--fail-on", "warning")


# Beside the prompts


@pytest.fixture
def folder(tmp_path: Path, prompts: Path) -> Path:
    return Path(shutil.copytree(prompts, tmp_path / "prompts"))


def test_an_edition_brings_them_along_as_a_config(prompts: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    opened = load_dataset(str(prompts), NAME, split="test", cache_dir=str(tmp_path / "cache"))
    assert opened.to_list() == table().to_pylist()
    assert opened.features == features()
    card = (prompts / "README.md").read_text(encoding="utf-8")
    section = card[card.index("## Published values") : card.index("## Licences")]
    for told in (
        "308 means",
        "https://arxiv.org/abs/2305.11080",
        "CC-BY-4.0",
        "`basu2023geographical`",
        *(column.name for column in COLUMNS),
    ):
        assert told in section
    assert "@inproceedings{basu2023geographical" in card
    assert NAME not in (prompts / "eval.yaml").read_text(encoding="utf-8")
    assert "holds another dataset" in error_of("build", NAME, "--out", prompts)


def test_they_are_no_prompts(prompts: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"no prompts. Name a config of prompts: {', '.join(CONFIGS)}$"):
        load_prompts(str(prompts), NAME)
    assert "Name a config of prompts" in error_of(
        "generate", "--model", "typesetter", "--prompts", prompts, "--config", NAME, "--out", tmp_path / "run"
    )
    command("build", NAME, "--out", tmp_path / "alone")
    with pytest.raises(InputError, match="Build some: t2i-parity build"):
        load_prompts(str(tmp_path / "alone"))


def test_they_stay_when_other_rows_are_left_out(folder: Path, tmp_path: Path) -> None:
    release = read_release(folder)
    assert release.published
    assert NAME not in release.tables
    assert release.files[FILE].read_bytes() == (folder / FILE).read_bytes()
    fewer = rebuilt({"dialect": release.tables["dialect"]}, "starter", tmp_path / "fewer", published=release.published)
    assert fewer.files[FILE].read_bytes() == (folder / FILE).read_bytes()
    without = rebuilt({"dialect": release.tables["dialect"]}, "starter", tmp_path / "without")
    assert FILE not in without.files
    assert without.replaces(FILE), "an earlier release's goes from the hub with its config"


def _changed(name: str, value: object) -> Callable[[pa.Table], pa.Table]:
    def change(rows: pa.Table) -> pa.Table:
        place = rows.column_names.index(name)
        values = [value, *rows[name].to_pylist()[1:]]
        return rows.set_column(place, rows.schema.field(name), pa.array(values, rows.schema.field(name).type))

    return change


@pytest.mark.parametrize(
    ("change", "found", "told"),
    [
        (_changed("value", 4.5), ("published_values", "value", "4.5"), "column value: expected 3.54, got 4.5"),
        (_changed("source_url", None), ("published_provenance", "source_url", "nothing"), "column source_url"),
        (_changed("derivation", "translated"), ("published_provenance", "derivation", "translated"), "column derivation"),
        (_changed("value_id", "x"), ("published_values", "value_id", "x"), "column value_id"),
        (lambda rows: rows.slice(1), ("published_values", None, "307 rows"), "expected the 308 values"),
        (lambda rows: rows.drop_columns("license"), ("published_columns", "license", "no such column"), "other columns or types"),
        (lambda rows: rows.append_column("more", rows["value"]), ("published_columns", "more", "a column that is not declared"), "(more)"),
    ],
)
def test_another_value_is_found_and_not_published(
    change: Callable[[pa.Table], pa.Table], found: tuple[str, str | None, str], told: str, folder: Path, tmp_path: Path
) -> None:
    rows = change(table())
    pq.write_table(rows, folder / FILE)
    command("validate", folder, "--config", NAME, "--fail-on", "warning", "--json", tmp_path / "found.json", check=1)
    content = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert found in [(each["check"], each["column"], each["found"]) for each in content["findings"]]
    assert {each["config"] for each in content["findings"]} == {NAME}
    assert told in error_of("push", folder, "--to", "lab/prompts", "--dry-run")
    with pytest.raises(InputError):
        check(rows, where="here")
