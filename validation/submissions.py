"""Submissions to a board: the record of a scored run, proposed as a pull request, and the verdict on one from the hub alone.

A pull request to a results repository may add records, and do nothing else. The verdict takes the board's word for nothing that the record
says: it reads the published run at the commit that the record names, holds it against the prompts, and computes every score anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError, RevisionNotFoundError
from huggingface_hub.hf_api import RepoFile

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder import publish
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import Prompts
from t2i_parity.generate.run import Run
from t2i_parity.metrics.scores import Score
from t2i_parity.validation.by_meaning import differences_by_meaning
from t2i_parity.validation.examination import (
    Examined,
    Finding,
    Source,
    differences,
    examine,
    open_edition,
    told,
    without_calibration,
)
from t2i_parity.validation.results import (
    FOLDER,
    MAX_BYTES,
    Cell,
    ResultRecord,
    Results,
    ScoredModel,
    Submitter,
    digest,
    faults_of_addition,
    is_hub_id,
    new_record,
    parse,
    read_results,
)

_PATH = re.compile(rf"{FOLDER}(/[A-Za-z0-9_][A-Za-z0-9._-]*){{3}}")
_PULL = re.compile(r"refs/pr/(\d+)")


# Making a submission ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Checked:
    """A run on a disk that was found to be what it says, and the prompts that it answered."""

    run: Run
    edition: Prompts
    examined: Examined
    scores: tuple[Score, ...]

    @property
    def subsets(self) -> list[str]:
        """The subsets that have scores and cells."""
        scored = dict.fromkeys(score.subset for score in self.scores)
        return [subset for subset in scored if subset in self.examined.cells]

    def incomplete(self, subset: str) -> list[Cell]:
        """The cells of a subset in which something is missing."""
        return [cell for cell in self.examined.cells[subset] if not cell.complete]


def check(url: str, prompts: Sequence[str]) -> Checked:
    """Examine a scored run before it is handed in; ``prompts`` are where its prompts may be found, its own word is asked last.

    Raises InputError for a run without scores and for one whose prompts are not found. Faults are among the findings.
    """
    run = Run.open(url)
    scores = without_calibration(run.scores())
    if not scores:
        raise InputError(f"{url} has no scores to submit; make them first: t2i-parity score {url} --tokenizer tekken")
    edition = open_edition(_places(prompts, run.record), run.record)
    examined = examine(Source(url), run.record, edition)
    finding = Finding.of("scores", differences(scores, examined.scores), f"all {len(scores):,} come out again from the observations")
    findings = (*examined.findings, finding) if examined.scores else examined.findings
    return Checked(run, edition, replace(examined, findings=findings), tuple(scores))


def _places(prompts: Sequence[str], record: Mapping[str, Any]) -> list[str]:
    """Where to look for a run's prompts: the places that are named, or else the hub repository that the run names."""
    if prompts:
        return list(prompts)
    asked = record["identity"]["prompts"]
    name, revision = str(asked.get("repository")), asked.get("revision")
    if not is_hub_id(name):
        raise InputError(
            f"the run's prompts are called {told(name)!r}, which is no repository of the hub; say where they are: --prompts DIR_OR_HUB_ID"
        )
    return [f"{name}@{revision}" if revision else name]


@dataclass(frozen=True, slots=True)
class Published:
    """Where a run lies on the hub."""

    repository: str
    commit: str


def published(repository: str, checked: Checked) -> Published:
    """The newest commit of a run's repository. Raises InputError when what lies there is not this run, or not its scores."""
    target = publish.Target(repository)
    info = publish.patiently("look at the run", target, lambda: HfApi().dataset_info(repository))
    commit = str(info.sha)
    there = run_record(repository, commit)
    if digest(there["identity"]) != digest(checked.run.record["identity"]) or there["kind"] != checked.run.record["kind"]:
        raise InputError(f"{repository} holds another run than {checked.run.url}; push this one: {_push(checked, repository)}")
    if there.get("scoring") != checked.run.record.get("scoring"):
        raise InputError(f"{repository} holds this run with other scores; push it again: {_push(checked, repository)}")
    file = publish.patiently(
        "fetch the scores", target, lambda: hf_hub_download(repository, "scores.json", repo_type="dataset", revision=commit)
    )
    # Signatures that version 0.1 wrote are read by those of the judges, which stand in the run's own record.
    if differences(checked.scores, without_calibration(Run(str(Path(file).parent), checked.run.record).scores())):
        raise InputError(f"{repository} holds this run with other scores; push it again: {_push(checked, repository)}")
    return Published(repository, commit)


