"""A scored run held against the prompts that it says it answered: its rows, its observations, its scores computed anew.

The same for the run on a submitter's disk and for the one that was published: what is read is the parts of the run as they are, everything
that a prompt says of itself is taken from the prompts and not from the run, and the scores are recomputed by the code that makes them.

What this cannot show: whether the images came from the model that is named, and whether the judges saw what is written down. A record
names the published run, so that anybody can look, and judge again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from t2i_parity.cards.environment import visible
from t2i_parity.dataset_builder import publish
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.prompts import ADDED, PROMPT_COLUMNS, SCHEMA, Prompt, Prompts, load_prompts
from t2i_parity.dataset_builder.schema import PAIRED
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate.audit.pairs import by_subset
from t2i_parity.generate.entries import ScoreSettings
from t2i_parity.generate.run import Run, fingerprint, image_features, image_id, seed_of
from t2i_parity.generate.score import computed
from t2i_parity.generate.specs import specs
from t2i_parity.metrics.scores import Group, Row, Score
from t2i_parity.validation.by_meaning import by_meaning
from t2i_parity.validation.results import Cell, Meanings

Verdict = Literal["holds", "note", "fault"]
TOKENIZERS = ("google/mt5-base", "tekken")
"""The tokenizers that a submitted run may have been scored with; no other is fetched because a stranger's record names it."""
MAX_RESAMPLES = 10_000
MAX_OBSERVATIONS = 2 * 2**30
"""Bytes. More is not downloaded from a stranger's repository."""
MAX_IMAGES_PER_PROMPT = 100
TOLERANCE = 1e-6
"""What two computations of one score may differ by, relative to 1 or to the score where that is larger."""
_ODD = (TypeError, KeyError, AttributeError, ValueError, ArithmeticError, IndexError, pa.ArrowException)
"""What a metric may raise over columns that no judge of ours writes: a stranger's run is no defect of ours."""
_COMMIT = re.compile(r"[0-9a-f]{40}")
_LONGEST = 600


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. The text may quote a stranger: what would reorder or hide it is spelled out."""

    check: str
    verdict: Verdict
    told: str

    @classmethod
    def of(cls, check: str, faults: Sequence[str], holds: str) -> Finding:
        """A fault where there is any, the first of them told in full; what holds otherwise."""
        if not faults:
            return cls(check, "holds", told(holds))
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        return cls(check, "fault", told(f"{faults[0]}{more}"))


def told(text: str) -> str:
    """A stranger's text on one line, of a length that can be read."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


@dataclass(frozen=True, slots=True)
class Examined:
    """What became of a run: what was found, the scores computed anew, and the cells and scores by meaning of each subset."""

    findings: tuple[Finding, ...]
    scores: tuple[Score, ...] = ()
    cells: Mapping[str, tuple[Cell, ...]] = field(default_factory=dict)
    by_meaning: Mapping[str, tuple[Meanings, ...]] = field(default_factory=dict)


# The prompts --------------------------------------------------------------------------------------------------------


def open_edition(sources: Iterable[str], record: Mapping[str, Any]) -> Prompts:
    """Of some prompts (folders, hub ids, hub ids with ``@revision``) those that a run's record was made from, by their hash.

    Raises InputError when none of them is.
    """
    asked = record["identity"]["prompts"]
    columns = () if record["kind"] == "generation" else PAIRED
    differing = []
    for source in sources:
        place, _, revision = source.partition("@") if not Folder(source).exists() else (source, "", "")
        split = {} if asked.get("split") is None else {"split": asked["split"]}
        opened = load_prompts(place, asked.get("config"), revision=revision or None, **split).need(columns)
        if opened.origin["content_sha256"] == asked["content_sha256"]:
            return opened
        differing.append(f"{source} has {opened.origin['content_sha256'][:12]}")
    raise InputError(
        f"these are other prompts than the run answered: it says {str(asked['content_sha256'])[:12]}, and "
        f"{'; '.join(differing) or 'no others are named'}"
    )


