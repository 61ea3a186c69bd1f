"""Judges: what looks at an image and says what it saw. One file an instrument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import pyarrow as pa

from generate.declared import Declared, find
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
        """Raise InputError, before anything is observed, when something that these rows need is not there.

        Called once with every image row of the run (``image_id``, the prompt columns, ``status``; no image), so that a judge that compares
        rows, say with the standard variety's text, can look them up here.
        """

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Failure]:
        """What was seen in each row's image, or why nothing could be; a row's place in the batch must not matter.

        Rows have ``image_id``, the prompt columns, and ``image``: a ``PIL.Image.Image`` in RGB, decoded once for all judges of a pass.
        """


JUDGES: tuple[Declared, ...] = (
    Declared("tesseract", "generate.judges.tesseract", "Tesseract", "TesseractSettings", "reads text; clean text only, all ten languages"),
)
"""Every judge. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> Judge:
    """The judge a user named. Raises InputError, naming the known ones, when there is none."""
    return cast(Judge, find(JUDGES, name, "judge").load(options))
