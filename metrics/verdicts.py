"""What a difference lets one say: four verdicts, the same wherever a difference is shown.

*differs*: the test, corrected over the family that the page states, is below 5%. *equivalent*: the whole interval lies within the declared
margin, which is two one-sided tests at half of what the interval's level leaves (Schuirmann 1987). *undecided*: neither; the sample would
show only what is at least ``smallest``. *not measured*: nothing was observed, or so much is missing that the missing rows could turn it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from scipy.stats import norm

from t2i_parity.metrics.scores import Interval, Score, ScoreSpec, Unit

Kind = Literal["differs", "equivalent", "undecided", "not measured"]
ALPHA = 0.05
"""The level of every test."""
POWER = 0.8
"""With what power ``smallest`` is shown."""
MOST_MISSING = 0.2
"""With a larger share missing, a verdict stands only where no missing rows could turn it."""
MARGINS: dict[Unit, float] = {"pp": 5.0, "fraction": 0.05, "cosine": 0.05, "score": 0.05}
"""δ by unit, where a score declares none of its own."""
# What one row can add to a difference, by unit.
_LARGEST: dict[Unit, float] = {"pp": 100.0, "fraction": 1.0, "cosine": 1.0}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a difference, with what it stands on.

    ``margin`` is δ. ``smallest`` is the smallest difference that a sample like this shows with 80% power, None without an interval.
    ``turned_by`` is how many missing rows, all as contrary as a row can be, would turn the verdict; None where it is not known.
    """

    kind: Kind
    difference: float | None
    interval: Interval | None
    unit: Unit
    margin: float
    smallest: float | None
    n: int
    n_missing: int
    turned_by: int | None = None

    @property
    def direction(self) -> Literal["more", "less", ""]:
        """Where a difference was shown: whether it is above or below nothing."""
        if self.kind != "differs" or not self.difference:
            return ""
        return "more" if self.difference > 0 else "less"

    @property
    def fragile(self) -> bool:
        """Whether the rows that are missing could turn it."""
        return self.turned_by is not None and self.turned_by <= self.n_missing


def margin_of(spec: ScoreSpec) -> float:
    """δ of a score, in its unit. Raises KeyError for a unit that has none.

    >>> margin_of(ScoreSpec("dialect_penalty", "delta_fpr_pp", "ΔFPR", unit="pp"))
    5.0
    """
    return MARGINS[spec.unit] if spec.margin is None else spec.margin


def verdict(difference: Score, p: float | None, *, family: int = 1, largest: float | None = None) -> Verdict:
    """The verdict on one difference, from its score and from its p-value, corrected already over ``family`` tests.

    Without a p-value the interval takes the test's place: it differs where the interval leaves out 0. An interval without width is
    none: no sample can give it. ``largest`` is what one row can add to the difference, where that is not what its unit says.

    >>> from t2i_parity.metrics._common import Signature
    >>> from t2i_parity.metrics.scores import ALL
    >>> spec = ScoreSpec("m", "delta_pp", "Δ", unit="pp", direction="zero", kind="paired_difference")
    >>> score = Score(spec, "dialect", ALL, 2.0, 200, 0, Interval(-1.0, 4.5), Signature("m", {}, "1"))
    >>> verdict(score, 0.2).kind, verdict(score, 0.01).kind, round(verdict(score, 0.2).smallest, 2)
    ('equivalent', 'differs', 3.93)
    """
    spec, n, missing = difference.spec, difference.n, difference.n_missing
    margin, interval = margin_of(spec), difference.interval
    if interval is not None and not interval.high > interval.low:
        interval = None
    value = difference.value if n else None
    if value is None:
        return Verdict("not measured", None, None, spec.unit, margin, None, n, missing)
    kind: Kind = "undecided"
    turned_by = smallest = None
    if interval is not None:
        smallest = _smallest(interval, family)
        shown = not interval.low <= 0 <= interval.high if p is None else p < ALPHA
        within = -margin < interval.low and interval.high < margin
        kind = "differs" if shown else "equivalent" if within else "undecided"
        turned_by = _turned_by(kind, interval, _LARGEST.get(spec.unit) if largest is None else largest, margin, n)
    elif p is not None and p < ALPHA:
        kind = "differs"
    may_turn = turned_by is None or turned_by <= missing
    if missing > MOST_MISSING * (n + missing) and may_turn:
        kind = "not measured"
    return Verdict(kind, value, interval, spec.unit, margin, smallest, n, missing, turned_by)


def _smallest(interval: Interval, family: int) -> float:
    error = (interval.high - interval.low) / 2 / float(norm.ppf((1 + interval.level) / 2))
    return error * float(norm.ppf(1 - ALPHA / 2 / family) + norm.ppf(POWER))


def _turned_by(kind: Kind, interval: Interval, largest: float | None, margin: float, n: int) -> int | None:
    """So many rows at the worst end bring the interval's nearer end over the line that the verdict stands on."""
    if largest is None or kind not in ("differs", "equivalent"):
        return None
    if kind == "differs":
        near = max(interval.low, -interval.high, 0.0)
        return math.ceil(near * n / largest)
    far = max(interval.high, -interval.low)
    return math.ceil((margin - far) * n / (largest - margin))
