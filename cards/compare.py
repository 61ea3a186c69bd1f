"""The comparison of runs: what it is handed, as plain frozen objects, its page and its console tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from t2i_parity.cards import verdicts
from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.environment import environment, number, p_value, visible
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Group, ScoreSpec
from t2i_parity.metrics.verdicts import ALPHA, Verdict

if TYPE_CHECKING:
    from rich.table import Table

TESTS = {
    "mcnemar": "McNemar’s test, exact below 25 discordant pairs",
    "permutation": "sign-flip permutation test, whole meanings at once",
    "inversion": "of inequality and of the worst language, the level at which the interval first holds 0",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One group of a comparison: both runs' numbers over the same rows, and second minus first; None where it is not defined.

    ``n`` rows have a score in both runs, in ``pairs`` meanings; ``missing_first`` and ``missing_second`` lack it in the one or the other.
    ``verdict`` says what the difference shows; a line without one only describes. ``p_holm`` is ``p`` corrected over the ``family`` tests
    that are read together. ``covers`` says of a total what it is over, where the runs are not over the same. ``of`` is what is compared:
    the rows' mean, the inequality of the languages' true means, the mean of the worst language, or the standard deviation of the means.
    """

    group: Group
    name: str
    first: float | None
    second: float | None
    difference: float | None
    low: float | None
    high: float | None
    n: int
    pairs: int
    missing_first: int
    missing_second: int
    verdict: Verdict | None
    p: float | None = None
    p_holm: float | None = None
    test: str | None = None
    family: int = 1
    covers: str = ""
    of: Literal["mean", "spread", "worst", "std"] = "mean"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs in one score on one subset: its groups' ``lines``, and apart from them the ``summary`` over all groups.

    ``margin`` is δ, in the score's unit; 0 where none is known, so that nothing is called equivalent. ``only_first`` and ``only_second``
    count the rows that have no counterpart in the other run.
    """

    spec: ScoreSpec
    subset: str
    first: str
    second: str
    by: str
    signature: Signature
    other_signature: Signature
    lines: Sequence[Line]
    summary: Sequence[Line]
    joined_on: str
    margin: float
    only_first: int
    only_second: int

    @property
    def kind(self) -> Literal["level", "shift"]:
        """ "shift" where scores are themselves differences in percentage points, of which neither direction is the better one."""
        return "shift" if self.spec.unit == "pp" else "level"

    def as_json(self) -> JsonObject:
        """Plain lists, strings and numbers; the lines' groups as scores.json has them."""
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        told |= {name: str(told[name]) for name in ("signature", "other_signature")}
        told |= {name: [_line_as_json(line, self) for line in told[name]] for name in ("lines", "summary")}
        spec = told.pop("spec")
        return {"metric": spec.metric, "key": spec.key, "kind": self.kind, "direction": spec.direction, **told}


def _line_as_json(line: Line, comparison: Comparison) -> JsonObject:
    told = {each.name: getattr(line, each.name) for each in fields(line)} | {"group": dict(line.group)}
    found = line.verdict
    if found is not None:
        kept = {name: getattr(found, name) for name in ("kind", "direction", "margin", "smallest", "n", "n_missing", "turned_by")}
        told["verdict"] = {**kept, "words": told_of(line, comparison)[1]}
    return told


@dataclass(frozen=True, slots=True)
class Comparisons:
    """All that the page shows. ``runs`` are (name, what was run); ``pairs`` of them are compared."""

    title: str
    runs: Sequence[tuple[str, str]]
    comparisons: Sequence[Comparison]
    notes: Sequence[str]
    level: float
    permutations: int
    seed: int
    pairs: int = 1

    def as_json(self) -> JsonObject:
        """Plain lists, strings and numbers."""
        return {
            "runs": [{"name": name, "model": model} for name, model in self.runs],
            "confidence_level": self.level,
            "n_permutations": self.permutations,
            "seed": self.seed,
            "pairs_of_runs": self.pairs,
            "comparisons": [comparison.as_json() for comparison in self.comparisons],
            "notes": list(self.notes),
        }


def told_of(line: Line, comparison: Comparison) -> tuple[str, str]:
    """(mark, words): what a line shows of second against first, in words that need no colour; ("", "") where it only describes."""
    found = line.verdict
    if found is None:
        return "", ""
    return verdicts.mark(found), verdicts.words(found, *_called(comparison, line.of))


def _called(comparison: Comparison, of: str = "mean") -> tuple[str, str]:
    """What a difference above and below 0 is called."""
    if of == "spread":
        return "more unequal", "less unequal"
    up = comparison.spec.direction
    return ("better", "worse") if up == "higher" else ("worse", "better") if up == "lower" else ("higher", "lower")


