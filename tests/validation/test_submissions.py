"""Submissions: what is checked before one leaves, the verdict from the hub alone, and everything that somebody could try."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import command, error_of
from hub_clients import READER, ask, made_run
from loopback_hub import LoopbackHub

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.run import Run, image_features
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Group, Interval, Score
from t2i_parity.validation.examination import MAX_RESAMPLES, Source, differences
from t2i_parity.validation.submissions import check, split_source

TEXT = "text_rendering_precision.precision"
HI = {"language": "hi"}


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty prompts that ask for a text, six a language."""
    out = tmp_path_factory.mktemp("prompts") / "prompts"
    command("build", "lingt2i_text", "--limit", 60, "--out", out)
    return out


@pytest.fixture(scope="module")
def ready(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A scored run, not to be changed."""
    return made_run(tmp_path_factory.mktemp("runs") / "painter", prompts)


@pytest.fixture
def run(ready: Run, tmp_path: Path) -> Run:
    """A copy of it."""
    return Run.open(str(shutil.copytree(ready.url, tmp_path / "painter")))


def faults(run: Run, prompts: Path) -> list[str]:
    return [
        f"{finding.check}: {finding.told}" for finding in check(run.url, [str(prompts)]).examined.findings if finding.verdict == "fault"
    ]


# Before it leaves ---------------------------------------------------------------------------------------------------


def test_a_run_that_is_what_it_says_passes(ready: Run, prompts: Path) -> None:
    checked = check(ready.url, [str(prompts)])
    (precision,) = [each for each in checked.examined.by_meaning["lingt2i_text"] if each.key == "precision"]
    read = ready.scored().read(["pair_id", "reader_precision"]).to_pylist()
    for mean, pair in zip(precision.means, sorted({row["pair_id"] for row in read}), strict=True):
        own = [row["reader_precision"] for row in read if row["pair_id"] == pair]
        assert mean == pytest.approx(sum(own) / len(own), abs=1e-4)
    assert {finding.check: finding.verdict for finding in checked.examined.findings} == dict.fromkeys(
        ("rows", "observations", "scores"), "holds"
    )
    assert checked.subsets == ["lingt2i_text"]
    cells = checked.examined.cells["lingt2i_text"]
    assert [(cell.expected, cell.observed) for cell in cells] == [(6, 6)] * 10
    assert not checked.incomplete("lingt2i_text")
    assert list(checked.scores) == ready.scores()


def edit_scores(act: Callable[[list[dict[str, Any]]], object]) -> Callable[[Run], None]:
    def edit(run: Run) -> None:
        scores = json.loads(run.folder.read("scores.json"))
        act(scores)
        run.folder.write(json.dumps(scores).encode(), "scores.json")

    return edit


def edit_images(act: Callable[[list[dict[str, Any]]], object]) -> Callable[[Run], None]:
    def edit(run: Run) -> None:
        rows = run.images().read().to_pylist()
        act(rows)
        run.images().replace(pa.Table.from_pylist(rows, schema=image_features().arrow_schema))

    return edit


def edit_observations(act: Callable[[list[dict[str, Any]]], object]) -> Callable[[Run], None]:
    def edit(run: Run) -> None:
        table = run.observations("reader").read()
        rows = table.to_pylist()
        act(rows)
        run.observations("reader").replace(pa.Table.from_pylist(rows, schema=table.schema))

    return edit


def edit_record(act: Callable[[dict[str, Any]], object]) -> Callable[[Run], None]:
    def edit(run: Run) -> None:
        act(run.record)
        run.write_record()

    return edit


def other_tokenizer(scores: list[dict[str, Any]]) -> None:
    for entry in scores:
        entry["signature"] = entry["signature"].replace("mistral-common/tekken_240911", "google/mt5-base")


def words_as_read(rows: list[dict[str, Any]]) -> None:
    """Ask for what was read: every text is then right."""
    for row in rows:
        row["render_text"] = row["render_text"][int(row["image_id"][0], 16) % 3 :]


TAMPERED: dict[str, tuple[Callable[[Run], None], str]] = {
    "a value": (edit_scores(lambda s: s[0].update(value=0.99)), f"scores: {TEXT} of all on lingt2i_text: value 0.99 is claimed, and the"),
    "a small change": (edit_scores(lambda s: s[0].update(value=s[0]["value"] + 1e-4)), "is claimed, and the observations give"),
    "an interval": (edit_scores(lambda s: s[0]["interval"].__setitem__(0, 0.0)), "low end 0 is claimed, and the observations give"),
    "a level": (
        edit_scores(lambda s: s[0].update(level=0.5)),
        "interval (0.5, 'wilson, effective size') is claimed, and it is (0.95, 'wilson, effective size')",
    ),
    "a count": (edit_scores(lambda s: s[0].update(n=59)), "n 59 is claimed, and it is 60"),
    "a score left out": (edit_scores(lambda s: s.pop(4)), "is left out"),
    "a score made up": (edit_scores(lambda s: s.append({**s[0], "group": {"language": "xx"}})), "the run has no such score"),
    "another signature": (edit_scores(other_tokenizer), "google/mt5-base"),
    "a row twice": (edit_images(lambda r: r.append(r[0])), "rows: images, row 60 ("),
    "a row of another prompt": (edit_images(lambda r: r[0].update(prompt_id="mine")), "answers 'mine', which is none of the prompts"),
    "a path for a prompt": (edit_images(lambda r: r[0].update(prompt_id="../../x")), "answers '../../x', which is none of the prompts"),
    "the texts that were read": (edit_images(words_as_read), "column render_text"),
    "a language for another": (edit_images(lambda r: r[0].update(language="zh")), "column language"),
    "another prompt's text": (edit_images(lambda r: r[0].update(text_sha256="0" * 64)), "column text_sha256"),
    "an id of one's own": (
        edit_images(lambda r: r[0].update(image_id="0" * 16)),
        "this id is not that of the prompt, the model and the seed",
    ),
    "another seed": (edit_images(lambda r: r[0].update(seed=1)), "is not the seed of this pair"),
    "another seed index": (edit_images(lambda r: r[0].update(seed_index=10**6)), "column seed_index"),
    "an observation twice": (edit_observations(lambda r: r.append(r[0])), "was observed twice"),
    "an observation of nothing": (edit_observations(lambda r: r[0].update(image_id="<b>")), "'<b>' is none of the images"),
    "a reader for another": (edit_observations(lambda r: [row.update(judge="tesseract|v:1") for row in r]), "the signature"),
    "two readers for one": (edit_observations(lambda r: r[0].update(judge="other|v:1")), "under 2 settings"),
    "what was read": (edit_observations(lambda r: r[0].update(text="other")), "is claimed, and the observations give"),
    "another model": (edit_record(lambda r: r["identity"]["model"].update(model="org/other")), "this id is not that of the prompt"),
    "endless resampling": (edit_record(lambda r: r["scoring"].update(n_resamples=10**9)), f"expected 0 to {MAX_RESAMPLES:,}"),
    "a tokenizer to fetch": (edit_record(lambda r: r["scoring"].update(tokenizer="evil/tokenizer")), "scoring.tokenizer"),
    "a setting of another type": (edit_record(lambda r: r["scoring"].update(seed="0")), "scoring.seed: expected a int"),
    "a scoring that is not told": (edit_record(lambda r: r.pop("scoring")), "does not say how the scores were made"),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_what_was_tampered_with_is_named(what: str, run: Run, prompts: Path) -> None:
    tamper, expected = TAMPERED[what]
    tamper(run)
    found = faults(run, prompts)
    assert any(expected in fault for fault in found), found
    message = error_of("submit", run.url, "--model", "org/painter", "--prompts", prompts, "--dry-run")
    assert "is not handed in: " in message


def test_other_prompts_are_refused(run: Run, tmp_path: Path) -> None:
    command("build", "lingt2i_text", "--limit", 90, "--out", tmp_path / "other")
    with pytest.raises(InputError, match=r"these are other prompts than the run answered: it says \w{12}, and .*other has"):
        check(run.url, [str(tmp_path / "other")])
    run.record["identity"]["prompts"]["repository"] = "my prompts"
    run.write_record()
    with pytest.raises(InputError, match="called 'my prompts', which is no repository of the hub; say where they are: --prompts"):
        check(run.url, [])


def test_an_incomplete_run_says_so(prompts: Path, tmp_path: Path) -> None:
    run = made_run(tmp_path / "part", prompts, without=3)
    message = error_of("submit", run.url, "--model", "org/painter", "--prompts", prompts, "--dry-run")
    missing = check(run.url, [str(prompts)]).incomplete("lingt2i_text")
    assert sum(cell.expected - cell.observed for cell in missing) == 3
    assert f"is incomplete on lingt2i_text: {missing[0].group} {missing[0].observed} of 6 rows" in message
    assert "--incomplete" in message
    edit_observations(lambda rows: [row.update(status="failed", text=None) for row in rows[:1]])(run)
    command("score", run.url, "--tokenizer", "tekken", "--resamples", 50)
    missing = check(run.url, [str(prompts)]).incomplete("lingt2i_text")
    assert sum(cell.expected - cell.observed for cell in missing) == 4


def test_columns_that_no_judge_writes_are_a_fault_and_no_crash(run: Run, prompts: Path) -> None:
    ids = run.images().read(["image_id"])["image_id"].to_pylist()
    for column in (pa.array([[1]] * 60), pa.array([7] * 60), pa.array([{"x": 1}] * 60)):
        table = pa.table({"image_id": ids, "judge": [READER] * 60, "text": column, "status": ["ok"] * 60, "reason": [None] * 60})
        run.observations("reader").replace(table)
        assert len(faults(run, prompts)) == 1
    run.observations("reader").replace(pa.table({"image_id": ids, "text": ["x"] * 60}))
    assert "has no column judge, status" in faults(run, prompts)[0]
    path = Path(run.url, "observations", "reader", "part-00000.parquet")
    path.write_bytes(path.read_bytes()[:100])
    assert "observations/reader/part-00000.parquet is no readable parquet file" in faults(run, prompts)[0]


def test_an_audit_passes_and_is_of_one_filter(tmp_path: Path) -> None:
    folder, out = tmp_path / "prompts", tmp_path / "audit"
    command("build", "dialect", "--limit", 60, "--out", folder)
    command("audit-filter", "--filter", "profanity-check", "--prompts", folder, "--out", out)
    command("score", out, "--resamples", 50)
    checked = check(str(out), [str(folder)])
    assert not [finding for finding in checked.examined.findings if finding.verdict == "fault"]
    cells = checked.examined.cells["dialect"]
    assert {cell.group for cell in cells} == {Group(variety=code) for code in ("AAVE", "ChcE", "CollSgE", "IndE", "JamE")}
    assert all(cell.complete for cell in cells)
    run = Run.open(str(out))
    run.observations("other").replace(run.observations("profanity-check").read())
    assert "an audit of 2 instruments" in faults(run, folder)[0]


def test_scores_are_compared_by_what_they_say() -> None:
    spec = specs()["text_rendering_precision"]["precision"]
    score = Score(spec, "s", Group(), 0.5, 2, 0, Interval(0.4, 0.6), Signature("x", {}, "1.0"))
    assert differences([score], [replace(score, value=0.5 + 1e-9)]) == []
    assert differences([score], [replace(score, value=None)]) == [
        f"{TEXT} of all on s: value 0.5 is claimed, and the observations give no value"
    ]


@pytest.mark.parametrize("source", ["lab/results", "lab/results@main", "lab/../x@refs/pr/1", "refs/pr/1", "lab/results@refs/pr/one"])
def test_what_is_no_submission_is_told(source: str) -> None:
    with pytest.raises(InputError, match="is no submission; expected NAMESPACE/RESULTS@refs/pr/NUMBER"):
        split_source(source)
    with pytest.raises(InputError, match="is no commit of 40 digits"):
        Source.published("lab/run", "main")


def test_options_that_lack_something_are_told(run: Run) -> None:
    assert "nothing to hand the result in to" in error_of("submit", run.url, "--model", "org/painter")
    assert "--results-dataset" in error_of("submit", run.url, "--model", "org/painter", "--board", "lab/board-results")
    assert "--model-index goes with" in error_of("submit", run.url, "--model", "org/painter", "--model-index", "--dry-run")
    assert "--against goes with --submission" in error_of("validate", "--against", "lab/prompts")
    assert "three validations" in error_of("validate", "x", "--submission", "lab/results@refs/pr/1")


# The verdict --------------------------------------------------------------------------------------------------------

BOARD = "lab/board-results"


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as running:
        running.create("dataset", BOARD, {"README.md": b"# Results\n"})
        yield running


SUBMIT = """
from t2i_parity.validation.submissions import judge
push = lambda folder, to, *words: command("push", folder, "--to", to, *words).stdout
push(prompts, "lab/prompts")

HI = {"language": "hi"}

def faults(number, **keywords):
    verdict = judge(f"lab/board-results@refs/pr/{number}", **keywords).as_json()
    json.dumps(verdict)
    found = [f"{each['check']}: {each['told']}" for each in verdict["findings"] if each["verdict"] == "fault"]
    assert verdict["accepted"] == (not found), verdict
    return found

def submit(folder, to, *words):
    return command("submit", folder, "--model", "org/painter", "--board", "lab/board-results", "--results-dataset", to, *words).stdout
"""


def test_tampered_submissions_are_caught_from_the_hub_alone(hub: LoopbackHub, tmp_path: Path, ready: Run, prompts: Path) -> None:
    runs = {}
    for what in ("a row twice", "the texts that were read", "what was read", "an observation twice", "endless resampling"):
        copy = Run.open(str(shutil.copytree(ready.url, tmp_path / what.replace(" ", "-"))))
        TAMPERED[what][0](copy)
        runs[what] = copy.url
    told = ask(
        SUBMIT
        + """
import shutil
from huggingface_hub import CommitOperationAdd, CommitOperationDelete
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.stored import folded
push(run, "me/run")
told["submitted"] = submit(run, "me/run")
told["innocent"] = faults(1), faults(1, prompts=["lab/prompts"]), faults(1, prompts=[prompts])
told["command"] = command("validate", "--submission", "lab/board-results@refs/pr/1", "--json", "verdict.json").stdout
told["json"] = json.loads(Path("verdict.json").read_text())
PATH = "results/org__painter/" + "1" * 40 + "/lingt2i_text.json"
original = json.loads(Path(api.hf_hub_download("lab/board-results", PATH, repo_type="dataset", revision="refs/pr/1")).read_text())

def propose(*operations, who=api):
    done = who.create_commit("lab/board-results", list(operations), commit_message="x", repo_type="dataset", create_pr=True)
    return int(done.pr_num)

def changed(act, path=PATH):
    content = json.loads(json.dumps(original))
    act(content)
    return propose(CommitOperationAdd(path, json.dumps(content).encode()))

def drop_language(content):
    content["cells"] = [cell for cell in content["cells"] if cell["group"] != HI]
    content["scores"] = [score for score in content["scores"] if score["group"] != HI]

def shrink(content):
    for cell in content["cells"]:
        cell["expected"] = cell["observed"] = 1

def resign(content):
    for score in content["scores"]:
        score["signature"] = score["signature"].replace("mistral-common/tekken_240911", "google/mt5-base")

records = {
    "score": lambda c: c["scores"][0].update(value=0.99),
    "language": drop_language,
    "cells": shrink,
    "signature": resign,
    "direction": lambda c: c["scores"][0].update(direction="lower"),
    "prompts": lambda c: c["prompts"].update(content_sha256="0" * 64),
    "digest": lambda c: c["run"].update(digest="0" * 64),
    "no run": lambda c: c["run"].update(repository=None, revision=None),
    "branch": lambda c: c["run"].update(revision="main"),
    "absent run": lambda c: c["run"].update(repository="me/none"),
    "somebody": lambda c: c["submitter"].update(user="somebody"),
    "future": lambda c: c.update(submitted="2099-01-01T00:00:00Z"),
    "supersedes": lambda c: c.update(supersedes="0" * 16),
    "model path": lambda c: c["model"].update(id="../../etc"),
    "by meaning": lambda c: c["by_meaning"][0]["means"].__setitem__(0, 0.987),
    "fewer meanings": lambda c: c["by_meaning"][0]["means"].pop(),
    "duplicate": lambda c: c["scores"].append(c["scores"][0]),
    "revision": lambda c: c["model"].update(revision="2" * 40),
}
for what, act in records.items():
    told[what] = faults(changed(act, PATH.replace("1" * 40, "2" * 40) if what == "revision" else PATH))

def as_version_1(content):
    named = lambda codes: ",".join(f"{axis}:{code}" for axis, code in codes.items()) or "all"
    for score in content["scores"]:
        signature = Signature.parse(score["signature"])
        text = signature.having(**{key: folded(value) for key, value in signature.fields.items() if not isinstance(value, str)})
        low, high = score.pop("interval") or (None, None)
        better = {"higher": True, "lower": False, "none": None}[score.pop("direction")]
        del score["level"], score["method"]
        score.pop("reason", None)
        name = f"{score['metric']}.{score.pop('key')}"
        score.update(metric=name, group=named(score["group"]), signature=str(text), ci_low=low, ci_high=high, higher_is_better=better)
    for cell in content["cells"]:
        cell["group"] = named(cell["group"])
    del content["by_meaning"]
    content["schema_version"] = 1

told["version 1"] = faults(changed(as_version_1))
told["another model"] = faults(changed(lambda c: c["model"].update(id="org/other"), PATH.replace("painter", "other")))
told["place"] = faults(changed(lambda c: None, "results/org__other/1.0/lingt2i_text.json"))
told["names"] = faults(changed(lambda c: c["model"].update(name="<img src=x onerror=alert(1)> {{x}} --- \\u202e")))
hostile = changed(lambda c: c["prompts"].update(repository="[red]x[/red] \\u202e\\x1b[2J<b>\\n---"))
told["shown"] = command("validate", "--submission", f"lab/board-results@refs/pr/{hostile}", check=1).stdout
told["readme"] = faults(propose(CommitOperationAdd("README.md", b"mine"), CommitOperationAdd(PATH, json.dumps(original).encode())))
told["elsewhere"] = faults(propose(CommitOperationAdd("results/..hidden/a/b.json", b"{}")))
told["no json"] = faults(propose(CommitOperationAdd(PATH, b"{")))
told["large"] = faults(propose(CommitOperationAdd(PATH, b" " * (4 * 2**20 + 1))))
told["nothing"] = faults(propose(CommitOperationAdd(".gitignore", b"x")))

told["runs"] = {}
for what, folder in runs.items():
    name = "me/" + Path(folder).name
    api.create_repo(name, repo_type="dataset")
    api.upload_folder(repo_id=name, folder_path=folder, repo_type="dataset", ignore_patterns=[".*"])
    sha = api.dataset_info(name).sha
    told["runs"][what] = faults(changed(lambda c: c["run"].update(repository=name, revision=sha)))

# Once merged, a record stays as it is, and the same result is not handed in again.
api.merge_pull_request("lab/board-results", 1, repo_type="dataset")
told["merged"] = faults(1)
told["overwritten"] = faults(propose(CommitOperationAdd(PATH, json.dumps({**original, "submitter": {"user": "me", "name": "x"}}).encode())))
told["deleted"] = faults(propose(CommitOperationDelete(PATH)))
told["again"] = error_of("submit", run, "--model", "org/painter", "--board", "lab/board-results", "--results-dataset", "me/run")
command("score", run, "--tokenizer", "tekken", "--resamples", 60)
push(run, "me/run")
told["anew"] = submit(run, "me/run", "--name", "Painter")
number = max(pull.num for pull in api.get_repo_discussions("lab/board-results", repo_type="dataset"))
told["superseding"] = faults(number)
""",
        hub,
        tmp_path,
        run=str(shutil.copytree(ready.url, tmp_path / "run")),
        prompts=prompts,
        runs=runs,
    )
    assert told["innocent"] == [[], [], []]
    assert "Accepted: 1 record may be merged." in told["command"]
    assert told["json"]["accepted"] is True
    expected = {
        "score": f"scores: {TEXT} of all on lingt2i_text: value 0.99 is claimed, and the observations give",
        "language": "cells: language=hi: no cell in the record, 6 of 6 rows in the run and its prompts",
        "cells": "1 of 1 rows in the record, 6 of 6 rows in the run and its prompts",
        "signature": "google/mt5-base",
        "direction": f"scores: {TEXT} of all: lower and fraction are claimed, and it is higher and fraction",
        "prompts": "run: prompts.content_sha256:",
        "digest": "run: the record's digest is not that of the published run",
        "no run": "run: the record names no published run",
        "branch": "is no commit of 40 digits",
        "absent run": "run: could not fetch the run's record (404",
        "somebody": "submitter: it says that somebody hands it in, and me opened the pull request",
        "future": "record: submitted 2099-01-01T00:00Z: that is not yet",
        "supersedes": "is no record of this model, revision, subset and signature",
        "model path": "record: results/org__painter/",
        "by meaning": "text_rendering_precision.precision by meaning: meaning 0: 0.987 is claimed, and the observations give",
        "fewer meanings": "text_rendering_precision.precision by meaning: 5 meanings are claimed, and the run has 6",
        "duplicate": "comes twice under the signature",
        "revision": f"made by: the run is of the revision {'1' * 40}, the record of {'2' * 40}",
        "place": "record: results/org__other/1.0/lingt2i_text.json: this record belongs at",
        "readme": "changes: README.md is changed",
        "elsewhere": "changes: results/..hidden/a/b.json is no record's place",
        "no json": "not valid JSON",
        "large": "4,194,305 bytes",
        "nothing": "is no record's place",
        "overwritten": "is changed, and a record is never overwritten",
        "deleted": "is deleted, and a record is never taken away",
    }
    for what, words in expected.items():
        assert any(words in fault for fault in told[what]), (what, told[what])
    assert "Refused: run: prompts.repository: " in told["shown"]
    assert "[red]x[/red]" in told["shown"]
    assert not {"\x1b", "\u202e"} & set(told["shown"])
    # Names are shown escaped wherever they are shown. Whose model it is nobody can see from the hub: it is noted.
    assert told["names"] == []
    assert told["another model"] == []
    # A record of version 1 is read as the run says, and its intervals, made in a way that is no more, are not taken on trust.
    assert [
        "interval (0.95, 'bootstrap') is claimed, and it is (0.95, 'wilson, effective size')" in fault for fault in told["version 1"]
    ] == [True]
    # Merged, its record is there already.
    assert any("is there already" in fault for fault in told["merged"])
    in_runs = {
        "a row twice": "rows: images, row 60",
        "the texts that were read": "column render_text",
        "what was read": "is claimed, and the observations give",
        "an observation twice": "was observed twice",
        "endless resampling": "scoring.n_resamples",
    }
    for what, words in in_runs.items():
        assert any(words in fault for fault in told["runs"][what]), (what, told["runs"][what])
    assert "the board has just this result already" in told["again"]
    assert "proposed: " in told["anew"]
    assert told["superseding"] == []


def test_faults_of_the_hub_are_waited_out_or_told_and_a_second_run_finishes(
    hub: LoopbackHub, tmp_path: Path, ready: Run, prompts: Path
) -> None:
    hub.create("model", "org/painter", {"README.md": b"---\nlicense: mit\n---\n# Painter\n"})
    for status, path in ((409, "board-results/commit/"), (429, "board-results/preupload/"), (503, "board-results/tree/")):
        hub.fail(status, path=path, headers={"Retry-After": "0"})
    # Longer than anybody waits for.
    hub.fail(429, path="models/org/painter/commit/", headers={"Retry-After": "9999"})
    told = ask(
        SUBMIT
        + """
import time
real = time.sleep
time.sleep = lambda seconds: real(min(seconds, 0.01))
push(run, "me/run")
words = ("--model-page", "--model-index")
told["first"] = error_of("submit", run, "--model", "org/painter", "--board", "lab/board-results", "--results-dataset", "me/run", *words)
told["second"] = submit(run, "me/run", *words)
told["third"] = submit(run, "me/run", *words)
told["verdict"] = faults(1)
told["401"] = error_of("validate", "--submission", "lab/none@refs/pr/1")
""",
        hub,
        tmp_path,
        run=ready.url,
        prompts=prompts,
    )
    assert "asks to wait 9999 seconds before org/painter" in told["first"]
    assert f"{BOARD}: proposed before: " in told["second"]
    assert "org/painter: proposed: " in told["second"]
    assert "org/painter: proposed before: " in told["third"]
    assert told["verdict"] == []
    assert "404" in told["401"]
    assert len(hub.repository("dataset", BOARD).discussions) == 1
    page = hub.repository("model", "org/painter")
    (pull,) = page.discussions
    files = page.files(pull.ref)
    assert b"task_id: text_rendering_worst_language" in files[".eval_results/t2i-parity.yaml"]
    assert page.card(pull.ref)["model-index"][0]["results"][0]["dataset"]["type"] == "lab/prompts"
    assert page.card(pull.ref)["license"] == "mit"
    hub.create("dataset", "me/gated", {"run.json": b"{}"}, gated="manual")
    refused = ask(
        """
told["gated"] = error_of("submit", run, "--model", "org/painter", "--prompts", prompts, "--board", "lab/board-results",
    "--results-dataset", "me/gated")
""",
        hub,
        tmp_path,
        hub.guest_token,
        run=ready.url,
        prompts=prompts,
    )
    assert "behind a gate. Ask for access on" in refused["gated"]


def test_the_record_says_what_the_run_says(ready: Run) -> None:
    assert json.loads(Path(ready.url, "run.json").read_text())["scoring"] == {
        "tokenizer": "tekken",
        "normalization": "none",
        "variant": "paper",
        "confidence_level": 0.95,
        "n_resamples": 50,
        "seed": 0,
        "calibration": "",
        "ceiling": "sign",
    }
