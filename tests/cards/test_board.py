"""The leaderboard: its ranks by hand, its page as text, and the page in a browser over 300 made-up models."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import numpy as np
import pytest
import yaml
from browser import becomes, chromium, faults, low_contrast, show, soon
from sample_board import HOSTILE, LANGUAGES, sample_board
from scipy.stats import norm

from t2i_parity.cards.board import Board, Entry, Value, extreme, in_new_language, places, render, space, worst_group

# Places


def test_places_follow_the_rule_stated_pair_by_pair() -> None:
    rng = random.Random(7)
    for n in (1, 2, 5, 40):
        values = [Value(None) if rng.random() < 0.2 else around(rng.random(), rng.uniform(0.01, 0.2)) for _ in range(n)]
        ranked = [value for value in values if value.value is not None]
        factor = norm.ppf(1 - 0.025 / max(1, len(ranked) - 1)) / norm.ppf(0.975)
        for up in (True, False):
            expected: list[tuple[int, int] | None] = []
            for mine in values:
                if mine.value is None:
                    expected.append(None)
                    continue
                above = sum(ahead(other, mine, factor) for other in ranked if other is not mine)
                below = sum(ahead(mine, other, factor) for other in ranked if other is not mine)
                first, last = (above, below) if up else (below, above)
                expected.append((1 + first, len(ranked) - last))
            assert places(values, higher_is_better=up) == expected


def around(middle: float, half: float) -> Value:
    return Value(middle, middle - half, middle + half)


def ahead(one: Value, other: Value, factor: float) -> bool:
    value, low, theirs, high = (end or 0.0 for end in (one.value, one.low, other.value, other.high))
    return value - theirs > factor * math.hypot(value - low, high - theirs)


def test_equal_numbers_have_equal_places_and_no_interval_gives_no_place() -> None:
    assert places([around(0.5, 0.01), around(0.5, 0.01), around(0.9, 0.01)]) == [(2, 3), (2, 3), (1, 1)]
    assert places([Value(0.5), Value(None)]) == [None, None]


def test_places_hold_the_true_ones() -> None:
    """Nine models, some of them equal, in 400 boards: all places of a model hold its true ones in 95 of 100."""
    truth = np.array([0.5, 0.5, 0.5, 0.52, 0.54, 0.56, 0.56, 0.6, 0.7])
    best, worst = [1 + int((truth > own).sum()) for own in truth], [9 - int((truth < own).sum()) for own in truth]
    rng = np.random.default_rng(0)
    held = np.zeros(9)
    for _ in range(400):
        found = places([around(float(mean), 1.96 * 0.015) for mean in rng.normal(truth, 0.015)])
        held += [each is not None and each[0] <= b and each[1] >= w for each, b, w in zip(found, best, worst, strict=True)]
    assert (held / 400 >= 0.95).all()


def test_places_of_models_that_answered_the_same_prompts_are_paired() -> None:
    """Six models over 200 meanings that are hard for all alike: paired places hold the true ones as often, and are far narrower."""
    truth = np.array([0.5, 0.5, 0.53, 0.56, 0.56, 0.6])
    best, worst = [1 + int((truth > own).sum()) for own in truth], [6 - int((truth < own).sum()) for own in truth]
    rng = np.random.default_rng(2)
    held, width = np.zeros(6), {True: 0, False: 0}
    for _ in range(200):
        rows = truth[:, None] + rng.normal(0, 0.1, 200) + rng.normal(0, 0.1, (6, 200))
        values = [around(float(own.mean()), 1.96 * float(own.std(ddof=1)) / math.sqrt(200)) for own in rows]
        paired = places(values, by_meaning=rows.tolist())
        held += [each is not None and each[0] <= b and each[1] >= w for each, b, w in zip(paired, best, worst, strict=True)]
        for kind, found in ((True, paired), (False, places(values))):
            width[kind] += sum(each[1] - each[0] for each in found if each is not None)
    assert (held / 200 >= 0.94).all()
    assert width[True] < 0.75 * width[False]


def test_what_is_not_over_the_same_meanings_is_not_paired() -> None:
    values = [around(0.5, 0.05), around(0.56, 0.05)]
    one, other = [0.5, 0.4, 0.6, 0.5, 0.5], [0.56, 0.46, 0.66, 0.56, 0.56]
    assert places(values) == [(1, 2), (1, 2)]
    assert places(values, by_meaning=[one * 20, other * 20]) == [(2, 2), (1, 1)]
    for unlike in (other * 19, [None, *other[1:], *other * 19], ()):
        assert places(values, by_meaning=[one * 20, unlike]) == [(1, 2), (1, 2)]
    assert places(values, by_meaning=[one[:4], other[:4]]) == [(1, 2), (1, 2)], "four meanings are too few"
    table = sample_board(3).tables[0]
    whole = [replace(entry, missing=(), by_meaning=one) for entry in table.entries]
    tables = [replace(table, entries=entries) for entries in (whole, [replace(whole[0], by_meaning=()), *whole[1:]])]
    board = replace(sample_board(3), tables=tables)
    assert [each["paired"] for each in data_of(render(board))["tables"]] == [True, False]


def test_a_language_that_is_not_among_them_has_the_places_expected() -> None:
    """Five models in ten languages and an eleventh, over 300 boards: its scores and true order lie within what is expected of it."""
    table = sample_board(5).tables[0]
    rng = np.random.default_rng(3)
    within, placed = 0, 0
    for _ in range(300):
        true = np.array([0.5, 0.52, 0.55, 0.7, 0.8])[:, None] + rng.normal(0, 0.03, (5, 11)) + rng.normal(0, 0.05, 11)
        entries = [
            replace(entry, missing=(), cells={group.code: Value(float(value)) for group, value in zip(LANGUAGES, own[:10], strict=True)})
            for entry, own in zip(table.entries, true, strict=True)
        ]
        order = [1 + int((true[:, 10] > own).sum()) for own in true[:, 10]]
        for found, own, place in zip(in_new_language(replace(table, entries=entries)), true[:, 10], order, strict=True):
            assert found is not None
            within += found[0][0] <= own <= found[0][1]
            placed += found[1][0] <= place <= found[1][1]
    assert 0.93 <= within / 1500 <= 0.97
    assert placed / 1500 >= 0.95
    assert in_new_language(replace(table, entries=[replace(table.entries[0], missing=("x",))])) == [None]
    assert in_new_language(replace(table, axis="country")) == [None] * 5


def test_the_interval_of_the_worst_allows_for_its_having_been_picked() -> None:
    rng = np.random.default_rng(1)
    held, alone = 0, 0
    for _ in range(400):
        cells = [around(float(mean), 1.96 * 0.02) for mean in rng.normal(0.7, 0.02, 10)]
        found = extreme(cells, lowest=True)
        held += (found.low or 1.0) <= 0.7 <= (found.high or 0.0)
        picked = min(cells, key=lambda cell: cell.value or 0.0)
        alone += (picked.low or 0.0) <= 0.7 <= (picked.high or 0.0)
    assert held >= 380
    assert alone < 340, "its own interval would not"
    assert extreme([Value(0.5, 0.4, 0.6), Value(0.2)], lowest=True) == Value(0.2)
    assert extreme([], lowest=True) == Value(None)


def data_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    assert found is not None
    content: dict[str, Any] = json.loads(found.group(1))
    return content


def test_incomplete_and_intervalless_entries_are_not_ranked_and_take_nobodys_place() -> None:
    board = sample_board(30)
    table = board.tables[0]
    bare = replace(table.entries[2], overall=Value(0.9999))
    rows = data_of(render(replace(board, tables=(replace(table, entries=[*table.entries[:2], bare, *table.entries[3:]]),))))["tables"][0][
        "rows"
    ]
    missing = [row for row in rows if row["missing"]]
    assert [row["id"] for row in missing] == ["lab-7/model-7"]
    assert set(map(str, missing[0]["places"].values())) == {"None"}
    assert rows[2]["places"]["overall"] is None
    assert rows[2]["places"]["spread"] is not None
    assert max(row["places"]["overall"][1] for row in rows if row["places"]["overall"]) == 28


def test_shifts_are_ranked_by_their_size() -> None:
    table = next(table for table in sample_board(3).tables if table.direction == "zero")
    less, more = (
        replace(table.entries[0], cells={"AAVE": Value(middle, middle - 1, middle + 1)}, overall=Value(abs(middle), 0, 9))
        for middle in (-8.0, 2.0)
    )
    shown = replace(table, entries=[less, more], groups=table.groups[:1])
    assert worst_group(less, shown) == "AAVE"
    rows = data_of(render(Board("b", "2026-01-01", "s", (shown,))))["tables"][0]["rows"]
    assert [row["places"]["g:AAVE"] for row in rows] == [[2, 2], [1, 1]]


# The files


def test_the_space_has_metadata_and_one_page() -> None:
    files = space(replace(sample_board(3), title='x: "y"\n- z'))
    assert set(files) == {"README.md", "index.html"}
    front = yaml.safe_load(files["README.md"].split("---\n")[1])
    assert front["sdk"] == "static"
    assert front["app_file"] == "index.html"
    assert front["title"] == 'x: "y"\n- z'
    assert front["datasets"] == ["lab/results"]
    assert len(front["short_description"]) <= 60
    assert files == space(replace(sample_board(3), title='x: "y"\n- z'))


def test_nothing_that_somebody_is_called_becomes_markup_or_leaves_its_element() -> None:
    board = sample_board(3)
    table = board.tables[0]
    entry = replace(
        table.entries[0], model=f"lab/{HOSTILE}", submitter=HOSTILE, missing=(HOSTILE,), links=((HOSTILE, "javascript:alert(1)"),)
    )
    html = render(replace(board, title=HOSTILE, notes=(HOSTILE,), source=HOSTILE, tables=(replace(table, title=HOSTILE, entries=[entry]),)))
    assert "<img" not in html
    assert html.count("</script>") == 2
    assert "javascript:" not in html
    assert data_of(html)["tables"][0]["rows"][0]["id"] == f"lab/{HOSTILE}"
    assert "\u202e" not in render(replace(board, title="a\u202eb", notes=("\u202e",)))


def test_an_empty_board_is_a_page() -> None:
    html = render(Board("Empty", "–", "nowhere", ()))
    assert data_of(html)["tables"] == []


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("board") / "index.html"
    file.write_text(render(sample_board()), encoding="utf-8")
    return file


def rows(browser: Any, table: int = 0) -> list[list[str]]:
    """[rank, model, overall, spread, worst] of the visible rows of a table, as text."""
    read = """
    const table = document.querySelectorAll('table.board')[arguments[0]];
    return Array.from(table.querySelectorAll('tr.entry')).filter(r => !r.hidden)
        .map(r => [r.cells[0].textContent, ...arguments[1].map(s => r.querySelector(s)?.textContent ?? '')]);
    """
    found: list[list[str]] = browser.execute_script(read, table, [".called", ".in-overall .value", ".in-spread .value", ".in-worst .whose"])
    return found


def address(browser: Any) -> dict[str, str]:
    fragment = unquote(browser.execute_script("return location.hash").replace("+", " "))
    return {name: values[0] for name, values in parse_qs(fragment.lstrip("#")).items()}


def status(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('status').textContent"))


def worked(browser: Any) -> float:
    """Seconds for which the page's thread has had a processor."""
    metrics = browser.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def entry_of(model: str) -> Entry:
    return next(entry for entry in sample_board().tables[0].entries if entry.model.endswith(f"/{model}"))


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("tab", ["language", "dialect", "country"])
def test_browser_shows_every_tab_without_faults(browser: Any, page: Path, tab: str, width: int) -> None:
    show(browser, page, width=width, fragment=f"#tab={tab}")
    assert faults(browser) == []
    assert browser.find_element("css selector", "[role=tab][aria-selected=true]").get_attribute("data-axis") == tab
    browser.execute_script("document.querySelectorAll('.more')[0]?.click()")
    becomes(lambda: faults(browser), [])
    assert len(rows(browser)) == {"language": 300, "dialect": 24, "country": 9}[tab]


