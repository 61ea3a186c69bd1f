"""The full edition, on small files of the upstreams' layouts."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from commands import command
from datasets import load_dataset
from upstreams import accept, easytext, edition, lingt2i, pair_counts, risky_prompt

from t2i_parity.dataset_builder import full
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.release import read_release
from t2i_parity.dataset_builder.repository import write_repository
from t2i_parity.dataset_builder.schema import CONFIGS
from t2i_parity.dataset_builder.sources import SOURCES


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    accept(monkeypatch)


def test_every_config_is_there_but_those_said_to_be_absent(tmp_path: Path) -> None:
    tables = full.tables(edition(tmp_path))
    assert set(tables) | set(full.ABSENT) == set(CONFIGS)
    assert not set(tables) & set(full.ABSENT)
    assert {name: len(table) for name, table in tables.items()} == {
        "lingt2i_text": 20,
        "lingt2i_content": 200,
        "dialect": 6 * sum(pair_counts().values()) + 2_100,
        "geo": 280,
    }
    assert Counter(tables["dialect"]["subset"].to_pylist()).keys() == {"dialect_pairs", "dialectgen_concise"}
    ids = [prompt_id for table in tables.values() for prompt_id in table["prompt_id"].to_pylist()]
    assert len(ids) == len(set(ids))


def test_the_true_sizes_make_63_thousand_rows() -> None:
    assert sum(sum(SOURCES[name].counts.values()) for name in full.EDITION) == 63_076


def test_a_named_source_joins(tmp_path: Path) -> None:
    inputs = edition(tmp_path) | {"risky_prompt": str(risky_prompt(tmp_path / "risky")), "easytext": str(easytext(tmp_path / "easy"))}
    tables = full.tables(inputs)
    assert set(tables["dialect"]["subset"].to_pylist()) == {"dialect_pairs", "dialectgen_concise", "t2i_riskyprompt"}
    assert set(tables["lingt2i_text"]["subset"].to_pylist()) == {"lingt2i_text", "easytext"}


def test_two_builds_are_byte_identical_and_open(tmp_path: Path) -> None:
    places = edition(tmp_path / "upstreams")
    for out in ("one", "two"):
        write_repository(full.tables(places), tmp_path / out, edition="full")
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert len(files) >= 5
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    loaded = load_dataset(str(tmp_path / "one"), "lingt2i_text", split="test")
    assert loaded[0]["condition_image"].size == (96, 24)
    assert loaded[0]["render_text"] in loaded[0]["prompt"]


def test_the_build_brings_along_what_the_geographical_study_printed(tmp_path: Path) -> None:
    inputs = [word for name, place in edition(tmp_path / "upstreams").items() for word in ("--input", f"{name}={place}")]
    command("build", "--edition", "full", *inputs, "--out", tmp_path / "full")
    assert len(load_dataset(str(tmp_path / "full"), "geo_published", split="test")) == 308
    release = read_release(tmp_path / "full")
    assert release.published
    assert set(release.tables) == set(CONFIGS) - set(full.ABSENT)


def test_the_benchmark_runs() -> None:
    script = Path(__file__).parent.parent / "benchmarks" / "import_full_edition.py"
    done = subprocess.run([sys.executable, script, "--size", "2", "--repeats", "1"], capture_output=True, text=True, check=True)
    head, row, peak = done.stdout.splitlines()
    assert head.split() == ["ours", "s", "peer", "s", "ratio", "at", "most"]
    assert row.startswith("import, check and write ")
    assert peak.startswith("peak memory: ")


def test_what_cannot_be_built_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown source 'lingt3i': expected one of lingt2i, dialect_pairs, dialectgen, geo"):
        full.tables({"lingt3i": "x"})
    with pytest.raises(InputError, match="the source geo is made from templates and takes no input, got x"):
        full.tables(edition(tmp_path) | {"geo": "x"})
    with pytest.raises(InputError, match="RISys-Lab/LingT2I is neither a folder here nor a dataset that the hub gave"):
        full.tables({})


def test_the_same_prompts_twice_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SOURCES.declared, "easytext", SOURCES.find("lingt2i"))
    with pytest.raises(InputError, match=r"prompt_id 'lingt2i-.*' stands in more than one row"):
        full.tables(edition(tmp_path / "a") | {"easytext": str(lingt2i(tmp_path / "b"))})


def test_parts_are_asked_for_by_name(tmp_path: Path) -> None:
    place = edition(tmp_path)["dialectgen"]
    assert len(SOURCES["dialectgen"].tables(place, "concise")["dialect"]) == 2_100
    with pytest.raises(InputError, match="unknown part 'long' of DialectGen: expected one of concise, detailed"):
        SOURCES["dialectgen"].tables(place, "long")
    with pytest.raises(InputError, match="unknown part 'long' of LingT2I: it has no parts"):
        SOURCES["lingt2i"].tables(place, "long")


@pytest.mark.parametrize("name", list(SOURCES))
def test_every_source_is_declared_in_full(name: str) -> None:
    source = SOURCES[name]
    assert source.name == name
    assert source.url.startswith("https://") or name == "rows", "rows of one's own stand where their owner says"
    assert source.license
    assert set(source.counts) <= set(CONFIGS)
    assert not source.default or source.expected