def leading(comparison: Comparison) -> list[verdicts.Told]:
    """What a comparison shows: of each total, and of its groups, all of one verdict in a sentence."""
    totals = [
        verdicts.Told(line.verdict.kind, f"{line.name}: {told_of(line, comparison)[1]}", line.covers)
        for line in comparison.summary
        if line.verdict is not None
    ]
    found = [(line.name, line.verdict) for line in comparison.lines if line.verdict is not None]
    return [*totals, *verdicts.told(found, *_called(comparison))]


def signed(value: float | None, comparison: Comparison) -> str:
    """A difference, always with its sign."""
    if value is None:
        return "–"
    text = f"{value:+.1f}" if comparison.kind == "shift" else f"{value:+.3f}"
    return text[1:] if not float(text) else text.replace("-", "−")


def shown(value: float | None, comparison: Comparison) -> str:
    """A run's own number; a shift with its sign."""
    return signed(value, comparison) if comparison.kind == "shift" else number(value)


def render(comparisons: Comparisons) -> str:
    """The comparison as one HTML page that asks for nothing outside itself and needs no JavaScript; same input, same text."""
    return (
        environment()
        .get_template("compare.html.j2")
        .render(
            page=comparisons,
            tables=[_drawn(comparison) for comparison in comparisons.comparisons],
            level=f"{comparisons.level:.0%}",
            alpha=ALPHA,
            rules=verdicts.RULES,
            tests=TESTS,
            used={line.test for comparison in comparisons.comparisons for line in [*comparison.lines, *comparison.summary]},
            told_of=told_of,
            leading=leading,
            signed=signed,
            shown=shown,
            visible=visible,
        )
        .lstrip()
    )


def _drawn(comparison: Comparison) -> dict[str, Any]:
    """A comparison with where its intervals lie, in percent of a scale that has 0 in its middle."""
    lines = [*comparison.lines, *comparison.summary]
    ends = [abs(end) for line in lines for end in (line.difference, line.low, line.high) if end is not None]
    most = max(ends, default=0.0) or 1.0

    def place(value: float) -> float:
        return round(50 + 50 * value / most, 2)

    bars = {}
    for line in lines:
        if line.difference is not None:
            low, high = (line.difference if end is None else end for end in (line.low, line.high))
            bars[line.group, line.of] = (place(low), place(high), place(line.difference))
    return {"comparison": comparison, "bars": bars, "most": most}


# The console


def console_tables(comparisons: Comparisons) -> list[Table]:
    """A table for each comparison, for a terminal of 100 to 120 columns."""
    return [_console_table(comparison, comparisons) for comparison in comparisons.comparisons]


def _console_table(comparison: Comparison, comparisons: Comparisons) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    caption = [f"δ = {signed(comparison.margin, comparison).lstrip('+')}"] if comparison.margin else []
    caption += [
        f"{name} rows are in {visible(run)} only"
        for name, run in ((comparison.only_first, comparison.first), (comparison.only_second, comparison.second))
        if name
    ]
    table = Table(
        title=Text(visible(f"{comparison.spec.name} on {comparison.subset}: {comparison.second} − {comparison.first}"), "bold"),
        caption=Text("; ".join(caption)) if caption else None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        show_edge=False,
        pad_edge=False,
    )
    table.add_column("Group", overflow="fold")
    table.add_column("What it shows", overflow="fold")
    unit = "pp" if comparison.kind == "shift" else ""
    heads = [
        "n",
        visible(comparison.first),
        visible(comparison.second),
        f"Δ {unit} [{comparisons.level:.0%}]".replace("  ", " "),
        "p",
        "Holm p",
    ]
    for head in heads:
        table.add_column(Text(head), justify="right", overflow="fold")
    for place, line in enumerate([*comparison.lines, *comparison.summary]):
        if place == len(comparison.lines) and place:
            table.add_row()
        interval = "" if line.low is None else f" [{signed(line.low, comparison)}, {signed(line.high, comparison)}]"
        missing = line.missing_first + line.missing_second
        cells = [
            visible(f"{line.name} ({line.covers})" if line.covers else line.name),
            " ".join(told_of(line, comparison)).strip() or "–",
            f"{line.n}" + (f" (−{missing})" if missing else ""),
            shown(line.first, comparison),
            shown(line.second, comparison),
            signed(line.difference, comparison) + interval,
            p_value(line.p),
            p_value(line.p_holm) + (f" of {line.family}" if line.p_holm is not None else ""),
        ]
        # Text, not str: rich would read square brackets as markup.
        table.add_row(*(Text(cell) for cell in cells))
    return table
