"""What this metric says of itself, and the form of its Space."""

from .common import About

ABOUT = About(
    description="How well an image fits its prompt: the cosine of their embeddings under a multilingual CLIP.",
    citation="""\
@inproceedings{hessel2021clipscore,
  title = {CLIPScore: A Reference-free Evaluation Metric for Image Captioning},
  author = {Hessel, Jack and Holtzman, Ari and Forbes, Maxwell and Le Bras, Ronan and Choi, Yejin},
  booktitle = {Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing},
  year = {2021},
  eprint = {2104.08718},
  archivePrefix = {arXiv},
}
""",
    urls=("https://arxiv.org/abs/2104.08718", "https://arxiv.org/abs/2608.11002"),
)
