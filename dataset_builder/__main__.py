"""``python -m t2i_parity.dataset_builder``: the same commands as ``t2i-parity``; its ``push`` knows prompts alone."""

from t2i_parity.dataset_builder.commands import app
from t2i_parity.dataset_builder.commands.push import push
from t2i_parity.dataset_builder.console import apps, run

app.command()(push)
# construct can use the filters and chat models of the room above.
apps()
run(app, "python -m t2i_parity.dataset_builder")
