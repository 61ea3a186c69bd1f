"""The metrics to the hub: each folder as a Space, from which ``evaluate.load("<ns>/<name>", revision="v1.0-<content>")`` takes it.

A tag names the version of the arithmetic, which signatures name too (``VERSION`` in the core: raise it when numbers change), and the
content that was published, which may change by a comment alone. It is for ever, so that a number that was computed once can be computed
again.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from rich import box
from rich.table import Table
from rich.text import Text

import t2i_parity.metrics as package
from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder import publish
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.specs import specs
from t2i_parity.metrics import copies

# A spec says how our own commands read a metric, and imports them.
_SKIPPED = ("__pycache__", "spec.py")


@dataclass(frozen=True, slots=True)
class Space:
    """A metric's folder: its files, and the version that its core declares."""

    name: str
    version: str
    sdk: str
    files: Mapping[str, Path]

    @property
    def tag(self) -> str:
        """What ``evaluate.load`` takes as revision: the version, and the first digits of a hash over all files."""
        digest = hashlib.sha256()
        for name, path in sorted(self.files.items()):
            digest.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
        return f"v{self.version}-{digest.hexdigest()[:8]}"

    @property
    def message(self) -> tuple[str, str]:
        """Title and body of the commit."""
        return f"{self.name} {self.tag.removeprefix('v')}", "T2I Parity metric"

    def replaces(self, path: str) -> bool:
        """Whether a file there is code of an earlier version, which a newer one could import by mistake."""
        return path.endswith(".py")


def metrics() -> list[Space]:
    """Every metric that can be published, by name. Raises InputError where what folders hold alike is not up to date."""
    if stale := copies.stale():
        raise InputError(f"metrics/{stale[0].parent.name}/{stale[0].name} is not what its source says; run {copies.COMMAND}")
    root = Path(str(package.__file__)).parent
    return [space_of(core.parent) for core in sorted(root.glob("*/core.py"))]


def table(spaces: Iterable[Space]) -> Table:
    """The metrics for people: name, what it says of itself, the columns of observations that score makes it from, and its revision."""
    made = Table(
        title="Metrics",
        title_justify="left",
        caption='evaluate.load("metrics/NAME") in a clone, evaluate.load("<ns>/NAME", revision="REVISION") from the hub',
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    made.add_column("name", no_wrap=True)
    made.add_column("what it measures", overflow="fold")
    made.add_column("scored from", overflow="fold")
    made.add_column("revision", no_wrap=True)
    for space in spaces:
        spec = specs().get(space.name)
        sources = "+".join(spec.columns) if spec is not None else ""
        made.add_row(space.name, Text(str(_front(space.files["README.md"])["description"])), sources or "–", space.tag)
    return made


def space_of(folder: Path) -> Space:
    """A metric's folder as what is published of it."""
    files = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not set(path.relative_to(folder).parts) & set(_SKIPPED)
    }
    return Space(folder.name, _version(folder / "core.py"), _sdk(folder / "README.md"), files)


def _version(core: Path) -> str:
    """The text that ``VERSION`` is given; read, not run, since a metric may need packages that are not here."""
    for node in ast.parse(core.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == "VERSION" for target in node.targets):
            return str(ast.literal_eval(node.value))
    raise InputError(f"metrics/{core.parent.name}/core.py declares no VERSION, and a Space is published under its version; declare one")


def _sdk(readme: Path) -> str:
    return str(_front(readme)["sdk"])


def _front(readme: Path) -> JsonObject:
    """The card's metadata."""
    front: JsonObject = yaml.safe_load(readme.read_text(encoding="utf-8").split("---")[1])
    return front


def plan(space: Space, namespace: str, *, private: bool = False) -> publish.Plan:
    """What publishing a metric would do. Raises InputError when its tag is there with another content."""
    target = publish.Target(f"{namespace}/{space.name}", private=private, type="space", sdk=space.sdk)
    planned = publish.plan(space, target)
    if _tagged(space, target, planned) and planned.changes:
        # The main branch may have gone on; what counts is what the tag holds.
        return replace(planned, files=tuple(change for change in planned.files if change.kind == "unchanged"))
    return planned


def _tagged(space: Space, target: publish.Target, planned: publish.Plan) -> bool:
    """Whether the tag is there, with this content."""
    if planned.head is None or space.tag not in publish.tags(target):
        return False
    there = publish.plan(space, replace(target, revision=space.tag))
    if there.changes:
        changed = ", ".join(change.path for change in there.changes)
        raise InputError(
            f"{target.repo_id} has a tag {space.tag} with another content ({changed}), which no push made: the tag names its content. "
            "Delete the tag on the hub, or publish to another namespace"
        )
    return True


def push(space: Space, planned: publish.Plan) -> publish.Outcome:
    """Publish a metric and tag it. A tag that is there already was checked by the plan, and stays."""
    outcome = publish.push(space, planned)
    publish.tag(planned.target, space.tag, outcome.commit)
    return outcome
