"""The report: what it shows, what it never does, and how it behaves in a browser."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from browser import becomes, chromium, show, soon
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from rich.console import Console
from sample_report import AUDIT, GAP, HOSTILE, LANGUAGES, NOTHING, PRECISION, RUNS, realistic, rendering, score, side

from t2i_parity.cards.plots import forest_limit, latin, styles
from t2i_parity.cards.report import console_tables, difference, lead_of, render, visible
from t2i_parity.cards.report_data import Audit, Report, Sample, VarietyAudit
from t2i_parity.metrics._common import Signature

VOID = {"meta", "link", "img", "input", "br", "hr", "wbr"}


class Page(HTMLParser):
    """A page as its start tags, texts and table cells; an end tag that closes nothing is an error, as are two equal ids."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[tuple[str, ...], str]] = []
        self.rows: list[list[str]] = []
        self.cell: list[str] | None = None
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.cell = []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()
        if tag in ("td", "th"):
            self.rows[-1].append(" ".join("".join(self.cell or []).split()))
            self.cell = None

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))
        if self.cell is not None:
            self.cell.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(data for path, data in self.texts if "style" not in path).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def report() -> Report:
    return realistic()


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return render(report)


@pytest.fixture(scope="module")
def page(html: str) -> Page:
    return Page(html)


def hostile(report: Report) -> Report:
    """The same report with harmful text in every field that people or models fill."""
    bad = HOSTILE[0] + HOSTILE[1] + HOSTILE[3]
    runs = [
        replace(
            each,
            run=each.run + bad,
            model=bad,
            reader=bad,
            signature=Signature("m", {"field": bad, str(number): bad}, bad),
            languages=[replace(language, code=language.code + bad, name=bad, native_name=bad) for language in each.languages],
        )
        for number, each in enumerate(report.renderings)
    ]
    audits = [
        replace(
            each, run=bad, filter=bad, subset=bad, reference=bad, signature=Signature(bad, {}, bad),
            varieties=[replace(variety, code=variety.code + bad, name=bad) for variety in each.varieties],
        )
        for each in report.audits
    ]  # fmt: skip
    samples = [
        replace(each, run=bad, image_id=bad, language=bad, direction=bad, wanted=bad, read=bad[::-1], status=bad, reason=bad)
        for each in report.samples
    ]
    return Report(bad, bad, runs, audits, samples, [bad], [(bad, bad)])


# What never happens


def test_same_report_same_page(report: Report, html: str) -> None:
    assert render(report) == html


