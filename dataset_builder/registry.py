"""What can be named: judges, filters, guardrails, models, encoders, sources, metrics, report sections. One registry a kind.

Our own entries are a table in each room, whose objects are imported when they are asked for. Other people's packages add theirs by a
decorator, in modules that they name in the entry-point group ``t2i_parity.plugins``; and wherever a name is taken, ``module:Object`` is.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from rich.console import Console

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.settings import settings

PLUGINS = "t2i_parity.plugins"
"""The entry-point group by which other people's packages name modules of theirs; importing one adds its entries."""
OURS = "t2i_parity"

Thing = TypeVar("Thing")
Declared = TypeVar("Declared")


class Need(Protocol):
    """Something that an entry needs on this machine."""

    @property
    def what(self) -> str:
        """In a word or two."""

    def lacking(self) -> str | None:
        """What is missing and how it is got; None where nothing is."""


@dataclass(frozen=True, slots=True)
class Package:
    """A package: the module that is imported, what pip calls it, and the extra of ours that brings it ("" for none)."""

    module: str
    extra: str = ""
    package: str = ""

    @property
    def what(self) -> str:
        """Its name."""
        return self.package or self.module

    def lacking(self) -> str | None:
        """The pip command, where it cannot be imported.

        >>> Package("no_such_module", "clip", "no-such-package").lacking()
        "the package no-such-package: pip install 't2i-parity[clip]'"
        """
        if importlib.util.find_spec(self.module) is not None:
            return None
        return f"the package {self.what}: pip install " + (f"'t2i-parity[{self.extra}]'" if self.extra else self.what)


def packages(extra: str, *modules: str) -> tuple[Package, ...]:
    """Packages that are called as their modules are, and that one extra brings."""
    return tuple(Package(module, extra) for module in modules)


@dataclass(frozen=True, slots=True)
class Key:
    """A service's key, in an environment variable."""

    variable: str

    @property
    def what(self) -> str:
        """The variable."""
        return self.variable

    def lacking(self) -> str | None:
        """The variable, where it is not set; its value is told nowhere."""
        return None if os.environ.get(self.variable) else f"a key in the environment variable {self.variable}"


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights from the hub; ``file`` is one that every copy of them has, ``gated`` says that terms must be accepted first."""

    hub_id: str
    revision: str | None = None
    file: str = "config.json"
    gated: bool = False

    @property
    def what(self) -> str:
        """Their hub id."""
        return self.hub_id

    def lacking(self) -> str | None:
        """Whether they lie in the hub's cache, and what stands in the way of a download."""
        from huggingface_hub import constants, get_token, try_to_load_from_cache

        if isinstance(try_to_load_from_cache(self.hub_id, self.file, revision=self.revision), str):
            return None
        told = f"the weights: {self.hub_id} is not in the hub's cache, and is downloaded when it is first asked for"
        if constants.HF_HUB_OFFLINE:
            told += "; HF_HUB_OFFLINE is set, which forbids that"
        elif self.gated and get_token() is None:
            told += f"; it is gated: accept its terms at https://huggingface.co/{self.hub_id}, then hf auth login"
        return told


