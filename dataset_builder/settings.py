"""What people type, ``--set name=value`` and ``a,b``, as typed settings, for models, judges and pipelines alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from t2i_parity.dataset_builder.errors import InputError

Settings = TypeVar("Settings")


def pairs(given: Iterable[str] | None, option: str = "--set") -> dict[str, str]:
    """NAME=VALUE pairs by name. Raises InputError naming the ``option`` for what is no pair.

    >>> pairs(["damage=light", "url=a=b"])
    {'damage': 'light', 'url': 'a=b'}
    """
    found = {}
    for pair in given or ():
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {pair}: expected NAME=VALUE")
        found[name] = value
    return found


def listed(text: str) -> tuple[str, ...]:
    """What stands between commas, each once.

    >>> listed("en, hi,,en")
    ('en', 'hi')
    """
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))


def settings(kind: type[Settings], options: Mapping[str, str], owner: str) -> Settings:
    """A settings object of a dataclass from texts, with the types that it declares.

    Raises InputError naming the option, what was expected and what was given.
    """
    known = ", ".join(TypeAdapter(kind).json_schema().get("properties", {}))
    for name in options:
        if name not in known.split(", "):
            raise InputError(f"{owner} has no setting {name!r}; it takes: {known}")
    try:
        return TypeAdapter(kind).validate_python(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise InputError(f"{owner}: --set {name}={options.get(name, '')}: {first['msg']}. It takes: {known}") from error