# Reading a run ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """Where a run is read from: a folder, or a commit of a dataset on the hub, which cannot change while it is read."""

    url: str
    repo_id: str | None = None
    commit: str | None = None

    @classmethod
    def published(cls, repo_id: str, commit: str) -> Source:
        """A run on the hub. Raises InputError for a revision that is no commit."""
        if _COMMIT.fullmatch(commit) is None:
            raise InputError(f"{commit!r} is no commit of 40 digits, and a branch or a tag can be moved to another content")
        return cls(f"hf://datasets/{repo_id}@{commit}", repo_id, commit)


def fetched(source: Source, place: Path) -> Folder:
    """A folder that holds the run but for its images: itself where it is local, or else what was downloaded into ``place``.

    Raises InputError when the hub does not give it, or it is larger than what is fetched from strangers.
    """
    if source.repo_id is None:
        return Folder(source.url)
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.hf_api import RepoFile

    repo_id, commit = source.repo_id, source.commit
    target = publish.Target(repo_id)
    patterns = ["run.json", "scores.json", "observations/*", "prompts/*", "outcomes/*"]
    entries = publish.patiently(
        "list the files", target, lambda: list(HfApi().list_repo_tree(repo_id, recursive=True, revision=commit, repo_type="dataset"))
    )
    roots = {pattern.removesuffix("/*") for pattern in patterns}
    size = sum(entry.size for entry in entries if isinstance(entry, RepoFile) and entry.path.split("/")[0] in roots)
    if size > MAX_OBSERVATIONS:
        raise InputError(f"{repo_id} holds {size:,} bytes of observations, and at most {MAX_OBSERVATIONS:,} are fetched")
    publish.patiently(
        "fetch the run",
        target,
        lambda: snapshot_download(repo_id, repo_type="dataset", revision=commit, allow_patterns=patterns, local_dir=place),
    )
    return Folder(str(place))


def raw(source: Source, local: Folder, name: str, columns: Sequence[str] | None, limit: int) -> pa.Table:
    """The rows of a table's parts as they stand, doubles among them; images are read from where they are, and of them only ``columns``.

    Raises InputError for what cannot be read, and for more than ``limit`` rows.
    """
    folder = Folder(source.url) if source.repo_id is not None and name == "images" else local
    files = [file for file in folder.names(*name.split("/")) if file.startswith("part-") and file.endswith(".parquet")]

    def read(file: str) -> pa.Table:
        with folder.fs.open(folder.path(name, file), "rb") as opened:
            parquet = pq.ParquetFile(opened)
            if parquet.metadata.num_rows > limit:
                raise InputError(f"{name}/{file} has {parquet.metadata.num_rows:,} rows, and at most {limit:,} can be right")
            here = set(parquet.schema_arrow.names)
            if missing := [column for column in columns or [] if column not in here and column not in ADDED]:
                raise InputError(f"{name}/{file} has no column {missing[0]}")
            table = parquet.read(None if columns is None else list(columns))
            kinds = {column: _KINDS.get(column, table.schema.field(column).type) for column in table.column_names}
            table = table.cast(pa.schema(list(kinds.items()))).replace_schema_metadata(None)
            for column in [each for each in columns or [] if each not in here]:
                table = table.append_column(column, pa.nulls(len(table), _KINDS[column]))
            return table

    tables: list[pa.Table] = []
    for file in files:
        try:
            table = read(file) if source.repo_id is None else _from_hub(source.repo_id, read, file)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{name}/{file} is no readable parquet file ({type(error).__name__})") from error
        tables.append(table)
        if sum(map(len, tables)) > limit:
            raise InputError(f"{name} has more than {limit:,} rows, and no more can be right")
    return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})


def _from_hub(repo_id: str, read: Callable[[str], pa.Table], file: str) -> pa.Table:
    def call() -> pa.Table | pa.ArrowException:
        # Some of these are ValueErrors, and no reason to ask the hub again.
        try:
            return read(file)
        except pa.ArrowException as error:
            return error

    found = publish.patiently("read the images' rows", publish.Target(repo_id), call)
    if isinstance(found, pa.ArrowException):
        raise found
    return found


