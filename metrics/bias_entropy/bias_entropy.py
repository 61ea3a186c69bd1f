"""Bias entropy as an ``evaluate`` metric; what it computes stands in ``core.py``."""

import datasets
import evaluate

from .common import CheckedMetric
from .core import COLUMNS, compute

_DESCRIPTION = "How evenly the people in images are spread over races, genders and ages: normalized entropies."

_CITATION = """\
@inproceedings{zhang2026lingt2i,
  title = {On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation},
  author = {Zhang, Sicheng and Yan, Zhonghao and Xie, Binzhu and Qiu, Shi and Naseer, Muzammal and Akhtar, Naveed
            and Shah, Mubarak},
  booktitle = {Proceedings of the 34th ACM International Conference on Multimedia},
  year = {2026},
  doi = {10.1145/3767308.3835058},
}
"""


class BiasEntropy(CheckedMetric, evaluate.Metric):  # type: ignore[misc]
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
            reference_urls=["https://arxiv.org/abs/2608.11002"],
        )
