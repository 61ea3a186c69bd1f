"""The loopback hub under the real clients: round trips, rights, and each fault as the exception that it is out there."""

from __future__ import annotations

import hashlib
import http.client
import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import loopback_hub
import pyarrow.parquet as pq
import pytest
from loopback_hub import GUEST, OWNER, Call, LoopbackHub, run_client

from t2i_parity.dataset_builder.schema import CONFIGS

# What each client script may use. ``error`` gives a call's exception and status, None where it succeeds.
PRELUDE = """
import json
from pathlib import Path
from huggingface_hub import HfApi

api = HfApi()
name = dict(repo_id="lab/things", repo_type="dataset")
told = {}

def error(call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except Exception as raised:
        return [type(raised).__name__, getattr(getattr(raised, "response", None), "status_code", None)]

"""
ATTRIBUTES = ".gitattributes"
CARD = b"---\nlicense: cc-by-4.0\ntags:\n- fairness\n---\n# Things\n"
DATA = bytes(range(256)) * 40
FILES = {"README.md": CARD, "data/a.parquet": DATA}


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as running:
        yield running


def ask(code: str, hub: LoopbackHub, folder: Path, token: str | None = "") -> Any:
    """What a client script leaves in ``told``."""
    return json.loads(run_client(f"{PRELUDE}{code}\nprint(json.dumps(told))", hub, folder, token=token).stdout.splitlines()[-1])


