"""The command ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from t2i_parity.dataset_builder.console import output, say


def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Scored runs, compared side by side.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="The page's title.")] = "T2I Parity report",
    tables: Annotated[bool, typer.Option(help="Print the page's tables too.")] = True,
) -> None:
    """Write one self-contained HTML page over scored runs, and print its tables.

    Example: t2i-parity report runs/glyph runs/audit --out report.html
    """
    from t2i_parity.cards.report import console_tables, render
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.generate.report import gather
    from t2i_parity.generate.run import Run

    gathered = gather([Run.open(url) for url in runs], title=title)
    Folder(str(out.parent)).write(render(gathered).encode("utf-8"), out.name)
    console = output()
    if tables:
        for table in console_tables(gathered):
            console.print(table)
    say(f"report: {out}")
