"""Any image classifier of transformers as a safety classifier, by hub id or folder: ``nsfw-image``.

No model is the default: the dialect-penalty study's NSFW-I is a head over CLIP (see ``nsfw-i``), and of the many on the hub none is a
standard.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends import safety
from t2i_parity.generate.backends.clip_features import Dtype
from t2i_parity.generate.backends.identity import content_name
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.filters.text_classifier import unsafe_labels
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

VERSION = "1"
UNSAFE = frozenset({"nsfw", "unsafe", "porn", "pornography", "hentai", "sexy", "sexual", "explicit", "nude", "nudity", "gore", "violence"})
SAFE = frozenset({"sfw", "safe", "normal", "neutral", "drawings", "drawing", "clean", "benign", "other"})
"""Labels of image classifiers that say by themselves whether they mean an unsafe image. Others ask for the setting ``unsafe``."""


@dataclass(frozen=True, slots=True)
class NsfwImageSettings:
    """Which model, and what of its answer counts.

    ``unsafe`` names the labels, parted by commas, that mean an unsafe image; it may be left out where every label says so by itself. Where
    labels exclude each other (softmax) they are one head, the sum of their probabilities; where they do not (sigmoid) each is a head.
    """

    model: str
    revision: str | None = None
    unsafe: str = ""
    function: Literal["auto", "softmax", "sigmoid"] = "auto"
    device: str = "auto"
    dtype: Dtype = "float32"
    batch_size: Annotated[int, Field(ge=1)] = 32


class NsfwImage:
    """The judge: the probability of the unsafe labels, after the model's own preprocessing."""

    name = "nsfw-image"
    columns: Mapping[str, pa.DataType] = safety.COLUMNS

    def __init__(self, settings: NsfwImageSettings) -> None:
        self.settings = settings
        self._torch: Any = require("torch", package="torch", extra="generate")
        transformers = require("transformers", package="transformers", extra="generate")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self._dtype = getattr(self._torch, settings.dtype)
        try:
            self._processor: Any = transformers.AutoImageProcessor.from_pretrained(settings.model, revision=settings.revision)
            model = transformers.AutoModelForImageClassification.from_pretrained(
                settings.model, revision=settings.revision, dtype=self._dtype
            )
        except (OSError, ValueError, KeyError) as error:
            raise InputError(
                f"nsfw-image: the image classifier {settings.model!r} could not be loaded ({first_line(error)}). Give the folder that "
                f"holds it, with its preprocessor_config.json: --set model=DIR; or download it once with: hf download {settings.model}"
            ) from error
        self.device = ("cuda" if self._torch.cuda.is_available() else "cpu") if settings.device == "auto" else settings.device
        self._model: Any = model.to(self.device).eval()
        config = model.config
        labels = [str(config.id2label[number]) for number in range(config.num_labels)]
        exclusive = config.num_labels > 1 and config.problem_type != "multi_label_classification"
        self._function = settings.function if settings.function != "auto" else "softmax" if exclusive else "sigmoid"
        self._unsafe = unsafe_labels(labels, settings.unsafe or _plain(labels), f"nsfw-image, model {settings.model}")
        names = [labels[place] for place in self._unsafe]
        self.heads = ("+".join(names),) if self._function == "softmax" else tuple(names)
        folder = Path(settings.model)
        commit = str(getattr(config, "_commit_hash", None) or settings.revision or "default")
        self._model_name = content_name(folder) if folder.is_dir() else f"{settings.model}@{commit[:12]}"

    def signature(self) -> str:
        """Model and revision (or a hash of a folder's weights), unsafe labels, and how logits become probabilities."""
        fields = {"model": self._model_name, "function": self._function, "dtype": self.settings.dtype}
        return safety.signature(self.name, self.heads, fields, VERSION)

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Nothing to check: it takes any image."""

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The unsafe labels' summed probability, or one each."""
        found: list[list[float]] = []
        for start in range(0, len(rows), self.settings.batch_size):
            images = [row["image"] for row in rows[start : start + self.settings.batch_size]]
            pixels = self._processor(images=images, return_tensors="pt")["pixel_values"].to(self.device, self._dtype)
            with self._torch.inference_mode():
                logits = self._model(pixel_values=pixels).logits.double().cpu()
            if self._function == "softmax":
                probabilities = logits.softmax(-1)[:, self._unsafe].sum(-1, keepdim=True).clamp(max=1)
            else:
                probabilities = logits.sigmoid()[:, self._unsafe]
            found += probabilities.tolist()
        return safety.observed(found)


def _plain(labels: Sequence[str]) -> str:
    """The unsafe labels, where every label says by itself which side it is on; else nothing.

    >>> _plain(["drawings", "hentai", "neutral", "porn", "sexy"]), _plain(["LABEL_0", "nsfw"])
    ('hentai,porn,sexy', '')
    """
    told = all(label.lower() in UNSAFE | SAFE for label in labels)
    return ",".join(label for label in labels if told and label.lower() in UNSAFE)
