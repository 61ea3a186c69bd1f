"""A score, typed: what it is (:class:`ScoreSpec`), of whom (:class:`Group`), and its number with what every printed number has.

A metric is declared once, as a :class:`MetricSpec` in ``spec.py`` beside its core: the observations that it is made from, how rows are
scored and compared, how its numbers are called, and where they stand on a page. Scoring, comparison, reports and boards go through these
objects; none of them knows a metric by name, and none puts a name together or takes one apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from t2i_parity.metrics._common import Answer, FloatArray, Signature

Direction = Literal["higher", "lower", "zero", "none"]
"""Which value is better: a higher one, a lower one, the one nearest to 0 (a shift), or none of them."""
Unit = Literal["fraction", "pp", "count", "p", "cosine", "score", "slope"]
Kind = Literal["proportion", "paired_difference", "bounded_mean", "spread", "count", "extreme", "p_value"]
"""What sort of number it is, and so how its interval is to be made."""
Row = Mapping[str, Any]
"""An image row, or the row of an audited prompt: the prompt's columns and what the run adds to them."""


# Of whom ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Group(Mapping[str, str]):
    """The rows that a score stands on: a code on each axis that they are cut by; no axis at all is every row.

    >>> group = Group(language="hi", dimension="TA-C")
    >>> group["language"], Group(), str(group)
    ('hi', Group(), 'language=hi, dimension=TA-C')
    """

    codes: tuple[tuple[str, str], ...]

    def __init__(self, axes: Mapping[str, str] | None = None, /, **codes: str) -> None:
        object.__setattr__(self, "codes", tuple({**(axes or {}), **codes}.items()))

    def __getitem__(self, axis: str) -> str:
        for name, code in self.codes:
            if name == axis:
                return code
        raise KeyError(axis)

    def __iter__(self) -> Iterator[str]:
        return (axis for axis, _ in self.codes)

    def __len__(self) -> int:
        return len(self.codes)

    def __hash__(self) -> int:
        return hash(frozenset(self.codes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Group) and frozenset(self.codes) == frozenset(other.codes)

    def __repr__(self) -> str:
        return f"Group({', '.join(f'{axis}={code!r}' for axis, code in self.codes)})"

    def __str__(self) -> str:
        return ", ".join(f"{axis}={code}" for axis, code in self.codes) or "all"

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes that it is cut by, in their order."""
        return tuple(axis for axis, _ in self.codes)


ALL = Group()


def labelled(groups: Sequence[Group]) -> tuple[list[str], dict[str, Group]]:
    """A name for each row's group, as cores take them, and the group that each name stands for, by which their answers are read back.

    >>> labels, of = labelled([Group(language="hi"), Group(language="en"), Group(language="hi")])
    >>> labels, of["0000"]
    (['0001', '0000', '0001'], Group(language='en'))
    """
    label = {group: f"{place:04d}" for place, group in enumerate(sorted(set(groups), key=str))}
    return [label[group] for group in groups], {name: group for group, name in label.items()}


# What a score is ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowScore:
    """How a single row is scored, so that two runs can be compared row by row.

    ``column`` is what the ``scored`` table calls it, after the judge's name; ``read`` makes a cell of it (never None) a number, given the
    score's signature. ``binary`` scores are 0 or 1.
    """

    column: str
    binary: bool = False
    read: Callable[[Any, Signature], float] = lambda cell, signature: float(cell)


@dataclass(frozen=True, slots=True)
class Task:
    """A score as a task of the benchmark that the prompts declare: its id on a model's page, and the config that it is asked of."""

    id: str
    config: str


@dataclass(frozen=True, slots=True)
class ScoreSpec:
    """One number of a metric: what it is called, what it says, its unit, and which value is better.

    ``counted`` is the key of the core's answer that says how many rows the number stands on, and ``missing`` the one that says
    how many of its rows are missing. ``margin`` is the difference of it that
    matters, δ, where it is another than its unit's (:mod:`t2i_parity.metrics.verdicts`). ``optional`` names the column of observations
    without which there is no such number. ``board`` is its title on a leaderboard; a score without one has no table there. ``headline`` is
    its name where it stands for the whole metric: on a card's plot, and as a ``task``.
    """

    metric: str
    key: str
    title: str
    about: str = ""
    unit: Unit = "fraction"
    direction: Direction = "higher"
    kind: Kind = "bounded_mean"
    counted: str = "n"
    missing: str = "n_missing"
    margin: float | None = None
    optional: str = ""
    row: RowScore | None = None
    board: str = ""
    headline: str = ""
    task: Task | None = None

    @property
    def name(self) -> str:
        """What people read in a table of all scores: ``metric.key``."""
        return f"{self.metric}.{self.key}"

    @property
    def higher_is_better(self) -> bool | None:
        """For tables that know two directions only; None where no value is better, or the one nearest to 0."""
        return {"higher": True, "lower": False}.get(self.direction)


Place = Literal["text", "metrics", "gap", "ceilings", "audit", "none"]
"""The part of the report in which a metric stands."""


class Settings(Protocol):
    """What a metric may be told: the keywords of the studies' metrics, and how intervals are drawn."""

    @property
    def tokenizer(self) -> str: ...
    @property
    def normalization(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def resampling(self) -> Mapping[str, Any]:
        """``confidence_level``, ``n_resamples`` and ``seed``, as every core takes them."""


@dataclass(frozen=True, slots=True)
class Observed:
    """Rows and, beside them, what one judge saw: a column each, None where it saw nothing; and the judge's signature."""

    rows: Sequence[Row]
    columns: Mapping[str, Sequence[Any]]
    judge: Signature

    @property
    def pairs(self) -> list[str]:
        """The meaning that each row asks for: rows of one meaning are resampled together."""
        return [row["pair_id"] for row in self.rows]

    def of(self, rows: Sequence[int]) -> Observed:
        """Some of the rows, by their places."""
        return Observed([self.rows[row] for row in rows], {n: [c[row] for row in rows] for n, c in self.columns.items()}, self.judge)


class Compute(Protocol):
    """Observations → the core's answer; ``groups`` is a name a row."""

    def __call__(self, part: Observed, *, groups: Sequence[str], settings: Settings) -> Answer: ...


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric, declared: its scores, the observations that they are made from, and how a page calls it.

    ``columns`` are the columns that a judge's observations must have; with none, something else makes the scores. ``instrument`` is the
    judge's part in the signature. ``per_row`` gives row scores by column, NaN where there is none; ``unequal`` is the column whose
    inequality over languages is measured. ``suits`` tells whether the metric says anything of a row: the others are not in it, neither
    scored nor missing. ``order`` is its place among the sections of a page.
    """

    name: str
    title: str
    about: str
    scores: tuple[ScoreSpec, ...]
    columns: tuple[str, ...] = ()
    instrument: str = "judge"
    compute: Compute | None = None
    per_row: Callable[[Observed, Settings], Mapping[str, FloatArray]] | None = None
    unequal: str = ""
    suits: Callable[[Row], bool] = lambda row: True
    place: Place = "metrics"
    order: int = 100

    def __post_init__(self) -> None:
        if wrong := [score.key for score in self.scores if score.metric != self.name]:
            raise ValueError(f"{self.name}: the scores {', '.join(wrong)} are declared as another metric's")

    def __getitem__(self, key: str) -> ScoreSpec:
        """The score of that key. Raises KeyError when none is declared."""
        for score in self.scores:
            if score.key == key:
                return score
        raise KeyError(f"{self.name} declares no score {key!r}; it has {', '.join(score.key for score in self.scores)}")

    def given(self, columns: Iterable[str]) -> list[ScoreSpec]:
        """The scores that there are when observations have these columns."""
        return [score for score in self.scores if not score.optional or score.optional in columns]

    def read(
        self, answer: Answer, subset: str, group: Group, signature: Signature, *, level: float, keys: Iterable[str] | None = None
    ) -> list[Score]:
        """A core's answer (or that of one of its groups) as scores, those of ``keys`` alone where they are given."""
        specs = self.scores if keys is None else [self[key] for key in keys]
        return [Score.of(spec, answer, subset, group, signature, level=level) for spec in specs]


def paired_rates(metric: str, short: str, about: str, board: str) -> tuple[ScoreSpec, ...]:
    """The scores of a rate of pairs: its shift from the reference to the variety, both sides, the test, and the discordant pairs."""
    counted = "n_conditioned" if short == "tbr" else "n"
    title = short.upper()
    return (
        ScoreSpec(metric, "delta_pp", f"Δ{title}", about, "pp", "zero", "paired_difference", counted, board=board),
        ScoreSpec(metric, f"{short}_reference", f"{title} of the reference", "", "fraction", "none", "proportion", counted),
        ScoreSpec(metric, f"{short}_variety", f"{title} of the variety", "", "fraction", "none", "proportion", counted),
        ScoreSpec(metric, "p_value", "p", "", "p", "none", "p_value", counted),
        ScoreSpec(metric, "p_value_holm", "Holm p", "", "p", "none", "p_value", counted),
        ScoreSpec(metric, "only_variety", "Only the variety", "", "count", "none", "count", counted),
        ScoreSpec(metric, "only_reference", "Only the reference", "", "count", "none", "count", counted),
    )


# A score ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval: its ends, its level, and how it was made."""

    low: float
    high: float
    level: float = 0.95
    method: str = "bootstrap"

    @classmethod
    def of(cls, ends: Sequence[float | None] | None, level: float, method: str = "bootstrap") -> Interval | None:
        """The interval of [low, high]; None where an end is not known."""
        low, high = ends or (None, None)
        return None if low is None or high is None else cls(low, high, level, method)


@dataclass(frozen=True, slots=True)
class Score:
    """A number, what it is, of whom, and what every printed number has.

    ``value`` is None where nothing could be scored; missing rows are counted, never scored. ``published`` is the studies' own form of the
    number where ours differs from it. ``reason`` says why a number has no interval.
    """

    spec: ScoreSpec
    subset: str
    group: Group
    value: float | None
    n: int
    n_missing: int
    interval: Interval | None
    signature: Signature
    published: float | None = field(default=None, kw_only=True)
    reason: str = field(default="", kw_only=True)

    @property
    def metric(self) -> str:
        """The metric's name."""
        return self.spec.metric

    @property
    def key(self) -> str:
        """The metric's key."""
        return self.spec.key

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """The ends of the interval, None where there is none."""
        return (None, None) if self.interval is None else (self.interval.low, self.interval.high)

    @property
    def identity(self) -> tuple[str, str, str, Group, Signature]:
        """What no two scores of one run share."""
        return self.metric, self.key, self.subset, self.group, self.signature

    @classmethod
    def of(cls, spec: ScoreSpec, answer: Answer, subset: str, group: Group, signature: Signature, *, level: float) -> Score:
        """The number of ``spec`` in a core's answer, whose ``ci`` may hold [low, high] of it at this level, and ``ci_method`` how made."""
        method = answer.get("ci_method", {}).get(spec.key, "bootstrap")
        interval = Interval.of(answer.get("ci", {}).get(spec.key), level, method)
        _, none, why = method.partition("none: ")
        n, missing = int(answer[spec.counted]), int(answer[spec.missing])
        return cls(spec, subset, group, answer[spec.key], n, missing, interval, signature, reason=why if none else "")

    def json(self) -> dict[str, Any]:
        """As scores.json keeps it; :func:`metrics.stored.read` is the way back."""
        interval = self.interval
        return {
            "metric": self.metric,
            "key": self.key,
            "subset": self.subset,
            "group": dict(self.group),
            "value": self.value,
            "n": self.n,
            "n_missing": self.n_missing,
            "interval": None if interval is None else [interval.low, interval.high],
            "level": None if interval is None else interval.level,
            "method": None if interval is None else interval.method,
            **({} if self.published is None else {"published": self.published}),
            **({"reason": self.reason} if self.reason else {}),
            "unit": self.spec.unit,
            "direction": self.spec.direction,
            "signature": str(self.signature),
        }
