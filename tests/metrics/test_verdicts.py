"""Verdicts: what may be said of a difference, and what may not."""

from __future__ import annotations

import pytest

from t2i_parity.cards.verdicts import words
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import ALL, Interval, Score, ScoreSpec
from t2i_parity.metrics.verdicts import Verdict, margin_of, verdict

SPEC = ScoreSpec("m", "delta_pp", "Δ", unit="pp", direction="zero", kind="paired_difference")


def scored(value: float | None, ends: tuple[float, float] | None, n: int = 200, missing: int = 0, spec: ScoreSpec = SPEC) -> Score:
    return Score(spec, "s", ALL, value, n, missing, None if ends is None else Interval(*ends), Signature("m", {}, "1"))


@pytest.mark.parametrize(
    ("score", "p", "kind", "told"),
    [
        (scored(6.0, (2.0, 10.0)), 0.01, "differs", "higher, by 6.0 pp"),
        (scored(-6.0, (-10.0, -2.0)), 0.01, "differs", "lower, by 6.0 pp"),
        (scored(6.0, (2.0, 10.0)), 0.2, "undecided", "undecided: at n = 200, only a difference of 5.7 pp or more would be shown"),
        (scored(1.0, (-2.0, 4.0)), 0.5, "equivalent", "equivalent within ±5.0 pp"),
        (scored(1.0, (-2.0, 5.0)), 0.5, "undecided", "undecided: at n = 200, only a difference of 5.0 pp or more would be shown"),
        (scored(1.0, (-2.0, 4.0)), None, "equivalent", "equivalent within ±5.0 pp"),
        (scored(3.0, (1.0, 4.0)), None, "differs", "higher, by 3.0 pp"),
        (scored(0.0, (0.0, 0.0)), 1.0, "undecided", "undecided: no interval can be given at n = 200"),
        (scored(None, None, 0, 60), None, "not measured", "not measured: all 60 rows are missing"),
        (scored(None, None, 0, 0), None, "not measured", "not measured: no rows"),
        (scored(1.0, (-9.0, 9.0), 70, 30), 0.5, "not measured", "not measured: 30 of 100 rows are missing"),
    ],
)
def test_four_verdicts(score: Score, p: float | None, kind: str, told: str) -> None:
    found = verdict(score, p)
    assert (found.kind, words(found)) == (kind, told)


def test_missing_rows_that_could_turn_a_verdict_are_told() -> None:
    # The nearer end, +2 pp of 200 rows, is taken back by four rows of −100 pp.
    assert verdict(scored(6.0, (2.0, 10.0)), 0.01).turned_by == 4
    few = verdict(scored(6.0, (2.0, 10.0), missing=4), 0.01)
    assert few.kind == "differs"
    assert few.fragile
    assert "4 of the 4 missing rows could turn this" in words(few)
    assert not verdict(scored(6.0, (2.0, 10.0), missing=3), 0.01).fragile
    many = verdict(scored(6.0, (2.0, 10.0), missing=80), 0.01)
    assert many.kind == "not measured"
    assert words(many).endswith("80 of 280 rows are missing, and 4 could turn the verdict")
    # So large a difference that nothing missing could turn it stands, however much is missing.
    assert verdict(scored(90.0, (85.0, 95.0), 100, 50), 1e-9).kind == "differs"
    # (4 pp + k·100 pp) / (200 + k) reaches 5 pp at the third row.
    assert verdict(scored(1.0, (-2.0, 4.0)), 0.5).turned_by == 3


def test_a_family_asks_for_more_and_a_score_may_have_its_own_margin() -> None:
    alone, of_five = (verdict(scored(1.0, (-7.0, 9.0)), 0.5, family=family).smallest for family in (1, 5))
    # Half a width of 8 pp is 1.96 standard errors; 2.8016 (3.4174 with a fifth of α) of these are shown with 80% power.
    assert alone == pytest.approx(11.436, abs=1e-3)
    assert of_five == pytest.approx(13.950, abs=1e-3)
    own = ScoreSpec("m", "delta_pp", "Δ", unit="pp", margin=1.0)
    assert margin_of(own) == 1.0
    assert verdict(scored(0.5, (-0.9, 0.99), spec=own), 0.4).kind == "equivalent"
    with pytest.raises(KeyError):
        margin_of(ScoreSpec("m", "n", "n", unit="count"))


def test_nothing_but_a_shown_difference_has_a_direction() -> None:
    assert [verdict(scored(6.0, (2.0, 10.0)), p).direction for p in (0.01, 0.2)] == ["more", ""]
    assert Verdict("differs", 0.0, None, "pp", 5.0, None, 3, 0).direction == ""
