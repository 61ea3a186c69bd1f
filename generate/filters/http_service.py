"""Any service that is asked with JSON and answers with JSON: which field holds the text, and where the verdict stands, are settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from t2i_parity.dataset_builder.endpoints import Client, Endpoint, RequestError
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.filters import Verdict, Wording, signed, worded

PLACE = "{text}"


@dataclass(frozen=True, slots=True)
class HttpServiceSettings:
    """Where, what is sent, and where in the answer the verdict stands.

    ``request`` is a JSON object in which the string "{text}" stands for the text. ``flag`` and ``score`` are paths into the answer, as
    results[0].flagged; one of them is enough: without ``flag``, a text is flagged when its score is above ``threshold``. ``key_variable``
    names the environment variable that holds the key, which goes into the header ``key_header`` behind ``key_prefix``. ``version`` goes
    into the signature: change it when the service changes.
    """

    url: str
    request: str = '{"text": "{text}"}'
    flag: str = ""
    score: str = ""
    threshold: float = 0.5
    key_variable: str = ""
    key_header: str = "Authorization"
    key_prefix: str = "Bearer "
    version: str = "unknown"
    wording: Wording = "as_is"
    per_minute: Annotated[float | None, Field(gt=0)] = None
    concurrency: Annotated[int, Field(ge=1)] = 8
    attempts: Annotated[int, Field(ge=1)] = 6
    timeout: Annotated[float, Field(gt=0)] = 60.0


class HttpService:
    """The filter. The score is the service's own number, None where no path to one is given."""

    name = "http"
    languages: tuple[str, ...] = ()
    at_once = 64

    def __init__(self, settings: HttpServiceSettings) -> None:
        self.settings = settings
        try:
            self._request = json.loads(settings.request)
        except ValueError as error:
            raise InputError(f"http: --set request={settings.request} is not JSON ({error})") from error
        if not isinstance(self._request, dict) or PLACE not in json.dumps(self._request):
            raise InputError(f'http: --set request={settings.request}: expected a JSON object that holds the string "{PLACE}"')
        if not settings.flag and not settings.score:
            raise InputError(
                "http: nothing says where the verdict stands; give a path into the answer: --set flag=PATH or --set score=PATH"
            )
        self._flag, self._score = (steps(path) if path else None for path in (settings.flag, settings.score))
        base, _, self._path = settings.url.rpartition("/")
        if "://" not in settings.url or base.endswith(":/"):
            base, self._path = settings.url, ""
        self._client = Client(
            Endpoint(
                base,
                settings.key_variable or None,
                key_header=settings.key_header,
                key_prefix=settings.key_prefix,
                timeout=settings.timeout,
                attempts=settings.attempts,
                per_minute=settings.per_minute,
                concurrency=settings.concurrency,
            )
        )

    def signature(self) -> str:
        """Address, request, paths, threshold, and the version that the user gives it."""
        settings = self.settings
        fields = {
            # What stands before an @ or behind a question mark may be a secret.
            "url": re.sub(r"\?.*|(?<=://)[^/@]*@", "", settings.url),
            "request": settings.request,
            "flag": settings.flag or "none",
            "score": settings.score or "none",
            "threshold": settings.threshold,
            "wording": settings.wording,
            "v": settings.version,
        }
        return signed(self.name, fields)

    def judge(self, texts: Sequence[str]) -> list[Verdict | Failure]:
        """One request a text, so that a text that cannot be answered costs no other."""
        bodies = [filled(self._request, worded(text, self.settings.wording)) for text in texts]
        return [self._verdict(answer) for answer in self._client.post_all(self._path, bodies)]

    def _verdict(self, answer: Any) -> Verdict | Failure:
        if isinstance(answer, RequestError):
            return Failure(str(answer))
        score: float | None = None
        if self._score is not None:
            found = at(answer, self._score)
            if not isinstance(found, int | float) or isinstance(found, bool):
                return Failure(f"the answer holds no number at {self.settings.score}")
            score = float(found)
        if self._flag is None:
            assert score is not None
            return Verdict(score > self.settings.threshold, score)
        flag = at(answer, self._flag)
        if not isinstance(flag, bool):
            return Failure(f"the answer holds no true or false at {self.settings.flag}")
        return Verdict(flag, score)


def filled(template: Any, text: str) -> Any:
    """The template with the text in place of "{text}", wherever a string holds it; the text itself is never read as a template.

    >>> filled({"input": ["{text}"], "lang": "en"}, "a cat")
    {'input': ['a cat'], 'lang': 'en'}
    """
    if isinstance(template, str):
        return template.replace(PLACE, text)
    if isinstance(template, Mapping):
        return {name: filled(value, text) for name, value in template.items()}
    return [filled(value, text) for value in template] if isinstance(template, list) else template


def steps(path: str) -> list[str | int]:
    """A path into a JSON answer as its steps. Raises InputError when it is none.

    >>> steps("results[0].flagged")
    ['results', 0, 'flagged']
    """
    if not re.fullmatch(r"[^.\[\]]+(\[-?\d+\])*(\.[^.\[\]]+(\[-?\d+\])*)*", path):
        raise InputError(f"http: {path!r} is no path into an answer; expected one as results[0].flagged")
    found = re.findall(r"([^.\[\]]+)|\[(-?\d+)\]", path)
    # A name behind a bracket's closing is a name; digits inside brackets are a place.
    return [name if name else int(place) for name, place in found]


def at(answer: Any, path: Sequence[str | int]) -> Any:
    """What stands at a path, None where nothing does."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(answer, list) or not -len(answer) <= step < len(answer):
                return None
            answer = answer[step]
        else:
            if not isinstance(answer, Mapping) or step not in answer:
                return None
            answer = answer[step]
    return answer
