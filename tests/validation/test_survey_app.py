"""The survey as people meet it: in a browser, in two languages, with a server that is killed; and as a Space over a hub."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from browser import PATIENCE, becomes, chromium, low_contrast, soon
from commands import error_of
from loopback_hub import LoopbackHub
from survey_studies import Server, free_port, start, study_run, survey

from t2i_parity.validation.survey.ratings import TRICKS, excluded, read_ratings
from t2i_parity.validation.survey.texts import texts

IMAGES = 8
TOTAL = IMAGES + 4 + 4 + 1
"""Images, trick questions, two models' realism in two conditions, its influence."""
COUNTRIES = ("IND", "EGY")
SIZES = {"phone": (390, 844), "desktop": (1280, 800)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("runs")
    for model in ("secret-one", "secret-two"):
        study_run(folder / model, model, COUNTRIES)
    return [str(folder / model) for model in ("secret-one", "secret-two")]


def ask(server: Server, path: str, body: Any = None, *, method: str = "POST", raw: bytes | None = None, token: str = "") -> tuple[int, Any]:
    """Status and JSON (or text) of an answer."""
    content = raw if raw is not None else None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {token}"}
    request = urllib.request.Request(server.url + path, data=content, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            text, status = answer.read().decode(), answer.status
    except urllib.error.HTTPError as error:
        text, status = error.read().decode(), error.code
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text


class Participant:
    """Somebody at a tab of the browser, who uses the keyboard."""

    def __init__(self, browser: Any, server: Server, language: str, size: str, rate: Callable[[str], int]) -> None:
        self.browser, self.url, self.language, self.size, self.rate = browser, server.url, language, size, rate
        browser.switch_to.new_window("tab")
        self.tab = browser.current_window_handle
        self.given: list[int] = []
        self.code = ""
        self.here()

    def here(self) -> None:
        self.browser.switch_to.window(self.tab)
        width, height = SIZES[self.size]
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def element(self, selector: str) -> Any:
        return self.browser.find_element("css selector", selector)

    def shown(self, selector: str) -> Any:
        assert soon(lambda: self.element(selector).is_displayed()), (selector, self.element("#alert").text)
        return self.element(selector)

    def press(self, selector: str) -> None:
        """By the keyboard: where a click lands depends on what has been drawn by then."""
        self.element(selector).send_keys("\n" if self.element(selector).tag_name == "button" else " ")

    def open(self) -> None:
        from selenium.webdriver.support.ui import Select

        self.here()
        self.browser.get(self.url)
        Select(self.shown("#language")).select_by_value(self.language)
        self.looks_right()

    def begin(self, country: str) -> None:
        from selenium.webdriver.support.ui import Select

        self.open()
        self.press("#start .main")
        becomes(lambda: self.element("#alert").text, texts(self.language)["error_country"])
        Select(self.element("#country")).select_by_value(country)
        self.press("#lived")
        self.press("#start .main")
        becomes(lambda: self.element("#alert").text, texts(self.language)["error_consent"])
        self.press("#agree")
        self.press("#start .main")
        self.code = self.shown("#code-shown").text
        self.looks_right()
        self.press("#continue")
        self.shown("#ask")

    def resume(self) -> None:
        """From nothing but the code, as somebody types it."""
        self.browser.execute_script("sessionStorage.clear()")
        self.open()
        self.element("#code").send_keys("0000-0000-0000-0000\n")
        becomes(lambda: self.element("#alert").text, texts(self.language)["error_code"])
        self.element("#code").clear()
        self.element("#code").send_keys(self.code.lower().replace("-", " ") + "\n")
        self.shown("#ask")

    @property
    def order(self) -> int:
        return int(self.browser.execute_script("return document.body.dataset.order ?? -1"))

    def type(self) -> None:
        """A rating and Enter, on the keyboard alone."""
        rating = self.rate(self.element("#asked").text)
        self.given.append(rating)
        self.browser.switch_to.active_element.send_keys(str(rating))
        becomes(lambda: self.element("#scale input:checked").get_attribute("value"), str(rating))
        self.browser.switch_to.active_element.send_keys("\n")

    def answer(self) -> None:
        self.here()
        before = self.order
        if before in (0, TOTAL - 5, TOTAL - 1):
            self.looks_right()
        self.type()
        becomes(lambda: self.order, before + 1)

    def looks_right(self) -> None:
        """Direction, contrast, no sideways scrolling; a question fits on the screen."""
        assert self.browser.execute_script("return document.documentElement.dir") == ("rtl" if self.language == "ar" else "ltr")
        measured, low = low_contrast(self.browser)
        assert measured
        assert not low
        wide = self.browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide[0] <= wide[1]
        if self.element("#ask").is_displayed():
            assert self.element("#next").rect["y"] + self.element("#next").rect["height"] <= SIZES[self.size][1]
            boxes = [label.rect["x"] for label in self.browser.find_elements("css selector", "#scale label")]
            assert boxes == sorted(boxes, reverse=self.language == "ar")

    def finish(self) -> None:
        self.here()
        while self.order < TOTAL:
            self.answer()
        self.shown("#done")
        self.looks_right()

    def asked_nobody_else(self) -> None:
        self.here()
        script = "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'))"
        assert all(name.startswith(self.url) for name in self.browser.execute_script(script))
        source = self.browser.page_source
        assert not re.search(r"secret-|unspecified|image_id|trick-", source)


def careful(language: str) -> Callable[[str], int]:
    """Somebody who sees what the trick pictures show."""

    def rate(asked: str) -> int:
        for noun, trick in TRICKS.items():
            if texts(language)[f"noun_{noun}"] in asked and "house" not in asked:
                return 5 if trick.high else 1
        return 2 + len(asked) % 3

    return rate


def test_two_people_take_part_in_two_languages_while_the_server_is_killed(runs: list[str], tmp_path: Path) -> None:
    out, port = tmp_path / "ratings", free_port()
    arguments = [*runs, "--country", "IND", "--country", "EGY", "--out", out, "--per-participant", IMAGES]
    with chromium() as browser:
        with survey(*arguments, port=port) as server:
            english = Participant(browser, server, "en", "desktop", careful("en"))
            arabic = Participant(browser, server, "ar", "phone", lambda asked: 3)
            english.begin("IND")
            arabic.begin("EGY")
            for _ in range(4):
                english.answer()
                arabic.answer()
            server.kill()
            # An answer on its way when the server dies is told to be safe, and sent until it arrives.
            english.here()
            english.type()
            becomes(lambda: english.element("#alert").text, texts("en")["error_lost"])
        assert len(read_ratings(str(out))) == 8
        with survey(*arguments, port=port) as server:
            becomes(lambda: english.order, 5)
            arabic.here()
            arabic.resume()
            becomes(lambda: arabic.order, 4)
            # The same tab goes on by itself after a reload, in its language.
            for person, order in ((arabic, 4), (english, 5)):
                person.here()
                browser.refresh()
                becomes(lambda person=person: person.order, order)
                person.looks_right()
            for _ in range(3):
                english.answer()
                arabic.answer()
            english.finish()
            arabic.finish()
            english.asked_nobody_else()
            arabic.asked_nobody_else()
            keeper_sees(browser, server)
            messages = [entry for entry in browser.get_log("browser") if "survey/" not in entry["message"]]
            assert not messages
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE) == 0
    table = read_ratings(str(out)).sort_by("order")
    assert not list(out.glob("ratings/*.jsonl"))
    by_country = {country: [row for row in table.to_pylist() if row["country"] == country] for country in COUNTRIES}
    for country, person in (("IND", english), ("EGY", arabic)):
        rows = by_country[country]
        assert [row["order"] for row in rows] == list(range(TOTAL))
        assert [row["rating"] for row in rows] == person.given
        assert {row["interface_language"] for row in rows} == {person.language}
        assert {row["model"] for row in rows if row["question"] == "realism"} == {"secret-one", "secret-two"}
        conditions = [row["condition"] for row in rows if row["question"] == "representativeness"]
        assert sorted(conditions) == ["country"] * 4 + ["unspecified"] * 4
    assert set(excluded(table)) == {by_country["EGY"][0]["participant"]}
    assert len(table) == 2 * TOTAL


def keeper_sees(browser: Any, server: Server) -> None:
    def told() -> str:
        rows = [row.text.split("\n") for row in browser.find_elements("css selector", "#rows tr")]
        return " ".join(" ".join(row) for row in rows)

    browser.get(server.url + "keeper")
    browser.find_element("css selector", "#token").send_keys("wrong\n")
    assert soon(lambda: "not the keeper" in browser.find_element("css selector", "#alert").text)
    browser.find_element("css selector", "#token").clear()
    browser.find_element("css selector", "#token").send_keys(server.keeper + "\n")
    assert soon(lambda: "India 1 / 20 1 1 0 17" in told()), told()
    assert "Egypt 0 / 20 1 1 1 17" in told(), told()
    browser.get_log("browser")


def test_the_server_gives_nothing_else_away(runs: list[str], tmp_path: Path) -> None:
    with survey(*runs, "--country", "IND", "--out", tmp_path / "ratings", "--per-participant", 2, "--completion-code", "C0DE") as server:
        status, page = ask(server, "", method="GET")
        assert status == 200
        assert not re.search(r"secret-one|https?://(?!www.w3.org)", page)
        # Two images, four trick questions, the realism of each in its own condition, and its influence.
        assert '"questions":9,' in page
        for path in (
            "config",
            "gradio_api/info",
            "gradio_api/upload",
            "gradio_api/file=x",
            "docs",
            "openapi.json",
            "theme.css",
            "../run.json",
        ):
            for method in ("GET", "POST"):
                assert ask(server, path, {} if method == "POST" else None, method=method)[0] in (404, 413), path
        assert ask(server, "keeper/progress", {}, token="")[0] == 403
        assert ask(server, "keeper/progress", {}, token="é")[0] == 403
        assert ask(server, "keeper/progress", {}, token=server.keeper)[1]["total"]["started"] == 0
        # What is no proper request changes nothing.
        consent = {"country": "IND", "lived": True, "agree": True}
        assert ask(server, "survey/start", {**consent, "agree": False})[0] == 422
        assert ask(server, "survey/start", {**consent, "name": "Ada"})[0] == 422
        assert ask(server, "survey/start", {**consent, "country": "EGY"}) == (400, {"error": "error_country"})
        assert ask(server, "survey/start", raw=b"x" * 5000)[0] == 413
        assert ask(server, "survey/start", raw=b"{")[0] == 422
        assert ask(server, "survey/resume", {"code": "0000-0000-0000-0000"}) == (404, {"error": "error_code"})
        status, begun = ask(server, "survey/start", consent)
        assert status == 200
        assert begun["state"]["total"] == 9
        answer = {"code": begun["code"], "order": 0, "rating": 3, "language": "hi"}
        for wrong in ({"rating": 6}, {"rating": "3"}, {"rating": 3.5}, {"order": -1}, {"order": True}, {"more": 1}):
            assert ask(server, "survey/answer", {**answer, **wrong})[0] == 422, wrong
        assert ask(server, "survey/answer", {**answer, "order": 1})[0] == 409
        assert ask(server, "survey/answer", answer)[1]["state"]["done"] == 1
        assert ask(server, "survey/answer", {**answer, "rating": 5})[1]["state"]["done"] == 1
        for order in range(1, begun["state"]["total"]):
            status, told = ask(server, "survey/answer", {**answer, "order": order, "rating": None})
        assert told["state"]["kind"] == "done"
        assert told["state"]["completion"] == "C0DE"
    assert read_ratings(str(tmp_path / "ratings"))["rating"].to_pylist()[0] == 3


def test_a_space_keeps_its_ratings_on_the_hub(runs: list[str], tmp_path: Path) -> None:
    from commands import command

    command("survey", *runs, "--country", "EGY", "--space", tmp_path / "made", "--ratings-hub", "lab/ratings", "--per-participant", 2)
    space = tmp_path / "made" / "space"
    assert not [path for path in space.rglob("*") if path.is_file() and b"secret-one" in path.read_bytes()]
    with LoopbackHub() as hub:
        hub.create("dataset", "lab/ratings", {"pictures.parquet": (tmp_path / "made/dataset/pictures.parquet").read_bytes()}, private=True)
        port = free_port()
        environment = {
            **hub.client_environment(tmp_path), "T2I_PARITY_SURVEY_SECRET": "only the keeper knows this", "GRADIO_SERVER_PORT": str(port),
        }  # fmt: skip

        def run(disk: str) -> Server:
            return start(
                port=port,
                program=[sys.executable, "app.py"],
                cwd=space,
                env={**environment, "T2I_PARITY_SURVEY_FOLDER": str(tmp_path / disk)},
            )

        def stop(server: Server) -> None:
            server.process.send_signal(signal.SIGTERM)
            assert server.process.wait(PATIENCE) == 0

        server = run("disk-1")
        _, begun = ask(server, "survey/start", {"country": "EGY", "lived": True, "agree": True})
        answer = {"code": begun["code"], "rating": 2, "language": "ar"}
        for order in range(3):
            assert ask(server, "survey/answer", {**answer, "order": order})[0] == 200
        stop(server)
        # The next machine has an empty disk.
        server = run("disk-2")
        status, told = ask(server, "survey/resume", {"code": begun["code"]})
        assert (status, told["state"]["done"]) == (200, 3)
        for order in range(3, told["state"]["total"]):
            assert ask(server, "survey/answer", {**answer, "order": order})[0] == 200
        stop(server)
        repo = hub.repository("dataset", "lab/ratings")
        assert repo.private
        there = repo.files()
    assert not [path for path in there if path.startswith(".") or "/." in path or "secret" in path.rsplit("/", 1)[-1]]
    for path, content in there.items():
        (tmp_path / "hub" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "hub" / path).write_bytes(content)
    (tmp_path / "hub" / "pictures.parquet").unlink()
    table = read_ratings(str(tmp_path / "hub"))
    assert sorted(table["order"].to_pylist()) == list(range(told["state"]["total"]))


def test_what_cannot_be_surveyed_is_refused_in_one_paragraph(runs: list[str], tmp_path: Path) -> None:
    out = tmp_path / "ratings"
    assert "--country ALPHA3" in error_of("survey", *runs, "--out", out)
    assert "'XXX'" in error_of("survey", *runs, "--out", out, "--country", "XXX")
    assert "either --out" in error_of("survey", *runs, "--country", "IND")
    assert "--ratings-hub" in error_of("survey", *runs, "--country", "IND", "--space", tmp_path / "space")
    assert "NAMESPACE/NAME" in error_of("survey", *runs, "--country", "IND", "--out", out, "--ratings-hub", "ratings")
    assert "the hub does not take the ratings" in error_of(
        "survey", *runs, "--country", "IND", "--out", out, "--ratings-hub", "lab/ratings"
    )
    assert "names JPN" in error_of("survey", *runs, "--country", "JPN", "--out", out)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("", encoding="utf-8")
    full = error_of("survey", *runs, "--country", "IND", "--space", tmp_path / "full", "--ratings-hub", "lab/ratings")
    assert "is not empty" in full
