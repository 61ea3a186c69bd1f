"""The console script: one Typer app a package, mounted side by side, and one way in which errors are told."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from t2i_parity import __version__
from t2i_parity.dataset_builder import vocabulary
from t2i_parity.dataset_builder.errors import InputError, InputWarning, not_installed
from t2i_parity.dataset_builder.languages import VARIABLE

COMMANDS = "t2i_parity.commands"
"""The entry-point group by which each package hands in its commands, so that no package imports one above it."""


def output() -> Console:
    """The console for results. A log or a pipe has no width of its own; our tables need more than the 80 columns assumed then."""
    console = Console()
    return console if console.is_terminal else Console(width=120)


def fact_sheet(title: str, facts: Mapping[str, object]) -> Table:
    """What is known of one thing, a fact a row; what is empty is left out."""
    made = Table(title=title, title_justify="left", show_header=False)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    for heading, value in facts.items():
        if value:
            made.add_row(Text(heading), Text(str(value)))
    return made


def apps() -> list[typer.Typer]:
    """Every room's commands; with them, what a room hands to those below it."""
    return [entry.load() for entry in sorted(entry_points(group=COMMANDS), key=lambda entry: entry.name)]


def say(text: str) -> None:
    """One line of plain text, however long."""
    output().print(text, markup=False, highlight=False, soft_wrap=True)


def run(app: typer.Typer, prog_name: str, arguments: Sequence[str] | None = None) -> None:
    """Run an app; bad input, or a package that is not installed, is told in one paragraph on standard error and ends with exit code 2.

    ``--vocabulary FILE`` is taken wherever it stands, and is in use before the command begins.
    """
    try:
        rest, place = _vocabulary(sys.argv[1:] if arguments is None else list(arguments))
        with vocabulary.given(place), _told_warnings():
            app(rest, prog_name=prog_name)
    except (InputError, ModuleNotFoundError) as error:
        error = not_installed(error) if isinstance(error, ModuleNotFoundError) else error
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)


def _vocabulary(arguments: list[str]) -> tuple[list[str], str | None]:
    """The arguments without ``--vocabulary FILE``, and the file; the last one, as with any option."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    rest, place, position = [], None, 0
    while position < end:
        name, equals, value = arguments[position].partition("=")
        if name != "--vocabulary":
            rest.append(arguments[position])
        elif equals:
            place = value
        elif position + 1 < end:
            position += 1
            place = arguments[position]
        else:
            raise InputError("--vocabulary expects the path of a YAML file that declares languages or varieties")
        position += 1
    return [*rest, *arguments[end:]], place


@contextmanager
def _told_warnings() -> Iterator[None]:
    """Warnings of ours in a line on standard error, once each; others as Python shows them."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, InputWarning):
                print(f"warning: {message}", file=sys.stderr)
            else:
                usual(message, category, *where, **more)

        warnings.showwarning = show
        warnings.simplefilter("default", InputWarning)
        yield


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
    def options(
        vocabulary: Annotated[
            str | None, typer.Option(metavar="FILE", envvar=VARIABLE, help="YAML: languages and varieties of your own, for any command.")
        ] = None,
        version: Annotated[bool, typer.Option("--version", help="Print the version, and end.", callback=_version, is_eager=True)] = False,
    ) -> None:
        """The vocabulary is taken out of the arguments before: shown here, and good after a command's name too."""

    for app in apps():
        root.registered_commands += app.registered_commands
    run(root, "t2i-parity", arguments)
