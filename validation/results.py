"""Result records: what a leaderboard stands on, one immutable JSON file for each scored model, revision and subset.

    results/<org>__<model>/<revision>/<subset>.json        the first of its kind
    results/<org>__<model>/<revision>/<subset>.<id>.json   each later one

A record is never overwritten. A later one of the same model, revision, subset and signature stands in its place (:func:`standing`),
and names the record that it replaces under ``supersedes``. Records are written by anybody, so that everything read here is untrusted: its
size is limited, unknown keys and repeated ones are refused, and what could leave a folder or reorder text is no id.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NoReturn

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    StringConstraints,
    ValidationError,
    model_serializer,
    model_validator,
)

from t2i_parity.cards.environment import visible
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate.specs import specs
from t2i_parity.metrics import stored
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Direction, Group, Score, Unit

SCHEMA_VERSION = 2
FOLDER = "results"
"""The folder of the results repository that holds the records."""
MAX_BYTES = 4 * 2**20
"""No record is longer: 5,000 scores with long signatures take about 3 MiB."""
MAX_SCORES, MAX_CELLS, MAX_SAMPLES = 5_000, 1_000, 24
MAX_MEANINGS, MAX_BY_MEANING = 20_000, 24
AXES = ("language", "variety", "country")
"""By what cells are cut."""
ID_DIGITS = 16
_CLOCKS_DIFFER = timedelta(minutes=10)


# What a record may hold ---------------------------------------------------------------------------------------------

# Every name that becomes part of a path or an address begins with a letter or digit, and holds no two dots in a row.
_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.[A-Za-z0-9_-])*"
_ORG = r"[A-Za-z0-9](?:[A-Za-z0-9-]|_[A-Za-z0-9-])*"
_CELL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_AXIS = re.compile(r"[a-z][a-z_]{0,31}")
_MAX_AXES, _MAX_CODE = 8, 200


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(timezone.utc)


def _signature(text: Any) -> Signature:
    if isinstance(text, Signature):
        return text
    if not isinstance(text, str) or len(text) > 600:
        raise ValueError("expected a signature, a text of at most 600 characters")
    return Signature.parse(text)


def _group(codes: Any) -> Group:
    """Axes and their codes. A code is a name from somebody's prompts, in any script; nothing in it hides, reorders or leaves a folder."""
    if not isinstance(codes, Mapping) or len(codes) > _MAX_AXES:
        raise ValueError(f"expected at most {_MAX_AXES} axes, a code each")
    for axis, code in codes.items():
        if not isinstance(axis, str) or _AXIS.fullmatch(axis) is None:
            raise ValueError(f"{_short(axis)} is no axis")
        if not isinstance(code, str) or not 1 <= len(code) <= _MAX_CODE or set(code) & set("\n\t") or visible(code) != code:
            raise ValueError(f"{axis}: expected a code of at most {_MAX_CODE} visible characters")
        if {".", ".."} & set(re.split(r"[/\\]", code)):
            raise ValueError(f"{axis}: {_short(code)} is no code")
    return Group(codes)


# "__" stands between organisation and name in a folder, and so is no part of an organisation.
RepositoryId = Annotated[str, StringConstraints(pattern=rf"^{_ORG}/{_NAME}$", max_length=96)]
Revision = Annotated[str, StringConstraints(pattern=rf"^{_NAME}$", max_length=64)]
Subset = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$", max_length=64)]
Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
RecordId = Annotated[str, StringConstraints(pattern=rf"^[0-9a-f]{{{ID_DIGITS}}}$")]
User = Annotated[str, StringConstraints(pattern=rf"^{_NAME}$", max_length=64)]
GroupCodes = Annotated[Group, PlainValidator(_group), PlainSerializer(dict, return_type=dict[str, str])]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
SignatureText = Annotated[Signature, PlainValidator(_signature), PlainSerializer(str, return_type=str)]
Path = Annotated[str, StringConstraints(pattern=rf"^{_NAME}(/{_NAME})*$", max_length=240)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=100)]
"""Free text for people: any script, any sign. Whoever shows it escapes it."""
Count = Annotated[int, Field(ge=0, le=10**9)]
Number = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Moment = Annotated[AwareDatetime, AfterValidator(_utc)]


