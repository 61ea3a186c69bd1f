"""``python -m t2i_parity.dataset_builder``: the same commands as ``t2i-parity``; its ``push`` knows prompts alone."""

from t2i_parity.dataset_builder.commands import app
from t2i_parity.dataset_builder.commands.push import push
from t2i_parity.dataset_builder.console import run

app.command()(push)
run(app, "python -m t2i_parity.dataset_builder")
