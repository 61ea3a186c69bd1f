"""The command ``metrics``."""

from __future__ import annotations

from t2i_parity.dataset_builder.console import output


def metrics() -> None:
    """List the metrics: what each measures, and which observations it is scored from.

    Example: t2i-parity metrics
    """
    from t2i_parity.generate import spaces

    output().print(spaces.table(spaces.metrics()))