class _Part(BaseModel):
    """Strict and frozen: no other key, no text for a number, no number for text."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class ScoredModel(_Part):
    """Whose scores these are: the hub id, the commit, or for a service the version that its owner names."""

    id: RepositoryId
    revision: Revision
    name: Label | None = None


class RunRecord(_Part):
    """The run that was scored. ``digest`` is :func:`digest` of its record's ``identity``: what decides its content.

    ``repository`` and ``revision`` say where the run lies as a dataset, None when it was not published.
    """

    kind: Literal["generation", "audit"]
    digest: Digest
    started: Moment
    repository: RepositoryId | None = None
    revision: Revision | None = None


class AskedPrompts(_Part):
    """The prompts as the run's record has them; ``content_sha256`` decides, whatever the repository is called."""

    repository: Label
    config: Label | None
    split: Label
    revision: Revision | None = None
    content_sha256: Digest


class Cell(_Part):
    """One language, variety or country: how many rows the prompts have there, and of how many everything that is scored was observed.

    A row counts as observed when its image was made (in an audit: its prompt was put to the filter) and every judge answered.
    """

    group: GroupCodes
    expected: Annotated[int, Field(ge=1, le=10**9)]
    observed: Count

    @property
    def complete(self) -> bool:
        """Whether nothing is missing. Only then can its scores be set beside another model's."""
        return self.observed == self.expected

    @model_validator(mode="after")
    def _consistent(self) -> Cell:
        if len(self.group) != 1 or not all(axis in AXES and _CELL.fullmatch(code) for axis, code in self.group.items()):
            raise ValueError(f"group {_short(dict(self.group))}: expected one of {', '.join(AXES)}, and its code")
        if self.observed > self.expected:
            raise ValueError(f"{self.group}: {self.observed} rows observed, and only {self.expected} expected")
        return self


class ScoreEntry(_Part):
    """One entry of scores.json, key by key."""

    metric: Name
    key: Name
    subset: Subset
    group: GroupCodes
    value: Number | None
    n: Count
    n_missing: Count
    interval: tuple[Number, Number] | None
    level: Annotated[float, Field(gt=0, lt=1)] | None
    method: Annotated[str, StringConstraints(pattern=r"^[a-z][A-Za-z0-9_, -]*$", max_length=40)] | None
    published: Number | None = None
    reason: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9 ,;.'-]*$", max_length=120)] = ""
    unit: Unit
    direction: Direction
    signature: SignatureText

    @model_serializer(mode="wrap")
    def _as_in_scores_json(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if name not in ("published", "reason") or value not in (None, "")}

    @property
    def where(self) -> str:
        """What it is of, for people."""
        return f"{self.metric}.{self.key} of {self.group}"

    @model_validator(mode="after")
    def _consistent(self) -> ScoreEntry:
        where = self.where
        if len({self.interval is None, self.level is None, self.method is None}) > 1:
            raise ValueError(f"{where}: an interval has two ends, a level and a method, or there is none")
        if self.interval is not None and self.interval[0] > self.interval[1]:
            raise ValueError(f"{where}: the interval's low end {self.interval[0]:g} is above its high end {self.interval[1]:g}")
        if self.value is None and self.interval is not None:
            raise ValueError(f"{where}: an interval without a value")
        if self.value is not None and self.n == 0:
            raise ValueError(f"{where}: a value that stands on no row")
        if self.value is not None and self.unit == "p" and not 0 <= self.value <= 1:
            raise ValueError(f"{where}: {self.value:g} is no p-value")
        if self.value is not None and self.unit == "pp" and abs(self.value) > 100:
            raise ValueError(f"{where}: {self.value:g} are more percentage points than there are")
        return self


class Meanings(_Part):
    """One score by meaning: the mean over the rows of each, meanings in the order of their ids, None for one without a score.

    Two models that answered the same prompts are compared meaning by meaning by these.
    """

    metric: Name
    key: Name
    signature: SignatureText
    means: Annotated[tuple[Number | None, ...], Field(min_length=1, max_length=MAX_MEANINGS)]


class Sample(_Part):
    """One image to look at: its path inside the run's repository."""

    path: Path
    group: GroupCodes
    caption: Label | None = None


class Submitter(_Part):
    """Who hands the record in: an account of the hub."""

    user: User
    name: Label | None = None


class _Record(_Part):
    """What records of every version hold."""

    schema_version: int
    model: ScoredModel
    run: RunRecord
    prompts: AskedPrompts
    subset: Subset
    submitted: Moment
    submitter: Submitter
    supersedes: RecordId | None = None


