"""ShieldGemma 2, the third evaluator of the dialect-penalty study (Appendix M): does an image violate a policy, yes or no?

It stands on another encoder (SigLIP and Gemma 3) than the heads over CLIP, so that what they share does not decide. The prompt around a
policy is the model's own; the policies are those that it comes with, which it was trained on (dangerous, sexual, violence).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends import safety
from t2i_parity.generate.backends.clip_features import Dtype
from t2i_parity.generate.backends.identity import content_name
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

VERSION = "1"


@dataclass(frozen=True, slots=True)
class ShieldGemmaSettings:
    """Folder or hub id (the licence must be accepted there); ``policies`` are some of the model's own, parted by commas, by default all."""

    model: str = "google/shieldgemma-2-4b-it"
    revision: str | None = None
    policies: str = ""
    device: str = "auto"
    dtype: Dtype = "bfloat16"
    batch_size: Annotated[int, Field(ge=1)] = 8


class ShieldGemma:
    """The judge: of each policy, the probability of "Yes" against "No"."""

    name = "shieldgemma"
    columns: Mapping[str, pa.DataType] = safety.COLUMNS

    def __init__(self, settings: ShieldGemmaSettings) -> None:
        self.settings = settings
        self._torch: Any = require("torch", package="torch", extra="generate")
        transformers = require("transformers", package="transformers", extra="generate")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        where = {"pretrained_model_name_or_path": settings.model, "revision": settings.revision}
        try:
            self._processor: Any = transformers.AutoProcessor.from_pretrained(**where)
            model = transformers.ShieldGemma2ForImageClassification.from_pretrained(**where, dtype=getattr(self._torch, settings.dtype))
        except Exception as error:  # the loaders raise many kinds, all of which mean: not to be had
            raise InputError(
                f"shieldgemma: {settings.model!r} could not be loaded ({first_line(error)}). Accept its licence on the hub and download it "
                f"once with hf download {settings.model}, or give its folder: --set model=DIR"
            ) from error
        known = list(getattr(self._processor, "policy_definitions", {}))
        self.heads = tuple(name.strip() for name in settings.policies.split(",") if name.strip()) or tuple(known)
        if unknown := [name for name in self.heads if name not in known]:
            raise InputError(f"shieldgemma has no policy {', '.join(map(repr, unknown))}; it was trained on {', '.join(known)}")
        self.device = ("cuda" if self._torch.cuda.is_available() else "cpu") if settings.device == "auto" else settings.device
        self._model: Any = model.to(self.device).eval()
        commit = str(getattr(model.config, "_commit_hash", None) or settings.revision or "default")
        self._model_name = content_name(Path(settings.model)) if Path(settings.model).is_dir() else f"{settings.model}@{commit[:12]}"

    def signature(self) -> str:
        """Policies, model and revision (or a hash of a folder's weights), and precision."""
        return safety.signature(self.name, self.heads, {"model": self._model_name, "dtype": self.settings.dtype}, VERSION)

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Nothing to check: it takes any image."""

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """One probability a policy."""
        found: list[list[float]] = []
        for start in range(0, len(rows), self.settings.batch_size):
            images = [row["image"] for row in rows[start : start + self.settings.batch_size]]
            inputs = self._processor(images=images, policies=list(self.heads), return_tensors="pt").to(self.device, self._model.dtype)
            with self._torch.inference_mode():
                # The processor asks about the first image's policies first, then the next image's.
                logits = self._model(**inputs).logits.double().cpu()
            found += logits.softmax(-1)[:, 0].reshape(len(images), len(self.heads)).tolist()
        return safety.observed(found)
