"""What people type, ``--set name=value`` and ``a,b``, as typed settings, for models, judges and pipelines alike."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pydantic import TypeAdapter, ValidationError

from t2i_parity.dataset_builder.errors import InputError

Settings = TypeVar("Settings")


Pairs: TypeAlias = Mapping[str, object] | Iterable[str] | None
"""Settings as people give them: by name, or as NAME=VALUE texts."""

Arguments: TypeAlias = Mapping[str, Mapping[str, Any]]
"""The arguments of a stage as the record keeps them: those that were ``given``, and those that were ``defaulted``."""


def pairs(given: Pairs, option: str = "--set") -> dict[str, str]:
    """Settings by name, as texts. Raises InputError naming the ``option`` for what is no pair.

    >>> pairs(["damage=light", "url=a=b"]), pairs({"offload": True, "steps": 20, "languages": ["en", "hi"]})
    ({'damage': 'light', 'url': 'a=b'}, {'offload': 'true', 'steps': '20', 'languages': 'en,hi'})
    """
    if isinstance(given, Mapping):
        return {name: _text(value) for name, value in given.items()}
    found = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {pair}: expected NAME=VALUE")
        found[name] = value
    return found


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def owned(owners: Sequence[str], first: Sequence[str], given: Pairs, *, what: str = "OWNER") -> dict[str, dict[str, str]]:
    """Each owner's settings. One without an owner belongs to the only one of ``first``.

    Raises InputError for one that does not say whose it is where there are several.

    >>> owned(["a", "b"], ["a", "b"], ["a.threshold=0.3"]), owned(["a", "encoder"], ["a"], {"threshold": 0.3})
    ({'a': {'threshold': '0.3'}, 'b': {}}, {'a': {'threshold': '0.3'}, 'encoder': {}})
    """
    options: dict[str, dict[str, str]] = {owner: {} for owner in owners}
    for key, value in pairs(given).items():
        owner, dot, name = key.rpartition(".")
        if dot and owner in options:
            options[owner][name] = value
        elif dot or len(first) != 1:
            raise InputError(
                f"--set {key}={value}: it does not say whose setting it is; expected {what}.NAME=VALUE with one of {', '.join(owners)}"
            )
        else:
            options[first[0]][key] = value
    return options


def listed(text: str) -> tuple[str, ...]:
    """What stands between commas, each once.

    >>> listed("en, hi,,en")
    ('en', 'hi')
    """
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def recorded(stage: Callable[..., object], given: Mapping[str, Any]) -> Arguments:
    """The arguments that a stage was called with (its ``locals()`` at the beginning), without secrets and machines' folders.

    What is as the stage's signature has it counts as defaulted.
    """
    found: dict[str, dict[str, Any]] = {"given": {}, "defaulted": {}}
    for name, parameter in inspect.signature(stage).parameters.items():
        value = given[name]
        kind = "defaulted" if value is None or value == parameter.default else "given"
        if isinstance(value, Mapping):
            value = [f"{key}={text}" for key, text in pairs(value).items()]
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if isinstance(value, str):
            found[kind][name] = _without_path(value)
        elif isinstance(value, list | tuple):
            found[kind][name] = [_without_path(os.fspath(part)) for part in value if isinstance(part, str | os.PathLike)]
        elif value is None or isinstance(value, int | float):
            found[kind][name] = value
    return found


def _without_path(value: str) -> str:
    """A path, or a setting that is one or several, with their last parts alone; and an address without what may be a secret in it.

    >>> _without_path("weights=/a/b.pt,/c/d.pt"), _without_path("s3://key:secret@store/run?token=x")
    ('weights=b.pt,d.pt', 's3://store/run')
    """
    if "://" in value:
        return re.sub(r"[?].*|(?<=://)[^/@]*@", "", value)
    parts = [part.rpartition("=") for part in value.split(",")]
    return ",".join(f"{name}{equals}{Path(rest).name if Path(rest).is_absolute() else rest}" for name, equals, rest in parts)


def settings(kind: type[Settings], options: Mapping[str, str], owner: str, option: str = "--set") -> Settings:
    """A settings object of a dataclass from texts, with the types that it declares; ``option`` is what gave them.

    Raises InputError naming the option, what was expected and what was given.
    """
    known = ", ".join(TypeAdapter(kind).json_schema().get("properties", {}))
    for name in options:
        if name not in known.split(", "):
            raise InputError(f"{owner} has no setting {name!r}; it takes: {known or 'none'}")
    try:
        return TypeAdapter(kind).validate_python(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{owner}: {option} {name}={options.get(name, '')}: {first['msg']}. It takes: {known}") from error


def field(value: object) -> str:
    """A setting's value as a signature may hold it, without '|', ':' and line breaks.

    >>> field("http://a|b")
    'http=//a,b'
    """
    return " ".join(str(value).replace("|", ",").replace(":", "=").split())
