"""``t2i-parity validate`` over prompts: what it prints and writes, its exit codes, and its page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import chromium, show
from commands import command, error_of
from loopback_hub import LoopbackHub, run_client
from prompt_tables import change, clean, found, put, row
from rich.console import Console

from t2i_parity.cards.validation import SEVERITIES, SHOWN, Validation, console_tables, lines, render, summary
from t2i_parity.dataset_builder.geo_published import NAME as PUBLISHED
from t2i_parity.dataset_builder.repository import write_repository
from t2i_parity.dataset_builder.schema import CONFIGS
from t2i_parity.validation.prompts import lengths

CONTENT, DIALECT, GEO = "lingt2i_content", "dialect", "geo"
HOSTILE = ('"><script>alert(1)</script>', "</title><img src=x onerror=alert(1)>", "a\u202eb", "{{ 7*7 }}", "\x1b[31m\x00", "[red]x[/red]")
ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with one error, one warning and some notes."""
    tables = clean()
    change(tables, CONTENT, row(tables, CONTENT, language="ja"), "prompt", lambda text: text + "\u200b")
    change(tables, CONTENT, row(tables, CONTENT, language="es"), "prompt", lambda text: " " + text)
    for number in range(len(tables[GEO])):
        put(tables, GEO, number, "license", "CC-BY-NC-SA-4.0")
    write_repository(tables, tmp_path / "planted", edition="planted")
    return tmp_path / "planted"


def rewrite(folder: Path, config: str, prompts: pa.Table) -> None:
    """Another table in a built folder, past the checks of the builder."""
    pq.write_table(prompts, next((folder / config).glob("*.parquet")))


def test_the_starter_edition_passes(prompts: Path, tmp_path: Path) -> None:
    done = command("validate", prompts, "--fail-on", "warning", "--json", tmp_path / "found.json", "--html", tmp_path / "found.html")
    assert done.stdout.splitlines()[-1].startswith("passes: ")
    assert "found 0 errors, 0 warnings, 0 notes" in done.stdout
    content = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert content["passes"]
    assert content["findings"] == []
    configs = (*CONFIGS, PUBLISHED)
    assert content["rows"] == {config: pq.read_metadata(next((prompts / config).glob("*.parquet"))).num_rows for config in configs}
    assert "<script" not in (tmp_path / "found.html").read_text(encoding="utf-8")


def test_findings_end_with_exit_code_1_and_are_named_everywhere(folder: Path, tmp_path: Path) -> None:
    done = command("validate", folder, "--json", tmp_path / "found.json", "--html", tmp_path / "page" / "found.html", check=1)
    content = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert content["found"] == {"error": 1, "warning": 1, "note": 1}
    assert {"check", "severity", "config", "row", "prompt_id", "column", "found", "expected", "fix", "n"} == set(content["findings"][0])
    error = next(finding for finding in content["findings"] if finding["severity"] == "error")
    assert (error["check"], error["config"], error["column"]) == ("zero_width", CONTENT, "prompt")
    page = (tmp_path / "page" / "found.html").read_text(encoding="utf-8")
    for text in (done.stdout, page):
        assert error["prompt_id"] in text
        assert "⟨U+200B⟩" in text
        assert "\u200b" not in text
    assert done.stdout.splitlines()[-1].startswith("fails: ")
    assert "1 errors, 1 warnings, 1 notes" in done.stdout


def test_what_fails_can_be_chosen(folder: Path) -> None:
    assert command("validate", folder, "--config", DIALECT).returncode == 0
    command("validate", folder, "--config", CONTENT, check=1)
    # A note never fails.
    assert command("validate", folder, "--config", GEO, "--fail-on", "warning").returncode == 0


def test_a_warning_fails_only_where_it_is_asked_to(tmp_path: Path) -> None:
    tables = clean()
    change(tables, CONTENT, 0, "prompt", lambda text: " " + text)
    write_repository(tables, tmp_path, edition="planted")
    command("validate", tmp_path)
    command("validate", tmp_path, "--fail-on", "warning", check=1)


