"""Result records → the leaderboard's tables: only what may be ranked together stands in one."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from t2i_parity.cards.board import Axis, Board, Entry, Table, Value, extreme, without_sign
from t2i_parity.cards.board import Group as Column
from t2i_parity.dataset_builder.countries import countries
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
from t2i_parity.metrics.scores import ALL, Group, Score, ScoreSpec
from t2i_parity.validation.results import ResultRecord, Results, standing

AXIS_OF: Mapping[str, Axis] = {"language": "language", "variety": "dialect", "country": "country"}
"""A group's axis, and the tab in which it stands."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What records must have in common to stand in one table."""

    axis: str
    spec: ScoreSpec
    subset: str
    prompts: str
    signature: Signature


@dataclass(frozen=True, slots=True)
class _Member:
    """A record in one table: its scores there by group, and the recorded spread of them, noise taken out."""

    record: ResultRecord
    scores: Mapping[Group, Score]
    spread: Score | None


def gather(results: Results, *, title: str, source: str, source_url: str = "", hub: str = "https://huggingface.co") -> Board:
    """The board over all records that stand. ``hub`` is the address under which runs and models are linked."""
    stands = standing(results)
    expected = _expected([file.record for file, _ in stands])
    members: dict[_Key, list[_Member]] = {}
    for file, signatures in stands:
        for key, member in _members(file.record).items():
            if key.signature in signatures:
                members.setdefault(key, []).append(member)
    tables = [(key, _table(key, found, expected[key.prompts, key.subset], hub)) for key, found in members.items()]
    order = [score for metric in specs().values() for score in metric.scores]
    # Of unequal signatures, the table with the most models comes first.
    tables.sort(key=lambda each: -len(each[1].entries))
    tables.sort(key=lambda each: (order.index(each[0].spec) if each[0].spec in order else len(order), each[1].score, each[1].subset))
    notes = []
    if superseded := len(results.files) - len(stands):
        notes.append(f"{superseded} superseded {'record is' if superseded == 1 else 'records are'} kept, and not shown.")
    if left_out := len(results.refused):
        notes.append(f"{left_out} {'file is' if left_out == 1 else 'files are'} no valid record, and left out.")
    newest = max((file.record.submitted for file, _ in stands), default=None)
    return Board(
        title=title,
        updated="–" if newest is None else f"{newest:%Y-%m-%d}",
        source=source,
        source_url=source_url,
        tables=[table for _, table in tables],
        notes=notes,
        datasets=(source,) if source_url else (),
    )


def _expected(records: Sequence[ResultRecord]) -> dict[tuple[str, str], dict[Group, int]]:
    """The cells of each (prompts, subset): every one that a record names, with the most rows that one expects there.

    So a record that leaves a language out, or claims that fewer rows were to be expected, is incomplete beside one that does not.
    """
    found: dict[tuple[str, str], dict[Group, int]] = {}
    for record in records:
        cells = found.setdefault((record.prompts.content_sha256, record.subset), {})
        for cell in record.cells:
            cells[cell.group] = max(cells.get(cell.group, 0), cell.expected)
    return found


def _members(record: ResultRecord) -> dict[_Key, _Member]:
    """Every score of a record that has a table, in the record's order.

    A metric that nobody here declares has one for each of its scores that has a better side.
    """
    scores = record.read()
    by_score: dict[tuple[ScoreSpec, Signature], dict[Group, Score]] = {}
    for score in scores:
        by_score.setdefault((score.spec, score.signature), {})[score.group] = score
    spreads = {
        of: groups[ALL]
        for (spec, signature), groups in by_score.items()
        if spec == GAP["spread"] and ALL in groups and isinstance(of := signature.fields.get("of"), Signature)
    }
    found = {}
    for (spec, signature), groups in by_score.items():
        metric = specs().get(spec.metric)
        if spec.direction == "none" or (metric is not None and not spec.board):
            continue
        unequal = metric is not None and spec.row is not None and spec.row.column == metric.unequal
        member = _Member(record, groups, spreads.get(signature) if unequal else None)
        for axis in dict.fromkeys(group.axes[0] for group in groups if len(group) == 1):
            if axis in AXIS_OF:
                found[_Key(axis, spec, record.subset, record.prompts.content_sha256, signature)] = member
    return found


