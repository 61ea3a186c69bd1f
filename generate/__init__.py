"""Everything that runs a model over rows: models, filters, judges, engines, runs, scores.

``t2i_parity.generate`` is this room and, called, the stage of that name in the Python interface: :func:`stages.generate`.
"""

import inspect
import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A package that can be called: importing it puts it under the name that the interface's function has."""

    @property
    def __signature__(self) -> inspect.Signature:
        from t2i_parity.generate.stages import generate

        return inspect.signature(generate)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        from t2i_parity.generate.stages import generate

        return generate(*arguments, **keywords)


sys.modules[__name__].__class__ = _Room
