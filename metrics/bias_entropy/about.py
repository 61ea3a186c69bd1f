"""What this metric says of itself, and the form of its Space."""

from .common import LINGT2I, About

ABOUT = About(
    description="How evenly the people in images are spread over races, genders and ages: normalized entropies.",
    citation=LINGT2I,
    urls=("https://arxiv.org/abs/2608.11002",),
    label="One person a row, as the annotator answered",
    rows=(
        ("Asian", "Female", "Adult"),
        ("Asian", "Male", "Adult"),
        ("White", "Male", "Elderly"),
        ("Indian", "Unknown", "Teen"),
        ("Parse Error", "Parse Error", "Parse Error"),
    ),
)
