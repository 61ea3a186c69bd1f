"""Judges: what looks at an image and says what it saw. One file an instrument."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa

from dataset_builder.errors import InputError
from generate.engine.local import Failure


class Judge(Protocol):
    """An instrument that observes images."""

    @property
    def name(self) -> str:
        """What it is called in commands and folders."""

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """What it saw: the columns of an observation and their types."""

    def signature(self) -> str:
        """Name, revision and every setting that changes an observation, in one string that is stored with each."""

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise InputError, before anything is observed, when something that these rows need is not there."""

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Failure]:
        """What was seen in each row's image (``image``: its bytes), or why nothing could be."""


def load(name: str, options: Mapping[str, str]) -> Judge:
    """The judge a user named. Raises InputError, naming the known ones, when there is none."""
    known: dict[str, Callable[[Mapping[str, str]], Judge]] = {"tesseract": _tesseract}
    if name not in known:
        raise InputError(f"unknown judge {name!r}: expected one of {', '.join(known)}")
    return known[name](options)


def _tesseract(options: Mapping[str, str]) -> Judge:
    from generate.judges.tesseract import Tesseract, TesseractSettings
    from generate.settings import settings

    return Tesseract(settings(TesseractSettings, options, "tesseract"))