_KINDS: Mapping[str, pa.DataType] = {
    **dict.fromkeys(("image_id", "judge", "status", "reason"), pa.string()),
    **{field.name: field.type for field in SCHEMA},
    "seed_index": pa.int32(),
    "seed": pa.int64(),
}
"""What the columns that are relied on must be, whoever wrote them."""

# Examining ----------------------------------------------------------------------------------------------------------


def examine(source: Source, record: Mapping[str, Any], edition: Prompts) -> Examined:
    """Everything that can be checked of a run against its prompts. A fault of the run is a finding; only the hub's are raised."""
    findings: list[Finding] = []
    with TemporaryDirectory(prefix="t2i-parity-examined-") as made:
        try:
            settings = _settings(record)
            local = fetched(source, Path(made) / "fetched")
            if record["kind"] == "generation":
                rows = {row["prompt_id"]: row for row in edition.rows}
                limit = MAX_IMAGES_PER_PROMPT * len(rows)
                table = raw(source, local, "images", ["image_id", *PROMPT_COLUMNS, "seed_index", "seed", "status", "reason"], limit)
                faults, kept = _images(table.to_pylist(), rows, record["identity"])
                key, what = "image_id", f"{len(kept):,} images of {len({row['prompt_id'] for row in kept}):,} prompts, each once"
            else:
                rows = {row["prompt_id"]: row for row in edition.rows}
                limit = len(rows)
                faults, kept = _prompts(raw(source, local, "prompts", list(PROMPT_COLUMNS), limit).to_pylist(), rows)
                key, what = "prompt_id", f"{len(kept):,} prompts, each once"
            findings.append(Finding.of("rows", faults, what))
            if faults:
                return Examined(tuple(findings))
            staging = Path(made) / "run"
            run = Run(str(staging), dict(record))
            run.write_record()
            judges, faults = _staged(run, source, local, key, kept, limit)
            findings.append(Finding.of("observations", faults, f"by {', '.join(judges) or 'nobody'}, once an image or prompt"))
            if faults:
                return Examined(tuple(findings))
            scored = computed(run, settings)
            meanings = by_meaning(scored, {judge: run.observations(judge).read(["judge"])["judge"][0].as_py() for judge in judges})
            cells = _cells(run, kept, list(rows.values()))
        except InputError as error:
            return Examined((*findings, Finding.of("run", [str(error)], "")))
        except _ODD as error:
            return Examined((*findings, Finding.of("run", [f"nothing can be computed from this ({first_line(error)})"], "")))
    return Examined(tuple(findings), tuple(without_calibration(scored.scores)), cells, meanings)


def without_calibration(scores: Iterable[Score]) -> list[Score]:
    """The scores that a run alone can be asked for again: a calibration is no part of it, and so of no record either."""
    calibrated = {spec.name for spec in specs().values() if spec.place == "ceilings"}
    return [score for score in scores if score.metric not in calibrated]


def _settings(record: Mapping[str, Any]) -> ScoreSettings:
    scoring = record.get("scoring") or {}
    names = [each.name for each in fields(ScoreSettings)]
    if not set(names) <= set(scoring):
        missing = ", ".join(name for name in names if name not in scoring)
        raise InputError(f"run.json does not say how the scores were made (scoring lacks {missing}); score the run anew, and push it again")
    plain = ScoreSettings()
    for name in names:
        if type(scoring[name]) is not type(getattr(plain, name)):
            raise InputError(f"run.json: scoring.{name}: expected a {type(getattr(plain, name)).__name__}, got {scoring[name]!r}")
    found = ScoreSettings(**{name: scoring[name] for name in names if name != "calibration"})
    if not 0 <= found.n_resamples <= MAX_RESAMPLES:
        raise InputError(f"run.json: scoring.n_resamples: expected 0 to {MAX_RESAMPLES:,}, got {found.n_resamples:,}; score it anew")
    if found.tokenizer not in TOKENIZERS:
        raise InputError(
            f"run.json: scoring.tokenizer: expected one of {', '.join(TOKENIZERS)}, got {found.tokenizer!r}: a board's scores are made "
            "with a tokenizer that its keeper has too. Score with --tokenizer tekken"
        )
    return found


