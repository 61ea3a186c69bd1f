"""The LingT2I importer, on small files of the upstream layout."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from upstreams import LAYOUT, content_rows, lingt2i, sources, text_rows

from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.dataset_builder.sources.base import UpstreamError
from t2i_parity.dataset_builder.storage import decode_classes

SOURCE = sources()["lingt2i"]


def changed(rows: list[dict[str, Any]], row: int, **values: object) -> list[dict[str, Any]]:
    return [{**line, **values} if number == row else line for number, line in enumerate(rows)]


def differences(root: Path, **splits: Any) -> list[str]:
    """What the importer tells of the files, with the folder's name left out."""
    with pytest.raises(UpstreamError) as told:
        SOURCE.tables(lingt2i(root, **splits))
    assert all(difference in str(told.value) for difference in told.value.differences)
    assert "\n" not in str(told.value)
    return [difference.replace(f"{root}/data/", "") for difference in told.value.differences]


def test_content_has_its_meanings_in_ten_languages(tmp_path: Path) -> None:
    rows = decode_classes(SOURCE.tables(lingt2i(tmp_path))["lingt2i_content"]).to_pylist()
    upstream = content_rows()
    assert len(rows) == 200
    assert [(row["source_id"], row["prompt"], row["language"], row["dimension"]) for row in rows] == [
        (line["data_id"], line["prompt"], line["lang"], line["dimension"]) for line in upstream
    ]
    meanings = {row["pair_id"]: [other["language"] for other in rows if other["pair_id"] == row["pair_id"]] for row in rows}
    assert len(meanings) == 20
    assert all(sorted(codes) == sorted(LINGT2I_LANGUAGES) for codes in meanings.values())
    ids = {row["prompt_id"] for row in rows}
    korean = next(row for row in rows if row["source_id"] == "R-B_ko_1")
    assert (korean["prompt_id"], korean["pair_id"], korean["derived_from"]) == ("lingt2i-R-B_ko_1", "lingt2i-R-B_1", "lingt2i-R-B_en_1")
    for row in rows:
        english = row["language"] == "en"
        assert row["derivation"] == ("verbatim" if english else "translated")
        assert row["derived_from"] in ids or (english and row["derived_from"] is None)


def test_text_goes_to_its_placeholder_and_the_prompt_is_kept(tmp_path: Path) -> None:
    table = SOURCE.tables(lingt2i(tmp_path))["lingt2i_text"]
    for row, line in zip(decode_classes(table).to_pylist(), text_rows(), strict=True):
        assert row["verbatim_prompt"] == line["prompt"]
        assert row["prompt"] == line["prompt"].replace("<sks1>", line["render_text"])
        assert row["render_text"] == line["render_text"]
        assert json.loads(row["render_layout"]) == LAYOUT
        assert row["pair_id"] == f"lingt2i-TR_{line['data_id'].rsplit('_', 1)[1]}"
        assert Image.open(io.BytesIO(row["condition_image"]["bytes"])).size == (96, 24)
        assert row["derivation"] == ("templated" if row["language"] == "en" else "translated")


def test_provenance_is_complete(tmp_path: Path) -> None:
    for row in SOURCE.rows(lingt2i(tmp_path)):
        assert row["source"] == "LingT2I"
        assert row["source_url"] == "https://huggingface.co/datasets/RISys-Lab/LingT2I"
        assert row["license"] == "CC-BY-NC-SA-4.0"
        assert row["source_revision"].startswith("files sha256:")
        assert "§3." in row["producer"]


def test_splits_may_share_their_columns(tmp_path: Path) -> None:
    shared = SOURCE.tables(lingt2i(tmp_path / "shared", shared_columns=True))
    apart = SOURCE.tables(lingt2i(tmp_path / "apart"))
    for name, table in apart.items():
        ours = [column for column in table.column_names if column != "source_revision"]
        assert shared[name].select(ours).equals(table.select(ours))


@pytest.mark.parametrize("layout", [None, ""])
def test_a_layout_may_be_missing(tmp_path: Path, layout: str | None) -> None:
    table = SOURCE.tables(lingt2i(tmp_path, text=changed(text_rows(), 3, render_layout=layout)))["lingt2i_text"]
    assert table["render_layout"][3].as_py() is None


