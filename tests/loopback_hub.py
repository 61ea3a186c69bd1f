"""A hub on this machine: the endpoints that huggingface_hub, datasets and evaluate call, in memory, with faults on demand.

    with LoopbackHub() as hub:
        hub.fail(429, headers={"Retry-After": "0"}, path="/preupload/")
        run_client("import huggingface_hub as h; print(h.create_repo('lab/prompts', repo_type='dataset'))", hub, tmp_path)
        assert hub.calls_to("/api/repos/create")[0].user == OWNER

The client libraries read HF_ENDPOINT when they are imported, so a client runs in a process of its own: ``run_client``. By hand:
``python tests/loopback_hub.py 8080``, then ``HF_ENDPOINT=http://127.0.0.1:8080 HF_HUB_DISABLE_XET=1 HF_TOKEN=any hf upload …``.

Two accounts exist. OWNER may write everywhere, as an administrator of every organisation; GUEST only below its own name, and open
pull requests elsewhere. Whoever gives no token may read what is public. Files come straight from ``resolve``: no CDN, no Xet, and no
listing by pages. What the hub does not have answers 501, which no client retries or takes for an absent file.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import re
import secrets
import subprocess
import sys
import textwrap
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from email.message import Message
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

OWNER, GUEST = "me", "guest"
RepoType = Literal["model", "dataset", "space"]
LFS_SUFFIXES = (".parquet", ".arrow", ".tar", ".zip", ".png", ".jpg", ".webp", ".safetensors", ".bin")
LFS_FROM = 10 * 2**20


# What is stored -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class File:
    """One version of a file."""

    content: bytes
    lfs: bool = False

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def git_oid(self) -> str:
        """The id of the blob that git holds: the content, or the pointer to it."""
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(self.content)}\n"
        blob = pointer.encode() if self.lfs else self.content
        return hashlib.sha1(b"blob %d\0" % len(blob) + blob).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.git_oid

    def described(self, path: str) -> dict[str, Any]:
        entry: dict[str, Any] = {"type": "file", "path": path, "size": len(self.content), "oid": self.git_oid}
        if self.lfs:
            entry["lfs"] = {"oid": self.sha256, "size": len(self.content), "pointerSize": 134}
        return entry


@dataclass(frozen=True)
class Commit:
    """A version of a repository: every file in it, and where it came from."""

    oid: str
    parent: str | None
    files: Mapping[str, File]
    title: str
    author: str
    date: str


@dataclass
class Discussion:
    """A discussion or, where it has a ``base`` commit, a pull request whose branch is ``refs/pr/{num}``."""

    num: int
    title: str
    author: str
    date: str
    base: str | None
    status: str = "open"
    merged_as: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def ref(self) -> str:
        return f"refs/pr/{self.num}"


@dataclass
class Repository:
    """A repository; its methods are the hub's own view, for tests to look at what arrived."""

    type: RepoType
    id: str
    private: bool = False
    gated: Literal[False, "auto", "manual"] = False
    granted: set[str] = field(default_factory=set)
    branches: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    commits: dict[str, Commit] = field(default_factory=dict)
    discussions: list[Discussion] = field(default_factory=list)

    def at(self, revision: str = "main") -> Commit:
        """The commit that a branch, a tag, a pull request's ref or (the beginning of) an oid names."""
        oid = self.branches.get(revision) or self.tags.get(revision)
        if oid is None and re.fullmatch(r"[0-9a-f]{7,40}", revision):
            oid = next((commit for commit in self.commits if commit.startswith(revision)), None)
        if oid is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return self.commits[oid]

    def files(self, revision: str = "main") -> dict[str, bytes]:
        """The contents of all files, but for the .gitattributes that every repository begins with."""
        return {path: file.content for path, file in self.at(revision).files.items() if path != ".gitattributes"}

    def history(self, revision: str = "main") -> list[Commit]:
        """The commits, newest first."""
        commits = [self.at(revision)]
        while (parent := commits[-1].parent) is not None:
            commits.append(self.commits[parent])
        return commits

    def card(self, revision: str = "main") -> dict[str, Any]:
        """The front matter of README.md, {} where there is none."""
        readme = self.at(revision).files.get("README.md", File(b""))
        try:
            head = yaml.safe_load(front_matter(readme.content.decode()) or "")
        except (yaml.YAMLError, UnicodeDecodeError):
            return {}
        return head if isinstance(head, dict) else {}

    @property
    def prefix(self) -> str:
        """How the addresses of its pages begin."""
        return self.id if self.type == "model" else f"{self.type}s/{self.id}"

    def owned_by(self, user: str | None) -> bool:
        return user is not None and user in (OWNER, self.id.split("/")[0])


