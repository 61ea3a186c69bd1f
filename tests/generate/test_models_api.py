"""Image services on a loopback server: what is asked, what becomes of refusals and bad answers, and where keys are not."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from loopback_api import BROKEN, RATE_LIMITED, Fault, LoopbackApi, serving
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.backends.image_service import public_url
from t2i_parity.generate.backends.received import MOST_PIXELS, decoded, from_base64
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.models import load
from t2i_parity.generate.models.gemini import ratio
from t2i_parity.generate.run import Run

KEY = "a-secret-key-that-no-file-may-hold"
GEMINI = "/v1beta/models/banana:generateContent"
OPENAI = "/v1/images/generations"


def encoded(size: tuple[int, int] = (48, 32), form: str = "PNG", colour: str = "teal") -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, colour).save(buffer, form)
    return base64.b64encode(buffer.getvalue()).decode()


def bomb(side: int) -> bytes:
    """A PNG of a few bytes whose header claims ``side`` × ``side`` pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


def gemini_answer(**candidate: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": encoded()}}]}, **candidate}]}


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackApi]:
    monkeypatch.setenv("PARITY_TEST_KEY", KEY)
    # Nobody waits in a test.
    monkeypatch.setattr("t2i_parity.dataset_builder.endpoints.LONGEST_WAIT", 0.0)
    routes = {GEMINI: lambda body: gemini_answer(), OPENAI: lambda body: {"data": [{"b64_json": encoded((64, 64))}]}}
    with serving(routes) as served:
        yield served


def gemini(api: LoopbackApi, **more: str) -> Any:
    return load("gemini:banana", {"url": f"{api.url}/v1beta", "key_variable": "PARITY_TEST_KEY", "attempts": "2", **more})


def openai(api: LoopbackApi, model: str = "painter-1", **more: str) -> Any:
    return load(f"openai:{model}", {"url": f"{api.url}/v1", "key_variable": "PARITY_TEST_KEY", "attempts": "2", **more})


def rows(*prompts: str) -> list[dict[str, Any]]:
    return [{"prompt": prompt, "render_text": None} for prompt in prompts]


# What is asked


def test_gemini_is_asked_for_an_image_in_the_wanted_shape(api: LoopbackApi) -> None:
    model = gemini(api, width="1344", height="768", safety="BLOCK_NONE", temperature="0.5", modalities="image")
    (image,) = model.generate(rows("एक लाल घर"), [2**31 + 5])
    assert image.size == (48, 32), "the size is that of the bytes"
    path, body, headers = api.seen[0]
    assert path == GEMINI
    assert body["contents"] == [{"role": "user", "parts": [{"text": "एक लाल घर"}]}]
    config = body["generationConfig"]
    assert config["imageConfig"] == {"aspectRatio": "16:9"}
    assert config["responseModalities"] == ["IMAGE"]
    assert config["seed"] == 5
    assert {setting["threshold"] for setting in body["safetySettings"]} == {"BLOCK_NONE"}
    assert headers["x-goog-api-key"] == KEY
    gemini(api).generate(rows("a house"), [3])
    assert api.seen[1][1]["generationConfig"] == {"seed": 3}, "all else is the API's own default, as in the study"


def test_openai_is_asked_for_base64_and_only_for_what_was_set(api: LoopbackApi) -> None:
    (image,) = openai(api).generate(rows("a house"), [7])
    assert image.size == (64, 64)
    _, body, headers = api.seen[0]
    assert body == {"model": "painter-1", "prompt": "a house", "n": 1, "response_format": "b64_json"}
    assert headers["Authorization"] == f"Bearer {KEY}"

    more = {"width": "1024", "height": "1536", "quality": "low", "seed_field": "seed", "extra": '{"steps": 4}'}
    openai(api, "gpt-image-9", **more).generate(rows("a house"), [7])
    assert api.seen[1][1] == {
        "model": "gpt-image-9", "prompt": "a house", "n": 1, "quality": "low", "size": "1024x1536", "steps": 4, "seed": 7,
    }  # fmt: skip


def test_a_text_to_render_is_asked_for_by_the_stated_template(api: LoopbackApi) -> None:
    model = openai(api)
    model.generate([{"prompt": "A board.", "render_text": "खुला"}], [1])
    assert api.seen[0][1]["prompt"] == "A board. The image shows the text “खुला”."
    assert "text_template" in model.record()


def test_no_key_is_asked_of_a_server_without_one(api: LoopbackApi) -> None:
    openai(api, key_variable="none").generate(rows("a house"), [1])
    assert "Authorization" not in api.seen[0][2]


