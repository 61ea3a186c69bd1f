"""What image services have in common: one request an image, a cost told beforehand, and what a service declines told from what breaks.

A service makes images in its own way and order, so that nothing here depends on a batch; what it does with seeds, its record says.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from PIL import Image

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.endpoints import Client, Endpoint, RequestError
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.dataset_builder.schema import Column
from t2i_parity.generate import layout
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import PlannedRow


class ImagesApi(ABC):
    """A service that answers a prompt with an image, with the interface of a model.

    Its key comes from an environment variable, and stands in no record, message or row.
    """

    provider: ClassVar[str]
    columns: tuple[Column, ...] = ()
    device = "a service"

    def __init__(self, model: str, endpoint: Endpoint, price: float | None) -> None:
        if not re.fullmatch(r"[\w.:@/-]+", model) or ".." in model:
            raise InputError(f"{model!r} is no name of a {self.provider} model; expected e.g. --model {self.example}")
        self.name = model
        self._url = public_url(endpoint.url)
        self._price = price
        self._client = Client(endpoint)
        self._ended: InputError | None = None

    @property
    @abstractmethod
    def example(self) -> str:
        """What ``--model`` looks like for this service."""

    @abstractmethod
    def options(self) -> JsonObject:
        """What is asked of the service beside model and prompt, as the record keeps it."""

    @abstractmethod
    def request(self, prompt: str, seed: int) -> tuple[str, JsonObject]:
        """Path and body of the request for one image."""

    @abstractmethod
    def image(self, answer: Any) -> Image.Image | Failure:
        """The image in an answer of status 200, or why there is none."""

    @abstractmethod
    def declined(self, error: RequestError) -> bool:
        """Whether an error means that the service would not, rather than could not."""

    @abstractmethod
    def concerns_all(self, error: RequestError) -> str | None:
        """The fix, where an error means that no later request will be answered either."""

    def record(self) -> JsonObject:
        """Provider, model, address and options, and how a text to render is asked for; nothing secret."""
        return {"provider": self.provider, "model": self.name, "url": self._url, **self.options(), **layout.template_record()}

    def check(self, rows: Sequence[Prompt]) -> None:  # noqa: B027 (not every service has something to check)
        """Nothing more to check: a service takes any text."""

    def truncated(self, rows: Sequence[PlannedRow]) -> dict[str, dict[str, int]]:
        """Unknown: a service does not tell how much of a prompt it reads."""
        return {}

    @property
    def rows_at_once(self) -> int:
        """Rows of a batch, unless told otherwise: two for each request that is under way, so that few threads wait for the last."""
        return 2 * self._client.endpoint.concurrency

    def announce(self, images: int) -> str:
        """What so many images cost, in a line."""
        asked = f"{images:,} {'request' if images == 1 else 'requests'} to {self.provider}"
        if self._price is None:
            return f"{asked}; price not given (--set price=… is dollars an image)"
        return f"{asked}, about ${images * self._price:,.2f}"

    def generate(self, rows: Sequence[PlannedRow], seeds: Sequence[int]) -> list[Image.Image | Failure]:
        """One image a row, asked for at once as the endpoint's concurrency allows.

        An error that concerns every request (no credit, a key that is not valid) ends the work at the next call, so that the images
        which were paid for are kept.
        """
        if self._ended is not None:
            raise self._ended
        asked = [self.request(layout.worded(row), seed) for row, seed in zip(rows, seeds, strict=True)]
        path = asked[0][0]
        answers = self._client.post_all(path, [body for _, body in asked])
        results = [self._result(answer) for answer in answers]
        if self._ended is not None and not any(isinstance(result, Image.Image) for result in results):
            raise self._ended
        return results

    def _result(self, answer: Any | RequestError) -> Image.Image | Failure:
        if not isinstance(answer, RequestError):
            return self.image(answer)
        if fix := self.concerns_all(answer):
            self._ended = InputError(f"{self.provider} answered {answer}. {fix}; then run the same command again with --retry-failed")
        return Failure(str(answer), refused=self.declined(answer))


def public_url(url: str) -> str:
    """The address as records may hold it.

    Raises InputError for one that is no http(s) address, or has a name, password or query in it: run.json keeps a command's arguments.

    >>> public_url("https://images.example/v1/")
    'https://images.example/v1'
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError("--set url: expected an address such as https://images.example/v1")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise InputError(
            f"--set url: the address of {parts.hostname} has a name, a password or a query in it, which would be written into records. "
            "Give the plain address, and the key in an environment variable (--set key_variable=NAME)"
        )
    return url.rstrip("/")


def error_of(error: RequestError) -> Any:
    """The ``error`` object of a service's body, empty where there is none.

    >>> error_of(RequestError("", 400, '{"error": {"code": "moderation_blocked"}}'))["code"]
    'moderation_blocked'
    """
    try:
        found = json.loads(error.body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