def test_asks_for_nothing_outside(page: Page, html: str) -> None:
    for tag, attributes in page.tags:
        for key in ("src", "href", "xlink:href", "srcset", "action", "data", "poster"):
            value = attributes.get(key)
            assert value is None or value.startswith(("data:", "#")), (tag, key, value)
        assert not [key for key in attributes if key.startswith("on")], (tag, attributes)
    assert not page.all("script")
    assert not re.search(r"@import|url\((?!#)", html)
    policy = next(each["content"] for each in page.all("meta") if each.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'unsafe-inline';")
    assert "script-src" not in policy


def test_every_fragment_leads_somewhere_and_ids_are_unique(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for value in (attributes.get("href"), attributes.get("clip-path")):
            if value and "#" in value:
                assert value.partition("#")[2].rstrip(")") in ids
        for key in ("aria-labelledby", "for"):
            assert set((attributes.get(key) or "").split()) <= set(ids)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(report: Report, text: str) -> None:
    html = render(
        replace(report, title=text, notes=[text], records=[(text, text)], samples=[replace(report.samples[0], wanted=text, read=None)])
    )
    page = Page(html)
    assert not page.all("script")
    assert all(each.get("src", "").startswith("data:") for each in page.all("img"))  # type: ignore[union-attr]
    assert "".join(data for path, data in page.texts if path[-1:] == ("title",) and "svg" not in path) == visible(text)
    assert "".join(data for path, data in page.texts if "pre" in path) == visible(text)
    assert not set("\u202e\u2066\x1b\x00") & set(html)


def test_hostile_text_everywhere(report: Report, page: Page) -> None:
    harmed = Page(render(hostile(report)))
    for _, attributes in harmed.tags:
        assert not [key for key in attributes if key.startswith("on")]
    assert {tag for tag, _ in harmed.tags} <= {tag for tag, _ in page.tags}
    assert all(each.get("dir") in ("ltr", "rtl", None) for _, each in harmed.tags)
    for plot in re.findall(r"<svg viewBox.*?</svg>", render(hostile(report)), re.S):
        ElementTree.fromstring(plot)


def test_untrusted_text_is_isolated(report: Report, page: Page) -> None:
    for sample in report.samples:
        for text in (sample.run, sample.image_id):
            assert all("bdi" in path or "title" in path for path, data in page.texts if data == visible(text))
    texts = [attributes for tag, attributes in page.tags if tag == "p" and attributes.get("class") == "text"]
    assert {"lang": "ar", "dir": "rtl", "class": "text"} in texts
    assert {"lang": "hi", "dir": "ltr", "class": "text"} in texts


# What is shown


def test_every_number_has_n_and_interval(page: Page) -> None:
    numbers = re.compile(r"^(\d\.\d{3}) \[(\d\.\d{3}), (\d\.\d{3})\]")
    header = page.rows[0]
    spread = ["Spread over languages", "Std as published", "Lowest mean as published", "Highest mean as published"]
    assert header == ["Run", "Precision", "n", "Missing", *spread]
    for row in page.rows[1:4]:
        assert numbers.match(row[1])
        assert row[2].isdigit()
        assert numbers.match(row[4])
        assert re.fullmatch(r"\d\.\d{3}n = \d+", row[5])
        assert re.search(r"\[.*\], n = \d+$", row[6])
        assert re.search(r"\[.*\], n = \d+$", row[7])
    cells = [row[-6:] for row in page.rows if len(row) in (7, 8) and row[-7].startswith("glyph") and row not in page.rows[1:4]]
    assert len(cells) == 3 * (len(LANGUAGES) + 1)
    for *scores, n, missing in cells:
        assert n.isdigit()
        assert missing.isdigit()
        for cell in scores:
            assert (cell == "–") == (n == "0")
            assert cell == "–" or numbers.match(cell)


def test_the_first_screen_names_a_language_only_against_a_language_blind_model(report: Report, page: Page) -> None:
    leads = {each.run: lead_of(each) for each in report.renderings}
    assert leads[RUNS[0]].headline == "All 10 languages are served alike, within the margin."
    assert leads[RUNS[1]].headline == "Served worse than the others: Hindi."
    assert [line.kind for line in leads[RUNS[2]].lines] == ["differs", "equivalent", "not measured", "undecided"]
    assert leads[RUNS[2]].lines[-1].text.endswith("would look the same: no calibration of it was given")
    held = replace(report.renderings[2], calibrated=True)
    assert lead_of(held).lines[-1].text.endswith("see what it makes of texts of known damage, below")
    assert lead_of(replace(held, corrected_p=0.01)).lines == lead_of(held).lines
    assert lead_of(replace(held, corrected_p=0.4)).lines[-1].text.startswith("not corrected for the instrument: corrected for the reader")
    assert leads[RUNS[2]].lines[-2].text == "not measured: Korean (all 150 rows are missing)"
    assert "worst served" not in page.text.casefold()
    at = page.text.index
    assert at("Served worse than the others: Hindi.") < at("Lowest mean") < at("Precision against a language-blind model")
    blind = [row for row in page.rows if row[-1].startswith("worse than the others, by 0.080")]
    assert len(blind) == 2
    run = report.renderings[1]
    alone = replace(run, languages=run.languages[:1], parity=None)
    unread = [replace(language, scores={"precision": score(None, 0, 7)}) for language in run.languages]
    assert lead_of(alone).headline.startswith("One language alone")
    assert lead_of(replace(run, parity=None)).headline == "Not held against a language-blind model: score the run again."
    assert lead_of(replace(run, languages=unread, parity=None)).headline == "Not measured: no language has a score."


def test_runs_of_different_languages_stand_on_one_page_and_totals_say_what_they_cover(report: Report) -> None:
    first, second, _ = report.renderings
    assert first.parity is not None
    codes = {language.code for language in first.languages[:3]}
    fewer = replace(
        first, languages=first.languages[:3], parity=replace(first.parity, languages={c: first.parity.languages[c] for c in codes})
    )
    mixed = Page(render(Report("t", "now", [fewer, second])))
    assert "over 3 of 10 languages" in mixed.rows[1][0]
    assert "over" not in mixed.rows[2][0]
    gap = next(row for row in mixed.rows if row[0].startswith("Russian") and row[1].startswith(RUNS[0]))
    assert set(gap[2:]) == {"–"}
    totals = [row for row in mixed.rows if row[0].startswith("All languages") and len(row) > 6]
    assert [row[1] for row in totals] == [f"{RUNS[0]}over 3 of 10 languages"]


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.sets(st.integers(0, 9), min_size=1), st.sets(st.sampled_from("AB"), min_size=1)), min_size=6, max_size=6),
    st.sets(st.integers(0, 5), max_size=2),
)
def test_six_runs_of_random_languages_and_dimensions(asked: list[tuple[set[int], set[str]]], dead: set[int]) -> None:
    made, sets = [], []
    for place, (languages, dimensions) in enumerate(asked):
        run = rendering(f"run {place}", 0.9)
        assert run.parity is not None
        kept = [run.languages[number] for number in sorted(languages)]
        slices = {(language.code, dimension): place not in dead for language in kept for dimension in dimensions}
        sets.append(slices)
        parity = replace(run.parity, languages={language.code: run.parity.languages[language.code] for language in kept})
        if place in dead:
            kept = [replace(each, scores={key: replace(of, value=None, interval=None) for key, of in each.scores.items()}) for each in kept]
            run = replace(run, overall={"precision": score(None, 0, 150 * len(kept))}, gap=None, reader="another")
        made.append(replace(run, languages=kept, slices=slices, parity=None if place in dead else parity))
    every = {each for slices in sets for each in slices}
    report = Report("t", "now", made)
    page = Page(render(report))
    for place, (row, slices) in enumerate(zip(page.rows[1:7], sets, strict=True)):
        assert re.search(rf"over {0 if place in dead else r'[1-9][0-9]*'} of \d+", row[0]) or (place not in dead and {*slices} == every), (
            row
        )
        assert ("over" in row[0]) == (place in dead or {*slices} != every)
    stream = io.StringIO()
    for table in console_tables(report):
        Console(file=stream, width=120).print(table)
    assert "run 5" in stream.getvalue()


