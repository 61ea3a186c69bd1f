"""One page over any mix of runs: languages, dimensions and readers missing here and there, and no total that does not say so."""

from __future__ import annotations

import io
import re
from html import unescape
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judged_runs import row_of
from rich.console import Console

from t2i_parity.cards.report import console_tables, render
from t2i_parity.cards.report_data import Report
from t2i_parity.cards.report_texts import NOTHING_SHARED
from t2i_parity.generate.report import gather
from t2i_parity.generate.run import Run, image_features
from t2i_parity.generate.score import ScoreSettings, score
from t2i_parity.metrics.cross_lingual_gap import core as cross_lingual_gap

SETTINGS = ScoreSettings(tokenizer="tekken", n_resamples=20)
TEXTS = ("a red door", "open at nine", "seven small boats", "no way out", "the last bus", "mind the gap")
# Of each run: its languages, its dimensions, and those languages of which its reader read nothing.
RUNS = {
    "whole": ("en hi ar", "IQ-R TA-C", ""),
    "again": ("en hi ar", "IQ-R TA-C", ""),
    "two": ("en hi", "IQ-R TA-C", ""),
    "one": ("en", "IQ-R TA-C", ""),
    "apart": ("zh ar", "IQ-R", ""),
    "half": ("en hi ar", "IQ-R", ""),
    "unread": ("en hi ar", "IQ-R TA-C", "hi"),
    "dead": ("en hi", "IQ-R", "en hi"),
}
Slices = frozenset[tuple[str, str]]


def slices(name: str, *, read: bool) -> Slices:
    """What a run was asked, or what of it was read."""
    languages, dimensions, unread = (part.split() for part in RUNS[name])
    return frozenset(product((code for code in languages if not read or code not in unread), dimensions))


def a_run(folder: Path, name: str) -> Run:
    """Six meanings a slice, read with errors that differ from run to run, and with a similarity each."""
    rng = np.random.default_rng([*name.encode()])
    signatures = {"tesseract": "tesseract|psm:6|v:5", "clip": "clip|model:tiny|v:1"}
    run = Run(str(folder / name), {"kind": "generation", "identity": {"model": {"model": "m"}}, "packages": {}, "judges": signatures})
    run.write_record()
    rows = [
        row_of(f"{dimension}-{n}", code, dimension=dimension, render_text=text)
        for code, dimension in sorted(slices(name, read=False))
        for n, text in enumerate(TEXTS)
    ]
    run.images().replace(pa.Table.from_pylist(rows, schema=image_features().arrow_schema))
    read = [
        None if (row["language"], row["dimension"]) not in slices(name, read=True) else row["render_text"][rng.integers(0, 4) :]
        for row in rows
    ]
    columns = {
        "tesseract": pa.array(read, pa.string()),
        "clip": pa.array([None if text is None else rng.uniform(0.1, 0.4) for text in read], pa.float64()),
    }
    for judge, column in columns.items():
        observed = {
            "image_id": [row["image_id"] for row in rows],
            {"tesseract": "text", "clip": "similarity"}[judge]: column,
            "judge": [signatures[judge]] * len(rows),
            "status": ["ok" if text is not None else "failed" for text in read],
            "reason": pa.nulls(len(rows), pa.string()),
        }
        run.observations(judge).replace(pa.table(observed))
    score(run, SETTINGS)
    return Run.open(run.url)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("mixes")
    return {name: a_run(folder, name) for name in RUNS}


def table(html: str, caption: str) -> list[list[str]]:
    """The rows of the table whose caption begins so, a text a cell."""
    found = next(each for each in re.findall(r"<table.*?</table>", html, re.S) if caption in each)
    rows = re.findall(r"<tr>(.*?)</tr>", found, re.S)
    return [
        [" ".join(unescape(re.sub(r"<[^>]*>", " ", cell)).split()) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, re.S)] for row in rows
    ]


def page_of(runs: dict[str, Run], names: list[str]) -> tuple[Report, str]:
    report = gather([runs[name] for name in names], title="t", samples=False)
    return report, render(report)


def test_totals_over_fewer_languages_stand_again_over_those_that_all_have(runs: dict[str, Run]) -> None:
    report, html = page_of(runs, ["whole", "two"])
    rows = table(html, "Text rendering over all languages")[1:]
    whole, two, shared_whole, shared_two = rows
    assert "over" not in whole[0]
    assert "over 2 of 3 languages" in two[0]
    said = "over the 2 languages and 2 dimensions that all scored runs have, each language counting once"
    assert said in shared_whole[0]
    assert said in shared_two[0]
    kept = [row for row in runs["whole"].scored().read().to_pylist() if row["language"] in ("en", "hi")]
    of = [[row[key] for row in kept] for key in ("tesseract_precision", "language", "pair_id")]
    expected = cross_lingual_gap.compute(of[0], of[1], clusters=of[2], n_resamples=1)
    low, high = expected["ci"]["mean"]
    assert shared_whole[1:4] == [f"{expected['mean']:.3f} [{low:.3f}, {high:.3f}]", "24", "0"]
    assert shared_whole[5] == f"{expected['std']:.3f} n = 24"
    # A run that has no others than the shared languages has there what it has everywhere.
    assert shared_two[4:] == two[4:]
    assert "compare their totals in the lower rows only, over" in html
    common = report.renderings[0].common
    assert common is not None
    assert common.mean.signature.fields["over"] == "en/IQ-R en/TA-C hi/IQ-R hi/TA-C"


