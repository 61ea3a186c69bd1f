"""The rooms: who may import whom, what stays light, and what no file may hold."""

from __future__ import annotations

import ast
import functools
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
NAME = "t2i_parity"
MAY_IMPORT = {
    "metrics": set(),
    "cards": {"metrics"},
    "dataset_builder": {"cards", "metrics"},
    "generate": {"dataset_builder", "metrics", "cards"},
    # A submission's scores are recomputed by the code that made them; nothing imports validation.
    "validation": {"dataset_builder", "metrics", "generate", "cards"},
}
# Entry-point groups through which a room reaches one above it: the console mounts every room's commands.
UPWARD = {("dataset_builder", "t2i_parity.commands")}
# Imports that would close a circle, each with its reason. A process that was handed a file of languages by its environment reads it
# at its first look, whichever module looks.
LATE = {("t2i_parity.dataset_builder.languages", "t2i_parity.dataset_builder.vocabulary")}
_OBJECT = re.compile(rf"{NAME}(\.\w+)+(\.|:\w+)?")


def _sources() -> list[Path]:
    return [path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py")) if not path.is_symlink()]


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join((NAME, *(parts[:-1] if parts[-1] == "__init__" else parts)))


@functools.cache
def _modules() -> dict[str, Path]:
    # Links count as modules here: a metric's ``common`` is one, however it comes to stand there.
    return {_module_of(path): path for package in MAY_IMPORT for path in sorted((ROOT / package).rglob("*.py"))}


def _importable() -> list[str]:
    """All modules but those that are programs, run elsewhere, or the forms of metrics' Spaces."""
    return [name for name, path in _modules().items() if path.name not in ("__main__.py", "app.py") and path.parent.name != "programs"]


@functools.cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _imports(path: Path) -> Iterator[str]:
    """What a file imports anywhere in it, under its full name; of ``from a import b`` both ``a`` and, where that is a module, ``a.b``."""
    package = _module_of(path).split(".")[: None if path.name == "__init__.py" else -1]
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*above, *([node.module] if node.module else [])])
            inner = [f"{name}.{alias.name}" for alias in node.names]
            found = [each for each in inner if each in _modules()]
            yield from found
            if len(found) < len(inner):
                yield name
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)


def _texts(path: Path) -> Iterator[str]:
    """Modules of ours that a file names in texts, as registries do: ``"t2i_parity.room.module:Object"``, or ``"t2i_parity.room."`` before
    the names of several."""
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _OBJECT.fullmatch(node.value):
            module = node.value.partition(":")[0].rstrip(".")
            if module in _modules():
                yield module


def _groups() -> dict[str, list[str]]:
    """The modules behind each of our entry-point groups."""
    with (ROOT / "pyproject.toml").open("rb") as stream:
        declared = tomllib.load(stream)["project"]["entry-points"]
    return {group: [target.partition(":")[0] for target in entries.values()] for group, entries in declared.items()}


@pytest.mark.parametrize("path", _sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_imports_upward(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    for name in (*_imports(path), *_texts(path)):
        top, _, rest = name.partition(".")
        other = rest.split(".")[0]
        assert top not in MAY_IMPORT, f"{path.name} imports {name} by its bare name"
        assert top != NAME or other not in MAY_IMPORT or other == package or other in MAY_IMPORT[package], f"{path.name} imports {name}"


def test_only_listed_entry_points_reach_upward() -> None:
    readers: dict[str, set[str]] = {group: set() for group in _groups()}
    for path in _sources():
        for node in ast.walk(_tree(path)):
            if isinstance(node, ast.Constant) and node.value in readers:
                readers[node.value].add(path.relative_to(ROOT).parts[0])
    upward = {
        (room, group)
        for group, rooms in readers.items()
        for room in rooms
        for target in _groups()[group]
        if target.split(".")[1] not in MAY_IMPORT[room] | {room}
    }
    assert all(readers.values()), f"an entry-point group that nobody reads: {readers}"
    assert upward == UPWARD, "a group through which a room reaches one above it belongs in UPWARD, with the reason"


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_import_circle(room: str) -> None:
    """Imports at the top of a file, inside functions and under TYPE_CHECKING all count."""
    arrows = {_module_of(path): set(_imports(path)) - {_module_of(path)} for path in _sources() if path.relative_to(ROOT).parts[0] == room}
    for module, target in LATE:
        if module in arrows:
            arrows[module].remove(target)
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        pytest.fail(" is imported by ".join(error.args[1]))


@pytest.mark.parametrize("path", [path for path in _sources() if path.relative_to(ROOT).parts[0] == "metrics"], ids=_module_of)
def test_metric_folders_import_their_own_files_relatively(path: Path) -> None:
    """A file of a metric folder lies elsewhere under another name once it is published; a bare ``import core`` would find anybody's."""
    siblings = {each.stem for each in path.parent.glob("*.py")} | {each.name for each in (ROOT / "metrics").iterdir() if each.is_dir()}
    bare = [name for name in _imports(path) if name.split(".")[0] in siblings]
    assert not bare, f"{path.name} imports {', '.join(bare)} by a bare name"


def test_files_of_the_user_take_no_name_of_ours(tmp_path: Path) -> None:
    """Whoever keeps a metrics.py or a folder cards/ in their folder, which Python searches first, still gets our package."""
    for room in MAY_IMPORT:
        (tmp_path / f"{room}.py").write_text("raise ImportError('the file of the user')\n", encoding="utf-8")
    (tmp_path / "cards.py").unlink()
    (tmp_path / "cards").mkdir()
    (tmp_path / "cards" / "__init__.py").write_text("raise ImportError('the folder of the user')\n", encoding="utf-8")
    code = f"import importlib; [importlib.import_module(name) for name in {_importable()!r}]; import metrics"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    # The last import shows that the user's files come first.
    assert done.stderr.strip().endswith("ImportError: the file of the user"), done.stderr


def test_nothing_of_ours_imports_torch() -> None:
    # What a metric is for ``evaluate`` imports that, which imports torch where it is installed.
    names = [name for name in _importable() if name.split(".")[-2:] != name.split(".")[-1:] * 2]
    code = (
        f"import sys, importlib; [importlib.import_module(name) for name in {names!r}]; "
        "from t2i_parity.dataset_builder import starter; starter.tables(); "
        "print([name for name in ('torch', 'diffusers', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


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
