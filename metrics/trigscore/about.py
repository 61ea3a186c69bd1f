"""What this metric says of itself, and the form of its Space."""

from .common import LINGT2I, About, Setting

ABOUT = About(
    description="A judge's rating of images, read from the log-probabilities that it gave to the rating words.",
    citation=LINGT2I,
    urls=("https://arxiv.org/abs/2608.11002",),
    label="One image a row: the judge's likeliest tokens and their log-probabilities, between commas",
    rows=(
        ("Good, Excellent, Medium", "-0.3, -1.6, -3.2"),
        ("bad, ter, medium", "-0.7, -0.9, -2.5"),
        ("I, The, Sorry", "-0.2, -2.1, -3.0"),
    ),
    settings=(
        Setting("scale", "excellent, good, medium, bad, terrible", label="scale, the best first", items=True),
        Setting("variant", "paper", ("paper", "reference")),
    ),
)
