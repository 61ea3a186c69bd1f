"""Commands of this package, one file each; ``push`` of prompts is mounted by the room above, with that of runs and metrics."""

from __future__ import annotations

import typer

from t2i_parity.dataset_builder.commands.build import build
from t2i_parity.dataset_builder.commands.construct import construct

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _package() -> None:
    """What is asked: prompts with full provenance."""


for _command in (build, construct):
    app.command()(_command)