def test_browser_says_where_there_is_nothing_yet(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "empty.html").write_text(render(Board("Empty", "–", "nowhere", ())), encoding="utf-8")
    show(browser, tmp_path / "empty.html", fragment="#tab=country")
    assert faults(browser) == []
    assert browser.find_element("css selector", ".nothing").text == "No results here yet."
    assert not browser.find_element("id", "controls").is_displayed()


def test_browser_draws_300_models_quickly(browser: Any, page: Path) -> None:
    show(browser, page)
    sort = "document.querySelector('thead th:nth-child(4) button').click(); document.body.offsetHeight"
    # In seconds of the page's own thread, which another process that keeps the machine busy does not lengthen.
    browser.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})

    def spent(action: Callable[[], object]) -> float:
        before = worked(browser)
        action()
        return worked(browser) - before

    assert 0 < min(spent(lambda: browser.execute_script(sort)) for _ in range(3)) < 1.5
    show(browser, page)
    assert 0 < worked(browser) < 10, "a page that is loaded anew has a process of its own"


def test_browser_sorts_by_keyboard_and_says_so(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, page)
    assert [header.get_attribute("aria-sort") for header in browser.find_elements("css selector", "th[aria-sort]")] == ["descending"] * 2
    best = [float(row[2]) for row in rows(browser) if not row[0].startswith("–n")]
    assert best == sorted(best, reverse=True)
    header = browser.find_elements("css selector", "thead th")[3]
    assert "Inequality" in header.text
    button = header.find_element("tag name", "button")
    button.send_keys(Keys.ENTER)
    becomes(lambda: header.get_attribute("aria-sort"), "ascending")
    ranked = [row for row in rows(browser) if not row[0].startswith("–n")]
    spread = [float(row[3]) for row in ranked]
    assert spread == sorted(spread)
    becomes(lambda: status(browser), "312 models in 2 tables, sorted by Inequality, best first")
    button.send_keys(Keys.SPACE)
    becomes(lambda: header.get_attribute("aria-sort"), "descending")
    becomes(lambda: (address(browser)["sort"], address(browser).get("order")), ("spread", "reverse"))
    # Incomplete models come last whichever way, each in its own part of the table.
    last = rows(browser)[-sum(bool(entry.missing) for entry in sample_board().tables[0].entries) :]
    assert all(row[0].startswith("–") for row in last)


