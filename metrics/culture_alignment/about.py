"""What this metric says of itself, and the form of its Space."""

from .common import LINGT2I, About

ABOUT = About(
    description="How often an image shows an identifiable culture, and how often it is the one of the prompt's language.",
    citation=LINGT2I,
    urls=("https://arxiv.org/abs/2608.11002",),
    label="The culture tag of each image, and the culture of its prompt's language (an empty tag is a failed judgement)",
    rows=(
        ("Indian", "Indian"),
        ("None", "Arab"),
        ("Japanese", "Korean"),
        ("Mixed", "French"),
        ("", "Russian"),
    ),
)
