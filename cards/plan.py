"""A plan of how many: what was asked, what it assumes and from where, and its table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.environment import number, percent, visible
from t2i_parity.metrics.scores import Unit

if TYPE_CHECKING:
    from rich.table import Table

Found = Literal["n", "power", "difference"]
"""Which of the three a plan finds from the other two."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """A number that a plan stands on, and where it comes from. ``worst`` is the end of what a pilot leaves open that asks for most."""

    name: str
    value: float
    source: str
    worst: float | None = None


@dataclass(frozen=True, slots=True)
class PlanLine:
    """So large a difference (or margin) in so large a sample is shown with so much power; None where no sample or difference does.

    ``power`` is that of the whole ``n``, and so no less than was asked for. ``total`` is what a sample of ``n`` makes in all. ``worst`` is
    what was to be found, were the pilot's numbers at the worst ends of their intervals.
    """

    difference: float | None
    n: int | None
    power: float | None
    total: int | None
    worst: float | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """All that was planned.

    ``counted`` is what n counts, ``made`` what it makes in all, ``test`` whose power is promised, ``target`` the power that was asked for.
    ``pilot`` says that some numbers come from a pilot, with the worst ends of their intervals.
    """

    question: str
    title: str
    unit: Unit
    counted: str
    made: str
    test: str
    found: Found
    equivalent: bool
    pilot: bool
    target: float
    alpha: float
    lines: Sequence[PlanLine]
    assumptions: Sequence[Assumption]
    notes: Sequence[str]

    def as_json(self) -> JsonObject:
        """Every number, in plain lists and dictionaries."""
        return asdict(self)

    def tables(self) -> list[Table]:
        """What was found, and what it assumes, for a terminal of 100 to 120 columns."""
        return [_lines(self), _assumptions(self)]


def _lines(plan: Plan) -> Table:
    from rich.text import Text

    table = _table()
    what = "Margin ±δ" if plan.equivalent else "Difference"
    heads = [what, visible(plan.counted.capitalize()), *([f"{plan.made} in all".capitalize()] if plan.made else []), "Power"]
    for head in [*heads, *(["If the pilot errs"] if plan.pilot else [])]:
        table.add_column(head, justify="right")
    for line in plan.lines:
        cells = [_difference(line.difference, plan), _count(line.n)]
        cells += [_count(line.total)] if plan.made else []
        cells += [percent(line.power)]
        if plan.pilot:
            cells.append(_worst(line.worst, plan))
        table.add_row(*map(Text, cells))
    return table


def _assumptions(plan: Plan) -> Table:
    from rich.text import Text

    table = _table()
    table.add_column("Assumed", no_wrap=True)
    table.add_column("Value", justify="right", no_wrap=True)
    table.add_column("From", overflow="fold")
    for each in plan.assumptions:
        worst = "" if each.worst is None else f"; at worst {each.worst:.3g}"
        table.add_row(Text(each.name), Text(f"{each.value:.3g}"), Text(visible(each.source) + worst))
    return table


def _table() -> Table:
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)


def _difference(value: float | None, plan: Plan) -> str:
    if value is None:
        return "none"
    text = f"{value:+.1f} pp" if plan.unit == "pp" else number(value)
    return (text.lstrip("+") if plan.equivalent else text).replace("-", "−")


def _count(value: float | None) -> str:
    return "none" if value is None else f"{value:,.0f}"


def _worst(value: float | None, plan: Plan) -> str:
    if value is None:
        return "none"
    return {"n": _count(value), "power": percent(value), "difference": _difference(value, plan)}[plan.found]
