"""An audit's sections on the page and in the console: escaped, complete without colour, and readable by machines."""

from __future__ import annotations

import io
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from rich.console import Console
from sample_report import HOSTILE

from t2i_parity.cards.plots import heat_map
from t2i_parity.cards.report import console_tables, render
from t2i_parity.cards.report_audit import AuditSection, AuditTable, Cell, HeatMap, Row, merged
from t2i_parity.cards.report_data import Report
from t2i_parity.metrics._common import Signature

HEAT = HeatMap(
    "ΔFPR of a filter", ["Animals", "Weapons and Conflicts", HOSTILE[0]], ["AAVE", "IndE"], [[12.5, None], [-3.0, 0.0], [40.0, -0.01]],
    [["differs", None], ["equivalent", "undecided"], ["differs", "not measured"]],
)  # fmt: skip


def table(title: str, heat: HeatMap | None = None) -> AuditTable:
    rows = [
        Row("Indian English", [Cell("toxic"), Cell("60"), Cell("+12.5", "[+1.0, +20.0]", "▲")], "IndE"),
        Row("Indian English", [Cell("benign"), Cell("58"), Cell("–")], "IndE"),
        Row(HOSTILE[0], [Cell(HOSTILE[1]), Cell("1"), Cell(HOSTILE[2])]),
    ]
    return AuditTable(
        title, ("Variety", "Prompts", "n", "Δ pp"), rows, [Signature("m", {"filter": "f"}, "1")], HOSTILE[1], frozenset({1}), heat
    )


def report() -> Report:
    sections = [
        AuditSection("scores", "Filters’ scores", ["How far scores move."], [table(HOSTILE[0]), table("one [bold]two[/bold]")]),
        AuditSection("categories", "By category", ["Cells."], [table("ΔFPR of a filter", HEAT)]),
        AuditSection("scores", "Filters’ scores", ["How far scores move."], [table("of another run")]),
    ]
    return Report("t", "now", audit_sections=sections)


class Found(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_what_people_wrote_is_text_on_the_page() -> None:
    page = render(report())
    found = Found(page)
    assert not [tag for tag, _ in found.tags if tag in ("script", "img", "iframe", "object")]
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    ids = [str(attributes["id"]) for _, attributes in found.tags if "id" in attributes]
    assert len(ids) == len(set(ids)), "ids are unique"
    assert {"scores", "categories"} <= set(ids)
    targets = {
        str(attributes["href"])[1:] for tag, attributes in found.tags if tag == "a" and str(attributes.get("href", "")).startswith("#")
    }
    assert targets <= set(ids), targets - set(ids)
    assert page.count('id="scores"') == 1, "sections of one key are one"
    assert "of another run" in page


def test_tables_say_what_they_are_and_where_from() -> None:
    found = Found(render(report()))
    regions = [attributes for tag, attributes in found.tags if tag == "div" and attributes.get("role") == "region"]
    assert len(regions) == 4
    assert all(attributes["tabindex"] == "0" for attributes in regions)
    groups = [attributes for tag, attributes in found.tags if tag == "th" and attributes.get("scope") == "rowgroup"]
    assert [attributes["rowspan"] for attributes in groups] == ["2", "1"] * 4
    words = "".join(found.words)
    assert words.count("Signature of these numbers") == 4
    assert "m|filter:f|v:1" in words
    assert "The same numbers as a table" in words


def test_a_heat_map_has_a_text_beside_its_colours() -> None:
    plot = heat_map("h", HEAT, HEAT.title, "3 rows by 2 columns.")
    assert plot == heat_map("h", HEAT, HEAT.title, "3 rows by 2 columns."), "the same drawing, the same bytes"
    for drawn in (plot.wide, plot.narrow):
        root = ElementTree.fromstring(drawn)
        assert root.attrib["role"] == "img"
        assert root.attrib["aria-labelledby"]
        texts = ["".join(element.itertext()).strip() for element in root.iter("text")]
        for told in ("+12.5 *", "−3.0 ≈", "0.0", "+40.0 *", "0.0 ?", "–", "AAVE"):
            assert told in texts, (told, texts)
        titles = ["".join(element.itertext()) for element in root.iter("title")]
        assert "Animals, AAVE: +12.5 pp" in titles
        assert "var(--s1)" in drawn
        assert "var(--s0)" in drawn
        assert "#0" not in drawn.replace("#h-", ""), "every colour follows the page"


@pytest.mark.parametrize("width", [100, 120])
def test_the_console_shows_the_same_tables(width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    for made in console_tables(report()):
        console.print(made)
    text = console.export_text()
    assert "[bold]two[/bold]" in text, "brackets are text"
    assert "▲ +12.5 [+1.0, +20.0]" in text
    assert "+12.5 *" in text
    assert "−3.0 ≈" in text
    assert "\u202e" not in text


def test_sections_of_several_runs_stand_together() -> None:
    assert [(section.key, len(section.tables)) for section in merged(report().audit_sections)] == [("scores", 3), ("categories", 1)]
