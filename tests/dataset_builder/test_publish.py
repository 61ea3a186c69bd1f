"""``push`` against the loopback hub, under the real clients: one commit, what it takes with it, and what it refuses."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, error_of
from loopback_hub import GUEST, OWNER, LoopbackHub, run_client

from t2i_parity.dataset_builder import geo_published, starter
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.publish import Target
from t2i_parity.dataset_builder.release import drop_unlicensed, licensed, read_release, refusal, split_toxic
from t2i_parity.dataset_builder.repository import write_repository
from t2i_parity.dataset_builder.schema import CONFIGS, Column
from t2i_parity.dataset_builder.storage import decode_classes

MAIN, TOXIC = "lab/t2i-parity-prompts", "lab/t2i-parity-toxic"

TESTS = Path(__file__).parent.parent
# What each client script may use: the command as a user runs it, and the hub's own client.
PRELUDE = f"""
import json, sys
sys.path[:0] = {[str(TESTS.parent), str(TESTS)]!r}
from commands import command, error_of
from huggingface_hub import HfApi
api, told = HfApi(), {{}}
name = dict(repo_id={MAIN!r}, repo_type="dataset")

def push(folder, *words, check=0):
    done = command("push", folder, "--to", {MAIN!r}, *words, check=check)
    return done.stdout + done.stderr

def refused(folder, *words):
    return error_of("push", folder, "--to", {MAIN!r}, *words)

def error(call, *arguments, **keywords):
    try:
        call(*arguments, **keywords)
    except Exception as raised:
        return type(raised).__name__

"""


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, prompts: Path) -> Path:
    """A copy of the starter edition, to be changed."""
    return Path(shutil.copytree(prompts, tmp_path / "prompts"))


def ask(code: str, hub: LoopbackHub, place: Path, token: str | None = "", **given: object) -> Any:
    """What a client script leaves in ``told``; ``given`` are its variables."""
    values = "".join(f"{name} = {(str(value) if isinstance(value, Path) else value)!r}\n" for name, value in given.items())
    done = run_client(f"{PRELUDE}{values}{code}\nprint(json.dumps(told))", hub, place, token=token)
    shown = done.stdout + done.stderr
    assert not any(secret in shown for secret in (hub.token, hub.guest_token))
    return json.loads(done.stdout.splitlines()[-1])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def uploads(hub: LoopbackHub) -> list[int]:
    return [call.status for call in hub.calls_to("^/lfs/", "PUT")]


def writes(hub: LoopbackHub) -> list[str]:
    return [call.path for call in hub.calls if call.method != "GET" and call.method != "HEAD"]


# One commit ---------------------------------------------------------------------------------------------------------


def test_everything_is_there_after_one_commit_and_a_second_push_makes_none(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    told = ask(
        """
from datasets import get_dataset_config_names, load_dataset
from t2i_parity.dataset_builder import geo_published
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import load_prompts
from t2i_parity.dataset_builder.schema import CONFIGS
told["first"] = push(prompts)
sha = api.dataset_info(name["repo_id"]).sha
told["second"] = push(prompts)
repo = name["repo_id"]
load = lambda config, **keywords: load_dataset(repo, config, split="test", **keywords)
configs = get_dataset_config_names(repo, revision=sha)
told["loaded"] = {config: list(load(config, revision=sha)["prompt_id"]) for config in configs if config != geo_published.NAME}
told["published"] = list(load(geo_published.NAME, revision=sha))
told["validated"] = command("validate", repo, "--config", geo_published.NAME, "--fail-on", "warning").stdout
told["refused"] = ""
try:
    load_prompts(repo, geo_published.NAME, revision=sha).need(CONFIGS["geo"].all_columns)
except InputError as refusal:
    told["refused"] = str(refusal)
