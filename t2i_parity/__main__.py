"""``python -m t2i_parity``: the console script ``t2i-parity``."""

from t2i_parity.dataset_builder.console import main

main()
