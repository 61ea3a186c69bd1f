"""Commands of this package, one file each."""

from __future__ import annotations

import typer

from t2i_parity.validation.commands.board import board
from t2i_parity.validation.commands.geography import geography
from t2i_parity.validation.commands.submit import submit
from t2i_parity.validation.commands.survey import survey
from t2i_parity.validation.commands.validate import validate

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _package() -> None:
    """What must hold: prompts are whole and clean, published values come out again."""


for _command in (validate, board, submit, survey, geography):
    app.command()(_command)
