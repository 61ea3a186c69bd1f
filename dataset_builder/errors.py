"""What a person did that cannot be carried out, told in one paragraph.

Every command of ours prints an :class:`InputError` as it is and ends with exit code 2; any other exception is a defect of ours.
"""

from __future__ import annotations

import importlib
import textwrap
from types import ModuleType


class InputError(Exception):
    """Bad input: the message names the place (file, row, column), what was expected, what was found, and the fix."""


class InputWarning(UserWarning):
    """What a person should know, and what stops nothing; commands print it as they print an error."""


def first_line(error: BaseException, width: int = 240) -> str:
    """Kind and first line of an exception, short enough to stand inside a paragraph.

    >>> first_line(ValueError("no such thing\\nand more"))
    'ValueError: no such thing'
    """
    lines = str(error).strip().splitlines()
    return textwrap.shorten(f"{type(error).__name__}: {lines[0] if lines else ''}", width, placeholder=" …")


def require(module: str, *, package: str, extra: str) -> ModuleType:
    """Import an optional ``module``, or say which pip command brings it.

    Raises InputError when ``package`` is not installed, or is installed but does not import.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(f"this needs the package {package}, which could not be imported ({error}). {_pip(extra)}") from error


def not_installed(error: ModuleNotFoundError) -> InputError:
    """What a module that is not there means to whoever installed too little. Raises the error again when the module is one of ours.

    >>> str(not_installed(ModuleNotFoundError("No module named 'typer'", name="typer")))[:87]
    "this needs the package typer, which is not installed. Install it with: pip install 't2i"
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "t2i_parity"):
        raise error
    return InputError(f"this needs the package {package}, which is not installed. {_pip('run')}")


def _pip(extra: str) -> str:
    return f"Install it with: pip install 't2i-parity[{extra}]' (in a clone: pip install -e '.[{extra}]')"