def _push(checked: Checked, repository: str) -> str:
    return f"t2i-parity push {checked.run.url} --to {repository}"


def records(
    checked: Checked,
    subsets: Iterable[str],
    *,
    model: ScoredModel,
    submitter: str,
    place: Published | None,
    results: Results,
    submitted: datetime,
) -> list[ResultRecord]:
    """The records to hand in, one a subset; each names the one of ``results`` that it supersedes.

    Raises InputError for what no record may hold, and for what cannot be added to the board.
    """
    made = []
    for subset in subsets:
        parts: dict[str, Any] = {
            "model": model,
            "subset": subset,
            "cells": checked.examined.cells[subset],
            "by_meaning": checked.examined.by_meaning.get(subset, ()),
            "submitter": Submitter(user=submitter),
            "submitted": submitted,
            "repository": None if place is None else place.repository,
            "revision": None if place is None else place.commit,
        }
        record = new_record(checked.run.record, checked.scores, **parts)
        if earlier := results.replaced(record):
            record = new_record(checked.run.record, checked.scores, **parts, supersedes=earlier[-1].record.id)
            if stable(earlier[-1].record) == stable(record):
                raise InputError(f"the board has just this result already: {earlier[-1].path}")
        made.append(record)
    return made


def stable(record: ResultRecord) -> dict[str, Any]:
    """What a record says apart from when it was handed in, and what it supersedes: two with the same one tell the same."""
    content = record.model_dump(mode="json")
    return {name: value for name, value in content.items() if name not in ("submitted", "supersedes")}


def title(made: Sequence[ResultRecord]) -> str:
    """The title of the pull request: the same for the same records, whenever they are handed in."""
    model = made[0].model
    same = digest([stable(record) for record in made])[:12]
    return f"Result: {model.id} at {model.revision[:12]} on {', '.join(record.subset for record in made)}, {same}"


def handed_in(board: str, wanted: str) -> datetime | None:
    """When the records of an open pull request of that title were handed in, so that a second run finds them again; None without one."""
    target = publish.Target(board)
    found = publish.patiently(
        "list the pull requests",
        target,
        lambda: list(HfApi().get_repo_discussions(board, repo_type="dataset", discussion_type="pull_request", discussion_status="open")),
    )
    for pull in found:
        if pull.title != wanted:
            continue
        revision = f"refs/pr/{pull.num}"
        known = {file.path for file in read_results(board).files} if _has_results(board, None) else set()
        added = [file for file in read_results(board, revision).files if file.path not in known] if _has_results(board, revision) else []
        if added:
            return added[0].record.submitted
    return None


def board_results(board: str, revision: str | None = None) -> Results:
    """The records of a board on the hub, none in one that is new. Raises InputError when there is no such repository."""
    return read_results(board, revision) if _has_results(board, revision) else Results(())


def _has_results(board: str, revision: str | None) -> bool:
    return any(path.startswith(f"{FOLDER}/") for path in _tree(board, revision))


