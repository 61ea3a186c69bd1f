"""Geographical representativeness as an ``evaluate`` metric; what it computes stands in ``core.py``."""

import datasets
import evaluate

from .common import CheckedMetric
from .core import COLUMNS, compute

_DESCRIPTION = "How well images reflect the surroundings of people in each country, with and without its name in the prompt."

_CITATION = """\
@inproceedings{basu2023inspecting,
  title = {Inspecting the Geographical Representativeness of Images from Text-to-Image Models},
  author = {Basu, Abhipsa and Babu, R. Venkatesh and Pruthi, Danish},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision},
  year = {2023},
  eprint = {2305.11080},
  archivePrefix = {arXiv},
}
"""


class GeoRepresentativeness(CheckedMetric, evaluate.Metric):  # type: ignore[misc]
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
            reference_urls=["https://arxiv.org/abs/2305.11080"],
        )
