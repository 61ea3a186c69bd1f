"""What this metric says of itself, and the form of its Space."""

from .common import LINGT2I, About, Setting

ABOUT = About(
    description="How much of a requested text an image shows: mean of character NED, token NED and sentence accuracy.",
    citation=LINGT2I,
    urls=("https://arxiv.org/abs/2608.11002",),
    label="What was read, and what was asked for (an empty prediction is a missing one)",
    rows=(
        ("GRAND OPENlNG", "GRAND OPENING"),
        ("चाय की दुकान", "चाय की दुकान"),
        ("", "نفق"),
    ),
    settings=(
        Setting("tokenizer", "tekken", ("tekken", "google/mt5-base"), free=True),
        Setting("normalization", "none", ("none", "nfc")),
        Setting("units", "codepoints", ("codepoints", "graphemes"), "units of ned_char"),
        Setting("variant", "paper", ("paper", "reference")),
    ),
)