told["default"] = load_dataset(repo, split="test").column_names
told["features"] = all(load(config).features == CONFIGS[config].features() for config in CONFIGS)
told["streamed"] = next(iter(load("dialect", streaming=True)))["prompt_id"]
told["opened"] = len(load_prompts(repo, "dialect").need(CONFIGS["dialect"].all_columns).table)
""",
        hub,
        tmp_path,
        prompts=prompts,
    )
    repo = hub.repository("dataset", MAIN)
    assert repo.files() == contents(prompts)
    assert len(repo.history()) == 2
    local = {name: pq.read_table(next((prompts / name).glob("*.parquet")))["prompt_id"].to_pylist() for name in CONFIGS}
    assert told["loaded"] == local
    assert told["published"] == geo_published.table().to_pylist()
    assert "found 0 errors, 0 warnings" in told["validated"]
    assert f"Name a config of prompts: {', '.join(CONFIGS)}" in told["refused"]
    assert "render_text" in told["default"]
    assert told["features"]
    assert told["streamed"] == local["dialect"][0]
    assert told["opened"] == len(local["dialect"])
    release = read_release(prompts)
    title, body = release.message
    assert repo.at().title == title == f"T2I Parity prompts, starter edition: {release.rows:,} rows, content {release.content_sha256[:12]}"
    assert release.content_sha256 in body
    assert "- geo_published: 308 published values" in body
    assert "added" in told["first"]
    assert repo.at().oid in told["first"]
    assert "has all of this already" in told["second"]
    assert "added" not in told["second"]
    assert not repo.private


def test_a_new_column_loads_after_the_second_push(hub: LoopbackHub, tmp_path: Path, prompts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, geo = starter.tables(), CONFIGS["geo"]
    monkeypatch.setitem(CONFIGS, "geo", replace(geo, columns=(*geo.columns, Column("region", "string", "part of the world"))))
    wider = {name: old["geo"][name] for name in old["geo"].column_names} | {"region": pa.array(["earth"] * len(old["geo"]))}
    schema = CONFIGS["geo"].arrow_schema()
    tables = {**old, "geo": pa.table([wider[name] for name in schema.names], schema=schema)}
    write_repository(tables, tmp_path / "wider", edition="starter")
    told = ask(
        """
from datasets import load_dataset
push(prompts)
first = api.dataset_info(name["repo_id"]).sha
told["second"] = push(wider)
load = lambda **keywords: load_dataset(name["repo_id"], "geo", split="test", **keywords)
told["columns"] = load().column_names, load(revision=first).column_names
told["regions"] = sorted(set(load()["region"]))
told["others"] = len(load_dataset(name["repo_id"], "dialect", split="test"))
""",
        hub,
        tmp_path,
        prompts=prompts,
        wider=tmp_path / "wider",
    )
    assert "region" in told["columns"][0]
    assert "region" not in told["columns"][1]
    assert told["regions"] == ["earth"]
    assert told["others"] == len(old["dialect"])
    assert len(hub.repository("dataset", MAIN).history()) == 3
    assert _kinds(told["second"], "dialect/test-00000-of-00001.parquet") == "unchanged"
    assert _kinds(told["second"], "geo/test-00000-of-00001.parquet") == "changed"


def _kinds(shown: str, path: str) -> str:
    """What a shown plan says of a file."""
    (line,) = [line for line in shown.splitlines() if f" {path} " in line]
    return line.split()[1]


def test_a_dry_run_shows_all_and_writes_nothing(hub: LoopbackHub, tmp_path: Path, folder: Path) -> None:
    theirs = {"notes.md": b"theirs", "geo/notes.md": b"theirs", "data/other.parquet": b"theirs", "root.parquet": b"theirs"}
    there = {path: content for path, content in contents(folder).items() if not path.startswith("dialect/")}
    stale = {"geo/test-00001-of-00002.parquet": b"old", "README.md": b"# Old\n"}
    repo = hub.create("dataset", MAIN, {**there, **theirs, **stale})
    (folder / "remarks.txt").write_text("mine")
    (folder / ".tmp-1").write_text("half")
    before = repo.at().oid
    told = ask(
        """
