"""Commands of this package, one file each, and the lists of what can be named in them; together they are one Typer app."""

from __future__ import annotations

import typer

from t2i_parity.generate.commands import listing
from t2i_parity.generate.commands.analyse import analyse
from t2i_parity.generate.commands.audit import audit, audit_filter
from t2i_parity.generate.commands.compare import compare
from t2i_parity.generate.commands.generate import generate
from t2i_parity.generate.commands.judge import judge
from t2i_parity.generate.commands.metrics import metrics
from t2i_parity.generate.commands.mitigate import mitigate
from t2i_parity.generate.commands.models import models
from t2i_parity.generate.commands.plan import plan
from t2i_parity.generate.commands.push import push
from t2i_parity.generate.commands.report import report
from t2i_parity.generate.commands.score import score

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _package() -> None:
    """Run models, judges and filters over rows; score what they saw."""


for _command in (plan, generate, models, metrics, judge, audit_filter, audit, score, report, compare, analyse, mitigate, push):
    app.command()(_command)
app.registered_commands += listing.app.registered_commands
