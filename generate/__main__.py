"""``python -m generate``: the same commands as ``t2i-parity``."""

from dataset_builder.console import run
from generate.cli import app

run(app, "python -m generate")
