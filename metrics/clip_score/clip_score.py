"""CLIPScore as an ``evaluate`` metric; what it computes stands in ``core.py``."""

import datasets
import evaluate

from .common import CheckedMetric
from .core import COLUMNS, as_stored, compute

_DESCRIPTION = "How well an image fits its prompt: the cosine of their embeddings under a multilingual CLIP."

_CITATION = """\
@inproceedings{hessel2021clipscore,
  title = {CLIPScore: A Reference-free Evaluation Metric for Image Captioning},
  author = {Hessel, Jack and Holtzman, Ari and Forbes, Maxwell and Le Bras, Ronan and Choi, Yejin},
  booktitle = {Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing},
  year = {2021},
  eprint = {2104.08718},
  archivePrefix = {arXiv},
}
"""


class ClipScore(CheckedMetric, evaluate.Metric):  # type: ignore[misc]
    """See the core's ``compute``."""

    columns = COLUMNS
    function = staticmethod(compute)

    def add_batch(self, **columns: object) -> None:
        """Add rows; an image is kept as what it shows now."""
        if columns.get("images") is not None:
            columns["images"] = as_stored(columns["images"])
        super().add_batch(**columns)

    def _info(self) -> evaluate.MetricInfo:
        kinds = {name: datasets.Value(dtype) for name, dtype in self.stored_types().items() if dtype != "image"}
        # Decoded by the core, a batch at a time.
        features = datasets.Features({"images": datasets.Image(decode=False), **kinds})
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=compute.__doc__ or "",
            features=features,
            reference_urls=["https://arxiv.org/abs/2104.08718", "https://arxiv.org/abs/2608.11002"],
        )