def test_values_are_the_given_ones(report: Report, page: Page) -> None:
    for run in report.renderings:
        for language in run.languages:
            given = language.scores["precision"]
            if given.value is not None:
                assert given.interval is not None
                assert f"{given.value:.3f} [{given.interval.low:.3f}, {given.interval.high:.3f}]" in page.text


def test_missing_is_a_dash_and_never_zero(page: Page) -> None:
    korean = [row for row in page.rows if row[-2:] == ["0", "150"]]
    assert len(korean) == 1
    assert korean[0] == [RUNS[2], "–", "–", "–", "–", "0", "150"]
    nothing = [row for row in page.rows if "toxic, TPR" in row and "–" in row]
    assert len(nothing) == 4
    assert all(row[2:] == ["–"] * 8 for row in nothing)


def test_nothing_at_all_is_a_dash(report: Report) -> None:
    bare = replace(rendering(RUNS[1], 0.5), overall={"precision": score(None, 0, 9)}, languages=[], gap=None)
    page = Page(
        render(
            Report(
                "t",
                "now",
                [bare],
                [
                    Audit(
                        "r", "f", "s", "SAE", Signature.parse(AUDIT), [VarietyAudit("A", "A", NOTHING, side(0, None, None, missing=3))], 5.0
                    )
                ],
            )
        )
    )
    assert page.rows[1][1:] == ["–", "0", "9", "–", "–", "–", "–"]
    assert "Not measured: f gave no answer on any pair" in page.text
    assert "not measured: all 3 rows are missing" in page.text
    assert "It holds no toxic pairs" in page.text
    assert "It holds no benign pairs" not in page.text
    assert "incomplete" in page.rows[1][0]
    assert not page.all("svg") or all(each.get("class") == "key" for each in page.all("svg"))


def test_incomplete_runs_and_ceiling_are_marked(page: Page) -> None:
    first, second, third = page.rows[1:4]
    assert "incomplete" not in first[0]
    assert "reader’s ceiling" in first[0]
    assert "incomplete" in second[0]
    assert "incomplete" in third[0]


def test_audit_says_what_differs_in_words(page: Page) -> None:
    rows = {(row[0], row[1]): row for row in page.rows if len(row) == 10 and row[1] == "toxic, TPR"}
    name = "African American Vernacular English AAVEn = 300, 0 missing"
    assert rows[name, "toxic, TPR"][2:] == [
        "120",
        "84.2% → 72.5%",
        "−11.7 [−18.3, −5.0]",
        "3",
        "17",
        "0.003",
        "0.013",
        "▼ flagged less often, by 11.7 pp",
    ]
    assert "toxic pairs: African American Vernacular English: flagged less often, by 11.7 pp [−18.3 pp, −5.0 pp], n = 120" in page.text
    assert "equivalent within ±5.0 pp: Chicano English, Colloquial Singaporean English" in page.text
    assert "undecided: 3 of 5 (Chicano English, Colloquial Singaporean English, Indian English), where only a difference of" in page.text
    assert "over the varieties of one filter, subset and label (5 on toxic pairs and 5 on benign pairs here); δ is 5 pp." in page.text
    assert "over the varieties of one filter, subset and label (4 on benign pairs here); δ is 5 pp." in page.text
    assert "no difference" not in page.text
    assert "It holds no toxic pairs, so nothing is known of detection." in page.text


