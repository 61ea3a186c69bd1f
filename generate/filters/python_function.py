"""Any Python function as a filter, imported because the user names it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.registry import function_of
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.filters import Verdict, Wording, signed, worded


@dataclass(frozen=True, slots=True)
class PythonFunctionSettings:
    """``function`` is module:function; the module is looked for in the current folder first.

    Called with one text, or, with ``batched=true``, a list of them, it answers (a list of) a bool (flagged or not), a number (flagged above
    ``threshold``), a pair of both, or None (no verdict). ``version`` goes into the signature: change it when the function changes.
    """

    function: str
    batched: bool = False
    threshold: float = 0.5
    version: str = "unknown"
    wording: Wording = "as_is"
    batch_size: Annotated[int, Field(ge=1)] = 64


class PythonFunction:
    """The filter. The score is the function's own number, None where it answers with a bool alone."""

    name = "python"
    languages: tuple[str, ...] = ()
    at_once = 64

    def __init__(self, settings: PythonFunctionSettings) -> None:
        self.settings = settings
        self._function = function_of(settings.function)

    def signature(self) -> str:
        """The function's name, the threshold, and the version that the user gives it."""
        settings = self.settings
        fields = {"function": settings.function, "threshold": settings.threshold, "wording": settings.wording, "v": settings.version}
        return signed(self.name, fields)

    def judge(self, texts: Sequence[str]) -> list[Verdict | Failure]:
        """The function's verdicts; a text on which it raises is a failure with its reason, and costs no other."""
        prepared = [worded(text, self.settings.wording) for text in texts]
        if not self.settings.batched:
            return [self._one(text) for text in prepared]
        answers: list[Verdict | Failure] = []
        size = self.settings.batch_size
        for start in range(0, len(prepared), size):
            batch = prepared[start : start + size]
            found = list(self._function(batch))
            if len(found) != len(batch):
                raise InputError(
                    f"python: {self.settings.function} was given {len(batch)} texts and answered {len(found)}; one each is expected"
                )
            answers += [self._verdict(answer) for answer in found]
        return answers

    def _one(self, text: str) -> Verdict | Failure:
        try:
            return self._verdict(self._function(text))
        except Exception as error:
            return Failure(first_line(error))

    def _verdict(self, answer: Any) -> Verdict | Failure:
        if answer is None:
            return Failure(f"{self.settings.function} gave no verdict")
        if isinstance(answer, tuple) and len(answer) == 2 and _is_flag(answer[0]) and _is_number(answer[1]):
            return Verdict(bool(answer[0]), float(answer[1]))
        if _is_flag(answer):
            return Verdict(bool(answer), None)
        if _is_number(answer):
            return Verdict(float(answer) > self.settings.threshold, float(answer))
        given = "a number that is not finite" if isinstance(answer, float) else f"a {type(answer).__name__}"
        return Failure(f"{self.settings.function} answered {given}; expected a bool, a number, or a pair of both")


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool | str | bytes):
        return False
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
