"""What the commands share: options that mean the same everywhere, what was given as NAME=VALUE, and how a stage's end is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console

from t2i_parity.dataset_builder.console import say

if TYPE_CHECKING:
    from t2i_parity.generate.run import Run


REASONS = 3
"""So many of the reasons for which rows failed are told, the commonest first; all of them stand in the rows."""

Engine = Literal["local", "ray"]

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
MarginOption = Annotated[
    float | None, typer.Option(metavar="PP", help="Audits: rates that differ by less are equivalent; percentage points, 5 when left out.")
]
OutOption = Annotated[str, typer.Option(help="The run's folder (any fsspec URL); one that holds the same run is gone on with.")]


def finished(stage: Callable[[], Run], what: str, last: str | None = None, *, shown: Callable[[Run], None] | None = None) -> None:
    """Run a stage and tell how it went: what it made is called ``what``, and of its last table ``last``; ``shown`` tells what it gave.

    A stage that a signal ended ends the command with 130, one in which something failed on every row with 1.
    """
    from t2i_parity.generate.stages import Stopped
    from t2i_parity.generate.unmeasured import unmeasured

    stopped = False
    try:
        run = stage()
    except Stopped as stop:
        run, stopped = stop.run, True
    for number, (table, tally) in enumerate(run.tallies.items(), start=1):
        made = last if last and number == len(run.tallies) else what
        by = f" by {table}" if len(run.tallies) > 1 else ""
        failed = f", {tally.failed} of them failed (their reasons stand in the rows)" if tally.failed else ""
        say(f"{run.url}: {tally.done} {made}{by} made now{failed}, {tally.before} were there")
        for reason, count in list(tally.reasons.items())[:REASONS]:
            say(f"  {count:,} × {reason}")
        if len(tally.reasons) > REASONS:
            say(f"  {sum(list(tally.reasons.values())[REASONS:]):,} for {len(tally.reasons) - REASONS} other reasons")
    if stopped:
        say("stopped; the same command goes on from here")
        raise typer.Exit(130)
    if shown is not None:
        shown(run)
    if failures := unmeasured(run):
        for told in failures:
            Console(stderr=True).print(f"error: {told}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1)