class ResultRecord(_Record):
    """One model at one revision on one subset of the prompts: its scores, how complete they are, and what they came from."""

    schema_version: Literal[2]
    scores: Annotated[tuple[ScoreEntry, ...], Field(min_length=1, max_length=MAX_SCORES)]
    cells: Annotated[tuple[Cell, ...], Field(min_length=1, max_length=MAX_CELLS)]
    samples: Annotated[tuple[Sample, ...], Field(max_length=MAX_SAMPLES)] = ()
    by_meaning: Annotated[tuple[Meanings, ...], Field(max_length=MAX_BY_MEANING)] = ()
    _first_id: str = PrivateAttr("")
    """Of a file of schema_version 1, the id under which it is known; "" for the others."""
    _first_scores: tuple[ScoreEntry, ...] = PrivateAttr(())
    """Of such a file, its scores with the signatures that it has, whatever :meth:`unfolded` made of them since."""

    @model_validator(mode="after")
    def _consistent(self) -> ResultRecord:
        seen: set[tuple[str, str, Group, Signature]] = set()
        for entry in self.scores:
            if entry.subset != self.subset:
                raise ValueError(f"{entry.where} is on the subset {entry.subset!r}, the record on {self.subset!r}")
            key = (entry.metric, entry.key, entry.group, entry.signature)
            if key in seen:
                raise ValueError(f"{entry.where} comes twice under the signature {str(entry.signature)!r}")
            seen.add(key)
        declared: set[Group] = set()
        for cell in self.cells:
            if cell.group in declared:
                raise ValueError(f"the cell {cell.group} comes twice")
            declared.add(cell.group)
        for entry in self.scores:
            if len(entry.group) == 1 and entry.group.axes[0] in AXES and entry.group not in declared:
                raise ValueError(f"{entry.where} is scored, and no cell says how many rows are expected there")
        if self.samples and self.run.repository is None:
            raise ValueError("samples lie in the run's repository, and run.repository is null")
        if self.run.started > self.submitted:
            raise ValueError(f"the run started at {self.run.started:%Y-%m-%dT%H:%MZ}, after it was submitted")
        return self

    @model_serializer(mode="wrap")
    def _without_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Records from before there were any keep their ids.
        return {name: value for name, value in handler(self).items() if value or name != "by_meaning"}

    @cached_property
    def id(self) -> str:
        """The first 16 hex digits of :func:`digest` over the whole record: another content is another record."""
        return self._first_id or digest(self.model_dump(mode="json"))[:ID_DIGITS]

    @property
    def is_first(self) -> bool:
        """Whether it was written as schema_version 1."""
        return self._first_id != ""

    @property
    def incomplete(self) -> tuple[Cell, ...]:
        """The cells in which something is missing."""
        return tuple(cell for cell in self.cells if not cell.complete)

    @property
    def signatures(self) -> frozenset[Signature]:
        """Under which signatures it has scores."""
        return frozenset(entry.signature for entry in self.scores)

    def read(self) -> list[Score]:
        """Its scores, typed: units and directions are those that the metrics declare, whatever the record says."""
        return stored.read((entry.model_dump() for entry in self.scores), specs())

    def unfolded(self, known: Iterable[Signature]) -> ResultRecord:
        """Itself; of a record of schema_version 1, the same with those of the known signatures that its own were written from.

        Version 0.1 wrote a signature inside another so that nobody can tell its parts again, and no record says which it was.
        """
        if not self.is_first:
            return self
        by_folding = stored.by_folding(known)
        there = {entry.signature: stored.unfolded(entry.signature, by_folding) for entry in self._first_scores}
        scores = tuple(entry.model_copy(update={"signature": there[entry.signature]}) for entry in self._first_scores)
        return self.model_copy(update={"scores": scores})

    def as_json(self) -> str:
        """The file's text, one score a line, the same for the same record."""
        content = self.model_dump(mode="json")
        parts = []
        for key, value in content.items():
            if key in ("scores", "cells", "samples", "by_meaning") and value:
                lines = ",\n  ".join(json.dumps(item, ensure_ascii=False, allow_nan=False) for item in value)
                parts.append(f" {json.dumps(key)}: [\n  {lines}\n ]")
            else:
                parts.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}")
        return "{\n" + ",\n".join(parts) + "\n}\n"