def front_matter(text: str) -> str | None:
    """What stands between the two lines of dashes at the top of a card."""
    found = re.match(r"---\r?\n(.*?)\r?\n---", text, re.DOTALL)
    return found[1] if found else None


# What comes and goes ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """A request, its token already exchanged for the account that it belongs to."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Message
    body: bytes
    user: str | None
    known: bool

    def json(self) -> Any:
        return json.loads(self.body or b"{}")

    def asks(self, key: str) -> bool:
        return self.query.get(key, ["false"])[0].lower() in ("1", "true")


@dataclass
class Response:
    """An answer; of its body only the first ``keep`` bytes are sent where that is a number."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    keep: int | None = None


def as_json(value: object, status: int = 200) -> Response:
    return Response(status, json.dumps(value).encode(), {"Content-Type": "application/json"})


class Refusal(Exception):  # noqa: N818 - an answer, not a failure of this program
    """An answer that is an error: what the hub puts into X-Error-Code, which clients choose their exception by."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message

    def response(self) -> Response:
        answer = as_json({"error": self.message}, self.status)
        answer.headers |= {"X-Error-Code": self.code} if self.code else {}
        answer.headers["X-Error-Message"] = self.message.replace("\n", " ")
        return answer


# What the hub says with each status; a client's exception depends on it.
PLANTED = {
    401: Refusal(401, "", "Invalid credentials in Authorization header"),
    403: Refusal(403, "GatedRepo", "Access to this repository is restricted and you are not in the authorized list."),
    404: Refusal(404, "RepoNotFound", "Repository not found"),
    409: Refusal(409, "", "Another request is changing this repository"),
    412: Refusal(412, "", "A commit has happened since. Please refresh and try again."),
    429: Refusal(429, "", "You have reached your rate limit"),
}


@dataclass(frozen=True)
class Call:
    """A line of the hub's log: never a token, a header or a body."""

    method: str
    path: str
    status: int
    user: str | None


@dataclass
class Fault:
    """A planted fault; ``hits`` counts how often it struck."""

    response: Response | None
    times: int
    method: str | None
    path: re.Pattern[str]
    skip: int
    done: bool
    keep: int | None = None
    hits: int = 0

    def strikes(self, request: Request) -> bool:
        if self.hits >= self.times or (self.method or request.method) != request.method or not self.path.search(request.path):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.hits += 1
        return True


# Routes -------------------------------------------------------------------------------------------------------------

Access = Literal["open", "read", "files", "discuss", "write"]
Endpoint = Callable[..., Response]
_ROUTES: list[tuple[str, re.Pattern[str], Access, Endpoint]] = []
_REPO = r"/api/(?P<type>model|dataset|space)s/(?P<id>[^/]+/[^/]+)"
_PAGE = r"/(?!api/)(?:(?P<type>dataset|space)s/)?(?P<id>[^/]+/[^/]+)"
_REVISION = r"(?P<revision>refs/pr/\d+|[^/]+)"


def route(method: str, path: str, access: Access = "open") -> Callable[[Endpoint], Endpoint]:
    """Serve ``path`` with a method of the hub, called with the request, the repository that it names, and the other groups."""

    def register(endpoint: Endpoint) -> Endpoint:
        _ROUTES.append((method, re.compile(path), access, endpoint))
        return endpoint

    return register