told["dry"] = push(folder, "--dry-run")
told["new"] = command("push", folder, "--to", "lab/other", "--dry-run").stdout
told["pushed"] = push(folder)
""",
        hub,
        tmp_path,
        folder=folder,
    )
    first_write = next(number for number, call in enumerate(hub.calls) if call.method == "POST")
    assert {call.method for call in hub.calls[:first_write]} <= {"GET", "HEAD"}
    assert sum(call.path.startswith("/api/datasets/lab/other") for call in hub.calls[:first_write]) == 1
    for shown in (told["dry"], told["pushed"]):
        assert _kinds(shown, "dialect/test-00000-of-00001.parquet") == "added"
        assert _kinds(shown, "README.md") == "changed"
        assert _kinds(shown, "geo/test-00001-of-00002.parquet") == "deleted"
        assert _kinds(shown, "geo/test-00000-of-00001.parquet") == "unchanged"
        assert "Stays here, since the card names it nowhere: remarks.txt" in shown
        assert "left as it is on the hub: .gitattributes, data/other.parquet, geo/notes.md, notes.md, root.parquet" in shown
    assert "Dry run: nothing was written." in told["dry"]
    assert "a new repository" in told["new"]
    assert repo.at().parent == before
    mine = {path: content for path, content in contents(folder).items() if path not in ("remarks.txt", ".tmp-1")}
    assert repo.files() == {**mine, **theirs}


def test_private_is_for_a_new_repository_and_never_passes_over_an_open_one(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    hub.create("dataset", MAIN)
    told = ask(
        """
told["refused"] = refused(prompts, "--private")
command("push", prompts, "--to", "me/private", "--private")
command("push", prompts, "--to", "me/private", "--private")
""",
        hub,
        tmp_path,
        prompts=prompts,
    )
    assert "is public" in told["refused"]
    assert len(hub.repository("dataset", MAIN).history()) == 1
    private = hub.repository("dataset", f"{OWNER}/private")
    assert private.private
    assert len(private.history()) == 2


# Pull requests ------------------------------------------------------------------------------------------------------


def test_who_may_not_write_proposes_and_goes_on_and_it_is_merged(hub: LoopbackHub, tmp_path: Path, folder: Path) -> None:
    repo = hub.create("dataset", MAIN, {"README.md": b"# Nothing yet\n", "theirs.txt": b"theirs"})
    lost = hub.fail(500, path=r"/commit/main\?create_pr", done=True)
    code = """
from datasets import load_dataset
told["direct"] = refused(folder)
told["absent"] = error_of("push", folder, "--to", "lab/none", "--pr")
told["both"] = refused(folder, "--pr", "--revision", "refs/pr/1")
told["proposed"], told["again"] = push(folder, "--pr"), push(folder, "--pr")
told["rows"] = len(load_dataset(name["repo_id"], "geo", split="test", revision="refs/pr/1"))
told["no such"] = refused(folder, "--revision", "refs/pr/9")
with open(f"{folder}/README.md", "a") as card:
    card.write("More.\\n")
told["gone on"] = push(folder, "--revision", "refs/pr/1")
"""
    told = ask(code, hub, tmp_path / "guest", hub.guest_token, folder=folder)
    assert "no rights" in told["direct"]
    assert "--pr" in told["direct"]
    assert "has no dataset lab/none" in told["absent"]
    assert "give one of them" in told["both"]
    assert "refs/pr/9" in told["no such"]
    # The answer was lost: the pull request was found again instead of opened twice.
    assert lost.hits == 1
    assert "--revision refs/pr/1" in told["proposed"]
    assert "has all of this already" in told["again"]
    assert [pull.author for pull in repo.discussions] == [GUEST]
    assert told["rows"] == len(starter.tables()["geo"])
    assert _kinds(told["gone on"], "README.md") == "changed"
    assert 'revision="refs/pr/1"' in told["gone on"]
    assert repo.files() == {"README.md": b"# Nothing yet\n", "theirs.txt": b"theirs"}
    merged = ask(
        """
