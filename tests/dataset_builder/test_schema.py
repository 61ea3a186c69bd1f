"""What a prompts table must hold, and how people are told when it does not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import load_prompts
from t2i_parity.dataset_builder.repository import write_repository
from t2i_parity.dataset_builder.schema import CONFIGS, PAIRED, check_table, table, table_from_columns, text_hashes, text_sha256

ROW = {
    "prompt_id": "a",
    "pair_id": "p",
    "prompt": "ein Haus",
    "language": "de",
    "subset": "dialect_crosslingual",
    "label": "benign",
    "source": "test",
    "source_id": "1",
    "source_revision": "1",
    "license": "CC-BY-4.0",
    "derivation": "verbatim",
    "producer": "test",
}


def test_a_table_is_filled_and_typed() -> None:
    built = table("dialect_crosslingual", [ROW])
    row = built.to_pylist()[0]
    assert row["script"] == "Latn"
    assert row["label"] == 0
    assert row["checks"] == []
    assert len(row["text_sha256"]) == 64


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"language": "xx"}, r"row 0, column language: unknown language 'xx', expected one of en, .*languages\.py"),
        ({"variety": "Klingon"}, r"row 0, column variety: unknown variety 'Klingon', expected one of SAE"),
        ({"label": "nice"}, r"row 0 .* column label: expected one of benign, toxic, got 'nice'"),
        ({"source": None}, r"row 0, column source is null"),
        ({"colour": "red"}, r"row 0 .* columns that are not declared: colour"),
    ],
)
def test_bad_rows_are_named(changes: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        table("dialect_crosslingual", [{**ROW, **changes}])


def test_columns_make_the_same_table_as_rows() -> None:
    rows = [
        {**ROW, "prompt_id": name, "language": code, "category": category} for name, code, category in (("a", "de", None), ("b", "ar", "x"))
    ]
    constant = {name: value for name, value in ROW.items() if name not in ("prompt_id", "language")}
    columns = {
        **constant,
        "prompt_id": pa.array(["a", "b"]),
        "language": ["de", "ar"],
        "category": pa.chunked_array([[None], ["x"]], pa.string()),
    }
    assert table_from_columns("dialect_crosslingual", columns, rows=2).equals(table("dialect_crosslingual", rows), check_metadata=True)
    with pytest.raises(InputError, match="row 1 of config dialect_crosslingual, column label: expected one of benign, toxic, got 'nice'"):
        table_from_columns("dialect_crosslingual", {**columns, "label": ["benign", "nice"]}, rows=2)
    with pytest.raises(InputError, match="config dialect_crosslingual has no columns named colour"):
        table_from_columns("dialect_crosslingual", {**columns, "colour": "red"}, rows=2)
    assert len(table_from_columns("geo", {}, rows=0)) == 0


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_are_hashed_from_any_column(kind: pa.DataType) -> None:
    texts = ["ein Haus", "", None, "दो घर", "x"]
    expected = [text if text is None else text_sha256(text) for text in texts]
    whole = pa.array(texts).cast(kind)
    assert text_hashes(whole).to_pylist() == expected
    assert text_hashes(whole.slice(2)).to_pylist() == expected[2:]
    assert text_hashes(pa.chunked_array([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1)])).to_pylist() == expected
    assert text_hashes(whole.slice(0, 0)).to_pylist() == []


def test_duplicate_ids_are_named() -> None:
    with pytest.raises(InputError, match="rows 0 and 1 have the same prompt_id 'a'"):
        table("dialect_crosslingual", [ROW, ROW])


def test_ids_are_unique_over_configs(tmp_path: Path) -> None:
    tables = {"dialect_crosslingual": table("dialect_crosslingual", [ROW]), "dialect": table("dialect", [ROW])}
    with pytest.raises(InputError, match="stands in config dialect_crosslingual and in config dialect"):
        write_repository(tables, tmp_path / "out", edition="test")


def test_a_changed_prompt_is_noticed() -> None:
    built = table("dialect_crosslingual", [ROW])
    changed = built.set_column(built.column_names.index("prompt"), "prompt", pa.array(["ein anderes Haus"]))
    with pytest.raises(InputError, match="row 0, column text_sha256"):
        check_table(changed, CONFIGS["dialect_crosslingual"].all_columns, where="test")


def test_anybodys_table_opens_with_the_least_columns(tmp_path: Path) -> None:
    rows = {"prompt_id": ["1"], "pair_id": ["1"], "prompt": ["a cat"], "language": ["en"]}
    pq.write_table(pa.table(rows), tmp_path / "mine.parquet")
    opened = load_prompts(str(tmp_path))
    assert opened.table["prompt"].to_pylist() == ["a cat"]
    assert "text_sha256" in opened.table.column_names
    with pytest.raises(InputError, match="missing columns variety, label"):
        load_prompts(str(tmp_path)).need(PAIRED)


def test_the_origin_does_not_depend_on_the_order(tmp_path: Path) -> None:
    rows = pa.table({"prompt_id": ["1", "2"], "pair_id": ["1", "2"], "prompt": ["a", "b"], "language": ["en", "en"]})
    for name, part in (("one", rows), ("two", rows.take([1, 0]))):
        (tmp_path / name).mkdir()
        pq.write_table(part, tmp_path / name / "x.parquet")
    one, two = (load_prompts(str(tmp_path / name)).origin["content_sha256"] for name in ("one", "two"))
    assert one == two
