"""The report's sections beside text rendering and audits: escaped, complete without colour, and readable by machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from sample_report import HOSTILE, RUNS, realistic

from t2i_parity.cards.plots_sections import dots_plot, levels_plot, series_look, shares_plot
from t2i_parity.cards.report import render
from t2i_parity.cards.report_audit import Cell, Row
from t2i_parity.cards.report_data import Report
from t2i_parity.cards.report_sections import Block, Dot, Dots, Levels, Section, Shares
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Interval

BAD = HOSTILE[0] + HOSTILE[1] + HOSTILE[3]
LANGUAGES = [("English", "en"), ("हिन्दी", "hi"), ("Arabic", "ar")]
DOTS = Dots(
    "CLIPScore",
    LANGUAGES,
    ["one", "two"],
    {
        (0, "one"): Dot(0.3, 150, Interval(0.27, 0.33)),
        (0, "two"): Dot(0.25, 150, Interval(0.22, 0.28)),
        (1, "one"): Dot(None, 150),
        (2, "two"): Dot(-0.1, 150, Interval(-0.13, -0.07)),
    },
)
LEVELS = Levels([("TA-C", ""), ("R-T", "")], LANGUAGES, [[0.5, None, 0.25], [0.75, -0.125, 0.0]], 0.75)
SHARES = Shares(LANGUAGES, ["Woman", "Man", "Other"], [[0.75, 0.25, 0.0], [None, None, None], [0.05, 0.0, 0.95]])


def block(title: str, figure: Dots | Levels | Shares | None = None, **more: object) -> Block:
    rows = [
        Row("English", [Cell("Score"), Cell("0.300", "[0.250, 0.350]"), Cell("8"), Cell("1"), *[Cell("–")] * 3], "en"),
        Row("English", [Cell("Other"), *[Cell("–")] * 6], "en"),
        Row(BAD, [Cell(BAD), Cell(BAD, BAD), *[Cell("–")] * 5], BAD),
    ]
    heads = ("Language", "Score", *("Value [interval]", "n", "Missing") * 2)
    made = Block(title, heads, rows, [(Signature("m", {"encoder": "a"}, "1"), "")], "", frozenset({1}), ("one", BAD), 2, figure)
    return replace(made, **more)  # type: ignore[arg-type]


def report() -> Report:
    sections = [
        Section("metric-clip-score", "CLIPScore", ["How well."], [block(BAD, replace(DOTS, axis=BAD, series=["one", BAD]), note=BAD)]),
        Section(
            "analysis-people", "People", ["Who."], [block("a", LEVELS, folded=True), block("b", SHARES, runs=(), leading=8), block("c")]
        ),
    ]
    return Report("t", "now", sections=sections)


class Page(HTMLParser):
    """Tags, ids and table rows, of which each must be closed where it stands."""

    void = ("meta", "link", "img", "input", "br", "hr", "wbr")

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.void:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def attributes(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def html() -> str:
    return render(report())


def test_sections_stand_in_page_and_menu(html: str) -> None:
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.tags if attributes.get("id")]
    assert len(ids) == len(set(ids))
    for link in page.attributes("a"):
        assert str(link["href"]).removeprefix("#") in ids
    assert '<a href="#metric-clip-score"><bdi>CLIPScore</bdi></a>' in html
    assert html.count("<details>") == 1
    assert html.count("Signature of these numbers: <a href=") == 4
    assert render(report()) == html


def test_what_people_wrote_stays_text(html: str) -> None:
    assert "<script" not in html
    assert "<img" not in html
    assert "onerror=" not in html.replace("&lt;img src=x onerror=", "")
    assert "\u202e" not in html


def test_a_table_tells_runs_and_columns_apart(html: str) -> None:
    page = Page(html)
    spans = [each["colspan"] for each in page.attributes("th") if each.get("scope") == "colgroup"]
    assert spans == ["3", "3"] * 3, "the table without runs has no such row"
    assert '<span class="value"><bdi>0.300</bdi></span> <span class="interval"><bdi>[0.250, 0.350]</bdi></span>' in html


@pytest.mark.parametrize(
    ("plot", "shown", "hovers"),
    [
        (dots_plot("a", DOTS, {"one": series_look(0), "two": series_look(1)}, "T", "D"), {"no score": 1},
         {"English, one: 0.300 [0.270, 0.330], n = 150", "Arabic, two: −0.100 [−0.130, −0.070], n = 150"}),
        (levels_plot("b", LEVELS, "T", "D"), {"0.50": 1, "0.75": 1, "−0.12": 1, "–": 1, "0.00": 1}, {"hi, R-T: −0.125"}),
        (shares_plot("c", SHARES, "T", "D"), {"nothing told": 1, "75%": 2, "0%": 1}, {"English, Woman: 75.0%", "Arabic, Other: 95.0%"}),
    ],
)  # fmt: skip
def test_plots_say_their_numbers_and_what_is_missing(plot: object, shown: dict[str, int], hovers: set[str]) -> None:
    for drawing in (plot.wide, plot.narrow):  # type: ignore[attr-defined]
        root = ElementTree.fromstring(drawing)
        assert root.get("role") == "img"
        named = {each.get("id") for each in root if each.tag in ("title", "desc")}
        assert set(str(root.get("aria-labelledby")).split()) == named
        texts = [each.text for each in root.iter("text")]
        for text, count in shown.items():
            assert texts.count(text) == count, (text, texts)
        assert hovers <= {each.text for each in root.iter("title")}
        assert "#0" not in drawing.replace("#060", ""), "a colour that is no variable would not follow light and dark"


def test_a_run_looks_the_same_everywhere() -> None:
    plain = realistic()
    dots = Dots("x", LANGUAGES, [RUNS[1], "another"], {(0, RUNS[1]): Dot(0.5, 9), (0, "another"): Dot(0.5, 9)})
    more = replace(plain, sections=[Section("s", "S", [], [block("t", dots, runs=(RUNS[1], "another"))])])
    legend = render(more).split('<section id="s"')[1].split("</ul>")[0]
    mark = render(plain).split(f"<bdi>{RUNS[1]}</bdi>")[0].rsplit("<svg", 1)[1]
    assert mark in legend
    marks = [each.split("</svg>")[0] for each in legend.split("<svg")[1:]]
    assert len(set(marks)) == 2
