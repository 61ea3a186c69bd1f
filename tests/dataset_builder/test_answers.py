"""Answers of language models: what is read out of them, what is refused, and how they are asked for again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from t2i_parity.dataset_builder.answers import LONGEST, Answered, AnswerError, Unanswered, answers, fitting, json_in, whole
from t2i_parity.dataset_builder.chat import ChatRequest, Completion, Usage, ask
from t2i_parity.dataset_builder.endpoints import RequestError


class Scripted:
    """A chat model that answers with what it is given, request by request, and keeps what it was asked."""

    name = "scripted"
    usage = Usage()

    def __init__(self, *rounds: Sequence[Completion | RequestError | str]) -> None:
        self.rounds = list(rounds)
        self.asked: list[list[ChatRequest]] = []

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion | RequestError]:
        self.asked.append(list(requests))
        given = self.rounds.pop(0)
        assert len(given) == len(requests)
        return [Completion(each, usage=Usage(5, 1)) if isinstance(each, str) else each for each in given]


def number(completion: Completion) -> int:
    value = json_in(whole(completion))
    return int(fitting(value, {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})["n"])


@pytest.mark.parametrize(
    "text",
    [
        '{"n": 4}',
        '```json\n{"n": 4}\n```',
        '```\n{"n": 4,}\n```\nIs there anything else?',
        'Sure, here it is: {"n": 4 } – as asked.',
        '\ufeff{"n": 4}',
        '{"n": 4}\n\n{"n": 4}',
        'The form {n} is filled:\n{\n  "n": 4\n}',
        'A "quoted" word before it: {"n": 4}',
    ],
)
def test_json_is_found_in_what_surrounds_it(text: str) -> None:
    assert json_in(text) == {"n": 4}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no complete JSON"),
        ("I cannot help with that.", "no complete JSON"),
        ('{"n": 4', "no complete JSON"),
        ('{"people": [{"n": 4}, {"n"', "no complete JSON"),
        ('```json\n{"n": \n```', "no complete JSON"),
        ("{n: 4}", "no complete JSON"),
        ('{"n": NaN}', "no complete JSON"),
        ('{"n": 4, "n": 5}', "no complete JSON"),
        ('{"people": [,]}', "no complete JSON"),
        ('{"n": 4} or rather {"n": 5}', "2 different JSON objects"),
        ("[" * 5000 + "]" * 5000, "no complete JSON"),
        ("x" * (LONGEST + 1), "longer than"),
    ],
)
def test_what_is_no_answer_is_never_completed(text: str, why: str) -> None:
    with pytest.raises(AnswerError, match=why):
        json_in(text)


def test_strings_are_left_as_they_are() -> None:
    text = '{"text": "a, } b ,] \\" {c", "हि": ["ए",]}'
    assert json_in(text) == {"text": 'a, } b ,] " {c', "हि": ["ए"]}


def test_many_brackets_are_read_in_linear_time() -> None:
    with pytest.raises(AnswerError):
        json_in("{" * LONGEST)


def test_a_bad_answer_is_told_to_the_model_and_asked_again() -> None:
    chat = Scripted(['{"n": 1}', "four", '{"n": "x"}'], ["{'n': 4}", '{"n": 3}'], ['{"n": 4}'])
    requests = [ask(str(place), images=[]) for place in range(3)]
    first, second, third = answers(chat, requests, number, attempts=3)
    assert isinstance(first, Answered)
    assert (first.value, first.attempts, first.usage) == (1, 1, Usage(5, 1))
    assert isinstance(second, Answered)
    assert (second.value, second.attempts, second.usage) == (4, 3, Usage(15, 3))
    assert isinstance(third, Answered)
    assert (third.value, third.attempts) == (3, 2)
    again = chat.asked[1][0].messages
    assert [message.role for message in again] == ["user", "assistant", "user"]
    assert again[1].text == "four"
    assert "holds no complete JSON object" in again[2].text
    assert "at n: 'x' is not of type 'integer'" in chat.asked[1][1].messages[2].text


def test_what_stays_unusable_is_missing_with_its_reason() -> None:
    chat = Scripted(["one", Completion("", "length"), ""], ["two", Completion("{", "length"), " "])
    results: list[Any] = answers(chat, [ask("a"), ask("b"), ask("c")], number)
    assert [type(result) for result in results] == [Unanswered] * 3
    assert results[0].reason == "no usable answer, asked 2 times: it holds no complete JSON object; the last one was 'two'"
    assert "cut off" in results[1].reason
    assert "empty" in results[2].reason
    assert results[0].usage == Usage(10, 2)


def test_refusals_and_failures_are_not_asked_again() -> None:
    chat = Scripted([Completion("", "refused", "I will not"), RequestError("500 (6 attempts)", 500)])
    refused, failed = answers(chat, [ask("a"), ask("b")], number)
    assert isinstance(refused, Unanswered)
    assert (refused.refused, refused.reason) == (True, "I will not")
    assert isinstance(failed, Unanswered)
    assert (failed.refused, failed.reason) == (False, "500 (6 attempts)")
    assert len(chat.asked) == 1