def test_records_say_what_becomes_of_seeds_and_hold_no_key(api: LoopbackApi) -> None:
    assert openai(api).record()["seeds"] == "not honoured: the service takes none"
    assert openai(api, seed_field="seed").record()["seeds"] == "sent as seed"
    record = gemini(api).record()
    assert record["provider"] == "gemini"
    assert record["model"] == "banana"
    assert record["seeds"].startswith("sent modulo 2147483648")
    assert KEY not in json.dumps([record, openai(api).record()])


def test_the_cost_is_told_when_the_price_is_known(api: LoopbackApi) -> None:
    assert openai(api, price="0.04").announce(33_000) == "33,000 requests to openai, about $1,320.00"
    assert openai(api).announce(1) == "1 request to openai; price not given (--set price=… is dollars an image)"


# What comes back


@pytest.mark.parametrize(
    ("answer", "refused", "reason"),
    [
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, True, "the prompt was blocked: PROHIBITED_CONTENT"),
        ({"candidates": [{"finishReason": "IMAGE_SAFETY", "finishMessage": "unsafe"}]}, True, "refused: IMAGE_SAFETY: unsafe"),
        ({"candidates": [{"finishReason": "SAFETY", "content": {}}]}, True, "refused: SAFETY"),
        ({"candidates": [{"finishReason": "NO_IMAGE"}]}, False, "no image in the answer: NO_IMAGE"),
        (
            {"candidates": [{"finishReason": "STOP", "content": {"parts": [{"text": "I would rather not."}]}}]},
            False,
            "no image in the answer: STOP: I would rather not.",
        ),
        ({"candidates": []}, False, "the answer has no candidates, and no reason why"),
        ({"candidates": "?"}, False, "the answer has no candidates, and no reason why"),
        (
            {"candidates": [{"content": {"parts": [{"inlineData": {"data": "AAAA"}}]}}]},
            False,
            "not an image in PNG, JPEG, WEBP or GIF (3 bytes)",
        ),
    ],
)
def test_gemini_without_an_image(api: LoopbackApi, answer: dict[str, Any], refused: bool, reason: str) -> None:
    api.routes[GEMINI] = lambda body: answer
    assert gemini(api).generate(rows("a"), [1]) == [Failure(reason, refused=refused)]


def test_a_thought_is_no_image(api: LoopbackApi) -> None:
    parts = [{"thought": True, "inlineData": {"data": encoded((8, 8))}}, {"text": "Here"}, {"inlineData": {"data": encoded((16, 16))}}]
    api.routes[GEMINI] = lambda body: {"candidates": [{"content": {"parts": parts}}]}
    assert gemini(api).generate(rows("a"), [1])[0].size == (16, 16)


@pytest.mark.parametrize(
    ("status", "error", "refused"),
    [
        (400, {"code": "content_policy_violation", "message": "Your request was rejected."}, True),
        (400, {"code": "moderation_blocked", "message": "…"}, True),
        (422, {"message": "Rejected by our safety system"}, True),
        (400, {"code": "string_above_max_length", "message": "The prompt is too long for this content policy text"}, False),
        (400, {"message": "size must be a string"}, False),
    ],
)
def test_openai_refusals_are_told_from_other_errors(api: LoopbackApi, status: int, error: dict[str, str], refused: bool) -> None:
    api.then([Fault(status, json.dumps({"error": error}))])
    (answer,) = openai(api).generate(rows("a"), [1])
    assert answer.refused is refused
    assert error["message"] in answer.reason
    assert len(api.seen) == 1, "neither is asked again"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"data": []}, "no image in the answer"),
        ({}, "no image in the answer"),
        ({"data": [{"revised_prompt": "x"}]}, "no image in the answer"),
        ({"data": [{"b64_json": "~~~"}]}, "the image is not valid base64"),
        ({"data": [{"b64_json": 5}]}, "the image is a JSON int, not base64 text"),
        ({"data": [{"url": "https://elsewhere.example/x.png"}]}, "the answer holds an address instead of the image"),
    ],
)
def test_openai_without_an_image(api: LoopbackApi, answer: dict[str, Any], reason: str) -> None:
    api.routes[OPENAI] = lambda body: answer
    (failure,) = openai(api).generate(rows("a"), [1])
    assert failure.reason.startswith(reason)
    assert not failure.refused


def test_one_bad_answer_costs_no_other_and_passing_faults_none(api: LoopbackApi) -> None:
    api.then([RATE_LIMITED, BROKEN, Fault(400, '{"error": {"code": "moderation_blocked"}}')])
    answers = openai(api, concurrency="1", attempts="3").generate(rows("a", "b", "c"), [1, 2, 3])
    assert [isinstance(answer, Image.Image) for answer in answers] == [False, True, True]
    assert answers[0].refused