def digest(content: Any) -> str:
    """SHA-256, in hex, of canonical JSON (sorted keys, UTF-8): of a run's ``identity``, it names what decides the run's content.

    >>> digest({"b": 1, "a": 2}) == digest({"a": 2, "b": 1})
    True
    """
    return hashlib.sha256(json.dumps(content, sort_keys=True, ensure_ascii=False, allow_nan=False).encode("utf-8")).hexdigest()


def scored_model(id: str, revision: str, name: str | None = None) -> ScoredModel:
    """A model as records name it. Raises InputError for what no record may call one."""
    try:
        return ScoredModel(id=id, revision=revision, name=name)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise InputError(
            f"model {first['loc'][0]}: {first['msg']}, got {_short(first['input'])}; expected ORG/MODEL as on the hub, a commit or version "
            "without slashes, and a name of at most 100 characters"
        ) from error


# Version 1 ----------------------------------------------------------------------------------------------------------

_FirstGroup = Annotated[str, StringConstraints(min_length=1, max_length=_MAX_CODE)]


class _FirstScore(_Part):
    metric: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$", max_length=96)]
    subset: Subset
    group: _FirstGroup
    value: Number | None
    n: Count
    n_missing: Count
    ci_low: Number | None
    ci_high: Number | None
    signature: Annotated[str, StringConstraints(max_length=600)]
    higher_is_better: bool | None
    unit: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,20}$")]

    @model_validator(mode="after")
    def _consistent(self) -> _FirstScore:
        if (self.ci_low is None) != (self.ci_high is None):
            raise ValueError(f"{self.metric} of {_short(self.group)}: an interval has two ends, or none")
        return self


class _FirstCell(_Part):
    group: _FirstGroup
    expected: int
    observed: int


class _FirstSample(_Part):
    path: str
    group: _FirstGroup
    caption: Label | None = None


class _FirstRecord(_Record):
    """A record as version 0.1 wrote it: groups and signatures are texts in its own manner."""

    schema_version: Literal[1]
    scores: Annotated[tuple[_FirstScore, ...], Field(max_length=MAX_SCORES)]
    cells: Annotated[tuple[_FirstCell, ...], Field(max_length=MAX_CELLS)]
    samples: Annotated[tuple[_FirstSample, ...], Field(max_length=MAX_SAMPLES)] = ()

    def record(self) -> ResultRecord:
        """The same as a record of today, known under the id that it has. Raises ValueError for what no record may hold."""
        content = self.model_dump(mode="json")
        content["schema_version"] = SCHEMA_VERSION
        content["scores"] = [score.json() for score in stored.read(content["scores"], specs())]
        for part in (*content["cells"], *content["samples"]):
            part["group"] = dict(stored.first_group(part["group"]))
        record = ResultRecord.model_validate_json(json.dumps(content))
        record._first_id, record._first_scores = digest(self.model_dump(mode="json"))[:ID_DIGITS], record.scores
        return record


# Paths --------------------------------------------------------------------------------------------------------------


def path_of(record: ResultRecord, *, first: bool = True) -> str:
    """Where a record lies in the results repository; a later one of its model, revision and subset carries its id in its name."""
    name = f"{record.subset}.json" if first else f"{record.subset}.{record.id}.json"
    return str(PurePosixPath(FOLDER, record.model.id.replace("/", "__", 1), record.model.revision, name))


# Reading ------------------------------------------------------------------------------------------------------------


def parse(content: bytes, where: str) -> ResultRecord:
    """One record from a file's bytes. Raises InputError, naming the file, the field, what was expected and found, and the fix."""
    if len(content) > MAX_BYTES:
        raise InputError(f"{where}: {len(content):,} bytes, and a result record has at most {MAX_BYTES:,}; hand in one subset a record")
    try:
        found = json.loads(content.decode("utf-8"), object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is no result record: not valid JSON ({first_line(error)}). Write it with t2i-parity submit") from error
    version = found.get("schema_version") if isinstance(found, dict) else None
    if version not in (1, SCHEMA_VERSION) or isinstance(version, bool):
        raise InputError(
            f"{where}: schema_version: expected {SCHEMA_VERSION}, got {_short(version)}. "
            "Hand the result in with a t2i-parity of this version"
        )
    try:
        return _FirstRecord.model_validate_json(content).record() if version == 1 else ResultRecord.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the record"
        more = f" (and {error.error_count() - 1} more faults)" if error.error_count() > 1 else ""
        got = "" if first["type"] in ("value_error", "missing") else f", got {_short(first['input'])}"
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}: {place}: {message}{got}{more}. A record is written by t2i-parity submit, and not edited") from error
    except ValueError as error:
        raise InputError(f"{where}: {first_line(error)}. A record is written by t2i-parity submit, and not edited") from error


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {_short(next(name for name in names if names.count(name) > 1))} comes twice")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A record and its path inside the results repository."""

    path: str
    record: ResultRecord


