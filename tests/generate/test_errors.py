"""Bad input through the real command: one paragraph that names the place and the fix, exit code 2, nothing lost."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, error_of

from t2i_parity.generate.run import Run


def generate(prompts: Path, out: Path, *more: object, config: str = "lingt2i_text") -> tuple[object, ...]:
    return ("generate", "--model", "glyph", "--prompts", prompts, "--config", config, "--out", out, *more)


@pytest.fixture
def copied(prompts: Path, tmp_path: Path) -> Path:
    shutil.copytree(prompts, tmp_path / "prompts")
    return tmp_path / "prompts"


def rewrite(prompts: Path, config: str, change: object) -> Path:
    path = next((prompts / config).glob("*.parquet"))
    pq.write_table(change(pq.read_table(path)), path)  # type: ignore[operator]
    return path


def test_unknown_language(prompts: Path, tmp_path: Path) -> None:
    message = error_of(*generate(prompts, tmp_path / "run", "--languages", "en,tlh"), own_process=True)
    assert "unknown language 'tlh': these prompts are in en, zh" in message
    assert not (tmp_path / "run").exists()


def test_unknown_language_in_a_row(copied: Path, tmp_path: Path) -> None:
    def change(table: pa.Table) -> pa.Table:
        values = ["tlh" if number == 3 else value for number, value in enumerate(table["language"].to_pylist())]
        return table.set_column(table.column_names.index("language"), "language", pa.array(values))

    rewrite(copied, "lingt2i_text", change)
    message = error_of(*generate(copied, tmp_path / "run"))
    assert "row 3, column language: unknown language 'tlh'" in message


def test_missing_column(copied: Path, tmp_path: Path) -> None:
    rewrite(copied, "lingt2i_text", lambda table: table.drop_columns(["render_text"]))
    message = error_of(*generate(copied, tmp_path / "run"))
    assert "missing column render_text" in message
    assert "lingt2i_text" in message
    assert "t2i-parity build" in message


def test_a_config_without_the_needed_column(prompts: Path, tmp_path: Path) -> None:
    assert "missing columns render_text, render_layout" in error_of(*generate(prompts, tmp_path / "run", config="geo"))


def test_duplicate_prompt_id(copied: Path, tmp_path: Path) -> None:
    rewrite(copied, "lingt2i_text", lambda table: pa.concat_tables([table, table.slice(5, 1)]))
    message = error_of(*generate(copied, tmp_path / "run"))
    assert "rows 5 and 640 have the same prompt_id 'starter-TR-001-fr'" in message


def test_unreadable_prompts(copied: Path, tmp_path: Path) -> None:
    path = next((copied / "lingt2i_text").glob("*.parquet"))
    path.write_bytes(path.read_bytes()[:1000])
    message = error_of(*generate(copied, tmp_path / "run"))
    assert path.name in message
    assert "is not a readable parquet file" in message


def test_an_unreadable_part_of_a_run_loses_nothing(prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    argv = generate(prompts, run, "--limit", 20)
    command(*argv)
    good = {path.name: path.read_bytes() for path in (run / "images").iterdir()}
    torn = run / "images" / "part-00001.parquet"
    torn.write_bytes(next(iter(good.values()))[:5000])
    for again in (argv, ("judge", run, "--with", "tesseract")):
        message = error_of(*again)
        assert "part-00001.parquet is not a readable parquet file" in message
        assert "Move it away" in message
    torn.rename(tmp_path / "moved-away.parquet")
    assert "0 images made now, 20 were there" in command(*argv).stdout
    assert {path.name: path.read_bytes() for path in (run / "images").iterdir()} == good


def test_a_run_that_a_crash_left_half_written_can_be_judged(prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    argv = generate(prompts, run, "--limit", 20)
    command(*argv)
    part = next((run / "images").iterdir())
    journal = run / ".journal" / "images"
    rows = pq.read_table(part)
    for number in range(2):
        pq.write_table(rows.slice(10 * number, 10), journal / f"batch-{number:06d}.parquet")
    part.unlink()
    (journal / "batch-000001.parquet").write_bytes((journal / "batch-000001.parquet").read_bytes()[:3000])
    done = command("judge", run, "--with", "tesseract")
    assert "10 observations made now, 0 were there" in done.stdout
    assert "set aside, since it cannot be read: .journal/images/batch-000001.parquet" in done.stderr.replace("\n", "")
    assert "10 images made now, 10 were there" in command(*argv).stdout
    assert "10 observations made now, 10 were there" in command("judge", run, "--with", "tesseract").stdout


def test_the_commonest_reasons_of_failures_are_told(prompts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_filter.py").write_text(
        "def flag(text):\n    if len(text) % 2:\n        raise KeyError(object())\n    raise ValueError('no weights')\n",
        encoding="utf-8",
    )
    words = ("--filter", "python", "--set", "function=broken_filter:flag", "--config", "dialect", "--batch-size", 1)
    told = command("audit-filter", *words, "--prompts", prompts, "--out", tmp_path / "run", check=1).stdout
    assert "1080 verdicts made now, 1080 of them failed" in told
    counts = {line.split(" × ")[1]: int(line.split(" × ")[0].replace(",", "")) for line in told.splitlines() if " × " in line}
    assert list(counts) == sorted(counts, key=lambda reason: -counts[reason])
    assert sum(counts.values()) == 1080
    assert set(counts) == {"KeyError: <object object>", "ValueError: no weights"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("generate", "--model", "glyph", "--prompts", "no/such/prompts", "--out", "run"),
            "is neither a folder nor a dataset that the hub gave",
        ),
        (("judge", "no-run", "--with", "tesseract"), "no-run is not a run: it holds no run.json"),
        (("score", "no-run"), "no-run is not a run"),
        (("report", "no-run"), "no-run is not a run"),
        (("build", "--edition", "imaginary"), "unknown edition 'imaginary': expected starter or full"),
        (("build", "dialect", "--source", "elsewhere"), "unknown source 'elsewhere': expected one of lingt2i"),
        (("build", "poems"), "unknown config 'poems': expected one of lingt2i_text"),
        (("build", "geo", "--source", "dialectgen", "--input", "."), "no DialectGen files below ."),
    ],
)
def test_what_is_not_there(arguments: tuple[str, ...], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in error_of(*arguments)
    assert not list(tmp_path.iterdir())


def test_steps_in_the_wrong_order_name_the_step_before(prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command(*generate(prompts, run, "--limit", 10))
    assert "make some first: t2i-parity judge" in error_of("score", run)
    assert "make them first: t2i-parity score" in error_of("report", run)
    assert "unknown judge 'eyes'" in error_of("judge", run, "--with", "eyes")
    command("judge", run, "--with", "tesseract")
    offline = error_of("score", run)
    assert "google/mt5-base" in offline
    assert "tekken" in offline
    assert "expected NAME=VALUE" in error_of(*generate(prompts, run, "--set", "damage"))
    message = error_of("judge", run, "--with", "tesseract", "--set", "layout=page")
    assert "under other settings" in message
    assert "--as NAME" in message
    command("judge", run, "--with", "tesseract", "--set", "layout=page", "--as", "tesseract-page")
    assert Run.open(str(run)).judges() == ["tesseract", "tesseract-page"]
    assert "is no name of a judge" in error_of("judge", run, "--with", "tesseract", "--as", "../outside")


def test_a_folder_with_other_things_is_not_written_into(prompts: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    assert "is not empty and holds no run.json" in error_of(*generate(prompts, tmp_path, "--limit", 10))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_other_prompts_are_not_mixed_into_a_run(prompts: Path, copied: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command(*generate(prompts, run, "--limit", 10))

    rewrite(copied, "lingt2i_text", lambda table: table.slice(0, 100))
    message = error_of(*generate(copied, run, "--limit", 10))
    assert "prompts.content_sha256" in message
    command(*generate(prompts, run, "--limit", 20))
    assert len(Run.open(str(run)).images().ids()) == 20
