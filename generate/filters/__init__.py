"""Text filters: what decides from a prompt alone whether it is let through. One file a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, cast

import pyarrow as pa

from t2i_parity.generate.declared import Declared, find
from t2i_parity.generate.engine.local import Failure
from t2i_parity.metrics._common import Signature

Wording = Literal["capitalized", "as_is"]
"""What a filter is handed: the text stripped and its first character in upper case, as the dialect-penalty study's code does for each of
its three filters, or the text as it stands."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a filter says of one prompt: is it flagged, and the score on the filter's own scale (None where it has none).

    ``categories`` are the scores of its categories, by name, where it has several; ``truncated`` says whether it saw only the beginning
    of the text (None where that is not known).
    """

    flagged: bool
    score: float | None
    categories: Mapping[str, float] | None = None
    truncated: bool | None = None

    def row(self) -> dict[str, Any]:
        """As it is kept: ``VERDICT_COLUMNS``."""
        named = None if self.categories is None else [{"name": name, "score": score} for name, score in self.categories.items()]
        return {"flagged": self.flagged, "score": self.score, "truncated": self.truncated, "categories": named}


VERDICT_COLUMNS: Mapping[str, pa.DataType] = {
    "flagged": pa.bool_(),
    "score": pa.float64(),
    "truncated": pa.bool_(),
    "categories": pa.list_(pa.struct([("name", pa.string()), ("score", pa.float64())])),
}
"""The columns of a kept verdict."""


class Asked(Protocol):
    """Whatever is asked about prompts: a filter, or an encoder. What it answers makes a row of itself: ``row()``."""

    def signature(self) -> str:
        """Name, version and every setting that changes an answer, in one string that is stored with each."""

    def judge(self, texts: Sequence[str]) -> Sequence[Any]:
        """One answer or Failure a text."""


class TextFilter(Protocol):
    """A filter over prompts."""

    @property
    def name(self) -> str:
        """What it is called in commands and folders."""

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it was made for (BCP-47); verdicts on others are kept, with a warning. Empty where nobody says."""

    @property
    def at_once(self) -> int:
        """How many texts a batch holds unless told otherwise: what a crash costs at most."""

    def signature(self) -> str:
        """Name, version and every setting that changes a verdict, in one string that is stored with each."""

    def judge(self, texts: Sequence[str]) -> Sequence[Verdict | Failure]:
        """One verdict a text, whatever stands beside it in the batch; or why there is none."""


FILTERS: tuple[Declared, ...] = (
    Declared(
        "profanity-check",
        "t2i_parity.generate.filters.profanity_check",
        "ProfanityCheck",
        "ProfanityCheckSettings",
        "a linear SVM over words",
    ),
    Declared(
        "transformers",
        "t2i_parity.generate.filters.text_classifier",
        "TextClassifier",
        "TextClassifierSettings",
        "any text-classification model of transformers, by folder or hub id",
    ),
    Declared(
        "nsfw-t",
        "t2i_parity.generate.filters.text_classifier",
        "NsfwT",
        "NsfwTSettings",
        "NSFW-T of the dialect-penalty study, a DistilBERT",
    ),
    Declared(
        "latent-guard",
        "t2i_parity.generate.filters.latent_guard",
        "LatentGuard",
        "LatentGuardSettings",
        "closeness to a list of concepts in a learned space over CLIP; its weights from a folder or the hub",
    ),
    Declared(
        "openai-moderation",
        "t2i_parity.generate.filters.openai_moderation",
        "OpenAIModeration",
        "OpenAIModerationSettings",
        "the moderation API of OpenAI, or a service of the same form",
    ),
    Declared(
        "python", "t2i_parity.generate.filters.python_function", "PythonFunction", "PythonFunctionSettings", "any function module:function"
    ),
    Declared(
        "http", "t2i_parity.generate.filters.http_service", "HttpService", "HttpServiceSettings", "any service that answers JSON with JSON"
    ),
)
"""Every filter. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> TextFilter:
    """The filter a user named. Raises InputError, naming the known ones, when there is none."""
    return cast(TextFilter, find(FILTERS, name, "filter").load(options))


def worded(text: str, wording: Wording) -> str:
    """The text as the filter is handed it.

    >>> worded(" a cat ", "capitalized"), worded(" a cat ", "as_is")
    ('A cat', ' a cat ')
    """
    if wording == "as_is":
        return text
    stripped = text.strip()
    return stripped[:1].upper() + stripped[1:]


def signed(name: str, settings: Mapping[str, object]) -> str:
    """The signature of a filter under these settings, of which ``v`` is its version; what it may not hold is written otherwise.

    >>> signed("http", {"request": '{"text": "{text}"}', "v": 2})
    'http|request:%7B"text": "%7Btext%7D"%7D|v:2'
    """
    fields = {key: " ".join(str(value).replace("|", ",").split()) for key, value in settings.items()}
    return str(Signature(name, {key: value for key, value in fields.items() if key != "v"}, fields["v"]))
