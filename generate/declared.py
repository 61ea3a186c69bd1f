"""What can be named on the command line: judges, filters, guardrails. Each is declared once, and imported when it is asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.settings import settings


@dataclass(frozen=True, slots=True)
class Declared:
    """A name, the module that holds its class and its settings, and in a line what it is. The class takes one settings object."""

    name: str
    module: str
    implementation: str
    settings: str
    about: str

    def load(self, options: Mapping[str, str]) -> Any:
        """The object. Raises InputError for a setting that it does not take, or when what it needs is not installed."""
        module = importlib.import_module(self.module)
        return getattr(module, self.implementation)(settings(getattr(module, self.settings), options, self.name))


def find(declared: Sequence[Declared], name: str, kind: str) -> Declared:
    """The declared object of that name. Raises InputError, naming the known ones, when there is none."""
    for each in declared:
        if each.name == name:
            return each
    raise InputError(f"unknown {kind} {name!r}: expected one of {', '.join(each.name for each in declared)}")
