"""The survey as a web app: Gradio's server mode, which runs on a laptop and as a Space alike, with pages of our own.

Gradio's own page is not used: it asks other hosts for scripts and fonts, which would tell them who takes part. Of its routes only the one
that its start needs is let through; uploads, files and everything else answer 404.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Literal

from fastapi import Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.survey import Page, keeper_page, participant_page
from t2i_parity.dataset_builder.countries import local_name
from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.dataset_builder.languages import language
from t2i_parity.validation.survey.service import DeclinedError, Survey
from t2i_parity.validation.survey.storage import normal_code
from t2i_parity.validation.survey.study import minutes
from t2i_parity.validation.survey.texts import direction, inside, interface_languages, spoken, texts

MAX_BODY = 4096
"""Bytes of the largest request that is read."""
ROUTES = {
    "/": ("GET", "HEAD"),
    "/survey/start": ("POST",),
    "/survey/resume": ("POST",),
    "/survey/answer": ("POST",),
    "/keeper": ("GET",),
    "/keeper/progress": ("POST",),
    "/gradio_api/startup-events": ("GET",),
}
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex, nofollow",
}

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Start(_Body):
    """Somebody wants to take part: country, and that both boxes are ticked."""

    country: str = Field(max_length=3)
    lived: Literal[True]
    agree: Literal[True]


class Resume(_Body):
    """Somebody goes on, by code."""

    code: str = Field(max_length=64)


class Answer(_Body):
    """An answer: which question of the participant's own order, and the rating, or null where they cannot answer."""

    code: str = Field(max_length=64)
    order: int = Field(ge=0, le=100_000)
    rating: int | None = Field(ge=1, le=5)
    language: str = Field(max_length=8)


class Guard:
    """Lets through what the survey needs, in requests of a sane size, and adds the headers that keep answers private."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        path = scope["path"].removeprefix(scope.get("root_path", "")) or "/"
        if scope["method"] not in ROUTES.get(path, ()):
            await JSONResponse({"error": "error_other"}, 404)(scope, receive, send)
            return
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if not length.isdigit() or int(length) > MAX_BODY:
            await JSONResponse({"error": "error_other"}, 413)(scope, receive, send)
            return
        read = 0

        async def limited() -> Scope:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > MAX_BODY:
                return {"type": "http.disconnect"}
            return message

        async def headed(message: Scope) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *((k.encode(), v.encode()) for k, v in HEADERS.items())]
            await send(message)

        await self.app(scope, limited, headed)


def application(survey: Survey) -> Any:
    """The app (a ``gradio.Server``): routes that are as thin as can be over :class:`Survey`."""
    # Before gradio is imported: it counts its uses at home otherwise.
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    gradio = require("gradio", package="gradio", extra="survey")
    if not hasattr(gradio, "Server"):
        raise InputError(
            f"this needs gradio.Server, which gradio {gradio.__version__} does not have. Install a newer one: pip install --upgrade gradio"
        )
    app = gradio.Server(title="Survey", docs_url=None, redoc_url=None, openapi_url=None)
    data = _data(survey)
    pages = {
        code: participant_page({**data, "language": code}, title=texts(code)["title"], language=code) for code in interface_languages()
    }
    keeper = keeper_page({"names": {country: local_name(country, "en") for country in survey.settings.countries}})

    def send(page: Page) -> Response:
        return HTMLResponse(page.html, headers={"Content-Security-Policy": page.policy})

    def index(request: Request) -> Response:
        return send(pages[spoken(request.headers.get("accept-language", ""))])

    def start(body: Start) -> JsonObject:
        code, session = survey.begin(body.country)
        return {"code": code, "state": survey.state(session)}

    def resume(body: Resume) -> JsonObject:
        session = survey.find(body.code)
        return {"code": normal_code(body.code), "state": survey.state(session)}

    def answer(body: Answer) -> JsonObject:
        session = survey.find(body.code)
        survey.answer(session, body.order, body.rating, body.language)
        return {"state": survey.state(session)}

    def progress(request: Request) -> Response:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or not survey.secret.is_keeper(token.strip()):
            return JSONResponse({"error": "not the keeper's token"}, 403)
        return JSONResponse(survey.progress())

    async def refused(request: Request, error: Exception) -> Response:
        return JSONResponse({"error": str(error)}, error.status if isinstance(error, DeclinedError) else 500)

    app.get("/")(index)
    app.head("/")(index)
    app.post("/survey/start", response_model=None)(start)
    app.post("/survey/resume", response_model=None)(resume)
    app.post("/survey/answer", response_model=None)(answer)
    app.get("/keeper")(lambda: send(keeper))
    app.post("/keeper/progress", response_model=None)(progress)
    app.exception_handler(DeclinedError)(refused)
    app.add_middleware(Guard)
    return app


def _data(survey: Survey) -> JsonObject:
    """What the page holds from the beginning. Nothing in it tells of models, conditions, or which questions are tricks."""
    countries = survey.settings.countries
    questions = max(len(survey.settings.design.plan(survey.pictures, country, "")) for country in countries)
    return {
        "languages": [{"code": each, "name": language(each).native_name, "direction": direction(each)} for each in interface_languages()],
        "texts": {each: dict(texts(each)) for each in interface_languages()},
        "countries": list(countries),
        "names": {each: {country: local_name(country, each) for country in countries} for each in interface_languages()},
        "inside": {each: {country: inside(country, each) for country in countries} for each in interface_languages()},
        "questions": questions,
        "minutes": minutes(questions),
    }
