"""The command ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.generate.commands.options import MarginOption


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Scored runs, compared side by side.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="The page's title.")] = "T2I Parity report",
    margin: MarginOption = None,
    tables: Annotated[bool, typer.Option(help="Print the page's tables too.")] = True,
) -> None:
    """Write one self-contained HTML page over scored runs, and print its tables.

    Example: t2i-parity report runs/glyph runs/audit --out report.html
    """
    from t2i_parity.generate import stages

    made = stages.report(runs, out=out, title=title, margin=margin)
    console = output()
    for table in made.tables() if tables else ():
        console.print(table)
    say(f"report: {out}")
