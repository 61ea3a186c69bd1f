"""Text classifiers by ``transformers``, from a folder or the hub: any of them, and NSFW-T of the dialect-penalty study."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends.identity import files_sha256
from t2i_parity.generate.filters import Verdict, Wording, signed, worded

UNSAFE = frozenset(
    {"nsfw", "unsafe", "toxic", "toxicity", "harmful", "hate", "hateful", "offensive", "offense", "profane", "spam", "abusive"}
)
SAFE = frozenset(
    {"sfw", "safe", "neutral", "normal", "clean", "benign", "harmless", "not_toxic", "non_toxic", "nontoxic", "nothate", "not_hate",
     "non_hate", "not_offensive", "non_offensive", "acceptable", "ok"}
)  # fmt: skip
"""Labels that say by themselves which of a model's two is the unsafe one. Others ask for the setting ``unsafe``."""


@dataclass(frozen=True, slots=True)
class TextClassifierSettings:
    """Which model, and what of its answer counts.

    ``unsafe`` names the labels, parted by commas, that mean "block"; it may be left out for a model of two labels of which one says so
    by itself. A text is flagged when the score is above ``threshold``: the sum of the unsafe labels' probabilities where they exclude
    each other (softmax), the largest one where they do not (sigmoid). ``max_length`` counts tokens. ``languages`` are those that the model
    was made for, parted by commas, for a warning on others.
    """

    model: str
    revision: str | None = None
    unsafe: str = ""
    threshold: Annotated[float, Field(ge=0, le=1)] = 0.5
    function: Literal["auto", "softmax", "sigmoid"] = "auto"
    max_length: Annotated[int | None, Field(ge=4)] = None
    wording: Wording = "as_is"
    languages: str = ""
    device: str = "cpu"
    batch_size: Annotated[int, Field(ge=1)] = 32


@dataclass(frozen=True, slots=True)
class NsfwTSettings(TextClassifierSettings):
    """NSFW-T as the study's code runs it: p(NSFW) above 0.5, 512 tokens, texts stripped and begun in upper case (§3.2, Li 2022)."""

    model: str = "michellejieli/NSFW_text_classifier"
    unsafe: str = "NSFW"
    max_length: Annotated[int | None, Field(ge=4)] = 512
    wording: Wording = "capitalized"
    languages: str = "en"


