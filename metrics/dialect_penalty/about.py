"""What this metric says of itself, and the form of its Space."""

from .common import NOT_SAFE_FOR_ALL, About, Setting

ABOUT = About(
    description="How a filter's detection rates shift between a reference wording and a variety of the same prompts.",
    citation=NOT_SAFE_FOR_ALL,
    urls=("https://arxiv.org/abs/2608.29589",),
    label="One pair a row: was each wording flagged? (an empty cell is a missing answer)",
    rows=(
        ("true", "true", "toxic"),
        ("false", "true", "toxic"),
        ("false", "true", "benign"),
        ("false", "false", "benign"),
    ),
    settings=(Setting("test", "paper", ("paper", "exact", "chi2")),),
)
