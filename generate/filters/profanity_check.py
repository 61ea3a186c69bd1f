"""profanity-check: a linear SVM over words, trained on insults and obscenities; its model ships in the package alt-profanity-check."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import metadata

from dataset_builder.errors import require
from generate.filters import Verdict

THRESHOLD = 0.5
"""The probability above which a text is flagged, as for the classifiers of the dialect-penalty study (§3.2)."""


class ProfanityCheck:
    """The filter. Scores are probabilities in [0, 1]."""

    name = "profanity-check"
    languages = ("en",)

    def __init__(self) -> None:
        with warnings.catch_warnings():
            # The packaged model was saved by another version of scikit-learn; its linear weights load unchanged.
            warnings.simplefilter("ignore")
            self._module = require("profanity_check", package="alt-profanity-check", extra="dev")

    def signature(self) -> str:
        """Package version and threshold."""
        return f"profanity-check|threshold:{THRESHOLD}|v:{metadata.version('alt-profanity-check')}"

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """Flagged when the probability of profanity is above 0.5."""
        return [Verdict(bool(score > THRESHOLD), float(score)) for score in self._module.predict_prob(list(texts))]
