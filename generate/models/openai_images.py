"""Any service with OpenAI's images endpoint (``/images/generations`` with base64 answers): OpenAI's own, or a server that speaks it."""

from __future__ import annotations

import json
import re
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

REFUSALS = frozenset({"content_policy_violation", "moderation_blocked", "content_filter", "contentFilter", "content_filtered"})
"""Error codes by which services say that they would not."""
REFUSING_WORDS = re.compile(r"content[ _]polic|safety system|moderation|content[ _]filter", re.IGNORECASE)
"""How they say it where they give no code."""

Side = Annotated[int, Field(ge=16, le=8192)]


@dataclass(frozen=True, slots=True)
class OpenAIImagesSettings:
    """What ``--set`` takes; what is left out is not sent, so that the service's own default holds.

    ``seed_field`` is the name under which the service takes a seed (OpenAI's own takes none); ``extra`` is a JSON object of further
    fields; ``response_format=auto`` asks for base64 of every model but those that know nothing else; ``price`` is dollars an image;
    ``key_variable=none`` is for a server that wants no key.
    """

    width: Side | None = None
    height: Side | None = None
    quality: str | None = None
    moderation: str | None = None
    seed_field: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")] | None = None
    extra: str = "{}"
    response_format: Literal["auto", "b64_json", "not-sent"] = "auto"
    price: Annotated[float, Field(ge=0)] | None = None
    url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"
    timeout: Annotated[float, Field(gt=0)] = 180.0
    attempts: Annotated[int, Field(ge=1)] = 6
    per_minute: Annotated[float, Field(gt=0)] | None = None
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8


class OpenAIImages(ImagesApi):
    """The service, with the interface of a model."""

    provider = "openai"
    example = "openai:gpt-image-1"

    def __init__(self, source: str, settings: OpenAIImagesSettings) -> None:
        if (settings.width is None) != (settings.height is None):
            raise InputError("openai: give both --set width=… and --set height=…, or neither")
        self.settings = settings
        self._extra = _object(settings.extra)
        endpoint = Endpoint(
            settings.url,
            key_variable=None if settings.key_variable == "none" else settings.key_variable,
            timeout=settings.timeout,
            attempts=settings.attempts,
            per_minute=settings.per_minute,
            concurrency=settings.concurrency,
        )
        super().__init__(source, endpoint, settings.price)

    def options(self) -> JsonObject:
        """Every field that is sent beside model and prompt, and what becomes of seeds."""
        field = self.settings.seed_field
        return {**self._fields(), "seeds": f"sent as {field}" if field else "not honoured: the service takes none"}

    def request(self, prompt: str, seed: int) -> tuple[str, JsonObject]:
        """One image for one prompt."""
        body = {"model": self.name, "prompt": prompt, "n": 1, **self._fields()}
        if self.settings.seed_field:
            body[self.settings.seed_field] = seed
        return "images/generations", body

    def image(self, answer: Any) -> Image.Image | Failure:
        """The first image of the answer. An address in its place is not followed."""
        data = answer.get("data")
        if not isinstance(data, list) or not data or not isinstance(data[0], dict):
            return Failure("no image in the answer")
        if data[0].get("b64_json") is not None:
            return from_base64(data[0]["b64_json"])
        if data[0].get("url"):
            return Failure("the answer holds an address instead of the image; ask for the image with --set response_format=b64_json")
        return Failure("no image in the answer")

    def declined(self, error: RequestError) -> bool:
        """A 400 or 403-like answer whose code, or else whose words, name a policy."""
        if error.status is None or not 400 <= error.status < 500 or error.status == 429:
            return False
        said = error_of(error)
        if {said.get("code"), said.get("type")} & REFUSALS:
            return True
        return not said.get("code") and bool(REFUSING_WORDS.search(str(said.get("message", ""))))

    def concerns_all(self, error: RequestError) -> str | None:
        """No credit is left, or the model is not there or takes no such field."""
        said = error_of(error)
        code = said.get("code")
        if code in ("insufficient_quota", "billing_hard_limit_reached"):
            return "Check the account's credit"
        if code in ("unknown_parameter", "unsupported_parameter", "model_not_found", "invalid_value") and said.get("param") != "prompt":
            return "Check the model's name and the settings that it takes"
        return None

    def _fields(self) -> JsonObject:
        settings = self.settings
        fields: JsonObject = {"quality": settings.quality, "moderation": settings.moderation}
        if settings.width is not None:
            fields["size"] = f"{settings.width}x{settings.height}"
        # The GPT image models always answer with base64, and refuse to be asked for it.
        if settings.response_format == "b64_json" or (settings.response_format == "auto" and "gpt-image" not in self.name):
            fields["response_format"] = "b64_json"
        return {name: value for name, value in fields.items() if value is not None} | self._extra


def _object(text: str) -> JsonObject:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise InputError(f"openai: --set extra={text}: expected a JSON object ({error})") from error
    if not isinstance(found, dict) or {"model", "prompt", "n"} & found.keys():
        raise InputError(f"openai: --set extra={text}: expected a JSON object without model, prompt and n")
    return found
