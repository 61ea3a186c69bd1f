"""Typed settings from the command line's ``--set name=value`` pairs, for models, judges and pipelines alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from t2i_parity.dataset_builder.errors import InputError

Settings = TypeVar("Settings")


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
