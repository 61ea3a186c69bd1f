"""Tesseract, in process, as a reader: the text it finds in an image, with the language model of the row's language.

It reads clean text well and next to nothing in photographed scenes; see its ceiling per language before blaming a model.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image, ImageOps

from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES, Language
from t2i_parity.generate.backends.scope import Scope
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

# Tesseract would start threads of its own for every image; rows in parallel use the cores better.
os.environ.setdefault("OMP_THREAD_LIMIT", "1")

DATA_FOLDERS = (
    "/usr/share/tesseract-ocr/5/tessdata",
    "/usr/share/tesseract-ocr/4.00/tessdata",
    "/usr/share/tessdata",
    "/usr/share/tesseract/tessdata",
    "/usr/local/share/tessdata",
    "/opt/homebrew/share/tessdata",
)
BIDI_CONTROLS = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
"""Tesseract adds these to right-to-left lines; they were never in the image."""


TRIES = ((7, 32), (7, 24), (7, 44), (13, 36))
"""How a line is read: (page segmentation mode, line height in pixels), in this order until one is read surely. The models were trained
on small lines, and mode 7 now and then finds no text at all in a short one, where mode 13, which looks for no layout, does."""
SURE = 90
"""The mean confidence, in percent, from which on a reading is taken without another try; else the surest one is."""
PAGE = 11
"""Tesseract's page segmentation mode for sparse text anywhere in a picture."""
TALLEST_LINE = 0.4
"""A line higher than this share of the picture is no line: the picture is a scene, and is left to Tesseract's own layout analysis."""


@dataclass(frozen=True, slots=True)
class TesseractSettings:
    """What ``--set`` takes. ``layout`` finds the lines: ``lines`` by the rows of ink in a two-tone picture, else as ``page``;
    ``page`` always by Tesseract's own analysis of sparse text."""

    layout: Literal["lines", "page"] = "lines"


def model_name(language: Language) -> str | None:
    """The name of the language model that reads a language, None where there is none.

    >>> model_name(LANGUAGES["zh"]), model_name(LANGUAGES["hi"])
    ('chi_sim', 'hin')
    """
    return language.iso639_3 if language.tesseract == "" else language.tesseract


class Tesseract:
    """The reader, with the interface of a judge; one engine a thread and language."""

    name = "tesseract"
    columns: Mapping[str, pa.DataType] = {"text": pa.string()}

    def __init__(self, settings: TesseractSettings, workers: int = 2) -> None:
        self._tesserocr: Any = require("tesserocr", package="tesserocr", extra="run")
        self.settings = settings
        self.data = _data_folder()
        self._scope = Scope(self.name, self.lacking)
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="tesseract")

    def signature(self) -> str:
        """Engine version, language models and settings."""
        return f"tesseract|models:row-language|layout:{self.settings.layout}|bidi:stripped|method:2|v:{self.version()}"

    def version(self) -> str:
        """The version of the engine."""
        return str(self._tesserocr.tesseract_version()).splitlines()[0].removeprefix("tesseract").strip()

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Warn of languages whose model is missing, naming the package that brings it. Raises InputError when all are."""
        self._scope.check(rows)

    def lacking(self, language: Language) -> str | None:
        """What is missing to read a language, None where nothing is."""
        name = model_name(language)
        if name is None:
            return "there is no Tesseract model of it"
        if (self.data / f"{name}.traineddata").is_file():
            return None
        return f"Tesseract has no language model {name} in {self.data}. {install_command([name])}"

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The text read from each image: lines joined by one space (by nothing where the script has no spaces), ends stripped."""
        return list(self._pool.map(partial(self._scope.read, self._read), rows))

    def _read(self, row: SeenRow) -> Observation:
        language = LANGUAGES[row["language"]]
        picture = row["image"]
        lines = text_lines(picture) if self.settings.layout == "lines" else []
        if not lines or any(line.height > TALLEST_LINE * picture.height for line in lines):
            text, _ = self.recognise(picture, language, PAGE)
        else:
            text = "\n".join(self._read_line(line, language) for line in lines)
        return {"text": joined_lines(text, language)}

    def _read_line(self, line: Image.Image, language: Language) -> str:
        surest, best = -1, ""
        for mode, height in TRIES:
            width = max(1, round(line.width * height / line.height))
            text, confidence = self.recognise(
                ImageOps.expand(line.resize((width, height), Image.Resampling.LANCZOS), 12, 255), language, mode
            )
            if text and confidence > surest:
                surest, best = confidence, text
            if surest >= SURE:
                break
        return best

    def recognise(self, picture: Image.Image, language: Language, mode: int) -> tuple[str, int]:
        """What is read in a picture under a page segmentation mode, and the mean confidence, in percent."""
        engine = self._engine(language, mode)
        engine.SetImage(picture)
        engine.SetSourceResolution(150)
        return engine.GetUTF8Text().strip(), engine.MeanTextConf()

    def _engine(self, language: Language, mode: int) -> Any:
        engines: dict[tuple[str, int], Any] = self._own.__dict__.setdefault("engines", {})
        if (language.code, mode) not in engines:
            engine = self._tesserocr.PyTessBaseAPI(path=str(self.data), lang=model_name(language), psm=mode)
            if not language.spaced:
                # Otherwise blanks are put between the characters of scripts that have none.
                engine.SetVariable("preserve_interword_spaces", "1")
            engines[language.code, mode] = engine
        return engines[language.code, mode]