@dataclass(frozen=True, slots=True)
class Probe:
    """Anything else: ``module:function`` raises InputError, which tells the fix, where it is not there."""

    what: str
    target: str

    def lacking(self) -> str | None:
        """What the function says."""
        try:
            _object(self.target)()
        except InputError as error:
            return str(error)
        return None


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that can be named.

    ``target`` is the object, or where it is as ``module:Object``: a class that takes one settings object, or the thing itself. ``needs``
    is what it needs here, and ``otherwise`` how it runs without; ``preset`` are settings given beforehand; ``origin`` is the package, or
    the module, that adds it.
    """

    name: str
    target: object
    about: str
    needs: tuple[Need, ...] = ()
    otherwise: str = ""
    preset: Mapping[str, str] = field(default_factory=dict)
    origin: str = OURS

    def object(self) -> Any:
        """The class, or the thing itself. Raises InputError when it cannot be imported."""
        if not isinstance(self.target, str):
            return self.target
        try:
            return _object(self.target)
        except ImportError as error:
            fixes = self.missing() or ["install this project anew, with what this needs"]
            raise InputError(f"{self.name} could not be imported ({first_line(error)}). {'; '.join(fixes)}") from error

    def settings_class(self) -> type | None:
        """The class of its settings; None where it takes none."""
        found = self.object()
        return _settings_class(found) if isinstance(found, type) else None

    def settings(self) -> dict[str, Any]:
        """Every setting with its default, ``MISSING`` for one that must be given."""
        kind = self.settings_class()
        if kind is None or not is_dataclass(kind):
            return {}
        factories = {each.name: each.default_factory for each in fields(kind)}
        return {
            each.name: (made() if (made := factories[each.name]) is not MISSING else each.default)
            for each in fields(kind)
            if each.name not in self.preset
        }

    def missing(self) -> list[str]:
        """What is missing here, each with its fix."""
        return [told for need in self.needs if (told := need.lacking())]


class UnknownNameError(InputError, KeyError):
    """A name that nothing has; the message gives those that there are, and the nearest."""

    __str__ = Exception.__str__


class Registry(Mapping[str, Thing], Generic[Thing]):
    """All that can be named of one kind, ours first. As a mapping it holds the things by their names.

    ``function`` is the entry that makes a thing of a bare function, given as its setting ``function``; ``option`` is what gives settings
    on the command line.
    """

    def __init__(self, kind: str, own: Iterable[Entry] = (), *, function: str = "", option: str = "--set") -> None:
        self.kind = kind
        self.option = option
        self.declared = {entry.name: entry for entry in own}
        self._function = function
        self._clashes: dict[str, Entry] = {}
        REGISTRIES[kind] = self

    def entry(
        self, name: str, about: str, needs: tuple[Need, ...] = (), *, otherwise: str = "", preset: Mapping[str, str] | None = None
    ) -> Callable[[Declared], Declared]:
        """A decorator that adds what it stands over; called on an object, it adds that.

        >>> @Registry[object]("toy").entry("top", "turns")
        ... class Top: ...
        """
        # Whose it is: the module that the decorator stands in.
        origin = str(sys._getframe(1).f_globals.get("__name__", "unknown"))

        def added(target: Declared) -> Declared:
            made = Entry(name, target, about, needs, otherwise, preset or {}, origin)
            before = self.declared.setdefault(name, made)
            # A module that is imported anew adds the same again.
            same = before.origin == origin and getattr(before.target, "__qualname__", "") == getattr(target, "__qualname__", "")
            if before is not made and not same:
                self._clashes[name] = made
            return target

        return added

    def entries(self) -> list[Entry]:
        """Everything that there is, plug-ins' behind ours."""
        load_plugins()
        return list(self.declared.values())

    def all(self) -> tuple[Thing, ...]:
        """The things themselves, in that order."""
        return tuple(self.values())

    def clash(self, name: str) -> str | None:
        """Who else adds something under a name, told with the fix; None where nobody does."""
        if name not in self._clashes:
            return None
        return (
            f"two packages add a {self.kind} {name!r}: {self.declared[name].origin} and {self._clashes[name].origin}. Uninstall one of "
            "them, or name what you mean as module:Object"
        )

    def find(self, name: str) -> Entry:
        """The entry of a name, or of ``module:Object``.

        Raises InputError for a name that nothing has, telling the nearest, or that two packages give; and for what cannot be imported.
        """
        load_plugins()
        if clash := self.clash(name):
            raise InputError(clash)
        if name in self.declared:
            return self.declared[name]
        if ":" not in name:
            raise self.unknown(name)
        found = imported(name)
        known = next((entry for entry in self.declared.values() if entry.target in (found, name)), None)
        if known is not None:
            return known
        called = getattr(found, "name", None)
        called = called if isinstance(called, str) else name.rpartition(":")[2].rpartition(".")[2]
        if self._function and inspect.isroutine(found):
            return replace(self.declared[self._function], name=called, preset={"function": name})
        return Entry(called, found, first_line_of(found), origin=name.partition(":")[0])

    def load(self, name: str, options: Mapping[str, str] | None = None) -> Thing:
        """The thing that a user named (see ``find``), made with its settings.

        Raises InputError also for a setting that it does not take, or when what it needs is not installed.
        """
        return self.make(self.find(name), options or {})

    def make(self, entry: Entry, options: Mapping[str, str], *before: object, owner: str = "") -> Thing:
        """An entry's thing: its class, called with ``before`` and the settings; what is no class is the thing itself."""
        found, kind = entry.object(), entry.settings_class()
        given = {**entry.preset, **options}
        if kind is None and given:
            raise InputError(f"{owner or entry.name} has no setting {next(iter(given))!r}; it takes none")
        arguments = [*before, *([settings(kind, given, owner or entry.name, self.option)] if kind is not None else [])]
        made: Thing = found(*arguments) if isinstance(found, type) else found
        return made

    def unknown(self, name: str) -> UnknownNameError:
        """The error for a name that nothing has."""
        known = {each.lower(): each for each in self}
        near = [known[each] for each in difflib.get_close_matches(name.lower(), known, cutoff=0.7)]
        told = f"; did you mean {' or '.join(near)}?" if near else ""
        return UnknownNameError(f"unknown {self.kind} {name!r}: expected one of {', '.join(self)}{told}")

    def __getitem__(self, name: str) -> Thing:
        if name not in self:
            raise self.unknown(name)
        return self.load(name)

    def __iter__(self) -> Iterator[str]:
        return (entry.name for entry in self.entries())

    def __len__(self) -> int:
        return len(self.entries())

    def __contains__(self, name: object) -> bool:
        load_plugins()
        return name in self.declared