# The verdict --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RecordVerdict:
    """What was found about one record of a submission; ``record`` is None where the file is none."""

    path: str
    record: ResultRecord | None
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found about a submission at one commit."""

    source: str
    commit: str
    author: str
    findings: tuple[Finding, ...]
    records: tuple[RecordVerdict, ...]

    @property
    def all(self) -> list[tuple[str, Finding]]:
        """Every finding, with the path that it is about ('' for the whole)."""
        return [("", finding) for finding in self.findings] + [(each.path, found) for each in self.records for found in each.findings]

    @property
    def accepted(self) -> bool:
        """Whether it may be merged: it adds a record, and nothing is at fault."""
        return bool(self.records) and all(finding.verdict != "fault" for _, finding in self.all)

    def as_json(self) -> JsonObject:
        """The whole verdict as plain values."""
        return {
            "source": self.source,
            "commit": self.commit,
            "author": self.author,
            "accepted": self.accepted,
            "findings": [{"path": told(path), "check": f.check, "verdict": f.verdict, "told": f.told} for path, f in self.all],
        }


def split_source(source: str) -> tuple[str, str]:
    """(repository, revision) of a submission's address. Raises InputError for anything else.

    >>> split_source("lab/board-results@refs/pr/1")
    ('lab/board-results', 'refs/pr/1')
    """
    board, at, revision = source.partition("@")
    if not at or not is_hub_id(board) or _PULL.fullmatch(revision) is None:
        raise InputError(f"{source!r} is no submission; expected NAMESPACE/RESULTS@refs/pr/NUMBER, a pull request to a results repository")
    return board, revision


def judge(source: str, prompts: Sequence[str] = ()) -> Verdict:
    """The verdict on a pull request to a results repository, from the hub alone.

    ``prompts`` are the board's own, as hub ids (with ``@revision`` where that matters) or folders; without any, those that each record
    names are taken. Raises InputError when the board cannot be read; everything else is a finding.
    """
    board, revision = split_source(source)
    target = publish.Target(board)
    details = publish.patiently(
        "look at the pull request", target, lambda: HfApi().get_discussion_details(board, int(revision.split("/")[-1]), repo_type="dataset")
    )
    main, head, base = _commits(board, revision)
    before, after = _tree(board, base), _tree(board, head)
    added = sorted(path for path in after if path not in before)
    changed = [path for path in sorted(after) if path in before and after[path] != before[path]]
    faults = [f"{path} is changed, and a record is never overwritten" for path in changed]
    faults += [f"{path} is deleted, and a record is never taken away" for path in sorted(before) if path not in after]
    faults += [f"{path} is no record's place; a submission adds records, and nothing else" for path in added if not _PATH.fullmatch(path)]
    findings = [Finding.of("changes", faults, f"{len(added)} file{'s' if len(added) != 1 else ''} added, nothing else touched")]
    if not added:
        findings.append(Finding("changes", "fault", "no record is added"))
    if details.status not in ("open", "draft"):
        findings.append(Finding("pull request", "note", f"it is {details.status} already"))
    results = board_results(board, main)
    verdicts = []
    for path in filter(_PATH.fullmatch, added):
        verdict = _record_verdict(board, head, path, after[path][1], results, str(details.author), prompts)
        if verdict.record is not None:
            results = results.having(path, verdict.record)
        verdicts.append(verdict)
    return Verdict(source, head, str(details.author), tuple(findings), tuple(verdicts))


def _commits(board: str, revision: str) -> tuple[str, str, str]:
    """The commits of main, of the pull request, and of where the one left the other."""

    def history(at: str) -> list[str]:
        found = publish.patiently(
            "list the commits",
            publish.Target(board),
            lambda: HfApi().list_repo_commits(board, repo_type="dataset", revision=at),
        )
        return [commit.commit_id for commit in found]

    main, proposed = history("main"), history(revision)
    known = set(main)
    base = next((commit for commit in proposed if commit in known), None)
    if base is None:
        raise InputError(f"{board}@{revision} has no commit in common with main, so that nobody can say what it changes")
    return main[0], proposed[0], base


def _tree(board: str, revision: str | None) -> dict[str, tuple[str, int]]:
    """(id of its content, bytes) of every file."""
    entries = publish.patiently(
        "list the files",
        publish.Target(board),
        lambda: list(HfApi().list_repo_tree(board, recursive=True, revision=revision, repo_type="dataset")),
    )
    return {entry.path: (entry.blob_id, entry.size) for entry in entries if isinstance(entry, RepoFile)}


def _record_verdict(board: str, commit: str, path: str, size: int, results: Results, author: str, prompts: Sequence[str]) -> RecordVerdict:
    try:
        if size > MAX_BYTES:
            raise InputError(f"{size:,} bytes, and a result record has at most {MAX_BYTES:,}")
        file = publish.patiently(
            "fetch the record", publish.Target(board), lambda: hf_hub_download(board, path, repo_type="dataset", revision=commit)
        )
        record = parse(Path(file).read_bytes(), path)
    except InputError as error:
        return RecordVerdict(path, None, (Finding.of("record", [str(error)], ""),))
    model = record.model
    faults = faults_of_addition(results, path, record, datetime.now(timezone.utc))
    findings = [Finding.of("record", faults, f"{model.id} at {model.revision} on {record.subset}")]
    by = record.submitter.user
    differs = [] if by == author else [f"it says that {by} hands it in, and {author} opened the pull request"]
    findings.append(Finding.of("submitter", differs, by))
    findings += _run_findings(record, prompts)
    findings.append(_model_finding(record))
    return RecordVerdict(path, record, tuple(findings))


def _run_findings(record: ResultRecord, prompts: Sequence[str]) -> list[Finding]:
    """The published run that a record names, held against the record and against the prompts."""
    repository, revision = record.run.repository, record.run.revision
    if repository is None or revision is None:
        return [Finding("run", "fault", "the record names no published run, so that nothing can be checked; submit with --results-dataset")]
    try:
        source = Source.published(repository, revision)
        there = run_record(repository, revision)
        faults = _differs_from_run(record, there)
        findings = [Finding.of("run", faults, f"{repository} at {revision[:12]}")]
        if faults:
            return findings
        edition = open_edition(_places(prompts, there), there)
        whose = "the board's" if prompts else "those that the record names"
        name = f"{whose}: {edition.origin['repository']}, {record.prompts.content_sha256[:12]}"
        findings.append(Finding("prompts", "holds" if prompts else "note", told(name)))
        examined = examine(source, there, edition)
    except InputError as error:
        return [Finding.of("run", [str(error)], "")]
    findings += examined.findings
    if not examined.scores:
        return findings
    found = [score for score in examined.scores if score.subset == record.subset]
    record = record.unfolded({score.signature for score in found})
    faults = [
        f"{entry.where}: {entry.direction} and {entry.unit} are claimed, and it is {score.spec.direction} and {score.spec.unit}"
        for entry, score in zip(record.scores, record.read(), strict=True)
        if (entry.direction, entry.unit) != (score.spec.direction, score.spec.unit)
    ]
    faults += differences(record.read(), found)
    faults += differences_by_meaning(record.by_meaning, examined.by_meaning.get(record.subset, ()))
    findings.append(Finding.of("scores", faults, f"all {len(found):,} come out again from the observations"))
    findings.append(_cells_finding(record, examined.cells.get(record.subset, ())))
    if there["kind"] == "generation":
        made = there["identity"]["model"]
        name = str(made.get("model"))
        other = made.get("revision")
        if name != record.model.id:
            findings.append(Finding("made by", "note", told(f"the run says {name!r}; that this is {record.model.id}, its submitter says")))
        elif other is not None and other != record.model.revision:
            findings.append(Finding("made by", "fault", told(f"the run is of the revision {other}, the record of {record.model.revision}")))
        else:
            findings.append(Finding("made by", "holds", told(name)))
    return findings


def _differs_from_run(record: ResultRecord, there: Mapping[str, Any]) -> list[str]:
    faults = []
    if record.run.digest != digest(there["identity"]):
        faults.append("the record's digest is not that of the published run: it is of another model, seed, guardrail or other prompts")
    if record.run.kind != there["kind"]:
        faults.append(f"kind: {record.run.kind} in the record, {there['kind']} in the run")
    if there.get("started") != record.run.started.isoformat(timespec="seconds"):
        faults.append(f"started: {record.run.started.isoformat()} in the record, {there.get('started')} in the run")
    asked = there["identity"]["prompts"]
    for name, value in record.prompts.model_dump().items():
        if asked.get(name) != value:
            faults.append(f"prompts.{name}: {value!r} in the record, {asked.get(name)!r} in the run")
    return faults


def _cells_finding(record: ResultRecord, cells: Sequence[Cell]) -> Finding:
    there, here = ({cell.group: (cell.observed, cell.expected) for cell in each} for each in (record.cells, cells))
    faults = [
        f"{group}: {_of(there.get(group))} in the record, {_of(here.get(group))} in the run and its prompts"
        for group in dict.fromkeys([*here, *there])
        if there.get(group) != here.get(group)
    ]
    if not faults and record.incomplete:
        missing = "; ".join(f"{cell.group} {cell.observed} of {cell.expected}" for cell in record.incomplete)
        return Finding("cells", "note", told(f"incomplete, so that it is shown and not ranked: {missing}"))
    return Finding.of("cells", faults, f"{len(cells)} cells, each of them complete")


def _of(cell: tuple[int, int] | None) -> str:
    return "no cell" if cell is None else f"{cell[0]:,} of {cell[1]:,} rows"


def _model_finding(record: ResultRecord) -> Finding:
    """Whether the hub has the model. One that it does not have may be a service's, and is no fault."""
    if record.run.kind != "generation":
        return Finding("model", "note", "of a filter or guardrail; whether the hub has it was not asked")

    def ask() -> str:
        try:
            HfApi().model_info(record.model.id, revision=record.model.revision)
        except GatedRepoError:
            return ""
        except RevisionNotFoundError:
            return "the hub has the model, and not at this revision"
        except RepositoryNotFoundError:
            return "the hub has no such model that can be seen; a service's has no repository"
        return ""

    try:
        found = publish.patiently("look at the model", publish.Target(record.model.id, type="model"), ask)
    except InputError as error:
        found = str(error)
    return Finding("model", "note" if found else "holds", told(found or f"{record.model.id} at {record.model.revision}"))


