"""What the commands share: options that mean the same everywhere, what was given as NAME=VALUE, and how a stage's end is told."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError


class Engine(str, Enum):
    """How rows are spread over processors."""

    local = "local"
    ray = "ray"


RunPath = Annotated[str, typer.Argument(metavar="RUN", help="The run's folder (any fsspec URL).")]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be given again.")]
PromptsOption = Annotated[str, typer.Option(help="Prompts: a built folder, or a hub id.")]
LanguagesOption = Annotated[str, typer.Option(help="Only these languages, e.g. en,hi.")]
LimitOption = Annotated[int | None, typer.Option(help="At most so many rows, spread evenly over languages and varieties.")]
RetriesOption = Annotated[int, typer.Option(min=0, help="How often a row that raised an error is tried again.")]
RepairOption = Annotated[bool, typer.Option("--repair", help="Set unreadable parts aside and make their rows anew.")]
EngineOption = Annotated[Engine, typer.Option(help="Where it runs: this machine's processes, or a Ray cluster.")]
RayAddressOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="With --engine ray: a running cluster; one is started here when left out.")
]
OutOption = Annotated[str, typer.Option(help="The run's folder (any fsspec URL); one that holds the same run is gone on with.")]


def arguments(ctx: typer.Context) -> dict[str, dict[str, Any]]:
    """The command's arguments as the record keeps them: those that were given, and those that were defaulted."""
    found: dict[str, dict[str, Any]] = {"given": {}, "defaulted": {}}
    for name, value in ctx.params.items():
        source = ctx.get_parameter_source(name)
        kind = "defaulted" if source is not None and source.name == "DEFAULT" else "given"
        found[kind][name] = value
    # A folder's path tells about the machine, not about the result.
    for values in found.values():
        for name in ("out", "prompts", "model", "unguarded"):
            if isinstance(values.get(name), str):
                values[name] = without_path(values[name])
        for name in ("guard", "guarded", "settings"):
            if values.get(name):
                values[name] = [without_path(value) for value in values[name]]
    return found


def without_path(value: str) -> str:
    """A path, or a setting that is one or several, with their last parts alone; and an address without what may be a secret in it."""
    if "://" in value:
        return re.sub(r"[?].*|(?<=://)[^/@]*@", "", value)
    parts = [part.rpartition("=") for part in value.split(",")]
    return ",".join(f"{name}{equals}{Path(rest).name if Path(rest).is_absolute() else rest}" for name, equals, rest in parts)


def only_with_ray(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise InputError(f"--{name.replace('_', '-')} goes with --engine ray")


def tell(tally: Any, what: str, out: str, *, end: bool = True) -> None:
    failed = f", {tally.failed} of them failed (their reasons stand in the rows)" if tally.failed else ""
    say(f"{out}: {tally.done} {what} made now{failed}, {tally.before} were there")
    if end:
        ended([tally])


def ended(tallies: Any) -> None:
    if any(tally.stopped for tally in tallies):
        output().print("stopped; the same command goes on from here", markup=False)
        raise typer.Exit(130)
