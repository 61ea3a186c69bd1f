"""From a run's scores and analyses to the report's sections: nothing mixed, nothing left out, nothing made up."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import command, error_of
from judged_runs import row_of

from t2i_parity.cards.report import render
from t2i_parity.cards.report_data import Report
from t2i_parity.cards.report_sections import Block, Dots, Levels, Section, Shares
from t2i_parity.generate.report import gather
from t2i_parity.generate.report_sections import Scored, ceiling_sections, metric_sections, unique
from t2i_parity.generate.run import Run, image_features
from t2i_parity.generate.specs import specs
from t2i_parity.generate.specs.calibrated import CEILING, CORRECTED, SHARE
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Group, Interval, MetricSpec, Score, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT

HOSTILE = '"><script>alert(1)</script>\u202e'
LANGUAGES = ("en", "hi", "ar")


def judged(folder: Path, seed: int, encoder: str = "tiny", *, only_clip: bool = False) -> Run:
    """Two dimensions of four meanings in three languages, and the same in Latin letters and with cultures named, judged by all kinds."""
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": "m"}}, "packages": {}})
    run.write_record()
    rows = [row_of(f"{kind}-{n}", code, dimension=kind) for kind in ("TA-C", "R-T") for n in range(4) for code in LANGUAGES]
    for subset, code in (("lingt2i_content_transliterated", "hi"), ("culture_tag_hi", "en"), ("culture_neutral", "en")):
        rows += [row_of(f"TA-C-{n}", code, subset=subset, dimension="TA-C") for n in range(4)]
    run.images().replace(pa.Table.from_pylist(rows, schema=image_features().arrow_schema))
    ids, rng = [row["image_id"] for row in rows], np.random.default_rng(seed)

    def observe(judge: str, model: str = "tiny", **columns: Sequence[Any]) -> None:
        fixed = {"judge": [f"{judge}|model:{model}|v:1"] * len(ids), "status": ["ok"] * len(ids), "reason": pa.nulls(len(ids), pa.string())}
        run.observations(judge).replace(pa.table({"image_id": ids, **columns, **fixed}))

    observe("clip", encoder, similarity=[None, *rng.uniform(0.1, 0.4, len(ids) - 1)])
    if only_clip:
        command("score", run.url, "--resamples", "40")
        return Run.open(run.url)
    observe("rater", rating_tokens=[["good", "bad"]] * len(ids), rating_logprobs=rng.uniform(-3, -0.1, (len(ids), 2)).tolist())
    races = rng.choice(["Asian", "White", "Black"], len(ids))
    observe("annotator", people=[[{"race": str(race), "gender": "Female", "age": "Adult"}] for race in races])
    observe("curator", culture=rng.choice(["Indian", "None", "Arab"], len(ids)).tolist())
    observe("guard", probabilities=rng.uniform(0, 1, (len(ids), 1)).tolist())
    command("score", run.url, "--resamples", "40")
    return Run.open(run.url)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    made = [judged(folder / "alpha", 0), judged(folder / "beta", 1), judged(folder / "gamma", 2, encoder="other", only_clip=True)]
    command("analyse", made[0].url, "--tokenizer", "tekken", "--resamples", "40", "--buckets", "2")
    return made


@pytest.fixture(scope="module")
def report(runs: list[Run]) -> Report:
    return gather(runs, title="t", samples=False)


def section(report: Report, key: str) -> Section:
    return next(each for each in report.sections if each.key == key)


def block(found: Section, title: str) -> Block:
    return next(each for each in found.blocks if each.title == title)


def told(score: Score) -> str:
    assert score.value is not None
    assert score.interval is not None
    return f"{score.value:.3f} [{score.interval.low:.3f}, {score.interval.high:.3f}]"


def row(found: Block, head: str, *words: str) -> list[str]:
    cells = next(each.cells for each in found.rows if each.head == head and tuple(cell.text for cell in each.cells[: len(words)]) == words)
    return [" ".join(part for part in (cell.text, cell.interval) if part) for cell in cells[len(words) :]]


def test_every_score_of_every_run_is_on_the_page(runs: list[Run], report: Report) -> None:
    found = [each.key for each in report.sections if each.key.startswith("metric-")]
    assert found == [f"metric-{name}" for name in ("trigscore", "clip-score", "bias-entropy", "toxicity-rejection", "culture-alignment")]
    shown = {cell.text for each in report.sections for part in each.blocks for line in part.rows for cell in line.cells}
    lost = [
        each
        for run in runs
        for each in run.scores()
        if each.value is not None and f"{each.value:.3f}" not in shown and f"{each.value:g}" not in shown
    ]
    assert lost == []


def test_runs_stand_side_by_side_with_n_and_missing(runs: list[Run], report: Report) -> None:
    found = block(section(report, "metric-trigscore"), "TRIGScore on lingt2i_content")
    assert found.runs == ("alpha", "beta")
    values = [next(e for e in run.scores() if (e.key, e.group) == ("trigscore", Group(language="hi"))) for run in runs[:2]]
    wanted = [[told(e), "8", "0"] for e in values]
    assert row(found, "Hindi", "TRIGScore") == [text for cells in wanted for text in cells]
    assert isinstance(found.figure, Dots)
    assert found.figure.dots[[code for _, code in found.figure.rows].index("hi"), "beta"].value == values[1].value
    clip = block(section(report, "metric-clip-score"), "CLIPScore on lingt2i_content")
    assert row(clip, "English")[1:3] == ["7", "1"], "one image had no similarity"
    alone = block(section(report, "metric-trigscore"), "TRIGScore on culture_neutral")
    assert [each.head for each in alone.rows] == ["English"] * 2 + ["All languages"] * 2


def test_no_table_mixes_signatures(runs: list[Run], report: Report) -> None:
    tables = [each for each in section(report, "metric-clip-score").blocks if each.title == "CLIPScore on lingt2i_content"]
    assert [each.runs for each in tables] == [("alpha", "beta"), ("gamma",)]
    assert len({each.signatures[0][0] for each in tables}) == 2
    spreads = [
        each for each in section(report, "metric-clip-score").blocks if each.title.endswith("lingt2i_content: spread over languages")
    ]
    assert [[line.head for line in each.rows] for each in spreads] == [["alpha", "beta"], ["gamma"]]
    signatures = {each.signature for run in runs for each in run.scores()}
    assert {text for each in report.sections for part in each.blocks for text, _ in part.signatures} == signatures
    assert all(len(part.signatures) == 1 for each in report.sections if each.key.startswith("metric") for part in each.blocks)


def test_spread_and_worst_language(runs: list[Run], report: Report) -> None:
    found = block(section(report, "metric-trigscore"), "TRIGScore on lingt2i_content: spread over languages")
    of = [e for e in runs[0].scores() if e.metric == "cross_lingual_gap" and "trigscore" in str(e.signature)]
    worst = next(e for e in of if e.key == "worst" and e.subset == "lingt2i_content")
    name = {"en": "English", "hi": "Hindi", "ar": "Arabic"}[worst.group["language"]]
    assert row(found, "alpha")[10:13] == [name, told(worst), "8"]
    branches = block(section(report, "metric-trigscore"), "TRIGScore on lingt2i_content by branch")
    assert {"Germanic", "Indo-Aryan", "Semitic"} == {line.head for line in branches.rows}


def test_dimensions_are_a_heat_map(runs: list[Run], report: Report) -> None:
    found = block(section(report, "metric-trigscore"), "TRIGScore on lingt2i_content by dimension: beta")
    assert isinstance(found.figure, Levels)
    place = ([name for name, _ in found.figure.rows].index("R-T"), [code for _, code in found.figure.columns].index("ar"))
    group = Group(language="ar", dimension="R-T")
    wanted = next(e for e in runs[1].scores() if (e.key, e.group) == ("trigscore", group)).value
    assert found.figure.values[place[0]][place[1]] == wanted
    assert row(found, "R-T, Arabic", "TRIGScore")[1:] == ["4", "0"]
    assert not [each for each in section(report, "metric-trigscore").blocks if each.title.startswith("TRIGScore on culture_neutral by dim")]


def test_analyses_stand_where_their_file_is(runs: list[Run], report: Report) -> None:
    analyses = json.loads(runs[0].folder.read("analysis.json"))["analyses"]
    found = [each for each in report.sections if each.key.startswith("analysis-")]
    assert [each.key.removeprefix("analysis-") for each in found] == [
        "fragmentation", "families", "trade-offs", "people", "cultures", "transliteration",
    ]  # fmt: skip
    titles = [part.title for each in found for part in each.blocks]
    assert all(title.endswith(": alpha") for title in titles), "only this run was analysed"
    by_name = {each["name"]: each["records"] for each in analyses}
    race = block(section(report, "analysis-people"), "Who is shown, by annotator, race: alpha")
    assert isinstance(race.figure, Shares)
    for code, shares in zip((code for _, code in race.figure.rows), race.figure.values, strict=True):
        assert sum(filter(None, shares)) == pytest.approx(1)
        for category, share in zip(race.figure.categories, shares, strict=True):
            wanted = {"language": code, "attribute": "race", "category": category, "share": share}
            assert any(wanted.items() <= each.items() for each in by_name["demographics annotator"])
    bias = block(section(report, "analysis-people"), "Bias by how well images fit their prompts, annotator: alpha")
    assert isinstance(bias.figure, Levels)
    assert bias.figure.values[1] == [None, None], "fewer than ten people"
    tags = block(section(report, "analysis-cultures"), "Language against culture tag, curator: alpha")
    record = next(each for each in by_name["culture_tags curator"] if each["target"] == "hi")
    low, high = record["ci"]["tag_effect"]
    assert (low, high) == (None, None), "fewer than five meanings"
    assert f"{record['tag_effect']:.3f}".replace("-", "−") in row(tags, "Hindi")
    assert "95% intervals from 40 resamples." in tags.note


def test_the_page_is_one_and_escaped(report: Report, runs: list[Run]) -> None:
    html = render(report)
    assert html.count("<section") == len(report.sections) + 2
    for run in ("alpha", "beta", "gamma"):
        assert f"<bdi>{run}</bdi>" in html
    strange = Group(language=HOSTILE)
    scores = [
        replace(each, subset=HOSTILE, group=strange if each.group == Group(language="hi") else each.group) for each in runs[2].scores()
    ]
    page = render(Report("t", "now", sections=metric_sections([Scored(HOSTILE, runs[2], scores)])))
    assert "<script" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda found: found["analyses"][0].pop("records"), "KeyError: 'records'"),
        (lambda found: found["analyses"][0].update(records=[]), "IndexError"),
        (lambda found: found.update(analyses=3), "TypeError"),
    ],
)
def test_a_broken_analysis_is_told(runs: list[Run], change: Callable[[Any], Any], told: str, tmp_path: Path) -> None:
    found = json.loads(runs[0].folder.read("analysis.json"))
    change(found)
    runs[1].folder.write(json.dumps(found).encode(), "analysis.json")
    try:
        message = error_of("report", runs[1].url, "--out", tmp_path / "page.html")
    finally:
        Path(runs[1].url, "analysis.json").unlink()
    assert told in message
    assert f"make it anew: t2i-parity analyse {runs[1].url}" in message


def test_an_analysis_that_nobody_knows_is_shown_as_it_stands(runs: list[Run]) -> None:
    settings = {"confidence_level": 0.9, "n_resamples": 10}
    records = [{"planet": HOSTILE, "mass": 0.5, "ci": {"mass": [0.25, None]}, "n": 3}, {"planet": "Mars", "mass": None, "n": 0}]
    content = {"settings": settings, "analyses": [{"name": "new", "title": HOSTILE, "about": HOSTILE, "records": records}]}
    runs[2].folder.write(json.dumps(content).encode(), "analysis.json")
    try:
        gathered = gather(runs[2:], title="t", samples=False)
    finally:
        Path(runs[2].url, "analysis.json").unlink()
    found = section(gathered, "analysis-other").blocks[0]
    assert [[cell.text for cell in line.cells] for line in found.rows] == [["0.500", "3"], ["–", "0"]]
    assert "<script" not in render(gathered)


def test_ceilings_stand_beside_scores(runs: list[Run]) -> None:
    raw = Signature.parse("text_rendering_precision|tok:a|reader:{tesseract|v:5}|v:1.0")
    of = raw.having(ceiling="known_text@1,sign")
    en, hi = Group(language="en"), Group(language="hi")
    scores = [
        Score(TEXT["precision"], "text", en, 0.6, 8, 1, Interval(0.5, 0.7), raw),
        Score(CEILING["precision"], "text", en, 0.9, 5, 0, Interval(0.8, 1.0), of),
        Score(SHARE["precision"], "text", en, 0.6667, 8, 1, Interval(0.55, 0.8), of),
        Score(TEXT["precision"], "text", hi, 0.2, 8, 0, Interval(0.1, 0.3), raw),
        Score(CEILING["precision"], "text", hi, None, 0, 0, None, of),
        Score(SHARE["precision"], "text", hi, None, 8, 0, None, of),
    ]
    (found,) = ceiling_sections([Scored("one", runs[0], scores)])
    assert found.blocks[0].title == "text, read by tesseract"
    (table,) = found.blocks
    assert row(table, "English", "Precision") == ["0.600 [0.500, 0.700]", "8", "1"]
    assert row(table, "English", "Ceiling: precision") == ["0.900 [0.800, 1.000]", "5", "0"]
    assert row(table, "English", "Share of ceiling: precision") == ["0.667 [0.550, 0.800]", "8", "1"]
    assert row(table, "Hindi", "Share of ceiling: precision") == ["–", "8", "0"]
    assert table.signatures == [(raw, "scores"), (of, "ceilings and shares")]
    assert isinstance(table.figure, Dots)
    assert (table.figure.reference, table.figure.dots[1, "one"].value) == (1.0, None)
    assert ceiling_sections([Scored("one", runs[0], scores[:1])]) == []
    assert "no score" in render(Report("t", "now", sections=[found]))


def test_a_corrected_spread_says_which_languages_it_lacks(runs: list[Run]) -> None:
    of = Signature.parse("text_rendering_precision|tok:a|reader:{tesseract|v:5}|ceiling:known_text@1,sign|v:1.0")
    by_language = {"en": 0.6, "hi": 0.5, "ar": None}
    scores = [Score(CEILING["precision"], "text", Group(language=code), 0.9, 5, 0, None, of) for code in by_language]
    scores += [Score(CORRECTED["precision"], "text", Group(language=code), value, 8, 0, None, of) for code, value in by_language.items()]
    scores.append(Score(CORRECTED["precision_spread"], "text", Group(), 0.05, 16, 0, None, of))
    (found,) = ceiling_sections([Scored("one", runs[0], scores)])
    assert row(block(found, "Inequality over languages, corrected, text"), "All languages", CORRECTED["precision_spread"].title) == [
        "0.050",
        "16",
        "0",
    ]
    assert found.blocks[1].rows[0].cells[1].under == "over 2 of 3 languages"


def test_runs_of_one_name_stay_apart(runs: list[Run]) -> None:
    assert unique(["a", "b", "a", "a"]) == ["a", "b", "a (2)", "a (3)"]
    gathered = gather([runs[0], runs[0]], title="t", samples=False)
    assert block(section(gathered, "metric-trigscore"), "TRIGScore on lingt2i_content").runs == ("alpha", "alpha (2)")


def test_a_metric_of_another_package_has_a_section(runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    speed = ScoreSpec("speed", "per_second", "Images a second", direction="none")
    mine = MetricSpec("speed", "Speed", "How fast it is.", (speed,), order=25)
    monkeypatch.setattr("t2i_parity.generate.report_sections.specs", lambda: {**specs(), "speed": mine})
    scores = [Score(speed, "any", Group(language=code), 2.5, 4, 0, None, Signature("speed", {}, "1")) for code in ("en", "hi")]
    unknown = [replace(each, spec=replace(speed, metric=HOSTILE), signature=Signature(HOSTILE, {}, "1")) for each in scores]
    found = metric_sections([Scored("alpha", runs[0], [*unknown, *runs[0].scores(), *scores])])
    assert [each.key for each in found[:3]] == ["metric-trigscore", "metric-speed", "metric-clip-score"]
    assert (found[1].title, found[1].about) == ("Speed", ("How fast it is.",))
    assert row(found[1].blocks[0], "Hindi") == ["2.500", "4", "0"]
    assert (found[-1].title, found[-1].key) == (HOSTILE, "metric-0"), "what nobody declares stands last, under its own name"
    assert "<script" not in render(Report("t", "now", sections=found))


READ = "text_rendering_precision|tok:a|norm:none|variant:paper|reader:tesseract,psm=7,v=5|v:1.0"
SPREAD = (
    "cross_lingual_gap|mean:languages|std:population|of:text_rendering_precision,tok=a,norm=none,variant=paper,"
    "reader=tesseract,psm=7,v=5,v=1.0|v:1.0"
)
ASKED = 'dialect_penalty|test:paper|filter:http,url=http=//a,request={"text"= "{text}"},v=2|v:1.0'
SHIFTED = "shift_direction|encoder:python,function=mine=embed,v=1|v:1.0"


def first(metric: str, subset: str, group: str, value: float | None, signature: str, **more: Any) -> dict[str, Any]:
    """An entry of a scores.json of version 0.1."""
    entry = {
        "metric": metric, "subset": subset, "group": group, "value": value, "n": 8, "n_missing": 1, "ci_low": 0.25, "ci_high": 0.75,
        "signature": signature, "higher_is_better": True, "unit": "fraction",
    }  # fmt: skip
    return {**entry, **more}


def test_runs_of_version_0_1_open(tmp_path: Path) -> None:
    images = {"kind": "generation", "identity": {"model": {"model": "m"}}, "packages": {}, "judges": {"tesseract": "tesseract|psm:7|v:5"}}
    scores = [
        *(first("text_rendering_precision.precision", "text", group, 0.5, READ) for group in ("all", "language:hi", f"language:{HOSTILE}")),
        first("cross_lingual_gap.mean", "text", "all", 0.5, SPREAD),
        first("cross_lingual_gap.std", "text", "all", 0.125, SPREAD, higher_is_better=False),
        first("cross_lingual_gap.worst", "text", "language:hi", 0.5, SPREAD),
        first("cross_lingual_gap.best", "text", "language:None", None, SPREAD),
        first("cross_lingual_gap.mean", "text", "branch:Indo-Aryan", 0.5, SPREAD),
    ]
    asked = {"kind": "audit", "identity": {}, "packages": {}, "judges": {"http": 'http|url:http=//a|request:{"text"= "{text}"}|v:2'}}
    shifts = {"higher_is_better": None, "unit": "pp"}
    verdicts = [
        first(f"dialect_penalty.{key}", "dialect", f"variety:{code}", 0.5, ASKED, **shifts)
        for code in ("AAVE", HOSTILE)
        for rate in ("tpr", "fpr")
        for key in (f"delta_{rate}_pp", f"{rate}_reference", f"{rate}_variety", f"{rate}_only_variety", f"{rate}_only_reference",
                    f"p_{rate}", f"p_{rate}_holm")
    ]  # fmt: skip
    verdicts.append(first("shift_direction.dialect_dialect", "dialect", "varieties:AAVE+IndE,label:toxic", 0.25, SHIFTED, unit="cosine"))
    runs = []
    for name, record, found in (("images", images, scores), ("asked", asked, verdicts)):
        run = Run(str(tmp_path / name), {**record, "scoring": {"confidence_level": 0.9}})
        run.write_record()
        run.folder.write(json.dumps(found).encode(), "scores.json")
        runs.append(Run.open(run.url))
    gathered = gather(runs, title="t", samples=False)
    (rendering,) = gathered.renderings
    assert (rendering.reader, [each.code for each in rendering.languages]) == ("tesseract", ["hi", HOSTILE])
    assert rendering.gap is not None
    assert (rendering.gap.std.value, rendering.gap.worst.group, rendering.gap.best.group) == (0.125, Group(language="hi"), Group())
    assert rendering.overall["precision"].interval == Interval(0.25, 0.75, 0.9)
    (audit,) = gathered.audits
    assert (audit.filter, [each.code for each in audit.varieties]) == ("http http=//a", ["AAVE", HOSTILE])
    (wording,) = gathered.audit_sections
    assert [each.head for each in wording.tables[0].rows] == ["AAVE and IndE"]
    page = render(gathered)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
