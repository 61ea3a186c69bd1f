"""``python -m t2i_parity.dataset_builder``: the same commands as ``t2i-parity``; its ``push`` knows prompts alone."""

from t2i_parity.dataset_builder.cli import app
from t2i_parity.dataset_builder.console import run
from t2i_parity.dataset_builder.push_cli import push

app.command()(push)
run(app, "python -m t2i_parity.dataset_builder")