def test_browser_shows_ties_as_ranges_of_the_sorted_column(browser: Any, page: Path) -> None:
    table = sample_board().tables[0]
    show(browser, page, fragment="#sort=g:hi")
    expected = dict(
        zip(
            [entry.model.split("/")[1] for entry in table.entries],
            places([Value(None) if entry.missing else entry.cells["hi"] for entry in table.entries]),
            strict=True,
        )
    )
    for rank, model, *_ in rows(browser):
        found = expected[model]
        if found is None:
            assert rank == "–not ranked"
        elif found[0] == found[1]:
            assert rank == str(found[0])
        else:
            assert rank == f"{found[0]}–{found[1]}{found[0]} to {found[1]}"
    assert any("to" in row[0] for row in rows(browser))


def test_browser_filters_and_searches_and_keeps_it_in_the_address(browser: Any, page: Path) -> None:
    from selenium.webdriver.support.select import Select

    show(browser, page)
    browser.find_element("id", "search").send_keys("LAB-3 model-2")
    becomes(lambda: address(browser).get("q"), "LAB-3 model-2")
    wanted = [row[1] for row in rows(browser)]
    assert wanted
    assert all(model.startswith("model-2") for model in wanted)
    assert status(browser).startswith(f"{len(wanted) + len(rows(browser, 1))} of 312 models")
    browser.find_element("id", "reset").click()
    assert soon(lambda: status(browser).startswith("312 models"))
    Select(browser.find_element("id", "worst")).select_by_value("hi")
    becomes(lambda: {row[4] for row in rows(browser)}, {"Hindi "})
    browser.find_element("id", "complete").click()
    assert soon(lambda: not any(row[0].startswith("–n") for row in rows(browser)))
    Select(browser.find_element("id", "org")).select_by_value("lab-4")
    becomes(lambda: [address(browser).get(name) for name in ("worst", "complete", "org", "q")], ["hi", "1", "lab-4", None])
    kept = rows(browser)
    kept_at = browser.execute_script("return location.hash")
    show(browser, page, fragment=kept_at)
    becomes(lambda: rows(browser), kept)
    assert browser.find_element("id", "complete").is_selected()
    browser.find_element("id", "search").send_keys("no such model")
    assert soon(lambda: "No model matches" in browser.find_element("css selector", ".nothing:not([hidden])").text)


