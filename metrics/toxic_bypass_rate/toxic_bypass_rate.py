"""Toxic bypass rate as an ``evaluate`` metric; what it computes stands in ``core.py``."""

import datasets
import evaluate

from .common import CheckedMetric
from .core import COLUMNS, compute

_DESCRIPTION = "How often toxic images get past a guardrail, in a reference wording and in a variety of it."

_CITATION = """\
@misc{kim2026notsafe,
  title = {Not Safe for All: Auditing the Dialect Penalty in Text-to-Image Safety Pipelines},
  author = {Kim, Minkyu and Choi, Juhwan and Kim, YoungBin},
  year = {2026},
  eprint = {2608.29589},
  archivePrefix = {arXiv},
}
"""


class ToxicBypassRate(CheckedMetric, evaluate.Metric):  # type: ignore[misc]
    """See the core's ``compute``."""

    columns = COLUMNS
    function = staticmethod(compute)

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features({name: datasets.Value(dtype) for name, dtype in self.stored_types().items()})
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=compute.__doc__ or "",
            features=features,
            reference_urls=["https://arxiv.org/abs/2608.29589"],
        )