@dataclass(frozen=True, slots=True)
class Results:
    """What a results repository holds: the records in the order of their paths, and the files that are none, each with the reason."""

    files: tuple[ResultFile, ...]
    refused: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if any(file.record.is_first for file in self.files):
            known = {signature for file in self.files if not file.record.is_first for signature in file.record.signatures}
            object.__setattr__(self, "files", tuple(replace(file, record=file.record.unfolded(known)) for file in self.files))

    def having(self, path: str, record: ResultRecord) -> Results:
        """The same with one more."""
        return Results((*self.files, ResultFile(path, record)), self.refused)

    def replaced(self, record: ResultRecord) -> list[ResultFile]:
        """Those of the same model, revision and subset under whose signatures a new record has scores too, first submitted first."""
        together = self.having("", record)
        new = together.files[-1]
        return [file for file in together.of(record) if file is not new and file.record.signatures & new.record.signatures]

    def of(self, record: ResultRecord) -> list[ResultFile]:
        """The records of the same model, revision and subset, first submitted first."""
        return sorted((file for file in self.files if _place(file.record) == _place(record)), key=_order)

    def path_for(self, record: ResultRecord) -> str:
        """The path under which a new record is to be added."""
        return path_of(record, first=not self.of(record))

    def with_id(self, id: str) -> ResultFile | None:
        """The record of that id, None when there is none."""
        return next((file for file in self.files if file.record.id == id), None)


def read_results(source: str, revision: str | None = None) -> Results:
    """Every record of a results repository: a folder (any fsspec URL), or a dataset on the hub by its id, there at ``revision``.

    A file that is no record, or lies where its content does not belong, is named in ``refused`` and not read further. Raises InputError
    when there is no such repository.
    """
    folder = Folder(_local(source, revision))
    if not folder.exists(FOLDER):
        raise InputError(
            f"{source} holds no folder {FOLDER}/, so it is no results repository; give the folder above {FOLDER}/, or a hub id"
        )
    files: list[ResultFile] = []
    refused: list[tuple[str, str]] = []
    for name, size in _files(folder):
        try:
            if size > MAX_BYTES:
                raise InputError(f"{name}: {size:,} bytes, and a result record has at most {MAX_BYTES:,}")
            record = parse(folder.read(*PurePosixPath(name).parts), name)
            if name not in (path_of(record), path_of(record, first=False)):
                raise InputError(f"{name}: its content belongs at {path_of(record)}; a record is not moved, renamed or edited")
            files.append(ResultFile(name, record))
        except InputError as error:
            refused.append((name, str(error)))
    return Results(tuple(files), tuple(refused))


def _files(folder: Folder) -> Iterable[tuple[str, int]]:
    """(path inside the repository, size in bytes) of every file below ``results/`` whose name ends in .json, sorted."""
    folder.fs.invalidate_cache()
    found = folder.fs.find(folder.path(FOLDER), detail=True)
    root = PurePosixPath(folder.root)
    for path in sorted(found):
        if path.endswith(".json"):
            yield str(PurePosixPath(path).relative_to(root)), int(found[path]["size"] or 0)


def is_hub_id(source: str) -> bool:
    """Whether a source is a dataset's id, and not a folder that is there."""
    return re.fullmatch(rf"{_ORG}/{_NAME}", source) is not None and not Folder(source).exists()


def _local(source: str, revision: str | None) -> str:
    """A URL to read from: the source itself, or the copy of a hub dataset's records in the client's cache."""
    if not is_hub_id(source):
        return source
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        return str(snapshot_download(source, repo_type="dataset", revision=revision, allow_patterns=[f"{FOLDER}/**"]))
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise InputError(
            f"{source!r} is neither a folder nor a dataset that the hub gave ({first_line(error)}). "
            "Give the path of a results repository, or a hub id you can reach"
        ) from error


# What stands --------------------------------------------------------------------------------------------------------