def fetch(hub: LoopbackHub, path: str, method: str = "GET", token: str = "", body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """One request without any client library."""
    connection = http.client.HTTPConnection(hub.endpoint.removeprefix("http://"), timeout=10)
    connection.request(method, path, body, {**headers, **({"Authorization": f"Bearer {token}"} if token else {})})
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, content


# huggingface_hub


def test_upload_read_and_delete(hub: LoopbackHub, tmp_path: Path) -> None:
    for path, content in {**FILES, "data/empty.txt": b""}.items():
        (tmp_path / "upload" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "upload" / path).write_bytes(content)
    told = ask(
        """
from huggingface_hub import HfFileSystem, snapshot_download
told["who"], told["url"] = api.whoami()["name"], api.create_repo(**name)
told["again"] = error(api.create_repo, **name), error(api.create_repo, **name, exist_ok=True)
first = api.upload_folder(folder_path="../upload", **name).oid
told["unchanged"] = api.upload_folder(folder_path="../upload", **name).oid == first
told["bad card"] = error(api.upload_file, path_or_fileobj=b"---\\na: [\\n---\\n", path_in_repo="README.md", **name)
told["tree"] = [[entry.path for entry in api.list_repo_tree(**name, recursive=whole)] for whole in (False, True)]
info = api.dataset_info("lab/things", files_metadata=True)
told["info"] = [info.sha == first, info.tags, info.card_data.license]
told["sizes"] = {sibling.rfilename: [sibling.size, sibling.lfs is not None] for sibling in info.siblings}
told["found"] = [len(list(found)) for found in (api.list_datasets(filter="fairness"), api.list_datasets(filter="x"), api.list_models())]
root = Path(snapshot_download(**name))
told["local"] = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
files = HfFileSystem()
with files.open("datasets/lab/things/data/a.parquet", block_size=1000) as opened:
    opened.seek(5000)
    told["bytes"] = list(opened.read(4))
told["glob"] = files.glob("datasets/lab/things/**/*.parquet")
api.delete_folder("data", **name)
told["left"] = api.list_repo_files(**name)
api.delete_repo(**name)
told["gone"] = error(api.dataset_info, "lab/things")
""",
        hub,
        tmp_path,
    )
    paths = [ATTRIBUTES, "README.md", "data/a.parquet", "data/empty.txt"]
    attributes_size = told["sizes"].pop(ATTRIBUTES)
    assert not attributes_size[1]
    assert told == {
        "who": OWNER,
        "url": f"{hub.endpoint}/datasets/lab/things",
        "again": [["HfHubHTTPError", 409], None],
        "unchanged": True,
        "bad card": ["ValueError", None],
        "tree": [[ATTRIBUTES, "README.md", "data"], [ATTRIBUTES, "README.md", "data", "data/a.parquet", "data/empty.txt"]],
        "info": [True, ["fairness"], "cc-by-4.0"],
        "sizes": {"README.md": [len(CARD), False], "data/a.parquet": [len(DATA), True], "data/empty.txt": [0, False]},
        "found": [1, 0, 0],
        "local": paths,
        "bytes": list(DATA[5000:5004]),
        "glob": ["datasets/lab/things/data/a.parquet"],
        "left": [ATTRIBUTES, "README.md"],
        "gone": ["RepositoryNotFoundError", 404],
    }


def test_branches_tags_and_commits(hub: LoopbackHub, tmp_path: Path) -> None:
    repo = hub.create("dataset", "lab/things", FILES)
    told = ask(
        """
from huggingface_hub import CommitOperationAdd, CommitOperationCopy, CommitOperationDelete
first = api.dataset_info("lab/things").sha
api.create_tag(**name, tag="v1.0")
told["tag again"] = error(api.create_tag, **name, tag="v1.0"), error(api.create_tag, **name, tag="v1.0", exist_ok=True)
api.create_branch(**name, branch="next/one", revision=first[:7])
api.upload_file(path_or_fileobj=b"more", path_in_repo="more.txt", revision="next/one", **name)
told["branch again"] = error(api.create_branch, **name, branch="next/one")
moved = [CommitOperationCopy("data/a.parquet", "data/b.parquet"), CommitOperationDelete("data/a.parquet")]
api.create_commit(operations=moved, commit_message="Move", parent_commit=first, **name)
late = dict(operations=[CommitOperationAdd("x", b"x")], commit_message="x", parent_commit=first, **name)
told["late"] = error(api.create_commit, **late)
told["late, as a pull request"] = api.create_commit(**late, create_pr=True).pr_revision
told["nothing to delete"] = error(api.delete_file, "none.txt", **name)
refs = api.list_repo_refs(**name, include_pull_requests=True)
told["refs"] = [[ref.ref for ref in group] for group in (refs.branches, refs.tags, refs.pull_requests)]
told["commits"] = [commit.title for commit in api.list_repo_commits(**name)]
told["files"] = {ref: api.list_repo_files(**name, revision=ref)[1:] for ref in ("main", "v1.0", "next/one", "refs/pr/1", first)}
told["absent"] = [error(api.dataset_info, "lab/none"), error(api.dataset_info, "lab/things", revision="v9"),
                  error(api.hf_hub_download, filename="none.txt", **name), error(api.list_repo_refs, "lab/things")]
api.delete_tag(**name, tag="v1.0")
api.delete_branch(**name, branch="next/one")
told["forgotten"] = error(api.delete_tag, **name, tag="v1.0"), error(api.delete_branch, **name, branch="main")
""",
        hub,
        tmp_path,
    )
    first = told["commits"].index("Add files")
    assert told["commits"][first:] == ["Add files", "initial commit"]
    oid = repo.history()[first].oid
    assert told == {
        "tag again": [["HfHubHTTPError", 409], None],
        "branch again": ["HfHubHTTPError", 409],
        "late": ["HfHubHTTPError", 412],
        "late, as a pull request": "refs/pr/1",
        "nothing to delete": ["RemoteEntryNotFoundError", 404],
        "refs": [["refs/heads/main", "refs/heads/next/one"], ["refs/tags/v1.0"], ["refs/pr/1"]],
        "commits": ["Move", "Add files", "initial commit"],
        "files": {
            "main": ["README.md", "data/b.parquet"],
            "v1.0": list(FILES),
            "next/one": [*FILES, "more.txt"],
            "refs/pr/1": [*FILES, "x"],
            oid: list(FILES),
        },
        "absent": [
            ["RepositoryNotFoundError", 404],
            ["RevisionNotFoundError", 404],
            ["RemoteEntryNotFoundError", 404],
            ["RepositoryNotFoundError", 404],
        ],
        "forgotten": [["RevisionNotFoundError", 404], ["HfHubHTTPError", 403]],
    }
    assert (repo.tags, list(repo.branches)) == ({}, ["main", "refs/pr/1"])
    assert repo.files() == {"README.md": CARD, "data/b.parquet": DATA}


def test_a_guest_proposes_and_the_owner_merges(hub: LoopbackHub, tmp_path: Path) -> None:
    repo = hub.create("dataset", "lab/things", {"a.txt": b"a", "b.txt": b"b"})
    proposed = ask(
        """
told["write"] = error(api.upload_file, path_or_fileobj=b"x", path_in_repo="a.txt", **name)
told["tag"] = error(api.create_tag, **name, tag="v1"), error(api.create_repo, "lab/mine")
told["own"] = api.create_repo("mine").repo_id
one = api.upload_file(path_or_fileobj=b"A", path_in_repo="a.txt", create_pr=True, **name)
told["pull"] = [one.pr_num, one.pr_revision]
api.upload_file(path_or_fileobj=b"c", path_in_repo="c.txt", revision="refs/pr/1", **name)
api.upload_file(path_or_fileobj=b"AA", path_in_repo="a.txt", create_pr=True, **name)
three = api.create_pull_request(title="Later", **name)
api.comment_discussion(discussion_num=3, comment="Soon", **name)
told["draft"] = [three.status, three.git_reference]
told["merge"] = error(api.merge_pull_request, discussion_num=1, **name)
told["question"] = api.create_discussion(title="Why", **name).num
""",
        hub,
        tmp_path / "guest",
        hub.guest_token,
    )
    assert proposed == {
        "write": ["HfHubHTTPError", 403],
        "tag": [["HfHubHTTPError", 403], ["HfHubHTTPError", 403]],
        "own": f"{GUEST}/mine",
        "pull": [1, "refs/pr/1"],
        "draft": ["draft", "refs/pr/3"],
        "merge": ["HfHubHTTPError", 403],
        "question": 4,
    }
    assert repo.files() == {"a.txt": b"a", "b.txt": b"b"}
    merged = ask(
        """
api.upload_file(path_or_fileobj=b"B", path_in_repo="b.txt", **name)
api.merge_pull_request(discussion_num=1, **name)
told["again"] = error(api.merge_pull_request, discussion_num=1, **name)
details = [api.get_discussion_details(discussion_num=num, **name) for num in (1, 2, 3, 4)]
told["status"] = [each.status for each in details]
told["conflicts"] = details[1].conflicting_files, error(api.merge_pull_request, discussion_num=2, **name)
told["merge commit"] = details[0].merge_commit_oid == api.dataset_info("lab/things").sha
told["comments"] = [event.content for event in details[2].events]
api.change_discussion_status(discussion_num=2, new_status="closed", **name)
listed = lambda **wanted: [each.num for each in api.get_repo_discussions(**name, **wanted)]
told["listed"] = [listed(), listed(discussion_type="discussion"), listed(discussion_status="open", author="guest")]
""",
        hub,
        tmp_path / "owner",
    )
    assert merged.pop("comments")[1:] == ["Soon"]
    assert merged == {
        "again": ["HfHubHTTPError", 409],
        "status": ["merged", "open", "draft", "open"],
        "conflicts": [["a.txt"], ["HfHubHTTPError", 409]],
        "merge commit": True,
        "listed": [[4, 3, 2, 1], [4], [4, 3]],
    }
    assert repo.files() == {"a.txt": b"A", "b.txt": b"B", "c.txt": b"c"}


WHO_SEES_WHAT = """
download = lambda repo: error(api.hf_hub_download, f"lab/{repo}", "a.txt", repo_type="dataset")
told = {repo: [error(api.dataset_info, f"lab/{repo}"), download(repo)] for repo in ("open", "gated", "private", "none")}
told["check"] = error(api.auth_check, "lab/gated", repo_type="dataset")
"""


def test_who_sees_what(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.create("dataset", "lab/open", {"a.txt": b"a"})
    gated = hub.create("dataset", "lab/gated", {"a.txt": b"a"}, gated="manual")
    hub.create("dataset", "lab/private", {"a.txt": b"a"}, private=True)
    tokens = {"anonymous": None, "guest": hub.guest_token, "owner": hub.token, "nobody": "hf_unknown"}
    seen = {who: ask(WHO_SEES_WHAT, hub, tmp_path / who, token) for who, token in tokens.items()}
    absent, refused = (["RepositoryNotFoundError", 401], ["RepositoryNotFoundError", 404]), ["HfHubHTTPError", 401]
    assert seen == {
        "anonymous": {
            "open": [None, None],
            "gated": [None, ["GatedRepoError", 401]],
            "private": [absent[0]] * 2,
            "none": [absent[0]] * 2,
            "check": ["GatedRepoError", 401],
        },
        "guest": {
            "open": [None, None],
            "gated": [None, ["GatedRepoError", 403]],
            "private": [absent[1]] * 2,
            "none": [absent[1]] * 2,
            "check": ["GatedRepoError", 403],
        },
        "owner": {"open": [None] * 2, "gated": [None] * 2, "private": [None] * 2, "none": [absent[1]] * 2, "check": None},
        "nobody": {"open": [refused] * 2, "gated": [refused] * 2, "private": [refused] * 2, "none": [refused] * 2, "check": refused},
    }
    resolve = "/datasets/lab/gated/resolve/main/a.txt"
    gated.granted.add(GUEST)
    assert fetch(hub, resolve, token=hub.guest_token) == (200, b"a")
    hub.require_token = True
    assert fetch(hub, "/datasets/lab/open/resolve/main/a.txt")[0] == 401
    opened = json.dumps({"gated": False, "visibility": "private"}).encode()
    assert fetch(hub, "/api/datasets/lab/gated/settings", "PUT", hub.token, opened)[0] == 200
    assert (gated.gated, gated.private) == (False, True)


# Faults


@pytest.mark.parametrize("status", [401, 403, 404, 409, 412, 429, 500, 503])
def test_a_fault_strikes_where_and_as_often_as_it_was_planted(hub: LoopbackHub, status: int) -> None:
    hub.create("model", "lab/m", {"a.txt": b"a", "b.txt": b"b"})
    path = "/lab/m/resolve/main/a.txt"
    fault = hub.fail(status, 2, "GET", r"a\.txt$", {"Retry-After": "7"}, skip=1)
    assert fetch(hub, path, "HEAD")[0] == 200
    assert [fetch(hub, path)[0] for _ in range(4)] == [200, status, status, 200]
    assert fetch(hub, path.replace("a.txt", "b.txt")) == (200, b"b")
    assert fault.hits == 2
    assert [call.status for call in hub.calls_to("a.txt", "GET")] == [200, status, status, 200]


def test_each_status_is_the_clients_exception(hub: LoopbackHub, tmp_path: Path) -> None:
    expected = {
        401: "HfHubHTTPError",
        403: "GatedRepoError",
        404: "RepositoryNotFoundError",
        409: "HfHubHTTPError",
        412: "HfHubHTTPError",
        429: "HfHubHTTPError",
        500: "HfHubHTTPError",
        503: "HfHubHTTPError",
    }
    for status in expected:
        hub.create("dataset", f"lab/s{status}", {"a.txt": b"a"})
        hub.fail(status, path=f"/api/datasets/lab/s{status}$")
    hub.create("dataset", "lab/revision", {"a.txt": b"a"})
    hub.fail(404, headers={"X-Error-Code": "RevisionNotFound"}, path="lab/revision$")
    told = ask(
        f"""
for repo in {[*(f"s{status}" for status in expected), "revision"]}:
    told[repo] = [error(api.dataset_info, f"lab/{{repo}}"), error(api.dataset_info, f"lab/{{repo}}")]
""",
        hub,
        tmp_path,
    )
    faults = {f"s{status}": [[name, status], None] for status, name in expected.items()}
    assert told == {**faults, "revision": [["RevisionNotFoundError", 404], None]}


def test_what_the_client_tries_again_and_what_it_does_not(hub: LoopbackHub, tmp_path: Path) -> None:
    """In an upload: a rate limit, a server error midway, a refused commit, and a commit whose answer is lost."""
    repo = hub.create("dataset", "lab/things")
    contents = {f"{number}.parquet": b"%d" % number * 50 for number in range(3)}
    (tmp_path / "upload").mkdir()
    for name, content in contents.items():
        (tmp_path / "upload" / name).write_bytes(content)
    limited = hub.fail(429, path="/preupload/", headers={"Retry-After": "0"})
    broken = hub.fail(500, method="PUT", path="/lfs/", skip=1)
    hub.fail(500, path="/commit/")
    lost = hub.fail(500, path="/commit/", done=True)
    told = ask(
        """
upload = lambda: error(api.upload_folder, folder_path="../upload", **name)
told["uploads"] = upload(), upload(), upload()
""",
        hub,
        tmp_path,
    )
    assert told["uploads"] == [["HfHubHTTPError", 500], ["HfHubHTTPError", 500], None]
    assert (limited.hits, broken.hits, lost.hits) == (1, 1, 1)
    # The rate limit and the broken file were tried again, the commits were not; what had arrived was not sent twice.
    assert [call.status for call in hub.calls_to("/preupload/")] == [429, 200, 200, 200]
    assert sorted(call.status for call in hub.calls_to("/lfs/", "PUT")) == [200, 200, 200, 500]
    assert [call.status for call in hub.calls_to("/commit/")] == [500, 500]
    # The lost answer's commit is there, so the third upload had nothing left to do.
    assert repo.files() == contents
    assert len(repo.history()) == 2


def test_a_broken_download_is_resumed(hub: LoopbackHub, tmp_path: Path) -> None:
    hub.create("dataset", "lab/things", FILES)
    fault = hub.truncate(1000, path=r"a\.parquet")
    told = ask(
        """
import hashlib, huggingface_hub.constants
huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE = 256
path = Path(api.hf_hub_download(filename="data/a.parquet", **name))
told["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
""",
        hub,
        tmp_path,
    )
    assert told["sha256"] == hashlib.sha256(DATA).hexdigest()
    assert fault.hits == 1
    assert [call.status for call in hub.calls_to("a.parquet", "GET")] == [200, 206]
    hub.truncate(10, path=r"a\.parquet")
    with pytest.raises(http.client.IncompleteRead):
        fetch(hub, "/datasets/lab/things/resolve/main/data/a.parquet")


# The server


def test_ranges_chunks_and_what_is_not_served(hub: LoopbackHub) -> None:
    hub.create("space", "lab/s", {"a b.bin": b"0123456789"})
    path = "/spaces/lab/s/resolve/refs%2Fheads/a%20b.bin"
    assert fetch(hub, path)[0] == 404
    path = "/spaces/lab/s/resolve/main/a%20b.bin"
    ranges = {
        "bytes=2-4": (206, b"234"),
        "bytes=7-": (206, b"789"),
        "bytes=-2": (206, b"89"),
        "bytes=8-99": (206, b"89"),
        "bytes=10-": (416, b""),
    }
    assert {asked: fetch(hub, path, Range=asked) for asked in ranges} == ranges
    assert fetch(hub, path, "HEAD") == (200, b"")
    chunked = b"3\r\n345\r\n2;x=y\r\n67\r\n0\r\n\r\n"
    oid = hashlib.sha256(b"34567").hexdigest()
    assert fetch(hub, f"/lfs/{oid}", "PUT", body=chunked, **{"Transfer-Encoding": "chunked"})[0] == 200
    assert fetch(hub, f"/lfs/{'0' * 64}", "PUT", body=b"other")[0] == 400
    status, told = fetch(hub, "/api/papers/1")
    assert (status, json.loads(told)["error"]) == (501, "the loopback hub does not serve GET /api/papers/1")
    assert fetch(hub, "/api/repos/create", "POST", hub.token, b"{")[0] == 501


def test_commits_from_many_threads_all_arrive(hub: LoopbackHub) -> None:
    repo = hub.create("model", "lab/m")

    def commit(number: int) -> int:
        lines = [{"key": "header", "value": {"summary": f"{number}"}}, {"key": "file", "value": {"path": f"{number}", "content": "eA=="}}]
        body = "\n".join(map(json.dumps, lines)).encode()
        return fetch(hub, "/api/models/lab/m/commit/main", "POST", hub.token, body)[0]

    with ThreadPoolExecutor(16) as pool:
        assert set(pool.map(commit, range(64))) == {200}
    assert repo.files() == {str(number): b"x" for number in range(64)}
    assert len(repo.history()) == 65
    assert len(hub.calls) == 64


def test_the_log_names_accounts_and_keeps_no_secret(capsys: pytest.CaptureFixture[str]) -> None:
    with LoopbackHub(echo=True) as hub:
        for token in (hub.token, hub.guest_token, "hf_unknown", ""):
            fetch(hub, "/api/whoami-v2", token=token)
        calls = [Call("GET", "/api/whoami-v2", status, user) for status, user in ((200, OWNER), (200, GUEST), (401, None), (401, None))]
        assert hub.calls == calls
        printed = capsys.readouterr().out
        assert printed.splitlines()[0] == f"GET /api/whoami-v2 200 {OWNER}"
        assert not any(token in printed + repr(hub.calls) for token in (hub.token, hub.guest_token, "hf_unknown"))
    assert LoopbackHub().token != hub.token


def test_a_client_has_its_own_caches_and_no_settings_of_ours(hub: LoopbackHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_TOKEN", "ours")
    anonymous = hub.client_environment(tmp_path, None)
    assert "HF_TOKEN" not in anonymous
    assert "HF_HUB_OFFLINE" not in anonymous
    assert hub.client_environment(tmp_path) == {**anonymous, "HF_TOKEN": hub.token}
    assert Path(anonymous["HF_HOME"]).parent == tmp_path
    failed = run_client("raise SystemExit(3)", hub, tmp_path, check=False)
    assert failed.returncode == 3
    with pytest.raises(AssertionError, match="exit 3"):
        run_client("raise SystemExit(3)", hub, tmp_path)


def test_by_hand() -> None:
    with subprocess.Popen([sys.executable, loopback_hub.__file__, "0"], stdout=subprocess.PIPE, text=True) as served:
        assert served.stdout is not None
        endpoint = served.stdout.readline().strip().removeprefix("HF_ENDPOINT=")
        connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=10)
        connection.request("GET", "/api/whoami-v2", headers={"Authorization": "Bearer hf_any"})
        assert json.load(connection.getresponse())["name"] == OWNER
        connection.close()
        served.terminate()
        assert served.stdout.read() == f"GET /api/whoami-v2 200 {OWNER}\n"


# datasets, and our own reader


def test_a_dataset_is_pushed_proposed_merged_and_loaded(hub: LoopbackHub, tmp_path: Path) -> None:
    told = ask(
        """
from datasets import Dataset, load_dataset
rows = lambda **keywords: list(load_dataset("lab/things", **keywords)["n"])
Dataset.from_dict({"n": [1, 2]}).push_to_hub("lab/things", split="test", set_default=True)
api.create_tag(**name, tag="v1")
Dataset.from_dict({"n": [3]}).push_to_hub("lab/things", split="test", create_pr=True)
told["main"], told["pull"] = rows(split="test"), rows(split="test", revision="refs/pr/1")
told["streamed"] = [row["n"] for row in load_dataset("lab/things", split="test", streaming=True, revision="refs/pr/1")]
api.merge_pull_request(discussion_num=1, **name)
told["merged"], told["v1"] = rows(split="test"), rows(split="test", revision="v1")
told["absent"] = error(load_dataset, "lab/none"), error(load_dataset, "lab/things", revision="v9")
""",
        hub,
        tmp_path,
    )
    assert told == {
        "main": [1, 2],
        "pull": [3],
        "streamed": [3],
        "merged": [3],
        "v1": [1, 2],
        "absent": [["DatasetNotFoundError", None], ["DatasetNotFoundError", None]],
    }


def test_the_prompts_make_the_round_trip_and_our_reader_opens_them_by_id(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    (tmp_path / "prompts").symlink_to(prompts)
    ask(
        """
prompts = dict(repo_id="lab/t2i-parity-prompts", repo_type="dataset")
api.create_repo(**prompts)
api.upload_folder(folder_path="../prompts", **prompts)
api.create_tag(**prompts, tag="v1")
api.delete_folder("dialect", **prompts)
""",
        hub,
        tmp_path,
    )
    local = {name: pq.read_table(next((prompts / name).glob("*.parquet")))["prompt_id"].to_pylist() for name in CONFIGS}
    hub.create("dataset", "lab/gated", hub.repository("dataset", "lab/t2i-parity-prompts").files("v1"), gated="auto")
    # A guest: the owner would get through every gate.
    told = ask(
        """
from datasets import get_dataset_config_names, load_dataset
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import load_prompts
from t2i_parity.dataset_builder.schema import CONFIGS

configs = get_dataset_config_names("lab/t2i-parity-prompts", revision="v1")
load = lambda config: load_dataset("lab/t2i-parity-prompts", config, split="test", revision="v1")
told["loaded"] = {config: list(load(config)["prompt_id"]) for config in configs if config != "geo_published"}

def read(source="lab/t2i-parity-prompts", config="dialect", **keywords):
    return load_prompts(source, config, **keywords).need(CONFIGS["dialect"].all_columns)

opened = read(revision="v1")
told["opened"], told["origin"] = opened.table["prompt_id"].to_pylist(), dict(opened.origin)
told["labels"] = sorted(set(opened.table["label"].to_pylist()))
told["folder"] = load_prompts("../prompts", "dialect").need(CONFIGS["dialect"].all_columns).origin["content_sha256"]

def refusal(*arguments, **keywords):
    try:
        read(*arguments, **keywords)
    except InputError as told:
        return str(told)

told["refused"] = [refusal("lab/gated"), refusal("lab/none"), refusal(revision="v9"), refusal(), refusal(config="none", revision="v1")]
""",
        hub,
        tmp_path,
        hub.guest_token,
    )
    assert set(told["loaded"]) == set(CONFIGS)
    assert told["loaded"] == local
    assert told["opened"] == local["dialect"]
    assert told["labels"] == ["benign", "toxic"]
    assert told["origin"] == {
        "repository": "lab/t2i-parity-prompts",
        "config": "dialect",
        "split": "test",
        "revision": "v1",
        "content_sha256": told["folder"],
    }
    for message in told["refused"]:
        assert message is not None
        assert "\n" not in message
    gated, missing, *_ = told["refused"]
    assert gated.startswith("'lab/gated' is neither a folder nor a dataset that the hub gave (")
    assert "gated" in gated.split("(", 1)[1]
    assert "hf auth login" in gated
    assert missing.startswith("'lab/none' is neither a folder nor a dataset that the hub gave (")