def _differing(row: Row, prompt: Row, where: str) -> list[str]:
    """Where a row says other things of its prompt than the prompt does; a null is left to the prompt."""
    return [
        f"{where}, column {name}: {_short(row[name])}, and the prompts have {_short(prompt[name])}"
        for name in PROMPT_COLUMNS
        if row[name] is not None and row[name] != prompt[name]
    ]


def _images(rows: Sequence[Row], prompts: Mapping[str, Row], identity: Mapping[str, Any]) -> tuple[list[str], list[Row]]:
    """What is wrong with image rows, and the rows with what the prompts say of themselves."""
    guardrail = identity.get("guardrail")
    made_by, guarded_by = fingerprint(identity["model"]), None if guardrail is None else fingerprint(guardrail)
    faults: list[str] = []
    kept: list[Row] = []
    seen: set[Any] = set()
    for number, row in enumerate(rows):
        where = f"images, row {number} ({_short(row['image_id'])})"
        prompt = prompts.get(row["prompt_id"])
        if row["image_id"] in seen:
            faults.append(f"{where} stands there twice")
            continue
        seen.add(row["image_id"])
        if prompt is None:
            faults.append(f"{where} answers {_short(row['prompt_id'])}, which is none of the prompts")
            continue
        faults += _differing(row, prompt, where)
        index = row["seed_index"]
        if not isinstance(index, int) or not 0 <= index < MAX_IMAGES_PER_PROMPT:
            faults.append(f"{where}, column seed_index: expected 0 to {MAX_IMAGES_PER_PROMPT - 1}, got {_short(index)}")
            continue
        if row["image_id"] != image_id(prompt["prompt_id"], prompt["text_sha256"], made_by, guarded_by, index):
            faults.append(f"{where}: this id is not that of the prompt, the model and the seed that the run names")
        if row["seed"] != seed_of(identity.get("seed", 0), prompt["pair_id"], index):
            faults.append(f"{where}, column seed: {_short(row['seed'])} is not the seed of this pair")
        kept.append({**row, **prompt})
    return faults, kept


def _prompts(rows: Sequence[Row], prompts: Mapping[str, Row]) -> tuple[list[str], list[Row]]:
    faults: list[str] = []
    kept: dict[str, Row] = {}
    for number, row in enumerate(rows):
        where = f"prompts, row {number} ({_short(row['prompt_id'])})"
        prompt = prompts.get(row["prompt_id"])
        if row["prompt_id"] in kept:
            faults.append(f"{where} stands there twice")
        elif prompt is None:
            faults.append(f"{where} is none of the prompts")
        else:
            faults += _differing(row, prompt, where)
            kept[row["prompt_id"]] = dict(prompt)
    return faults, list(kept.values())


def _staged(run: Run, source: Source, local: Folder, key: str, rows: Sequence[Row], limit: int) -> tuple[list[str], list[str]]:
    """Put a run together from rows and from the observations as they were handed in; returns the judges, and what is wrong."""
    faults: list[str] = []
    known = {row[key] for row in rows}
    if key == "image_id":
        schema = image_features().arrow_schema
        run.images().replace(pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema))
    else:
        run.prompts().replace(pa.Table.from_pylist(list(rows), schema=SCHEMA))
    judges = []
    for judge in local.names("observations"):
        parts = run.observations(judge)  # refuses a name that could leave the folder
        table = raw(source, local, f"observations/{judge}", None, limit)
        if not len(table):
            continue
        if missing := {key, "judge", "status"} - set(table.column_names):
            faults.append(f"observations/{judge} has no column {', '.join(sorted(missing))}")
            continue
        ids = table[key].to_pylist()
        if len(set(ids)) < len(ids):
            faults.append(f"observations/{judge}: {_short(next(each for each in ids if ids.count(each) > 1))} was observed twice")
        if unknown := next((each for each in ids if each not in known), None):
            faults.append(f"observations/{judge}: {_short(unknown)} is none of the {'images' if key == 'image_id' else 'prompts'}")
        parts.replace(table)
        judges.append(judge)
    if key == "prompt_id" and len(judges) > 1:
        faults.append(f"an audit of {len(judges)} instruments ({', '.join(judges)}), and a record is of one; give each a run of its own")
    if len(outcomes := raw(source, local, "outcomes", None, MAX_IMAGES_PER_PROMPT * max(limit, 1) * 10)):
        run.outcomes().replace(outcomes)
    return judges, faults