def test_what_concerns_every_request_ends_the_work_and_keeps_what_is_paid(api: LoopbackApi) -> None:
    spent = Fault(429, '{"error": {"code": "insufficient_quota", "message": "no credit"}}')
    # One thread, so that the first row has its image before the credit is gone.
    api.then([Fault(), spent, spent])
    model = openai(api, concurrency="1")
    answers = model.generate(rows("a", "b"), [1, 2])
    assert isinstance(answers[0], Image.Image)
    assert "no credit" in answers[1].reason
    with pytest.raises(InputError, match=r"Check the account's credit; then run the same command again with --retry-failed"):
        model.generate(rows("c"), [3])
    api.then([Fault(400, '{"error": {"message": "API key not valid", "details": [{"reason": "API_KEY_INVALID"}]}}')])
    with pytest.raises(InputError, match="Check the key in PARITY_TEST_KEY"):
        gemini(api).generate(rows("a"), [1])


# Bytes from outside


def test_only_images_within_bounds_are_decoded() -> None:
    for form in ("PNG", "JPEG", "WEBP", "GIF"):
        found = from_base64(encoded(form=form))
        assert isinstance(found, Image.Image)
        assert (found.mode, found.size) == ("RGB", (48, 32))
    assert "is refused; the most are" in _reason(decoded(bomb(9_000)))
    assert f"far more than {MOST_PIXELS:,} pixels" in _reason(decoded(bomb(60_000)))
    whole = base64.b64decode(encoded((300, 300)))
    assert "the image cannot be decoded" in _reason(decoded(whole[: len(whole) // 2]))
    assert "not an image in" in _reason(decoded(b"GET / HTTP/1.1"))
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "TIFF")
    assert "not an image in" in _reason(decoded(buffer.getvalue())), "fewer formats, fewer decoders to trust"


def _reason(found: Image.Image | Failure) -> str:
    assert isinstance(found, Failure)
    return found.reason


# Bad settings


def test_addresses_with_secrets_in_them_are_refused(api: LoopbackApi) -> None:
    for url in ("https://me:pw@images.example/v1", "https://images.example/v1?key=abc"):
        with pytest.raises(InputError, match=r"images\.example has a name, a password or a query in it") as caught:
            public_url(url)
        assert "pw" not in str(caught.value).replace("password", "")
        assert "abc" not in str(caught.value)
    with pytest.raises(InputError, match="expected an address"):
        openai(api, url="ftp://images.example")


def test_bad_settings_are_told(api: LoopbackApi, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="gemini makes no images of the shape 1024 × 100"):
        gemini(api, width="1024", height="100")
    with pytest.raises(InputError, match="give both --set width"):
        ratio(512, None)
    with pytest.raises(InputError, match="expected a JSON object without model, prompt and n"):
        openai(api, extra='{"prompt": "another"}')
    with pytest.raises(InputError, match=r"'\.\./files' is no name of a gemini model"):
        load("gemini:../files", {"url": api.url, "key_variable": "PARITY_TEST_KEY"})
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(InputError, match="GEMINI_API_KEY, which is not set"):
        load("nano-banana", {})


# Through the command


def test_a_run_by_a_service_keeps_refusals_and_no_key(api: LoopbackApi, prompts: Path, tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> dict[str, Any]:
        text = body["contents"][0]["parts"][0]["text"]
        return {"promptFeedback": {"blockReason": "SAFETY"}} if "goat" in text.lower() else gemini_answer()

    api.routes[GEMINI] = answer
    argv = [
        "generate", "--model", "gemini:banana", "--set", f"url={api.url}/v1beta", "--set", "key_variable=PARITY_TEST_KEY",
        "--set", "price=0.039", "--prompts", str(prompts), "--config", "dialect", "--limit", "12", "--out", str(tmp_path / "run"),
    ]  # fmt: skip
    done = command(*argv)
    assert "12 requests to gemini, about $0.47" in done.stderr
    made = Run.open(str(tmp_path / "run")).images().read().to_pylist()
    assert {row["status"] for row in made} == {"ok", "refused"}
    assert {row["reason"] for row in made if row["status"] == "refused"} == {"the prompt was blocked: SAFETY"}
    assert {(row["width"], row["height"]) for row in made if row["status"] == "ok"} == {(48, 32)}
    for path in (tmp_path / "run").rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    asked = len(api.seen)
    assert "requests to" not in command(*argv).stderr
    assert len(api.seen) == asked, "what is there is not paid twice"
    assert "401" in _unauthorised(api, argv, tmp_path)


def _unauthorised(api: LoopbackApi, argv: list[str], tmp_path: Path) -> str:
    api.then([Fault(401, '{"error": {"message": "no"}}')] * 12)
    return error_of(*argv[:-1], str(tmp_path / "other"))
