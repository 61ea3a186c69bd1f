"""NudeNet, a detector of body parts (YOLOv8n at 320 pixels), from the package ``nudenet``, whose wheel holds its weights.

Licence: the package's metadata says MIT, but the licence file in its wheel, the metadata inside its weights (made with Ultralytics' YOLO)
and upstream's current project file say AGPL-3.0. Take it for AGPL-3.0: it is an optional extra, and nothing of ours holds its code.

A detector gives scores of boxes, not a probability of an image. What is kept of each class is the highest score anywhere in the image,
before the package's cut at 0.2 and its suppression of overlapping boxes, so that "nothing found" is a small number that was measured.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.generate.backends import safety
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

SIDE = 320
AT_ONCE = 8
EXPOSED = "FEMALE_BREAST_EXPOSED,FEMALE_GENITALIA_EXPOSED,MALE_GENITALIA_EXPOSED,BUTTOCKS_EXPOSED,ANUS_EXPOSED"


@dataclass(frozen=True, slots=True)
class NudeNetSettings:
    """``classes``: those of the detector that become heads, parted by commas. By default nudity; bare arms, feet, bellies and male chests,
    which it detects as well, are left out."""

    classes: str = EXPOSED


class NudeNet:
    """The judge: the highest detection score of each class of ``classes``."""

    name = "nudenet"
    columns: Mapping[str, pa.DataType] = safety.COLUMNS

    def __init__(self, settings: NudeNetSettings) -> None:
        package: Any = require("nudenet", package="nudenet", extra="nudenet")
        # OpenCV comes with the package, whose preprocessing is OpenCV's.
        self._cv2: Any = require("cv2", package="opencv-python-headless", extra="nudenet")
        self._session = package.NudeDetector().onnx_session
        self._input = self._session.get_inputs()[0].name
        known: dict[int, str] = ast.literal_eval(self._session.get_modelmeta().custom_metadata_map["names"])
        place = {name: number for number, name in known.items()}
        self.heads = tuple(name.strip() for name in settings.classes.split(",") if name.strip())
        unknown = [name for name in self.heads if name not in place]
        if unknown or not self.heads:
            raise InputError(
                f"nudenet: --set classes={settings.classes}: unknown class {', '.join(map(repr, unknown)) or '(none given)'}; "
                f"it detects {', '.join(place)}"
            )
        self._rows = [4 + place[name] for name in self.heads]

    def signature(self) -> str:
        """Classes, and the package's version, which fixes the weights."""
        return safety.signature(self.name, self.heads, {"side": SIDE}, metadata.version("nudenet"))

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Nothing to check: it takes any image."""

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """One score a head: rows 4 onwards of the network's output are the classes' scores, a column each place in the image."""
        found = []
        for start in range(0, len(rows), AT_ONCE):
            batch = np.concatenate([self._blob(row["image"]) for row in rows[start : start + AT_ONCE]])
            output = self._session.run(None, {self._input: batch})[0]
            found.append(output[:, self._rows, :].max(axis=2))
        return safety.observed(np.concatenate(found))

    def _blob(self, image: Image.Image) -> NDArray[np.float32]:
        """As the package does: black below or right until it is square, bilinear to 320 × 320, in [0, 1], blue channel first.

        Blue first comes of the package's turning the channels twice; red first was surer of the one face tried.
        """
        pixels = np.asarray(image.convert("RGB"))
        side = max(pixels.shape[:2])
        square = self._cv2.copyMakeBorder(
            pixels, 0, side - pixels.shape[0], 0, side - pixels.shape[1], self._cv2.BORDER_CONSTANT, value=(0, 0, 0)
        )
        blob: NDArray[np.float32] = self._cv2.dnn.blobFromImage(square, 1 / 255.0, (SIDE, SIDE), (0, 0, 0), swapRB=True, crop=False)
        return blob
