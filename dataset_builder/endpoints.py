"""HTTP services that answer JSON with JSON: retries, pacing, concurrency, and errors told apart by whom they concern.

What concerns one request (a refusal, a malformed body, a server that kept failing) is a ``RequestError`` beside the other answers; what
concerns all of them (no key, no such model, nobody at the address) is an InputError that ends the work, with what was done kept.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from t2i_parity.cards.documents import Json
from t2i_parity.dataset_builder.errors import InputError, first_line

RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that a later attempt may turn into an answer."""

LONGEST_WAIT = 60.0
"""Seconds waited at most before an attempt, also when the server's Retry-After asks for more."""


class RequestError(Exception):
    """Why one request has no answer: ``status`` of the last response (None without one) and ``body``, its beginning."""

    def __init__(self, reason: str, status: int | None = None, body: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.body = body


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a service is and how it wants to be asked.

    ``key_variable`` names the environment variable that holds the key, which goes into the header ``key_header`` behind ``key_prefix`` and
    nowhere else: no record, message or exception ever holds it. ``timeout`` is in seconds, ``per_minute`` paces requests over all threads.
    """

    url: str
    key_variable: str | None = None
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    timeout: float = 120.0
    attempts: int = 6
    per_minute: float | None = None
    concurrency: int = 8


@dataclass(slots=True)
class Spent:
    """What a client has asked for so far."""

    requests: int = 0
    retries: int = 0
    failed: int = 0


class _RetryError(Exception):
    """An attempt that failed in a way that another may not."""

    def __init__(self, reason: str, status: int | None = None, body: str = "", after: float | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.body = body
        self.after = after


@dataclass
class Client:
    """Requests to one endpoint, from any number of threads. ``sleep`` is how it waits (tests hand in their own)."""

    endpoint: Endpoint
    sleep: Callable[[float], None] = time.sleep
    spent: Spent = field(default_factory=Spent)

    def __post_init__(self) -> None:
        headers = {}
        if self.endpoint.key_variable:
            key = os.environ.get(self.endpoint.key_variable)
            if not key:
                raise InputError(
                    f"{self.endpoint.url} needs a key in the environment variable {self.endpoint.key_variable}, which is not set"
                )
            headers[self.endpoint.key_header] = self.endpoint.key_prefix + key
        self._http = httpx.Client(
            base_url=self.endpoint.url.rstrip("/") + "/",
            headers=headers,
            timeout=self.endpoint.timeout,
            limits=httpx.Limits(max_connections=self.endpoint.concurrency),
        )
        self._lock = threading.Lock()
        self._next = 0.0

    def post(self, path: str, body: Json) -> Any:
        """The JSON object that the service answers.

        Raises RequestError when this request has none after every attempt, InputError when no request would.
        """
        retrying = Retrying(
            retry=retry_if_exception_type(_RetryError),
            stop=stop_after_attempt(self.endpoint.attempts),
            wait=self._wait,
            sleep=self.sleep,
            reraise=True,
        )
        try:
            return retrying(self._attempt, path, body)
        except _RetryError as error:
            with self._lock:
                self.spent.failed += 1
            raise RequestError(f"{error} ({self.endpoint.attempts} attempts)", error.status, error.body) from error

    def post_all(self, path: str, bodies: Sequence[Json]) -> list[Any | RequestError]:
        """An answer or its error for each body, in their order, ``concurrency`` at a time."""

        def one(body: Json) -> Any | RequestError:
            try:
                return self.post(path, body)
            except RequestError as error:
                return error

        if len(bodies) < 2:
            return [one(body) for body in bodies]
        with ThreadPoolExecutor(min(self.endpoint.concurrency, len(bodies)), thread_name_prefix="http") as pool:
            return list(pool.map(one, bodies))

    # Inside

    def _attempt(self, path: str, body: Json) -> Any:
        self._pace()
        with self._lock:
            self.spent.requests += 1
        try:
            response = self._http.post(path.lstrip("/"), json=body)
        except httpx.ConnectError as error:
            raise InputError(
                f"nobody answers at {self.endpoint.url} ({first_line(error)}). Start the server, or give its address; then run the same "
                "command again"
            ) from error
        except httpx.TransportError as error:
            raise _RetryError(f"{type(error).__name__}: {first_line(error)}") from error
        text = response.text
        if response.status_code in RETRIED:
            raise _RetryError(_said(response, text), response.status_code, text[:2000], _retry_after(response))
        if response.status_code in (401, 403, 404):
            raise InputError(f"{self.endpoint.url} answered {_said(response, text)} to {path}. {self._fix(response.status_code)}")
        if response.status_code >= 400:
            raise RequestError(_said(response, text), response.status_code, text[:2000])
        try:
            answer = json.loads(text)
        except ValueError as error:
            raise _RetryError(f"the answer is not JSON ({error})", response.status_code, text[:2000]) from error
        if not isinstance(answer, dict):
            raise _RetryError(f"the answer is a JSON {type(answer).__name__}, not an object", response.status_code, text[:2000])
        return answer

    def _fix(self, status: int) -> str:
        if status == 404:
            return "Check the address and the model's name"
        return f"Check the key in {self.endpoint.key_variable}" if self.endpoint.key_variable else "It wants a key: name its variable"

    def _wait(self, state: RetryCallState) -> float:
        with self._lock:
            self.spent.retries += 1
        error = state.outcome.exception() if state.outcome else None
        asked = error.after if isinstance(error, _RetryError) else None
        return min(LONGEST_WAIT, asked if asked is not None else float(wait_random_exponential(multiplier=1, max=LONGEST_WAIT)(state)))

    def _pace(self) -> None:
        if self.endpoint.per_minute is None:
            return
        with self._lock:
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + 60.0 / self.endpoint.per_minute
        if mine > now:
            self.sleep(mine - now)


def _said(response: httpx.Response, text: str) -> str:
    """Status and the service's own message, shortened to a line."""
    try:
        message = json.loads(text)["error"]
        message = message["message"] if isinstance(message, dict) else message
    except (ValueError, KeyError, TypeError):
        message = text
    return f"{response.status_code} {response.reason_phrase}: {' '.join(str(message).split())[:300]}".rstrip(": ")


def _retry_after(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
