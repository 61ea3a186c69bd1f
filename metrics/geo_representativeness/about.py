"""What this metric says of itself, and the form of its Space."""

from .common import About

ABOUT = About(
    description="How well images reflect the surroundings of people in each country, with and without its name in the prompt.",
    citation="""\
@inproceedings{basu2023inspecting,
  title = {Inspecting the Geographical Representativeness of Images from Text-to-Image Models},
  author = {Basu, Abhipsa and Babu, R. Venkatesh and Pruthi, Danish},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision},
  year = {2023},
  eprint = {2305.11080},
  archivePrefix = {arXiv},
}
""",
    urls=("https://arxiv.org/abs/2305.11080",),
    label="One rating from 1 to 5 a row, the participant's country, and whether the prompt named it (an empty rating is missing)",
    rows=(
        ("3", "IND", "unspecified"),
        ("4", "IND", "country"),
        ("2", "JPN", "unspecified"),
        ("4", "JPN", "country"),
        ("1", "GRC", "unspecified"),
        ("", "GRC", "country"),
    ),
)
