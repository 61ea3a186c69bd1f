"""What the metrics' cards and docstrings show, and what their folders promise to evaluate, a Space and an import."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import json
import re
import runpy
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import evaluate.loading
import pytest
import yaml

from t2i_parity.metrics import copies

NAMES = sorted(core.parent.name for core in (Path(__file__).parents[2] / "metrics").glob("*/core.py"))


@pytest.mark.parametrize("name", NAMES)
def test_the_cards_example_shows_what_it_prints(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = (root / "metrics" / name / "README.md").read_text(encoding="utf-8")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", card, re.DOTALL)
    assert examples
    monkeypatch.chdir(root)
    for code, shown in examples:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, f"{name}/README.md", "exec"), {})
        assert printed.getvalue() == shown
        assert not re.search(r"\d\.\d{7,}", shown), "more digits than all processors agree on, and than anybody reads"


@pytest.mark.parametrize("name", NAMES)
def test_the_card_is_a_space(name: str, root: Path) -> None:
    folder = root / "metrics" / name
    head = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    assert (head["sdk"], head["app_file"], head["tags"]) == ("gradio", "app.py", ["evaluate", "metric"])
    assert re.fullmatch(r"\d+\.\d+\.\d+", head["sdk_version"])
    assert head["title"]
    assert head["description"]
    assert (folder / "app.py").is_file()
    assert "evaluate" in (folder / "requirements.txt").read_text()


@pytest.mark.parametrize(
    "module", ["t2i_parity.metrics._common", "t2i_parity.metrics._inference", *(f"t2i_parity.metrics.{name}.core" for name in NAMES)]
)
def test_doctests(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", NAMES)
def test_evaluate_copies_every_file_that_the_metric_needs(name: str, root: Path) -> None:
    folder = root / "metrics" / name
    imports = evaluate.loading.get_imports(str(folder / f"{name}.py"))
    copied = {imported for kind, imported, *_ in imports if kind == "internal"}
    needed, left = set(), {name}
    while left:
        text = (folder / f"{left.pop()}.py").read_text(encoding="utf-8")
        found = set(re.findall(r"^from \.(\w+) import", text, re.MULTILINE)) - needed
        needed |= found
        left |= found
    assert copied == needed
    assert {imported for kind, imported, *_ in imports if kind == "library"} == {"evaluate"}


@pytest.mark.parametrize("name", NAMES)
def test_a_published_copy_loads_alone(name: str, root: Path, tmp_path: Path) -> None:
    copy = tmp_path / name
    shutil.copytree(root / "metrics" / name, copy, symlinks=False)
    metric = evaluate.load(str(copy), cache_dir=str(tmp_path / "cache"))
    assert metric.name == name
    assert len(metric) == 0


def test_written_files_are_as_they_would_be_written() -> None:
    assert copies.stale() == [], f"change their source, and run {copies.COMMAND}"


def test_languages_are_the_datasets() -> None:
    from t2i_parity.dataset_builder.languages import LANGUAGES
    from t2i_parity.metrics._languages import LANGUAGES as KNOWN

    assert {code: (each.branch, each.script) for code, each in LANGUAGES.items()} == KNOWN


def test_a_stale_copy_and_a_link_are_told_and_written_anew(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(root / "metrics", tmp_path / "metrics", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(copies, "ROOT", tmp_path / "metrics")
    source, folder = tmp_path / "metrics" / "_common.py", tmp_path / "metrics" / "trigscore"
    assert copies.main(["--check"]) == 0
    assert capsys.readouterr().out == ""
    (folder / "app.py").unlink()
    (folder / "common.py").unlink()
    (folder / "common.py").symlink_to("../_common.py")
    before = source.read_bytes()
    assert copies.main(["--check"]) == 1
    told = capsys.readouterr().out
    assert told == f"stale: metrics/trigscore/app.py\nstale: metrics/trigscore/common.py\nFix: {copies.COMMAND}\n"
    assert copies.main([]) == 0
    assert source.read_bytes() == before
    assert (folder / "common.py").read_bytes() == (root / "metrics" / "trigscore" / "common.py").read_bytes()
    with source.open("a", encoding="utf-8") as opened:
        opened.write("# A comment.\n")
    assert {path.name for path in copies.stale()} == {"common.py"}
    assert len(copies.stale()) == len(NAMES)


def test_no_metric_folder_holds_a_link(root: Path) -> None:
    assert [path for path in (root / "metrics").rglob("*") if path.is_symlink()] == []


def test_importing_metrics_loads_nothing_heavy_and_nothing_of_ours(root: Path) -> None:
    modules = [
        "t2i_parity.metrics",
        *(f"t2i_parity.metrics.{name}" for name in NAMES),
        *(f"t2i_parity.metrics.{name}.core" for name in NAMES),
    ]
    kept_out = ["torch", "transformers", "evaluate", "datasets", "gradio", "mistral_common", "tokenizers"]
    kept_out += ["dataset_builder", "generate", "validation", "cards"]
    code = (
        "import importlib, json, sys\n"
        f"for name in {modules!r}: importlib.import_module(name)\n"
        f"print(json.dumps([name for name in {kept_out!r} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []


def recorded_gradio() -> types.ModuleType:
    """As much of gradio as the forms use, for where it is not installed."""
    gradio = types.ModuleType("gradio")

    class Part:
        def __init__(self, *args: Any, **keywords: Any) -> None:
            self.args, self.keywords = args, keywords

    for name in ("Dataframe", "Dropdown", "Radio", "Number", "Textbox", "JSON", "Interface"):
        setattr(gradio, name, type(name, (Part,), {}))
    gradio.Error = type("Error", (Exception,), {})  # type: ignore[attr-defined]
    return gradio


# The form of clip_score takes an image, and is tried in its own file.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "clip_score"])
def test_the_spaces_form_scores_its_own_example(name: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gradio = recorded_gradio()
    monkeypatch.setitem(sys.modules, "gradio", gradio)
    app = runpy.run_path(str(root / "metrics" / name / "app.py"))
    demo = app["demo"]
    table, *rest = demo.keywords["inputs"]
    settings = [part.keywords["value"] for part in rest]
    answer = demo.args[0](table.args[0], *settings)
    assert answer["n"] + answer["n_missing"] == len(table.args[0])
    assert demo.keywords["article"].startswith("\n# ")
    with pytest.raises(gradio.Error, match="expected"):
        demo.args[0]([[3, None, "x", "x"]], *settings)


@pytest.mark.parametrize("name", NAMES)
def test_the_spaces_form_builds_with_gradio(name: str, root: Path) -> None:
    pytest.importorskip("gradio")
    app = runpy.run_path(str(root / "metrics" / name / "app.py"))
    assert app["demo"].input_components
