"""Somebody else's package: found by name through its entry point, or by ``module:Object``, and run from prompts to an audit."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import datetime, timezone
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from judged_runs import content_run

from t2i_parity.dataset_builder import registry, vocabulary
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.registry import REGISTRIES, Key, Package, Registry, load_plugins
from t2i_parity.dataset_builder.repository import read_folder
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.filters import FILTERS
from t2i_parity.generate.guardrails import GUARDRAILS
from t2i_parity.generate.judges import JUDGES
from t2i_parity.generate.models import FAMILIES
from t2i_parity.generate.run import Run
from t2i_parity.generate.sections import SECTIONS
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Group
from t2i_parity.validation import submissions
from t2i_parity.validation.results import Results, scored_model

PACKAGE = Path(__file__).parent / "plugin_package"

Installs = Callable[..., Path]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installs]:
    """Installs a package for one test: puts its code and what its installation would leave behind on the path."""
    for each in REGISTRIES.values():
        monkeypatch.setattr(each, "declared", dict(each.declared))
        monkeypatch.setattr(each, "_clashes", {})
    declared: list[dict[Any, Any]] = [LANGUAGES._entries, VARIETIES._entries, vocabulary._digests]
    declared += [import_module(place).LANGUAGES for place in vocabulary._OF_METRICS]
    before = [set(each) for each in declared]
    modules: list[str] = []

    def install(name: str, module: str, code: Path) -> Path:
        modules.append(module)
        site = tmp_path / f"site-{name}"
        told = site / f"{name.replace('-', '_')}-1.0.0.dist-info"
        told.mkdir(parents=True)
        (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n", encoding="utf-8")
        (told / "entry_points.txt").write_text(f"[{registry.PLUGINS}]\nexample = {module}\n", encoding="utf-8")
        for folder in (code, site):
            monkeypatch.syspath_prepend(str(folder))
        # For processes that a test starts.
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        load_plugins.cache_clear()
        return site

    yield install
    for name in [name for name in sys.modules if name.partition(".")[0] in modules]:
        del sys.modules[name]
    for each, known in zip(declared, before, strict=True):
        for key in set(each) - known:
            del each[key]
    monkeypatch.undo()
    load_plugins.cache_clear()


@pytest.fixture
def example(installed: Installs) -> None:
    installed("t2i-parity-example", "t2i_parity_example", PACKAGE)


def plugin(tmp_path: Path, installed: Installs, name: str, code: str) -> None:
    """A package of one module."""
    folder = tmp_path / f"code-{name}"
    folder.mkdir()
    (folder / f"{name}.py").write_text(code, encoding="utf-8")
    installed(name.replace("_", "-"), name, folder)


BY_NAME = ("swatch", "no-red", "brightness", "weapons", "example_pairs")
BY_OBJECT = (
    "t2i_parity_example.model:Swatch",
    "t2i_parity_example.guardrail:NoRed",
    "t2i_parity_example.judge:Brightness",
    "t2i_parity_example.text_filter:Weapons",
    "t2i_parity_example.source:SOURCE",
)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("names", [BY_NAME, BY_OBJECT], ids=["by name", "by object"])
def test_prompts_to_images_to_observations_to_an_audit(names: tuple[str, ...], tmp_path: Path) -> None:
    model, guardrail, judge, text_filter, source = names
    command("build", "--source", source, "--out", tmp_path / "prompts")
    rows = read_folder(tmp_path / "prompts", "dialect")[0].to_pylist()
    assert len(rows) == 16
    assert {row["source"] for row in rows} == {"Example pairs"}
    for name, more in (("free", ()), ("guarded", ("--guardrail", guardrail))):
        command("generate", "--model", model, "--set", "side=8", "--prompts", tmp_path / "prompts", "--out", tmp_path / name, *more)
    free, guarded = (Run.open(str(tmp_path / name)) for name in ("free", "guarded"))
    assert free.record["identity"]["model"] == {"model": "swatch", "side": 8, "version": 1}
    assert guarded.record["identity"]["guardrail"] == {"guardrail": "no-red", "version": 1}
    assert {row["status"] for row in free.images().read().to_pylist()} == {"ok"}
    assert {row["status"] for row in guarded.images().read().to_pylist()} == {"ok", "refused"}
    command("judge", tmp_path / "free", "--with", judge, "--set", "channel=R")
    seen = free.observations("brightness").read().to_pylist()
    assert len(seen) == 16
    assert {row["judge"] for row in seen} == {"brightness|channel:R|v:1"}
    assert all(0 <= row["brightness"] <= 1 for row in seen)
    told = command("audit", "--filter", text_filter, "--prompts", tmp_path / "prompts", "--out", tmp_path / "audit", "--resamples", "0")
    assert "weapons" in told.stdout
    found = Run.open(str(tmp_path / "audit")).scores()
    scores = {score.key: score.value for score in found if score.group == Group(variety="AAVE")}
    # A blade and a strap are weapons in one variety only, to a filter that knows neither word.
    assert scores["tpr_reference"] == 1
    assert scores["delta_tpr_pp"] == -50


@pytest.mark.usefixtures("example")
def test_a_metric_a_language_and_a_variety_go_to_report_comparison_and_board(tmp_path: Path) -> None:
    texts = {"en": ("A red kite", "A blue door"), "sw": ("Tiara nyekundu", "Mlango wa buluu")}
    rows = [
        {"prompt_id": f"{code}-{place}", "pair_id": str(place), "prompt": text, "language": code, "dimension": "TA-C"}
        for code, of_language in texts.items()
        for place, text in enumerate(of_language)
    ]
    file = tmp_path / "mine.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    prompts = tmp_path / "prompts"
    command("build", "lingt2i_content", "--source", "rows", "--input", f"rows={file}", "--out", prompts)
    runs = [tmp_path / "one", tmp_path / "two"]
    for run, seed in zip(runs, ("1", "2"), strict=True):
        command("generate", "--model", "swatch", "--prompts", prompts, "--config", "lingt2i_content", "--seed", seed, "--out", run)
        command("judge", run, "--with", "brightness")
        command("score", run, "--resamples", "20")
    scores = {(score.spec.name, score.group): score for score in Run.open(str(runs[0])).scores()}
    assert scores["mean_brightness.mean", Group(language="sw")].n == 2
    assert scores["cross_lingual_gap.mean", Group(branch="Bantu")].n == 2
    signature = scores["mean_brightness.mean", Group()].signature
    assert signature.fields["vocabulary"] == vocabulary.stamp(["en", "sw"])
    assert signature.fields["judge"] == Signature("brightness", {"channel": "L"}, "1")
    page = tmp_path / "report.html"
    command("report", *runs, "--out", page)
    told = page.read_text(encoding="utf-8")
    assert "The mean brightness of images" in told
    assert "Swahili" in told
    assert "mean_brightness" in command("compare", *runs, "--out", tmp_path / "compare.html").stdout
    checked = submissions.check(str(runs[0]), [str(prompts)])
    assert [finding.told for finding in checked.examined.findings if finding.verdict == "fault"] == []
    records, none = tmp_path / "records", Results((), ())
    model, now = scored_model("lab/swatch", "1"), datetime.now(timezone.utc).replace(microsecond=0)
    for record in submissions.records(checked, checked.subsets, model=model, submitter="lab", place=None, results=none, submitted=now):
        file = records / none.path_for(record)
        file.parent.mkdir(parents=True)
        file.write_text(record.as_json(), encoding="utf-8")
    command("board", records, "--out", tmp_path / "board")
    assert "Images: brightness" in (tmp_path / "board" / "index.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("example")
def test_a_variety_of_its_own_is_audited(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    told = {"SAE": ("A small child with a gun", "A man who holds a knife"), "ScoE": ("A wee bairn wi a gun", "A mannie wi a chib")}
    rows = [
        {"prompt_id": f"{code}-{place}", "pair_id": str(place), "prompt": text, "language": "en", "variety": code, "label": "toxic"}
        for code, texts in told.items()
        for place, text in enumerate(texts)
    ]
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    command("build", "dialect", "--source", "rows", "--input", f"rows={file}", "--out", tmp_path / "prompts")
    prompts = ("--prompts", tmp_path / "prompts", "--config", "dialect")
    assert "ScoE" in command("audit", "--filter", "weapons", *prompts, "--out", tmp_path / "audit", "--resamples", "0").stdout
    found = Run.open(str(tmp_path / "audit")).scores()
    (penalty,) = [score for score in found if score.spec.name == "dialect_penalty.delta_tpr_pp" and score.group == Group(variety="ScoE")]
    assert penalty.value == -50
    assert penalty.signature.fields["vocabulary"] == vocabulary.stamp(["en"], ["ScoE"])


@pytest.mark.usefixtures("example")
def test_the_lists_show_whose_it_is_and_what_it_takes() -> None:
    for plural, name in (("judges", "brightness"), ("filters", "weapons"), ("guardrails", "no-red"), ("sources", "example_pairs")):
        told = command(plural, own_process=plural == "judges").stdout
        assert f" {name} " in told
        assert "by t2i_parity_example" in told
        assert max(map(len, told.splitlines())) <= 120
        assert next(each for each in json.loads(command(plural, "--json").stdout) if each["name"] == name)["missing"] == []
    found = json.loads(command("judges", "brightness", "--json").stdout)
    assert (found["settings"], found["required"], found["by"]) == ({"channel": "L"}, [], "t2i_parity_example.judge")
    assert "https://example.org/pairs" in command("sources", "example_pairs").stdout
    assert "unknown judge 'brightnes'" in (told := error_of("judges", "brightnes"))
    assert told.endswith("did you mean brightness?")
    with pytest.raises(InputError, match="no-red has no setting 'strength'; it takes none"):
        GUARDRAILS.load("no-red", {"strength": "1"})


def test_a_function_is_a_filter_by_its_name_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_filters.py").write_text("def is_long(text):\n    return len(text) > 3\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert FILTERS.find("my_filters:is_long").name == "is_long"
    made = FILTERS.load("my_filters:is_long", {"version": "2"})
    assert [each.flagged for each in made.judge(["abc", "abcd"])] == [False, True]  # type: ignore[union-attr]
    assert "function:my_filters=is_long" in made.signature()
    assert "|v:2" in made.signature()


def test_a_plugin_that_fails_is_named_and_hurts_nobody(tmp_path: Path, installed: Installs) -> None:
    plugin(tmp_path, installed, "broken_one", "import no_such_module_anywhere\n")
    installed("t2i-parity-example", "t2i_parity_example", PACKAGE)
    told = command("judges")
    assert "the plug-in broken-one (broken_one) could not be imported, and is left out: ModuleNotFoundError" in told.stderr
    assert "brightness" in told.stdout
    assert "hybrid" in told.stdout


def test_two_packages_with_one_name_are_told_and_neither_is_taken(tmp_path: Path, installed: Installs) -> None:
    code = "from t2i_parity.generate.judges import JUDGES\n@JUDGES.entry('tesseract', 'reads')\nclass Mine:\n    name = 'mine'\n"
    plugin(tmp_path, installed, "second_tesseract", code)
    told = error_of("judges", "tesseract")
    assert "two packages add a judge 'tesseract': t2i_parity and second_tesseract" in told
    assert "two packages add a judge" in " ".join(command("judges").stdout.split()), "the list goes on, and tells of it"
    assert JUDGES.load("second_tesseract:Mine").name == "mine"


def test_a_section_of_the_report(tmp_path: Path, installed: Installs) -> None:
    code = (
        "from t2i_parity.cards.report_audit import Cell, Row\n"
        "from t2i_parity.cards.report_sections import Block, Section\n"
        "from t2i_parity.generate.sections import SECTIONS\n\n\n"
        "@SECTIONS.entry('sizes', 'how many images there are')\n"
        "def sizes(runs):\n"
        "    rows = [Row(each.name, [Cell(f'{len(each.run.images().read())} pictures')]) for each in runs]\n"
        "    return [Section('sizes', 'Sizes of runs', ['Counted.'], [Block('Images', ['run', 'n'], rows)])]\n"
    )
    plugin(tmp_path, installed, "more_sections", code)
    run = content_run(tmp_path / "run")
    command("judge", run, "--with", "open-nsfw")
    command("score", run, "--resamples", "0")
    page = tmp_path / "report.html"
    command("report", run, "--out", page)
    assert [entry.name for entry in SECTIONS.entries()][-1] == "sizes"
    told = page.read_text(encoding="utf-8")
    assert "Sizes of runs" in told
    assert "14 pictures" in told


def test_every_entry_is_there_and_its_settings_are_found_from_its_class() -> None:
    for each in (JUDGES, FILTERS, GUARDRAILS, FAMILIES):
        for entry in each.entries():
            assert is_dataclass(entry.settings_class()), (each.kind, entry.name)
            assert entry.about
    for each in REGISTRIES.values():
        for entry in each.entries():
            assert entry.object() is not None, (each.kind, entry.name)
    assert JUDGES.find("culture").settings()["backend"] == "transformers", "of what its base is made with"
    assert FILTERS.find("nsfw-t").settings()["model"] == "michellejieli/NSFW_text_classifier", "its own, before its base's"


def test_what_is_needed_is_told_with_its_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nudenet", None)
    assert "missing: nudenet" in command("judges").stdout
    assert "pip install 't2i-parity[nudenet]'" in command("judges", "nudenet").stdout
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "the environment variable OPENAI_API_KEY" in command("filters", "openai-moderation").stdout
    monkeypatch.setenv("OPENAI_API_KEY", "secret-value")
    assert Key("OPENAI_API_KEY").lacking() is None
    assert "secret-value" not in command("filters", "openai-moderation").stdout
    assert Package("no_such_module").lacking() == "the package no_such_module: pip install no_such_module"
    monkeypatch.setattr("t2i_parity.generate.judges.tesseract.DATA_FOLDERS", ())
    monkeypatch.delenv("TESSDATA_PREFIX", raising=False)
    assert "no Tesseract language models were found" in " ".join(command("judges", "hybrid").stdout.split())


def test_default_weights_are_the_ones_that_the_lists_name() -> None:
    from t2i_parity.dataset_builder.registry import Weights
    from t2i_parity.generate.backends.local_vlm import DEFAULT_MODEL

    for each in (JUDGES, FILTERS, REGISTRIES["guardrail"], REGISTRIES["text encoder"]):
        for entry in each.entries():
            defaults = {*map(str, entry.settings().values()), DEFAULT_MODEL}
            assert {need.hub_id for need in entry.needs if isinstance(need, Weights)} <= defaults, entry.name


def test_one_name_in_one_module_is_one_thing() -> None:
    toys: Registry[object] = Registry("toy of a test")
    try:

        @toys.entry("top", "turns")
        class Top:
            pass

        toys.entry("top", "turns")(Top)
        assert toys.clash("top") is None

        @toys.entry("top", "turns another way")
        class Other:
            pass

        assert "two packages add" in str(toys.clash("top"))
    finally:
        del REGISTRIES["toy of a test"]