# The hub ------------------------------------------------------------------------------------------------------------


def run_record(repository: str, commit: str) -> dict[str, Any]:
    """The run.json of a published run, as far as it is relied on. Raises InputError when it is none."""
    where = f"run.json of {repository} at {commit[:12]}"

    def fetch() -> str | None:
        there = HfApi().get_paths_info(repository, ["run.json"], revision=commit, repo_type="dataset")
        if not there:
            return None
        if not isinstance(there[0], RepoFile) or there[0].size > MAX_BYTES:
            raise InputError(f"{where} is no record: at most {MAX_BYTES:,} bytes are fetched")
        return str(hf_hub_download(repository, "run.json", repo_type="dataset", revision=commit))

    file = publish.patiently("fetch the run's record", publish.Target(repository), fetch)
    if file is None:
        raise InputError(f"{repository} is no published run: it has no run.json. Push one: t2i-parity push RUN --to {repository}")
    try:
        record = json.loads(Path(file).read_bytes())
        digest(record)  # what has no canonical form, such as NaN, is no JSON either
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where} is not valid JSON") from error
    identity = record.get("identity") if isinstance(record, dict) else None
    prompts = identity.get("prompts") if isinstance(identity, dict) else None
    made = isinstance(identity, dict) and (record.get("kind") == "audit" or isinstance(identity.get("model"), dict))
    scoring = isinstance(record, dict) and isinstance(record.get("scoring"), dict)
    if not isinstance(prompts, dict) or not isinstance(prompts.get("content_sha256"), str) or not made or not scoring:
        raise InputError(f"{where} is not the record of a scored run: it lacks identity.prompts, identity.model or scoring")
    if record.get("kind") not in ("generation", "audit"):
        raise InputError(f"{where}: kind: expected generation or audit, got {record.get('kind')!r}")
    found: dict[str, Any] = record
    return found
