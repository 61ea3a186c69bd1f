"""Rating rows: what a participant of the geographical study answered, declared once for the survey that writes and the analysis that reads.

A participant sees images of nouns (§2, "Questionnaire Details"), four trick questions (§2, "Validating Responses"), and, at the end, is
asked how realistic each model's images were with and without the country's name, and how much that swayed the other answers (§3.4). Every
answer is one row; ``question`` says which kind it is. Source: Basu et al. 2023 (arXiv:2305.11080).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.storage import Folder, read_parquet

Question = Literal["representativeness", "trick", "realism", "influence"]
QUESTIONS: tuple[Question, ...] = ("representativeness", "trick", "realism", "influence")
CONDITIONS = ("unspecified", "country")
STATUSES = ("ok", "skipped")
"""``ok``: there is a rating. ``skipped``: the participant went on without one; ``reason`` may say why."""
JOURNAL = "open-"
"""How the name of a file begins that the survey is still writing: the answers of a participant who has not finished."""
SCALE = (1, 5)
"""1: not at all; 5: to a great extent (for realism and influence: 1 the least, 5 the most)."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a rating row: its type, whether it may be null, what it means."""

    name: str
    kind: pa.DataType
    doc: str
    nullable: bool = False


COLUMNS: tuple[Column, ...] = (
    Column("rating_id", pa.string(), "one id an answer; an answer that is changed keeps it, and the latest counts"),
    Column("participant", pa.string(), "a participant's hash: no name, no address"),
    Column("country", pa.string(), "the participant's country, ISO 3166-1 alpha-3"),
    Column("image_id", pa.string(), "the image's id in its run; null where the question is about no single image", nullable=True),
    Column("pair_id", pa.string(), "what the image was asked to show: the prompt's pair_id", nullable=True),
    Column("noun", pa.string(), "the noun that was asked for; of a trick question, the noun that it asks about", nullable=True),
    Column("condition", pa.string(), "country: the prompt named the participant's country; else unspecified", nullable=True),
    Column("model", pa.string(), "what made the image", nullable=True),
    Column("run", pa.string(), "the run that the image is in", nullable=True),
    Column("question", pa.string(), f"one of {', '.join(QUESTIONS)}"),
    Column("rating", pa.int64(), "from 1 to 5; null where there is no answer", nullable=True),
    Column("answered_at", pa.string(), "UTC, ISO 8601, e.g. 2026-01-31T09:30:00+00:00"),
    Column("order", pa.int64(), "the question's place in the participant's own order, from 0"),
    Column("status", pa.string(), f"one of {', '.join(STATUSES)}"),
    Column("reason", pa.string(), "why there is no rating, or null", nullable=True),
    Column("interface_language", pa.string(), "BCP-47 code of the language in which it was asked"),
)
SCHEMA = pa.schema([pa.field(column.name, column.kind, nullable=column.nullable) for column in COLUMNS])

NEEDED: Mapping[Question, tuple[str, ...]] = {
    "representativeness": ("image_id", "pair_id", "noun", "condition", "model", "run"),
    "trick": ("noun",),
    "realism": ("condition", "model"),
    "influence": (),
}
"""The columns that may be null and must not be, by question."""


@dataclass(frozen=True, slots=True)
class Trick:
    """A trick question: the noun that it asks about, what its image shows, and whether a participant who looks rates it high."""

    noun: str
    shown: str
    high: bool


TRICKS: Mapping[str, Trick] = {
    trick.noun: trick
    for trick in (Trick("apple", "mango", False), Trick("milk", "water", False), Trick("pen", "pen", True), Trick("sun", "sun", True))
}
"""The study's four, by the noun asked about: two images show something else, two show the thing."""

LOW, HIGH = 2, 4
"""The study asks for "a low score" and "a high score" and gives no number: here at most 2, and at least 4."""


