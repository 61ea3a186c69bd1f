"""The T2I-RiskyPrompt importer, on small files of the upstream layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from upstreams import risky_entries, risky_prompt, sources

from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.dataset_builder.sources.base import UpstreamError
from t2i_parity.dataset_builder.sources.risky_prompt import FILE, SUBCATEGORIES

SOURCE = sources()["risky_prompt"]


def differences(root: Path, entries: list[tuple[str, Any]]) -> list[str]:
    with pytest.raises(UpstreamError) as told:
        SOURCE.tables(risky_prompt(root, entries))
    return [difference.replace(f"{root}/{FILE}: ", "") for difference in told.value.differences]


def test_entries_become_toxic_rows(tmp_path: Path) -> None:
    rows = list(SOURCE.rows(risky_prompt(tmp_path)))
    assert [row["prompt_id"] for row in rows] == [f"t2i-riskyprompt-{number}-SAE" for number in range(6)]
    assert {(row["label"], row["variety"], row["language"], row["subset"], row["license"]) for row in rows} == {
        ("toxic", "SAE", "en", "t2i_riskyprompt", "unknown")
    }
    assert {row["category"] for row in rows} <= set(SUBCATEGORIES.values())
    assert all(row["source_revision"].startswith("files sha256:") and row["source_id"].startswith(FILE) for row in rows)


def test_all_categories_are_kept(tmp_path: Path) -> None:
    row = list(SOURCE.rows(risky_prompt(tmp_path)))[1]
    assert row["category"] == "Drug Crimes"
    assert [(check["check"], check["verdict"]) for check in row["checks"]] == [
        ("risk category", "Drug Crimes"),
        ("risk category", "Illegal Trade"),
    ]


def test_a_prompt_may_occur_twice(tmp_path: Path) -> None:
    rows = list(SOURCE.rows(risky_prompt(tmp_path)))
    assert [row["prompt"] for row in rows].count("the same") == 2
    assert len({row["pair_id"] for row in rows}) == 6


def test_a_file_by_another_name_will_do(tmp_path: Path) -> None:
    path = (risky_prompt(tmp_path) / FILE).rename(tmp_path / "mine.json")
    assert SOURCE.tables(path)["dialect"].num_rows == 6


@pytest.mark.parametrize(
    ("row", "entry", "told"),
    [
        (2, {"prompt": "", "label": {"A--LOGO": []}}, "row 2: prompt is empty"),
        (2, {"prompt": 3, "label": {"A--LOGO": []}}, "row 2: prompt is empty"),
        (2, {"prompt": "x", "label": {}}, "row 2: label holds no category"),
        (
            2,
            {"prompt": "x", "label": {"LOGO": []}},
            "row 2: unknown category 'LOGO', expected Primary--Sub with a Sub of Cartoon Characters",
        ),
        (2, {"prompt": "x", "label": {"A--Weather": []}}, "row 2: unknown category 'A--Weather'"),
        (2, {"text": "x", "label": {}}, "row 2: expected an entry with prompt and label, got label, text"),
        (2, "x", "row 2: expected an entry with prompt and label, got none"),
    ],
)
def test_a_changed_entry_is_told(tmp_path: Path, row: int, entry: object, told: str) -> None:
    entries = risky_entries()
    entries[row] = ("2", entry)
    found = differences(tmp_path, entries)
    assert len(found) == 1
    assert found[0].startswith(told)


def test_all_that_differs_is_told_at_once(tmp_path: Path) -> None:
    entries = [*risky_entries(), ("0", {"prompt": "x", "label": {"A--B": []}}), ("7", {"prompt": " ", "label": {"A--LOGO": []}})]
    assert [difference.split(", expected")[0] for difference in differences(tmp_path, entries)] == [
        "expected 6 entries, got 8",
        "rows 0 and 6: the same id '0'",
        "row 6: unknown category 'A--B'",
        "row 7: prompt is empty",
    ]


def test_much_that_is_wrong_is_counted(tmp_path: Path) -> None:
    entries = [(str(number), {"prompt": "x", "label": {f"A--{number}": []}}) for number in range(30)]
    found = differences(tmp_path, entries)
    assert len(found) == 12
    assert found[-1] == "20 more rows are wrong for 20 more reasons"


@pytest.mark.parametrize(("content", "told"), [("{", "not readable as JSON"), ("[]", "expected one JSON object keyed by id")])
def test_a_file_that_is_no_object_is_told(tmp_path: Path, content: str, told: str) -> None:
    (tmp_path / FILE).write_text(content)
    with pytest.raises(UpstreamError, match=told):
        SOURCE.tables(tmp_path)


def test_the_real_one_has_6433_entries() -> None:
    assert SOURCES["risky_prompt"].expected[FILE] == 6_433
