"""The catalog: every model of the studies, settings that their families take, names that load, and the table of them."""

from __future__ import annotations

import json
import re

import pytest
from commands import command, error_of

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.settings import settings
from t2i_parity.generate.models import FAMILIES, load, resolve
from t2i_parity.generate.models.catalog import CATALOG, STUDIES, TEXT_INPUTS, columns_of
from t2i_parity.generate.models.listing import missing

CONTENT = {
    "sd-3.5-large", "sdxl", "sana-1.5", "janus-pro", "qwen-image", "flux-krea", "pixart-sigma", "pea", "x2i", "mulan", "lumina-t2x",
    "z-image", "omnidiffusion-sdxl",
}  # fmt: skip
TEXT = {"nano-banana", "qwen-image", "flux-krea", "anytext", "anytext2", "easytext"}


def used(study: str, role: str) -> set[str]:
    return {name for name, entry in CATALOG.items() if any((use.study, use.role) == (study, role) for use in entry.studies)}


def test_every_model_of_the_studies_is_there() -> None:
    assert used("lingt2i", "content generation") == CONTENT
    assert used("lingt2i", "text rendering") == TEXT
    assert len(CONTENT | TEXT) == 17, "the study counts 17"
    assert [name for name, entry in CATALOG.items() if any(use.study == "dialect" for use in entry.studies)] == ["sd-1.4"]
    assert {use.study for entry in CATALOG.values() for use in entry.studies} == set(STUDIES)


def test_the_papers_settings_are_the_defaults() -> None:
    sizes = {name: (CATALOG[name].width, CATALOG[name].height) for name in CONTENT | TEXT}
    assert sizes.pop("janus-pro") == (None, None), "its 384 pixels are its weights' own"
    assert {name for name, size in sizes.items() if size == (512, 512)} == {"anytext", "anytext2"}
    assert {size for name, size in sizes.items() if not name.startswith("anytext")} == {(1024, 1024)}
    audited = CATALOG["sd-1.4"].defaults
    assert (audited["steps"], audited["guidance"], audited["width"], audited["safety_checker"]) == ("50", "7.5", "512", "none")


@pytest.mark.parametrize("name", CATALOG)
def test_an_entry_says_all_that_it_must(name: str) -> None:
    entry = CATALOG[name]
    assert entry.title
    assert entry.about
    assert entry.license
    assert entry.settings_from
    assert entry.family in FAMILIES
    assert entry.text_input in TEXT_INPUTS
    if entry.revision is None:
        assert entry.unpinned, "what is not pinned says why"
    else:
        assert re.fullmatch("[0-9a-f]{40}", entry.revision)
    if entry.hub_id is not None:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+", entry.hub_id)
        assert entry.pipeline
        assert entry.memory_gb
    if entry.family == "adapter":
        assert entry.repository


@pytest.mark.parametrize("name", list(CATALOG))
def test_its_defaults_are_settings_that_its_family_takes(name: str) -> None:
    family, source, chosen = resolve(name, {})
    assert source == CATALOG[name].source
    read = settings(family.settings_class() or object, chosen, name)
    for key, value in CATALOG[name].defaults.items():
        assert str(getattr(read, key)) == value


def test_names_families_folders_and_hub_ids() -> None:
    assert resolve("sd-1.4", {"steps": "3"})[2]["steps"] == "3", "the user's own come last"
    assert resolve("sd-1.4", {"steps": "3"})[2]["guidance"] == "7.5"
    assert resolve("janus:some/model", {}) == (FAMILIES.find("janus"), "some/model", {})
    assert resolve("some/model", {}) == (FAMILIES.find("diffusers"), "some/model", {})
    assert resolve("C:/models/mine", {})[:2] == (FAMILIES.find("diffusers"), "C:/models/mine"), "a colon alone makes no family"
    with pytest.raises(InputError, match="takes nothing after the colon"):
        load("glyph:paper", {})
    with pytest.raises(InputError, match="sdxl has no setting 'step'"):
        load("sdxl", {"step": "3"})


def test_the_columns_that_a_model_needs() -> None:
    assert columns_of("sdxl") == columns_of("some/model") == ()
    assert [column.name for column in columns_of("anytext")] == ["render_text", "render_layout"]


def test_the_table_names_every_model_and_fits_its_width() -> None:
    told = command("models").stdout
    assert all(name in told for name in CATALOG)
    assert max(map(len, told.splitlines())) <= 120
    assert "…" not in told
    row = next(line for line in told.splitlines() if line.startswith(" sd-1.4"))
    assert row.split()[:8] == ["sd-1.4", "Stable", "Diffusion", "1.4", "50", "7.5", "512", "4"]


def test_one_family_and_json() -> None:
    told = json.loads(command("models", "--family", "diffusers", "--json").stdout)
    assert {each["name"] for each in told} == {name for name, entry in CATALOG.items() if entry.family == "diffusers"}
    assert next(each for each in told if each["name"] == "qwen-image")["defaults"]["negative_prompt"] == " "
    assert "unknown family of models 'no': expected one of diffusers" in error_of("models", "--family", "no")


def test_one_model_says_what_it_needs_and_what_is_missing_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    told = " ".join(command("models", "nano-banana").stdout.split())
    assert "a key in the environment variable GEMINI_API_KEY" in told
    monkeypatch.setenv("GEMINI_API_KEY", "secret-value")
    told = command("models", "nano-banana").stdout
    assert "nothing that can be told without loading it" in told
    assert "secret-value" not in told
    told = " ".join(command("models", "flux-krea").stdout.replace("│", " ").split())
    assert "black-forest-labs/FLUX.1-Krea-dev is not in the hub's cache" in told
    assert "unpinned: no commit of its hub repository was found" in told
    assert "git clone https://github.com/mulanai/MuLan" in command("models", "mulan").stdout
    assert "unknown model 'sdxxl': expected one of sd-3.5-large" in (told := error_of("models", "sdxxl"))
    assert "did you mean sdxl?" in told


def test_a_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "accelerate", None)
    assert "the package accelerate: pip install 't2i-parity[generate]'" in missing(CATALOG["sdxl"])
