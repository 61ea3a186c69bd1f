"""The console script: one Typer app a package, mounted side by side, and one way in which errors are told."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from typing import Annotated

import typer
from rich.console import Console

from t2i_parity import __version__
from t2i_parity.dataset_builder.errors import InputError

COMMANDS = "t2i_parity.commands"
"""The entry-point group by which each package hands in its commands, so that no package imports one above it."""


def output() -> Console:
    """The console for results. A log or a pipe has no width of its own; our tables need more than the 80 columns assumed then."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def say(text: str) -> None:
    """One line of plain text, however long."""
    output().print(text, markup=False, highlight=False, soft_wrap=True)


def run(app: typer.Typer, prog_name: str, arguments: Sequence[str] | None = None) -> None:
    """Run an app; bad input is told in one paragraph on standard error and ends with exit code 2."""
    try:
        app(None if arguments is None else list(arguments), prog_name=prog_name)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"t2i-parity {__version__}")
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """``t2i-parity``: every package's commands, on the given arguments or those of the process."""
    root = typer.Typer(
        name="t2i-parity",
        help="Does a text-to-image system serve everyone equally, whatever their language, dialect or country?",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @root.callback()
    def _root(
        version: Annotated[bool, typer.Option("--version", help="Print the version, and end.", callback=_version, is_eager=True)] = False,
    ) -> None:
        pass

    for entry in sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name):
        root.registered_commands += entry.load().registered_commands
    run(root, "t2i-parity", arguments)