from datasets import load_dataset
api.merge_pull_request(discussion_num=1, **name)
told["rows"] = len(load_dataset(name["repo_id"], "geo", split="test"))
told["after"] = push(folder)
""",
        hub,
        tmp_path / "owner",
        folder=folder,
    )
    assert repo.files() == {**contents(folder), "theirs.txt": b"theirs"}
    assert merged["rows"] == told["rows"]
    assert "has all of this already" in merged["after"]


# Faults -------------------------------------------------------------------------------------------------------------


def test_a_busy_hub_is_waited_for_and_a_lost_answer_is_found_again(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    soon = {"Retry-After": "0"}
    faults = [
        hub.fail(429, path=f"/api/datasets/{MAIN}$", headers=soon),
        hub.fail(503, path="/api/repos/create", headers=soon),
        hub.fail(429, path="/preupload/", headers=soon),
        hub.fail(500, path="/api/validate-yaml", headers=soon),
        hub.fail(429, path="/commit/", headers=soon),
        hub.fail(500, path="/commit/", headers=soon, done=True),
    ]
    told = ask('told["shown"] = push(prompts)', hub, tmp_path, prompts=prompts)
    assert [fault.hits for fault in faults] == [1] * len(faults)
    repo = hub.repository("dataset", MAIN)
    assert repo.files() == contents(prompts)
    assert len(repo.history()) == 2
    assert repo.at().oid in told["shown"]
    assert "429; trying again in 0 s (2 of 5)" in told["shown"]
    assert len(uploads(hub)) == len(list(prompts.glob("*/*.parquet")))


def test_what_arrived_before_a_failure_is_not_sent_again(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    data = sorted(prompts.glob("*/*.parquet"))
    broken = hashlib.sha256(data[0].read_bytes()).hexdigest()
    # As often as the client tries by itself.
    hub.fail(500, 6, "PUT", f"/lfs/{broken}", {"Retry-After": "0"})
    told = ask(
        """
told["failed"] = refused(prompts)
told["pushed"] = push(prompts)
""",
        hub,
        tmp_path,
        prompts=prompts,
    )
    assert "could not send the files (500" in told["failed"]
    assert "not sent twice" in told["failed"]
    assert Counter(uploads(hub)) == {500: 6, 200: len(data)}
    assert len(hub.repository("dataset", MAIN).history()) == 2


def test_a_hub_that_stays_away_is_told_in_one_paragraph(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    hub.fail(503, 5, path=f"/api/datasets/{MAIN}$")
    hub.fail(429, path="/api/datasets/lab/later$", headers={"Retry-After": "3600"})
    told = ask(
        """
from t2i_parity.dataset_builder import publish
waited = []
publish.time.sleep = waited.append
told["down"], told["waited"] = refused(prompts), waited[:]
told["later"], told["no waiting"] = error_of("push", prompts, "--to", "lab/later"), len(waited)
HfApi.__init__.__defaults__ = ("http://127.0.0.1:9", *HfApi.__init__.__defaults__[1:])
told["unreachable"] = refused(prompts)
""",
        hub,
        tmp_path,
        prompts=prompts,
    )
    assert told["waited"] == [1, 2, 4, 8]
    assert "(503" in told["down"]
    assert "later" in told["down"]
    assert "3600 seconds" in told["later"]
    assert told["no waiting"] == 4
    assert "Connect" in told["unreachable"]
    assert not writes(hub)


CONFLICT = """
from pathlib import Path
from t2i_parity.dataset_builder import publish
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.release import read_release
release = read_release(Path(prompts))
planned = publish.plan(release, publish.Target(name["repo_id"]))
api.upload_file(path_or_fileobj=b"theirs", path_in_repo=path, **name)
try:
    told["made"] = publish.push(release, planned).made
except InputError as refused:
    told["refused"] = str(refused)
"""


def test_another_commit_in_between_is_kept(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    repo = hub.create("dataset", MAIN)
    assert ask(CONFLICT, hub, tmp_path, prompts=prompts, path="notes.md") == {"made": True}
    assert [call.status for call in hub.calls_to("/commit/main")] == [200, 412, 200]
    assert repo.files() == {**contents(prompts), "notes.md": b"theirs"}


@pytest.mark.parametrize("path", ["README.md", "geo/test-00007-of-00008.parquet"])
def test_a_commit_in_between_to_the_same_files_is_not_passed_over(hub: LoopbackHub, tmp_path: Path, prompts: Path, path: str) -> None:
    repo = hub.create("dataset", MAIN)
    told = ask(CONFLICT, hub, tmp_path, prompts=prompts, path=path)
    assert f"was changed on the hub while this push ran, in {path}" in told["refused"]
    assert repo.files() == {path: b"theirs"}


def test_who_is_not_known_or_may_not_is_told_what_to_do(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    hub.create("dataset", "lab/open", {"a.txt": b"a"})
    code = """
