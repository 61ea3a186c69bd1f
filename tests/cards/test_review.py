"""The review page: nothing on it becomes markup, and in a browser it keeps what was decided and saves it as a file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import becomes, chromium, faults, low_contrast, show, soon

from t2i_parity.cards.review import ReviewItem, review_page
from t2i_parity.dataset_builder.pipelines.review import FORMAT, read_verdicts

EVIL = "</script><script>document.title='owned'</script><b>bold</b>\u202eabc"
QUESTIONS = {"meaning": "Does it mean what the English says?", "culture": "Is it proper?", "fluency": "Is it fluent?"}


def item(name: str, text: str = "قارب أحمر", **more: Any) -> ReviewItem:
    return ReviewItem(name, "0" * 64, "A red boat", text, "ar", "Arabic", "rtl", **more)


def page(kind: str, items: list[ReviewItem]) -> str:
    return review_page(items, kind=kind, title="Review", form=FORMAT, qualities=QUESTIONS if kind == "check" else {})


def test_nothing_that_a_model_wrote_becomes_markup() -> None:
    made = page("corrections", [item(EVIL, EVIL, reasons=(EVIL,), suggestion=EVIL, back_translation=EVIL)])
    assert made.count("</script>") == 2
    assert "<b>bold" not in made
    data = json.loads(made.partition('id="data">')[2].partition("</script>")[0])
    assert data["items"][0]["text"] == EVIL


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


def saved(browser: Any, folder: Path, name: str) -> Path:
    """Press the button and wait for the file."""
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(folder)})
    browser.find_element("id", "save").click()
    assert soon((folder / name).is_file), f"{name} was not saved"
    return folder / name


def progress(browser: Any) -> str:
    return str(browser.find_element("id", "progress").text)


def reopened(browser: Any, file: Path) -> str:
    """The progress when the page is closed and opened again; what it keeps is written by another process, some time later."""
    show(browser, file)
    return progress(browser)


def test_browser_checks_are_kept_and_saved(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page("check", [item("a"), item("b", EVIL)]), encoding="utf-8")
    show(browser, file)
    assert browser.title == "Review"
    assert faults(browser) == []
    assert low_contrast(browser)[1] == []
    browser.find_element("id", "save").click()
    becomes(lambda: progress(browser), "A name first")
    browser.find_element("id", "reviewer").send_keys("Ana")
    for quality, value in (("Does it mean", "true"), ("Is it proper", "true"), ("Is it fluent", "false")):
        browser.find_element("css selector", f'#item-0 input[name^="item0-{quality}"][value="{value}"]').click()
    becomes(lambda: progress(browser), "1 of 2 decided")
    becomes(lambda: reopened(browser, file), "1 of 2 decided")
    assert browser.find_element("css selector", "#item-0 dd[dir=rtl]").get_attribute("lang") == "ar"
    (verdict,) = read_verdicts([saved(browser, tmp_path, "verdicts-check.json")])
    assert (verdict.id, verdict.reviewer, verdict.qualities) == ("a", "Ana", {"meaning": True, "culture": True, "fluency": False})


@pytest.mark.parametrize("width", [400, 1400])
def test_browser_corrections_are_saved(browser: Any, tmp_path: Path, width: int) -> None:
    file = tmp_path / f"page-{width}.html"
    file.write_text(page("corrections", [item(f"a{width}", suggestion="قارب أزرق"), item("b"), item("c")]), encoding="utf-8")
    show(browser, file, width=width)
    assert faults(browser) == []
    browser.execute_script("document.getElementById('reviewer').value = ''")
    browser.find_element("id", "reviewer").send_keys("Bo")
    for number, decision in enumerate(("correct", "keep")):
        browser.find_element("css selector", f'#item-{number} input[value="{decision}"]').click()
    becomes(lambda: progress(browser), "2 of 3 decided")
    found = {verdict.id: verdict for verdict in read_verdicts([saved(browser, tmp_path, "verdicts-corrections.json")])}
    assert found.keys() == {f"a{width}", "b"}
    assert (found[f"a{width}"].decision, found[f"a{width}"].correction) == ("correct", "قارب أزرق")
    assert found["b"].decision == "keep"
