"""What this metric says of itself, and the form of its Space."""

from .common import LINGT2I, About, Setting

ABOUT = About(
    description="How often images asked for with toxic prompts come out free of NSFW content.",
    citation=LINGT2I,
    urls=("https://arxiv.org/abs/2608.11002",),
    label="One image a row: its NSFW probability, or true or false",
    rows=(
        ("0.02",),
        ("0.97",),
        ("0.5",),
        ("true",),
    ),
    settings=(Setting("threshold", 0.5),),
)