told["new"] = refused(prompts)
told["open"] = error_of("push", prompts, "--to", "lab/open")
"""
    anonymous = ask(code, hub, tmp_path / "anonymous", None, prompts=prompts)
    unknown = ask(code, hub, tmp_path / "unknown", "hf_unknown", prompts=prompts)
    for message in (*anonymous.values(), *unknown.values()):
        assert "could not" in message
        assert "hf auth login" in message
        assert "hf_unknown" not in message
    guest = ask(code, hub, tmp_path / "guest", hub.guest_token, prompts=prompts)
    assert "could not create the repository (403" in guest["new"]
    for message in guest.values():
        assert "write rights in it" in message
    assert hub.repository("dataset", "lab/open").files() == {"a.txt": b"a"}


# Licences -----------------------------------------------------------------------------------------------------------


def relicensed(tables: Mapping[str, pa.Table], changes: Mapping[str, tuple[str, str]]) -> dict[str, pa.Table]:
    """The tables with another source and licence for some rows, by prompt_id."""
    changed = {}
    for name, table in tables.items():
        ids = table["prompt_id"].to_pylist()
        for place, column in enumerate(("source", "license")):
            values = table[column].to_pylist()
            new = [changes[row][place] if row in changes else value for row, value in zip(ids, values, strict=True)]
            table = table.set_column(table.column_names.index(column), table.schema.field(column), pa.array(new, pa.string()))
        changed[name] = table
    return changed


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, tuple[str, str]]]:
    """A folder where one reference row states no licence, one variety's row forbids derivatives, and a config is for no commerce."""
    tables = starter.tables()
    rows = tables["dialect"].select(["prompt_id", "variety"]).to_pylist()
    sae = next(row["prompt_id"] for row in rows if row["variety"] == "SAE")
    later = [row["prompt_id"] for row in rows if row["variety"] == "AAVE"][-1]
    changes = {sae: ("Somewhere", "unknown"), later: ("A Book", "CC-BY-ND-4.0")}
    changes |= dict.fromkeys(tables["lingt2i_content"]["prompt_id"].to_pylist(), ("LingT2I", "CC-BY-NC-SA-4.0"))
    changes |= dict.fromkeys(tables["geo"]["prompt_id"].to_pylist(), ("Nowhere", "unknown"))
    folder = tmp_path_factory.mktemp("mixed") / "prompts"
    write_repository(relicensed(tables, changes), folder, edition="mixed")
    return folder, changes


def test_rows_without_a_usable_licence_are_named_and_left_out_when_asked(
    hub: LoopbackHub, tmp_path: Path, mixed: tuple[Path, dict[str, tuple[str, str]]]
) -> None:
    folder, changes = mixed
    told = ask(
        """
from datasets import get_dataset_config_names, load_dataset
told["refused"] = refused(folder)
told["dry"] = push(folder, "--dry-run", check=2)
told["dropped"] = push(folder, "--drop-unlicensed")
rows = load_dataset(name["repo_id"], "dialect", split="test")
told["ids"] = list(rows["prompt_id"])
told["configs"] = get_dataset_config_names(name["repo_id"])
told["again"] = push(folder, "--drop-unlicensed")
""",
        hub,
        tmp_path,
        folder=folder,
    )
    geo = len(starter.tables()["geo"])
    for message in (told["refused"], told["dry"]):
        assert "1 of Somewhere in dialect (no licence stated)" in message
        assert "1 of A Book in dialect (CC-BY-ND-4.0 forbids derivatives)" in message
        assert f"{geo} of Nowhere in geo (no licence stated)" in message
        assert "--drop-unlicensed" in message
    assert "CC-BY-NC-SA-4.0 (share-alike, non-commercial): 1,200 of LingT2I in lingt2i_content" in told["dropped"]
    # The reference row's pair is gone as a whole, the other variety's row alone; the config without rows is gone.
    sae, later, *_ = changes
    pair = sae.removesuffix("SAE")
    before = starter.tables()["dialect"]["prompt_id"].to_pylist()
    assert told["ids"] == [row for row in before if not row.startswith(pair) and row != later]
    assert "Left out of dialect: 2 rows that may not be published, and 5 that were made from such rows" in told["dropped"]
    assert told["configs"] == ["lingt2i_text", "lingt2i_content", "dialect", "dialect_crosslingual"]
    repo = hub.repository("dataset", MAIN)
    assert not [path for path in repo.files() if path.startswith("geo")]
    counts = {entry["config_name"]: entry["splits"][0]["num_examples"] for entry in repo.card()["dataset_info"]}
    assert counts["dialect"] == len(told["ids"])
    assert "has all of this already" in told["again"]
    first_write = next(call for call in hub.calls if call.method == "POST")
    assert first_write.path == "/api/repos/create"