def check_ratings(table: pa.Table, *, where: str = "the ratings") -> pa.Table:
    """The rows in the declared columns and types, checked; further columns are left out.

    Raises InputError, naming row, column, what was expected and found, for a missing column, another type, a null where none may stand, an
    undeclared question, condition or status, a rating outside 1 to 5, a rating that is there without being ``ok`` or the other way round,
    an unknown trick question, a wrong country or time, the same ``rating_id`` twice, or a participant with two countries.
    """
    missing = [column.name for column in COLUMNS if column.name not in table.column_names]
    if missing:
        raise InputError(
            f"{where}: missing column{'s' if len(missing) > 1 else ''} {', '.join(missing)}; found {', '.join(table.column_names)}"
        )
    columns = {}
    for column in COLUMNS:
        try:
            columns[column.name] = table[column.name].cast(column.kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise InputError(
                f"{where}, column {column.name}: expected {column.kind}, got {table[column.name].type} ({first_line(error)}). "
                "Fix: write the column in that type"
            ) from error
    rows = pa.table(columns, schema=pa.schema([pa.field(column.name, column.kind) for column in COLUMNS]))
    if not len(rows):
        raise InputError(f"{where}: no rows. Fix: collect answers first, or name the folder that holds them")
    for column in COLUMNS:
        if not column.nullable:
            _refuse(rows, rows[column.name].is_null(), column.name, "a value", where)
    for name, allowed in (("question", QUESTIONS), ("status", STATUSES)):
        _refuse(rows, pc.invert(pc.is_in(rows[name], pa.array(allowed))), name, f"one of {', '.join(allowed)}", where)
    given = rows["condition"].is_valid()
    strange = pc.and_(given, pc.invert(pc.is_in(rows["condition"], pa.array(CONDITIONS))))
    _refuse(rows, strange, "condition", f"{' or '.join(CONDITIONS)}, or null", where)
    answered = pc.equal(rows["status"], "ok")
    outside = pc.or_(pc.less(rows["rating"], SCALE[0]), pc.greater(rows["rating"], SCALE[1]))
    _refuse(rows, pc.fill_null(outside, False), "rating", "a whole number from 1 to 5, or null", where)
    _refuse(rows, pc.and_(answered, rows["rating"].is_null()), "rating", "a rating, since status is ok", where)
    _refuse(rows, pc.and_(pc.invert(answered), rows["rating"].is_valid()), "rating", "null, since status is not ok", where)
    for question, names in NEEDED.items():
        asked = pc.equal(rows["question"], question)
        for name in names:
            _refuse(rows, pc.and_(asked, rows[name].is_null()), name, f"a value, since question is {question}", where)
    trick = pc.equal(rows["question"], "trick")
    unknown = pc.and_(trick, pc.invert(pc.is_in(rows["noun"], pa.array(list(TRICKS)))))
    _refuse(rows, unknown, "noun", f"one of {', '.join(TRICKS)}, since question is trick", where)
    _refuse(
        rows, pc.invert(pc.match_substring_regex(rows["country"], "^[A-Z]{3}$")), "country", "an ISO 3166-1 alpha-3 code, e.g. IND", where
    )
    utc = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(\+00:00|Z)$"
    _refuse(rows, pc.invert(pc.match_substring_regex(rows["answered_at"], utc)), "answered_at", "a time in UTC, ISO 8601", where)
    _refuse(rows, pc.less(rows["order"], 0), "order", "a number from 0 up", where)
    _refuse_repeated(rows, where)
    return rows


def latest(table: pa.Table) -> pa.Table:
    """One row a ``rating_id``: the one answered last, the later row among equals; the rows' order stays.

    An answer that was sent twice, or changed, stands in the files twice.
    """
    if len(table["rating_id"].unique()) == len(table):
        return table
    last: dict[str, tuple[str, int]] = {}
    for number, (identity, time) in enumerate(zip(table["rating_id"].to_pylist(), table["answered_at"].to_pylist(), strict=True)):
        if identity not in last or (time or "") >= last[identity][0]:
            last[identity] = (time or "", number)
    return table.take(pa.array(sorted(number for _, number in last.values())))


def excluded(table: pa.Table) -> dict[str, str]:
    """The participants whose answers are discarded by the study's rule (§2, "Validating Responses"), each with the reason.

    Discarded is whoever fails one of the four trick questions, or has not answered all four: only who passes these checks is kept.

    >>> rows = [{"participant": "a", "noun": noun, "rating": rating, "question": "trick"}
    ...         for noun, rating in (("apple", 2), ("milk", 3), ("pen", 5), ("sun", 4))]
    >>> excluded(pa.Table.from_pylist(rows))
    {'a': 'milk: expected at most 2, got 3'}
    """
    answers: dict[str, dict[str, int | None]] = {who: {} for who in table["participant"].unique().to_pylist()}
    tricks = table.filter(pc.equal(table["question"], "trick"))
    for who, noun, rating in zip(*(tricks[name].to_pylist() for name in ("participant", "noun", "rating")), strict=True):
        answers[who][noun] = rating
    found = {}
    for who, given in answers.items():
        faults = [fault for trick in TRICKS.values() if (fault := _fault(trick, given.get(trick.noun)))]
        if faults:
            found[who] = "; ".join(faults)
    return found


def _fault(trick: Trick, rating: int | None) -> str | None:
    if rating is None:
        return f"{trick.noun}: not answered"
    if trick.high and rating < HIGH:
        return f"{trick.noun}: expected at least {HIGH}, got {rating}"
    if not trick.high and rating > LOW:
        return f"{trick.noun}: expected at most {LOW}, got {rating}"
    return None


def kept(table: pa.Table) -> pa.Table:
    """The rows of the participants who pass the trick questions."""
    return table.filter(pc.invert(pc.is_in(table["participant"], pa.array(list(excluded(table)), pa.string()))))


def read_ratings(source: str) -> pa.Table:
    """Every rating of a folder (any fsspec URL: ``*.parquet`` and ``*.jsonl`` in its ``ratings``, else in itself), or of a hub dataset.

    A last line without an end is an answer that is being written just now, and is left out. Of an answer that stands there twice the
    latest counts. Raises InputError as :func:`check_ratings`, and where nothing can be read.
    """
    try:
        folder = Folder(f"hf://datasets/{source}" if _is_hub_id(source) else source)
        places = [
            [(*place, name) for name in folder.names(*place) if name.endswith((".parquet", ".jsonl"))] for place in (("ratings",), ())
        ]
        files = places[0] or places[1]
        tables = [_read(folder, file) for file in files]
    except (OSError, ValueError) as error:
        raise InputError(
            f"{source!r} cannot be read ({first_line(error)}). Give the folder that the survey writes into, or the id of a hub dataset "
            "that you can reach (hf auth login for a private one)"
        ) from error
    if not files:
        raise InputError(f"{source}: no ratings there; expected *.parquet or *.jsonl files in it or in its folder ratings")
    table = pa.concat_tables(tables, promote_options="permissive")
    for name in ("rating_id", "answered_at"):
        if name not in table.column_names:
            raise InputError(f"{source}: missing column {name}; found {', '.join(table.column_names)}")
    return check_ratings(latest(table), where=source)


def _read(folder: Folder, file: Sequence[str]) -> pa.Table:
    if file[-1].endswith(".parquet"):
        return read_parquet(folder, folder.path(*file))
    import json

    rows: list[dict[str, Any]] = []
    lines = folder.read(*file).decode("utf-8", "replace").split("\n")
    # What a kill left of a journal's last line was not acknowledged, and is asked again.
    for number, line in enumerate(lines[:-1] if file[-1].startswith(JOURNAL) else lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            rows.append({column.name: row.get(column.name) for column in COLUMNS})
        except (ValueError, AttributeError) as error:
            raise InputError(
                f"{folder.path(*file)}, line {number}: expected a JSON object ({first_line(error)}). Remove the line"
            ) from error
    try:
        return pa.Table.from_pylist(rows, schema=pa.schema([pa.field(column.name, column.kind) for column in COLUMNS]))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(f"{folder.path(*file)}: a value of another type than its column's ({first_line(error)})") from error


def _is_hub_id(source: str) -> bool:
    return source.count("/") == 1 and not source.startswith((".", "/", "~")) and not Path(source).exists()


def _refuse(rows: pa.Table, wrong: pa.ChunkedArray, column: str, expected: str, where: str) -> None:
    wrong = pc.fill_null(wrong, True)
    row = pc.index(wrong, True).as_py()
    if row < 0:
        return
    count = pc.sum(wrong).as_py()
    more = f", and {count - 1:,} more rows" if count > 1 else ""
    raise InputError(
        f"{where}: row {row}, column {column}: expected {expected}, got {rows[column][row].as_py()!r}{more}. Fix it, or drop the row"
    )


def _refuse_repeated(rows: pa.Table, where: str) -> None:
    if len(rows["rating_id"].unique()) != len(rows):
        twice = next(identity for identity, n in Counter(rows["rating_id"].to_pylist()).items() if n > 1)
        raise InputError(f"{where}: rating_id {twice!r} stands in several rows; expected it once. Keep the latest answer only")
    pairs = rows.group_by(["participant", "country"]).aggregate([])
    if len(pairs) != len(rows["participant"].unique()):
        who = next(who for who, n in Counter(pairs["participant"].to_pylist()).items() if n > 1)
        raise InputError(f"{where}: participant {who!r} has answers from several countries; expected one country a participant")
