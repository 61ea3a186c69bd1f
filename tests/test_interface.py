"""The Python interface as a user meets it: six lines, typed for whoever checks their own script, light to import."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command

import t2i_parity as tp
from t2i_parity.dataset_builder.prompts import ADDED

ROOT = Path(__file__).resolve().parent.parent
SIX_LINES = """\
import t2i_parity as tp

prompts = tp.load_prompts("demo/prompts", "lingt2i_text", languages=["en", "hi"], limit=8)
run = tp.generate("glyph", prompts, out="runs/mine", settings={"damage": "light"})
tp.judge(run, "tesseract")
scores = tp.score(run, tokenizer="tekken")
tp.report([run], out="runs/mine.html")
"""
# Of what the six lines return, a user's script relies on this.
USED = """
language: str = prompts.rows[0]["language"]
made: int = run.tallies["images"].done
page: str = tp.report([run]).html()
n: int = len(scores)
try:
    numbers = tp.compare([run, "runs/other"], margin=0.1).as_json()
except tp.InputError as error:
    print(str(error))
"""


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_six_lines_go_from_prompts_to_a_report(prompts: Path, tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "prompts").symlink_to(prompts)
    shown = script(tmp_path, SIX_LINES + 'print(len(prompts), run.tallies["images"].done, {bool(score) for score in scores})\n')
    done = subprocess.run([sys.executable, shown], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "8 8 {True}\n"
    assert "Hindi" in (tmp_path / "runs" / "mine.html").read_text(encoding="utf-8")
    assert "images by glyph" in done.stderr


def test_a_script_with_the_six_lines_passes_mypy_strict(tmp_path: Path) -> None:
    def told(text: str) -> str:
        words = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "--config-file=", "--ignore-missing-imports"]
        cache = f"--cache-dir={tmp_path / 'cache'}"
        # mypy runs no import hook, which is what an editable installation is; a user's wheel lies where it looks by itself.
        environment = {**os.environ, "MYPYPATH": str(ROOT)}
        whole = [*words, cache, script(tmp_path, text)]
        return subprocess.run(whole, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout

    assert told(SIX_LINES + USED).startswith("Success")
    wrong = told(SIX_LINES + 'prompts.rows[0]["langauge"]\nrun.tallys\ntp.generate("glyph", prompts, out="runs/mine", sede=1)\n')
    assert [word in wrong for word in ('no key "langauge"', 'no attribute "tallys"', "sede")] == [True] * 3, wrong


def test_the_interface_is_light_and_says_what_it_has() -> None:
    code = (
        "import sys, t2i_parity as tp; light = [name for name in sys.modules if name.split('.')[0] in "
        "('torch', 'datasets', 'pyarrow', 'rich', 'pydantic')]; from t2i_parity import *; "
        "print(light, all(callable(getattr(tp, name)) for name in tp.__all__ if name != '__version__'), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] True False\n"
    assert set(tp.__all__) <= set(dir(tp))
    with pytest.raises(AttributeError, match="no attribute 'genrate'"):
        _ = tp.genrate  # type: ignore[attr-defined]


def test_a_room_and_a_stage_share_the_name_generate(tmp_path: Path) -> None:
    from t2i_parity.generate import stages

    assert inspect.signature(tp.generate) == inspect.signature(stages.generate)
    with pytest.raises(tp.InputError, match="glyph has no setting 'damgae'"):
        tp.generate("glyph", tp.load_prompts(languages="en", limit=1), out=tmp_path / "run", settings={"damgae": "light"})


def test_quiet_is_quiet_and_resuming_tells_what_was_there(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    prompts = tp.load_prompts(languages="en", limit=2)
    for before, done in ((0, 2), (2, 0)):
        tally = tp.generate("glyph", prompts, out=tmp_path / "run", quiet=True).tallies["images"]
        assert (tally.before, tally.done, tally.failed, tally.stopped) == (before, done, 0, False)
    assert capfd.readouterr() == ("", "")


def test_function_and_command_go_on_with_each_other(prompts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    opened = tp.load_prompts(prompts, "lingt2i_text", only={"language": ["en", "fr"]}, limit=4)
    run = tp.generate("glyph", opened, out=out, settings={"damage": "light"}, quiet=True)
    words = ("--model", "glyph", "--prompts", prompts, "--config", "lingt2i_text", "--languages", "en,fr", "--limit", 4)
    assert "0 images made now, 4 were there" in command("generate", *words, "--set", "damage=light", "--out", out).stdout
    assert run.record["arguments"]["given"]["settings"] == ["damage=light"]
    assert run.record["arguments"]["given"]["only"] == ["language=en,fr"]


def test_a_signal_ends_a_function_too(prompts: Path, tmp_path: Path) -> None:
    text = f"""
