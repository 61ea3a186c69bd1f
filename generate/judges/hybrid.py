"""The offline reader for all ten languages: PP-OCR finds the lines, and what reads a script best reads them.

PP-OCR's recogniser reads the languages that it has letters for, Tesseract the others, on the lines cut out, turned upright and made dark
on white in several ways, of which the surest reading counts. Both come as packages; nothing is downloaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Annotated, Literal

import numpy as np
import pyarrow as pa
from PIL import Image, ImageOps
from pydantic import Field

from t2i_parity.dataset_builder.languages import LANGUAGES, Language
from t2i_parity.dataset_builder.vocabulary import stamp
from t2i_parity.generate.backends import ppocr
from t2i_parity.generate.backends.crops import Corners, layout_part, reading_order, straightened
from t2i_parity.generate.backends.scope import Scope
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.judges.tesseract import SURE, Tesseract, TesseractSettings, joined_lines, model_name, otsu
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

MARGINS = (0.0, -0.05, 0.06)
"""Around a line, in its heights: the detector cuts off the ends of long strokes here, and takes in its neighbours' there."""
HEIGHTS = (32, 24, 44)
"""Line heights, in pixels, in which Tesseract tries a line: its models were trained on small ones."""
LINE = 7
"""Tesseract's page segmentation mode for a single line."""
INK = (0.15, 0.15)
"""Of the way from the ink's own grey (the extreme of a line) to the line's middle grey: where ink ends, and half how softly."""
UNSURE = 0.25, 0.5
"""Readings less sure than this, by Tesseract and by PP-OCR's recogniser, are taken for texture and not for text."""


@dataclass(frozen=True, slots=True)
class HybridSettings:
    """What ``--set`` takes.

    ``crop``: ``image`` looks at all of it, ``layout`` only around the row's ``render_layout`` where it has one. ``shortest_side``: smaller
    images are enlarged to it, in pixels, before lines are looked for.
    """

    crop: Literal["image", "layout"] = "image"
    shortest_side: Annotated[int, Field(ge=256, le=2048)] = 736


class Hybrid:
    """The reader, with the interface of a judge; a thread an image, and one thread in each of its parts."""

    name = "hybrid"
    columns: Mapping[str, pa.DataType] = {"text": pa.string()}

    def __init__(self, settings: HybridSettings, workers: int | None = None) -> None:
        self.settings = settings
        self._detector = ppocr.Detector(settings.shortest_side)
        self._recogniser = ppocr.Recogniser()
        self._tesseract = Tesseract(TesseractSettings())
        self._scope = Scope(self.name, lambda language: None if ppocr.serves(language) else self._tesseract.lacking(language))
        self._asked: frozenset[str] = frozenset()
        self._pool = ThreadPoolExecutor(workers or min(8, os.cpu_count() or 1), thread_name_prefix="hybrid")

    def signature(self) -> str:
        """Weights and language models by hash, package versions and settings."""
        # A user's own language changes what stands for observations of it, and of no others.
        read = [each for code, each in LANGUAGES.items() if (stamp([code]) is None or code in self._asked) and not ppocr.serves(each)]
        files = {name: self._tesseract.data / f"{name}.traineddata" for name in dict.fromkeys(filter(None, map(model_name, read)))}
        there = ",".join(f"{name}@{ppocr.digest(path)}" for name, path in files.items() if path.is_file())
        return (
            f"hybrid|det:{ppocr.named(ppocr.DETECTOR)}|rec:{ppocr.named(ppocr.RECOGNISER)}|tesseract:{self._tesseract.version()},{there}"
            f"|crop:{self.settings.crop}|side:{self.settings.shortest_side}|method:1|onnxruntime:{version('onnxruntime')}"
            f"|v:{version('rapidocr')}"
        )

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Warn of languages whose model of Tesseract is missing, naming the package that brings it. Raises InputError when all are."""
        self._asked = frozenset(row["language"] for row in rows)
        self._scope.check(rows)

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The text read from each image: lines joined by one space (by nothing where the script has no spaces), ends stripped."""
        return list(self._pool.map(partial(self._scope.read, self._read), rows))

    def _read(self, row: SeenRow) -> Observation:
        language = LANGUAGES[row["language"]]
        picture = layout_part(row["image"], row.get("render_layout") if self.settings.crop == "layout" else None)
        boxes = reading_order(self._detector.boxes(picture), language.direction)
        read = self._with_recogniser if ppocr.serves(language) else self._with_tesseract
        return {"text": joined_lines("\n".join(read(picture, box, language) for box in boxes), language)}

    def _with_recogniser(self, picture: Image.Image, box: Corners, language: Language) -> str:
        reading = self._recogniser.read(straightened(picture, box))
        return reading.text if reading.confidence >= UNSURE[1] else ""

    def _with_tesseract(self, picture: Image.Image, box: Corners, language: Language) -> str:
        """The surest of several readings; the first that is sure enough ends the search."""
        surest, best = -1, ""
        for line in _lines(picture, box):
            for height in HEIGHTS:
                width = max(1, round(line.width * height / line.height))
                small = ImageOps.expand(line.resize((width, height), Image.Resampling.LANCZOS), 12, 255)
                text, confidence = self._tesseract.recognise(small, language, LINE)
                if text and confidence > surest:
                    surest, best = confidence, text.replace("\n", " ")
                if surest >= SURE:
                    return best
        return best if surest >= 100 * UNSURE[0] else ""


def _lines(picture: Image.Image, box: Corners) -> Iterator[Image.Image]:
    """One line cut out closer and wider, each time dark on white in three ways: as it is, then by light and by dark ink alone."""
    for margin in MARGINS:
        grey = straightened(picture, box, margin).convert("L")
        yield dark_on_white(grey)
        yield ink_alone(grey, dark=False)
        yield ink_alone(grey, dark=True)


def dark_on_white(grey: Image.Image) -> Image.Image:
    """A line stretched to full contrast, turned when its ink, the rarer side of Otsu's threshold, is light."""
    pixels = np.asarray(grey)
    stretched = ImageOps.autocontrast(grey, cutoff=(1, 1))
    return ImageOps.invert(stretched) if (pixels >= otsu(pixels)).mean() < 0.5 else stretched


def ink_alone(grey: Image.Image, *, dark: bool) -> Image.Image:
    """Only what is nearly as dark (or light) as the darkest (lightest) of a line, black on white: what a texture around it lacks.

    Letters have one colour, and textures many, so that a threshold close to the ink's own grey parts them where one in the middle cannot.
    """
    pixels = np.asarray(grey, np.float32)
    pixels = 255 - pixels if dark else pixels
    ink, middle = np.percentile(pixels, (97, 50))
    reach = float(ink - middle)
    threshold, softness = ink - INK[0] * reach, INK[1] * reach
    covered = (pixels - threshold + softness) / (2 * softness + 1)
    return Image.fromarray((255 - np.clip(covered * 255, 0, 255)).astype(np.uint8))
