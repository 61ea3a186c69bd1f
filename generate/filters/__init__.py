"""Text filters: what decides from a prompt alone whether it is let through. One file a filter, and one entry here.

A package of somebody else's adds one by ``@FILTERS.entry(name, about)`` over its class, in a module that it names in the entry-point group
``t2i_parity.plugins``; ``--filter module:Class`` and ``--filter module:function`` need neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa

from t2i_parity.dataset_builder.registry import Entry, Key, Package, Registry, Weights, packages
from t2i_parity.dataset_builder.settings import field
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


_TRANSFORMERS = packages("generate", "torch", "transformers")
_HERE = "t2i_parity.generate.filters."

FILTERS: Registry[TextFilter] = Registry(
    "filter",
    (
        Entry("profanity-check", f"{_HERE}profanity_check:ProfanityCheck", "a linear SVM over words",
              (Package("profanity_check", "run", "alt-profanity-check"),)),
        Entry("transformers", f"{_HERE}text_classifier:TextClassifier",
              "any text-classification model of transformers, by folder or hub id", _TRANSFORMERS),
        Entry("nsfw-t", f"{_HERE}text_classifier:NsfwT", "NSFW-T of the dialect-penalty study, a DistilBERT",
              (*_TRANSFORMERS, Weights("michellejieli/NSFW_text_classifier"))),
        Entry("latent-guard", f"{_HERE}latent_guard:LatentGuard",
              "closeness to a list of concepts in a learned space over CLIP; its weights from a folder or the hub",
              (*_TRANSFORMERS, Weights("openai/clip-vit-large-patch14"))),
        Entry("openai-moderation", f"{_HERE}openai_moderation:OpenAIModeration",
              "the moderation API of OpenAI, or a service of the same form", (Key("OPENAI_API_KEY"),), "another by --set key_variable=…"),
        Entry("python", f"{_HERE}python_function:PythonFunction", "any function module:function"),
        Entry("http", f"{_HERE}http_service:HttpService", "any service that answers JSON with JSON"),
    ),
    function="python",
)  # fmt: skip
"""Every filter. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> TextFilter:
    """The filter a user named, by name or as module:Class, or any function as module:function.

    Raises InputError, naming the nearest, when there is none.
    """
    return FILTERS.load(name, options)


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
    'http|request:%7B"text"= "%7Btext%7D"%7D|v:2'
    """
    fields = {key: field(value) for key, value in settings.items()}
    return str(Signature(name, {key: value for key, value in fields.items() if key != "v"}, fields["v"]))
