"""Rows of one's own from a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, error_of

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.sources import SOURCES

ROWS = SOURCES["rows"]


def test_every_form_gives_the_same_rows(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"prompt": "A sign: null", "render_text": "null", "language": "en"}\n\n', encoding="utf-8")
    (tmp_path / "own.csv").write_text("prompt,render_text,language,variety\nA sign: null,null,en,\n", encoding="utf-8-sig")
    pq.write_table(pa.table({"prompt": ["A sign: null"], "render_text": ["null"], "language": ["en"]}), tmp_path / "own.parquet")
    rows = [next(ROWS.rows(tmp_path / f"own{form}")) for form in (".jsonl", ".csv", ".parquet")]
    kept = [{key: value for key, value in row.items() if key not in ("source", "source_revision")} for row in rows]
    assert kept[0] == kept[1] == kept[2]
    assert (rows[0]["prompt_id"], rows[0]["pair_id"], rows[0]["render_text"], rows[0]["dimension"]) == ("own-0", "own-0", "null", "TR")
    assert (rows[0]["license"], rows[0]["derivation"], rows[0]["source"]) == ("unknown", "verbatim", "own.jsonl")
    assert rows[0]["source_revision"].startswith("sha256:")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("own.jsonl", "", "holds no rows"),
        ("own.jsonl", "5\n", "line 1 is no JSON object"),
        ("own.jsonl", "{\n", "cannot be read as rows"),
        ("own.txt", "x", r"expected a \.jsonl, \.csv or \.parquet file"),
        ("own.csv", 'prompt,language\n"A cat,en\n', "cannot be read as rows"),
        ("own.jsonl", '{"prompt": 5, "language": "en", "render_text": "x"}\n', "a column holds values of another type"),
        ("own.jsonl", '{"prompt": "x", "language": "en"}\n', "row 0, column render_text is null"),
        ("own.jsonl", '{"prompt": "x", "language": "en", "colour": "red"}\n', "columns that are not declared: colour"),
    ],
)
def test_faults_name_the_file(name: str, text: str, told: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told) as caught:
        ROWS.tables(tmp_path / name)
    assert name in str(caught.value)


def test_the_config_is_the_commands(tmp_path: Path) -> None:
    (tmp_path / "own.jsonl").write_text('{"prompt": "A cat", "language": "en", "dimension": "TA-C"}\n', encoding="utf-8")
    out = command("build", "lingt2i_content", "--source", "rows", "--input", f"rows={tmp_path}/own.jsonl", "--out", str(tmp_path / "p"))
    assert "lingt2i_content" in out.stdout
    assert "--input rows=FILE" in error_of("build", "--source", "rows", "--out", str(tmp_path / "p"))