class LoopbackHub:
    """The hub. As a context manager it serves on a free port of 127.0.0.1 until the block ends.

    ``require_token`` refuses whoever gives no token, for reading too; ``any_token`` takes every token for OWNER's. ``calls`` is the
    log; ``token`` and ``guest_token`` are drawn anew each time.
    """

    def __init__(self, port: int = 0, *, require_token: bool = False, any_token: bool = False, echo: bool = False) -> None:
        self.token, self.guest_token = (f"hf_{secrets.token_hex(16)}" for _ in range(2))
        self.require_token, self.any_token, self.echo = require_token, any_token, echo
        self.calls: list[Call] = []
        self._repositories: dict[tuple[str, str], Repository] = {}
        self._objects: dict[str, bytes] = {}
        self._faults: list[Fault] = []
        self._ticks = 0
        self._lock = threading.RLock()
        self._server = _Server(self, port)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> LoopbackHub:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def serve_forever(self) -> None:
        """Serve in this thread until it is interrupted."""
        self._server.serve_forever()

    # For tests

    def fail(
        self,
        status: int,
        times: int = 1,
        method: str | None = None,
        path: str = "",
        headers: Mapping[str, str] | None = None,
        *,
        skip: int = 0,
        done: bool = False,
    ) -> Fault:
        """Answer the next ``times`` requests whose method and path (a regular expression, query included) match with ``status``.

        ``headers`` go on top of what the hub says with that status. ``skip`` lets so many matching requests pass first: 500 midway in an
        upload is ``fail(500, method="PUT", path="/lfs/", skip=1)``. With ``done`` the request takes effect and only its answer is lost.
        A request meets the faults in the order in which they were planted, and is struck by one at most.
        """
        planted = PLANTED.get(status, Refusal(status, "", "Internal Error - We're working hard to fix this")).response()
        planted.headers |= dict(headers or {})
        return self._plant(Fault(planted, times, method, re.compile(path), skip, done))

    def truncate(self, keep: int, times: int = 1, path: str = "/resolve/", *, skip: int = 0) -> Fault:
        """Break the connection after ``keep`` bytes of the body in the next ``times`` downloads that match."""
        return self._plant(Fault(None, times, "GET", re.compile(path), skip, True, keep))

    def _plant(self, fault: Fault) -> Fault:
        with self._lock:
            self._faults.append(fault)
        return fault

    def calls_to(self, path: str, method: str | None = None) -> list[Call]:
        """The calls whose path (query included) matches a regular expression."""
        with self._lock:
            return [call for call in self.calls if re.search(path, call.path) and method in (None, call.method)]

    def create(
        self,
        type: RepoType,
        id: str,
        files: Mapping[str, bytes] | None = None,
        *,
        private: bool = False,
        gated: Literal[False, "auto", "manual"] = False,
    ) -> Repository:
        """Put a repository there without a client."""
        with self._lock:
            repo = self._repositories[type, id] = Repository(type, id, private, gated)
            attributes = "".join(f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in LFS_SUFFIXES)
            self._commit(repo, "main", None, {".gitattributes": File(attributes.encode())}, "initial commit", OWNER)
            if files:
                added = {path: File(content, path.endswith(LFS_SUFFIXES)) for path, content in files.items()}
                self._objects |= {file.sha256: file.content for file in added.values() if file.lfs}
                self._commit(repo, "main", repo.at(), {**repo.at().files, **added}, "Add files", OWNER)
        return repo

    def repository(self, type: RepoType, id: str) -> Repository:
        """A repository that is there; KeyError otherwise."""
        return self._repositories[type, id]

    def client_environment(self, folder: Path, token: str | None = "") -> dict[str, str]:
        """A client's environment: caches of its own below ``folder``, and OWNER's token unless another, or None, is given."""
        kept = {key: value for key, value in os.environ.items() if not key.upper().startswith(("HF_", "HUGGING_FACE_", "HUGGINGFACE_"))}
        chosen = self.token if token == "" else token
        return {
            **kept,
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(folder / "hf-home"),
            "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_UPDATE_DOWNLOAD_COUNTS": "0",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
            **({"HF_TOKEN": chosen} if chosen else {}),
        }

    # Serving

    def user_of(self, headers: Message) -> tuple[str | None, bool]:
        """The account that a request comes from, and whether its token is known (none at all is)."""
        token = (headers.get("Authorization") or "").removeprefix("Bearer ")
        if not token:
            return None, True
        user = {self.token: OWNER, self.guest_token: GUEST}.get(token, OWNER if self.any_token else None)
        return user, user is not None

    def answer(self, request: Request) -> Response:
        """Answer one request, and write it into the log."""
        with self._lock:
            fault = next((fault for fault in self._faults if fault.strikes(request)), None)
            response = self._dispatch(request) if fault is None or fault.done else Response(0)
            if fault is not None and fault.response is not None:
                response = fault.response
            elif fault is not None:
                response.keep = fault.keep
            self.calls.append(Call(request.method, request.path, response.status, request.user))
        if self.echo:
            print(request.method, request.path, response.status, request.user or "-", flush=True)
        return response

    def _dispatch(self, request: Request) -> Response:
        try:
            if not request.known:
                raise PLANTED[401]
            if self.require_token and request.user is None and not request.path.startswith("/lfs/"):
                raise Refusal(401, "", "Invalid username or password.")
            path = urlsplit(request.path).path
            method = "GET" if request.method == "HEAD" else request.method
            for verb, pattern, access, endpoint in _ROUTES:
                match = pattern.fullmatch(path) if verb == method else None
                if match:
                    groups = {name: unquote(value) for name, value in match.groupdict().items() if value is not None}
                    if "id" not in groups:
                        return endpoint(self, request, **groups)
                    repo = self._reach(groups.pop("type", "model"), groups.pop("id"), request, access)
                    return endpoint(self, request, repo, **groups)
            raise Refusal(501, "", f"the loopback hub does not serve {request.method} {path}")
        except Refusal as refusal:
            return refusal.response()
        except Exception:
            print(traceback.format_exc(), file=sys.stderr, flush=True)
            return Refusal(501, "", "the loopback hub has a bug: see its traceback").response()

    def _reach(self, type: str, id: str, request: Request, access: Access) -> Repository:
        """The repository that a request names, or the refusal that the hub gives to this user."""
        repo, user = self._repositories.get((type, id)), request.user
        if repo is None or (repo.private and not repo.owned_by(user)):
            raise Refusal(404 if user else 401, "RepoNotFound", "Repository not found" if user else "Invalid username or password.")
        if access == "files" and repo.gated and not repo.owned_by(user) and user not in repo.granted:
            told = f"Access to {repo.type} {repo.id} is restricted" + ("." if user else " and you must be authenticated to access it.")
            raise Refusal(403 if user else 401, "GatedRepo", told)
        if access in ("discuss", "write") and user is None:
            raise Refusal(401, "", "Invalid username or password.")
        if access == "write":
            self._check_writer(repo, request)
        return repo

    def _check_writer(self, repo: Repository, request: Request) -> None:
        if not repo.owned_by(request.user):
            raise Refusal(403, "", "Forbidden: you don't have the required permissions to perform this action")

    def _tick(self) -> str:
        """The next second of a clock that is the same in every test."""
        self._ticks += 1
        now = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=self._ticks)
        return now.strftime("%Y-%m-%dT%H:%M:%S.000Z")

    def _commit(self, repo: Repository, ref: str, parent: Commit | None, files: Mapping[str, File], title: str, author: str) -> Commit:
        date = self._tick()
        before = parent.oid if parent else None
        seed = [repo.type, repo.id, before, title, author, date, {path: file.git_oid for path, file in files.items()}]
        commit = Commit(hashlib.sha1(json.dumps(seed).encode()).hexdigest(), before, dict(files), title, author, date)
        repo.commits[commit.oid] = commit
        repo.branches[ref] = commit.oid
        return commit

    # The account and the repositories

    @route("GET", "/api/whoami-v2")
    def _whoami(self, request: Request) -> Response:
        if request.user is None:
            raise Refusal(401, "", "Invalid username or password.")
        auth = {"type": "access_token", "accessToken": {"displayName": "loopback", "role": "write"}}
        return as_json({"type": "user", "name": request.user, "fullname": request.user, "orgs": [], "auth": auth})

    @route("POST", "/api/validate-yaml")
    def _validate_yaml(self, request: Request) -> Response:
        head = front_matter(request.json()["content"])
        if head is None:
            return as_json({"errors": [], "warnings": [{"message": "empty or missing yaml metadata in repo card"}]})
        try:
            valid = isinstance(yaml.safe_load(head), dict)
            told = "" if valid else "the metadata is no mapping"
        except yaml.YAMLError as error:
            told = str(error)
        return as_json({"errors": [{"message": told}] if told else [], "warnings": []}, 400 if told else 200)

    @route("POST", "/api/repos/create")
    def _create(self, request: Request) -> Response:
        asked = request.json()
        if request.user is None:
            raise Refusal(401, "", "Invalid username or password.")
        repo_type: RepoType = asked.get("type") or "model"
        namespace = asked.get("organization") or request.user
        repo_id = f"{namespace}/{asked['name']}"
        if request.user not in (OWNER, namespace):
            raise Refusal(403, "", f"Forbidden: you don't have the rights to create a {repo_type} under the namespace {namespace!r}")
        known = self._repositories.get((repo_type, repo_id))
        repo = known or self.create(repo_type, repo_id, private=bool(asked.get("private")) or asked.get("visibility") == "private")
        address = {"url": f"{self.endpoint}/{repo.prefix}", "id": repo.id}
        return as_json({"error": f"You already created this {repo_type} repo", **address} if known else address, 409 if known else 200)

    @route("DELETE", "/api/repos/delete")
    def _delete(self, request: Request) -> Response:
        asked = request.json()
        repo_id = f"{asked.get('organization') or request.user}/{asked['name']}"
        repo = self._reach(asked.get("type") or "model", repo_id, request, "write")
        del self._repositories[repo.type, repo.id]
        return as_json({})

    @route("GET", r"/api/(?P<type>model|dataset|space)s")
    def _list(self, request: Request, type: str) -> Response:
        found = []
        for repo in self._repositories.values():
            told = self._described(repo, repo.at(), request)
            wanted = {tag for value in request.query.get("filter", []) for tag in value.split(",")}
            search, author = (request.query.get(key, [""])[0] for key in ("search", "author"))
            seen = not repo.private or repo.owned_by(request.user)
            if repo.type == type and seen and wanted <= set(told["tags"]) and search in repo.id and author in ("", told["author"]):
                found.append(told)
        return as_json(found)

    @route("GET", _REPO, "read")
    @route("GET", rf"{_REPO}/revision/{_REVISION}", "read")
    def _info(self, request: Request, repo: Repository, revision: str = "main") -> Response:
        return as_json(self._described(repo, repo.at(revision), request))

    def _described(self, repo: Repository, commit: Commit, request: Request) -> dict[str, Any]:
        card = repo.card(commit.oid)
        siblings: list[dict[str, Any]] = [{"rfilename": path} for path in commit.files]
        if request.asks("blobs"):
            for sibling, (path, file) in zip(siblings, commit.files.items(), strict=True):
                told = file.described(path)
                sibling |= {"size": told["size"], "blobId": told["oid"]}
                if file.lfs:
                    sibling["lfs"] = {"sha256": file.sha256, "size": told["size"], "pointerSize": told["lfs"]["pointerSize"]}
        return {
            "_id": f"{repo.type}:{repo.id}",
            "id": repo.id,
            "author": repo.id.split("/")[0],
            "sha": commit.oid,
            "private": repo.private,
            "gated": repo.gated,
            "disabled": False,
            "createdAt": repo.history(commit.oid)[-1].date,
            "lastModified": commit.date,
            "tags": [tag for tag in card.get("tags") or [] if isinstance(tag, str)],
            "downloads": 0,
            "likes": 0,
            "cardData": json.loads(json.dumps(card, default=str)),
            "siblings": siblings,
        }

    @route("PUT", rf"{_REPO}/settings", "write")
    def _settings(self, request: Request, repo: Repository) -> Response:
        asked = request.json()
        repo.gated = asked.get("gated", repo.gated)
        repo.private = asked["visibility"] == "private" if "visibility" in asked else repo.private
        return as_json({"private": repo.private, "gated": repo.gated})

    @route("GET", rf"{_REPO}/auth-check(?P<write>/write)?", "files")
    def _auth_check(self, request: Request, repo: Repository, write: str = "") -> Response:
        if write:
            self._check_writer(repo, request)
        return as_json({})

    # Reading

    @route("GET", rf"{_PAGE}/resolve/{_REVISION}/(?P<path>.+)", "files")
    def _resolve(self, request: Request, repo: Repository, revision: str, path: str) -> Response:
        commit = repo.at(revision)
        file = commit.files.get(path)
        if file is None:
            raise Refusal(404, "EntryNotFound", "Entry not found")
        size = len(file.content)
        headers = {"X-Repo-Commit": commit.oid, "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
        if file.lfs:
            headers |= {"X-Linked-ETag": f'"{file.etag}"', "X-Linked-Size": str(size)}
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", request.headers.get("Range") or "")
        if not asked or request.method == "HEAD":
            return Response(200, file.content, headers)
        first, last = asked.groups()
        start = int(first) if first else max(size - int(last), 0)
        stop = min(int(last) + 1, size) if first and last else size
        if start >= stop:
            return Response(416, b"", {"Content-Range": f"bytes */{size}"})
        return Response(206, file.content[start:stop], {**headers, "Content-Range": f"bytes {start}-{stop - 1}/{size}"})

    @route("GET", rf"{_REPO}/tree/{_REVISION}(?:/(?P<path>.+))?", "read")
    def _tree(self, request: Request, repo: Repository, revision: str, path: str = "") -> Response:
        below = f"{path}/" if path else ""
        found: dict[str, dict[str, Any]] = {}
        for name, file in repo.at(revision).files.items():
            if not name.startswith(below):
                continue
            steps = name.removeprefix(below).split("/")
            for depth in range(1, len(steps) if request.asks("recursive") else min(len(steps), 2)):
                folder = below + "/".join(steps[:depth])
                found[folder] = _folder(folder)
            if len(steps) == 1 or request.asks("recursive"):
                found[name] = file.described(name)
        if path and not found:
            raise Refusal(404, "EntryNotFound", f"{path} does not exist on {revision}")
        return as_json(list(found.values()))

    @route("POST", rf"{_REPO}/paths-info/{_REVISION}", "read")
    def _paths_info(self, request: Request, repo: Repository, revision: str) -> Response:
        files, found = repo.at(revision).files, []
        form = "json" not in (request.headers.get("Content-Type") or "")
        for path in parse_qs(request.body.decode()).get("paths", []) if form else request.json()["paths"]:
            if path in files:
                found.append(files[path].described(path))
            elif any(name.startswith(path.rstrip("/") + "/") for name in files):
                found.append(_folder(path.rstrip("/")))
        return as_json(found)

    @route("GET", rf"{_REPO}/commits/{_REVISION}", "read")
    def _commits(self, request: Request, repo: Repository, revision: str) -> Response:
        return as_json(
            [
                {"id": commit.oid, "title": commit.title, "message": "", "authors": [{"user": commit.author}], "date": commit.date}
                for commit in repo.history(revision)
            ]
        )

    @route("GET", rf"{_REPO}/refs", "read")
    def _refs(self, request: Request, repo: Repository) -> Response:
        def told(refs: Mapping[str, str], prefix: str) -> list[dict[str, str]]:
            return [{"name": name, "ref": f"{prefix}{name}", "targetCommit": oid} for name, oid in refs.items()]

        pulls = {name: oid for name, oid in repo.branches.items() if name.startswith("refs/pr/")}
        branches = {name: oid for name, oid in repo.branches.items() if name not in pulls}
        answer = {"branches": told(branches, "refs/heads/"), "tags": told(repo.tags, "refs/tags/"), "converts": []}
        return as_json({**answer, "pullRequests": told(pulls, "")} if request.asks("include_prs") else answer)

    # Writing

    @route("POST", rf"{_REPO}/preupload/{_REVISION}", "discuss")
    def _preupload(self, request: Request, repo: Repository, revision: str) -> Response:
        files, told = repo.at(revision).files, []
        for asked in request.json()["files"]:
            lfs = asked["size"] > LFS_FROM or asked["path"].endswith(LFS_SUFFIXES)
            entry: dict[str, Any] = {"path": asked["path"], "uploadMode": "lfs" if lfs else "regular", "shouldIgnore": False}
            if asked["path"] in files:
                entry["oid"] = files[asked["path"]].etag
            told.append(entry)
        return as_json({"files": told})

    @route("POST", rf"{_PAGE}\.git/info/lfs/objects/batch", "discuss")
    def _lfs_batch(self, request: Request, repo: Repository) -> Response:
        told = []
        for asked in request.json()["objects"]:
            entry: dict[str, Any] = {"oid": asked["oid"], "size": asked["size"]}
            if asked["oid"] not in self._objects:
                entry["actions"] = {"upload": {"href": f"{self.endpoint}/lfs/{asked['oid']}"}}
            told.append(entry)
        return as_json({"transfer": "basic", "objects": told})

    @route("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})")
    def _lfs_put(self, request: Request, oid: str) -> Response:
        if hashlib.sha256(request.body).hexdigest() != oid:
            raise Refusal(400, "", "the content is not what its sha256 says")
        self._objects[oid] = request.body
        return as_json({})

    @route("POST", rf"{_REPO}/commit/{_REVISION}", "discuss")
    def _post_commit(self, request: Request, repo: Repository, revision: str) -> Response:
        user = request.user or ""
        open_pull = next((pull for pull in repo.discussions if pull.base and pull.ref == revision and pull.author == user), None)
        if not request.asks("create_pr") and open_pull is None:
            self._check_writer(repo, request)
        if revision not in repo.branches and not request.asks("create_pr"):
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        lines = [json.loads(line) for line in request.body.splitlines() if line.strip()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        parent = repo.at(revision)
        if header.get("parentCommit") not in (None, parent.oid):
            if not request.asks("create_pr"):
                raise PLANTED[412]
            parent = repo.at(header["parentCommit"])
        files = dict(parent.files)
        for line in lines:
            self._apply(line["key"], line["value"], files)
        ref = self._open(repo, header["summary"], user, parent).ref if request.asks("create_pr") else revision
        commit = self._commit(repo, ref, parent, files, header["summary"], user)
        page = f"{self.endpoint}/{repo.prefix}"
        told = {"success": True, "commitOid": commit.oid, "commitUrl": f"{page}/commit/{commit.oid}", "hookOutput": ""}
        if request.asks("create_pr"):
            told["pullRequestUrl"] = f"{page}/discussions/{len(repo.discussions)}"
        return as_json(told)

    def _apply(self, key: str, value: Mapping[str, Any], files: dict[str, File]) -> None:
        """One line of a commit."""
        path = value.get("path", "")
        if key == "file":
            files[path] = File(base64.b64decode(value["content"]))
        elif key == "lfsFile":
            if value["oid"] not in self._objects:
                raise Refusal(400, "", f"LFS pointer of {path} points to a file that does not exist")
            files[path] = File(self._objects[value["oid"]], lfs=True)
        elif key == "deletedFile":
            if path not in files:
                raise Refusal(404, "EntryNotFound", "A file with this name doesn't exist")
            del files[path]
        elif key == "deletedFolder":
            for name in [name for name in files if name.startswith(path.rstrip("/") + "/")]:
                del files[name]
        elif key != "header":
            raise Refusal(501, "", f"the loopback hub does not know the commit line {key!r}")

    @route("POST", rf"{_REPO}/branch/(?P<name>[^/]+)", "write")
    def _branch(self, request: Request, repo: Repository, name: str) -> Response:
        if name in repo.branches:
            raise Refusal(409, "", f"Reference already exists: {name}")
        repo.branches[name] = repo.at(request.json().get("startingPoint", "main")).oid
        return as_json({})

    @route("DELETE", rf"{_REPO}/branch/(?P<name>[^/]+)", "write")
    def _delete_branch(self, request: Request, repo: Repository, name: str) -> Response:
        if name == "main":
            raise Refusal(403, "", "Forbidden: main cannot be deleted")
        return self._forget(repo.branches, name)

    @route("POST", rf"{_REPO}/tag/{_REVISION}", "write")
    def _tag(self, request: Request, repo: Repository, revision: str) -> Response:
        name = request.json()["tag"]
        if name in repo.tags:
            raise Refusal(409, "", f"Tag already exists: {name}")
        repo.tags[name] = repo.at(revision).oid
        return as_json({})

    @route("DELETE", rf"{_REPO}/tag/(?P<name>[^/]+)", "write")
    def _delete_tag(self, request: Request, repo: Repository, name: str) -> Response:
        return self._forget(repo.tags, name)

    def _forget(self, refs: dict[str, str], name: str) -> Response:
        if refs.pop(name, None) is None:
            raise Refusal(404, "RevisionNotFound", f"Invalid rev id: {name}")
        return as_json({})

    # Discussions and pull requests

    def _open(self, repo: Repository, title: str, author: str, base: Commit | None) -> Discussion:
        discussion = Discussion(len(repo.discussions) + 1, title, author, self._tick(), base.oid if base else None)
        repo.discussions.append(discussion)
        if base:
            repo.branches[discussion.ref] = base.oid
        return discussion

    def _told(self, repo: Repository, discussion: Discussion) -> dict[str, Any]:
        return {
            "num": discussion.num,
            "title": discussion.title,
            "status": discussion.status,
            "isPullRequest": discussion.base is not None,
            "author": {"name": discussion.author},
            "repo": {"name": repo.id, "type": repo.type},
            "createdAt": discussion.date,
        }

    def _event(self, discussion: Discussion, type: str, author: str, data: dict[str, Any]) -> dict[str, Any]:
        date = self._tick()
        event = {"id": f"{self._ticks:024x}", "type": type, "createdAt": date, "author": {"name": author}, "data": data}
        discussion.events.append(event)
        return event

    def _comment(self, discussion: Discussion, author: str, text: str) -> dict[str, Any]:
        return self._event(discussion, "comment", author, {"edited": False, "hidden": False, "latest": {"raw": text}})

    def _numbered(self, repo: Repository, num: str) -> Discussion:
        if not 0 < int(num) <= len(repo.discussions):
            raise Refusal(404, "", f"Discussion {num} not found")
        return repo.discussions[int(num) - 1]

    @route("GET", rf"{_REPO}/discussions", "read")
    def _discussions(self, request: Request, repo: Repository) -> Response:
        kind, status, author = (request.query.get(key, ["all"])[0] for key in ("type", "status", "author"))
        found = [
            discussion
            for discussion in reversed(repo.discussions)
            if kind in ("all", "discussion" if discussion.base is None else "pull_request")
            and (status == "all" or (status == "open") == (discussion.status in ("open", "draft")))
            and author in ("all", discussion.author)
        ]
        return as_json({"discussions": [self._told(repo, discussion) for discussion in found], "count": len(found), "start": 0})

    @route("POST", rf"{_REPO}/discussions", "discuss")
    def _discuss(self, request: Request, repo: Repository) -> Response:
        asked, user = request.json(), request.user or ""
        discussion = self._open(repo, asked["title"], user, repo.at() if asked.get("pullRequest") else None)
        discussion.status = "draft" if discussion.base else "open"
        self._comment(discussion, user, asked.get("description") or "")
        return as_json({"num": discussion.num})

    @route("GET", rf"{_REPO}/discussions/(?P<num>\d+)", "read")
    def _discussion(self, request: Request, repo: Repository, num: str) -> Response:
        discussion = self._numbered(repo, num)
        told = {**self._told(repo, discussion), "events": discussion.events}
        if discussion.base is not None:
            waiting = discussion.status in ("open", "draft")
            told["changes"] = {"base": "refs/heads/main", **({"mergeCommitId": discussion.merged_as} if discussion.merged_as else {})}
            told["filesWithConflicts"] = self._merged(repo, discussion)[1] if waiting else []
        return as_json(told)

    @route("POST", rf"{_REPO}/discussions/(?P<num>\d+)/comment", "discuss")
    def _post_comment(self, request: Request, repo: Repository, num: str) -> Response:
        comment = self._comment(self._numbered(repo, num), request.user or "", request.json()["comment"])
        return as_json({"newMessage": comment})

    @route("POST", rf"{_REPO}/discussions/(?P<num>\d+)/status", "discuss")
    def _status(self, request: Request, repo: Repository, num: str) -> Response:
        discussion = self._numbered(repo, num)
        if discussion.author != request.user:
            self._check_writer(repo, request)
        discussion.status = request.json()["status"]
        return as_json({"newStatus": self._event(discussion, "status-change", request.user or "", {"status": discussion.status})})

    @route("POST", rf"{_REPO}/discussions/(?P<num>\d+)/merge", "write")
    def _merge(self, request: Request, repo: Repository, num: str) -> Response:
        pull = self._numbered(repo, num)
        if pull.base is None or pull.status not in ("open", "draft"):
            raise Refusal(409, "", f"This discussion is {pull.status}, and nothing that can be merged")
        files, conflicts = self._merged(repo, pull)
        if conflicts:
            raise Refusal(409, "", f"Merge conflict in {', '.join(conflicts)}")
        user = request.user or ""
        pull.merged_as = self._commit(repo, "main", repo.at(), files, f"{pull.title} (#{pull.num})", user).oid
        pull.status = "merged"
        self._event(pull, "status-change", user, {"status": "merged"})
        return as_json({})

    def _merged(self, repo: Repository, pull: Discussion) -> tuple[dict[str, File], list[str]]:
        """The main branch's files with a pull request's changes, and the paths that both have changed, each in its way."""
        base, ours, theirs = (repo.at(revision).files for revision in (pull.base or "main", "main", pull.ref))
        changed = [path for path in dict.fromkeys([*base, *theirs]) if base.get(path) != theirs.get(path)]
        conflicts = [path for path in changed if ours.get(path) not in (base.get(path), theirs.get(path))]
        kept = {path: file for path, file in ours.items() if path not in changed}
        return {**kept, **{path: theirs[path] for path in changed if path in theirs}}, conflicts


def _folder(path: str) -> dict[str, Any]:
    return {"type": "directory", "path": path, "oid": hashlib.sha1(path.encode()).hexdigest(), "size": 0}


# The server ---------------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, hub: LoopbackHub, port: int) -> None:
        self.hub = hub
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no matter; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body in one packet: small answers would else wait for the client's delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """The hub keeps its own log."""

    def _serve(self) -> None:
        body = self._body()
        user, known = self.server.hub.user_of(self.headers)
        request = Request(self.command, self.path, parse_qs(urlsplit(self.path).query), self.headers, body, user, known)
        response = self.server.hub.answer(request)
        self.send_response(response.status)
        for name, value in {**response.headers, "Content-Length": str(len(response.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body if response.keep is None else response.body[: response.keep])
        if response.keep is not None:
            self.close_connection = True

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815 - named so by http.server

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


# Clients ------------------------------------------------------------------------------------------------------------


def run_client(
    code: str,
    hub: LoopbackHub,
    folder: Path,
    *,
    token: str | None = "",
    python: Sequence[str] = (sys.executable,),
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run Python ``code`` as a client of the hub, in an empty working directory and with caches of its own below ``folder``.

    ``token`` is as in ``LoopbackHub.client_environment``, ``python`` the command that runs code given after ``-c``. With ``check`` a
    client that fails fails the test, and shows its traceback.
    """
    place = folder / "client"
    place.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [*python, "-c", textwrap.dedent(code)],
        cwd=place,
        env=hub.client_environment(folder, token),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not check or done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve an empty hub on 127.0.0.1 until interrupted; every token is taken.")
    parser.add_argument("port", type=int, help="the port, 0 for a free one")
    hub = LoopbackHub(parser.parse_args().port, any_token=True, echo=True)
    print(f"HF_ENDPOINT={hub.endpoint}", flush=True)
    try:
        hub.serve_forever()
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()