# Cells --------------------------------------------------------------------------------------------------------------


def _cells(run: Run, kept: Sequence[Row], prompts: Sequence[Prompt]) -> dict[str, tuple[Cell, ...]]:
    """For each subset that the run has rows of, how many rows the prompts have in each language or variety, and how many were observed."""
    answered = {judge: _answered(run, judge) for judge in run.judges()}
    subsets = dict.fromkeys(row["subset"] for row in kept)
    if run.record["kind"] == "generation":
        indices = {row["seed_index"] for row in kept}
        seen: dict[str, set[int]] = {}
        for row in kept:
            if row["status"] == "ok" and all(row["image_id"] in ids for ids in answered.values()):
                seen.setdefault(row["prompt_id"], set()).add(row["seed_index"])
        whole = {prompt_id for prompt_id, found in seen.items() if found == indices}
        return {
            subset: _counted((Group(language=row["language"]), row["prompt_id"] in whole) for row in prompts if row["subset"] == subset)
            for subset in subsets
        }
    pairs = by_subset(prompts)
    whole = {row["prompt_id"] for row in kept if all(row["prompt_id"] in ids for ids in answered.values())}
    return {
        subset: _counted(
            (pair.group, prompts[pair.reference]["prompt_id"] in whole and prompts[pair.other]["prompt_id"] in whole)
            for pair in pairs.get(subset, [])
        )
        for subset in subsets
        if subset in pairs
    }


def _answered(run: Run, judge: str) -> set[str]:
    parts = run.observations(judge)
    return {row[parts.key] for row in parts.read([parts.key, "status"]).to_pylist() if row["status"] == "ok"}


def _counted(rows: Iterable[tuple[Group, bool]]) -> tuple[Cell, ...]:
    counts: dict[Group, list[int]] = {}
    for group, observed in rows:
        count = counts.setdefault(group, [0, 0])
        count[0] += 1
        count[1] += observed
    return tuple(Cell(group=group, expected=expected, observed=observed) for group, (expected, observed) in counts.items())


# Comparing ----------------------------------------------------------------------------------------------------------


def differences(claimed: Iterable[Score], found: Iterable[Score]) -> list[str]:
    """Where scores differ from those computed anew: a value, a count, an interval, a signature, one too many or too few."""
    there, here = ({score.identity: score for score in scores} for scores in (claimed, found))
    faults = []
    for key, score in there.items():
        other = here.get(key)
        if other is None:
            near = next((each for each in here if each[:4] == key[:4]), None)
            signed = near and f"the signature {str(score.signature)!r} is claimed, and it is {str(near[4])!r}"
            faults.append(f"{_where(score)}: {signed or 'the run has no such score'}")
            continue
        for name, mine, its in (
            ("value", score.value, other.value),
            *zip(("low end", "high end"), score.ends, other.ends, strict=True),
        ):
            if not _equal(mine, its):
                faults.append(f"{_where(score)}: {name} {_number(mine)} is claimed, and the observations give {_number(its)}")
        for name, one, another in (
            ("n", score.n, other.n),
            ("n_missing", score.n_missing, other.n_missing),
            ("interval", _how(score), _how(other)),
            # Records of version 0.1 have none.
            ("reason", score.reason or other.reason, other.reason),
        ):
            if one != another:
                faults.append(f"{_where(score)}: {name} {_short(one)} is claimed, and it is {_short(another)}")
    return faults + [f"{_where(score)} is left out" for key, score in here.items() if key not in there]


def _where(score: Score) -> str:
    return f"{score.spec.name} of {score.group} on {score.subset}"


def _how(score: Score) -> tuple[float, str] | None:
    return None if score.interval is None else (score.interval.level, score.interval.method)


def _equal(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= TOLERANCE * max(1.0, abs(other))


def _number(value: float | None) -> str:
    return "no value" if value is None else f"{value:.6g}"


def _short(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
