"""``python -m dataset_builder``: the same commands as ``t2i-parity``; its ``push`` knows prompts alone."""

from dataset_builder.cli import app
from dataset_builder.console import run
from dataset_builder.push_cli import push

app.command()(push)
run(app, "python -m dataset_builder")
