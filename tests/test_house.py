"""The rooms: who may import whom, what stays light, and what no file may hold."""

from __future__ import annotations

import ast
import email
import functools
import importlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

import t2i_parity

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
    """All modules but programs, which run elsewhere, and what evaluate loads: it imports torch itself where that is there."""
    return [
        name
        for name, path in _modules().items()
        if path.name not in ("__main__.py", "app.py") and path.parent.name not in ("programs", path.stem)
    ]


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


@functools.cache
def _project() -> dict[str, Any]:
    with (ROOT / "pyproject.toml").open("rb") as stream:
        project: dict[str, Any] = tomllib.load(stream)["project"]
    return project


def _groups() -> dict[str, list[str]]:
    """The modules behind each of our entry-point groups."""
    groups = _project()["entry-points"]
    return {group: [target.partition(":")[0] for target in entries.values()] for group, entries in groups.items()}


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
    code = (
        f"import sys, importlib; [importlib.import_module(name) for name in {_importable()!r}]; "
        "from t2i_parity.dataset_builder import starter; starter.tables(); "
        "print([name for name in ('torch', 'diffusers', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# What another package of ours brings along, or what stands under another name than its distribution's and is not installed everywhere.
BROUGHT = {"markupsafe": "jinja2", "fastapi": "gradio", "torch": "torch", "open_clip": "open-clip-torch"}


def _distributions(*names: str) -> set[str]:
    """What an installation with these extras declares, ``""`` for one without any."""
    extras = _project()["optional-dependencies"]
    found = [Requirement(text) for name in names for text in (extras[name] if name else _project()["dependencies"])]
    inner = [extra for each in found if each.name == "t2i-parity" for extra in each.extras]
    return {canonicalize_name(each.name) for each in found} | (_distributions(*inner) if inner else set())


def test_what_is_imported_is_declared() -> None:
    """The metrics' functions by the base installation, everything else by some extra."""
    known = packages_distributions()
    everywhere, anywhere = _distributions(""), _distributions("", "all", "nudenet")
    for path in _sources():
        if path.parent.name == "programs" or path.name == "app.py":
            continue
        # Only what is imported with the file; what a function imports may be optional.
        plain = path.relative_to(ROOT).parts[0] == "metrics" and path.stem != path.parent.name
        nodes = _tree(path).body if plain else ast.walk(_tree(path))
        for node in nodes:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [str(node.module)]
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {NAME}:
                owners = (
                    {canonicalize_name(BROUGHT[top])} if top in BROUGHT else {canonicalize_name(name) for name in known.get(top, [top])}
                )
                assert owners & (everywhere if plain else anywhere), f"{path.relative_to(ROOT)} imports {top}, which no extra brings"


def test_the_metrics_alone_are_light() -> None:
    assert len(_distributions("")) <= 9, "with the package itself at most ten"


def test_commands_without_their_extra_name_the_pip_command() -> None:
    code = "import sys; sys.modules['typer'] = None; sys.argv = ['t2i-parity', 'build']; from t2i_parity.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: this needs the package typer")
    assert "pip install 't2i-parity[run]'" in done.stderr


@pytest.mark.parametrize("room", ["dataset_builder", "generate", "validation"])
def test_a_command_stands_in_the_file_of_its_name(room: str) -> None:
    """And what a command is made of does not import the app that mounts it."""
    app = importlib.import_module(f"{NAME}.{room}.commands").app
    for command in app.registered_commands:
        file = command.callback.__module__.rpartition(".")[2]
        assert command.callback.__module__ == f"{NAME}.{room}.commands.{file}"
        # The four lists are one function, made for each registry.
        assert file == "listing" or command.callback.__name__.partition("_")[0] == file
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
    forbidden = re.compile(r"(?<![\w.])(/work/|/root/|/home/\w+|/tmp/\w)|pypi\.org|files\.pythonhosted|deb\.debian\.org")
    for name in _tracked():
        path = ROOT / name
        if path.is_symlink() or not path.is_file() or name == "tests/test_house.py":
            continue
        found = forbidden.search(path.read_text(encoding="utf-8", errors="ignore"))
        assert found is None, f"{name}: {found.group(0)}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the source distribution of what git knows, made without any network."""
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("dist")
    for name in _tracked():
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, clone / name, follow_symlinks=False)
    code = f"from setuptools import build_meta; build_meta.build_wheel({str(out)!r}); build_meta.build_sdist({str(out)!r})"
    subprocess.run([sys.executable, "-c", code], cwd=clone, capture_output=True, check=True)
    return out


def _tracked() -> list[str]:
    """Every file that git knows; a link to a room is one."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [name for name in listed if name and os.path.lexists(ROOT / name)]


def _installed() -> set[str]:
    """What an installation is to hold: all that stands in the rooms, and what makes them one package."""
    rooms = {f"{NAME}/{name}" for name in _tracked() if name.partition("/")[0] in MAY_IMPORT}
    return rooms | {name for name in _tracked() if name.startswith(f"{NAME}/") and not (ROOT / name).is_symlink()}


def test_the_wheel_holds_the_rooms_and_the_licences_and_takes_one_name(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        told = email.message_from_bytes(wheel.read(metadata))
    beside = {name for name in names if name.partition("/")[0].endswith(".dist-info")}
    assert names - beside == _installed()
    assert told["License-Expression"] == "Apache-2.0 AND CC-BY-4.0"
    assert {name.partition("/licenses/")[2] for name in beside if "/licenses/" in name} == {"LICENSE", "LICENSE-DATA"}


def test_the_source_distribution_holds_no_links(built: Path) -> None:
    """A link that leads out of an archive is refused when that is unpacked."""
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        files = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
        assert not [member.name for member in archive.getmembers() if member.issym() or member.islnk()]
    assert _installed() | {"pyproject.toml", "README.md", "LICENSE", "LICENSE-DATA"} <= files
    assert not [name for name in files if name.startswith("tests/")]


def test_how_to_contribute_is_true_file_by_file() -> None:
    """Every path that it names is there, and each of the names beside a path stands in that file."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = [name for name in re.findall(r"`([\w./]+)`", text) if "/" in name or name.endswith((".md", ".toml"))]
    own = {"README.md"}
    assert [name for name in paths if name not in own and not (ROOT / name).exists()] == []
    entries = re.findall(r"`([A-Z]+)` in `([\w./]+)`", text)
    assert len(entries) >= 8
    for name, path in entries:
        assert re.search(rf"^{name}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), f"{path} declares no {name}"
