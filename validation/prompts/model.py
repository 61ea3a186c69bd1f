"""What checks are made of: a prompts table by columns, a fault in it, and a check that finds faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import pyarrow as pa

from t2i_parity.cards.validation import Severity
from t2i_parity.dataset_builder.controls import CONTROLS
from t2i_parity.dataset_builder.languages import LANGUAGES, Language

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """What a check found: the row (None for the whole table), the column, what stands there, what should, and how to mend it.

    ``severity`` is given where it is milder than the check's; ``n`` is the number of rows that one fault stands for.
    """

    row: int | None
    column: str | None
    found: str
    expected: str
    fix: str
    severity: Severity | None = None
    n: int = 1


class NotRunError(Exception):
    """Raised by a check that cannot say anything about a table; the reason stands in the report."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that a prompts table is looked at for.

    ``severity`` is the worst that its faults can be, ``needs`` are the columns without which it is not run.
    """

    name: str
    severity: Severity
    what: str
    run: Callable[[Rows], Iterable[Fault]]
    needs: tuple[str, ...] = ("prompt",)


@dataclass(eq=False)
class Prompts:
    """A prompts repository: every config's rows, and the licence that its card states."""

    name: str
    tables: Mapping[str, pa.Table]
    licence: str | None = None
    configs: dict[str, Rows] = field(init=False)

    def __post_init__(self) -> None:
        self.configs = {name: Rows(name, table, self) for name, table in self.tables.items()}


@dataclass(eq=False)
class Rows:
    """The rows of one config by columns. ``table`` is as it was read: nothing in it is assumed to be as declared."""

    config: str
    table: pa.Table
    prompts: Prompts
    _columns: dict[str, list[Any]] = field(default_factory=dict, init=False)
    _memo: dict[Callable[[Rows], Any], Any] = field(default_factory=dict, init=False)

    def __len__(self) -> int:
        return len(self.table)

    @cached_property
    def usable(self) -> frozenset[str]:
        """The columns that are there and of the type that checks work on: text, except ``checks`` and images."""
        return frozenset(
            column.name
            for column in self.table.schema
            if column.name in self.classes or pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
        )

    @cached_property
    def classes(self) -> dict[str, list[str]]:
        """The class names of every ClassLabel column, as the file itself declares them."""
        from datasets import ClassLabel, Features

        metadata = self.table.schema.metadata or {}
        if b"huggingface" not in metadata:
            return {}
        try:
            features = Features.from_arrow_schema(self.table.schema)
        except (ValueError, KeyError, TypeError, AttributeError):
            return {}
        return {
            name: list(feature.names)
            for name, feature in features.items()
            if isinstance(feature, ClassLabel) and pa.types.is_integer(self.table.schema.field(name).type)
        }

    def __getitem__(self, name: str) -> list[Any]:
        """A column as a list, class names as strings; a column that is not usable is all None."""
        if name not in self._columns:
            if name not in self.usable:
                self._columns[name] = [None] * len(self)
            elif name in self.classes:
                names = self.classes[name]
                codes = self.table[name].to_pylist()
                self._columns[name] = [names[code] if code is not None and 0 <= code < len(names) else None for code in codes]
            else:
                self._columns[name] = self.table[name].to_pylist()
        return self._columns[name]

    def memo(self, make: Callable[[Rows], T]) -> T:
        """What ``make`` says of these rows, worked out once however many checks ask."""
        if make not in self._memo:
            self._memo[make] = make(self)
        answer: T = self._memo[make]
        return answer

    @cached_property
    def own(self) -> str:
        """The column that is in the row's language: the text to be rendered where there is one (its description stays English)."""
        return "render_text" if "render_text" in self.usable else "prompt"

    @cached_property
    def texts(self) -> list[str]:
        """The row's text in its language, "" for a null."""
        return [text or "" for text in self[self.own]]

    @cached_property
    def text_columns(self) -> list[str]:
        """The columns whose characters are looked at."""
        return [name for name in ("prompt", "render_text") if name in self.usable]

    @cached_property
    def groups(self) -> dict[tuple[str, str | None], list[int]]:
        """Row numbers by (language, variety)."""
        members: dict[tuple[str, str | None], list[int]] = {}
        for number, key in enumerate(zip(self["language"], self["variety"], strict=True)):
            members.setdefault(key, []).append(number)
        return members

    @cached_property
    def pairs(self) -> dict[tuple[str, str], list[int]]:
        """Row numbers by (subset, pair_id), rows without a pair left out."""
        members: dict[tuple[str, str], list[int]] = {}
        for number, (subset, pair) in enumerate(zip(self["subset"], self["pair_id"], strict=True)):
            if pair is not None:
                members.setdefault((subset or "", pair), []).append(number)
        return members

    @cached_property
    def designed(self) -> dict[tuple[str, str], list[int]]:
        """``pairs`` without the rows that a control made."""
        derivations = self["derivation"]
        return {key: [number for number in members if derivations[number] not in CONTROLS] for key, members in self.pairs.items()}


def declared(code: str | None) -> Language | None:
    """The declared language of a row's code, None where it is none."""
    return LANGUAGES.get(code or "")


def standard(code: str | None) -> str | None:
    """The language that an identifier can tell: the standard one of a regional language, the language itself elsewhere.

    >>> standard("bar"), standard("hi")
    ('de', 'hi')
    """
    language = declared(code)
    return (language.standard if language else None) or code


def spaced(code: str | None) -> bool:
    """Whether a language puts spaces between words; one that is not declared is taken to."""
    return spoken.spaced if (spoken := declared(code)) else True
