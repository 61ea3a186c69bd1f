"""PP-OCR's detector and recogniser as rapidocr packages them: weights from its wheel alone, never fetched, one thread an image."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.dataset_builder.languages import LANGUAGES, Language
from t2i_parity.generate.backends.crops import Corners
from t2i_parity.generate.backends.identity import file_sha256

DETECTOR = "PP-OCRv6_det_small.onnx"
RECOGNISER = "PP-OCRv6_rec_small.onnx"
TURNER = "ch_ppocr_mobile_v2.0_cls_mobile.onnx"
"""The file that tells upright lines from those upside down."""


def file(name: str) -> Path:
    """A weights file in rapidocr's wheel. Raises InputError when the package, or this file in it, is not there."""
    # Found and not imported: what is asked here is asked before anything runs.
    package = importlib.util.find_spec("rapidocr")
    if package is None or package.origin is None:
        require("rapidocr", package="rapidocr", extra="run")
        raise InputError("the package rapidocr has no folder. Install it anew: pip install --force-reinstall 'rapidocr>=3.10'")
    path = Path(package.origin).parent / "models" / name
    if not path.is_file():
        raise InputError(
            f"rapidocr {version('rapidocr')} has no {name}; its wheel brings that file from 3.10 on, and nothing is downloaded here. "
            "Install it with: pip install --force-reinstall 'rapidocr>=3.10'"
        )
    return path


@cache
def digest(path: Path) -> str:
    """The first 8 hex of a file's SHA-256.

    >>> len(digest(file(DETECTOR)))
    8
    """
    return file_sha256(path)[:8]


def named(name: str) -> str:
    """A weights file as a signature names it, e.g. ``PP-OCRv6_det_small@1a2b3c4d``."""
    return f"{Path(name).stem}@{digest(file(name))}"


def served() -> tuple[str, ...]:
    """The codes of the declared languages that the recogniser has letters for, told from the list of characters in its file.

    >>> served()
    ('en', 'zh', 'es', 'fr', 'pt', 'ja', 'de', 'bar')
    """
    return tuple(code for code, language in LANGUAGES.items() if serves(language))


def serves(language: Language) -> bool:
    """Whether the recogniser has letters for a language; not where its script says none that could be looked for."""
    letters = language.written.letters
    return bool(letters) and set(letters) <= _characters()


@cache
def _characters() -> frozenset[str]:
    runtime: Any = require("onnxruntime", package="onnxruntime", extra="run")
    session = runtime.InferenceSession(str(file(RECOGNISER)), providers=["CPUExecutionProvider"])
    return frozenset(session.get_modelmeta().custom_metadata_map["character"].splitlines())


def pipeline(**parts: Any) -> Any:
    """rapidocr's pipeline on the wheel's own files and one thread; ``parts`` are its configuration's, with two underscores for a dot."""
    package: Any = require("rapidocr", package="rapidocr", extra="run")
    return package.RapidOCR(
        params={
            # Named files are taken as they are; unnamed ones would be looked up, and fetched when missing.
            "Det.model_path": str(file(DETECTOR)),
            "Rec.model_path": str(file(RECOGNISER)),
            "Cls.model_path": str(file(TURNER)),
            "Global.log_level": "error",
            "EngineConfig.onnxruntime.intra_op_num_threads": 1,
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            **{name.replace("__", "."): value for name, value in parts.items()},
        }
    )


def bgr(picture: Image.Image) -> Any:
    """A picture as rapidocr takes it: (height, width, 3) bytes, blue first."""
    return np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read in one box, and how sure the recogniser is, in [0, 1]."""

    text: str
    confidence: float


class Detector:
    """Finds lines of text. ``shortest_side``: smaller pictures are enlarged to it; thin strokes are found only so."""

    def __init__(self, shortest_side: int = 736) -> None:
        self._pipeline = pipeline(Global__use_cls=False, Global__use_rec=False, Det__limit_type="min", Det__limit_side_len=shortest_side)

    def boxes(self, picture: Image.Image) -> list[Corners]:
        """The corners of every line of text found, in the picture's pixels, in no certain order."""
        found = self._pipeline(bgr(picture))
        return [] if found.boxes is None else [np.asarray(box, np.float64) for box in found.boxes]


class Recogniser:
    """Reads one upright line."""

    def __init__(self) -> None:
        self._pipeline = pipeline(Global__use_det=False, Global__use_cls=False, Global__use_preprocess_img=False)

    def read(self, line: Image.Image) -> Reading:
        """What stands in a line. One that is much higher than wide is read turned to the left, as vertical lines were in its training."""
        if line.height >= 1.5 * line.width:
            line = line.transpose(Image.Transpose.ROTATE_90)
        found = self._pipeline(bgr(line))
        return Reading(found.txts[0], float(found.scores[0])) if found.txts else Reading("", 0.0)
