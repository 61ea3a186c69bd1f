"""Answers of the survey stay: torn lines, kills at the worst moment, several participants at once, and what only its keeper may know."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.validation.survey.pictures import Picture
from t2i_parity.validation.survey.ratings import TRICKS, excluded, kept, read_ratings
from t2i_parity.validation.survey.service import OPEN_AT_MOST, DeclinedError, Settings, Survey
from t2i_parity.validation.survey.storage import SECRET_VARIABLE, Answers, Secret, Session, normal_code
from t2i_parity.validation.survey.study import Design

TOTAL = 4 + 4 + 4 + 1
"""Four images, the trick questions, realism of two models in two conditions, and its influence."""


def pictures() -> list[Picture]:
    return [
        Picture(f"{model}-{noun}-{country}", f"geo-{noun}", noun, country, model, f"run-{model}", b"webp")
        for model in ("D2", "SD")
        for noun in ("house", "beach")
        for country in (None, "IND", "EGY")
    ]


@contextmanager
def opened(folder: Path, *, quota: int = 3) -> Iterator[Survey]:
    settings = Settings(("IND", "EGY"), Design(per_participant=4), quota)
    tricks = {f"trick-{noun}": b"webp" for noun in TRICKS}
    with Answers(folder).opened() as answers:
        yield Survey(settings, pictures(), tricks, answers, Secret.of(folder))


def careful(session: Session, order: int) -> int:
    """Answers of somebody who looks."""
    item = session.items[order]
    return (5 if TRICKS[str(item.noun)].high else 1) if item.question == "trick" else 1 + order % 5


def answer_all(survey: Survey, session: Session, how: Callable[[Session, int], int | None] = careful) -> None:
    for order in range(session.done, len(session.items)):
        survey.answer(session, order, how(session, order), "en")


def test_every_answer_is_on_the_disk_when_it_is_acknowledged(tmp_path: Path) -> None:
    out = tmp_path / "ratings"
    with opened(out) as survey:
        _, session = survey.begin("IND")
        journal = out / "ratings" / f"open-{session.participant}.jsonl"
        for order in range(5):
            survey.answer(session, order, 4, "ar")
            assert len(journal.read_text(encoding="utf-8").splitlines()) == order + 1
            assert survey.state(session)["done"] == order + 1
        table = read_ratings(str(out))
        assert table["order"].to_pylist() == list(range(5))
        assert set(table["interface_language"].to_pylist()) == {"ar"}
        answer_all(survey, session)
        assert not journal.exists()
    table = read_ratings(str(out)).sort_by("order")
    assert table["order"].to_pylist() == list(range(TOTAL))
    assert table["rating"].to_pylist()[:5] == [4] * 5
    assert [name for name in table.column_names if table[name].null_count == 0] == [
        "rating_id", "participant", "country", "question", "rating", "answered_at", "order", "status", "interface_language",
    ]  # fmt: skip
    for row in table.to_pylist():
        assert row["answered_at"].endswith("T00:00:00+00:00")
        item = session.items[row["order"]]
        assert (row["question"], row["noun"], row["condition"], row["model"]) == (item.question, item.noun, item.condition, item.model)
        if row["question"] == "representativeness":
            picture = next(picture for picture in pictures() if picture.image_id == row["image_id"])
            assert (row["run"], row["pair_id"], row["condition"]) == (picture.run, picture.pair_id, picture.condition)


def test_an_answer_sent_twice_counts_once_and_none_may_be_left_out(tmp_path: Path) -> None:
    with opened(tmp_path / "ratings") as survey:
        code, session = survey.begin("IND")
        survey.answer(session, 0, 2, "en")
        survey.answer(session, 0, 5, "en")
        with pytest.raises(DeclinedError):
            survey.answer(session, 2, 5, "en")
        for rating, language in ((0, "en"), (6, "en"), (3, "xx")):
            with pytest.raises(DeclinedError):
                survey.answer(session, 1, rating, language)
        survey.answer(session, 1, None, "en")
        assert survey.find(f" {code.lower().replace('-', ' ')}") is session
    rows = read_ratings(str(tmp_path / "ratings")).to_pylist()
    assert [(row["order"], row["rating"], row["status"]) for row in rows] == [(0, 2, "ok"), (1, None, "skipped")]
    assert rows[1]["reason"]


@pytest.mark.parametrize("torn", [b"", b"{", b'{"order": 2, "rating": 3}', b"\xff\x00"])
def test_a_torn_last_line_is_cut_off_and_the_survey_goes_on(tmp_path: Path, torn: bytes) -> None:
    out = tmp_path / "ratings"
    with opened(out) as survey:
        code, session = survey.begin("EGY")
        survey.answer(session, 0, 1, "en")
        survey.answer(session, 1, 2, "en")
    with open(out / "ratings" / f"open-{session.participant}.jsonl", "ab") as file:
        file.write(torn)
    assert read_ratings(str(out))["rating"].to_pylist() == [1, 2]
    with opened(out) as survey:
        again = survey.find(code)
        assert (again.done, again.items) == (2, session.items)
        survey.answer(again, 2, 5, "en")
    with opened(out) as survey:
        assert survey.find(code).done == 3
        answer_all(survey, survey.find(code))
    table = read_ratings(str(out)).sort_by("order")
    assert table["order"].to_pylist() == list(range(TOTAL))
    assert table["rating"].to_pylist()[:3] == [1, 2, 5]


def test_a_broken_line_within_a_journal_is_named(tmp_path: Path) -> None:
    out = tmp_path / "ratings"
    with opened(out) as survey:
        _, session = survey.begin("EGY")
        survey.answer(session, 0, 1, "en")
    journal = out / "ratings" / f"open-{session.participant}.jsonl"
    journal.write_bytes(journal.read_bytes() * 2)
    with pytest.raises(InputError, match="line 2: not the answer expected there"), opened(out):
        pass


@pytest.mark.parametrize("moment", ["before the batch", "before the part", "before the journal is cleared"])
def test_a_kill_while_a_participation_is_folded_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Killed(BaseException):
        pass

    def kill(*_: Any, **__: Any) -> None:
        raise Killed

    out = tmp_path / "ratings"
    with opened(out) as survey:
        code, session = survey.begin("IND")
        with monkeypatch.context() as patch:
            if moment == "before the batch":
                patch.setattr(survey.answers.parts, "append", kill)
            elif moment == "before the part":
                patch.setattr(survey.answers.parts, "fold", kill)
            else:
                patch.setattr(Path, "unlink", kill)
            with pytest.raises(Killed):
                answer_all(survey, session)
    assert sorted(read_ratings(str(out))["order"].to_pylist()) == list(range(TOTAL))
    with opened(out) as survey:
        assert survey.state(survey.find(code))["kind"] == "done"
        assert survey.progress()["total"] == {"started": 1, "finished": 1, "passed": 1, "failed": 0, "answers": TOTAL}
    assert not list(out.glob("ratings/*.jsonl"))
    rows = [row for part in out.glob("ratings/*.parquet") for row in pq.read_table(part).to_pylist()]
    assert sorted(row["order"] for row in rows) == list(range(TOTAL))


def test_many_parts_become_one_even_after_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "ratings"
    with opened(out) as survey:
        for _ in range(3):
            answer_all(survey, survey.begin("IND")[1])
        assert len(survey.answers.parts.files()) == 3
        before = survey.progress()
    kept_part = (out / "ratings" / "part-00002.parquet").read_bytes()
    monkeypatch.setattr("t2i_parity.validation.survey.storage.PARTS_AT_MOST", 2)
    with opened(out) as survey:
        assert survey.answers.parts.files() == ["part-00000.parquet"]
    # As a kill leaves it that came before the last part was cleared.
    (out / "ratings" / "part-00002.parquet").write_bytes(kept_part)
    assert len(read_ratings(str(out))) == 3 * TOTAL
    with opened(out) as survey:
        assert survey.answers.parts.files() == ["part-00000.parquet"]
        assert survey.progress() == before
    assert pq.read_metadata(out / "ratings" / "part-00000.parquet").num_rows == 3 * TOTAL


def test_a_full_disk_keeps_what_was_there_and_the_answer_can_be_sent_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "ratings") as survey:
        _, session = survey.begin("IND")
        survey.answer(session, 0, 3, "en")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("t2i_parity.validation.survey.storage.os.fsync", full)
            with pytest.raises(OSError, match="No space"):
                survey.answer(session, 1, 4, "en")
        assert session.done == 1
        survey.answer(session, 1, 5, "en")
    assert read_ratings(str(tmp_path / "ratings"))["rating"].to_pylist() == [3, 5]
    with opened(tmp_path / "ratings") as survey:
        assert [each.done for each in survey.answers.sessions.values()] == [2]


def test_many_participants_at_once(tmp_path: Path) -> None:
    out = tmp_path / "ratings"
    with opened(out, quota=50) as survey:

        def take_part(country: str) -> None:
            answer_all(survey, survey.begin(country)[1])

        threads = [threading.Thread(target=take_part, args=(country,)) for country in ("IND", "EGY") * 6]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert survey.progress()["total"]["passed"] == 12
    table = read_ratings(str(out))
    assert len(table) == 12 * TOTAL
    assert {row["rating_id_count"] for row in table.group_by("participant").aggregate([("rating_id", "count")]).to_pylist()} == {TOTAL}


def test_who_fails_a_check_is_counted_apart_and_left_out(tmp_path: Path) -> None:
    out = tmp_path / "ratings"
    with opened(out, quota=2) as survey:
        ways: dict[str, Callable[[Session, int], int | None]] = {
            "careful": careful,
            "always three": lambda session, order: 3,
            "one trick unanswered": lambda session, order: None if session.items[order].noun == "sun" else careful(session, order),
        }
        who = {}
        for name, way in ways.items():
            _, session = survey.begin("IND")
            answer_all(survey, session, way)
            who[name] = session.participant
        told = survey.progress()["countries"][0]
        assert {key: told[key] for key in ("finished", "passed", "failed")} == {"finished": 3, "passed": 1, "failed": 2}
        # Two failed, so that the quota of two is not full yet.
        answer_all(survey, survey.begin("IND")[1])
        with pytest.raises(DeclinedError, match="error_full"):
            survey.begin("IND")
        survey.begin("EGY")
        before = survey.progress()
    with opened(out, quota=2) as survey:
        assert survey.progress() == before
    table = read_ratings(str(out))
    assert set(excluded(table)) == {who["always three"], who["one trick unanswered"]}
    assert who["always three"] in table["participant"].to_pylist()
    assert who["careful"] in kept(table)["participant"].to_pylist()
    assert who["always three"] not in kept(table)["participant"].to_pylist()


def test_a_flood_of_beginnings_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2i_parity.validation.survey.storage.os.fsync", lambda _: None)
    with opened(tmp_path / "ratings", quota=1) as survey:
        for _ in range(OPEN_AT_MOST):
            survey.begin("IND")
        with pytest.raises(DeclinedError, match="error_full"):
            survey.begin("IND")
        with pytest.raises(DeclinedError, match="error_country"):
            survey.begin("JPN")


def test_what_a_participant_gets_tells_nothing_of_model_condition_or_trick(tmp_path: Path) -> None:
    with opened(tmp_path / "ratings") as survey:
        _, session = survey.begin("IND")
        shapes = set()
        for order, item in enumerate(session.items):
            state = survey.state(session)
            text = json.dumps(state)
            for told in ("D2", "SD", "run-", "unspecified", "condition", "model", "trick", session.participant, *item.shown):
                assert told not in text.replace("webp", ""), (told, text)
            if item.question in ("representativeness", "trick"):
                shapes.add((state["kind"], tuple(state), len(state["pictures"])))
            survey.answer(session, order, careful(session, order), "en")
        assert shapes == {("rate", ("done", "total", "country", "kind", "noun", "pictures"), 1)}


def test_the_secret_stands_beside_the_folder_and_is_not_lost_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "ratings"
    with opened(out) as survey:
        code, session = survey.begin("IND")
        survey.answer(session, 0, 3, "en")
    file = tmp_path / "ratings.secret"
    assert file.stat().st_mode & 0o077 == 0
    secret = file.read_text(encoding="utf-8")
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    for private in (secret, code, code.replace("-", ""), survey.secret.keeper):
        assert private.encode() not in everything
    file.unlink()
    with pytest.raises(InputError, match=r"ratings.secret beside it is gone"), opened(out):
        pass
    monkeypatch.setenv(SECRET_VARIABLE, secret)
    with opened(out) as survey:
        assert survey.find(code).done == 1
        assert survey.secret.is_keeper(survey.secret.keeper)
        assert not survey.secret.is_keeper("")
    monkeypatch.setenv(SECRET_VARIABLE, "short")
    with pytest.raises(InputError, match="too short"), opened(out):
        pass


def test_codes_that_are_none_open_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "ratings") as survey:
        survey.begin("IND")
        for wrong in ("", "0000-0000-0000-0000", "../../../etc/passwd", "\u0660" * 16, "x" * 500):
            with pytest.raises(DeclinedError, match="error_code"):
                survey.find(wrong)
    assert normal_code("kOlI-0000-0000-000o") == "K011-0000-0000-0000"


def test_a_folder_belongs_to_one_survey_at_a_time(tmp_path: Path) -> None:
    out = tmp_path / "ratings"
    with opened(out), pytest.raises(InputError, match="another survey is writing"), opened(out):
        pass


def test_pictures_that_are_gone_are_noticed(tmp_path: Path) -> None:
    with opened(tmp_path / "ratings") as survey:
        _, session = survey.begin("IND")
        assert survey.lost() == []
        gone = session.items[-2].shown[0]
        del survey.pictures[gone]
        assert any(gone in item.shown for item in survey.lost())


@pytest.mark.parametrize("plan", [b"{", b"[]", b'{"participant": "0", "country": "IND", "items": []}'])
def test_a_broken_plan_is_named(tmp_path: Path, plan: bytes) -> None:
    out = tmp_path / "ratings"
    with opened(out) as survey:
        survey.begin("IND")
    next(out.glob("plans/*.json")).write_bytes(plan)
    with pytest.raises(InputError, match="plan"), opened(out):
        pass