def test_a_drop_takes_what_was_compared_with_a_row_and_what_was_made_from_it() -> None:
    tables = starter.tables()
    standard = next(row for row in tables["dialect_crosslingual"].to_pylist() if row["language"] == "ar")
    no_country = next(row for row in tables["geo"].to_pylist() if row["country"] is None)
    english = next(row for row in tables["lingt2i_content"].to_pylist() if row["language"] == "en")
    hindi = [row for row in tables["lingt2i_content"].to_pylist() if row["language"] == "hi"][-1]
    gone = (standard, no_country, english, hindi)
    kept, dropped = drop_unlicensed(relicensed(tables, {row["prompt_id"]: ("x", "unknown") for row in gone}))
    assert {name: len(tables[name]) - len(kept[name]) for name in tables} == {
        "lingt2i_text": 0,
        "lingt2i_content": 11,
        "dialect": 0,
        "dialect_crosslingual": 2,
        "geo": sum(row["pair_id"] == no_country["pair_id"] for row in tables["geo"].to_pylist()),
    }
    assert [(each.config, each.unlicensed, each.dependent) for each in dropped if each.config == "lingt2i_content"] == [
        ("lingt2i_content", 2, 9)
    ]
    assert refusal(licensed(kept)) is None


def test_an_unknown_licence_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    tables = starter.tables()
    first = tables["geo"]["prompt_id"][0].as_py()
    write_repository(relicensed(tables, {first: ("Basu", "do-what-you-want")}), tmp_path / "prompts", edition="odd")
    for words in ((), ("--drop-unlicensed",), ("--dry-run",)):
        message = error_of("push", tmp_path / "prompts", "--to", MAIN, *words)
        assert "1 of Basu in geo: unknown licence 'do-what-you-want'" in message
        assert "MIT" in message


# Toxic rows ---------------------------------------------------------------------------------------------------------


