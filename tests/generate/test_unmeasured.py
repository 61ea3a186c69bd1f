"""Filters that fail wholly, in half, or now and then, through the commands: what was not measured is called so, and ends with 1."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, error_of

from t2i_parity.generate.report import gather
from t2i_parity.generate.run import Run
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.dialect_penalty import core as dialect_penalty
from t2i_parity.metrics.dialect_penalty.spec import SPEC
from t2i_parity.metrics.scores import ALL, Score
from t2i_parity.metrics.verdicts import Verdict, verdict

VARIETIES = ("AAVE", "IndE")
MEANINGS = 400


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two varieties beside their reference, every other meaning toxic; a text tells all that a filter of these tests goes by."""
    folder = tmp_path_factory.mktemp("pairs")
    rows = [
        {
            "prompt_id": f"m{meaning}-{code}",
            "pair_id": f"m{meaning}",
            "prompt": f"{code} {('toxic', 'benign')[meaning % 2]} {meaning // 2}",
            "language": "en",
            "variety": code,
            "label": ("toxic", "benign")[meaning % 2],
            "category": "A",
        }
        for meaning, code in itertools.product(range(MEANINGS), ("SAE", *VARIETIES))
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    return folder


def parts(text: str) -> tuple[str, str, int]:
    code, label, number = text.split()
    return code, label, int(number)


def always(text: str) -> bool:
    raise RuntimeError("the weights are gone")


def toxic_half(text: str) -> bool:
    if "toxic" in text:
        raise ValueError("no harm, please")
    return alike(text)


def not_a_number(text: str) -> float:
    return float("nan")


def now_and_then(text: str) -> float:
    return float("nan") if parts(text)[0] == "IndE" and parts(text)[2] % 2 else float(alike(text))


def alike(text: str) -> bool:
    return parts(text)[2] % 4 == 0


def ten_points(text: str) -> bool:
    """Of IndE, a tenth of all meanings more."""
    code, _, number = parts(text)
    return alike(text) or (code == "IndE" and number % 10 == 1)


def audited(pairs: Path, run: Path, name: str, *more: object, code: int) -> tuple[str, str, str]:
    """The audit by one of these filters: standard output, standard error, and the page's text."""
    filter_ = ("--filter", "python", "--as", "it", "--set", f"function=test_unmeasured:{name}")
    done = command("audit", *filter_, "--prompts", pairs, "--out", run, "--resamples", 100, *more, check=code)
    return done.stdout, done.stderr, text_of(run / "report.html")


def text_of(page: Path) -> str:
    return " ".join(
        unescape(re.sub(r"<[^>]*>", "", re.sub(r"<style.*?</style>", "", page.read_text(encoding="utf-8"), flags=re.S))).split()
    )


def verdicts(run: Path) -> dict[tuple[str, str], Verdict]:
    (audit,) = gather([Run.open(str(run))], title="t").audits
    return {(variety.code, label): side.verdict for variety in audit.varieties for label, side in variety.sides}


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


@pytest.mark.parametrize(
    ("name", "reason"), [("always", "RuntimeError: the weights are gone"), ("not_a_number", "answered a number that is not finite")]
)
def test_a_filter_without_any_answer_ends_with_1_and_is_not_measured(pairs: Path, tmp_path: Path, name: str, reason: str) -> None:
    out, err, page = audited(pairs, tmp_path / "run", name, code=1)
    (told,) = [line for line in err.splitlines() if line.startswith("error: ")]
    assert f"it failed on all of the 1,200 rows of {tmp_path / 'run'}, so that nothing was measured" in told
    assert reason in told
    assert "All that was made is kept. Fix:" in told
    assert told.endswith("--retry-failed")
    assert {found.kind for found in verdicts(tmp_path / "run").values()} == {"not measured"}
    assert f"Not measured: python test_unmeasured={name} gave no answer on any pair" in page
    assert "not measured: all 200 rows are missing" in page
    assert "toxic pairs: not measured: AAVE, IndE (all 400 rows are missing)" in " ".join(out.split())
    for shown in (out, page):
        assert "no difference" not in shown
        assert "n.s." not in shown
    again = command(
        "audit-filter", "--filter", "python", "--as", "it", "--set", f"function=test_unmeasured:{name}", "--prompts", pairs,
        "--out", tmp_path / "run", check=1,
    )  # fmt: skip
    assert "0 verdicts made now, 1200 were there" in again.stdout
    assert "failed on all of the 1,200 rows" in again.stderr


def test_a_filter_that_fails_on_the_toxic_half_is_measured_on_the_other(pairs: Path, tmp_path: Path) -> None:
    out, _, page = audited(pairs, tmp_path / "run", "toxic_half", code=0)
    found = verdicts(tmp_path / "run")
    assert {(code, label): (each.kind, each.n, each.n_missing) for (code, label), each in found.items()} == {
        (code, label): ("not measured", 0, 200) if label == "toxic" else ("equivalent", 200, 0)
        for code, label in itertools.product(VARIETIES, ("toxic", "benign"))
    }
    assert "toxic pairs: not measured: African American Vernacular English, Indian English (all 400 rows are missing)" in page
    assert "benign pairs: equivalent within ±5.0 pp" in page
    assert "It holds no toxic pairs" not in page
    assert "(2 on benign pairs here)" in page
    assert "no difference" not in out + page


def test_half_of_a_varietys_answers_gone_is_not_measured(pairs: Path, tmp_path: Path) -> None:
    _, _, page = audited(pairs, tmp_path / "run", "now_and_then", code=0)
    found = verdicts(tmp_path / "run")
    assert found["IndE", "toxic"].kind == found["IndE", "benign"].kind == "not measured"
    assert found["AAVE", "toxic"].kind == "equivalent"
    assert "not measured: 100 of 200 rows are missing" in page


def test_a_shift_that_was_planted_is_found_and_its_margin_stated(pairs: Path, tmp_path: Path) -> None:
    out, _, page = audited(pairs, tmp_path / "run", "ten_points", code=0)
    found = verdicts(tmp_path / "run")
    assert {key: each.kind for key, each in found.items()} == {
        (code, label): "differs" if code == "IndE" else "equivalent" for code, label in itertools.product(VARIETIES, ("toxic", "benign"))
    }
    assert "Indian English: flagged more often, by 10.0 pp" in page
    assert "δ is 5 pp" in page
    assert "▲ more" in out
    assert "equivalent within ±5.0 pp: AAVE" in " ".join(out.split())
    command("score", tmp_path / "run", "--margin", "1.5")
    assert Run.open(str(tmp_path / "run")).record["scoring"]["margin_pp"] == 1.5
    assert verdicts(tmp_path / "run")["AAVE", "toxic"].kind == "undecided"
    command("report", tmp_path / "run", "--margin", "20", "--out", tmp_path / "wide.html")
    assert "equivalent within ±20.0 pp" in text_of(tmp_path / "wide.html")
    assert "--margin 0: expected percentage points above 0" in error_of("report", tmp_path / "run", "--margin", "0")


def test_a_service_that_is_down_leaves_nothing_to_report(pairs: Path, tmp_path: Path) -> None:
    few = tmp_path / "few"
    few.mkdir()
    pq.write_table(pq.read_table(pairs / "rows.parquet").slice(0, 6), few / "rows.parquet")
    options = ("--set", "url=http://127.0.0.1:9/check", "--set", "flag=bad", "--set", "concurrency=6")
    assert "nobody answers at http://127.0.0.1:9" in error_of(
        "audit", "--filter", "http", *options, "--prompts", few, "--out", tmp_path / "run"
    )
    assert not (tmp_path / "run" / "report.html").exists()
    assert "has no scores" in error_of("report", tmp_path / "run")


@pytest.mark.parametrize("draw", [lambda rng, n: rng.random(n) < 0.3, lambda rng, n: rng.random(n) < 0.9])
def test_a_fair_filter_seldom_differs(draw: Callable[[np.random.Generator, int], np.ndarray]) -> None:
    rng, runs, found = np.random.default_rng(5), 200, 0
    for _ in range(runs):
        flags = [draw(rng, 5 * 60).tolist() for _ in range(2)]
        codes = [code for code in "abcde" for _ in range(60)]
        answer = dialect_penalty.compute(*flags, ["toxic"] * 300, groups=codes, n_resamples=0)
        found += any(
            verdict(
                Score(SPEC["delta_tpr_pp"], "s", ALL, part["delta_tpr_pp"], part["n_toxic"], 0, None, Signature.parse(part["signature"])),
                part["p_tpr_holm"],
                family=5,
            ).kind
            == "differs"
            for part in answer["by_group"].values()
        )
    assert found <= 0.05 * runs


# Images and their judges


class Blind:
    """A judge that sees nothing."""

    name = "blind"
    columns: ClassVar = {"width": pa.int64()}

    def signature(self) -> str:
        return "blind|v:1"

    def check(self, rows: object) -> None:
        pass

    def observe(self, rows: object) -> list[object]:
        raise RuntimeError("no eyes")


def generated(folder: Path, does: str, code: int) -> str:
    """Two images by a program that does what the prompts say: what was told on standard error."""
    folder.mkdir()
    rows = [{"prompt_id": f"p{n}", "pair_id": f"p{n}", "prompt": does, "language": "en"} for n in range(2)]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    model = ("--model", "adapter:mine", "--set", f"program={Path(__file__).parent / 'adapter_program.py'}")
    return command("generate", *model, "--prompts", folder, "--out", folder / "run", "--retries", 0, check=code).stderr


def test_a_model_that_fails_on_every_row_ends_with_1(tmp_path: Path) -> None:
    told = generated(tmp_path / "a", "error", 1)
    assert "error: the model failed on all of the 2 rows of" in told
    assert "The most frequent reason, of 2 of them: " in told
    assert "ran out of paint. All that was made is kept." in told
    judged = command("judge", tmp_path / "a" / "run", "--with", "test_unmeasured:Blind", check=1).stderr
    assert "of 2 of them: no image: failed: " in judged
    assert "make the images first (t2i-parity generate with --retry-failed)" in judged


def test_a_refusal_is_an_outcome(tmp_path: Path) -> None:
    generated(tmp_path / "a", "refuse", 0)
    command("judge", tmp_path / "a" / "run", "--with", "test_unmeasured:Blind")


def test_a_judge_that_fails_on_every_image_ends_with_1(tmp_path: Path) -> None:
    generated(tmp_path / "a", "paint", 0)
    for _ in range(2):
        told = command("judge", tmp_path / "a" / "run", "--with", "test_unmeasured:Blind", "--retries", 0, check=1).stderr
        assert "failed on all of the 2 rows of" in told
        assert "RuntimeError: no eyes" in told
        assert told.strip().endswith("judge again under another name: --as NAME")
