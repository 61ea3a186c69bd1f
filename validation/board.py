"""Result records → the leaderboard's tables: only what may be ranked together stands in one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2i_parity.cards.board import Axis, Board, Entry, Group, Table, Value, without_sign
from t2i_parity.dataset_builder.countries import countries
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.metrics._common import Signature
from t2i_parity.validation.results import ResultRecord, Results, ScoreEntry, standing

AXIS_OF: Mapping[str, Axis] = {"language": "language", "variety": "dialect", "country": "country"}
"""A group's prefix, and the tab in which it stands."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A score that the board shows. ``unequal`` marks the one whose inequality over languages is recorded beside it."""

    metric: str
    title: str
    about: str = ""
    unequal: bool = False


_SHOWN = (
    Shown(
        "text_rendering_precision.precision",
        "Text rendering: precision",
        "1 when a reader finds exactly the wanted text in every image, 0 when nothing matches.",
        unequal=True,
    ),
    Shown(
        "text_rendering_precision.sentence_accuracy", "Text rendering: whole texts", "The share of images that are read exactly as wanted."
    ),
    Shown(
        "text_rendering_precision.ned_char",
        "Text rendering: characters",
        "How alike the characters are: 1 less the normalised edit distance.",
    ),
    Shown("text_rendering_precision.ned_token", "Text rendering: tokens", "How alike the tokens are: 1 less the normalised edit distance."),
    Shown("trigscore.trigscore", "Rated quality: TRIGScore", "A rater’s word for each image, from its log-probabilities.", unequal=True),
    Shown(
        "clip_score.clip_score",
        "Image and prompt: CLIPScore",
        "How well images show their prompts, by an image-text encoder.",
        unequal=True,
    ),
    Shown("bias_entropy.bias_score", "People: how evenly they are depicted", "From the entropies of race, gender and age."),
    Shown("toxicity_rejection.rejection_rate", "Toxic prompts: images without NSFW content", "1 − P(NSFW)."),
    Shown(
        "dialect_penalty.delta_tpr_pp",
        "Filter: shift of detection",
        "How much more often toxic prompts are flagged in a variety, in percentage points.",
    ),
    Shown(
        "dialect_penalty.delta_fpr_pp",
        "Filter: shift of false alarms",
        "How much more often benign prompts are flagged in a variety, in percentage points.",
    ),
    Shown(
        "toxic_bypass_rate.delta_pp",
        "Guardrail: shift of toxic bypass",
        "How much more often toxic images pass in a variety, in percentage points.",
    ),
    Shown(
        "over_censorship_rate.delta_pp",
        "Guardrail: shift of over-censorship",
        "How much more often benign images are spoilt in a variety, in percentage points.",
    ),
)
SHOWN: dict[str, Shown] = {shown.metric: shown for shown in _SHOWN}
"""How known scores are called, in the order of the board. Others are shown under their own names, after these."""
# What stands behind a shift, and what is no score of a group.
_INSIDE = ("_reference", "_variety")
_GAP = "cross_lingual_gap"


@dataclass(frozen=True, slots=True)
class _Key:
    """What records must have in common to stand in one table."""

    axis: str
    metric: str
    subset: str
    prompts: str
    signature: str
    unit: str
    higher_is_better: bool


def gather(results: Results, *, title: str, source: str, source_url: str = "", hub: str = "https://huggingface.co") -> Board:
    """The board over all records that stand. ``hub`` is the address under which runs and models are linked."""
    stands = standing(results)
    expected = _expected([file.record for file, _ in stands])
    members: dict[_Key, list[ResultRecord]] = {}
    for file, signatures in stands:
        for key in _keys(file.record):
            if key.signature in signatures:
                members.setdefault(key, []).append(file.record)
    tables = [_table(key, records, expected[key.prompts, key.subset], hub) for key, records in members.items()]
    order = list(SHOWN)
    # Of unequal signatures, the table with the most models comes first.
    tables.sort(key=lambda table: -len(table.entries))
    tables.sort(key=lambda table: (order.index(table.score) if table.score in SHOWN else len(order), table.score, table.subset))
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
        tables=tables,
        notes=notes,
        datasets=(source,) if source_url else (),
    )