REGISTRIES: dict[str, Registry[Any]] = {}
"""Every registry by its kind, those of the rooms that are imported."""


def of(kind: str) -> Registry[Any]:
    """The registry of a kind that a room above this one keeps. Raises InputError where that room is not imported."""
    if kind not in REGISTRIES:
        raise InputError(f"no {kind} can be had here: import t2i_parity.generate.commands first, or start this as t2i-parity")
    return REGISTRIES[kind]


@cache
def load_plugins() -> None:
    """Import what other people's packages name in the group; one that fails is told of, and hurts nobody else.

    This happens before any name is looked up, so that no name of theirs is taken for one of ours in silence.
    """
    for point in entry_points(group=PLUGINS):
        try:
            point.load()
        except (Exception, SystemExit) as error:
            owner = point.dist.name if point.dist is not None else "of an unknown package"
            Console(stderr=True).print(
                f"the plug-in {owner} ({point.value}) could not be imported, and is left out: {first_line(error)}",
                markup=False, style="yellow", soft_wrap=True,
            )  # fmt: skip


def imported(name: str) -> Any:
    """What ``module:Object`` names; the module is looked for in the current folder first.

    Raises InputError when it cannot be imported.

    >>> imported("math:sqrt")(9.0)
    3.0
    """
    module, colon, rest = name.partition(":")
    if not colon or not module or not rest:
        raise InputError(f"{name!r} names no object; expected module:Object, as my_filters:is_unsafe")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return _object(name)
    except Exception as error:
        raise InputError(
            f"{name} could not be imported ({first_line(error)}). Start the command where {module}.py is, or install it"
        ) from error


def function_of(name: str) -> Callable[..., Any]:
    """The function that ``module:function`` names. Raises InputError when it cannot be imported or is none."""
    found = imported(name)
    if not callable(found):
        raise InputError(f"{name} is a {type(found).__name__} and cannot be called")
    called: Callable[..., Any] = found
    return called


def first_line_of(found: object) -> str:
    """The first line of what an object says of itself."""
    return (inspect.getdoc(found) or "").partition("\n")[0]


def _object(target: str) -> Any:
    module, _, path = target.partition(":")
    found: Any = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _settings_class(kind: type) -> type | None:
    """What a class, or the nearest of its bases, annotates as ``settings``: in its body, or in what makes it."""
    for base in kind.__mro__:
        for holder in (base, base.__dict__.get("__init__")):
            found = inspect.get_annotations(holder).get("settings") if holder is not None else None
            if found is not None:
                # Only this one is evaluated: other annotations may name what is imported for the type checker alone.
                body = {"__annotations__": {"settings": found}, "__module__": base.__module__}
                named: type = typing.get_type_hints(type(base.__name__, (), body))["settings"]
                return named
    return None
