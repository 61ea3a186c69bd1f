"""``t2i-parity plan``: what it prints and writes, what it takes from a pilot run, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from commands import command, error_of

import t2i_parity as tp
from t2i_parity.generate.plan import QUESTIONS
from t2i_parity.generate.run import Run
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.dialect_penalty.core import compute
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.scores import Group, MetricSpec
from t2i_parity.metrics.toxic_bypass_rate.core import compute as bypass
from t2i_parity.metrics.toxic_bypass_rate.spec import SPEC as TOXIC_BYPASS_RATE


def a_run(folder: Path, kind: str) -> Run:
    run = Run(str(folder), {"kind": kind, "identity": {}, "packages": {}})
    run.write_record()
    return run


def scored_pairs(folder: Path, spec: MetricSpec, *answers: dict[str, Any]) -> Run:
    """A run with nothing but the scores of varieties, one instrument for each answer."""
    run = a_run(folder, "audit")
    scores = []
    for place, answer in enumerate(answers):
        signature = Signature.parse(answer["signature"]).having(by=Signature(f"instrument-{place}", {}, "1"))
        for code, part in answer["by_group"].items():
            scores += spec.read(part, "dialect", Group(variety=code), signature, level=0.95)
    run.write_scores(scores)
    return run


def flagged(reference: str, **varieties: str) -> dict[str, Any]:
    """A core's answer about toxic pairs, from a 1 for each flagged prompt."""
    n = len(reference)
    sides = [[cell == "1" for cell in "".join(of)] for of in ([reference] * len(varieties), varieties.values())]
    return compute(*sides, ["toxic"] * n * len(varieties), groups=[code for code in varieties for _ in range(n)], n_resamples=0)


def scored_rows(folder: Path, numbers: np.ndarray[Any, Any]) -> Run:
    """A run with nothing but scored rows: (meanings, languages, images) numbers of one reader."""
    run = a_run(folder, "generation")
    rows = [
        {"row_id": f"{place}", "pair_id": f"{place[0]}", "language": f"l{place[1]}", "hybrid_precision": float(value)}
        for place, value in np.ndenumerate(numbers)
    ]
    run.scored().replace(pa.Table.from_pylist(rows))
    return run


def value_of(plan: Any, name: str) -> float:
    return next(float(each.value) for each in plan.assumptions if each.name == name)


def test_sixty_pairs_show_a_loss_of_ten_points_about_once_in_five_audits(tmp_path: Path) -> None:
    done = command("plan", "dialect", "--difference", "-10", "--n", "60,152", "--json", tmp_path / "plan.json")
    first, second = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["lines"]
    assert 0.18 <= first["power"] <= 0.20
    assert second["power"] >= 0.8
    assert (first["total"], second["total"]) == (360, 912)
    assert "−10.0 pp" in done.stdout
    assert "19.1%" in done.stdout
    assert "Table 1" in done.stdout
    assert "McNemar’s test, Holm’s first step" in done.stdout
    assert tp.plan("dialect", difference=-10).lines[0].n == 152


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("equivalent", [False, True])
def test_every_question_has_defaults_with_their_sources(question: str, equivalent: bool) -> None:
    plan = tp.plan(question, equivalent=equivalent)
    sizes = [line.n for line in plan.lines]
    assert all(size is not None for size in sizes)
    assert sizes == sorted(sizes, key=lambda size: -(size or 0))
    assert all(line.power is not None and 0.8 <= line.power < 1 for line in plan.lines)
    assert all(each.source for each in plan.assumptions)
    assert len(plan.tables()) == 2
    back = tp.plan(question, n=[sizes[0] or 0], equivalent=equivalent).lines[0]
    assert abs(back.difference or 0) <= 1.001 * abs(plan.lines[0].difference or 0)


def test_equivalence_takes_margins_and_says_of_what_interval() -> None:
    done = command("plan", "precision", "--equivalent", "--difference", "0.05")
    assert "Margin ±δ" in done.stdout
    assert "interval, simultaneous over the languages, lies within ±δ" in done.stdout


def test_several_images_need_how_alike_they_are() -> None:
    assert "--icc: expected how the difference in two images of one meaning correlates" in error_of(
        "plan", "censorship", "--images-per-prompt", 4
    )
    one, four = (tp.plan("censorship", images_per_prompt=images, icc=0.3) for images in (1, 4))
    assert (one.lines[0].n or 0) > (four.lines[0].n or 0)
    assert four.test.startswith("a sign-flip test of meanings")


def test_usual_differences_are_those_that_can_be() -> None:
    assert [line.difference for line in tp.plan("dialect", rate=0.08).lines] == [-5]
    assert tp.plan("dialect", rate=0.02, n=60).lines[0].difference is None


def test_discordance_stands_in_for_correlation() -> None:
    assert value_of(tp.plan("dialect", rate=0.5, discordance=0.2), "correlation") == pytest.approx(0.6)


def test_a_pilot_audit_tells_rate_and_discordance(tmp_path: Path) -> None:
    quiet = flagged("1100000000" * 6, AAVE="1100000000" * 6, IndE="1100000000" * 6)
    busy = flagged("1111000000" * 6, AAVE="1110100000" * 6, IndE="1111100000" * 6)
    plan = tp.plan("dialect", pilot=scored_pairs(tmp_path / "pilot", DIALECT_PENALTY, quiet, busy))
    assert value_of(plan, "rate") == pytest.approx(0.4)
    assert value_of(plan, "varieties") == 2
    # Over both varieties, both wordings are flagged in 35% of pairs, the variety alone in 10%, the reference alone in 5%.
    assert value_of(plan, "correlation") == pytest.approx((0.35 - 0.4 * 0.45) / np.sqrt(0.24 * 0.2475))
    told = next(each for each in plan.assumptions if each.name == "correlation")
    assert "15.0% of them discordant" in told.source
    assert "of 2 instruments the one with most" in told.source
    assert told.worst is not None
    assert told.worst < told.value
    assert all(line.n is not None and line.worst is not None and line.worst > line.n for line in plan.lines[:2])


