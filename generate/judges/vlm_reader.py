"""A vision-language model as a reader: the text that it finds in an image, in whatever script it stands there (LingT2I, C.2.1).

A language model reads what it expects. The prompt therefore names the language but never the wanted text, forbids to correct, complete
and translate, and gives a sign for what cannot be made out, which then counts as a wrong character. The text stands between marks in the
answer; what lies outside is dropped, what lies inside is kept as it is. An answer without marks, or cut off, is no reading.

With ``crop=layout`` each line of ``render_layout`` is cut out and read alone; a row without a layout is read whole.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import pyarrow as pa

from t2i_parity.dataset_builder.answers import Answered, AnswerError, Unanswered, whole
from t2i_parity.dataset_builder.chat import ChatImage, ChatRequest, Completion, Usage
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.generate import layout
from t2i_parity.generate.backends.backgrounds import CANVAS
from t2i_parity.generate.backends.vlm import Prompt, VlmJudge, VlmSettings, encoded, language_of
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.judges.tesseract import joined_lines
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow

UNREADABLE = "\ufffd"
"""What stands for a character that is there and cannot be made out: U+FFFD, which is in no wanted text."""

MARGIN = 0.15
"""What is left around a line when it is cut out, as a share of the line's height: accents and tails reach over its corners."""

PROMPT = Prompt(
    "vlm-reader",
    "1.0",
    "You transcribe text from images exactly as it is drawn, for a study of how well image generators write. You are not asked what was "
    "meant, and a faithful copy of a mistake is a correct answer.",
    "Write down all text that is visible in this image, line by line from top to bottom, each line in its own reading order. The text is "
    "expected to be in {language} ({native}, script {script}); if it is in another script, copy it in that one.\n"
    "Copy every character that is drawn. Do not correct spelling, add what is missing, translate, transliterate, or describe the picture. "
    "Where a character is there but cannot be made out, write {unreadable} once in its place; do not guess it from the word.\n"
    "Put the text between <text> and </text>. If there is no text in the image, answer <text></text>.",
    {"unreadable": UNREADABLE},
)

_MARKED = re.compile(r"<text>(.*?)</text>", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmReaderSettings(VlmSettings):
    """``crop``: read the whole ``image``, or the lines of its ``layout``."""

    crop: Literal["image", "layout"] = "image"


class VlmReader(VlmJudge):
    """The reader. ``crops`` is how many lines were cut out; 0 where the image was read whole."""

    name = "vlm-reader"
    prompt = PROMPT
    saw: Mapping[str, pa.DataType] = {"text": pa.string(), "crops": pa.int32()}

    def __init__(self, settings: VlmReaderSettings) -> None:
        super().__init__(settings)
        self.crop = settings.crop

    def own_fields(self) -> Mapping[str, str]:
        """What is read."""
        return {"crop": self.crop}

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Raise InputError when layouts are to be used and no row has one, or one is none."""
        if self.crop != "layout":
            return
        if not any(row.get("render_layout") for row in rows):
            raise InputError("vlm-reader: crop=layout needs rows with a render_layout, and none has one; read whole images: crop=image")
        for number, row in enumerate(rows):
            try:
                _boxes(row, (CANVAS, CANVAS))
            except ValueError as error:
                raise InputError(
                    f"row {number} ({row['prompt_id']}): {error}. Correct the column, or read whole images: crop=image"
                ) from error

    def request(self, row: ImageRow, picture: ChatImage) -> ChatRequest:
        """The question about a picture, or a line of one."""
        language = LANGUAGES[row["language"]]
        return self.prompt.request(
            [picture], how=self.how(), language=language_of(row), native=language.native_name, script=language.script
        )

    def read(self, completion: Completion) -> Observation:
        """What stands between the marks."""
        return {"text": marked(whole(completion))}

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The text of each image, as one line; a row whose lines were not all read has none."""
        boxes = [_boxes(row, row["image"].size) if self.crop == "layout" else [] for row in rows]
        pieces = [
            (row, picture)
            for row, found in zip(rows, boxes, strict=True)
            for picture in ([row["image"].crop(box) for box in found] or [row["image"]])
        ]
        pictures = self._pool.map(encoded, [picture for _, picture in pieces])
        asked = [self.request(row, picture) for (row, _), picture in zip(pieces, pictures, strict=True)]
        results = self.answers(asked)
        ends = list(accumulate(max(1, len(found)) for found in boxes))
        return [
            self._row(row, results[end - max(1, len(found)) : end], len(found)) for row, found, end in zip(rows, boxes, ends, strict=True)
        ]

    def _row(self, row: ImageRow, results: Sequence[Answered[Observation] | Unanswered], crops: int) -> Observation | Failure:
        for number, result in enumerate(results):
            if isinstance(result, Unanswered):
                return Failure(f"line {number}: {result.reason}" if crops else result.reason, refused=result.refused)
        read = [result for result in results if isinstance(result, Answered)]
        usage = sum((result.usage for result in read), Usage())
        return {
            "text": joined_lines("\n".join(str(result.value["text"]) for result in read), LANGUAGES[row["language"]]),
            "crops": crops,
            "answer": "\n".join(result.completion.text for result in read),
            **self.spent(max(result.attempts for result in read), usage),
        }


def marked(text: str) -> str:
    """What stands between the marks, without outer blank space.

    Raises AnswerError when the marks are not there, or there twice.

    >>> marked("Here it is:\\n<text>\\nopen «all» day\\n</text>")
    'open «all» day'
    """
    found = _MARKED.findall(text)
    if len(found) != 1:
        raise AnswerError("the text does not stand between <text> and </text>" if not found else f"there are {len(found)} pairs of marks")
    return str(found[0]).strip()


def _boxes(row: ImageRow, size: tuple[int, int]) -> list[tuple[int, int, int, int]]:
    """Where the row's lines lie in a picture of a size (width, height), with a margin; none when the row has no layout.

    Raises ValueError for a layout that is none, or a line that lies outside the picture.
    """
    if not row.get("render_layout"):
        return []
    boxes = []
    for number, line in enumerate(layout.parse(str(row["render_layout"]))):
        across, down = ([corner[axis] * size[axis] / CANVAS for corner in line.corners] for axis in (0, 1))
        margin = MARGIN * (max(down) - min(down))
        left, top = max(0, math.floor(min(across) - margin)), max(0, math.floor(min(down) - margin))
        right, bottom = min(size[0], math.ceil(max(across) + margin)), min(size[1], math.ceil(max(down) + margin))
        if right - left < 1 or bottom - top < 1:
            raise ValueError(f"render_layout, line {number}, lies outside the picture")
        boxes.append((left, top, right, bottom))
    return boxes
