"""Worst-group accuracy as an ``evaluate`` metric; what it computes stands in ``core.py``."""

import datasets
import evaluate

from .common import CheckedMetric
from .core import COLUMNS, compute

_DESCRIPTION = "The accuracy of the group that is served worst, beside the average that hides it."

_CITATION = """\
@inproceedings{sagawa2020distributionally,
  title = {Distributionally Robust Neural Networks for Group Shifts: On the Importance of Regularization for Worst-Case
           Generalization},
  author = {Sagawa, Shiori and Koh, Pang Wei and Hashimoto, Tatsunori B. and Liang, Percy},
  booktitle = {International Conference on Learning Representations},
  year = {2020},
  eprint = {1911.08731},
  archivePrefix = {arXiv},
}
"""


class WorstGroup(CheckedMetric, evaluate.Metric):  # type: ignore[misc]
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
            reference_urls=["https://arxiv.org/abs/1911.08731"],
        )
