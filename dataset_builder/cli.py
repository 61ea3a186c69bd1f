"""Commands of this package: ``build``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dataset_builder.console import output
from dataset_builder.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _package() -> None:
    """What is asked: prompts with full provenance."""


@app.command()
def build(
    config: Annotated[
        str | None, typer.Argument(help="The config to build from --source; every config of the edition when left out.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder to write the repository into.")] = Path("prompts"),
    edition: Annotated[str, typer.Option(help="starter: written by us, offline.")] = "starter",
    source: Annotated[str | None, typer.Option(help="Upstream to import instead of an edition: dialectgen.")] = None,
    input: Annotated[Path | None, typer.Option(help="Folder that holds the upstream's files.")] = None,
    part: Annotated[str, typer.Option(help="Which part of the upstream: concise or detailed.")] = "concise",
) -> None:
    """Write prompts as a repository that load_dataset opens.

    Example: t2i-parity build --edition starter --out prompts
    """
    from rich.table import Table

    from dataset_builder import starter
    from dataset_builder.repository import write_repository
    from dataset_builder.schema import table
    from dataset_builder.sources import dialectgen

    if source is None:
        if config is not None:
            raise InputError(
                f"config {config!r} was given without --source; leave it out to build the whole edition, or add --source dialectgen"
            )
        if edition != "starter":
            raise InputError(f"unknown edition {edition!r}: expected starter")
        tables = starter.tables()
        title = f"T2I Parity prompts, {edition} edition"
    elif source == "dialectgen":
        if config != "dialect":
            raise InputError(
                f"the source dialectgen fills the config dialect, not {config!r}: t2i-parity build dialect --source dialectgen --input DIR"
            )
        if input is None:
            raise InputError("the source dialectgen needs --input DIR, a folder of github.com/DialectGen/DialectGen")
        tables = {"dialect": table("dialect", dialectgen.rows(input, part))}
        edition = f"DialectGen {part}"
        title = f"DialectGen, {part} prompts"
    else:
        raise InputError(f"unknown source {source!r}: expected dialectgen")
    write_repository(tables, out, edition=edition)

    shown = Table(title=title, title_justify="left")
    for heading in ("config", "rows", "languages", "varieties"):
        shown.add_column(heading, justify="right" if heading == "rows" else "left")
    for name, rows in tables.items():
        languages, varieties = (sorted(filter(None, rows[column].unique().to_pylist())) for column in ("language", "variety"))
        shown.add_row(name, f"{len(rows):,}", " ".join(languages), " ".join(varieties) or "–")
    console = output()
    console.print(shown)
    console.print(f'Open it: load_dataset("{out}", "{next(iter(tables))}", split="test")', soft_wrap=True, markup=False)