def test_layouts_are_written_in_one_way(tmp_path: Path) -> None:
    spread = json.dumps([[[[100.0, 190], [912, 190.5], [912, 420], [100, 420]], [[0, 0], [512, 128]]]], indent=4)
    table = SOURCE.tables(lingt2i(tmp_path, text=changed(text_rows(), 0, render_layout=spread)))["lingt2i_text"]
    assert table["render_layout"][0].as_py() == "[[[[100, 190], [912, 190.5], [912, 420], [100, 420]], [[0, 0], [512, 128]]]]"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"prompt": "  "}, "row 5: prompt is empty"),
        ({"prompt": None}, "row 5: prompt is empty"),
        ({"dimension": "IQ-X"}, "row 5: unknown dimension 'IQ-X', expected one of IQ-R"),
        ({"lang": "de"}, "row 5: unknown lang 'de', expected one of en, zh"),
        ({"lang": None}, "row 5: unknown lang None"),
        ({"data_id": "IQ-R_en_0"}, "rows 0 and 5: the same data_id 'IQ-R_en_0'"),
        ({"data_id": "five"}, "row 5: data_id is not {dimension}_{lang}_{meaning} of the row"),
        ({"data_id": "IQ-R_zh_9"}, "row 5: data_id is not {dimension}_{lang}_{meaning} of the row"),
        ({"data_id": "IQ-R_fr_9"}, "expected each meaning in 10 languages, got IQ-R_0: 9, IQ-R_9: 1"),
    ],
)
def test_a_changed_row_of_content_is_told(tmp_path: Path, change: dict[str, object], told: str) -> None:
    assert content_rows()[5]["data_id"] == "IQ-R_fr_0"
    found = differences(tmp_path, content=changed(content_rows(), 5, **change))
    assert any(difference.startswith(f"content_generation-00000-of-00001.parquet: {told}") for difference in found), found


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"render_text": ""}, "row 5: render_text is empty"),
        ({"prompt": "no place for it"}, "row 5: prompt holds no <sks1>"),
        ({"prompt": "<sks1> and <sks2>"}, "row 5: prompt holds a placeholder that is not <sks1>"),
        ({"prompt": "<sks1> and <sks12>"}, "row 5: prompt holds a placeholder that is not <sks1>"),
        ({"render_layout": "["}, "row 5: render_layout is not JSON"),
        ({"render_layout": "{}"}, "row 5: render_layout is not a list of lines"),
        ({"render_layout": "[[1]]"}, "row 5: a line of render_layout is not [corners, box]"),
        ({"render_layout": "[[[[1, 2]], [[0, 0], [1, 1]]]]"}, "row 5: render_layout: expected 4 points"),
        ({"render_layout": "[[[[1], [2], [3], [4]], [[0, 0], [1, 1]]]]"}, "row 5: a point of render_layout is not [x, y]"),
        (
            {"render_layout": '[[[[1, "2"], [3, 2], [3, 4], [1, 4]], [[0, 0], [9, 9]]]]'},
            "row 5: a coordinate of render_layout is not a number",
        ),
        (
            {"render_layout": "[[[[1, NaN], [3, 2], [3, 4], [1, 4]], [[0, 0], [9, 9]]]]"},
            "row 5: a coordinate of render_layout is not a number",
        ),
        (
            {"render_layout": "[[[[1, 2], [3, 2], [3, 4], [1, 4]], [[9, 0], [0, 9]]]]"},
            "row 5: a box of render_layout ends before it begins",
        ),
        ({"dimension": "IQ-R", "data_id": "IQ-R_fr_0"}, "row 5: unknown dimension 'IQ-R', expected one of TR"),
    ],
)
def test_a_changed_row_of_text_is_told(tmp_path: Path, change: dict[str, object], told: str) -> None:
    found = differences(tmp_path, text=changed(text_rows(), 5, **change))
    assert any(difference.startswith(f"text_rendering-00000-of-00001.parquet: {told}") for difference in found), found


def test_all_that_differs_is_told_at_once(tmp_path: Path) -> None:
    content = [row for row in content_rows() if row["lang"] != "ko"]
    text = [{key: value for key, value in row.items() if key != "img_id"} | {"extra": 1} for row in text_rows()]
    assert differences(tmp_path, content=content, text=text) == [
        "content_generation-00000-of-00001.parquet: expected 200 rows, got 180",
        "content_generation-00000-of-00001.parquet: expected 2 rows of each dimension in each language, got IQ-R ko: 0, IQ-O ko: 0, "
        "IQ-A ko: 0, TA-C ko: 0, TA-R ko: 0, TA-S ko: 0, D-K ko: 0, D-A ko: 0, R-T ko: 0, R-B ko: 0",
        "content_generation-00000-of-00001.parquet: expected each meaning in 10 languages, got IQ-R_0: 9, IQ-R_1: 9, IQ-O_0: 9, IQ-O_1: 9, "
        "IQ-A_0: 9, IQ-A_1: 9, TA-C_0: 9, TA-C_1: 9, TA-R_0: 9, TA-R_1: 9 and 10 more",
        "text_rendering-00000-of-00001.parquet: expected the columns data_id, prompt, dimension, lang, render_text, render_layout, "
        "condition_image, img_id, got data_id, prompt, dimension, lang, render_text, render_layout, condition_image, extra",
    ]


def test_much_that_differs_in_one_way_is_counted(tmp_path: Path) -> None:
    found = differences(tmp_path, content=content_rows() * 2, text=[{**row, "lang": row["data_id"]} for row in text_rows()])
    ids = [difference for difference in found if "data_id" in difference]
    assert sum("the same data_id" in difference for difference in ids) == 10
    assert "content_generation-00000-of-00001.parquet: 190 more values of data_id that stand in several rows" in ids
    assert "text_rendering-00000-of-00001.parquet: 10 more values of lang that are unknown" in found


def test_a_column_of_another_type_is_told(tmp_path: Path) -> None:
    content = [{**row, "dimension": [row["dimension"], row["lang"]]} for row in content_rows()]
    told = "content_generation-00000-of-00001.parquet: column dimension: expected string, got list"
    assert [difference[: len(told)] for difference in differences(tmp_path, content=content)] == [told]


def test_a_missing_split_is_told(tmp_path: Path) -> None:
    root = lingt2i(tmp_path)
    (root / "data" / "text_rendering-00000-of-00001.parquet").unlink()
    with pytest.raises(UpstreamError, match="no parquet file of the split text_rendering; expected data/text_rendering-"):
        SOURCE.tables(root)


def test_a_wrong_digest_is_told(tmp_path: Path) -> None:
    strict = dataclasses.replace(SOURCE, sha256={"text_rendering-00000-of-00001.parquet": "0" * 64})
    with pytest.raises(UpstreamError, match=rf"text_rendering-00000-of-00001\.parquet: expected the SHA-256 {'0' * 64}, got "):
        strict.tables(lingt2i(tmp_path))


def test_what_is_expected_of_the_real_one_is_what_the_paper_says() -> None:
    assert SOURCES["lingt2i"].expected == {"content_generation": 10 * 10 * 300, "text_rendering": 10 * 300}
    assert SOURCES["lingt2i"].counts == {"lingt2i_content": 30_000, "lingt2i_text": 3_000}
