"""What JSON and YAML documents are made of, as types. What we write is of this kind; what is read may be anything until it was checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias, Union

JsonValue: TypeAlias = Union[str, int, float, bool, "Sequence[JsonValue]", "Mapping[str, JsonValue]", None]
Json: TypeAlias = Mapping[str, JsonValue]
"""An object to be read."""
JsonObject: TypeAlias = dict[str, JsonValue]
"""An object that is put together."""
