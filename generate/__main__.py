"""``python -m t2i_parity.generate``: the same commands as ``t2i-parity``."""

from t2i_parity.dataset_builder.console import run
from t2i_parity.generate.commands import app

run(app, "python -m t2i_parity.generate")