def test_runs_of_the_same_languages_stand_once_and_unmarked(runs: dict[str, Run]) -> None:
    report, html = page_of(runs, ["whole", "again"])
    assert len(table(html, "Text rendering over all languages")) == 3
    assert not [each for each in report.renderings if each.common]
    assert " of 3 languages" not in html
    assert "scored runs" not in html


def test_a_language_that_was_not_read_is_missing_from_the_total(runs: dict[str, Run]) -> None:
    _, html = page_of(runs, ["unread"])
    (row,) = table(html, "Text rendering over all languages")[1:]
    assert "over 2 of 3 languages" in row[0]
    assert row[3] == "12", "every image in Hindi is missing"
    hindi = next(each for each in table(html, "Scores by language") if each[0].startswith("Hindi"))
    assert hindi[2:] == ["–", "–", "–", "–", "0", "12"]


def test_runs_without_a_language_in_common_are_not_to_be_compared(runs: dict[str, Run]) -> None:
    _, html = page_of(runs, ["one", "apart"])
    assert len(table(html, "Text rendering over all languages")) == 3
    assert "The scored runs have no language and dimension in common, so that their totals cannot be compared." in html


def test_languages_of_fewer_dimensions_say_so(runs: dict[str, Run]) -> None:
    _, html = page_of(runs, ["whole", "half"])
    total = table(html, "Text rendering over all languages")[2]
    assert "over 1 of 2 dimensions" in total[0]
    hindi = [row for row in table(html, "Scores by language") if "half" in row[0]]
    assert len(hindi) >= 2
    assert all("over 1 of 2 dimensions" in row[0] for row in hindi)
    similarity = table(html, "<bdi>CLIPScore on lingt2i_content</bdi>")
    hindi_row = next(row for row in similarity if row[0].startswith("Hindi"))
    assert [("over 1 of 2 dimensions" in cell) for cell in hindi_row[1::3]] == [False, True]


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.sampled_from(sorted(RUNS)), min_size=2, max_size=6, unique=True))
def test_six_runs_of_any_mix(runs: dict[str, Run], names: list[str]) -> None:
    report, html = page_of(runs, names)
    stream = io.StringIO()
    for each in console_tables(report):
        Console(file=stream, width=120).print(each)
    printed = " ".join(stream.getvalue().split())
    every: Slices = frozenset[tuple[str, str]]().union(*(slices(name, read=False) for name in names))
    there = {name: slices(name, read=True) for name in names}
    scored = [name for name in names if there[name]]
    together: Slices = frozenset.intersection(*(there[name] for name in scored or names))
    apart = len({there[name] for name in scored}) > 1
    again = len(scored) if apart and together else 0
    rows = table(html, "Text rendering over all languages")[1:]
    assert len(rows) == len(names) + again
    for name, row in zip(names, rows, strict=False):
        assert row[0].startswith(name)
        assert bool(re.search(r"over \d of \d", row[0])) == (there[name] != every)
        assert name in scored or row[1] == row[4] == row[5].removesuffix(" n = 0") == "–"
    for name, row in zip(scored, rows[len(names) :], strict=False):
        assert row[0].startswith(name)
        assert "that all scored runs have" in row[0]
        assert row[2] == str(len(TEXTS) * len(together))
    assert ("The scored runs have no language and dimension in common" in html) == (NOTHING_SHARED in printed) == (apart and not together)
    assert printed.count("Shared, mean") == (-(-len(names) // 3) if again else 0)
    assert len(re.findall(r"over \d of \d", printed)) == sum(there[name] != every for name in names)
    # Beside text rendering, the same holds of every total and of every spread.
    totals = next(row for row in table(html, "<bdi>CLIPScore on lingt2i_content</bdi>") if row[0] == "All languages")
    for name, cell in zip(names, totals[1::3], strict=True):
        assert bool(re.search(r"over \d of \d", cell)) == (bool(there[name]) and there[name] != every)
    spreads = table(html, "<bdi>CLIPScore on lingt2i_content: spread over languages</bdi>")[1:]
    for name, row in zip(names, spreads, strict=False):
        assert bool(re.search(r"over \d of \d", row[0])) == (there[name] != every)
    assert sum("that all scored runs have" in row[0] for row in spreads) == again
