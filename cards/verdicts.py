"""Verdicts in plain words: the one place of what a page says of a difference."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from t2i_parity.cards.environment import number, points
from t2i_parity.metrics.scores import Unit
from t2i_parity.metrics.verdicts import Kind, Verdict

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

    >>> from t2i_parity.metrics.verdicts import Kind, Verdict
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


SIGNS: Mapping[Kind, str] = {"differs": "*", "equivalent": "≈", "undecided": "", "not measured": "?"}
"""What stands beside a number where there is no room for words."""
KINDS: tuple[Kind, ...] = ("differs", "equivalent", "undecided", "not measured")


def mark(verdict: Verdict) -> str:
    """▲ or ▼ before a number that differs, nothing before another."""
    return {"more": "▲", "less": "▼", "": ""}[verdict.direction]


def short(verdict: Verdict) -> str:
    """The verdict in a column of a terminal.

    >>> from t2i_parity.metrics.verdicts import Verdict
    >>> short(Verdict("differs", -3.0, None, "pp", 5.0, 8.44, 60, 0))
    '▼ less'
    """
    return f"{mark(verdict)} {verdict.direction}" if verdict.direction else verdict.kind


@dataclass(frozen=True, slots=True)
class Told:
    """What is said of the groups of one verdict, or of one group that differs; ``note`` is its interval and n."""

    kind: Kind
    text: str
    note: str = ""


def told(found: Sequence[tuple[str, Verdict]], more: str = "higher", less: str = "lower") -> list[Told]:
    """What a family of verdicts, each with its group's name, says: which differ, which are equivalent, undecided, not measured.

    >>> from t2i_parity.metrics.verdicts import Verdict
    >>> lost = Verdict("not measured", None, None, "pp", 5.0, None, 0, 60)
    >>> [each.text for each in told([("IndE", lost), ("JamE", lost)])]
    ['not measured: IndE, JamE (all 120 rows are missing)']
    """
    lines = []
    for kind, members in groupby(sorted(found, key=lambda pair: KINDS.index(pair[1].kind)), lambda pair: pair[1].kind):
        of_kind = list(members)
        names, verdicts = ", ".join(name for name, _ in of_kind), [verdict for _, verdict in of_kind]
        if kind == "differs":
            lines += [Told(kind, f"{name}: {words(verdict, more, less)}", _stands_on(verdict)) for name, verdict in of_kind]
        elif kind == "equivalent":
            lines.append(Told(kind, f"equivalent within ±{_plain(verdicts[0].unit)(verdicts[0].margin)}: {names}"))
        elif kind == "undecided":
            lines.append(Told(kind, f"undecided: {len(of_kind)} of {len(found)} ({names}){_shown_at_all(verdicts)}"))
        else:
            n, missing = sum(verdict.n for verdict in verdicts), sum(verdict.n_missing for verdict in verdicts)
            why = f"{missing} of {n + missing} rows are missing" if n else f"all {missing} rows are missing" if missing else "no rows"
            lines.append(Told(kind, f"not measured: {names} ({why})"))
    return lines


def _stands_on(verdict: Verdict) -> str:
    interval = verdict.interval
    ends = "" if interval is None else f"[{shown(interval.low, verdict.unit)}, {shown(interval.high, verdict.unit)}], "
    return f"{ends}n = {verdict.n}"


def _shown_at_all(verdicts: Sequence[Verdict]) -> str:
    smallest = [verdict.smallest for verdict in verdicts if verdict.smallest is not None]
    if not smallest:
        return ", where no interval can be given"
    plain = _plain(verdicts[0].unit)
    low, high = plain(min(smallest)), plain(max(smallest))
    return f", where only a difference of {low if low == high else f'{low} to {high}'} or more would be shown"


def _plain(unit: Unit) -> Callable[[float | None], str]:
    def told(value: float | None) -> str:
        return "–" if value is None else f"{abs(value):.1f} pp" if unit == "pp" else number(abs(value))

    return told


def _turned(verdict: Verdict) -> str:
    return (
        f" ({verdict.turned_by} of the {verdict.n_missing} missing rows could turn this)" if verdict.fragile and verdict.n_missing else ""
    )
