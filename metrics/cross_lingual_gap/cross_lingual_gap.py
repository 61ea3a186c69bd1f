# Written by `python -m t2i_parity.metrics.copies` from metrics/copies.py; change it there.
"""The metric as ``evaluate`` loads it; what it computes stands in ``core.py``."""

import evaluate

from .about import ABOUT
from .common import CheckedMetric
from .core import COLUMNS, compute
from .inference import GroupMeans as GroupMeans
from .languages import LANGUAGES as LANGUAGES


class CrossLingualGap(CheckedMetric, evaluate.Metric):  # type: ignore[misc]
    """See the core's ``compute``."""

    columns = COLUMNS
    function = staticmethod(compute)
    about = ABOUT
