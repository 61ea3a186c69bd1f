"""``python -m dataset_builder``: the same commands as ``t2i-parity``."""

from dataset_builder.cli import app
from dataset_builder.console import run

run(app, "python -m dataset_builder")