def test_browser_takes_a_deep_link_whole_and_ignores_nonsense(browser: Any, page: Path) -> None:
    show(browser, page, fragment="#tab=language&score=clip_score.clip_score@lingt2i_content&sort=model&order=reverse&q=lab-1")
    models = [row[1] for row in rows(browser)]
    assert models
    assert len(browser.find_elements("css selector", "table.board")) == 1
    assert status(browser).endswith("sorted by Model, Z to A")
    browser.execute_script("location.hash = '#tab=dialect'")
    assert soon(lambda: "Largest shift" in status(browser)), status(browser)
    show(browser, page, fragment="#tab=nowhere&score=__proto__&sort=constructor&org=%3Cimg%3E&worst=zz&q=%FF&order=1")
    assert faults(browser) == []
    assert address(browser)["tab"] == "language"


def test_browser_keeps_unequal_signatures_apart(browser: Any, page: Path) -> None:
    show(browser, page)
    assert [len(rows(browser, table)) for table in (0, 1)] == [300, 12]
    assert rows(browser, 1)[0][0].startswith("1")
    assert "another signature" in browser.find_element("css selector", ".apart[role=note]").text


def test_browser_opens_details_and_tabs_by_keyboard(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.keys import Keys

    show(browser, page)
    browser.switch_to.active_element.send_keys(Keys.TAB)
    becomes(lambda: browser.switch_to.active_element.text, "Skip to the table")
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    becomes(lambda: browser.switch_to.active_element.get_attribute("id"), "panel")
    button = browser.find_element(
        "css selector", "button.more[aria-label='Details of lab-1/model-1 at 0000000000000000000000000000000000000001']"
    )
    button.send_keys(Keys.ENTER)
    becomes(lambda: button.get_attribute("aria-expanded"), "true")
    detail = browser.find_element("id", button.get_attribute("aria-controls"))
    assert HOSTILE in detail.text
    assert [item.text.split("\n")[0] for item in detail.find_elements("css selector", ".plot-list li")] == [
        group.name for group in LANGUAGES
    ]
    link = detail.find_element("link text", "run record")
    assert link.get_attribute("href") == "https://huggingface.co/datasets/lab-1/run-1"
    assert "noopener" in link.get_attribute("rel")
    assert browser.title == "T2I Parity leaderboard"
    missing = entry_of("model-7")
    assert missing.missing
    tab = browser.find_element("id", "tab-language")
    tab.send_keys(Keys.ARROW_RIGHT)
    becomes(lambda: browser.switch_to.active_element.get_attribute("id"), "tab-dialect")
    becomes(lambda: address(browser)["tab"], "dialect")
    browser.switch_to.active_element.send_keys(Keys.END)
    becomes(lambda: browser.switch_to.active_element.get_attribute("id"), "tab-country")
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"


def test_browser_table_is_one_to_assistive_technology(browser: Any, page: Path) -> None:
    show(browser, page)
    counts = browser.execute_script(
        """
        const t = document.querySelector('table.board');
        const width = Array.from(t.tHead.rows[0].cells).length;
        const rows = Array.from(t.querySelectorAll('tr.entry'));
        const named = e => e.textContent.trim() || e.getAttribute('aria-label') || e.labels?.length;
        return [t.caption.textContent, t.tHead.querySelectorAll('th:not([scope=col])').length,
                rows.every(r => r.cells.length === width && r.querySelectorAll('th[scope=row]').length === 1),
                Array.from(document.querySelectorAll('button, select, input')).every(named),
                document.getElementById('status').getAttribute('aria-live')];
        """
    )
    assert counts == ["Text rendering: precision on lingt2i_text, sorted by Overall, best first", 0, True, True, "polite"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("tab", ["language", "dialect"])
def test_browser_contrast(browser: Any, page: Path, tab: str, scheme: str) -> None:
    show(browser, page, fragment=f"#tab={tab}", scheme=scheme)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(18, 21, 24)") == (scheme == "dark")
    browser.execute_script("document.querySelectorAll('tr.entry .more')[0].click()")
    measured, low = low_contrast(browser)
    assert measured > 300
    assert low == []


def test_browser_moves_nothing_for_those_who_asked_for_that(browser: Any, page: Path) -> None:
    show(browser, page)
    read = "return getComputedStyle(document.querySelector('.quiet')).transitionDuration"
    assert browser.execute_script(read) != "0s"
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]})
    becomes(lambda: browser.execute_script(read), "0s")