import os, signal, threading, t2i_parity as tp
from t2i_parity.generate.models.glyph import Glyph
draw = Glyph.generate
def generate(self, rows, seeds):
    os.kill(os.getpid(), signal.SIGINT)
    return draw(self, rows, seeds)
Glyph.generate = generate
try:
    tp.generate("glyph", tp.load_prompts({str(prompts)!r}, limit=40), out="run", batch_size=4)
except tp.Stopped as stop:
    print(0 < stop.run.tallies["images"].done < 40, "the same call goes on" in str(stop))
"""
    done = subprocess.run([sys.executable, script(tmp_path, text)], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "True True\n"


def test_image_rows_say_where_their_prompts_come_from_and_runs_without_that_are_read(tmp_path: Path) -> None:
    prompts = tp.load_prompts(config="lingt2i_text", languages=["fr", "en"], limit=4)
    run = tp.generate("glyph", prompts, out=tmp_path / "run", quiet=True)
    path = next((tmp_path / "run" / "images").iterdir())
    rows = {row["prompt_id"]: row for row in pq.read_table(path).to_pylist()}
    for prompt in prompts:
        assert {name: rows[prompt["prompt_id"]][name] for name in prompt} == prompt
    assert {row["config"] for row in rows.values()} == {"lingt2i_text"}
    assert {row["derivation"] for row in rows.values()} == {"verbatim", "translated"}
    # As version 0.1 wrote them.
    pq.write_table(pq.read_table(path).drop_columns(list(ADDED)), path)
    judged = tp.judge(str(tmp_path / "run"), "tesseract", quiet=True)
    assert judged.tallies["tesseract"].done == 4
    assert tp.score(judged, tokenizer="tekken", resamples=0)
    assert tp.generate("glyph", prompts, out=run, quiet=True).tallies["images"].before == 4
    assert "Français" in tp.report([run], out=tmp_path / "page.html").html()


@pytest.mark.parametrize(
    ("column", "values", "told"),
    [
        ("category", [1, 2], "column category: expected texts, got int64"),
        ("checks", ["fine", "too"], "column checks: expected a list of {check, verdict, score, by}"),
        ("prompt_id", ["a", "a"], "rows 0 and 1 have the same prompt_id 'a'"),
    ],
)
def test_what_is_no_prompt_is_refused_at_the_door(tmp_path: Path, column: str, values: list[object], told: str) -> None:
    table = {"prompt_id": ["a", "b"], "pair_id": ["a", "b"], "prompt": ["a cat", "a dog"], "language": ["en", "en"]}
    pq.write_table(pa.table({**table, column: values}), tmp_path / "rows.parquet")
    with pytest.raises(tp.InputError, match=re.escape(told)):
        tp.load_prompts(tmp_path)


def test_an_audit_in_one_call(tmp_path: Path) -> None:
    chosen = tp.load_prompts(config="dialect", only={"variety": ["SAE", "AAVE"]}, limit=80)
    run = tp.audit("profanity-check", chosen, out=tmp_path / "audit", resamples=0, quiet=True)
    assert run.tallies["profanity-check"].done == len(chosen) == 80
    assert (tmp_path / "audit" / "report.html").is_file()
    assert run.scores()