def test_toxic_rows_go_behind_a_gate_of_their_own(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    told = ask(
        """
words = ("--gated-toxic", toxic)
told["plain"], told["split"], told["again"] = push(prompts), push(prompts, *words), push(prompts, *words)
push(prompts, *words, "--gate", "manual")
push(prompts, *words)
""",
        hub,
        tmp_path / "owner",
        prompts=prompts,
        toxic=TOXIC,
    )
    assert "424 rows labelled toxic are for everybody to see" in told["plain"]
    assert "labelled toxic" not in told["split"]
    assert "Earlier revisions of lab/t2i-parity-prompts stay as they are" in told["split"]
    assert told["again"].count("has all of this already") == 2
    main, behind = hub.repository("dataset", MAIN), hub.repository("dataset", TOXIC)
    assert (main.gated, behind.gated) == (False, "manual")
    assert behind.card()["extra_gated_prompt"]
    assert "extra_gated_prompt" not in main.card()
    # A closer gate is not opened again by a push that does not name it; and it was closed before anything went in.
    paths = [call.path for call in hub.calls]
    assert paths.index(f"/api/datasets/{TOXIC}/settings") < paths.index(f"/api/datasets/{TOXIC}/preupload/main")
    # What holds no toxic row keeps its bytes, and was not sent again.
    assert _kinds(told["split"], "geo/test-00000-of-00001.parquet") == "unchanged"
    assert geo_published.FILE in main.files()
    assert geo_published.FILE not in behind.files()
    assert len(main.history()) == 3
    assert len(behind.history()) == 2
    # A guest reads the one, and not the other before it is let in.
    code = """
from datasets import load_dataset
load = lambda repo, config: load_dataset(repo, config, split="test")
for config in ("dialect", "dialect_crosslingual"):
    rows = load(main, config)
    told[config] = sorted(zip(rows["prompt_id"], rows["label"]))
    told[f"toxic {config}"] = None if refused_still else sorted(zip(load(toxic, config)["prompt_id"], load(toxic, config)["label"]))
told["closed"] = error(load, toxic, "dialect") if refused_still else None
"""
    seen = ask(code, hub, tmp_path / "closed", hub.guest_token, main=MAIN, toxic=TOXIC, refused_still=True)
    assert seen["closed"] == "DatasetNotFoundError"
    behind.granted.add(GUEST)
    seen = ask(code, hub, tmp_path / "granted", hub.guest_token, main=MAIN, toxic=TOXIC, refused_still=False)
    for config in ("dialect", "dialect_crosslingual"):
        rows = starter.tables()[config].select(["prompt_id", "label"]).to_pylist()
        assert {label for _, label in seen[config]} == {0}
        assert {label for _, label in seen[f"toxic {config}"]} == {1}
        assert sorted([*seen[config], *seen[f"toxic {config}"]]) == sorted(list(row.values()) for row in rows)


def test_no_toxic_row_is_sent_where_the_gate_does_not_close(hub: LoopbackHub, tmp_path: Path, prompts: Path) -> None:
    hub.fail(403, path=f"{TOXIC}/settings")
    hub.fail(200, path=f"{TOXIC}/settings")
    told = ask(
        """
told["forbidden"], told["ignored"] = refused(prompts, "--gated-toxic", toxic), refused(prompts, "--gated-toxic", toxic)
""",
        hub,
        tmp_path,
        prompts=prompts,
        toxic=TOXIC,
    )
    assert "could not set the gate (403" in told["forbidden"]
    assert "still open" in told["ignored"]
    assert not uploads(hub)
    assert not hub.calls_to("/commit/")


def test_the_split_loses_no_row() -> None:
    tables = starter.tables()
    benign, toxic = split_toxic(tables)
    assert set(benign) == set(tables)
    assert set(toxic) == {"dialect", "dialect_crosslingual"}
    for name, table in toxic.items():
        assert set(decode_classes(table)["label"].to_pylist()) == {"toxic"}
        assert len(table) + len(benign[name]) == len(tables[name])


# What is no release -------------------------------------------------------------------------------------------------


def test_options_that_contradict_each_other_are_refused(prompts: Path, mixed: tuple[Path, dict[str, tuple[str, str]]]) -> None:
    assert "expected NAMESPACE/NAME" in error_of("push", prompts, "--to", "prompts")
    assert "is no name of a repository" in error_of("push", prompts, "--to", "a b/c")
    assert "a repository of their own" in error_of("push", prompts, "--to", MAIN, "--gated-toxic", MAIN)
    assert "--gated-toxic" in error_of("push", prompts, "--to", MAIN, "--gated-revision", "refs/pr/1")
    assert "unknown gate 'wide'" in error_of("push", prompts, "--to", MAIN, "--gated-toxic", TOXIC, "--gate", "wide")
    with pytest.raises(InputError, match="give one of them"):
        Target(MAIN, "refs/pr/1", create_pr=True)


def test_a_folder_that_would_not_load_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "is not a prompts repository" in error_of("push", tmp_path / "none", "--to", MAIN)
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8")
    rows = len(starter.tables()["geo"])
    card.write_text(text.replace(f"num_examples: {rows}\n", "num_examples: 7\n"), encoding="utf-8")
    assert f"config geo has {rows} rows, and README.md says 7" in error_of("push", folder, "--to", MAIN)
    card.write_text(text.replace("name: noun\n", "name: nouns\n"), encoding="utf-8")
    assert "declares other columns than the files have (noun, nouns)" in error_of("push", folder, "--to", MAIN)
    card.write_text(text, encoding="utf-8")
    path = folder / "geo" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    assert "not a readable parquet file" in error_of("push", folder, "--to", MAIN)
    path.unlink()
    assert "no file matches" in error_of("push", folder, "--to", MAIN)


def test_offline_is_told(prompts: Path) -> None:
    # The tests' own process is offline.
    assert "HF_HUB_OFFLINE" in error_of("push", prompts, "--to", MAIN)


def test_help_shows_an_example() -> None:
    assert "t2i-parity push prompts --to me/t2i-parity-prompts --dry-run" in command("push", "--help").stdout