def test_a_pilot_of_images_tells_the_bypass_rate(tmp_path: Path) -> None:
    n = 40
    guarded = [number % 2 == 0 for number in range(n)]
    answer = bypass([True] * n, [True] * n, guarded, [*guarded[:30], *[True] * 10], groups=["AAVE"] * n, n_resamples=0)
    plan = tp.plan("bypass", pilot=scored_pairs(tmp_path / "pilot", TOXIC_BYPASS_RATE, answer))
    assert value_of(plan, "rate") == pytest.approx(0.5)
    assert value_of(plan, "correlation") == pytest.approx((0.5 - 0.5 * 0.625) / np.sqrt(0.25 * 0.625 * 0.375))
    assert value_of(plan, "usable") == pytest.approx(0.14)


def test_a_pilot_run_tells_deviation_correlation_and_icc(tmp_path: Path) -> None:
    """What was planted comes out: σ = 0.2, ρ = 0.4 over languages, and half of the rest goes with the meaning and language."""
    rng = np.random.default_rng(0)
    shared, cell, image = rng.normal(size=(600, 1, 1)), rng.normal(size=(600, 4, 1)), rng.normal(size=(600, 4, 3))
    pilot = scored_rows(tmp_path / "pilot", 0.5 + 0.2 * (np.sqrt(0.4) * shared + np.sqrt(0.3) * (cell + image)))
    for question in ("precision", "spread"):
        plan = tp.plan(question, pilot=pilot)
        found = [value_of(plan, name) for name in ("deviation", "correlation", "icc", "languages")]
        assert found == pytest.approx([0.2, 0.4, 0.5, 4], rel=0.06)
        assert all(line.n is not None and line.worst is not None and line.worst >= line.n for line in plan.lines)
    assert value_of(tp.plan("runs", pilot=pilot), "correlation") == 0.0
    one = scored_rows(tmp_path / "one", 0.5 + 0.2 * (np.sqrt(0.4) * shared + np.sqrt(0.6) * cell))
    assert [value_of(tp.plan("precision", pilot=one), name) for name in ("deviation", "correlation")] == pytest.approx([0.2, 0.4], rel=0.06)


def test_what_is_given_goes_before_a_pilot(tmp_path: Path) -> None:
    pilot = scored_rows(tmp_path / "pilot", np.random.default_rng(0).uniform(size=(8, 3, 1)))
    plan = tp.plan("precision", pilot=pilot, deviation=0.5)
    assert [each.source for each in plan.assumptions if each.name == "deviation"] == ["given"]
    assert all(line.worst is None for line in plan.lines)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("dialect", "--rate", "0.02"), "--difference: expected one of at most 2, the usual ones being larger"),
        (("dialekt",), "expected one of dialect, false-alarms"),
        (("dialect", "--difference", "70"), "--difference: expected at most 63 in this direction, got 70: the rate would leave 0 to 1"),
        (("dialect", "--difference", "ten"), "--difference: expected numbers, got 'ten'"),
        (("dialect", "--difference", "0"), "expected a difference other than 0"),
        (("spread", "--difference", "-0.1"), "--difference: expected at most 0 in this direction"),
        (("dialect", "--equivalent", "--difference", "-5"), "expected a margin above 0"),
        (("dialect", "--rate", "1.2"), "--rate: expected a number between 0 and 1, got 1.2"),
        (("dialect", "--correlation", "1"), "--correlation: expected a number from 0 to less than 1"),
        (("dialect", "--discordance", "0.9"), "--discordance: expected a share above 0 and at most 0.466"),
        (("precision", "--discordance", "0.1"), "--discordance: expected it with rates"),
        (("dialect", "--deviation", "0.3"), "--deviation: plan dialect does not take it; it takes --rate, --correlation, --varieties"),
        (("dialect", "--power", "0.01"), "--power: expected a number above --alpha (0.05)"),
        (("dialect", "--alpha", "0.9"), "--alpha: expected a number above 0 and below 0.5"),
        (("dialect", "--n", "3"), "--n: expected pairs from 5 to 1,000,000, got 3"),
        (("dialect", "--n", "60.5"), "--n: expected whole numbers"),
        (("spread", "--languages", "1"), "--languages: expected two or more, got 1"),
    ],
)
def test_what_cannot_be_planned_names_the_option_and_the_fix(words: tuple[str, ...], told: str) -> None:
    message = error_of("plan", *words)
    assert told in message
    assert "Fix: " in message


def test_a_pilot_that_tells_nothing_is_refused(tmp_path: Path) -> None:
    never = flagged("0" * 20, AAVE="0" * 20)
    quiet = scored_pairs(tmp_path / "quiet", DIALECT_PENALTY, never)
    assert "expected flags that vary, got a rate of 0" in error_of("plan", "dialect", "--from", quiet.url)
    assert "expected a scored run with toxic_bypass_rate" in error_of("plan", "bypass", "--from", quiet.url)
    assert "five meanings or more" in error_of("plan", "spread", "--from", quiet.url)
    assert "plan gain takes no pilot run" in error_of("plan", "gain", "--from", quiet.url)
