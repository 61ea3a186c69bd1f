"""A real filter over pairs: the starter's, and DialectGen's layout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, error_of
from datasets import load_dataset

from t2i_parity.generate.audit import pairs_of
from t2i_parity.generate.filters.profanity_check import ProfanityCheck, ProfanityCheckSettings
from t2i_parity.generate.run import Run
from t2i_parity.metrics.scores import Group, Score

REAL = os.environ.get("T2I_PARITY_REFERENCE")


def scores(run: Path) -> dict[tuple[str, Group], Score]:
    return {(score.key, score.group): score for score in Run.open(str(run)).scores()}


def test_the_filter_is_real_and_judges_each_text_alone() -> None:
    filter_ = ProfanityCheck(ProfanityCheckSettings())
    texts = ["a cat on a mat", "you stupid idiot, go to hell"]
    together = filter_.judge(texts)
    assert [verdict.flagged for verdict in together] == [False, True]
    assert [filter_.judge([text])[0] for text in texts] == together
    assert filter_.signature().startswith("profanity-check|threshold:0.5|v:")


def test_the_starter_is_audited(prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "audit"
    command("audit-filter", "--filter", "profanity-check", "--prompts", prompts, "--config", "dialect", "--out", run)
    command("score", run)
    found = scores(run)
    for code in ("AAVE", "ChcE", "CollSgE", "IndE", "JamE"):
        tpr, fpr = found["delta_tpr_pp", Group(variety=code)], found["delta_fpr_pp", Group(variety=code)]
        assert (tpr.n, fpr.n) == (60, 120)
        assert tpr.interval.low <= tpr.value <= tpr.interval.high
        assert tpr.spec.unit == "pp"
        assert 0 <= found["p_fpr", Group(variety=code)].value <= found["p_fpr_holm", Group(variety=code)].value <= 1
        only = {way: found[f"fpr_only_{way}", Group(variety=code)].value for way in ("variety", "reference")}
        assert fpr.value == pytest.approx(100 * (only["variety"] - only["reference"]) / 120)
        assert "|filter:{profanity-check|threshold:0.5|" in str(tpr.signature)
    flags = load_dataset(str(run), "scored", split="test")
    assert len(flags) == 1080
    by_hand = [row for row in flags if row["variety"] == "SAE" and row["label"] == "toxic"]
    assert found["tpr_reference", Group(variety="AAVE")].value == pytest.approx(sum(row["profanity_check_flagged"] for row in by_hand) / 60)
    again = command("audit-filter", "--filter", "profanity-check", "--prompts", prompts, "--config", "dialect", "--out", run)
    assert "0 verdicts made now, 1080 were there" in again.stdout


def test_regional_languages_are_compared_with_their_standard(prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "audit"
    command("audit-filter", "--filter", "profanity-check", "--prompts", prompts, "--config", "dialect_crosslingual", "--out", run)
    command("score", run)
    assert {group["variety"] for _, group in scores(run)} == {"bar", "arz"}
    for code in ("bar", "arz"):
        assert scores(run)["delta_tpr_pp", Group(variety=code)].value is not None
    page = tmp_path / "page.html"
    shown = command("report", run, "--out", page).stdout
    assert "against Arabic / German" in shown
    assert "Bavarian" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "real", [False, pytest.param(True, marks=pytest.mark.skipif(REAL is None, reason="T2I_PARITY_REFERENCE is not set"))]
)
def test_dialectgen_is_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, real: bool) -> None:
    from upstreams import accept
    from upstreams import dialectgen as upstream

    if not real:
        accept(monkeypatch)
    source = Path(str(REAL)) / "dialectgen" if real else upstream(tmp_path / "upstream")
    command("build", "dialect", "--source", "dialectgen", "--input", source, "--out", tmp_path / "prompts")
    run = tmp_path / "audit"
    command("audit-filter", "--filter", "profanity-check", "--prompts", tmp_path / "prompts", "--config", "dialect", "--out", run)
    command("score", run)
    found = scores(run)
    counts = {code: found["delta_fpr_pp", Group(variety=code)].n for code in ("AAVE", "BrE", "ChcE", "IndE", "CollSgE")}
    assert counts == {"AAVE": 204, "BrE": 222, "ChcE": 204, "IndE": 216, "CollSgE": 204}
    for code in counts:
        assert found["p_fpr", Group(variety=code)].value is not None
        missing = found["delta_tpr_pp", Group(variety=code)]
        assert (missing.value, missing.n) == (None, 0), "no toxic pair: missing, not 0"


def paired(**changes: list[Any]) -> pa.Table:
    rows: dict[str, list[Any]] = {
        "prompt_id": ["1", "2"],
        "pair_id": ["p", "p"],
        "prompt": ["a cat", "one cat"],
        "language": ["en", "en"],
        "variety": ["SAE", "IndE"],
        "label": ["benign", "benign"],
    }
    return pa.table({**rows, **changes})


def test_anybodys_pairs_will_do(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    pq.write_table(paired(), tmp_path / "mine" / "rows.parquet")
    command("audit-filter", "--filter", "profanity-check", "--prompts", tmp_path / "mine", "--out", tmp_path / "run")
    command("score", tmp_path / "run")
    assert scores(tmp_path / "run")["delta_fpr_pp", Group(variety="IndE")].value == 0


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"pair_id": ["p", "q"]}, r"row 1 \(2\) is IndE and its pair 'q' has no row in SAE"),
        ({"label": ["benign", "toxic"]}, "rows 0 and 1 are one pair, 'p', and have different labels"),
        ({"variety": ["SAE", "SAE"]}, "rows 0 and 1 are the same variety SAE of the pair 'p'"),
        ({"variety": ["SAE", "SAE"], "pair_id": ["p", "q"]}, "no pair of a reference and another variety"),
    ],
)
def test_incomplete_pairs_are_named(changes: dict[str, list[Any]], told: str) -> None:
    from t2i_parity.dataset_builder.errors import InputError

    with pytest.raises(InputError, match=told):
        pairs_of(paired(**changes).to_pylist())


def test_rows_with_typos_stand_beside_their_pair() -> None:
    rows = [{**row, "subset": "dialect"} for row in paired().to_pylist()]
    rows.append({**rows[0], "prompt_id": "3", "prompt": "a cta", "subset": "typo_IndE_seed0"})
    assert pairs_of(rows) == [(0, 1)]


def test_an_unknown_filter_is_told(prompts: Path, tmp_path: Path) -> None:
    message = error_of("audit-filter", "--filter", "wishful", "--prompts", prompts, "--config", "dialect", "--out", tmp_path / "run")
    assert "unknown filter 'wishful': expected one of profanity-check" in message
