"""What this metric says of itself, and the form of its Space."""

from .common import About

ABOUT = About(
    description="The accuracy of the group that is served worst, beside the average that hides it.",
    citation="""\
@inproceedings{sagawa2020distributionally,
  title = {Distributionally Robust Neural Networks for Group Shifts: On the Importance of Regularization for Worst-Case
           Generalization},
  author = {Sagawa, Shiori and Koh, Pang Wei and Hashimoto, Tatsunori B. and Liang, Percy},
  booktitle = {International Conference on Learning Representations},
  year = {2020},
  eprint = {1911.08731},
  archivePrefix = {arXiv},
}
""",
    urls=("https://arxiv.org/abs/1911.08731",),
    label="Was each row right, and its group (an empty verdict is a missing one)",
    rows=(
        ("true", "en"),
        ("true", "en"),
        ("true", "fr"),
        ("false", "fr"),
        ("false", "hi"),
        ("", "hi"),
    ),
)
