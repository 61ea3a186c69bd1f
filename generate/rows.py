"""The rows of a run, as they are handed to models and judges."""

from __future__ import annotations

from typing import Any, TypeAlias

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.prompts import Prompt


class WordedRow(Prompt, total=False):
    """A prompt as a model is to be told it: ``condition_image`` is the dataset's own picture of the text, where it has one."""

    condition_image: Any


class PlannedRow(WordedRow):
    """A prompt on its way to an image."""

    image_id: str
    seed_index: int
    seed: int


class ImageRow(PlannedRow, total=False):
    """An image's row without its picture: how it was made, and why there is none where it was not (``status`` other than "ok")."""

    width: int | None
    height: int | None
    batch_size: int
    attempts: int
    status: str
    reason: str | None


class SeenRow(ImageRow):
    """An image's row with its picture, decoded once for all judges of a pass, in RGB; judges are shown no row that has a failure there."""

    image: Any


Observation: TypeAlias = JsonObject
"""What a judge saw in one image: a value for each of its columns."""
Record: TypeAlias = JsonObject
"""Every setting that changes an image or an observation, as run.json keeps it."""