def _table(key: _Key, members: Sequence[_Member], expected: Mapping[Group, int], hub: str) -> Table:
    spec, prompts = key.spec, members[0].record.prompts
    cells = {group: rows for group, rows in expected.items() if key.axis in group}
    codes = sorted((group[key.axis] for group in cells), key=lambda code: _place(key.axis, code))
    return Table(
        axis=AXIS_OF[key.axis],
        score=spec.name,
        title=spec.board or spec.name,
        about=spec.about,
        subset=key.subset,
        prompts=f"{prompts.repository} {prompts.content_sha256[:12]}",
        signature=str(key.signature),
        spread_signature=next((str(member.spread.signature) for member in members if member.spread), ""),
        groups=[Column(code, name(key.axis, code)) for code in codes],
        entries=[_entry(key, member, cells, hub) for member in members],
        direction=spec.direction,
        unit=spec.unit,
        level=_level(members),
    )


def _entry(key: _Key, member: _Member, expected: Mapping[Group, int], hub: str) -> Entry:
    """A record's row in one table."""
    record, scores = member.record, member.scores
    cells = {group[key.axis]: _value(scores[group]) for group in expected if group in scores}
    if key.spec.direction == "zero":
        # No number over all varieties is recorded: it would weigh them by how many pairs each happens to have.
        overall = extreme(map(without_sign, cells.values()), lowest=False, level=_level([member]), ends=(0.0, math.inf))
    else:
        overall = _value(scores[ALL]) if ALL in scores else Value(None)
    spread = _value(member.spread) if member.spread else Value(None)
    observed = {cell.group: cell.observed for cell in record.cells}
    missing = []
    for group, rows in expected.items():
        code = group[key.axis]
        if observed.get(group, 0) < rows:
            missing.append(f"{name(key.axis, code)}: {observed.get(group, 0)} of {rows} rows")
        elif code not in cells or cells[code].value is None:
            missing.append(f"{name(key.axis, code)}: no score")
    return Entry(
        model=record.model.id,
        revision=record.model.revision,
        name=record.model.name or "",
        overall=overall,
        spread=spread,
        cells=cells,
        submitted=f"{record.submitted:%Y-%m-%d}",
        submitter=record.submitter.user if record.submitter.name is None else f"{record.submitter.name} ({record.submitter.user})",
        missing=missing,
        links=_links(record, hub),
        by_meaning=_by_meaning(key, record),
    )


def _by_meaning(key: _Key, record: ResultRecord) -> tuple[float | None, ...]:
    of = (key.spec.metric, key.spec.key, key.signature)
    return next((each.means for each in record.by_meaning if (each.metric, each.key, each.signature) == of), ())


def _links(record: ResultRecord, hub: str) -> list[tuple[str, str]]:
    """(words, address) of the model, of the run's record and images, and of the samples: ids that the record was checked for."""
    links = [("model", f"{hub}/{record.model.id}")] if record.run.kind == "generation" else []
    if record.run.repository is not None:
        run, at = f"{hub}/datasets/{record.run.repository}", record.run.revision or "main"
        links.append(("run record", f"{run}/blob/{at}/run.json"))
        if record.run.kind == "generation":
            links.append(("images", f"{run}/viewer/images/test"))
        links += [(f"sample: {sample.caption or sample.group}", f"{run}/blob/{at}/{sample.path}") for sample in record.samples]
    return links


def _value(score: Score) -> Value:
    return Value(score.value, *score.ends, score.n, score.n_missing)


def _level(members: Sequence[_Member]) -> float:
    """The level of the records' intervals, the lowest of several."""
    return min((score.interval.level for member in members for score in member.scores.values() if score.interval is not None), default=0.95)


# Names --------------------------------------------------------------------------------------------------------------


def name(prefix: str, code: str) -> str:
    """What a group is called.

    >>> name("language", "hi"), name("variety", "JamE"), name("country", "NGA"), name("language", "xx")
    ('Hindi', 'Jamaican English', 'Nigeria', 'xx')
    """
    return _NAMES[prefix](code)


def _language(code: str) -> str:
    return LANGUAGES[code].name if code in LANGUAGES else code


def _variety(code: str) -> str:
    return VARIETIES[code].name if code in VARIETIES else _language(code)


def _country(code: str) -> str:
    every = countries("all")
    return every[code].name if code in every else code


_NAMES: Mapping[str, Callable[[str], str]] = {"language": _language, "variety": _variety, "country": _country}


def _place(axis: str, code: str) -> tuple[int, str]:
    """Languages and varieties in the order in which they are declared, countries by name, and what is not declared last."""
    declared = [] if axis == "country" else [*VARIETIES, *LANGUAGES] if axis == "variety" else [*LANGUAGES]
    return (declared.index(code) if code in declared else len(declared), name(axis, code))
