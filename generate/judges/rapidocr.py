"""rapidocr's whole pipeline as a reader, as the package sets it up: PP-OCR's detector, line turner and recogniser, from its wheel.

It reads scripts that its recogniser has letters for (Latin, Han, kana); ``hybrid`` reads all ten languages.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Literal

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.languages import LANGUAGES, Language
from t2i_parity.generate.backends import ppocr
from t2i_parity.generate.backends.crops import layout_part, reading_order
from t2i_parity.generate.backends.scope import Scope
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.judges.tesseract import joined_lines
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow


@dataclass(frozen=True, slots=True)
class RapidOcrSettings:
    """What ``--set`` takes. ``crop``: ``image`` looks at all of it, ``layout`` only around the row's ``render_layout`` where it has one."""

    crop: Literal["image", "layout"] = "image"


class RapidOcr:
    """The reader, with the interface of a judge."""

    name = "rapidocr"
    columns: Mapping[str, pa.DataType] = {"text": pa.string()}

    def __init__(self, settings: RapidOcrSettings, workers: int | None = None) -> None:
        self.settings = settings
        self._scope = Scope(self.name, _lacking)
        self._pipeline = ppocr.pipeline()
        self._pool = ThreadPoolExecutor(workers or min(8, os.cpu_count() or 1), thread_name_prefix="rapidocr")

    def signature(self) -> str:
        """Weights by hash, package versions and settings."""
        files = f"det:{ppocr.named(ppocr.DETECTOR)}|cls:{ppocr.named(ppocr.TURNER)}|rec:{ppocr.named(ppocr.RECOGNISER)}"
        return f"rapidocr|{files}|crop:{self.settings.crop}|method:1|onnxruntime:{version('onnxruntime')}|v:{version('rapidocr')}"

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Warn of languages whose letters the recogniser does not have. Raises InputError when it has none of them."""
        self._scope.check(rows)

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The text read from each image: lines joined by one space (by nothing where the script has no spaces), ends stripped."""
        return list(self._pool.map(partial(self._scope.read, self._read), rows))

    def _read(self, row: SeenRow) -> Observation:
        language = LANGUAGES[row["language"]]
        picture = layout_part(row["image"], row.get("render_layout") if self.settings.crop == "layout" else None)
        found = self._pipeline(ppocr.bgr(picture))
        if found.boxes is None:
            return {"text": ""}
        boxes = [np.asarray(box, np.float64) for box in found.boxes]
        text = {id(box): line for box, line in zip(boxes, found.txts, strict=True)}
        return {"text": joined_lines("\n".join(text[id(box)] for box in reading_order(boxes, language.direction)), language)}


def _lacking(language: Language) -> str | None:
    if ppocr.serves(language):
        return None
    return f"its recogniser has no letters of the script {language.script}. Read it with: t2i-parity judge RUN --with hybrid"