def standing(results: Results) -> list[tuple[ResultFile, frozenset[Signature]]]:
    """The records that stand, each with the signatures under which it does.

    Of records of one model, revision and subset, the scores under a signature are those of the record submitted last; of two submitted at
    the same moment, of the one that supersedes the other, or else of the higher id. A record all of whose signatures a later one has is
    left out.
    """
    last: dict[tuple[str, str, str, Signature], ResultFile] = {}
    for file in sorted(results.files, key=_order):
        for signature in file.record.signatures:
            key = (*_place(file.record), signature)
            before = last.get(key)
            replaced = (
                before is not None and before.record.submitted == file.record.submitted and before.record.supersedes == file.record.id
            )
            if not replaced:
                last[key] = file
    stands: dict[str, set[Signature]] = {}
    for (*_, signature), file in last.items():
        stands.setdefault(file.path, set()).add(signature)
    return [(file, frozenset(stands[file.path])) for file in results.files if file.path in stands]


def _place(record: ResultRecord) -> tuple[str, str, str]:
    return record.model.id, record.model.revision, record.subset


def _order(file: ResultFile) -> tuple[datetime, str]:
    return file.record.submitted, file.record.id


# Adding -------------------------------------------------------------------------------------------------------------


def faults_of_addition(results: Results, path: str, record: ResultRecord, now: datetime) -> list[str]:
    """Why a new record cannot be added to a repository under a path; empty when it can.

    ``results`` are what the repository holds without it, ``now`` is when it is looked at. Whether its scores are right is not asked here.
    """
    faults = []
    if results.with_id(record.id):
        faults.append(f"the record {record.id} is there already")
    if any(file.path == path for file in results.files):
        faults.append(f"{path} is there already, and a record is never overwritten; add the new one as {results.path_for(record)}")
    elif path != results.path_for(record):
        faults.append(f"{path}: this record belongs at {results.path_for(record)}")
    if record.submitted > now + _CLOCKS_DIFFER:
        faults.append(f"submitted {record.submitted:%Y-%m-%dT%H:%MZ}: that is not yet")
    replaced = results.replaced(record)
    if replaced and record.supersedes != replaced[-1].record.id:
        faults.append(
            f"supersedes: expected {replaced[-1].record.id}, the last record of this model, revision, subset and signature, "
            f"got {record.supersedes}"
        )
    elif not replaced and record.supersedes is not None:
        faults.append(f"supersedes: {record.supersedes} is no record of this model, revision, subset and signature")
    if replaced and record.submitted <= replaced[-1].record.submitted:
        faults.append("submitted: expected a moment after that of the record it supersedes")
    for file in results.files:
        other = file.record.model.id
        if other != record.model.id and other.casefold() == record.model.id.casefold():
            faults.append(f"model.id {record.model.id}: the records have it as {other}; the hub does not tell the two apart")
            break
    return faults


def new_record(
    run: Mapping[str, Any],
    scores: Iterable[Score],
    *,
    model: ScoredModel,
    subset: str,
    cells: Iterable[Cell],
    submitter: Submitter,
    submitted: datetime,
    repository: str | None = None,
    revision: str | None = None,
    samples: Iterable[Sample] = (),
    by_meaning: Iterable[Meanings] = (),
    supersedes: str | None = None,
) -> ResultRecord:
    """The record of a scored run: ``run`` is what its run.json holds.

    Of the scores those of ``subset`` are kept; ``repository`` and ``revision`` say where the run was published. Raises InputError when a
    part is not what a record may hold.
    """
    content = {
        "schema_version": SCHEMA_VERSION,
        "model": model.model_dump(mode="json"),
        "run": {
            "kind": run["kind"],
            "digest": digest(run["identity"]),
            "started": run["started"],
            "repository": repository,
            "revision": revision,
        },
        "prompts": {name: run["identity"]["prompts"].get(name) for name in AskedPrompts.model_fields},
        "subset": subset,
        "scores": [score.json() for score in scores if score.subset == subset],
        "cells": [cell.model_dump(mode="json") for cell in cells],
        "submitted": submitted.isoformat(),
        "submitter": submitter.model_dump(mode="json"),
        "samples": [sample.model_dump(mode="json") for sample in samples],
        "by_meaning": [each.model_dump(mode="json") for each in by_meaning],
        "supersedes": supersedes,
    }
    return parse(json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass"), f"the record of {model.id} on {subset}")
