"""Files to the hub: what would change there, then all of it in one commit. The one place that writes to a repository.

Nothing is pushed blindly: a plan names the head that it was made for, the commit is given that head as its parent, and where it has
moved the plan is made anew. Large files go first and are kept by the hub, so that an interrupted push sends only what is missing.
"""

from __future__ import annotations

import email.utils
import hashlib
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError
from huggingface_hub.hf_api import DatasetInfo, ModelInfo, RepoFile, SpaceInfo
from huggingface_hub.utils._validators import validate_repo_id

from t2i_parity.dataset_builder.errors import InputError, first_line

TRIES = 5
LONGEST_WAIT = 600.0
"""Seconds. Whoever is asked to wait longer is told so, and comes back later."""

PASSING = (408, 429, 500, 502, 503, 504)
"""Answers after which the same request may succeed."""

CONFLICTS = (409, 412)
"""Answers that say that somebody else is writing, or has written."""

# The base of what the client's own HTTP library raises, which is httpx or httpx2 by its version.
_HTTP_ERROR = cast("type[Exception]", HfHubHTTPError.__mro__[1])
_FAILURES = (_HTTP_ERROR, OSError, RuntimeError, ValueError)

T = TypeVar("T")
GATES = ("auto", "manual")
Kind = Literal["added", "changed", "deleted", "unchanged"]
RepoType = Literal["dataset", "model", "space"]
Info = DatasetInfo | ModelInfo | SpaceInfo
_PREFIX: Mapping[RepoType, str] = {"dataset": "datasets/", "model": "", "space": "spaces/"}


class Content(Protocol):
    """What is published: its files by their path on the hub, the commit's title and body, and what there is an old file of its own.

    The title is the same for the same content, by which an open pull request of an earlier push is found again.
    """

    @property
    def files(self) -> Mapping[str, Path]:
        """The local files."""

    @property
    def message(self) -> tuple[str, str]:
        """Title and body of the commit."""

    def replaces(self, path: str) -> bool:
        """Whether a file that is there, and not among ours, is to go."""


@dataclass(frozen=True, slots=True)
class Files:
    """Plain files as content, which replaces nothing else."""

    files: Mapping[str, Path]
    message: tuple[str, str]

    def replaces(self, path: str) -> bool:
        """Nothing."""
        return False


@dataclass(frozen=True, slots=True)
class Target:
    """Where to: a repository, and how it is to be there.

    ``revision`` is a branch or a pull request (``refs/pr/3``) that is gone on with, main where it is None; ``create_pr`` opens a new
    one. ``gate`` closes the repository to whoever has not asked, before a row is sent. A new Space runs on ``sdk``. Raises InputError for
    what cannot be meant.
    """

    repo_id: str
    revision: str | None = None
    create_pr: bool = False
    private: bool = False
    gate: str | None = None
    type: RepoType = "dataset"
    sdk: str | None = None

    def __post_init__(self) -> None:
        try:
            validate_repo_id(self.repo_id)
        except HFValidationError as error:
            raise InputError(f"{self.repo_id!r} is no name of a repository ({first_line(error)}); expected NAMESPACE/NAME") from error
        if self.repo_id.count("/") != 1:
            raise InputError(f"{self.repo_id!r} is no name of a repository; expected NAMESPACE/NAME, as in me/t2i-parity-prompts")
        if self.gate is not None and self.gate not in GATES:
            raise InputError(f"unknown gate {self.gate!r}: expected one of {', '.join(GATES)}")
        if self.create_pr and self.revision is not None:
            raise InputError(f"--revision {self.revision} goes on with what is there, and --pr opens a new pull request: give one of them")

    @property
    def url(self) -> str:
        """The address of its page."""
        return f"{HfApi().endpoint}/{_PREFIX[self.type]}{self.repo_id}"


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one file; ``there`` is the hub's id of its content now, None where it has none."""

    kind: Kind
    path: str
    size: int
    there: str | None


