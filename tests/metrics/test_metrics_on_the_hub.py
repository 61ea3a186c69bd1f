"""Every metric as people load it from the hub: in an environment of its requirements alone, a Space gives the core's numbers."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import io
import json
import re
import shutil
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hub_clients import ask
from loopback_hub import LoopbackHub, run_client
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from t2i_parity.generate import spaces

METRICS = Path(__file__).resolve().parents[2] / "metrics"
NAMES = sorted(core.parent.name for core in METRICS.glob("*/core.py"))
# What a metric must do without, though it may name it in its requirements: its weights and their readers are loaded on demand.
HEAVY = ("torch", "torchvision", "transformers", "open_clip", "open_clip_torch")
ABSENT = (*HEAVY, "gradio", "metrics", "dataset_builder", "generate", "validation", "cards")
REVISIONS = {space.name: space.tag for space in spaces.metrics()}


def examples(name: str) -> list[tuple[str, str]]:
    """The examples of a metric's card, up to where one goes on in a clone by importing the core, and what it shows that it prints."""
    card = (METRICS / name / "README.md").read_text(encoding="utf-8")
    found = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", card, re.DOTALL)
    assert found, f"{name}/README.md shows no example with its output"
    return [(code.split("\nfrom t2i_parity.metrics.")[0], shown) for code, shown in found]


# The hub with every metric on it


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackHub]:
    """Each folder as a Space, as the command publishes it, with a main branch that has gone on and broken."""
    publish = f"""
told["dry"] = command("push", "metrics", "--to", "lab", "--dry-run").stdout
told["first"] = command("push", "metrics", "--to", "lab").stdout
for name in {NAMES!r}:
    space = dict(repo_id=f"lab/{{name}}", repo_type="space")
    api.upload_file(path_or_fileobj=b'raise RuntimeError("this is main")', path_in_repo=f"{{name}}.py", **space)
told["second"] = command("push", "metrics", "--to", "lab").stdout
api.create_repo("other/bias_entropy", repo_type="space", space_sdk="gradio")
api.create_tag("other/bias_entropy", repo_type="space", tag={REVISIONS["bias_entropy"]!r})
told["refused"] = error_of("push", "metrics", "--to", "other")
"""
    with LoopbackHub() as running:
        TOLD.update(ask(publish, running, tmp_path_factory.mktemp("publish")))
        yield running


TOLD: dict[str, str] = {}
"""What the command said."""


# An environment that holds what a requirements.txt asks for, and nothing else


def required(requirements: str) -> frozenset[str]:
    """The installed distributions that requirements lead to, but for the heavy ones."""
    waiting = [Requirement(line) for line in requirements.splitlines() if line.strip() and not line.startswith("#")]
    found: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen or name.replace("-", "_") in HEAVY:
            continue
        seen.add(key)
        try:
            lines = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue  # as absent there as it is here
        found.add(name)
        for needed in map(Requirement, lines):
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *requirement.extras)):
                waiting.append(needed)
    return frozenset(found)


def link(distributions: frozenset[str], site: Path) -> Path:
    """A folder to import from that holds these distributions and no others."""
    site.mkdir()
    for name in distributions:
        distribution = importlib.metadata.distribution(name)
        for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(str(distribution.locate_file(top)))
    return site


# -I and -S: neither the working directory, nor PYTHONPATH, nor this environment's packages (among them our own) can be imported.
ALONE = (sys.executable, "-I", "-S")
CLIENT = """
import sys
sys.path.append({site!r})
import contextlib, importlib.util, io, json, traceback
import evaluate

load, told = evaluate.load, {{}}
for name, (revision, examples) in json.loads({examples!r}).items():
    answers, printed = [], io.StringIO()

    def load_from_the_hub(path, *arguments, name=name, revision=revision, answers=answers, **keywords):
        assert path == f"metrics/{{name}}", path
        metric = load(f"lab/{{name}}", *arguments, revision=revision, **keywords)
        compute = metric.compute

        def recorded(**given):
            answers.append(compute(**given))
            return answers[-1]

        metric.compute = recorded
        return metric

    told[name] = {{"answers": answers, "main": None, "error": None}}
    try:
        load(f"lab/{{name}}")
    except Exception as error:
        told[name]["main"] = str(error)
    evaluate.load = load_from_the_hub
    try:
        with contextlib.redirect_stdout(printed):
            for code in examples:
                exec(compile(code, name, "exec"), {{}})
    except BaseException:
        told[name]["error"] = traceback.format_exc()
    told[name] |= {{"printed": printed.getvalue(), "loaded": sorted(set({absent!r}) & set(sys.modules))}}
    told[name]["can be imported"] = [name for name in {absent!r} if importlib.util.find_spec(name)]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def from_the_hub(hub: LoopbackHub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each metric says when it comes from the hub: one process for those that require the same."""
    alike: dict[frozenset[str], list[str]] = {}
    for name in NAMES:
        alike.setdefault(required((METRICS / name / "requirements.txt").read_text(encoding="utf-8")), []).append(name)
    told: dict[str, dict[str, Any]] = {}
    for distributions, names in alike.items():
        folder = tmp_path_factory.mktemp("alone")
        given = json.dumps({name: (REVISIONS[name], [code for code, _ in examples(name)]) for name in names})
        code = CLIENT.format(site=str(link(distributions, folder / "site")), examples=given, absent=ABSENT)
        told |= json.loads(run_client(code, hub, folder, token=None, python=ALONE).stdout.splitlines()[-1])
    return told