def test_bad_input_ends_with_exit_code_2(folder: Path, tmp_path: Path) -> None:
    assert "no config 'nothing'" in error_of("validate", folder, "--config", "nothing")
    assert "--fail-on 'never'" in error_of("validate", folder, "--fail-on", "never")
    assert "three validations" in error_of("validate", folder, "--published")
    (tmp_path / "empty").mkdir()
    assert "not a dataset folder" in error_of("validate", tmp_path / "empty")
    assert "neither a folder nor a dataset" in error_of("validate", "nobody/nothing")
    torn = next((folder / GEO).glob("*.parquet"))
    torn.write_bytes(torn.read_bytes()[:100])
    assert "not a readable parquet file" in error_of("validate", folder)


def test_what_the_builder_refuses_is_found_and_not_refused(folder: Path) -> None:
    tables = clean()
    put(tables, GEO, 3, "prompt_id", "geo-city-USA")
    put(tables, GEO, 4, "language", "xx")
    put(tables, GEO, 5, "text_sha256", "0")
    rewrite(folder, GEO, tables[GEO].drop_columns("noun"))
    done = command("validate", folder, "--config", GEO, check=1)
    for check in ("columns in geo", "values in geo", "ids in geo", "text_sha256 in geo"):
        assert check in done.stdout


def test_no_rows_are_an_error(folder: Path) -> None:
    rewrite(folder, GEO, clean()[GEO].slice(0, 0))
    assert "no rows" in command("validate", folder, "--config", GEO, check=1).stdout


def test_files_that_do_not_fit_together_are_told(folder: Path) -> None:
    other = pa.table({"prompt_id": [1]})
    pq.write_table(other, folder / GEO / "test-00001-of-00002.parquet")
    assert "do not fit together" in error_of("validate", folder)


def test_anybodys_prompts_are_checked_for_what_they_have(tmp_path: Path) -> None:
    columns = {"prompt_id": ["a", "b"], "pair_id": ["1", "1"], "prompt": ["A red door", "Una porta\u200b rossa"], "language": ["en", "es"]}
    pq.write_table(pa.table(columns), tmp_path / "prompts.parquet")
    done = command("validate", tmp_path, "--json", tmp_path / "found.json", check=1)
    content = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert {(finding["check"], finding["row"]) for finding in content["findings"]} == {("zero_width", 1)}
    skipped = {check["name"]: check["skipped"] for check in content["checks"] if check["skipped"]}
    assert skipped["render_layout"] == "needs the column render_layout"
    assert "default" in done.stdout


def test_a_dataset_on_the_hub_is_checked(folder: Path, tmp_path: Path) -> None:
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with LoopbackHub() as hub:
        hub.create("dataset", "lab/planted", files)
        code = f"""
            import sys
            sys.path.insert(0, {str(ROOT)!r})
            from t2i_parity.dataset_builder.console import main
            main(["validate", "lab/planted"])
        """
        done = run_client(code, hub, tmp_path, check=False)
        assert done.returncode == 1, done.stderr
        assert "zero_width in lingt2i_content: 1" in done.stdout
        absent = run_client(code.replace("lab/planted", "lab/absent"), hub, tmp_path, check=False)
    assert absent.returncode == 2
    assert "neither a folder nor a dataset" in absent.stderr


def test_the_module_is_the_same_command(folder: Path) -> None:
    assert "--fail-on" in command("validate", "--help", own_process=True).stdout