@dataclass(frozen=True, slots=True)
class Plan:
    """What a push would do to the repository as it is at ``head``; None where there is no repository yet."""

    target: Target
    head: str | None
    private: bool
    gated: Literal["auto", "manual", False]
    files: tuple[Change, ...]
    kept: tuple[str, ...]

    @property
    def changes(self) -> tuple[Change, ...]:
        """The files that do not stay as they are."""
        return tuple(change for change in self.files if change.kind != "unchanged")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a push: the commit that holds the release now, and whether this push made it."""

    url: str
    commit: str
    revision: str
    made: bool


# What would change --------------------------------------------------------------------------------------------------


def plan(content: Content, target: Target) -> Plan:
    """What a push would do. Reads only; raises InputError when the hub does not let itself be read, or has it otherwise than asked."""
    info = _look(target)
    if info is None:
        if target.create_pr or target.revision is not None:
            raise InputError(
                f"the hub has no {target.type} {target.repo_id} that you may see, so nothing can be proposed there; push it once without "
                "--pr and --revision, or check the name and your login (hf auth whoami)"
            )
        files = tuple(Change("added", path, local.stat().st_size, None) for path, local in sorted(content.files.items()))
        return Plan(target, None, target.private, False, files, ())
    if target.private and not info.private:
        raise InputError(
            f"--private was asked for, and {target.repo_id} is public on the hub: make it private in its settings there, or leave "
            "--private out"
        )
    return _plan(content, target, info)


def _plan(content: Content, target: Target, info: Info, at: str | None = None) -> Plan:
    head = at or info.sha
    entries = patiently(
        "list the files", target, lambda: list(HfApi().list_repo_tree(target.repo_id, recursive=True, revision=head, repo_type=target.type))
    )
    there = {entry.path: entry for entry in entries if isinstance(entry, RepoFile)}
    files: list[Change] = []
    for path, local in sorted(content.files.items()):
        size, remote = local.stat().st_size, there.get(path)
        kind: Kind = "added" if remote is None else "unchanged" if _same(local, size, remote) else "changed"
        files.append(Change(kind, path, size, remote.blob_id if remote else None))
    others = sorted(set(there) - set(content.files))
    stale = [path for path in others if content.replaces(path)]
    files += [Change("deleted", path, there[path].size, there[path].blob_id) for path in stale]
    kept = tuple(path for path in others if path not in stale)
    return Plan(target, head, bool(info.private), getattr(info, "gated", None) or False, tuple(files), kept)


def _look(target: Target) -> Info | None:
    """The repository at the target's revision, None when the hub says that there is none."""

    def ask() -> Info | None:
        try:
            return cast("Info", HfApi().repo_info(target.repo_id, revision=target.revision, repo_type=target.type))
        except GatedRepoError:
            raise
        except RepositoryNotFoundError as error:
            if error.response.status_code == 404:
                return None
            raise

    return patiently("look at the repository", target, ask)


def _same(local: Path, size: int, remote: RepoFile) -> bool:
    """Whether the hub has just this content, without downloading it: SHA-256 of a large file, git's id of a small one."""
    if size != remote.size:
        return False
    if remote.lfs is not None:
        return _digest(local, "sha256") == remote.lfs.sha256
    return _digest(local, "sha1", b"blob %d\0" % size) == remote.blob_id


def _digest(local: Path, algorithm: str, before: bytes = b"") -> str:
    digest = hashlib.new(algorithm, before, usedforsecurity=False)
    with open(local, "rb") as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()


# Changing it --------------------------------------------------------------------------------------------------------


def push(content: Content, planned: Plan) -> Outcome:
    """Carry out a plan in one commit, or find that there is nothing to do.

    Raises InputError when the hub refuses, stays unreachable, or was changed meanwhile in what this push would change.
    """
    target = planned.target
    if planned.head is None:
        planned = _created(content, target)
    _close(planned)
    if not planned.changes:
        return _nothing(planned)
    message, description = content.message
    if target.create_pr and (known := _proposed(content, target, message)) is not None:
        return known
    operations = list(_operations(content, planned))
    additions = [operation for operation in operations if isinstance(operation, CommitOperationAdd)]
    try:
        # Tries again by itself, file by file; what the hub has already is not sent.
        HfApi().preupload_lfs_files(
            target.repo_id,
            additions,
            repo_type=target.type,
            revision=target.revision,
            create_pr=target.create_pr,
            free_memory=False,
        )
    except _FAILURES as error:
        raise _explained(error, "send the files", target) from error
    return _commit(content, planned, operations, message, description)


def _operations(content: Content, planned: Plan) -> Iterator[CommitOperationAdd | CommitOperationDelete]:
    for change in planned.changes:
        if change.kind == "deleted":
            yield CommitOperationDelete(change.path, is_folder=False)
        else:
            yield CommitOperationAdd(change.path, content.files[change.path])