def text_lines(picture: Image.Image) -> list[Image.Image]:
    """The lines of a two-tone picture, top to bottom, each cut at its ink and turned to dark on white.

    Ink is the rarer side of Otsu's threshold; rows of ink that lie close to a much higher group (dots, accents) belong to it.
    """
    grey = np.asarray(picture.convert("L"))
    ink = grey < otsu(grey)
    if ink.mean() > 0.5:
        ink = np.logical_not(ink)
    lines = []
    for top, bottom in _row_groups(np.asarray(ink.any(axis=1))):
        columns = np.flatnonzero(ink[top:bottom].any(axis=0))
        cut = ImageOps.autocontrast(Image.fromarray(grey[top:bottom, columns[0] : columns[-1] + 1]), cutoff=(1, 1))
        lines.append(ImageOps.invert(cut) if np.median(np.asarray(cut)) < 128 else cut)
    return lines


def otsu(grey: NDArray[np.uint8]) -> int:
    """The grey level that best splits a picture in two (Otsu 1979)."""
    counts = np.bincount(grey.ravel(), minlength=256).astype(float)
    below = counts.cumsum()
    mass = (counts * np.arange(256)).cumsum()
    with np.errstate(divide="ignore", invalid="ignore"):
        between = (mass[-1] * below / below[-1] - mass) ** 2 / (below * (below[-1] - below))
    return 128 if np.isnan(between).all() else int(np.nanargmax(between)) + 1


def _row_groups(rows: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Runs of rows with ink as (first, past the last), small ones joined to the close neighbour they are a part of."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], rows, [False])).astype(np.int8)))
    runs = [(int(first), int(last)) for first, last in zip(edges[::2], edges[1::2], strict=True)]
    groups: list[tuple[int, int]] = []
    tallest = max((last - first for first, last in runs), default=0)
    for first, last in runs:
        if groups:
            before = groups[-1]
            part = min(last - first, before[1] - before[0]) < 0.45 * tallest
            if part and first - before[1] < 0.25 * tallest:
                groups[-1] = (before[0], last)
                continue
        groups.append((first, last))
    return groups


def joined_lines(text: str, language: Language) -> str:
    """What was read, as one line. A line that ends in a word's hyphen goes on without a space.

    >>> joined_lines("open\\n all day\\n", LANGUAGES["en"]), joined_lines("営業\\n中", LANGUAGES["ja"])
    ('open all day', '営業中')
    >>> joined_lines("Saint-\\nDenis -\\nParis", LANGUAGES["fr"])
    'Saint-Denis - Paris'
    """
    joined = ""
    for line in filter(None, (BIDI_CONTROLS.sub("", line).strip() for line in text.splitlines())):
        goes_on = not joined or not language.spaced or (joined[-1] == "-" and joined[-2:-1].isalpha())
        joined += line if goes_on else f" {line}"
    return joined


def check_models(codes: Collection[str] = LINGT2I_LANGUAGES, data: Path | None = None) -> None:
    """Raise InputError when the model of one of these languages is not in Tesseract's folder, naming the package that brings it."""
    data = data or _data_folder()
    wanted = {name for code in codes if (name := model_name(LANGUAGES[code])) is not None}
    missing = sorted(name for name in wanted if not (data / f"{name}.traineddata").is_file())
    if missing:
        raise InputError(f"Tesseract has no language model for {', '.join(missing)} in {data}. {install_command(missing)}")


def _data_folder() -> Path:
    prefix = os.environ.get("TESSDATA_PREFIX")
    folders = ([prefix, f"{prefix}/tessdata"] if prefix else []) + list(DATA_FOLDERS)
    for folder in folders:
        if any(Path(folder).glob("*.traineddata")):
            return Path(folder)
    raise InputError(
        f"no Tesseract language models were found in {', '.join(folders)}. {install_command(['eng'])}; "
        "or name their folder in TESSDATA_PREFIX"
    )


def install_command(models: Sequence[str]) -> str:
    """The command that brings language models on this system.

    >>> "tesseract-ocr-chi-sim" in install_command(["chi_sim"]) or sys.platform == "darwin"
    True
    """
    if sys.platform == "darwin":
        return "Install them with: brew install tesseract-lang"
    debian = " ".join(f"tesseract-ocr-{name.replace('_', '-')}" for name in models)
    fedora = " ".join(f"tesseract-langpack-{name}" for name in models)
    return f"Install them with: apt-get install {debian} (Debian, Ubuntu) or dnf install {fedora} (Fedora)"
