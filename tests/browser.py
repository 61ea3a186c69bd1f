"""A headless Chromium for the tests of pages, and what is asked of every page in it."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds that a state has to come about: a busy machine takes long, and no test passes sooner for a lower bound."""

CHROMIUM = next((path for name in ("chromium", "chromium-browser", "google-chrome", "chrome") if (path := shutil.which(name))), None)
DRIVER = next((path for path in ("/usr/bin/chromedriver", shutil.which("chromedriver")) if path and Path(path).is_file()), None)
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
)  # fmt: skip


@contextmanager
def chromium() -> Iterator[Any]:
    """A driver with its log on; skips the test where there is no Chromium."""
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no Chromium with a driver: needs chromium (or google-chrome) and chromedriver on the path")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for option in (*OPTIONS, f"--user-data-dir={profile}"):
            options.add_argument(option)
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        driver.set_script_timeout(PATIENCE)
        try:
            yield driver
        finally:
            driver.quit()


def soon(read: Callable[[], T], seconds: float = PATIENCE) -> T:
    """What ``read`` gives once that is true, or at last; elements that are not there (any more) are waited for too.

    A page does what it is told when its process gets to it, which on a busy machine is after the next look at it.
    """
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException

    deadline = time.monotonic() + seconds
    while True:
        over = time.monotonic() >= deadline
        try:
            found = read()
        except (NoSuchElementException, StaleElementReferenceException):
            if over:
                raise
        else:
            if found or over:
                return found
        time.sleep(0.02)


def becomes(read: Callable[[], T], expected: T) -> None:
    """Wait until ``read`` gives what is expected."""
    found: list[T] = []

    def right() -> bool:
        found.append(read())
        return found[-1] == expected

    assert soon(right), f"expected {expected!r}, found {found[-1]!r} at last"


def show(browser: Any, page: Path, *, width: int = 1400, fragment: str = "", scheme: str = "light") -> None:
    """Open a page anew, as wide and as dark as told."""
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    )
    browser.get("about:blank")
    browser.get(page.as_uri() + fragment)
    # The size is the renderer's business and comes when it comes; and an image of a data: address is decoded after it is loaded.
    ready = "return innerWidth === arguments[0] && document.readyState === 'complete' && [...document.images].every(i => i.complete)"
    assert soon(lambda: browser.execute_script(ready, width)), "the page did not load"


def faults(browser: Any) -> list[Any]:
    """What no page of ours may do: write to the console, ask for something outside itself, or scroll sideways."""
    found = list(browser.get_log("browser"))
    requests = "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'))"
    found += browser.execute_script(requests)
    wide = browser.execute_script("return [document.documentElement.scrollWidth, document.body.scrollWidth, window.innerWidth]")
    return found + ([] if len(set(wide)) == 1 else [wide])


LOW_CONTRAST = """
// As it is at rest: a colour on its way is neither the one before nor the one after.
document.getAnimations().forEach(animation => animation.finish());
const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
const seen = new Map();
const rgb = css => { if (!seen.has(css)) { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
                     seen.set(css, Array.from(canvas.getImageData(0, 0, 1, 1).data)); } return seen.get(css); };
const light = c => { const f = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
                     return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
const behind = e => { const c = rgb(getComputedStyle(e).backgroundColor); return c[3] ? c : behind(e.parentElement); };
const found = [];
let measured = 0;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length || element.closest('option, :disabled, title, desc')) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(rgb(element.tagName === 'text' ? style.fill : style.color)), light(behind(element))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    measured += 1;
    if (ratio < 4.5) found.push([ratio, walker.currentNode.data]);
}
return [measured, found];
"""


def low_contrast(browser: Any) -> tuple[int, list[tuple[float, str]]]:
    """How many visible texts were measured, and those with a contrast below 4.5 to what is behind them."""
    measured, found = browser.execute_script(LOW_CONTRAST)
    return measured, found