def _created(content: Content, target: Target) -> Plan:
    patiently(
        "create the repository",
        target,
        lambda: HfApi().create_repo(
            target.repo_id, repo_type=target.type, private=True if target.private else None, exist_ok=True, space_sdk=target.sdk
        ),
    )
    planned = plan(content, target)
    if planned.head is None:
        raise InputError(f"the hub says both that {target.repo_id} exists and that it does not; try again, or choose another name")
    return planned


def _close(planned: Plan) -> None:
    """Put the repository behind its gate, and make sure that it is, before anything is sent. A closer gate than asked for stays."""
    target = planned.target
    if target.gate is None or planned.gated in (target.gate, "manual"):
        return
    gate: Literal["auto", "manual"] = "manual" if target.gate == "manual" else "auto"
    patiently("set the gate", target, lambda: HfApi().update_repo_settings(target.repo_id, repo_type=target.type, gated=gate))
    info = _look(replace(target, revision=None))
    if info is None or not info.gated:
        raise InputError(f"{target.repo_id} is still open after its gate was set; nothing was sent. Set it in its settings on the hub")


def _commit(
    content: Content, planned: Plan, operations: list[CommitOperationAdd | CommitOperationDelete], message: str, description: str
) -> Outcome:
    target = planned.target
    for attempt in range(1, TRIES + 1):
        try:
            done = HfApi().create_commit(
                target.repo_id,
                operations,
                commit_message=message,
                commit_description=description,
                repo_type=target.type,
                revision=target.revision,
                create_pr=target.create_pr,
                parent_commit=planned.head,
            )
        except _FAILURES as error:
            status = _status(error)
            if attempt == TRIES or not (_may_pass(error) or status in CONFLICTS):
                raise _explained(error, "commit", target) from error
            if status != 412:
                _pause(error, attempt, target)
            known = _found_again(content, planned, message)
            if isinstance(known, Outcome):
                return known
            planned = known
        else:
            revision = str(done.pr_revision) if target.create_pr else target.revision or "main"
            _check_arrived(content, target, done.oid)
            return Outcome(str(done.pr_url or done.commit_url), done.oid, revision, made=True)
    raise AssertionError("the last try returns or raises")


def _found_again(content: Content, planned: Plan, message: str) -> Plan | Outcome:
    """After a commit that failed: its outcome where only the answer was lost, else the plan for the repository as it is now.

    Raises InputError when the plan would be another one than was shown.
    """
    target = planned.target
    if target.create_pr and (known := _proposed(content, target, message)) is not None:
        return replace(known, made=True)
    fresh = plan(content, target)
    if not fresh.changes:
        return replace(_nothing(fresh), made=True)
    if fresh.changes != planned.changes:
        paths = sorted({change.path for change in set(fresh.changes) ^ set(planned.changes)})
        raise InputError(
            f"{target.repo_id} was changed on the hub while this push ran, in {', '.join(paths)}; nothing was committed. Look at it, then "
            "run the same command again: what was sent is not sent twice"
        )
    return fresh


def _proposed(content: Content, target: Target, message: str) -> Outcome | None:
    """An open pull request that proposes just this, None where there is none."""
    found = patiently(
        "list the pull requests",
        target,
        lambda: list(
            HfApi().get_repo_discussions(target.repo_id, repo_type=target.type, discussion_type="pull_request", discussion_status="open")
        ),
    )
    for pull in found:
        if pull.title == message:
            there = plan(content, replace(target, revision=f"refs/pr/{pull.num}", create_pr=False))
            if not there.changes:
                return replace(_nothing(there), url=pull.url)
    return None


def _nothing(planned: Plan) -> Outcome:
    target = planned.target
    return Outcome(f"{target.url}/commit/{planned.head}", str(planned.head), target.revision or "main", made=False)


def _check_arrived(content: Content, target: Target, commit: str) -> None:
    info = _look(replace(target, revision=commit, create_pr=False))
    if info is None:
        raise InputError(f"{target.repo_id} is gone right after the commit {commit}; look at it on the hub")
    missing = [change.path for change in _plan(content, target, info, at=commit).changes]
    if missing:
        raise InputError(
            f"the hub took the commit {commit} of {target.repo_id} without {', '.join(missing)}; a .gitignore there may name them. "
            "Change it, and run the same command again"
        )


def tags(target: Target) -> dict[str, str]:
    """The repository's tags, each with its commit."""
    refs = patiently("list the tags", target, lambda: HfApi().list_repo_refs(target.repo_id, repo_type=target.type))
    return {ref.name: ref.target_commit for ref in refs.tags}


