"""The moderation API of OpenAI, or a service of the same form: is the text flagged, and a score from 0 to 1 in each harm category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from t2i_parity.dataset_builder.endpoints import Client, Endpoint, RequestError
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.filters import Verdict, Wording, signed, worded


@dataclass(frozen=True, slots=True)
class OpenAIModerationSettings:
    """Where it is asked and how. The verdict is the service's own; left to ``threshold``, it is the largest category score above that.

    ``key_variable`` names the environment variable that holds the key; "" sends none. ``per_minute`` paces requests.
    """

    model: str = "omni-moderation-latest"
    url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"
    threshold: Annotated[float | None, Field(ge=0, le=1)] = None
    wording: Wording = "capitalized"
    per_minute: Annotated[float | None, Field(gt=0)] = None
    concurrency: Annotated[int, Field(ge=1)] = 8
    attempts: Annotated[int, Field(ge=1)] = 6
    timeout: Annotated[float, Field(gt=0)] = 60.0


class OpenAIModeration:
    """The filter. The score is the largest of the category scores; all of them are kept."""

    name = "openai-moderation"
    languages: tuple[str, ...] = ()
    at_once = 64

    def __init__(self, settings: OpenAIModerationSettings) -> None:
        self.settings = settings
        self._client = Client(
            Endpoint(
                settings.url,
                settings.key_variable or None,
                timeout=settings.timeout,
                attempts=settings.attempts,
                per_minute=settings.per_minute,
                concurrency=settings.concurrency,
            )
        )

    def signature(self) -> str:
        """Model as asked for, where, and who decides. The model that answered is not known before it does."""
        settings = self.settings
        rule = "service" if settings.threshold is None else settings.threshold
        fields = {"model": settings.model, "url": settings.url, "rule": rule, "wording": settings.wording, "v": "1"}
        return signed(self.name, fields)

    def judge(self, texts: Sequence[str]) -> list[Verdict | Failure]:
        """One request a text, so that a text that cannot be answered costs no other."""
        bodies = [{"model": self.settings.model, "input": worded(text, self.settings.wording)} for text in texts]
        return [self._verdict(answer) for answer in self._client.post_all("moderations", bodies)]

    def _verdict(self, answer: Any) -> Verdict | Failure:
        if isinstance(answer, RequestError):
            return Failure(str(answer))
        results = answer.get("results")
        result = results[0] if isinstance(results, list) and len(results) == 1 else None
        if not isinstance(result, Mapping) or not isinstance(result.get("flagged"), bool):
            return Failure("the answer is no moderation: expected one result with flagged and category_scores")
        scores = result.get("category_scores")
        if not isinstance(scores, Mapping) or not scores or not all(_is_score(value) for value in scores.values()):
            return Failure("the answer's category_scores are not numbers from 0 to 1")
        categories = {str(name): float(value) for name, value in sorted(scores.items())}
        score = max(categories.values())
        threshold = self.settings.threshold
        return Verdict(result["flagged"] if threshold is None else score > threshold, score, categories)


def _is_score(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
