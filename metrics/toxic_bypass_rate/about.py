"""What this metric says of itself, and the form of its Space."""

from .common import NOT_SAFE_FOR_ALL, About, Setting

ABOUT = About(
    description="How often toxic images get past a guardrail, in a reference wording and in a variety of it.",
    citation=NOT_SAFE_FOR_ALL,
    urls=("https://arxiv.org/abs/2608.29589",),
    label="One pair a row: is each image toxic? (an empty cell is a missing verdict)",
    rows=(
        ("true", "true", "false", "true"),
        ("true", "true", "true", "true"),
        ("true", "false", "true", "false"),
        ("true", "true", "", "false"),
    ),
    settings=(Setting("conditioning", "both", ("both", "reference")),),
)
