"""What a plan takes from a pilot run: rates and how two wordings' flags go together, deviations, correlations."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import scipy.stats

from t2i_parity.cards.plan import Assumption
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.run import Run
from t2i_parity.metrics._common import FloatArray, wilson_interval
from t2i_parity.metrics.scores import Score

LEVEL = 0.95
"""The level of the intervals whose worst ends a cautious plan takes."""


@dataclass(frozen=True, slots=True)
class _Flags:
    """The pairs of one instrument, over all varieties: how many, in how many only the one or the other was flagged."""

    pairs: int
    only_variety: int
    only_reference: int
    reference: float
    varieties: int

    @property
    def discordance(self) -> float:
        return (self.only_variety + self.only_reference) / self.pairs

    def correlation(self, discordance: float) -> float | None:
        """φ of the two flags, were so many pairs discordant; None where one side never varies."""
        other = self.reference + (self.only_variety - self.only_reference) / self.pairs
        spread = self.reference * (1 - self.reference) * other * (1 - other)
        both = (self.reference + other - discordance) / 2
        return (both - self.reference * other) / math.sqrt(spread) if spread > 0 else None


def of_rates(run: Run, metric: str, rate: str) -> list[Assumption]:
    """``rate``, ``correlation`` and ``groups`` from the scores of a pilot audit; ``rate`` is "tpr", "fpr", "tbr" or "ocr".

    Of several filters (guardrails, evaluators) that one is taken whose two flags differ most often. Raises InputError where the run has no
    such scores, or its pairs all agree that nothing (or everything) is flagged.
    """
    found = [flags for flags in (_flags(scores, rate) for scores in _by_signature(run, metric)) if flags is not None]
    if not found:
        raise InputError(
            f"--from {run.url}: expected a scored run with {metric} by variety, got one without. Fix: give an audit that was scored, "
            f"t2i-parity score {run.url}, or leave --from out"
        )
    flags = max(found, key=lambda each: each.discordance)
    correlation = flags.correlation(flags.discordance)
    if correlation is None:
        raise InputError(
            f"--from {run.url}: expected flags that vary, got a rate of {flags.reference:g} in all pairs. Fix: leave --from out, or give "
            "a pilot in which some are flagged and some are not"
        )
    one = flags.pairs // flags.varieties
    most = wilson_interval(round(flags.discordance * one), one, LEVEL)[1]
    worst = flags.correlation(most)
    seen = f"{run.name}: {flags.pairs:,} pairs of {flags.varieties} varieties"
    chosen = f", of {len(found)} instruments the one with most" if len(found) > 1 else ""
    open_to = f" ({most:.1%} by the Wilson interval of {one} pairs)"
    return [
        Assumption("rate", flags.reference, f"{seen}, the reference's"),
        Assumption("correlation", correlation, f"{seen}, {flags.discordance:.1%} of them discordant{open_to}{chosen}", worst),
        Assumption("groups", flags.varieties, f"{run.name}; each is tested at α / {flags.varieties}"),
    ]


def _by_signature(run: Run, metric: str) -> Iterable[list[Score]]:
    found: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in run.scores():
        if score.metric == metric and score.group.axes == ("variety",):
            found[score.subset, str(score.signature)].append(score)
    return found.values()


def _flags(scores: list[Score], rate: str) -> _Flags | None:
    by_variety: dict[str, dict[str, Score]] = defaultdict(dict)
    prefix = f"{rate}_" if rate in ("tpr", "fpr") else ""
    for score in scores:
        by_variety[str(score.group)][score.key] = score
    keys = (f"{prefix}only_variety", f"{prefix}only_reference", f"{rate}_reference")
    cells = []
    for each in by_variety.values():
        variety, reference, share = (each.get(key) for key in keys)
        if variety is None or reference is None or share is None or share.value is None:
            continue
        cells.append((share.n, variety.value or 0.0, reference.value or 0.0, share.n * share.value))
    pairs, only_variety, only_reference, flagged = np.array(cells, np.float64).reshape(-1, 4).sum(axis=0)
    return _Flags(int(pairs), int(only_variety), int(only_reference), float(flagged / pairs), len(cells)) if pairs else None


def of_rows(run: Run) -> list[Assumption]:
    """What the scored rows of rendered texts tell: all numbers of a question about precision but the images, ``icc`` if these are several.

    Of several readers that one is taken whose precision scatters most. Raises InputError where no five meanings were read in all languages.
    """
    rows = run.scored().read().to_pylist() if run.scored().files() else []
    columns = sorted({name for row in rows[:1] for name in row if name.endswith("_precision")})
    found = [spreads for spreads in (_spreads(rows, name) for name in columns) if spreads is not None]
    if not found:
        raise InputError(
            f"--from {run.url}: expected a scored run of rendered texts, five meanings or more in each of two languages or more, got "
            f"{len(rows)} scored rows without them. Fix: judge and score more prompts, or leave --from out"
        )
    spreads = max(found, key=lambda each: each.within)
    seen = f"{run.name}: {spreads.meanings} meanings in {spreads.languages} languages"
    df = (spreads.meanings - 1) * (spreads.languages - 1)
    larger = math.sqrt(df / float(scipy.stats.chi2.ppf((1 - LEVEL) / 2, df)))
    chosen = f", of {len(found)} readers the one with most" if len(found) > 1 else ""
    return [
        Assumption("deviation", spreads.deviation, f"{seen}{chosen}", spreads.deviation * larger),
        Assumption("correlation", max(0.0, 1 - (spreads.within / spreads.deviation) ** 2), f"{seen}, over the languages of a meaning"),
        Assumption("mean", spreads.mean, seen),
        Assumption("perfect", spreads.perfect, seen),
        Assumption("groups", spreads.languages, run.name),
        *([Assumption("icc", spreads.icc, f"{seen}, over the images of a prompt")] if spreads.icc is not None else []),
    ]


@dataclass(frozen=True, slots=True)
class _Spreads:
    """Of one image's number: its deviation within a language, the part that languages do not share, and how images of that correlate."""

    meanings: int
    languages: int
    deviation: float
    within: float
    mean: float
    perfect: float
    icc: float | None


def _spreads(rows: list[dict[str, object]], column: str) -> _Spreads | None:
    cells: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        value = row.get(column)
        if isinstance(value, float):
            cells[str(row["pair_id"])][str(row["language"])].append(value)
    languages = sorted({code for cell in cells.values() for code in cell})
    whole = [[np.array(cell[code]) for code in languages] for cell in cells.values() if len(cell) == len(languages)]
    if len(languages) < 2 or len(whole) < 5:
        return None
    means: FloatArray = np.array([[values.mean() for values in cell] for cell in whole])
    images = len(languages) * len(whole) / sum(1 / len(values) for cell in whole for values in cell)
    again = sum(len(values) - 1 for cell in whole for values in cell)
    noise = sum(float(((values - values.mean()) ** 2).sum()) for cell in whole for values in cell) / again if again else 0.0
    left = means - means.mean(axis=0) - means.mean(axis=1, keepdims=True) + means.mean()
    square = float((left**2).sum()) / ((len(whole) - 1) * (len(languages) - 1))
    shared = max(0.0, square - noise / images)
    within = shared + noise if again else square
    variance = float(means.var(axis=0, ddof=1).mean()) + noise * (1 - 1 / images)
    if not within > 0 or not variance > 0:
        return None
    mean = float(means.mean())
    perfect = float((means == round(mean)).mean())
    icc = shared / within if again else None
    return _Spreads(len(whole), len(languages), math.sqrt(variance), math.sqrt(within), mean, perfect, icc)