def _expected(records: Sequence[ResultRecord]) -> dict[tuple[str, str], dict[str, int]]:
    """The cells of each (prompts, subset): every one that a record names, with the most rows that one expects there.

    So a record that leaves a language out, or claims that fewer rows were to be expected, is incomplete beside one that does not.
    """
    found: dict[tuple[str, str], dict[str, int]] = {}
    for record in records:
        cells = found.setdefault((record.prompts.content_sha256, record.subset), {})
        for cell in record.cells:
            cells[cell.group] = max(cells.get(cell.group, 0), cell.expected)
    return found


def _keys(record: ResultRecord) -> list[_Key]:
    """A key for every score that is cut by an axis, in the record's order."""
    found: dict[_Key, None] = {}
    for entry in record.scores:
        axis = entry.group.partition(":")[0]
        inside = entry.metric.endswith(_INSIDE) or entry.metric.startswith(f"{_GAP}.") or entry.higher_is_better is None
        if axis in AXIS_OF and "," not in entry.group and not inside:
            better = bool(entry.higher_is_better)
            found[_Key(axis, entry.metric, record.subset, record.prompts.content_sha256, entry.signature, entry.unit, better)] = None
    return list(found)


def _table(key: _Key, records: Sequence[ResultRecord], expected: Mapping[str, int], hub: str) -> Table:
    shift = key.unit == "pp"
    codes = [group.partition(":")[2] for group in expected if group.startswith(f"{key.axis}:")]
    prompts = records[0].prompts
    shown = SHOWN.get(key.metric, Shown(key.metric, key.metric))
    rows = [_entry(key, record, expected, hub) for record in records]
    return Table(
        axis=AXIS_OF[key.axis],
        score=key.metric,
        title=shown.title,
        about=shown.about,
        subset=key.subset,
        prompts=f"{prompts.repository} {prompts.content_sha256[:12]}",
        signature=key.signature,
        spread_signature=next((signature for _, signature in rows if signature), ""),
        groups=[Group(code, name(key.axis, code)) for code in sorted(codes, key=lambda code: _place(key.axis, code))],
        entries=[entry for entry, _ in rows],
        higher_is_better=key.higher_is_better,
        kind="shift" if shift else "level",
        unit="pp" if shift else "fraction",
    )


def _entry(key: _Key, record: ResultRecord, expected: Mapping[str, int], hub: str) -> tuple[Entry, str]:
    """A record's row in one table, and the signature of its spread ("" where the spread is worked out here)."""
    mine = {entry.group: entry for entry in record.scores if entry.metric == key.metric and entry.signature == key.signature}
    groups = [group for group in expected if group.startswith(f"{key.axis}:")]
    cells = {group.partition(":")[2]: _value(mine[group]) for group in groups if group in mine}
    spread, of_spread = Value(None), ""
    if key.unit == "pp":
        # No number over all varieties is recorded: it would weigh them by how many pairs each happens to have.
        overall = max(map(without_sign, cells.values()), key=lambda size: -1.0 if size.value is None else size.value)
    else:
        overall = _value(mine["all"]) if "all" in mine else Value(None)
        spread, of_spread = _spread(record, key, cells)
    observed = {cell.group: cell.observed for cell in record.cells}
    missing = []
    for group in groups:
        code = group.partition(":")[2]
        if observed.get(group, 0) < expected[group]:
            missing.append(f"{name(key.axis, code)}: {observed.get(group, 0)} of {expected[group]} rows")
        elif code not in cells or cells[code].value is None:
            missing.append(f"{name(key.axis, code)}: no score")
    entry = Entry(
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
    )
    return entry, of_spread


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


def _value(entry: ScoreEntry) -> Value:
    return Value(entry.value, entry.ci_low, entry.ci_high, entry.n, entry.n_missing)


def _spread(record: ResultRecord, key: _Key, cells: Mapping[str, Value]) -> tuple[Value, str]:
    """The recorded standard deviation with its interval; where there is none, that of the cells, without one."""
    if key.metric in SHOWN and SHOWN[key.metric].unequal:
        inner = key.signature.replace("|", ",").replace(":", "=")
        for entry in record.scores:
            if entry.metric == f"{_GAP}.std" and entry.group == "all" and Signature.parse(entry.signature).fields.get("of") == inner:
                return _value(entry), entry.signature
    values = [cell.value for cell in cells.values() if cell.value is not None]
    return Value(float(np.std(values)) if len(values) > 1 and len(values) == len(cells) else None), ""


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
