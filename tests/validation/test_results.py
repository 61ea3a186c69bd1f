"""Result records: written from a real run, read back, superseded, tampered with, and built into a board."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from hub_clients import ask
from hypothesis import given, settings
from hypothesis import strategies as st
from loopback_hub import LoopbackHub

from t2i_parity.cards.board import Board, overall_places, render
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
from t2i_parity.metrics.scores import ALL, Group, Interval, MetricSpec, Score, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT
from t2i_parity.validation import board
from t2i_parity.validation import results as validation_results
from t2i_parity.validation.board import gather
from t2i_parity.validation.results import (
    MAX_BYTES,
    Cell,
    Meanings,
    ResultFile,
    ResultRecord,
    Results,
    Sample,
    ScoredModel,
    Submitter,
    faults_of_addition,
    new_record,
    parse,
    path_of,
    read_results,
    standing,
)

NOW = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
SIGNATURE = "text_rendering_precision|tok:tekken|reader:{tesseract|psm:7|v:5}|v:1.0"
OTHER = "text_rendering_precision|tok:mt5|reader:{tesseract|psm:7|v:5}|v:1.0"
EN, HI = Group(language="en"), Group(language="hi")
CODES = ("en", "hi", "ar", "fr")
PROMPTS = {"repository": "prompts", "config": "lingt2i_text", "split": "test", "content_sha256": "ab" * 32}


def score(group: Group, value: float, signature: Signature, spec: ScoreSpec = TEXT["precision"]) -> Score:
    interval = Interval(max(0.0, value - 0.05), min(1.0, value + 0.05))
    return Score(spec, "lingt2i_text", group, value, 6, 0, interval, signature)


def record(
    model: str = "lab/model",
    value: float = 0.5,
    *,
    signature: str = SIGNATURE,
    minutes: int = 0,
    cells: Mapping[Group, tuple[int, int]] | None = None,
    spec: ScoreSpec = TEXT["precision"],
    prompts: Mapping[str, Any] = PROMPTS,
    **more: Any,
) -> ResultRecord:
    cells = {EN: (6, 6), HI: (6, 6)} if cells is None else cells
    signed = Signature.parse(signature)
    scores = [
        score(ALL, value, signed, spec),
        *(score(group, value + 0.1 * place, signed, spec) for place, group in enumerate(cells)),
        score(ALL, 0.05, Signature("cross_lingual_gap", {"mean": "languages", "of": signed}, "1.0"), GAP["spread"]),
    ]
    return new_record(
        {"kind": "generation", "identity": {"model": {"model": model}, "prompts": prompts}, "started": "2026-11-30T10:00:00+00:00"},
        scores,
        **{
            "model": ScoredModel(id=model, revision="1.0"),
            "subset": "lingt2i_text",
            "cells": [Cell(group=group, expected=expected, observed=observed) for group, (expected, observed) in cells.items()],
            "submitter": Submitter(user="me"),
            "submitted": NOW + timedelta(minutes=minutes),
            **more,
        },
    )


def results(*records: ResultRecord) -> Results:
    """Records added one after the other."""
    found = Results(())
    for added in records:
        found = Results((*found.files, ResultFile(found.path_for(added), added)))
    return found


def write(folder: Path, *records: ResultRecord) -> Path:
    for file in results(*records).files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.record.as_json(), encoding="utf-8")
    return folder


# One record


def test_a_record_comes_back_as_it_was() -> None:
    made = record(repository="lab/run", samples=[Sample(path="samples/a.png", group=HI, caption="नमस्ते")])
    again = parse(made.as_json().encode("utf-8"), "x.json")
    assert again == made
    assert again.id == made.id
    assert again.as_json() == made.as_json()
    assert path_of(made) == "results/lab__model/1.0/lingt2i_text.json"
    assert path_of(made, first=False) == f"results/lab__model/1.0/lingt2i_text.{made.id}.json"
    assert record(value=0.51).id != made.id


def test_a_record_keeps_how_intervals_were_made_and_why_there_is_none() -> None:
    whole = json.loads(record().as_json())
    assert all("reason" not in entry for entry in whole["scores"]), "a record without reasons keeps its id"
    whole["scores"][0]["method"] = "wilson, effective size"
    whole["scores"][1] |= {"interval": None, "level": None, "method": None, "reason": "3 clusters, fewer than 5"}
    made = parse(json.dumps(whole).encode(), "x.json")
    kept = made.read()
    assert kept[0].interval is not None
    assert kept[0].interval.method == "wilson, effective size"
    assert (kept[1].interval, kept[1].reason) == (None, "3 clusters, fewer than 5")
    assert parse(made.as_json().encode(), "x.json") == made


def test_a_record_keeps_its_scores_by_meaning_and_the_board_compares_by_them() -> None:
    assert "by_meaning" not in json.loads(record().as_json()), "a record without them keeps its id"
    means = [0.1 * (place % 7) for place in range(40)]
    made = []
    for model, more in (("lab/a", 0.0), ("lab/b", 0.02)):
        own = tuple(round(mean + more + 0.001 * (place % 3), 4) for place, mean in enumerate(means))
        by_meaning = [Meanings(metric=TEXT.name, key="precision", signature=Signature.parse(SIGNATURE), means=own)]
        made.append(record(model, 0.5 + more, by_meaning=by_meaning))
    assert parse(made[0].as_json().encode(), "x.json") == made[0]
    (table,) = gather(results(*made), title="t", source="s").tables
    assert overall_places(table) == [(2, 2), (1, 1)], "the difference is 0.02 in every meaning"
    (table,) = gather(results(record("lab/a", 0.5), made[1]), title="t", source="s").tables
    assert overall_places(table) == [(1, 2), (1, 2)], "intervals of 0.05 do not show it"


def test_digest_of_the_run_is_that_of_its_record() -> None:
    from t2i_parity.generate.run import fingerprint

    assert record().run.digest == fingerprint({"model": {"model": "lab/model"}, "prompts": PROMPTS})


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def act(content: dict[str, Any]) -> None:
        *parts, last = (int(part) if part.isdigit() else part for part in path.split("."))
        place: Any = content
        for part in parts:
            place = place[part]
        place[last] = value

    return act


TAMPERED = {
    "path in the model": change("model.id", "../../etc/passwd"),
    "no organisation": change("model.id", "model"),
    "folder separator in the organisation": change("model.id", "a__b/model"),
    "HTML in an id": change("model.id", "lab/<b>"),
    "two dots in the revision": change("model.revision", "1..0"),
    "path in the revision": change("model.revision", "a/b"),
    "absolute revision": change("model.revision", "/1"),
    "hidden revision": change("model.revision", ".git"),
    "path in the subset": change("subset", "../lingt2i_text"),
    "line break after the subset": change("subset", "lingt2i_text\n"),
    "other subset in a score": change("scores.1.subset", "other"),
    "repeated score": change("scores.1.group", {}),
    "undeclared language": change("scores.1.group", {"language": "xx"}),
    "text for a number": change("scores.0.value", "0.5"),
    "flag for a count": change("scores.0.n", True),
    "number too large": change("scores.0.value", 1e9),
    "negative count": change("scores.0.n_missing", -1),
    "interval turned round": change("scores.0.interval", [0.99, 0.5]),
    "half an interval": change("scores.0.interval", [0.4]),
    "interval of no level": change("scores.0.level", None),
    "level above 1": change("scores.0.level", 95.0),
    "value on no rows": change("scores.0.n", 0),
    "no signature": change("scores.0.signature", "0.9"),
    "unknown unit": change("scores.0.unit", "5 stars"),
    "unknown direction": change("scores.0.direction", "upwards"),
    "no p-value": lambda content: content["scores"][0].update(unit="p", value=1.5, interval=None, level=None, method=None),
    "text for a group": change("scores.0.group", "all"),
    "line break in a group": change("scores.0.group", {"category": "all\n"}),
    "text turned round in a group": change("scores.0.group", {"category": "a\u202eb"}),
    "path in a group": change("scores.0.group", {"category": "../../etc"}),
    "number in a group": change("scores.0.group", {"category": 1}),
    "code of half a page": change("scores.0.group", {"category": "x" * 201}),
    "HTML for an axis": change("scores.0.group", {"<b>": "en"}),
    "more axes than there are": change("scores.0.group", dict.fromkeys("abcdefghi", "x")),
    "HTML for a language": change("cells.0.group", {"language": "<b>"}),
    "cell of two axes": change("cells.0.group", {"language": "en", "variety": "SAE"}),
    "cell of a category": change("cells.0.group", {"category": "x"}),
    "repeated cell": change("cells.1.group", {"language": "en"}),
    "cell of nothing": change("cells.0.expected", 0),
    "more observed than expected": change("cells.0.observed", 7),
    "no cells": change("cells", []),
    "no scores": change("scores", []),
    "unknown key": change("winner", True),
    "other version": change("schema_version", 3),
    "flag for a version": change("schema_version", True),
    "short digest": change("run.digest", "ab"),
    "time without a zone": change("submitted", "2026-11-30T12:00:00"),
    "submitted before it ran": change("submitted", "2020-01-01T00:00:00Z"),
    "path in a sample": lambda content: content.update(samples=[{"path": "../x.png", "group": {}}]),
    "address for a sample": lambda content: content.update(samples=[{"path": "https://x/y", "group": {}}]),
    "samples of no run": lambda content: content.update(samples=[{"path": "x.png", "group": {}}]),
    "address for a repository": change("run.repository", "https://x.example/y"),
    "name of half a page": change("model.name", "x" * 101),
    "supersedes a path": change("supersedes", "../x"),
}


@pytest.mark.parametrize("fault", TAMPERED)
def test_a_tampered_record_is_refused_by_the_file_and_field(fault: str) -> None:
    content = json.loads(record().as_json())
    TAMPERED[fault](content)
    with pytest.raises(InputError, match=r"^results/x\.json: ") as refused:
        parse(json.dumps(content).encode("utf-8"), "results/x.json")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"null", b"\xff\xfe", b"{" * 100_000, b'{"schema_version": 1', b'{"schema_version": NaN}', b'{"a": 1, "a": 1}',
        b'{"schema_version": 2, "model": {"id": "a/b", "id": "c/d"}}', b'{"schema_version": ' + b"9" * 5000 + b"}", b"[" * 200_000,
        b'{"schema_version": 1, "subset": "\\ud800"}', b'{"schema_version": 2, "subset": "\\ud800"}', b" " * (MAX_BYTES + 1),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^x\.json"):
        parse(content, "x.json")


def test_names_may_hold_anything_and_a_key_that_comes_twice_is_refused() -> None:
    name = "<script>alert(1)</script> --- \u202e नमस्ते"
    content = json.loads(record().as_json())
    content["model"]["name"] = content["submitter"]["name"] = name
    assert parse(json.dumps(content).encode(), "x").model.name == name
    text = record().as_json()
    with pytest.raises(InputError, match="the key 'subset' comes twice"):
        parse(text.replace(' "subset"', ' "subset": "geo",\n "subset"', 1).encode(), "x")


# Records of version 0.1

FIRST = """{
 "schema_version": 1,
 "model": {"id": "lab/model", "revision": "1.0", "name": null},
 "run": {"kind": "generation", "digest": "832e6b7931020fe67ffb927f1f659e1195f4b47291ffbd72e9c5138ac9c89adc",
  "started": "2026-11-30T10:00:00Z", "repository": "lab/run", "revision": null},
 "prompts": {"repository": "prompts", "config": "lingt2i_text", "split": "test", "revision": null,
  "content_sha256": "abababababababababababababababababababababababababababababababab"},
 "subset": "lingt2i_text",
 "scores": [
  {"metric": "text_rendering_precision.precision", "subset": "lingt2i_text", "group": "all", "value": 0.5, "n": 6, "n_missing": 0,
   "ci_low": 0.45, "ci_high": 0.55, "signature": "text_rendering_precision|tok:tekken|reader:tesseract,psm=7,v=5|v:1.0",
   "higher_is_better": true, "unit": "fraction"},
  {"metric": "text_rendering_precision.precision", "subset": "lingt2i_text", "group": "language:en", "value": 0.5, "n": 6, "n_missing": 0,
   "ci_low": 0.45, "ci_high": 0.55, "signature": "text_rendering_precision|tok:tekken|reader:tesseract,psm=7,v=5|v:1.0",
   "higher_is_better": true, "unit": "fraction"},
  {"metric": "text_rendering_precision.precision", "subset": "lingt2i_text", "group": "language:hi", "value": 0.6, "n": 6, "n_missing": 0,
   "ci_low": 0.5499999999999999, "ci_high": 0.65, "signature": "text_rendering_precision|tok:tekken|reader:tesseract,psm=7,v=5|v:1.0",
   "higher_is_better": true, "unit": "fraction"},
  {"metric": "cross_lingual_gap.std", "subset": "lingt2i_text", "group": "all", "value": 0.05, "n": 6, "n_missing": 0,
   "ci_low": 0.0, "ci_high": 0.1, "higher_is_better": false, "unit": "fraction", "signature":
   "cross_lingual_gap|mean:languages|of:text_rendering_precision,tok=tekken,reader=tesseract,psm=7,v=5,v=1.0|v:1.0"}
 ],
 "cells": [{"group": "language:en", "expected": 6, "observed": 6}, {"group": "language:hi", "expected": 6, "observed": 6}],
 "submitted": "2026-11-30T12:00:00Z",
 "submitter": {"user": "me", "name": null},
 "samples": [{"path": "samples/a.png", "group": "language:hi", "caption": null}],
 "supersedes": null
}"""
"""A record as the code before schema_version 2 wrote it, which knew it by the id 076f3fbb8db2c797."""


def first(**more: Any) -> ResultRecord:
    return parse(json.dumps({**json.loads(FIRST), **more}).encode(), "x.json")


def test_a_record_of_version_1_is_read_and_keeps_its_id() -> None:
    old = first()
    assert old.id == "076f3fbb8db2c797"
    assert first(supersedes=old.id, submitted="2026-11-30T12:01:00Z").id != old.id
    assert [entry.group for entry in old.scores] == [ALL, EN, HI, ALL]
    assert [cell.group for cell in old.cells] == [EN, HI]
    assert old.samples[0].group == HI
    (table,) = gather(results(old), title="t", source="s").tables
    (shown,) = table.entries
    assert (shown.overall.value, shown.cells["hi"].low) == (0.5, 0.5499999999999999)
    assert shown.spread.value is None, "version 0.1 recorded a spread that has the noise in it"
    assert table.signature == "text_rendering_precision|tok:tekken|reader:tesseract,psm=7,v=5|v:1.0"


def test_records_of_both_versions_stand_in_one_table() -> None:
    old = first()
    for found in (results(old, record("lab/new", 0.7)), results(record("lab/new", 0.7), old)):
        (table,) = gather(found, title="t", source="s").tables
        assert table.signature == SIGNATURE
        assert table.spread_signature == f"cross_lingual_gap|mean:languages|of:{{{SIGNATURE}}}|v:1.0"
        assert {entry.model: entry.spread.low for entry in table.entries} == {"lab/model": None, "lab/new": 0.0}
    # Another reader's are others.
    assert len(gather(results(old, record("lab/new", signature=SIGNATURE.replace("psm:7", "psm:3"))), title="t", source="s").tables) == 2


def test_of_two_signatures_that_version_1_would_have_written_alike_neither_is_taken_for_its() -> None:
    alike = record("lab/c", signature=SIGNATURE.replace("{tesseract|psm:7|", "{tesseract,psm=7|"))
    tables = gather(results(first(), record("lab/b"), alike), title="t", source="s").tables
    assert [len(table.entries) for table in tables] == [1, 1, 1]
    assert len({table.signature for table in tables}) == 3


def test_a_new_record_supersedes_one_of_version_1() -> None:
    old = first()
    there = results(old, record("lab/other", signature=OTHER))
    new = record(value=0.6, minutes=1, supersedes=old.id)
    assert faults_of_addition(there, there.path_for(new), new, NOW + timedelta(hours=1)) == []
    missing = record(value=0.6, minutes=1)
    assert f"expected {old.id}" in faults_of_addition(there, there.path_for(missing), missing, NOW + timedelta(hours=1))[0]
    assert [file.record.id for file, _ in standing(results(old, new))] == [new.id]
    other = record(value=0.6, minutes=1, signature=OTHER)
    assert {file.record.id for file, _ in standing(results(old, other))} == {old.id, other.id}


FIRST_TAMPERED = {
    "unknown key in a score": change("scores.0.direction", "higher"),
    "half an interval": change("scores.0.ci_low", None),
    "interval turned round": change("scores.0.ci_low", 0.99),
    "text for a direction": change("scores.0.higher_is_better", "yes"),
    "no group": change("scores.1.group", "everybody"),
    "mapping for a group": change("scores.1.group", {"language": "en"}),
    "undeclared language": change("scores.1.group", "language:xx"),
    "text turned round in a group": change("scores.1.group", "category:a\u202eb"),
    "no signature": change("scores.0.signature", "0.9"),
    "cell of nothing": change("cells.0.expected", 0),
    "HTML for a language": change("cells.0.group", "language:<b>"),
    "path in a sample": change("samples.0.path", "../x.png"),
    "path in the model": change("model.id", "../../etc/passwd"),
    "text for a number": change("scores.0.value", "0.5"),
    "unknown unit of an unknown metric": lambda content: content["scores"][0].update(metric="a.b", unit="stars"),
}


@pytest.mark.parametrize("fault", FIRST_TAMPERED)
def test_a_tampered_record_of_version_1_is_refused(fault: str) -> None:
    content = json.loads(FIRST)
    FIRST_TAMPERED[fault](content)
    with pytest.raises(InputError, match=r"^results/x\.json: ") as refused:
        parse(json.dumps(content).encode("utf-8"), "results/x.json")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 600


# A repository of records


def test_a_later_record_supersedes_and_overwrites_nothing(tmp_path: Path) -> None:
    first = record()
    second = record(value=0.6, minutes=1, supersedes=first.id)
    other = record(value=0.7, minutes=2, signature=OTHER)
    found = read_results(str(write(tmp_path, first, second, other)))
    assert len({file.path for file in found.files}) == 3
    assert not found.refused
    stands = {file.record.id: signatures for file, signatures in standing(found)}
    assert set(stands) == {second.id, other.id}
    assert stands[other.id] == other.signatures
    # Whatever the order of the files.
    turned = Results(tuple(reversed(found.files)))
    assert {file.record.id: signatures for file, signatures in standing(turned)} == stands


def test_of_records_of_one_moment_the_superseding_one_stands() -> None:
    orders = set()
    for value in range(10):
        first = record(value=0.4 + value / 100)
        second = record(value=0.6 + value / 100, supersedes=first.id)
        orders.add(first.id < second.id)
        assert [file.record.id for file, _ in standing(results(first, second))] == [second.id]
    assert orders == {True, False}


def test_files_that_are_elsewhere_or_no_record_are_named(tmp_path: Path) -> None:
    write(tmp_path, record(), record("lab/other"))
    moved = tmp_path / "results" / "lab__model" / "2.0"
    moved.mkdir()
    (moved / "lingt2i_text.json").write_text(record().as_json())
    edited = tmp_path / "results" / "lab__other" / "1.0" / f"lingt2i_text.{'0' * 16}.json"
    edited.write_text(record("lab/other", 0.9).as_json())
    (tmp_path / "results" / "big.json").write_bytes(b" " * (MAX_BYTES + 1))
    (tmp_path / "results" / "notes.md").write_text("not read")
    found = read_results(str(tmp_path))
    assert len(found.files) == 2
    reasons = dict(found.refused)
    assert set(reasons) == {
        "results/big.json",
        "results/lab__model/2.0/lingt2i_text.json",
        f"results/lab__other/1.0/lingt2i_text.{'0' * 16}.json",
    }
    assert "belongs at results/lab__model/1.0/lingt2i_text.json" in reasons["results/lab__model/2.0/lingt2i_text.json"]


def test_an_addition_is_checked() -> None:
    first = record()
    there = results(first)
    good = record(value=0.6, minutes=1, supersedes=first.id)
    later = NOW + timedelta(hours=1)

    def faults(added: ResultRecord, path: str | None = None, now: datetime = later) -> str:
        return " / ".join(faults_of_addition(there, path or there.path_for(added), added, now))

    assert faults(good) == ""
    assert faults_of_addition(Results(()), path_of(first), first, NOW) == []
    assert faults(record(value=0.7, minutes=3, signature=OTHER)) == ""
    assert "is there already" in faults(first)
    assert "never overwritten" in faults(good, path_of(first))
    assert f"expected {first.id}" in faults(record(value=0.6, minutes=1))
    assert "is no record of this" in faults(record(value=0.7, signature=OTHER, supersedes=first.id))
    assert "a moment after" in faults(record(value=0.6, minutes=-1, supersedes=first.id))
    assert "not yet" in faults(good, now=NOW - timedelta(days=1))
    assert "does not tell the two apart" in faults(record("Lab/Model"))


# The board of records


def test_the_board_ranks_only_what_may_be_ranked_together() -> None:
    other_prompts = {**PROMPTS, "content_sha256": "cd" * 32}
    board = gather(
        results(record(), record("lab/b", 0.7), record("lab/c", signature=OTHER), record("lab/d", prompts=other_prompts)),
        title="t",
        source="s",
    )
    assert sorted((len(table.entries), table.signature, table.prompts) for table in board.tables) == [
        (1, OTHER, "prompts abababababab"),
        (1, SIGNATURE, "prompts cdcdcdcdcdcd"),
        (2, SIGNATURE, "prompts abababababab"),
    ]
    first = board.tables[0]
    assert (first.axis, first.title) == ("language", "Text rendering: precision")
    assert [group.name for group in first.groups] == ["English", "Hindi"]
    entry = first.entries[1]
    assert (entry.model, entry.overall.value, entry.spread.value, entry.spread.low) == ("lab/b", 0.7, 0.05, 0.0)
    assert first.spread_signature.startswith("cross_lingual_gap")
    assert not entry.missing


def test_a_record_without_a_language_or_with_fewer_rows_is_incomplete_beside_a_whole_one() -> None:
    languages = {EN: (6, 6), HI: (6, 6)}
    board = gather(
        results(
            record(cells=languages),
            record("lab/without", cells={EN: (6, 6)}),
            record("lab/failed", cells={EN: (6, 6), HI: (6, 5)}),
            record("lab/fewer", cells={EN: (6, 6), HI: (3, 3)}),
        ),
        title="t",
        source="s",
    )
    assert {entry.model: list(entry.missing) for entry in board.tables[0].entries} == {
        "lab/model": [],
        "lab/without": ["Hindi: 0 of 6 rows"],
        "lab/fewer": ["Hindi: 3 of 6 rows"],
        "lab/failed": ["Hindi: 5 of 6 rows"],
    }


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(st.lists(st.floats(0.1, 0.9), min_size=4, max_size=4), min_size=6, max_size=6),
    st.lists(st.sets(st.sampled_from(CODES)), min_size=6, max_size=6),
)
def test_no_record_gains_a_place_by_leaving_languages_out(means: list[list[float]], left_out: list[set[str]]) -> None:
    """Six records, each without some languages: those that lack one that another has are shown and not ranked, and lose a place for it."""

    def placed(without: list[set[str]]) -> dict[str, tuple[int, int] | None]:
        made = []
        for number, (own, out) in enumerate(zip(means, without, strict=True)):
            cells = {Group(language=code): (40, 40) for code in CODES if code not in out}
            if cells:
                kept = [mean for mean, code in zip(own, CODES, strict=True) if code not in out]
                made.append(record(f"lab/m{number}", sum(kept) / len(kept) * 0.8, cells=cells))
        if not made:
            return {}
        (table,) = gather(results(*made), title="t", source="s").tables
        found = overall_places(table)
        asked = {code for entry in table.entries for code in entry.cells}
        for entry, place in zip(table.entries, found, strict=True):
            assert bool(entry.missing) == (set(entry.cells) != asked)
            assert (place is None) == bool(entry.missing)
        assert render(Board("b", "–", "s", (table,)))
        return {entry.model: place for entry, place in zip(table.entries, found, strict=True)}

    whole = placed([set()] * 6)
    parts = placed(left_out)
    for number, out in enumerate(left_out):
        alone = placed([out if place == number else set() for place in range(6)])
        assert whole[f"lab/m{number}"] is not None
        assert not out or alone.get(f"lab/m{number}") is None
    assert set(parts) <= set(whole)


def test_a_score_that_is_left_out_makes_its_table_incomplete() -> None:
    content = json.loads(record().as_json())
    content["scores"] = [score for score in content["scores"] if score["group"] != {"language": "hi"}]
    board = gather(results(parse(json.dumps(content).encode(), "x")), title="t", source="s")
    assert [list(entry.missing) for entry in board.tables[0].entries] == [["Hindi: no score"]]


def test_scores_of_metrics_that_nobody_here_knows_stand_after_ours_under_their_own_names() -> None:
    lower, none = (ScoreSpec("a_metric", key, key.capitalize(), direction=way) for key, way in (("errors", "lower"), ("length", "none")))
    made = [record("lab/a", 0.2, spec=lower), record("lab/b", 0.6, spec=lower), record("lab/c", spec=none), record("lab/d")]
    tables = gather(results(*made), title="t", source="s").tables
    assert [(table.title, table.direction, len(table.entries)) for table in tables] == [
        ("Text rendering: precision", "higher", 1),
        ("a_metric.errors", "lower", 2),
    ]


def test_a_metric_of_somebody_else_has_the_title_that_it_declares(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = (
        ScoreSpec("a_metric", "errors", "Errors", "How many.", direction="lower", board="Errors: all"),
        ScoreSpec("a_metric", "x", "X"),
    )
    known = {**specs(), "a_metric": MetricSpec("a_metric", "A metric", "", scores)}
    for module in (board, validation_results):
        monkeypatch.setattr(module, "specs", lambda: known)
    (table,) = gather(results(record(spec=scores[0]), record("lab/b", spec=scores[1])), title="t", source="s").tables
    assert (table.title, table.about, table.direction) == ("Errors: all", "How many.", "lower")


def test_a_direction_is_that_of_the_metric_whatever_a_record_says() -> None:
    content = json.loads(record().as_json())
    for entry in content["scores"]:
        entry["direction"], entry["unit"] = "lower", "count"
    (table,) = gather(results(parse(json.dumps(content).encode(), "x"), record("lab/b")), title="t", source="s").tables
    assert (table.direction, table.unit, len(table.entries)) == ("higher", "fraction", 2)


@pytest.fixture(scope="module")
def audit(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("audit") / "run"
    command("audit-filter", "--filter", "profanity-check", "--prompts", prompts, "--config", "dialect", "--out", run)
    command("score", run, "--resamples", 100)
    return run


def test_command_builds_a_board_from_a_real_audit(audit: Path, tmp_path: Path) -> None:
    run = Run.open(str(audit))
    shifts = [score for score in run.scores() if score.key == "delta_tpr_pp" and len(score.group) == 1]
    groups = [score.group for score in shifts]
    made = new_record(
        run.record,
        run.scores(),
        model=ScoredModel(id="lab/profanity-check", revision="1.9.1", name='<img src=x onerror="alert(1)">'),
        subset="dialect",
        cells=[Cell(group=group, expected=180, observed=180) for group in groups],
        submitter=Submitter(user="me"),
        submitted=datetime.now(timezone.utc),
        repository="lab/audit",
    )
    done = command("board", write(tmp_path / "board-results", made), "--out", tmp_path / "space")
    assert "1 models in 2 tables from 1 records" in done.stdout
    html = (tmp_path / "space" / "index.html").read_text(encoding="utf-8")
    assert "<img" not in html
    assert str(tmp_path) not in html
    data = json.loads(re.findall(r'id="data">(.*?)</script>', html)[0])
    assert [(table["axis"], table["shift"], table["title"]) for table in data["tables"]] == [
        ("dialect", True, "Filter: shift of detection"),
        ("dialect", True, "Filter: shift of false alarms"),
    ]
    largest = max(abs(score.value) for score in shifts if score.value is not None)
    row = data["tables"][0]["rows"][0]
    assert row["overall"][0] == pytest.approx(largest, abs=1e-4)
    assert ["run record", "https://huggingface.co/datasets/lab/audit/blob/main/run.json"] in row["links"]


def test_command_refuses_what_is_no_record_unless_told_to_leave_it_out(tmp_path: Path) -> None:
    write(tmp_path, record())
    (tmp_path / "results" / "lab__model" / "1.0" / "other.json").write_text("{}")
    message = error_of("board", tmp_path, "--out", tmp_path / "space")
    assert "results/lab__model/1.0/other.json: schema_version" in message
    assert "--skip-invalid" in message
    assert not (tmp_path / "space").exists()
    done = command("board", tmp_path, "--out", tmp_path / "space", "--skip-invalid")
    assert "left out: results/lab__model/1.0/other.json" in done.stdout
    assert "1 file is no valid record" in (tmp_path / "space" / "index.html").read_text()
    assert "no results repository" in error_of("board", tmp_path / "space", "--out", tmp_path / "x")
    assert "neither a folder nor a dataset" in error_of("board", "no/such", "--out", tmp_path / "x")


def test_command_reads_records_from_the_hub(tmp_path: Path) -> None:
    with LoopbackHub() as hub:
        files = {file.path: file.record.as_json().encode() for file in results(record(), record("lab/b", 0.7)).files}
        hub.create("dataset", "me/results", {**files, "README.md": b"# Results\n"})
        told = ask('told["board"] = command("board", "me/results", "--out", "space").stdout', hub, tmp_path)
        assert "2 models in 1 tables from 2 records" in told["board"]
        html = (tmp_path / "client" / "space" / "index.html").read_text()
        assert f"{hub.endpoint}/datasets/me/results" in html
