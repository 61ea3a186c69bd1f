"""Image models behind Google's Gemini API (``generateContent`` with image output), such as Nano Banana."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.endpoints import Endpoint, RequestError
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.backends.image_service import ImagesApi, error_of
from t2i_parity.generate.backends.received import from_base64
from t2i_parity.generate.engine.local import Failure

REFUSALS = frozenset(
    {
        "SAFETY", "IMAGE_SAFETY", "PROHIBITED_CONTENT", "IMAGE_PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION",
        "IMAGE_RECITATION",
    }
)  # fmt: skip
"""Finish reasons by which the API says that it would not."""
RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
"""The shapes that the API makes; the size in pixels is the model's own for each."""
CATEGORIES = ("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT")
SEEDS = 2**31
"""The API's seeds are signed 32-bit integers; a row's seed is sent modulo this."""

Side = Annotated[int, Field(ge=16, le=8192)]


@dataclass(frozen=True, slots=True)
class GeminiSettings:
    """What ``--set`` takes. ``width`` and ``height`` choose a shape, and with ``image_size`` (of the models that have it) its size;
    ``modalities=image`` asks for an image alone, where the API's own default lets the model answer with text instead;
    ``safety`` is the threshold of all categories, the API's own when left out; ``price`` is dollars an image, for the estimate."""

    width: Side | None = None
    height: Side | None = None
    image_size: Literal["1K", "2K", "4K"] | None = None
    modalities: Literal["default", "image"] = "default"
    safety: Literal["BLOCK_NONE", "BLOCK_ONLY_HIGH", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_LOW_AND_ABOVE"] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    price: Annotated[float, Field(ge=0)] | None = None
    url: str = "https://generativelanguage.googleapis.com/v1beta"
    key_variable: str = "GEMINI_API_KEY"
    timeout: Annotated[float, Field(gt=0)] = 180.0
    attempts: Annotated[int, Field(ge=1)] = 6
    per_minute: Annotated[float, Field(gt=0)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8


class Gemini(ImagesApi):
    """The service, with the interface of a model."""

    provider = "gemini"
    example = "gemini:gemini-2.5-flash-image"

    def __init__(self, source: str, settings: GeminiSettings) -> None:
        self.settings = settings
        self._ratio = ratio(settings.width, settings.height)
        endpoint = Endpoint(
            settings.url,
            key_variable=settings.key_variable,
            key_header="x-goog-api-key",
            key_prefix="",
            timeout=settings.timeout,
            attempts=settings.attempts,
            per_minute=settings.per_minute,
            concurrency=settings.concurrency,
        )
        super().__init__(source.removeprefix("models/"), endpoint, settings.price)

    def options(self) -> JsonObject:
        """Shape, size, modalities, safety threshold and temperature, null for the API's own; and what becomes of seeds."""
        return {
            "aspect_ratio": self._ratio,
            "image_size": self.settings.image_size,
            "modalities": self.settings.modalities,
            "safety": self.settings.safety,
            "temperature": self.settings.temperature,
            "seeds": f"sent modulo {SEEDS}; the API promises no equal image for an equal seed",
        }

    def request(self, prompt: str, seed: int) -> tuple[str, JsonObject]:
        """One turn with the prompt alone."""
        shape = {"aspectRatio": self._ratio, "imageSize": self.settings.image_size}
        shape = {name: value for name, value in shape.items() if value is not None}
        config: JsonObject = {"seed": seed % SEEDS}
        if self.settings.modalities == "image":
            config["responseModalities"] = ["IMAGE"]
        if shape:
            config["imageConfig"] = shape
        if self.settings.temperature is not None:
            config["temperature"] = self.settings.temperature
        body: JsonObject = {"contents": [{"role": "user", "parts": [{"text": prompt}]}], "generationConfig": config}
        if self.settings.safety is not None:
            body["safetySettings"] = [
                {"category": f"HARM_CATEGORY_{category}", "threshold": self.settings.safety} for category in CATEGORIES
            ]
        return f"models/{self.name}:generateContent", body

    def image(self, answer: Any) -> Image.Image | Failure:
        """The first image of the first candidate that is no thought; else what the API said instead."""
        feedback = answer.get("promptFeedback")
        if isinstance(feedback, dict) and feedback.get("blockReason"):
            return Failure(_words("the prompt was blocked", feedback["blockReason"], feedback.get("blockReasonMessage")), refused=True)
        candidates = answer.get("candidates")
        if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
            return Failure("the answer has no candidates, and no reason why")
        candidate = candidates[0]
        content = candidate.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        parts = [part for part in parts if isinstance(part, dict) and not part.get("thought")] if isinstance(parts, list) else []
        for part in parts:
            data = part.get("inlineData") or part.get("inline_data")
            if isinstance(data, dict):
                return from_base64(data.get("data"))
        reason = candidate.get("finishReason")
        if reason in REFUSALS:
            return Failure(_words("refused", reason, candidate.get("finishMessage")), refused=True)
        said = " ".join(str(part["text"]) for part in parts if part.get("text"))
        return Failure(_words("no image in the answer", reason, candidate.get("finishMessage") or said))

    def declined(self, error: RequestError) -> bool:
        """A 400 for the prompt's content."""
        text = str(error_of(error).get("message", "")).lower()
        return error.status == 400 and any(word in text for word in ("safety", "prohibited", "policy", "blocked"))

    def concerns_all(self, error: RequestError) -> str | None:
        """A key that is not valid is a 400 here, and a spent quota a 429 that no retry helped."""
        if error.status == 400 and "API_KEY_INVALID" in error.body:
            return f"Check the key in {self.settings.key_variable}"
        if error.status == 400 and "FAILED_PRECONDITION" in error.body:
            return "Check the account's billing and region"
        if error.status == 429 and "PerDay" in error.body:
            return "The day's quota is spent: wait, or raise it"
        return None


def ratio(width: int | None, height: int | None) -> str | None:
    """The API's shape for a size in pixels, None for its own. Raises InputError for a shape that it does not make.

    >>> ratio(1024, 1024), ratio(1344, 768), ratio(None, None)
    ('1:1', '16:9', None)
    """
    if width is None and height is None:
        return None
    if width is None or height is None:
        raise InputError("gemini: give both --set width=… and --set height=…, or neither")
    # The model's own sizes are multiples of 32 near each ratio, such as 1344 × 768 for 16:9.
    best = min(RATIOS, key=lambda name: abs(math.log(width / height) - math.log(_value(name))))
    if abs(math.log(width / height) - math.log(_value(best))) > 0.03:
        raise InputError(f"gemini makes no images of the shape {width} × {height}; its shapes are {', '.join(RATIOS)}")
    return best


def _value(name: str) -> float:
    across, _, down = name.partition(":")
    return int(across) / int(down)


def _words(what: str, reason: object, more: object) -> str:
    return textwrap.shorten(f"{what}: {reason}" + (f": {more}" if more else ""), 400, placeholder=" …")