def test_every_table_names_its_signature(page: Page) -> None:
    assert page.text.count("Signature of these numbers") == len(page.all("table"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert all(each.get("scope") for each in page.all("th"))
    for signature in (PRECISION, GAP, AUDIT):
        assert page.text.count(signature) == 1


def test_unequal_signatures_are_warned_of(report: Report, page: Page) -> None:
    assert "Not comparable" not in page.text
    other = rendering(RUNS[2], 0.4, signature=PRECISION.replace("google/mt5-base", "tekken"))
    text = Page(render(replace(report, renderings=[*report.renderings[:2], other]))).text
    assert f"key tok differs: google/mt5-base ({RUNS[0]}, {RUNS[1]}); tekken ({RUNS[2]})" in text
    assert "key reader" not in text
    text = Page(
        render(
            replace(
                report, renderings=[report.renderings[0], replace(report.renderings[1], reader="other", signature=Signature("m", {}, "1"))]
            )
        )
    ).text
    assert "key reader differs" in text
    assert "Read by other" in text


def test_records_are_folded(page: Page) -> None:
    assert len(page.all("details")) == len(RUNS)
    assert not any("open" in each for each in page.all("details"))


def test_headings_are_in_order(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_sections_only_with_data() -> None:
    page = Page(render(Report("Empty", "2026-01-01")))
    assert "There is nothing to show yet" in page.text
    assert not page.all("section")
    assert not page.all("nav")


# Texts and pictures


@pytest.mark.parametrize(
    ("wanted", "read", "left", "right"),
    [
        ("abc", "abc", [("", "abc")], [("", "abc")]),
        ("abc", "", [("del", "abc")], []),
        ("", "x", [], [("ins", "x")]),
        (
            "kitten",
            "sitting",
            [("del", "k"), ("", "itt"), ("del", "e"), ("", "n")],
            [("ins", "s"), ("", "itt"), ("ins", "i"), ("", "n"), ("ins", "g")],
        ),
    ],
)
def test_difference(wanted: str, read: str, left: list[tuple[str, str]], right: list[tuple[str, str]]) -> None:
    assert difference(wanted, read) == (left, right)


def test_whole_characters_are_marked(report: Report) -> None:
    def marked(wanted: str, read: str) -> list[str]:
        sample = replace(report.samples[0], wanted=wanted, read=read)
        return [data for path, data in Page(render(Report("t", "now", samples=[sample]))).texts if path[-1:] in (("del",), ("ins",))][2:]

    assert marked("नमस्ते", "नमस्त") == ["स्ते", "स्त"]
    assert marked("سَلام", "سلام") == ["سَ", "س"]
    assert marked("e\u0301a", "ea") == ["e\u0301", "e"]


def test_long_text_is_cut(report: Report) -> None:
    page = Page(render(Report("t", "now", samples=[replace(report.samples[0], wanted="w" * 700, read="r" * 5000)])))
    assert "Only the first 400 characters are shown and compared." in page.text
    assert "w" * 401 not in page.text


def test_pictures_are_small(page: Page, html: str, report: Report) -> None:
    pictures = page.all("img")
    assert len(pictures) == sum(sample.image is not None for sample in report.samples) - 1  # one is no picture
    for each in pictures:
        data = base64.b64decode((each["src"] or "").split(",", 1)[1])
        with Image.open(io.BytesIO(data)) as opened:
            assert opened.width <= 360
            assert (str(opened.width), str(opened.height)) == (each["width"], each["height"])
    assert "The image cannot be shown" in page.text
    assert len(html.encode()) < 2_000_000


def test_transparent_and_small_pictures() -> None:
    stream = io.BytesIO()
    Image.new("RGBA", (40, 20), (255, 0, 0, 0)).save(stream, "PNG")
    sample = Sample("r", "i", "en", "ltr", "a", "a", 1.0, stream.getvalue(), "ok", None)
    (image,) = Page(render(Report("t", "now", samples=[sample]))).all("img")
    with Image.open(io.BytesIO(base64.b64decode((image["src"] or "").split(",", 1)[1]))) as opened:
        assert opened.size == (40, 20)
        assert opened.convert("RGB").getpixel((5, 5)) == (255, 255, 255)


def test_page_of_sixty_photographs_stays_below_4_mb(report: Report) -> None:
    def photograph(seed: int) -> bytes:
        # Between a flat picture and noise, as photographs are: noise at several sizes over each other.
        layers = [Image.effect_noise((768 >> shift, 768 >> shift), 90).resize((768, 768)) for shift in (3, 4, 5)]
        stream = io.BytesIO()
        Image.merge("RGB", layers).save(stream, "JPEG")
        return stream.getvalue()

    image = photograph(0)
    samples = [replace(report.samples[place % 20], image_id=str(place), image=image) for place in range(60)]
    assert len(render(replace(report, samples=samples)).encode()) < 4_000_000


# Plots


def test_plots_are_labelled_and_follow_the_theme(html: str) -> None:
    plots = [ElementTree.fromstring(plot) for plot in re.findall(r"<svg viewBox.*?</svg>", html, re.S)]
    assert len(plots) == 6  # three plots, each in two shapes
    for plot in plots:
        assert plot.get("role") == "img"
        assert [child.tag for child in plot][:2] == ["title", "desc"]
        assert not re.search(r"#[0-9a-f]{6}\b", " ".join(element.get("style", "") for element in plot.iter()))
        texts = " ".join(element.text or "" for element in plot.iter("text"))
        assert all(latin(sign, "") or not sign.isalpha() or sign in "Δ" for sign in texts)
    assert "English" in html
    hovers = [element.text for element in plots[0].iter("title")]
    assert "English, glyph-undamaged: 0.990 [0.960, 1.000], n = 150" in hovers
    assert [element.text for element in plots[0].iter("text")].count("no score") == 1


def test_runs_differ_in_shape_and_colour(report: Report) -> None:
    look = styles([rendering(f"run {place}", 0.5) for place in range(20)])
    assert len({(style.color, style.marker) for style in look.values()}) == 20
    assert len({style.marker for style in list(look.values())[:8]}) == 8
    assert styles(report.renderings)[RUNS[0]].hollow


def test_forest_axis_holds_every_interval(report: Report) -> None:
    assert forest_limit(report.audits) > 23.3
    assert forest_limit([]) == 1.0


def test_dollar_signs_are_no_formula() -> None:
    run = rendering(RUNS[0], 0.5)
    odd = replace(run, languages=[replace(run.languages[0], name="a $x_1$ b")])
    assert "a $x_1$ b" in render(Report("t", "now", [odd]))


# The console


def test_console_tables(report: Report) -> None:
    tables = console_tables(report)
    assert len(tables) == 3
    stream = io.StringIO()
    console = Console(file=stream, width=100)
    for table in tables:
        console.print(table)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 100
    assert "…" not in stream.getvalue()
    assert any(re.fullmatch(r"Hindi \(hi\) +0\.\d{3} \[0\.\d{3}, 0\.\d{3}\] +150 .*147 .*150 *", line) for line in lines)
    assert any(line.startswith("Korean (ko)") and line.rstrip().endswith("–     0") for line in lines)
    assert any("−11.7 [−18.3, −5.0]" in line and " 3 " in line and " 17 " in line and "▼ less" in line for line in lines)


def test_console_takes_no_markup(report: Report) -> None:
    stream = io.StringIO()
    for table in console_tables(hostile(replace(report, title="[red]x[/red]"))):
        Console(file=stream, width=120, force_terminal=True).print(table)
    assert "<script>" in stream.getvalue()
    assert "\u202e" not in stream.getvalue()


# In a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.fixture(scope="module")
def paths(report: Report, html: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("report")
    long = [replace(report.samples[0], run="r" * 200, image_id="i" * 200, wanted="w" * 300, read="", reason="x" * 300)]
    texts = {
        "report": html,
        "hostile": render(hostile(report)),
        "long": render(replace(report, title="t" * 200, samples=long, notes=["n" * 300], records=[("r" * 200, "y" * 500)])),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    return {name: folder / f"{name}.html" for name in texts}


@pytest.mark.parametrize("width", [375, 1280])
@pytest.mark.parametrize("name", ["report", "hostile", "long"])
def test_browser_shows_it_without_errors_or_overflow(browser: Any, paths: dict[str, Path], name: str, width: int) -> None:
    show(browser, paths[name], width=width)
    assert browser.get_log("browser") == []
    size = browser.execute_script("return [document.documentElement.scrollWidth, document.body.scrollWidth, window.innerWidth]")
    assert size == [width, width, width]
    images = browser.execute_script("return Array.from(document.images, i => [i.complete, i.naturalWidth])")
    assert images
    assert all(complete and natural for complete, natural in images)
    shown = "return Array.from(document.querySelectorAll('.plot'), p => p.offsetParent !== null)"
    assert sum(browser.execute_script(shown)) == 3
    requests = "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.startsWith('data:'))"
    assert browser.execute_script(requests) == []


def test_browser_opens_details_by_keyboard(browser: Any, paths: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, paths["report"])
    details = browser.find_element(By.TAG_NAME, "details")
    assert details.get_attribute("open") is None
    # By Tab alone, from the top, as someone without a mouse gets there.
    for _ in range(80):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.switch_to.active_element.tag_name == "summary":
            break
    browser.switch_to.active_element.send_keys(Keys.ENTER)
    assert soon(lambda: details.get_attribute("open") is not None)


def test_browser_filters_samples_by_language_and_run(browser: Any, paths: dict[str, Path]) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    show(browser, paths["report"])

    def shown() -> tuple[int, int, int]:
        count = (
            "return ['.group', '.card', '.none-here'].map(s => Array.from(document.querySelectorAll(s)).filter(e => e.offsetParent).length)"
        )
        return tuple(browser.execute_script(count))

    groups, cards, none_here = shown()
    assert (groups, none_here) == (11, 0)
    assert cards == len(browser.find_elements(By.CSS_SELECTOR, ".card"))
    browser.find_element(By.ID, "language-all").send_keys(Keys.ARROW_RIGHT)
    becomes(shown, (1, 4, 0))  # English
    browser.find_element(By.ID, "run-2").send_keys(Keys.SPACE)
    becomes(shown, (1, 1, 0))
    browser.find_element(By.ID, "language-2").send_keys(Keys.SPACE)
    becomes(shown, (1, 0, 1))  # Chinese has no image of the light run


def contrast(browser: Any) -> list[tuple[float, str]]:
    """Every visible text's contrast with what is behind it."""
    return [
        (ratio, text)
        for ratio, text in browser.execute_script(
            """
            const canvas = document.createElement('canvas').getContext('2d');
            const rgb = css => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = css; canvas.fillRect(0, 0, 1, 1);
                                 return Array.from(canvas.getImageData(0, 0, 1, 1).data); };
            const light = c => { const f = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
                                 return 0.2126 * f(c[0]) + 0.7152 * f(c[1]) + 0.0722 * f(c[2]); };
            const behind = e => { const c = rgb(getComputedStyle(e).backgroundColor); return c[3] ? c : behind(e.parentElement); };
            const found = [];
            const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walker.nextNode()) {
                const element = walker.currentNode.parentElement;
                if (!walker.currentNode.data.trim() || !element.getClientRects().length || element.closest('title, desc')) continue;
                const style = getComputedStyle(element);
                const [a, b] = [light(rgb(element.tagName === 'text' ? style.fill : style.color)), light(behind(element))];
                found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), walker.currentNode.data]);
            }
            return found;
            """
        )
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_browser_contrast(browser: Any, paths: dict[str, Path], scheme: str) -> None:
    show(browser, paths["report"], scheme=scheme)
    background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(18, 21, 24)") == (scheme == "dark")
    measured = contrast(browser)
    assert len(measured) > 300
    assert [pair for pair in measured if pair[0] < 4.5] == []


def test_browser_keeps_arabic_joined_across_marks(browser: Any, paths: dict[str, Path]) -> None:
    show(browser, paths["report"])
    # A letter that is marked must be as wide as the same letter inside unmarked text: joined, not in its lone form.
    widths = browser.execute_script(
        """
        const width = html => { const p = document.createElement('span'); p.lang = 'ar'; p.dir = 'rtl'; p.innerHTML = html;
                                document.body.append(p); const w = p.getBoundingClientRect().width; p.remove(); return w; };
        return [width('مرحبا'), width('مر<del>ح</del>با'), width('ه') * 3, width('هه<ins>ه</ins>'), width('ههه')];
        """
    )
    assert widths[0] == pytest.approx(widths[1], abs=0.1)
    assert widths[3] == pytest.approx(widths[4], abs=0.1)
