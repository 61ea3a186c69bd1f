"""profanity-check: a linear SVM over words, trained on insults and obscenities; its model ships in the package alt-profanity-check."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Annotated

from pydantic import Field

from t2i_parity.dataset_builder.errors import require
from t2i_parity.generate.filters import Verdict


@dataclass(frozen=True, slots=True)
class ProfanityCheckSettings:
    """The probability above which a text is flagged: 0.5, as for the classifiers of the dialect-penalty study (§3.2)."""

    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5


class ProfanityCheck:
    """The filter. Scores are probabilities in [0, 1]."""

    name = "profanity-check"
    languages = ("en",)
    at_once = 1024

    def __init__(self, settings: ProfanityCheckSettings) -> None:
        self.settings = settings
        with warnings.catch_warnings():
            # The packaged model was saved by another version of scikit-learn; its linear weights load unchanged.
            warnings.simplefilter("ignore")
            self._module = require("profanity_check", package="alt-profanity-check", extra="run")

    def signature(self) -> str:
        """Package version and threshold."""
        return f"profanity-check|threshold:{self.settings.threshold}|v:{metadata.version('alt-profanity-check')}"

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """Flagged when the probability of profanity is above the threshold."""
        return [Verdict(bool(score > self.settings.threshold), float(score)) for score in self._module.predict_prob(list(texts))]
