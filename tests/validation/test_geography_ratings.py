"""Rating rows: what is refused, which answer counts, and who is excluded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from commands import error_of
from geography_study import ratings, truth
from loopback_hub import LoopbackHub, run_client

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.validation.survey.ratings import COLUMNS, SCHEMA, TRICKS, check_ratings, excluded, kept, latest, read_ratings


def rows(n: int = 2, countries: tuple[str, ...] = ("IND",)) -> list[dict[str, Any]]:
    return ratings(truth(0, countries, images=1), 0, per_country=n)[0].to_pylist()


def table(changed: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(changed, schema=SCHEMA)


def first(found: list[dict[str, Any]], question: str) -> dict[str, Any]:
    return next(row for row in found if row["question"] == question)


def test_what_is_declared_is_what_the_study_asks() -> None:
    assert [(trick.noun, trick.shown, trick.high) for trick in TRICKS.values()] == [
        ("apple", "mango", False),
        ("milk", "water", False),
        ("pen", "pen", True),
        ("sun", "sun", True),
    ]
    assert [column.name for column in COLUMNS] == [
        "rating_id",
        "participant",
        "country",
        "image_id",
        "pair_id",
        "noun",
        "condition",
        "model",
        "run",
        "question",
        "rating",
        "answered_at",
        "order",
        "status",
        "reason",
        "interface_language",
    ]
    checked = check_ratings(table(rows()))
    assert checked.column_names == [column.name for column in COLUMNS]
    assert len(checked) == 2 * (40 + 4 + 4 + 1)


@pytest.mark.parametrize(
    ("question", "change", "message"),
    [
        ("representativeness", {"rating": 6}, "column rating: expected a whole number from 1 to 5, or null, got 6"),
        ("representativeness", {"rating": 0}, "column rating: expected a whole number from 1 to 5, or null, got 0"),
        ("representativeness", {"rating": None}, "column rating: expected a rating, since status is ok, got None"),
        ("representativeness", {"status": "skipped"}, "column rating: expected null, since status is not ok"),
        ("representativeness", {"status": "done"}, "column status: expected one of ok, skipped, got 'done'"),
        ("representativeness", {"question": "beauty"}, "column question: expected one of representativeness, trick, realism, influence"),
        ("representativeness", {"condition": "named"}, "column condition: expected unspecified or country, or null, got 'named'"),
        ("representativeness", {"image_id": None}, "column image_id: expected a value, since question is representativeness"),
        ("realism", {"model": None}, "column model: expected a value, since question is realism"),
        ("trick", {"noun": "pear"}, "column noun: expected one of apple, milk, pen, sun, since question is trick, got 'pear'"),
        ("influence", {"country": "India"}, "column country: expected an ISO 3166-1 alpha-3 code"),
        ("influence", {"participant": None}, "column participant: expected a value, got None"),
        ("influence", {"answered_at": "yesterday"}, "column answered_at: expected a time in UTC"),
        ("influence", {"answered_at": "2026-01-31T09:30:00+02:00"}, "column answered_at: expected a time in UTC"),
        ("influence", {"order": -1}, "column order: expected a number from 0 up"),
        ("influence", {"country": "JPN"}, "has answers from several countries"),
    ],
)
def test_wrong_rows_are_refused_with_their_place(question: str, change: dict[str, Any], message: str) -> None:
    found = rows()
    first(found, question).update(change)
    with pytest.raises(InputError) as error:
        check_ratings(pa.Table.from_pylist(found, schema=pa.schema([pa.field(field.name, field.type) for field in SCHEMA])), where="here")
    assert message in str(error.value)
    assert str(error.value).startswith("here")


def test_wrong_tables_are_refused() -> None:
    good = table(rows())
    with pytest.raises(InputError, match="missing columns noun, order"):
        check_ratings(good.drop_columns(["noun", "order"]))
    with pytest.raises(InputError, match="column rating: expected int64, got string"):
        check_ratings(good.set_column(good.column_names.index("rating"), "rating", pa.array(["high"] * len(good))))
    with pytest.raises(InputError, match="stands in several rows"):
        check_ratings(pa.concat_tables([good, good.slice(0, 1)]))
    with pytest.raises(InputError, match="no rows"):
        check_ratings(good.slice(0, 0))


def test_the_latest_answer_counts() -> None:
    found = rows(1)
    again = {**found[3], "rating": 5 if found[3]["rating"] != 5 else 4, "answered_at": "2026-02-01T00:00:00+00:00"}
    earlier = {**found[4], "rating": 1, "answered_at": "2025-01-01T00:00:00+00:00"}
    kept_rows = latest(table([*found, again, earlier])).to_pylist()
    by_id = {row["rating_id"]: row["rating"] for row in kept_rows}
    assert len(kept_rows) == len(found)
    assert by_id[again["rating_id"]] == again["rating"]
    assert by_id[earlier["rating_id"]] == found[4]["rating"]


def test_exclusion_is_exact() -> None:
    whole, failing = ratings(truth(), 5, inattentive=0.3)
    found = excluded(whole)
    assert set(found) == failing
    assert 100 < len(failing) < 220
    assert not set(kept(whole)["participant"].to_pylist()) & failing
    assert len(kept(whole)) == len(whole) - len(failing) * 89


@pytest.mark.parametrize(
    ("noun", "rating", "passes"),
    [
        ("apple", 2, True),
        ("apple", 3, False),
        ("milk", 1, True),
        ("milk", 4, False),
        ("pen", 4, True),
        ("pen", 3, False),
        ("sun", 1, False),
    ],
)
def test_each_trick_question_by_itself(noun: str, rating: int, passes: bool) -> None:
    found = rows(1)
    next(row for row in found if row["question"] == "trick" and row["noun"] == noun)["rating"] = rating
    assert (not excluded(table(found))) == passes


def test_an_unanswered_trick_question_fails() -> None:
    found = [row for row in rows(2) if not (row["noun"] == "sun" and row["participant"] == "IND-1")]
    assert excluded(table(found)) == {"IND-1": "sun: not answered"}
    skipped = rows(1)
    next(row for row in skipped if row["noun"] == "pen").update(rating=None, status="skipped")
    assert excluded(check_ratings(table(skipped))) == {"IND-0": "pen: not answered"}


def test_a_survey_folder_is_read_whole(tmp_path: Path) -> None:
    found = table(rows(3))
    folder = tmp_path / "survey"
    (folder / "ratings").mkdir(parents=True)
    pq.write_table(pa.table({"picture": ["not a rating"]}), folder / "pictures.parquet")
    pq.write_table(found.filter(pc.not_equal(found["participant"], "IND-2")), folder / "ratings" / "part-0.parquet")
    lines = [json.dumps(row) for row in found.to_pylist() if row["participant"] == "IND-2"]
    (folder / "ratings" / "open-IND-2.jsonl").write_text("\n".join([*lines, lines[0][:30]]), encoding="utf-8")
    read = read_ratings(str(folder))
    assert sorted(read["rating_id"].to_pylist()) == sorted(found["rating_id"].to_pylist())
    (folder / "ratings" / "open-IND-3.jsonl").write_text("{broken\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"open-IND-3\.jsonl, line 1"):
        read_ratings(str(folder))
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="no ratings there"):
        read_ratings(str(empty))


def test_score_names_the_command_for_ratings(tmp_path: Path) -> None:
    (tmp_path / "ratings").mkdir()
    pq.write_table(table(rows()), tmp_path / "ratings" / "part-0.parquet")
    assert f"t2i-parity geography {tmp_path} --out DIR" in error_of("score", tmp_path)


def test_a_hub_dataset_is_read_like_a_folder(tmp_path: Path) -> None:
    found = table(rows(2))
    pq.write_table(found, tmp_path / "part-0.parquet")
    with LoopbackHub() as hub:
        hub.create("dataset", "lab/answers", {"ratings/part-0.parquet": (tmp_path / "part-0.parquet").read_bytes(), "plans/a.json": b"{}"})
        code = (
            "from t2i_parity.validation.survey.ratings import read_ratings; print(len(read_ratings('lab/answers')))\n"
            "from t2i_parity.dataset_builder.errors import InputError\n"
            "try: read_ratings('lab/none')\n"
            "except InputError as error: print(error)"
        )
        done = run_client(code, hub, tmp_path).stdout
    assert done.splitlines()[0] == str(len(found)), done
    assert "lab/none" in done.splitlines()[1]
