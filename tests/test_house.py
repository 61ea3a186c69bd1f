"""The rooms: who may import whom, what stays light, and what no file may hold."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import t2i_parity

ROOT = Path(__file__).parent.parent
NAME = "t2i_parity"
MAY_IMPORT = {
    "metrics": set(),
    "cards": set(),
    "dataset_builder": {"cards"},
    "generate": {"dataset_builder", "metrics", "cards"},
    # A submission's scores are recomputed by the code that made them; nothing imports validation.
    "validation": {"dataset_builder", "metrics", "generate", "cards"},
}


def _sources() -> list[Path]:
    return [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py")) if not path.is_symlink()]


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_imports_upward(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [node.module]
        for name in names:
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            assert top not in MAY_IMPORT, f"{path.name} imports {name} by its bare name"
            assert top != NAME or other not in MAY_IMPORT or other == package or other in MAY_IMPORT[package], f"{path.name} imports {name}"


LIGHT = (
    "dataset_builder.commands",
    "dataset_builder.repository",
    "dataset_builder.starter",
    "generate.commands",
    "generate.stages",
    "dataset_builder.prompts",
    "generate.run",
    "generate.score",
    "generate.report",
    "generate.observe",
    "generate.models.glyph",
    "generate.judges.tesseract",
    "generate.models.listing",
    "generate.models.diffusers_pipeline",
    "generate.models.janus",
    "generate.layout",
    "generate.filters.profanity_check",
    "dataset_builder.full",
    "dataset_builder.commands.push",
    "dataset_builder.controls.encoders",
    "dataset_builder.commands.construct",
    "dataset_builder.pipelines.lingt2i",
    "dataset_builder.pipelines.dialect",
    "dataset_builder.pipelines.review",
    "dataset_builder.controls.typos",
    "dataset_builder.chat",
    "dataset_builder.endpoints",
    "validation.commands",
    "validation.prompts.runner",
    "generate.judges.trigscore",
    "generate.judges.vlm_reader",
    "generate.judges.clip",
    "generate.judges.hybrid",
    "generate.guardrails.model",
    "generate.guardrails.safe_latent_diffusion",
    "generate.guardrails.promptguard",
    "generate.guardrails.safety_checker",
    "generate.models.catalog",
    "generate.models.gemini",
    "generate.models.openai_images",
    "generate.models.adapter",
    "generate.compare",
    "generate.audit.stages",
    "validation.board",
)


def test_core_commands_import_no_torch() -> None:
    code = (
        f"import sys, importlib; [importlib.import_module('t2i_parity.' + name) for name in {LIGHT!r}]; "
        "from t2i_parity.dataset_builder import starter; starter.tables(); "
        "print([name for name in ('torch', 'diffusers', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("room", ["dataset_builder", "generate", "validation"])
def test_a_command_stands_in_the_file_of_its_name(room: str) -> None:
    """And what a command is made of does not import the app that mounts it."""
    app = importlib.import_module(f"{NAME}.{room}.commands").app
    for command in app.registered_commands:
        file = command.callback.__module__.rpartition(".")[2]
        assert command.callback.__module__ == f"{NAME}.{room}.commands.{file}"
        assert command.callback.__name__.partition("_")[0] == file
    for path in _sources():
        if path.parent == ROOT / room / "commands" and path.name != "__init__.py":
            assert f"from {NAME}.{room}.commands import " not in path.read_text(encoding="utf-8"), path


def test_the_program_tells_its_version() -> None:
    for words in (["-c", "from t2i_parity.dataset_builder.console import main; main()"], ["-m", NAME]):
        done = subprocess.run([sys.executable, *words, "--version"], capture_output=True, text=True, check=True)
        assert done.stdout == f"t2i-parity {t2i_parity.__version__}\n"


def test_a_missing_extra_names_the_pip_command() -> None:
    from t2i_parity.dataset_builder.errors import InputError, require

    with pytest.raises(InputError, match=re.escape("pip install 't2i-parity[generate]'")):
        require("no_such_module_anywhere", package="diffusers", extra="generate")


def test_no_file_names_a_machine_or_a_registry() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    forbidden = re.compile(r"(?<![\w.])(/work/|/root/|/home/\w+|/tmp/\w)|pypi\.org|files\.pythonhosted|deb\.debian\.org")
    for name in filter(None, tracked):
        path = ROOT / name
        if path.is_symlink() or not path.is_file() or name == "tests/test_house.py":
            continue
        found = forbidden.search(path.read_text(encoding="utf-8", errors="ignore"))
        assert found is None, f"{name}: {found.group(0)}"
