"""``python -m validation``: the same commands as ``t2i-parity``."""

from dataset_builder.console import run
from validation.cli import app

run(app, "python -m validation")