# Tests


def test_publishing_is_shown_first_and_a_published_version_never_changes(hub: LoopbackHub) -> None:
    assert "Dry run: nothing was written." in TOLD["dry"]
    for name in NAMES:
        assert f"lab/{name} {REVISIONS[name]}, a new Space: " in TOLD["dry"]
        assert f'evaluate.load("lab/{name}", revision="{REVISIONS[name]}")' in TOLD["first"]
        space = hub.repository("space", f"lab/{name}")
        # The command's commit is the tagged one; the one after it is the test's, and the second push made none.
        assert space.at().title == f"Upload {name}.py with huggingface_hub"
        assert space.at(REVISIONS[name]).title == f"{name} {REVISIONS[name][1:]}"
        assert f"lab/{name} has all of this already" in TOLD["second"]
    assert f"other/bias_entropy has a tag {REVISIONS['bias_entropy']} with another content" in TOLD["refused"]
    assert [name for _, name in hub._repositories if name.startswith("other/")] == ["other/bias_entropy"]


def test_every_metric_is_here() -> None:
    assert {"text_rendering_precision", "dialect_penalty", "cross_lingual_gap"} <= set(NAMES)
    assert set(NAMES) == {path.name for path in METRICS.iterdir() if path.is_dir() and any(path.glob("*.py"))}


@pytest.mark.parametrize("name", NAMES)
def test_the_space_holds_the_folder_but_for_its_spec(name: str, hub: LoopbackHub) -> None:
    arrived = hub.repository("space", f"lab/{name}").files(REVISIONS[name])
    assert arrived == {path.name: path.read_bytes() for path in (METRICS / name).iterdir() if path.is_file() and path.name != "spec.py"}
    assert hub.repository("space", f"lab/{name}").card(REVISIONS[name])["tags"] == ["evaluate", "metric"]


def test_a_changed_comment_is_published_anew_and_changes_no_signature(hub: LoopbackHub, tmp_path: Path) -> None:
    """Both publications stay, under a tag each, and give one answer; what is published already is left alone."""
    changed = tmp_path / "cross_lingual_gap"
    shutil.copytree(METRICS / "cross_lingual_gap", changed, ignore=shutil.ignore_patterns("__pycache__"))
    (changed / "spec.py").write_text("raise RuntimeError\n", encoding="utf-8")
    with (changed / "common.py").open("a", encoding="utf-8") as common:
        common.write("# A comment.\n")
    code = """
import evaluate
from t2i_parity.generate import spaces
told["tags"], told["made"], told["answers"] = [], [], []
for folder in (first, changed, first):
    space = spaces.space_of(Path(folder))
    told["made"].append(spaces.push(space, spaces.plan(space, "again")).made)
    told["tags"].append(space.tag)
for tag in told["tags"]:
    metric = evaluate.load("again/cross_lingual_gap", revision=tag)
    told["answers"].append(metric.compute(scores=[0.9, 0.7, 0.4], languages=["en", "en", "hi"]))
"""
    told = ask(code, hub, tmp_path / "client", first=METRICS / "cross_lingual_gap", changed=changed)
    assert told["made"] == [True, True, False]
    assert told["tags"][0] == told["tags"][2] == REVISIONS["cross_lingual_gap"] != told["tags"][1]
    assert {tag.split("-")[0] for tag in told["tags"]} == {"v1.0"}
    assert told["answers"][0] == told["answers"][1] == told["answers"][2]
    there = hub.repository("space", "again/cross_lingual_gap")
    assert there.files(told["tags"][1]) == there.files() != there.files(told["tags"][0])
    assert "spec.py" not in there.files()


@pytest.mark.parametrize("name", NAMES)
def test_from_the_hub_it_gives_the_cores_numbers(
    name: str, from_the_hub: dict[str, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    core, answers = importlib.import_module(f"t2i_parity.metrics.{name}.core"), []

    def compute(**given: Any) -> Any:
        answers.append(core.compute(**given))
        return answers[-1]

    here = types.SimpleNamespace(load=lambda path: types.SimpleNamespace(compute=compute))
    monkeypatch.setitem(sys.modules, "evaluate", here)
    told, printed = from_the_hub[name], ""
    assert told["error"] is None, told["error"]
    for code, shown in examples(name):
        with contextlib.redirect_stdout(io.StringIO()) as now:
            exec(compile(code, name, "exec"), {})
        assert now.getvalue()
        assert shown.startswith(now.getvalue())
        printed += now.getvalue()
    assert len(answers) > 0
    assert told["answers"] == json.loads(json.dumps(answers))
    assert told["printed"] == printed


@pytest.mark.parametrize("name", NAMES)
def test_it_needs_no_more_than_its_requirements(name: str, from_the_hub: dict[str, dict[str, Any]]) -> None:
    assert from_the_hub[name]["error"] is None
    assert from_the_hub[name]["loaded"] == []
    assert from_the_hub[name]["can be imported"] == []


@pytest.mark.parametrize("name", NAMES)
def test_the_revision_is_what_is_loaded(name: str, from_the_hub: dict[str, dict[str, Any]]) -> None:
    assert from_the_hub[name]["main"] == "this is main"
