"""Chat models behind services: what is sent, what is understood of the answers, and every fault told for what it is."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from loopback_api import BROKEN, NOT_JSON, RATE_LIMITED, TRUNCATED, Fault, LoopbackApi, chat_answer, serving

from t2i_parity.dataset_builder.chat import (
    ChatImage,
    ChatRequest,
    Completion,
    GeminiChat,
    JsonSchema,
    OpenAiChat,
    Prices,
    Token,
    Usage,
    ask,
    over_http,
)
from t2i_parity.dataset_builder.endpoints import RequestError
from t2i_parity.dataset_builder.errors import InputError

PICTURE = ChatImage(b"\x89PNG not really")
SCHEMA = JsonSchema("thing", {"type": "object", "properties": {"n": {"type": "integer"}}})
GEMINI_PATH = "/models/gemini-2.5-flash:generateContent"


def gemini_answer(text: str, finish: str = "STOP", **more: Any) -> dict[str, Any]:
    return {
        "candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": finish, **more}],
        "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2, "thoughtsTokenCount": 5},
    }


@pytest.fixture
def openai() -> Iterator[LoopbackApi]:
    with serving({"/v1/chat/completions": lambda body: chat_answer("two words")}) as api:
        yield api


@pytest.fixture
def gemini() -> Iterator[LoopbackApi]:
    with serving({GEMINI_PATH: lambda body: gemini_answer("two words")}) as api:
        yield api


def of_openai(api: LoopbackApi, **how: Any) -> OpenAiChat:
    chat = over_http("openai", model="m", url=f"{api.url}/v1", sleep=lambda seconds: None, **how)
    assert isinstance(chat, OpenAiChat)
    return chat


def of_gemini(api: LoopbackApi, **how: Any) -> GeminiChat:
    chat = over_http("gemini", model="models/gemini-2.5-flash", url=api.url, sleep=lambda seconds: None, **how)
    assert isinstance(chat, GeminiChat)
    return chat


def one(chat: OpenAiChat | GeminiChat, request: ChatRequest | None = None) -> Completion | RequestError:
    return chat.complete([request or ask("hello")])[0]


# What is sent


def test_an_openai_request_holds_all_that_was_asked(openai: LoopbackApi) -> None:
    request = ask("What?", system="Be brief.", images=[PICTURE], max_tokens=9, seed=3, schema=SCHEMA, top_logprobs=5)
    answer = one(of_openai(openai), request.then("an answer", "again"))
    body = openai.seen[0][1]
    assert isinstance(answer, Completion)
    assert (body["model"], body["max_tokens"], body["temperature"], body["seed"]) == ("m", 9, 0.0, 3)
    assert (body["logprobs"], body["top_logprobs"]) == (True, 5)
    assert body["response_format"]["json_schema"] == {"name": "thing", "strict": True, "schema": SCHEMA.schema}
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    picture, text = body["messages"][1]["content"]
    head, _, data = picture["image_url"]["url"].partition(",")
    assert (head, base64.b64decode(data), text["text"]) == ("data:image/png;base64", PICTURE.data, "What?")


def test_what_is_left_to_the_service_is_not_sent(openai: LoopbackApi) -> None:
    one(of_openai(openai, token_limit="max_completion_tokens"), ask("What?", temperature=None, max_tokens=9))
    body = openai.seen[0][1]
    assert body["max_completion_tokens"] == 9
    assert not {"temperature", "max_tokens", "seed", "logprobs", "response_format"} & set(body)


def test_a_gemini_request_holds_all_that_was_asked(gemini: LoopbackApi) -> None:
    request = ask("What?", system="Be brief.", images=[PICTURE], max_tokens=9, schema=SCHEMA, top_logprobs=5)
    one(of_gemini(gemini, thinking_tokens=0), request.then("an answer", "again"))
    path, body, _ = gemini.seen[0]
    assert path == GEMINI_PATH
    assert body["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    assert [turn["role"] for turn in body["contents"]] == ["user", "model", "user"]
    assert base64.b64decode(body["contents"][0]["parts"][0]["inlineData"]["data"]) == PICTURE.data
    how = body["generationConfig"]
    assert (how["maxOutputTokens"], how["temperature"], how["logprobs"]) == (9, 0.0, 5)
    assert (how["responseMimeType"], how["responseJsonSchema"]) == ("application/json", SCHEMA.schema)
    assert how["thinkingConfig"] == {"thinkingBudget": 0}


def test_keys_come_from_their_variable_and_stay_there(monkeypatch: pytest.MonkeyPatch, openai: LoopbackApi, gemini: LoopbackApi) -> None:
    monkeypatch.setenv("PARITY_TEST_KEY", "a-secret")
    refused = Fault(400, '{"error": {"message": "bad request"}}')
    for api, chat, header in (
        (openai, of_openai(openai, key_variable="PARITY_TEST_KEY"), ("Authorization", "Bearer a-secret")),
        (gemini, of_gemini(gemini, key_variable="PARITY_TEST_KEY"), ("x-goog-api-key", "a-secret")),
    ):
        api.then([refused])
        failed, answered = one(chat), one(chat)
        headers = {name.lower(): value for name, value in api.seen[0][2].items()}
        assert headers[header[0].lower()] == header[1]
        assert "a-secret" not in f"{failed!r} {answered!r} {failed} {chat.name}"
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(InputError, match="GEMINI_API_KEY, which is not set"):
        over_http("gemini", model="gemini-2.5-flash")
    with pytest.raises(InputError, match="--set url="):
        over_http("openai", model="m")


# What is understood


def test_an_openai_answer_with_its_probabilities() -> None:
    content = [
        {
            "token": "Good",
            "logprob": -0.1,
            "top_logprobs": [
                {"token": "bad", "logprob": -9999.0},
                {"token": "Good", "logprob": -0.1},
                {"token": "x", "logprob": float("-inf")},
            ],
        }
    ]
    with serving({"/v1/chat/completions": lambda body: chat_answer("Good", "length", content)}) as api:
        answer = one(of_openai(api))
    # Infinity is no JSON number in the standard, but Python's servers write it: probability 0 is left out.
    assert answer == Completion("Good", "length", None, (Token("Good", -0.1, (("Good", -0.1), ("bad", -9999.0))),), Usage(10, 1))


def test_a_gemini_answer_with_its_probabilities_and_without_its_thoughts() -> None:
    probabilities = {
        "chosenCandidates": [{"token": "Good", "logProbability": -0.1}],
        "topCandidates": [{"candidates": [{"token": "Good", "logProbability": -0.1}, {"token": "bad", "logProbability": -2.5}]}],
    }
    whole = gemini_answer("Good", "MAX_TOKENS", logprobsResult=probabilities)
    whole["candidates"][0]["content"]["parts"].insert(0, {"text": "let me see", "thought": True})
    with serving({GEMINI_PATH: lambda body: whole}) as api:
        answer = one(of_gemini(api))
    assert answer == Completion("Good", "length", None, (Token("Good", -0.1, (("Good", -0.1), ("bad", -2.5))),), Usage(7, 7))


def test_usage_is_summed_and_priced(openai: LoopbackApi) -> None:
    chat = of_openai(openai)
    chat.complete([ask("a"), ask("b")])
    one(chat)
    assert chat.usage == Usage(30, 6)
    assert Prices(1.0, 10.0).cost(chat.usage) == pytest.approx(9e-5)
    assert Prices(1.0).cost(chat.usage) is None


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"choices": [{"message": {"content": None, "refusal": "I will not"}, "finish_reason": "stop"}]}, "I will not"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}, "content filter"),
    ],
)
def test_refusals_of_openai_services(answer: dict[str, Any], why: str) -> None:
    with serving({"/v1/chat/completions": lambda body: answer}) as api:
        got = one(of_openai(api))
    assert isinstance(got, Completion)
    assert (got.finish, got.usage) == ("refused", None)
    assert why in str(got.refusal)


def test_a_400_is_a_refusal_only_when_it_says_so(openai: LoopbackApi) -> None:
    openai.then(
        [
            Fault(400, '{"error": {"message": "no", "code": "content_policy_violation"}}'),
            Fault(400, '{"error": {"message": "no", "innererror": {"code": "content_filter"}}}'),
            Fault(400, '{"error": {"message": "image too large", "code": "invalid_image"}}'),
            Fault(400, "nothing"),
        ]
    )
    chat = of_openai(openai)
    kinds = [type(one(chat)).__name__ for _ in range(4)]
    assert kinds == ["Completion", "Completion", "RequestError", "RequestError"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 7}}, "PROHIBITED_CONTENT"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "SAFETY"),
    ],
)
def test_refusals_of_gemini(answer: dict[str, Any], why: str) -> None:
    with serving({GEMINI_PATH: lambda body: answer}) as api:
        got = one(of_gemini(api))
    assert isinstance(got, Completion)
    assert why in str(got.refusal)


# Faults


@pytest.mark.parametrize("fault", [RATE_LIMITED, BROKEN, TRUNCATED, NOT_JSON, Fault(silence=1.0)])
def test_a_passing_fault_costs_nothing(fault: Fault, openai: LoopbackApi, gemini: LoopbackApi) -> None:
    for api, chat in ((openai, of_openai(openai, timeout=0.5)), (gemini, of_gemini(gemini, timeout=0.5))):
        api.then([fault])
        answers = chat.complete([ask(str(number)) for number in range(4)])
        assert [answer.text for answer in answers if isinstance(answer, Completion)] == ["two words"] * 4


@pytest.mark.parametrize("odd", ['{"choices": []}', '{"error": {"message": "overloaded"}}', '{"choices": [{"message": {"content": 5}}]}'])
def test_an_answer_of_another_form_is_asked_for_again_and_then_told(odd: str, openai: LoopbackApi) -> None:
    openai.then([Fault(body=odd)])
    assert isinstance(one(of_openai(openai)), Completion)
    openai.then([Fault(body=odd)] * 2)
    answer = one(of_openai(openai))
    assert isinstance(answer, RequestError)
    assert "not of the promised form" in str(answer)


def test_a_lasting_fault_concerns_its_request_alone(openai: LoopbackApi) -> None:
    openai.then([BROKEN] * 2)
    chat = of_openai(openai, attempts=2, concurrency=1)
    first, second = chat.complete([ask("a"), ask("b")])
    assert isinstance(first, RequestError)
    assert isinstance(second, Completion)
    assert chat.usage == Usage(10, 2)


def test_a_model_that_is_not_there_ends_the_work(openai: LoopbackApi) -> None:
    openai.then([Fault(404, '{"error": {"message": "no model m"}}')])
    with pytest.raises(InputError, match="no model m"):
        one(of_openai(openai))


def test_requests_are_made_at_once_and_answered_in_order() -> None:
    four = threading.Barrier(4, timeout=10)

    def answer(body: dict[str, Any]) -> dict[str, Any]:
        four.wait()
        return chat_answer(body["messages"][-1]["content"])

    with serving({"/v1/chat/completions": answer}) as api:
        answers = of_openai(api, concurrency=4).complete([ask(str(number)) for number in range(8)])
    assert [answer.text for answer in answers if isinstance(answer, Completion)] == [str(number) for number in range(8)]
