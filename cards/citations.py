"""How to cite the studies behind the project, and the project."""

from __future__ import annotations

STUDIES = (
    """\
@inproceedings{zhang2026lingt2i,
  title     = {On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation},
  author    = {Zhang, Sicheng and Yan, Zhonghao and Xie, Binzhu and Qiu, Shi and Naseer, Muzammal and Akhtar, Naveed and Shah, Mubarak},
  booktitle = {Proceedings of the 34th ACM International Conference on Multimedia},
  year      = {2026},
  doi       = {10.1145/3767308.3835058},
  eprint    = {2608.11002},
  archiveprefix = {arXiv}
}""",
    """\
@misc{kim2026dialectpenalty,
  title  = {Not Safe for All: Auditing the Dialect Penalty in Text-to-Image Safety Pipelines},
  author = {Kim, Minkyu and Choi, Juhwan and Kim, YoungBin},
  year   = {2026},
  eprint = {2608.29589},
  archiveprefix = {arXiv}
}""",
    """\
@inproceedings{basu2023geographical,
  title     = {Inspecting the Geographical Representativeness of Images from Text-to-Image Models},
  author    = {Basu, Abhipsa and Babu, R. Venkatesh and Pruthi, Danish},
  booktitle = {Proceedings of the IEEE/CVF International Conference on Computer Vision},
  pages     = {5136--5147},
  year      = {2023},
  eprint    = {2305.11080},
  archiveprefix = {arXiv}
}""",
)
"""LingT2I, the dialect penalty, geographical representativeness: BibTeX."""

PROJECT = """\
@misc{t2iparity2026,
  title  = {{T2I Parity}: Does a Text-to-Image System Serve Everyone Equally?},
  author = {{The T2I Parity team}},
  year   = {2026}
}"""
"""This project: BibTeX."""

ARXIV = ("2608.11002", "2608.29589", "2305.11080")
"""The studies' arXiv numbers, in the same order."""