def test_tokens_are_counted_where_the_tokenizer_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Tokens were not counted" in " ".join(found(clean()).notes)
    monkeypatch.setattr(lengths, "token_counter", lambda: lambda texts: [len(text) // 3 for text in texts])
    report = found(clean())
    assert "Tokens" not in " ".join(report.notes)
    assert all(row.tokens is not None for row in report.languages)
    assert "mT5 tokens" in render(report)


# The page


class Page(HTMLParser):
    """Tags with their attributes, and ids."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def full() -> Validation:
    """A report with every severity, a check with more findings than are shown, and harmful text wherever people write."""
    tables = clean()
    for number in range(len(tables[GEO])):
        change(tables, GEO, number, "prompt", lambda text: text.replace(" ", "  "))
        put(tables, GEO, number, "license", "CC-BY-NC-4.0")
    for number, text in enumerate(HOSTILE):
        put(tables, CONTENT, number, "prompt", text + "\u200b")
        put(tables, CONTENT, number, "prompt_id", f"{text}{number}")
        put(tables, DIALECT, number, "license", text)
        put(tables, DIALECT, number, "source", text)
        put(tables, DIALECT, number, "variety", text)
    report = found(tables)
    return replace(report, source=HOSTILE[0] + HOSTILE[1], findings=[*report.findings, *[report.findings[0]] * SHOWN])


def test_the_page_asks_for_nothing_and_holds_no_script(full: Validation) -> None:
    html = render(full)
    assert html == render(full)
    page = Page(html)
    assert not page.open
    assert html.startswith("<!DOCTYPE html>")
    assert {tag for tag, _ in page.tags} <= {
        "html", "head", "meta", "title", "link", "style", "body", "a", "header", "h1", "h2", "h3", "p", "nav", "ul", "li", "main",
        "section", "div", "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "code", "bdi", "footer",
    }  # fmt: skip
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:")), (tag, attributes)
    policy = [attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv") == "Content-Security-Policy"]
    assert policy
    assert "default-src 'none'" in (policy[0] or "")
    assert "prefers-color-scheme: dark" in html
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = {(attributes.get("href") or "")[1:] for tag, attributes in page.tags if tag == "a"}
    assert links <= set(ids)


def test_harmful_text_is_shown_as_text(full: Validation) -> None:
    html = render(full)
    assert "<script>" not in html
    assert "<img" not in html
    assert "&lt;script&gt;" in html
    assert "{{ 7*7 }}" in html
    assert not set(html) & {"\u202e", "\x1b", "\x00", "\u200b"}


def test_the_page_says_how_much_it_leaves_out(full: Validation) -> None:
    html = render(full)
    assert len(re.findall(r"the JSON report has all of them", html)) >= 1
    assert '<span class="badge is-fails">fails</span>' in html
    assert "over errors." in " ".join(html.split())
    assert "over errors and warnings." in " ".join(render(full, "warning").split())


def test_the_console_shows_everything_as_text(full: Validation) -> None:
    console = Console(width=120, record=True, file=open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    for made in console_tables(full):
        console.print(made)
    text = console.export_text()
    assert "[red]x[/red]" in text
    assert not set(text) & {"\u202e", "\x1b", "\x00", "\u200b"}
    assert "more (all of them: --json FILE)" in text
    assert summary(full, "error").startswith("fails: ")


def test_checks_that_ran_nowhere_say_why(full: Validation) -> None:
    by_name = {line.name: line for line in lines(full)}
    assert by_name["counts"].skipped == "no design is declared for the sources of these rows"
    assert by_name["render_text"].configs == 1
    assert by_name["zero_width"].counts["error"] >= len(HOSTILE)
    assert set(by_name["zero_width"].counts) == set(SEVERITIES)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_and_is_readable(browser: Any, full: Validation, tmp_path: Path, width: int, scheme: str) -> None:
    path = tmp_path / "page.html"
    path.write_text(render(full), encoding="utf-8")
    show(browser, path, width=width, scheme=scheme)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.get_log("browser") == []
    # Every badge must have a contrast of 4.5 or more with its own ground.
    low = browser.execute_script(
        """
        const rgb = text => text.match(/[\\d.]+/g).map(Number);
        const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
            .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
        const ground = node => { while (node) { const c = rgb(getComputedStyle(node).backgroundColor);
            if (c.length < 4 || c[3] > 0) return c; node = node.parentElement; } return [255, 255, 255]; };
        return Array.from(document.querySelectorAll('.badge, td, th, p, .second')).map(node => {
            const [a, b] = [light(rgb(getComputedStyle(node).color)), light(ground(node))];
            return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); }).filter(ratio => ratio < 4.5).length;
        """
    )
    assert low == 0
