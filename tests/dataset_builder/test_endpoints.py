"""Every kind of bad answer: retried, told of one request, or told of all."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from loopback_api import BROKEN, NOT_JSON, RATE_LIMITED, TRUNCATED, Fault, serving

from t2i_parity.dataset_builder.endpoints import Client, Endpoint, RequestError
from t2i_parity.dataset_builder.errors import InputError

ECHO = {"/v1/echo": lambda body: {"said": body["say"]}}


def client(url: str, waits: list[float] | None = None, **settings: object) -> Client:
    return Client(Endpoint(url + "/v1", **settings), sleep=(waits if waits is not None else []).append)


@pytest.mark.parametrize("fault", [RATE_LIMITED, BROKEN, TRUNCATED, NOT_JSON, Fault(503, ""), Fault(body="[1]")])
def test_a_passing_fault_is_retried(fault: Fault) -> None:
    with serving(ECHO) as api:
        api.then([fault, fault])
        asked = client(api.url)
        assert asked.post("echo", {"say": "x"}) == {"said": "x"}
        assert (asked.spent.requests, asked.spent.retries, asked.spent.failed) == (3, 2, 0)


def test_a_slow_answer_times_out_and_is_asked_again() -> None:
    with serving(ECHO) as api:
        api.then([Fault(silence=0.6)])
        assert client(api.url, timeout=0.2).post("echo", {"say": "x"}) == {"said": "x"}


def test_retry_after_is_kept_within_bounds() -> None:
    with serving(ECHO) as api:
        api.then([Fault(429, "{}", (("Retry-After", "7"),)), Fault(429, "{}", (("Retry-After", "86400"),))])
        waits: list[float] = []
        client(api.url, waits).post("echo", {"say": "x"})
        assert waits == [7.0, 60.0]


def test_a_lasting_fault_concerns_its_request_alone() -> None:
    with serving(ECHO) as api:
        api.then([BROKEN] * 3)
        answers = client(api.url, attempts=3, concurrency=1).post_all("echo", [{"say": "x"}, {"say": "y"}])
        assert isinstance(answers[0], RequestError)
        assert answers[0].status == 500
        assert "3 attempts" in str(answers[0])
        assert answers[1] == {"said": "y"}


def test_a_bad_request_is_not_retried() -> None:
    with serving(ECHO) as api:
        api.then([Fault(400, '{"error": {"message": "content policy"}}')])
        asked = client(api.url)
        with pytest.raises(RequestError, match="content policy") as caught:
            asked.post("echo", {"say": "x"})
        assert caught.value.status == 400
        assert asked.spent.requests == 1


@pytest.mark.parametrize(("status", "fix"), [(401, "PARITY_TEST_KEY"), (403, "PARITY_TEST_KEY"), (404, "model's name")])
def test_what_concerns_all_requests_ends_the_work(status: int, fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARITY_TEST_KEY", "a-secret")
    with serving(ECHO) as api:
        api.then([Fault(status, '{"error": "no"}')])
        with pytest.raises(InputError, match=fix) as caught:
            client(api.url, key_variable="PARITY_TEST_KEY").post("echo", {"say": "x"})
        assert "a-secret" not in str(caught.value)
        assert api.seen[0][2]["Authorization"] == "Bearer a-secret"


def test_nobody_there_and_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(ECHO) as api:
        gone = api.url
    with pytest.raises(InputError, match="nobody answers"):
        client(gone).post("echo", {"say": "x"})
    monkeypatch.delenv("PARITY_TEST_KEY", raising=False)
    with pytest.raises(InputError, match="PARITY_TEST_KEY, which is not set"):
        client(gone, key_variable="PARITY_TEST_KEY")


def test_order_and_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock that stands: what a busy machine takes for the requests themselves is no matter here.
    monkeypatch.setattr("t2i_parity.dataset_builder.endpoints.time", SimpleNamespace(monotonic=lambda: 0.0))
    with serving(ECHO) as api:
        waits: list[float] = []
        asked = client(api.url, waits, per_minute=60)
        answers = asked.post_all("echo", [{"say": str(number)} for number in range(20)])
        assert [answer["said"] for answer in answers if isinstance(answer, dict)] == [str(number) for number in range(20)]
        assert sorted(waits) == [float(second) for second in range(1, 20)]
