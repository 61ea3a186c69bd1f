"""The importer of the dialect-penalty study's pairs, on small files of the upstream layout."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from upstreams import dialect_pairs, pair_counts, pair_rows, sources

from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.dataset_builder.sources.base import UpstreamError
from t2i_parity.dataset_builder.sources.dialect_pairs import CATEGORIES, CODES, FILES, FOLDER
from t2i_parity.dataset_builder.storage import decode_classes

SOURCE = sources()["dialect_pairs"]


def differences(root: Path, **files: list[list[str]]) -> list[str]:
    """What the importer tells of the files, with the folder's name left out."""
    with pytest.raises(UpstreamError) as told:
        SOURCE.tables(dialect_pairs(root, **files))
    return [difference.replace(f"{root}/{FOLDER}/", "") for difference in told.value.differences]


def test_the_categories_are_those_of_table_13() -> None:
    for label, categories, total in (("benign", 6, 2_400), ("toxic", 14, 2_216)):
        counts = [category.count for category in CATEGORIES.values() if category.label == label]
        assert (len(counts), sum(counts)) == (categories, total)
    assert SOURCES["dialect_pairs"].counts == {"dialect": (2_400 + 2_216) * 6}


def test_every_meaning_stands_in_six_varieties(tmp_path: Path) -> None:
    rows = decode_classes(SOURCE.tables(dialect_pairs(tmp_path))["dialect"]).to_pylist()
    assert len(rows) == 6 * sum(pair_counts().values())
    assert Counter(row["variety"] for row in rows) == dict.fromkeys(CODES, len(rows) // 6)
    upstream = {label: pair_rows(label)[1:] for label in FILES}
    for row in rows:
        line = upstream[row["label"]][int(row["source_id"].split("#")[1])]
        assert row["prompt"] == line[2 + CODES.index(row["variety"])]
        assert row["category"] == CATEGORIES[line[1]].name
        assert row["pair_id"] == f"dialect-pairs-{row['label']}-{int(line[0]):04d}"
        assert row["prompt_id"] == f"{row['pair_id']}-{row['variety']}"
        standard = row["variety"] == "SAE"
        assert row["derived_from"] == (None if standard else f"{row['pair_id']}-SAE")
        assert row["derivation"] == ("verbatim" if standard else "dialect_converted")
        assert standard or "machine-made" in row["producer"]
    assert [row["variety"] for row in rows[:6]] == list(CODES)


def test_provenance_is_complete(tmp_path: Path) -> None:
    for row in SOURCE.rows(dialect_pairs(tmp_path)):
        assert row["license"] == {"benign": "CC-BY-4.0", "toxic": "unknown"}[row["label"]]
        assert row["source_revision"].startswith("410f6b5a8763db992ccf6603404e3c94e89be2f7, files sha256:")
        assert row["source_url"] == "https://github.com/minguinho26/dialect-penalty-t2i"
        assert row["source_id"].startswith(FILES[row["label"]])


def test_texts_stay_what_they_are(tmp_path: Path) -> None:
    lines = pair_rows("benign")
    odd = ["NA", "null", "001", "it’s “so”\nand on", ' a, "quoted" word ', "нет"]
    lines[1][2:] = odd
    rows = list(SOURCE.rows(dialect_pairs(tmp_path, benign=lines)))
    assert [row["prompt"] for row in rows[:6]] == [text.strip() for text in odd]


def test_the_folder_of_the_files_will_do(tmp_path: Path) -> None:
    root = dialect_pairs(tmp_path)
    assert SOURCE.tables(root / FOLDER)["dialect"].equals(SOURCE.tables(root)["dialect"])


@pytest.mark.parametrize(
    ("row", "column", "value", "told"),
    [
        (4, 1, "Benign_planets", "row 3: unknown category 'Benign_planets', expected one of Benign_animals"),
        (4, 1, "Drug_Crimes", "row 3: unknown category 'Drug_Crimes', expected one of Benign_animals"),
        (4, 2, " ", "row 3: SAE_prompt is empty"),
        (4, 7, "", "row 3: JamE_prompt is empty"),
        (4, 0, "1", "rows 1 and 3: the same number of a row '1'"),
        (4, 0, "x", "row 3: the unnamed first column does not number the row"),
        (1, 1, "Benign_food", "expected the numbers of Table 13 in each category, got Benign_animals: 2 for 3, Benign_food: 4 for 3"),
    ],
)
def test_a_changed_row_is_told(tmp_path: Path, row: int, column: int, value: str, told: str) -> None:
    lines = pair_rows("benign")
    lines[row][column] = value
    assert any(difference.startswith(f"{FILES['benign']}: {told}") for difference in differences(tmp_path, benign=lines))


def test_all_that_differs_is_told_at_once(tmp_path: Path) -> None:
    benign = pair_rows("benign")[:-1]
    toxic = pair_rows("toxic")
    toxic[0][2] = "standard_prompt"
    assert differences(tmp_path, benign=benign, toxic=toxic) == [
        f"{FILES['benign']}: expected 18 rows, got 17",
        f"{FILES['benign']}: expected the numbers of Table 13 in each category, got Benign_transport_vehicles: 2 for 3",
        f"{FILES['toxic']}: expected the columns (unnamed), category, SAE_prompt, AAVE_prompt, ChcE_prompt, CollSgE_prompt, IndE_prompt, "
        "JamE_prompt, got (unnamed), category, standard_prompt, AAVE_prompt, ChcE_prompt, CollSgE_prompt, IndE_prompt, JamE_prompt",
    ]


def test_many_rows_are_counted(tmp_path: Path) -> None:
    lines = pair_rows("benign")
    for line in lines[1:]:
        line[5] = ""
    assert differences(tmp_path, benign=lines) == [
        f"{FILES['benign']}: rows 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 8 more: CollSgE_prompt is empty"
    ]


@pytest.mark.parametrize("content", [b"", b",category\n1,2,3\n", b"\xff\xfe"])
def test_a_file_that_is_no_csv_is_told(tmp_path: Path, content: bytes) -> None:
    root = dialect_pairs(tmp_path)
    (root / FOLDER / FILES["toxic"]).write_bytes(content)
    with pytest.raises(UpstreamError, match=FILES["toxic"]) as told:
        SOURCE.tables(root)
    assert len(told.value.differences) == 1


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    root = dialect_pairs(tmp_path)
    (root / FOLDER / FILES["toxic"]).unlink()
    with pytest.raises(UpstreamError, match=f"no file {FILES['toxic']} or {FOLDER}/{FILES['toxic']} in {root}"):
        SOURCE.tables(root)