class TextClassifier:
    """The filter. Scores are probabilities in [0, 1], and ``categories`` those of every label."""

    name = "transformers"
    at_once = 256

    def __init__(self, settings: TextClassifierSettings) -> None:
        self.settings = settings
        self.languages = tuple(code.strip() for code in settings.languages.split(",") if code.strip())
        transformers = require("transformers", package="transformers", extra="generate")
        self._torch = require("torch", package="torch", extra="generate")
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(settings.model, revision=settings.revision)
            model = transformers.AutoModelForSequenceClassification.from_pretrained(settings.model, revision=settings.revision)
        except (OSError, ValueError) as error:
            raise InputError(
                f"{self.name}: the text classifier {settings.model!r} could not be loaded ({first_line(error)}). Give a folder that "
                f"holds it with --set model=DIR, or download it once with: hf download {settings.model}"
            ) from error
        self._model = model.float().to(settings.device).eval()
        config = model.config
        self._labels = [str(config.id2label[number]) for number in range(config.num_labels)]
        exclusive = config.num_labels > 1 and config.problem_type != "multi_label_classification"
        self._function = settings.function if settings.function != "auto" else "softmax" if exclusive else "sigmoid"
        self._unsafe = unsafe_labels(self._labels, settings.unsafe, f"{self.name}, model {settings.model}")
        self._limit = settings.max_length or token_limit(self._tokenizer, config)

    def signature(self) -> str:
        """Model and revision, unsafe labels, threshold and everything else that changes a score."""
        settings = self.settings
        # A folder has no revision, and its name says little: two filters called "filter" are told apart by what they hold.
        local = Path(settings.model)
        name, revision = (local.name, files_sha256(local)[:12]) if local.is_dir() else (settings.model, settings.revision or "default")
        fields = {
            "model": f"{name}@{revision}",
            "unsafe": "+".join(self._labels[place] for place in self._unsafe),
            "function": self._function,
            "threshold": settings.threshold,
            "tokens": self._limit,
            "wording": settings.wording,
            "v": f"transformers {metadata.version('transformers')}",
        }
        return signed(self.name, fields)

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """Flagged when the unsafe labels' score is above the threshold. Padding is masked: neighbours change nothing but rounding."""
        prepared = [worded(text, self.settings.wording) for text in texts]
        lengths = [len(ids) for ids in self._tokenizer(prepared, truncation=False, verbose=False)["input_ids"]] if prepared else []
        size = self.settings.batch_size if self._tokenizer.pad_token is not None else 1
        # Texts of like length together: less padding.
        order = sorted(range(len(prepared)), key=lambda place: lengths[place])
        found: dict[int, Verdict] = {}
        for start in range(0, len(order), size):
            places = order[start : start + size]
            for place, row in zip(places, self._probabilities([prepared[place] for place in places]), strict=True):
                unsafe = [row[label] for label in self._unsafe]
                score = min(1.0, sum(unsafe)) if self._function == "softmax" else max(unsafe)
                categories = dict(zip(self._labels, row, strict=True))
                found[place] = Verdict(score > self.settings.threshold, score, categories, lengths[place] > self._limit)
        return [found[place] for place in range(len(prepared))]

    def _probabilities(self, texts: list[str]) -> list[list[float]]:
        padding = len(texts) > 1
        batch = self._tokenizer(texts, padding=padding, truncation=True, max_length=self._limit, return_tensors="pt")
        with self._torch.inference_mode():
            logits = self._model(**batch.to(self.settings.device)).logits.double()
        answer: list[list[float]] = (logits.softmax(-1) if self._function == "softmax" else logits.sigmoid()).cpu().tolist()
        return answer


class NsfwT(TextClassifier):
    """The preset."""

    name = "nsfw-t"
    settings: NsfwTSettings


def unsafe_labels(labels: Sequence[str], asked: str, where: str) -> list[int]:
    """The places of the labels that mean "block".

    Raises InputError, listing the labels, when one that was asked for is not there, or none was and it is not plain which they are.

    >>> unsafe_labels(["SFW", "NSFW"], "", "m"), unsafe_labels(["LABEL_0", "LABEL_1"], "LABEL_1", "m")
    ([1], [1])
    """
    if asked:
        wanted = [name.strip() for name in asked.split(",") if name.strip()]
        if unknown := [name for name in wanted if name not in labels]:
            raise InputError(f"{where} has no label {', '.join(map(repr, unknown))}; its labels are {', '.join(map(repr, labels))}")
        if set(wanted) == set(labels) and len(labels) > 1:
            raise InputError(f"{where}: --set unsafe={asked} names every label, so every text would be flagged; name only those that block")
        return [labels.index(name) for name in dict.fromkeys(wanted)]
    plain = [label.lower().replace("-", "_").replace(" ", "_") for label in labels]
    unsafe = [place for place, label in enumerate(plain) if label in UNSAFE]
    if len(unsafe) == 1 and (len(labels) == 1 or (len(labels) == 2 and plain[1 - unsafe[0]] in SAFE)):
        return unsafe
    raise InputError(
        f"{where}: it is not plain which of its labels mean that a text is unsafe; they are {', '.join(map(repr, labels))}. "
        "Name them: --set unsafe=LABEL (several parted by commas)"
    )


def token_limit(tokenizer: Any, config: Any) -> int:
    """How many tokens the model sees."""
    positions = int(getattr(config, "max_position_embeddings", 0) or 0)
    if config.model_type in ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer"):
        # These count positions from behind the padding token.
        positions -= int(config.pad_token_id or 0) + 1
    limits = [limit for limit in (positions, int(tokenizer.model_max_length)) if 0 < limit < 10**6]
    if not limits:
        raise InputError("the model does not say how many tokens it sees; give it with --set max_length=N")
    return min(limits)
