"""Verdicts in plain words: the one place of what a page says of a difference."""

from __future__ import annotations

from collections.abc import Callable

from t2i_parity.cards.environment import number, points
from t2i_parity.metrics.scores import Unit
from t2i_parity.metrics.verdicts import Verdict

RULES = (
    "Four things are said of a difference. It differs where its test, corrected by Holm’s method over the family that the table states, "
    "gives p < 0.05. It is equivalent where its whole interval lies within the stated margin ±δ. Else it is undecided, and the smallest "
    "difference that a sample like this one shows with 80% power tells how much that means. Not measured is what was not observed, or of "
    "which so much is missing that the missing rows could turn the verdict."
)


def shown(value: float | None, unit: Unit) -> str:
    """A difference in its unit, with its sign.

    >>> shown(-2.04, "pp"), shown(0.031, "fraction")
    ('−2.0 pp', '+0.031')
    """
    if value is None:
        return "–"
    if unit == "pp":
        return f"{points(value)} pp"
    text = number(value)
    return text.replace("-", "−") if value < 0 else f"+{text}"


def words(verdict: Verdict, more: str = "higher", less: str = "lower") -> str:
    """One clause: ``more`` and ``less`` are what a difference above and below 0 is called there.

    >>> from t2i_parity.metrics.verdicts import Verdict
    >>> words(Verdict("undecided", 1.0, None, "pp", 5.0, 8.44, 60, 0))
    'undecided: at n = 60, only a difference of 8.4 pp or more would be shown'
    """
    plain = _plain(verdict.unit)
    if verdict.kind == "differs":
        told = more if verdict.direction == "more" else less
        return f"{told}, by {plain(verdict.difference)}{_turned(verdict)}"
    if verdict.kind == "equivalent":
        return f"equivalent within ±{plain(verdict.margin)}{_turned(verdict)}"
    if verdict.kind == "not measured":
        if not verdict.n:
            return f"not measured: {'no rows' if not verdict.n_missing else f'all {verdict.n_missing} rows are missing'}"
        missing = f"{verdict.n_missing} of {verdict.n + verdict.n_missing} rows are missing"
        turned = "" if verdict.turned_by is None else f", and {verdict.turned_by} could turn the verdict"
        return f"not measured: {missing}{turned}"
    if verdict.smallest is None:
        return f"undecided: no interval can be given at n = {verdict.n}"
    return f"undecided: at n = {verdict.n}, only a difference of {plain(verdict.smallest)} or more would be shown"


def _plain(unit: Unit) -> Callable[[float | None], str]:
    def told(value: float | None) -> str:
        return "–" if value is None else f"{abs(value):.1f} pp" if unit == "pp" else number(abs(value))

    return told


def _turned(verdict: Verdict) -> str:
    return (
        f" ({verdict.turned_by} of the {verdict.n_missing} missing rows could turn this)" if verdict.fragile and verdict.n_missing else ""
    )
