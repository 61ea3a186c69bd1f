"""What this metric says of itself, and the form of its Space."""

from .common import LINGT2I, About

ABOUT = About(
    description="How unequally a score comes out over languages: mean and spread of the language means.",
    citation=LINGT2I,
    urls=("https://arxiv.org/abs/2608.11002",),
    label="One score a row, higher is better, and its language (an empty score is a missing one)",
    rows=(
        ("0.93", "en"),
        ("0.88", "en"),
        ("0.90", "fr"),
        ("0.84", "fr"),
        ("0.41", "hi"),
        ("", "hi"),
    ),
)