def tag(target: Target, name: str, commit: str) -> None:
    """Tag a commit, unless the tag is there. Raises InputError when the hub refuses."""
    patiently(
        f"set the tag {name}",
        target,
        lambda: HfApi().create_tag(target.repo_id, tag=name, revision=commit, repo_type=target.type, exist_ok=True),
    )


# Errors -------------------------------------------------------------------------------------------------------------


def patiently(doing: str, target: Target, call: Callable[[], T]) -> T:
    """The answer of a call that may be made again, tried again while the hub is busy or unreachable."""
    for attempt in range(1, TRIES + 1):
        try:
            return call()
        except _FAILURES as error:
            if attempt == TRIES or not _may_pass(error):
                raise _explained(error, doing, target) from error
            _pause(error, attempt, target)
    raise AssertionError("the last try returns or raises")


def _cause(error: BaseException) -> BaseException:
    """What went wrong; the client wraps a failed upload in a RuntimeError that says only which file it was."""
    return error.__cause__ if isinstance(error, RuntimeError) and error.__cause__ is not None else error


def _answer(error: BaseException) -> Any:
    return getattr(_cause(error), "response", None)


def _status(error: BaseException) -> int | None:
    status: int | None = getattr(_answer(error), "status_code", None)
    return status


def _may_pass(error: BaseException) -> bool:
    status = _status(error)
    # Without an answer: no connection, a broken one, or too late.
    return status in PASSING if status is not None else isinstance(_cause(error), _HTTP_ERROR)


def _pause(error: BaseException, attempt: int, target: Target) -> None:
    """Wait as long as the hub asks for, or twice as long as the time before."""
    asked = asked_to_wait(getattr(_answer(error), "headers", {}))
    if asked is not None and asked > LONGEST_WAIT:
        raise InputError(
            f"the hub asks to wait {asked:.0f} seconds before {target.repo_id} is asked for again. Run the same command then: what was "
            "sent is not sent twice"
        ) from error
    seconds = 2.0 ** (attempt - 1) if asked is None else asked
    told = _status(error) or first_line(_cause(error))
    print(f"{target.repo_id}: {told}; trying again in {seconds:.0f} s ({attempt + 1} of {TRIES})", file=sys.stderr)
    time.sleep(seconds)


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """The seconds that an answer asks to wait: Retry-After (seconds or a date), or the reset of a used-up rate limit.

    >>> asked_to_wait({"retry-after": "3"}), asked_to_wait({"ratelimit": '"api";r=0;t=55'}), asked_to_wait({})
    (3.0, 55.0, None)
    """
    after = headers.get("retry-after", "").strip()
    if after.isdigit():
        return float(after)
    if after:
        try:
            return max(0.0, email.utils.parsedate_to_datetime(after).timestamp() - time.time())
        except ValueError:
            pass
    limit = re.search(r"r=0;t=(\d+)", headers.get("ratelimit", ""))
    return float(limit[1]) if limit else None


def _explained(error: BaseException, doing: str, target: Target) -> InputError:
    """What a person can do about a failure."""
    cause, status = _cause(error), _status(error)
    said = " ".join(str(getattr(cause, "server_message", None) or "").split())
    told = f"{status}: {said}" if status and said else str(status or textwrap.shorten(f"{type(cause).__name__}: {cause}", 240))
    namespace = target.repo_id.split("/")[0]
    failed = f"could not {doing} ({told}) at {target.repo_id}"
    if isinstance(cause, GatedRepoError):
        return InputError(f"{failed}: it is behind a gate. Ask for access on {target.url}, then run the same command again")
    if status == 401:
        return InputError(
            f"{failed}: the hub does not know who you are. Log in with: hf auth login, or put a token with write rights into HF_TOKEN"
        )
    if status == 403:
        return InputError(
            f"{failed}: you have no rights for that there. It takes a token that may write (hf auth login) and, where {namespace} is an "
            "organisation, write rights in it; without them propose the change with --pr"
        )
    if status == 404:
        revision = f" with the revision {target.revision}" if target.revision else ""
        return InputError(
            f"{failed}: there is no such {target.type}{revision} that you may see. Check the name, and your login (hf auth whoami)"
        )
    if not _may_pass(error) and status not in CONFLICTS:
        return InputError(failed if status is None else f"{failed}: the hub refused it")
    return InputError(f"{failed}, tried {TRIES} times or more. Run the same command later: what was sent is not sent twice")
