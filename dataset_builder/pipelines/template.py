"""The words that models are asked with: Jinja2 files with a version in their names, known by a hash of their content.

``translate-1.0.j2`` has a block ``system`` and a block ``user``. A change of words is a new version: a file beside the old one, or a
user's own. What a model is shown of others' text goes through the filter ``quoted``, which makes a JSON string of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2 import Template as JinjaTemplate
from jinja2.sandbox import SandboxedEnvironment
from packaging.version import InvalidVersion, Version

from t2i_parity.dataset_builder.chat import ChatRequest, ask
from t2i_parity.dataset_builder.errors import InputError, first_line

_FOLDER = "templates"
_BLOCKS = ("system", "user")


@dataclass(frozen=True, slots=True)
class Template:
    """One template: its name, its version (of a user's file: the file's name) and its words."""

    name: str
    version: str
    words: str = field(repr=False)

    @property
    def id(self) -> str:
        """Name, version and the beginning of the SHA-256 of the words, so that an edit shows even without a new version.

        >>> Template("t", "1.0", "").id
        't@1.0+e3b0c442'
        """
        return f"{self.name}@{self.version}+{hashlib.sha256(self.words.encode('utf-8')).hexdigest()[:8]}"

    def request(self, values: Mapping[str, Any], **how: Any) -> ChatRequest:
        """The template filled in, as a request; ``how`` are the fields of ChatRequest.

        Raises InputError when the template does not render with what the step gives it.
        """
        try:
            template = _compiled(self.words)
            system, user = ("".join(template.blocks[name](template.new_context(dict(values)))).strip() for name in _BLOCKS)
        except KeyError as error:
            raise InputError(f"template {self.id}: there is no block {error}; a template has the blocks {' and '.join(_BLOCKS)}") from error
        except TemplateError as error:
            raise InputError(f"template {self.id}: {first_line(error)}. The step gives it: {', '.join(values)}") from error
        return ask(user, system=system, **how)


def quoted(value: Any) -> str:
    """A value as JSON, letters of every script as they are.

    >>> print(quoted(["छह", 6]))
    ["छह", 6]
    """
    return json.dumps(value, ensure_ascii=False)


def load(name: str, version: str | None = None) -> Template:
    """A template of ours by name, the newest version unless told otherwise; or a user's own, when ``version`` is a file that ends in .j2.

    Raises InputError, naming the known ones, when there is none.
    """
    if version is not None and version.endswith(".j2"):
        path = Path(version)
        if not path.is_file():
            raise InputError(f"--template {name}={version}: there is no such file")
        return Template(name, path.stem, path.read_text(encoding="utf-8"))
    known = versions().get(name)
    if known is None:
        raise InputError(f"--template {name}: there is no template of this name; expected one of {', '.join(versions())}")
    chosen = known[-1] if version is None else version
    if chosen not in known:
        raise InputError(f"--template {name}={version}: expected a version ({', '.join(known)}) or a file that ends in .j2")
    return Template(name, chosen, (_shipped() / f"{name}-{chosen}.j2").read_text(encoding="utf-8"))


def versions() -> dict[str, list[str]]:
    """The versions of every template of ours, oldest first."""
    found: dict[str, list[str]] = {}
    for entry in _shipped().iterdir():
        name, dash, version = entry.name.removesuffix(".j2").rpartition("-")
        if dash and entry.name.endswith(".j2"):
            found.setdefault(name, []).append(version)
    return {name: sorted(found[name], key=_order) for name in sorted(found)}


def _order(version: str) -> Version:
    try:
        return Version(version)
    except InvalidVersion:
        return Version("0")


def _shipped() -> Any:
    return resources.files("t2i_parity.dataset_builder.pipelines") / _FOLDER


@lru_cache(maxsize=64)
def _compiled(words: str) -> JinjaTemplate:
    return _environment().from_string(words)


@cache
def _environment() -> SandboxedEnvironment:
    environment = SandboxedEnvironment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["quoted"] = quoted
    return environment
