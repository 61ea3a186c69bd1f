# Written by `python -m t2i_parity.metrics.copies` from metrics/_common.py; change it there.
"""What every metric shares: signatures, input checks, resampling, and the class that joins a core to ``evaluate``.

Every metric folder holds a copy of this file as ``common.py`` (see :mod:`t2i_parity.metrics.copies`). It imports
neither ``evaluate`` nor ``datasets`` on its own account, so that a metric's ``core`` runs wherever numpy and scipy do.
"""

from __future__ import annotations

import inspect
import io
import math
import os
import reprlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
import scipy.stats
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from evaluate import Metric
else:
    Metric = object

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.intp]
Answer: TypeAlias = dict[str, Any]
"""What a metric answers: plain numbers (or None) by key, with ``n``, ``n_missing``, ``ci``, ``signature`` and, by group, answers again."""

# Signatures ---------------------------------------------------------------------------------------------------------


# What a text may not hold as it stands: braces mark a signature inside another, and are written as they are in addresses.
_ESCAPED = {"%": "%25", "{": "%7B", "}": "%7D"}


@dataclass(frozen=True)
class Signature:
    """What a number depends on, in one line, so that two numbers can be told comparable or not (after sacrebleu).

    A field may be a signature itself, that of the reader behind a score, say; it stands in braces, and :meth:`parse` gives it back.

    >>> print(Signature("dialect_penalty", {"test": "paper", "filter": Signature("svm", {}, "2")}, "1.0"))
    dialect_penalty|test:paper|filter:{svm|v:2}|v:1.0
    """

    metric: str
    fields: Mapping[str, str | Signature]
    version: str

    def __post_init__(self) -> None:
        for key, value in {"metric": self.metric, **self.fields, "v": self.version}.items():
            held = value if isinstance(value, str) else ""
            if "|" in key + held or "\n" in key + held or ":" in key:
                raise ValueError(
                    f"signature field {key!r}: expected text without '|' and line breaks, got {value!r}. "
                    "Fix: rename it; a callable may carry a `name` attribute."
                )

    def __str__(self) -> str:
        pairs = {**self.fields, "v": self.version}
        return "|".join([_escaped(self.metric), *(f"{_escaped(key)}:{_escaped(value)}" for key, value in pairs.items())])

    def __hash__(self) -> int:
        return hash((self.metric, frozenset(self.fields.items()), self.version))

    def having(self, **fields: str | Signature) -> Signature:
        """The same with these fields set.

        >>> print(Signature("m", {}, "1.0").having(reader="tesseract"))
        m|reader:tesseract|v:1.0
        """
        return Signature(self.metric, {**self.fields, **fields}, self.version)

    def without(self, *keys: str) -> Signature:
        """The same less these fields."""
        return Signature(self.metric, {key: value for key, value in self.fields.items() if key not in keys}, self.version)

    @property
    def flat(self) -> dict[str, str]:
        """Every field as a text, those of signatures inside under their path.

        >>> Signature("m", {"reader": Signature("tesseract", {"psm": "7"}, "5")}, "1.0").flat
        {'metric': 'm', 'reader': 'tesseract', 'reader.psm': '7', 'reader.v': '5', 'v': '1.0'}
        """
        found = {"metric": self.metric}
        for key, value in self.fields.items():
            if isinstance(value, str):
                found[key] = value
            else:
                inner = value.flat
                found[key] = inner.pop("metric")
                found |= {f"{key}.{name}": text for name, text in inner.items()}
        return {**found, "v": self.version}

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Read the text form back; raises ValueError when it is not one.

        >>> Signature.parse("dialect_penalty|test:paper|filter:{svm|v:2}|v:1.0").fields["filter"].version
        '2'
        """
        wrong = ValueError(f"not a signature: expected 'metric|key:value|…|v:version', got {text!r}")
        metric, *pairs = _fields(text)
        split = [pair.split(":", 1) for pair in pairs]
        if not metric or not all(len(pair) == 2 for pair in split) or [pair[0] for pair in split[-1:]] != ["v"]:
            raise wrong
        fields: dict[str, str | Signature] = {}
        for key, value in split:
            if _plain(key) in fields:
                raise wrong
            nested = value.startswith("{") and value.endswith("}")
            fields[_plain(key)] = cls.parse(value[1:-1]) if nested else _plain(value)
        version = fields.pop("v")
        if not isinstance(version, str):
            raise wrong
        return cls(_plain(metric), fields, version)


def _escaped(value: str | Signature) -> str:
    return "".join(_ESCAPED.get(sign, sign) for sign in value) if isinstance(value, str) else f"{{{value}}}"


def _plain(text: str) -> str:
    for sign, escape in reversed(_ESCAPED.items()):
        text = text.replace(escape, sign)
    return text


def _fields(text: str) -> list[str]:
    """The parts between the bars that stand in no braces."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign == "{") - (sign == "}")
        if sign == "|" and depth == 0:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


def compare(a: Signature | str, b: Signature | str) -> dict[str, tuple[str | None, str | None]]:
    """The keys in which two signatures differ, with both values; empty when the numbers are comparable.

    >>> compare("m|tok:tekken|v:1.0", "m|tok:google/mt5-base|v:1.0")
    {'tok': ('tekken', 'google/mt5-base')}
    """
    left, right = ((Signature.parse(side) if isinstance(side, str) else side).flat for side in (a, b))
    keys = [*left, *(key for key in right if key not in left)]
    return {key: (left.get(key), right.get(key)) for key in keys if left.get(key) != right.get(key)}


def ranked(scores: Mapping[str, tuple[float | None, Signature | str]], *, higher_is_better: bool = True) -> list[tuple[str, float | None]]:
    """Names and scores, best first, those without a score last; names decide ties.

    Raises ValueError, saying which keys of which two signatures differ, when the scores are not comparable.

    >>> ranked({"a": (0.5, "m|v:1.0"), "b": (0.7, "m|v:1.0"), "c": (None, "m|v:1.0")})
    [('b', 0.7), ('a', 0.5), ('c', None)]
    """
    first = next(iter(scores), "")
    for name, (_, signature) in scores.items():
        if differing := compare(scores[first][1], signature):
            told = "; ".join(f"{key}: {a!r} and {b!r}" for key, (a, b) in differing.items())
            raise ValueError(f"{first} and {name} cannot be ranked: their signatures differ in {told}. Fix: score both in the same way.")
    sign = -1 if higher_is_better else 1
    order = sorted(scores, key=lambda name: (scores[name][0] is None, sign * (scores[name][0] or 0.0), name))
    return [(name, scores[name][0]) for name in order]


# Input checks -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """One input column, declared once for the core, the checks and the features that ``evaluate`` stores.

    ``missing`` says that None is an observation that failed (among floats NaN too); ``optional`` columns may be left
    out altogether; ``within`` bounds a number, both ends included; ``flags`` says that True stands for 1 and False for
    0, as in a column of bool the whole numbers 1 and 0 stand for True and False. An image is a PIL image, its file's bytes
    or path, or the dict of both that ``datasets`` stores.
    """

    name: str
    kind: Literal["str", "bool", "float", "image", "list[str]", "list[float]"]
    missing: bool = False
    optional: bool = False
    allowed: Collection[str] = ()
    within: tuple[float, float] | None = None
    flags: bool = False

    @property
    def expected(self) -> str:
        one_of = f" ({' or '.join(map(repr, self.allowed))})" if self.allowed else ""
        bounds = f" from {self.within[0]:g} to {self.within[1]:g}" if self.within else ""
        return f"{self.kind}{one_of}{bounds}{' or bool' if self.flags else ''}{' or None' if self.missing else ''}"

    @property
    def item(self) -> Column | None:
        """What a list column's cells hold; None for the other kinds."""
        kinds: dict[str, Literal["str", "float"]] = {"list[str]": "str", "list[float]": "float"}
        return replace(self, kind=kinds[self.kind], missing=False) if self.kind in kinds else None


GROUPS = Column("groups", "str", optional=True)
CLUSTERS = Column("clusters", "str", optional=True)

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "bool": (bool, np.bool_),
    "float": (float, int, np.floating, np.integer),
}
_DTYPES = {"str": "string", "bool": "bool", "float": "float64"}
# What single precision adds to a cosine or a probability of 1.
_SLACK = 1e-6
_FIXES = {
    "str": "give text: [str(x) for x in column] where numbers are meant as text",
    "bool": "give True or False, or 1 or 0: [x > threshold for x in column] for scores",
    "float": "give a finite number, or None where the score is missing",
    "list": "give one list a row",
    "image": "give a PIL image (PIL.Image.fromarray(x) for an array), its file's bytes or its file's path",
}


def check_columns(metric: str, columns: Sequence[Column], given: Mapping[str, object]) -> dict[str, Any]:
    """The given columns as lists of one length; None for an optional column that was not given.

    Raises ValueError, naming column and row (from 0), what was expected and found, and the fix, when a column is
    missing, empty, no list, of another length, or holds a wrong cell.
    """
    checked: dict[str, Any] = {}
    length: tuple[str, int] | None = None
    for column in columns:
        values = given.get(column.name)
        if values is None:
            if not column.optional:
                raise ValueError(
                    f"{metric}: column '{column.name}' is missing: expected a list, one {column.expected} a row. "
                    f"Fix: give {column.name}=[…]."
                )
            checked[column.name] = None
            continue
        cells = _as_list(metric, column, values)
        if length is None:
            length = column.name, len(cells)
        if len(cells) != length[1]:
            row = min(len(cells), length[1])
            raise ValueError(
                f"{metric}: column '{column.name}', row {row}: expected {length[1]} rows as in '{length[0]}', got "
                f"{len(cells)}. Fix: give every column one cell a row, None where an observation is missing."
            )
        if not cells:
            raise ValueError(f"{metric}: column '{column.name}', row 0: expected at least one row, got []. Fix: give rows.")
        row, problem = _first_problem(column, cells)
        if problem:
            raise ValueError(f"{metric}: column '{column.name}', row {row}: expected {column.expected}, {problem}.")
        if column.flags:
            cells = [float(cell) if isinstance(cell, bool | np.bool_) else cell for cell in cells]
        elif column.kind == "bool":
            cells = [bool(cell) if _is_bit(cell) else cell for cell in cells]
        checked[column.name] = cells
    return checked


def check_choice(metric: str, keyword: str, value: object, choices: Sequence[str]) -> str:
    """``value`` if it is one of ``choices``, else ValueError."""
    if isinstance(value, str) and value in choices:
        return value
    raise ValueError(f"{metric}: {keyword}: expected one of {', '.join(map(repr, choices))}, got {value!r}.")


def check_number(metric: str, keyword: str, value: object, low: float, below: float) -> float:
    """``value`` as a float if it is a number from ``low`` to less than ``below``, else ValueError."""
    if isinstance(value, _TYPES["float"]) and not isinstance(value, bool) and low <= value < below:  # type: ignore[operator]
        return float(value)  # type: ignore[arg-type]
    raise ValueError(f"{metric}: {keyword}: expected a number from {low:g} to less than {below:g}, got {value!r}.")


def _as_list(metric: str, column: Column, values: object) -> list[Any]:
    cells: Any = values
    if hasattr(cells, "isna"):  # pandas writes a missing text or flag as NaN
        cells = cells.astype(object).where(cells.notna(), None)
    for method in ("to_pylist", "tolist"):
        if hasattr(cells, method):
            cells = getattr(cells, method)()
            break
    if hasattr(cells, "__len__") and hasattr(cells, "__getitem__") and not isinstance(cells, str | bytes | Mapping):
        rows = list(cells) if isinstance(cells, list | tuple) else [cells[row] for row in range(len(cells))]
        if column.item is None:
            return rows
        lists = [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in rows]
        return [list(cell) if isinstance(cell, tuple) else cell for cell in lists]
    raise ValueError(
        f"{metric}: column '{column.name}', row 0: expected a list, one {column.expected} a row, got the "
        f"{type(values).__name__} {reprlib.repr(values)}. Fix: {column.name}=[…] with one cell a row."
    )


def _first_problem(column: Column, cells: list[Any]) -> tuple[int, str]:
    """Row and description of the first wrong cell; an empty description when there is none."""
    item = column.item
    types = (list,) if item is not None else _image_types() if column.kind == "image" else _TYPES[column.kind]
    fix = _FIXES[column.kind if item is None else "list"]
    if column.flags:
        types = (*types, *_TYPES["bool"])

    def typed(cell: object) -> bool:
        if cell is None:
            return column.missing
        if column.kind == "bool" and _is_bit(cell):
            return True
        return isinstance(cell, types) and (column.kind != "float" or column.flags or not isinstance(cell, bool))

    if not {type(cell) for cell in cells} <= {types[0], type(None) if column.missing else types[0]}:
        for row, cell in enumerate(cells):
            if not typed(cell):
                if cell is None:
                    return row, "got None. Fix: fill the cell in, or leave the row out"
                return row, f"got {reprlib.repr(cell)} ({type(cell).__name__}). Fix: {fix}"
    if column.kind == "str" and not column.allowed and _is_text("".join(filter(None, cells))):
        return 0, ""
    for row, cell in enumerate(cells):
        if cell is None:
            continue
        if item is not None:
            place, problem = _first_problem(item, cell)
            if problem:
                return row, f"item {place}: {problem}"
            continue
        if column.kind == "float" and not _is_number(cell, column.missing):
            return row, f"got {reprlib.repr(cell)}, which is not finite. Fix: {fix}"
        if column.within and not math.isnan(cell) and not column.within[0] - _SLACK <= cell <= column.within[1] + _SLACK:
            return row, f"got {reprlib.repr(cell)}. Fix: bring the column to this scale, None where there is no answer"
        if column.kind == "image" and isinstance(cell, dict) and not (cell.get("bytes") or cell.get("path")):
            return row, f"got a dict with neither bytes nor path. Fix: {fix}"
        if column.allowed and cell not in column.allowed:
            return row, f"got {reprlib.repr(cell)}. Fix: map your labels to {' and '.join(map(repr, column.allowed))}"
        if column.kind == "str" and not cell.isascii() and not _is_text(cell):
            return row, f"got {ascii(cell)[:60]}, which holds half a surrogate pair. Fix: decode the bytes as UTF-8"
    return 0, ""


def _image_types() -> tuple[type, ...]:
    from PIL import Image

    return (Image.Image, str, bytes, os.PathLike, dict)


def _is_number(value: Any, missing: bool) -> bool:
    """Finite, or NaN where a score may be missing."""
    try:
        return math.isfinite(value) or (missing and math.isnan(value))
    except OverflowError:
        return False


def _is_bit(cell: object) -> bool:
    return isinstance(cell, int | np.integer) and int(cell) in (0, 1)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# Resampling ---------------------------------------------------------------------------------------------------------

_RESAMPLE_BYTES = 16_000_000
# Few distinct units: draw how often each kind comes up, instead of every unit.
_FEW_KINDS = 64
# An interval is null where more resamples than this leave its key undefined (no toxic pair drawn, a language absent …).
_MOST_UNDEFINED = 0.05
MIN_CLUSTERS = 5
"""With fewer clusters no interval is given."""
# So many losses that were not seen are reckoned with, were every cluster at the end: by simulation (tests/benchmarks/coverage.py).
_UNSEEN_ROWS, _UNSEEN = 1.0, 0.1
Ends: TypeAlias = tuple[float, float] | None


@dataclass(frozen=True)
class Resampling:
    """The level of intervals, and how those that are bootstrapped are drawn; 0 resamples: no interval. Raises ValueError out of range."""

    confidence_level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        level, whole = self.confidence_level, (int, np.integer)
        if isinstance(level, bool) or not isinstance(level, float | np.floating) or not 0 < level < 1:
            raise ValueError(f"confidence_level: expected a float between 0 and 1, such as 0.95, got {level!r}.")
        for name in ("n_resamples", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, whole) or value < 0:
                raise ValueError(f"{name}: expected an int from 0 up, got {value!r}.")


def ratio(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """Elementwise quotient, NaN where the denominator is 0."""
    out = np.full(np.broadcast_shapes(numerator.shape, denominator.shape), np.nan)
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    return out


def number(value: float) -> float | None:
    """A plain float, None for NaN."""
    return None if math.isnan(value) else float(value)


def by_group(describe: Callable[[IntArray], Answer], n_rows: int, groups: Sequence[str] | None) -> Answer:
    """``describe`` of all rows and, where groups are given, of each group's rows under ``by_group``, sorted by name."""
    answer = describe(np.arange(n_rows))
    if groups is not None:
        members: dict[str, list[int]] = {}
        for row, group in enumerate(groups):
            members.setdefault(group, []).append(row)
        answer["by_group"] = {group: describe(np.array(members[group])) for group in sorted(members)}
    return answer


@dataclass(frozen=True)
class Mean:
    """A statistic that is a mean: what ``total`` adds up, over what ``count`` counts (columns of the rows).

    Between ``low`` and ``high`` where it has ends; None where it has none.
    """

    total: int
    count: int
    low: float | None = 0.0
    high: float | None = 1.0


@dataclass(frozen=True)
class Paired:
    """A statistic that is the difference of two means over the same rows, ``second`` minus ``first``, times ``scale``.

    Between −``bound`` and ``bound``, before it is scaled; None where it has no ends.
    """

    first: int
    second: int
    count: int
    scale: float = 1.0
    bound: float | None = 1.0


def estimate(
    rows: FloatArray,
    clusters: Sequence[str] | None,
    statistics: Callable[[FloatArray], FloatArray],
    names: Sequence[str],
    resampling: Resampling,
    kinds: Mapping[str, Mean | Paired] | None = None,
) -> tuple[dict[str, float | None], Answer]:
    """Statistics of summed rows, and ``{"ci": {name: [low, high]}, "ci_method": {name: how}}`` (empty when ``n_resamples`` is 0).

    ``rows`` is (n, k): what each row adds to k sums. ``statistics`` maps sums (…, k) to values (…, len(names)), NaN
    where undefined. Rows are brought into one order first, so that neither their order nor the names of clusters can
    change a digit. What ``kinds`` says to be a mean or a paired difference has the interval of
    :func:`mean_interval` or :func:`paired_interval`; the rest has a percentile bootstrap's. An interval is [None, None]
    where it cannot be known, and ``ci_method`` says why: fewer than :data:`MIN_CLUSTERS` clusters, a key that more than one
    resample in twenty leaves undefined, resamples that all agree.
    """
    order = lexical_order(rows)
    rows = rows[order]
    values = statistics(rows.sum(axis=0))
    answer = {name: number(value) for name, value in zip(names, values, strict=True)}
    if not resampling.n_resamples:
        return answer, {}
    units = rows
    if clusters is not None and len(rows):
        codes: dict[str, int] = {}
        code = np.array([codes.setdefault(clusters[i], len(codes)) for i in order])
        together = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[together], prepend=-1))
        units = np.add.reduceat(rows[together], starts, axis=0)
        units = units[lexical_order(units)]
    level = float(resampling.confidence_level)
    kinds = kinds or {}
    drawn: dict[str, FloatArray] = {}
    ci: dict[str, list[float | None]] = {}
    methods: dict[str, str] = {}
    for name in names:
        kind = kinds.get(name)
        if answer[name] is None:
            ends, how = None, "none: nothing was observed"
        elif isinstance(kind, Mean):
            ends, how = _mean_ends(units, kind, level)
        elif isinstance(kind, Paired):
            ends, how = _paired_ends(units, rows, kind, level)
        elif len(units) < MIN_CLUSTERS:
            ends, how = None, _too_few(len(units))
        else:
            if not drawn:
                drawn = dict(zip(names, statistics(resampled_sums(units, resampling)).T, strict=True))
            ends, how = _percentiles(drawn[name], level)
        ci[name], methods[name] = list(ends) if ends is not None else [None, None], how
    return answer, {"ci": ci, "ci_method": methods}


def _percentiles(drawn: FloatArray, level: float) -> tuple[Ends, str]:
    defined = drawn[~np.isnan(drawn)]
    if len(defined) < (1 - _MOST_UNDEFINED) * len(drawn):
        return None, "none: too many resamples leave it undefined"
    low, high = (float(bound) for bound in np.quantile(defined, [(1 - level) / 2, (1 + level) / 2]))
    if not high > low:
        return None, "none: all resamples agree"
    return (low, high), "bootstrap"


def _too_few(n_clusters: int) -> str:
    return f"none: {n_clusters} cluster{'s' if n_clusters != 1 else ''}, fewer than {MIN_CLUSTERS}"


# Intervals ----------------------------------------------------------------------------------------------------------


def mean_interval(
    values: FloatArray,
    clusters: Sequence[str] | None = None,
    level: float = 0.95,
    *,
    low: float | None = 0.0,
    high: float | None = 1.0,
) -> Ends:
    """The interval of a mean of bounded numbers, as rates and scores from 0 to 1 are; None below :data:`MIN_CLUSTERS` clusters.

    Wilson's, at the effective sample size: that of which a rate like this mean would have the variance that the clusters show (as Korn
    and Graubard 1998 for surveys), with Student's t at one degree of freedom fewer than clusters. Clusters that lie wholly at an end
    tell of losses that were not seen, so that the variance is that with one more loss, a whole one, in proportion to how many they are.
    Rates over rows that are their own clusters have Wilson's interval itself. Without ends, ``low=None``, it is Student's t alone.

    >>> [round(end, 4) for end in mean_interval(np.ones(20))]
    [0.8389, 1.0]
    >>> [round(end, 4) for end in mean_interval(np.repeat([1.0, 0.5, 1.0, 0.8, 0.9, 1.0], 2), list("aabbccddeeff"))]
    [0.542, 0.9728]
    """
    rows = np.column_stack([np.ones(len(values)), values])
    return _alone(rows, clusters, level, Mean(1, 0, low, high))


def paired_interval(
    first: FloatArray, second: FloatArray, clusters: Sequence[str] | None = None, level: float = 0.95, *, bound: float | None = 1.0
) -> Ends:
    """The interval of the mean difference within pairs, second minus first; None below :data:`MIN_CLUSTERS` clusters.

    Of 0 and 1 it is Tango's score interval (1998) for paired proportions, where clusters repeat at the effective size that they show, and
    with Student's t. Of other numbers it is Student's t over clusters, with Agresti and Min's two half pairs (2005), one each way, in
    proportion to the clusters without any difference.

    >>> [round(100 * end, 2) for end in paired_interval(np.zeros(216), np.zeros(216))]
    [-1.75, 1.75]
    """
    rows = np.column_stack([np.ones(len(first)), first, second])
    return _alone(rows, clusters, level, Paired(1, 2, 0, 1.0, bound))


def _alone(rows: FloatArray, clusters: Sequence[str] | None, level: float, kind: Mean | Paired) -> Ends:
    settings = Resampling(level, 1)
    ci = estimate(rows, clusters, lambda sums: sums[..., :1], ["it"], settings, {"it": kind})[1]["ci"]["it"]
    return None if ci[0] is None else (ci[0], ci[1])


def stratified_interval(influence: FloatArray, strata: Sequence[str], value: float, level: float = 0.95) -> tuple[Ends, str]:
    """The interval of a number from what each cluster adds to its error, where clusters were drawn within strata; and how it was made.

    Student's t with Satterthwaite's degrees of freedom. A stratum of a single cluster varies as the others do on average.

    >>> stratified_interval(np.array([0.1, -0.1, 0.2, -0.2, 0.0]), list("aabbc"), 3.0)[1]
    't, stratified'
    """
    if len(influence) < MIN_CLUSTERS:
        return None, _too_few(len(influence))
    parts = [influence[np.array([of == stratum for of in strata])] for stratum in sorted(set(strata))]
    within = [float(np.var(part, ddof=1)) for part in parts if len(part) > 1]
    if not within or not any(within):
        return None, "none: no stratum shows how its clusters vary"
    variances = [len(part) * (float(np.var(part, ddof=1)) if len(part) > 1 else float(np.mean(within))) for part in parts]
    df = sum(variances) ** 2 / sum(v**2 / (len(part) - 1) for v, part in zip(variances, parts, strict=True) if len(part) > 1)
    half = float(scipy.stats.t.ppf((1 + level) / 2, df)) * math.sqrt(sum(variances))
    return (value - half, value + half), "t, stratified"


def _t(level: float, n_clusters: int) -> float:
    return float(scipy.stats.t.ppf((1 + level) / 2, n_clusters - 1))


def _mean_ends(units: FloatArray, kind: Mean, level: float) -> tuple[Ends, str]:
    total, count = units[:, kind.total], units[:, kind.count]
    total, count = total[count > 0], count[count > 0]
    n = len(count)
    if n < MIN_CLUSTERS:
        return None, _too_few(n)
    if kind.low is None or kind.high is None:
        mean = total.sum() / count.sum()
        error = math.sqrt(_variance(total, count, mean))
        return _student(mean, error, n, level)
    share = (total / count - kind.low) / (kind.high - kind.low)
    losses = np.clip(share if (share * count).sum() < count.sum() / 2 else 1 - share, 0.0, 1.0)
    losses = np.where(losses < _SLACK**2, 0.0, losses)
    flipped = (share * count).sum() >= count.sum() / 2
    if n == count.sum() and set(np.unique(losses)) <= {0.0, 1.0}:
        low, high = wilson_interval(int(losses.sum()), n, level)
        how = "wilson"
    else:
        mean = float((losses * count).sum() / count.sum())
        variance = with_unseen(mean, _variance(losses * count, count, mean), losses, n == count.sum())
        size = mean * (1 - mean) / variance if variance > 0 else float(n)
        low, high = effective_wilson(mean, size, _t(level, n))
        how = "wilson, effective size"
    if flipped:
        low, high = 1 - high, 1 - low
    return (kind.low + low * (kind.high - kind.low), kind.low + high * (kind.high - kind.low)), how


def _variance(total: FloatArray, count: FloatArray, mean: float) -> float:
    """The variance of a ratio of sums over clusters (linearised)."""
    n = len(count)
    return float(np.sum(((total - mean * count) / count.mean()) ** 2) / n / (n - 1))


def with_unseen(mean: float, variance: float, losses: FloatArray, single: bool) -> float:
    """The variance of a mean loss, with what losses not seen may add; ``losses`` are those of clusters, ``single`` if of one row each."""
    n = len(losses)
    unseen = float(np.mean(losses == 0)) * (_UNSEEN_ROWS if single else _UNSEEN)
    if not mean or not unseen:
        return variance
    squares = variance * (n - 1) + mean**2
    return max((n * squares + unseen) / (n * mean + unseen) * mean - mean**2, 0.0) / (n - 1)


def effective_wilson(rate: float, size: float, t: float) -> tuple[float, float]:
    """Wilson's interval of a rate out of ``size`` rows, which need be no whole number."""
    centre = (rate + t * t / 2 / size) / (1 + t * t / size)
    half = t / (1 + t * t / size) * math.sqrt(max(rate * (1 - rate) / size + t * t / 4 / size**2, 0.0))
    return max(centre - half, 0.0), min(centre + half, 1.0)


def _student(value: float, error: float, n: int, level: float) -> tuple[Ends, str]:
    if not error > 0:
        return None, "none: all clusters agree"
    half = _t(level, n) * error
    return (float(value - half), float(value + half)), "t"


def _paired_ends(units: FloatArray, rows: FloatArray, kind: Paired, level: float) -> tuple[Ends, str]:
    difference, count = units[:, kind.second] - units[:, kind.first], units[:, kind.count]
    difference, count = difference[count > 0], count[count > 0]
    n = len(count)
    if n < MIN_CLUSTERS:
        return None, _too_few(n)
    mean = float(difference.sum() / count.sum())
    variance = _variance(difference, count, mean)
    counted = rows[rows[:, kind.count] > 0]
    if kind.bound == 1.0 and np.isin(counted[:, [kind.first, kind.second, kind.count]], (0.0, 1.0)).all():
        shift = counted[:, kind.second] - counted[:, kind.first]
        up, down, size = float((shift > 0).sum()), float((shift < 0).sum()), float(len(shift))
        single = n == size
        alone = ((up + down) / size - mean**2) / (size - 1)
        # Rows of a cluster tell no more than rows of their own would.
        inflation = 1.0 if single else max(1.0, variance / alone) if alone > 0 else size / n
        t = float(scipy.stats.norm.ppf((1 + level) / 2)) if single else _t(level, n)
        low, high = tango_interval(up / inflation, down / inflation, size / inflation, t)
        return (kind.scale * low, kind.scale * high), "tango" if single else "tango, effective size"
    if kind.bound is not None:
        variance += kind.bound**2 * float(np.mean(difference == 0)) / n / (n - 1)
    ends, how = _student(mean, math.sqrt(variance), n, level)
    if ends is None:
        return None, how
    bound = math.inf if kind.bound is None else kind.bound
    return (kind.scale * max(ends[0], -bound), kind.scale * min(ends[1], bound)), how


def tango_interval(up: float, down: float, n: float, z: float) -> tuple[float, float]:
    """Tango's score interval (1998, eq. 8) of (up − down) / n, the difference of two paired proportions.

    ``up`` and ``down`` count the discordant pairs of each way, and need be no whole numbers.

    >>> [round(end, 4) for end in tango_interval(1, 0, 32, 1.959964)]
    [-0.0793, 0.1574]
    """

    seen, ways = (up - down) / n, np.array([-1.0, 1.0])
    inside, outside = np.array([seen, seen]), np.where(np.abs(tango_score(up, down, n, ways)) <= z, np.nan, ways)
    for _ in range(60):
        middle = (inside + outside) / 2
        held = np.abs(tango_score(up, down, n, middle)) <= z
        inside, outside = np.where(held, middle, inside), np.where(held, outside, middle)
    # Where even the end of the scale is not refused, it is the interval's.
    low, high = np.where(np.isnan(outside), ways, (inside + outside) / 2)
    return float(low), float(high)


def tango_score(up: ArrayLike, down: ArrayLike, n: float, shift: ArrayLike) -> FloatArray:
    """Tango's score (1998, eq. 8) of the hypothesis that paired proportions differ by ``shift``; arrays of one shape, or numbers.

    >>> round(float(tango_score(1, 0, 32, 0.0)), 3)
    1.0
    """
    up, down, shift = (np.asarray(value, np.float64) for value in (up, down, shift))
    b = -up - down + (2 * n - up + down) * shift
    c = -down * shift * (1 - shift)
    rate = (np.sqrt(np.maximum(b * b - 8 * n * c, 0.0)) - b) / (4 * n)
    spread = n * (2 * rate + shift * (1 - shift))
    far = up - down - n * shift
    certain = np.where(far == 0, 0.0, np.copysign(np.inf, far))
    return np.asarray(np.where(spread > 1e-300, far / np.sqrt(np.maximum(spread, 1e-300)), certain))


def lexical_order(rows: FloatArray) -> IntArray:
    """The order that sorts rows by their columns, first to last: sums over it do not depend on the order given."""
    order: IntArray = np.lexsort(rows.T[::-1])
    return order


class WholeSums:
    """Sums of whole multiples of the rows of ``values`` (n, k), the same to the last digit whatever multiplies the matrices.

    The kernels of a BLAS add in different orders, and their sums differ in the last digit from one processor to another. So
    each column is cut into two whole numbers of a power of two, so small that all sums stay whole numbers below 2⁵³: these
    are exact in any order, and one rounding is left, where the two come together. ``total`` is the largest sum of a row of
    multiples, signs aside.

    >>> WholeSums(np.array([[0.1], [0.2]]), 3)(np.array([[1.0, 2.0], [2.0, -1.0]])).tolist()
    [[0.5], [0.0]]
    """

    def __init__(self, values: FloatArray, total: int) -> None:
        self._bits = 53 - int(total).bit_length()
        self._exponents = np.frexp(np.abs(values).max(axis=0, initial=0.0))[1] - self._bits
        scaled = np.ldexp(values, -self._exponents)
        high = np.rint(scaled)
        low = np.rint(np.ldexp(scaled - high, self._bits))
        # Whole columns, as counts are, leave nothing for a second part.
        self._fine = np.flatnonzero(low.any(axis=0))
        self._parts = np.hstack([high, low[:, self._fine]])

    def __call__(self, multiples: NDArray[Any]) -> FloatArray:
        """(m, k) sums from (m, n) whole multiples."""
        sums = multiples @ self._parts
        wide = len(self._exponents)
        sums[:, self._fine] += np.ldexp(sums[:, wide:], -self._bits)
        return np.asarray(np.ldexp(sums[:, :wide], self._exponents))


def resampled_sums(units: FloatArray, resampling: Resampling) -> FloatArray:
    """(n_resamples, k) sums of as many units as there are, drawn with replacement; ``units`` is sorted."""
    rng = np.random.default_rng(resampling.seed)
    n = len(units)
    starts = np.flatnonzero(np.r_[True, np.any(units[1:] != units[:-1], axis=1)])
    if len(starts) <= _FEW_KINDS:
        # Equal units are interchangeable, so this is the same resample, exactly: the binomial one for a 0/1 rate.
        counts = np.diff(starts, append=n)
        how_often = rng.multinomial(n, counts / n, size=resampling.n_resamples)
        return WholeSums(units[starts], n)(how_often.astype(np.float64))

    # scipy.stats.bootstrap's own draws, counted one resample at a time while they are in the processor's cache.
    drawn = np.empty((resampling.n_resamples, units.shape[1]))
    weights = np.empty((max(1, _RESAMPLE_BYTES // (8 * n)), n))
    summed = WholeSums(units, n)
    for start in range(0, resampling.n_resamples, len(weights)):
        batch = drawn[start : start + len(weights)]
        for row in range(len(batch)):
            weights[row] = np.bincount(rng.integers(0, n, n), minlength=n)
        batch[:] = summed(weights[: len(batch)])
    return drawn


# Pairs --------------------------------------------------------------------------------------------------------------

MCNEMAR_TESTS = ("paper", "exact", "chi2")
EXACT_BELOW = 25


def mcnemar_p(only_variety: ArrayLike, only_reference: ArrayLike, test: str = "paper") -> FloatArray:
    """Two-sided McNemar p-values from the two counts of discordant pairs (arrays of one shape).

    ``test`` is "exact" (binomial), "paper" (exact below 25 discordant pairs, else χ² with continuity correction: arXiv
    2608.29589, §3.3) or "chi2" (χ² as the study's code has it, whose correction goes past zero where the counts are equal:
    its p is then below that of counts that differ by 1). Without a discordant pair p is 1. Raises ValueError on another
    test or negative counts.

    >>> mcnemar_p([17, 30, 0], [0, 30, 0]).round(6).tolist(), mcnemar_p([17, 30, 0], [0, 30, 0], "chi2").round(6).tolist()
    ([1.5e-05, 1.0, 1.0], [0.000104, 0.897279, 1.0])
    """
    check_choice("mcnemar_p", "test", test, MCNEMAR_TESTS)
    b, c = np.broadcast_arrays(np.asarray(only_variety, np.int64), np.asarray(only_reference, np.int64))
    if np.any(b < 0) or np.any(c < 0):
        raise ValueError(f"mcnemar_p: expected counts from 0 up, got {b.min()} and {c.min()} at the lowest.")
    n = b + c
    exact = np.minimum(1.0, 2 * scipy.stats.binom.cdf(np.minimum(b, c), n, 0.5))
    corrected = np.abs(b - c) - 1.0
    chi2 = scipy.stats.chi2.sf((corrected if test == "chi2" else np.maximum(corrected, 0.0)) ** 2 / np.maximum(n, 1), 1)
    use_exact = n < EXACT_BELOW if test == "paper" else np.full(n.shape, test == "exact")
    return np.where(n == 0, 1.0, np.where(use_exact, exact, chi2))


N_PERMUTATIONS = 9_999
"""How many signs a sign-flip test draws, where they are too many to take all."""
# So many signs are drawn at once: 32 MB.
_SIGNS = 4_000_000


def sign_flip_p(differences: FloatArray, n_permutations: int = N_PERMUTATIONS, seed: int = 0) -> float:
    """Two-sided p-value of the sum of paired differences, each of which could have had the other sign.

    Exact, over all signs, where those are no more than ``n_permutations``; else from so many drawn, the observed one counted among them
    (Phipson and Smyth 2010), so that it is never 0. (``scipy.stats.permutation_test`` gives the same, and takes seconds where this takes
    milliseconds.)

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0, 4.0, 5.0])), sign_flip_p(np.zeros(40))
    (0.0625, 1.0)
    """
    n = len(differences)
    observed = abs(differences.sum())
    # Sums of the same numbers in another order differ in their last digits.
    least = observed - 1e-9 * max(1.0, np.abs(differences).sum())
    summed = WholeSums(differences[:, None], n)
    if 2**n <= n_permutations:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(summed(signs)) >= least))
    rng = np.random.default_rng(seed)
    as_large, left = 0, n_permutations
    while left:
        rows = min(left, max(1, _SIGNS // n))
        signs = 2.0 * rng.integers(0, 2, (rows, n), dtype=np.int8) - 1.0
        as_large += int((np.abs(summed(signs)) >= least).sum())
        left -= rows
    return (1 + as_large) / (1 + n_permutations)


def cluster_sums(values: FloatArray, clusters: Sequence[str]) -> FloatArray:
    """The sum of each cluster, sorted, so that neither the order of rows nor the names of clusters change a digit of what follows.

    >>> cluster_sums(np.array([1.0, 0.0, 1.0]), ["b", "a", "b"]).tolist()
    [0.0, 2.0]
    """
    sums: dict[str, list[float]] = {}
    for value, cluster in zip(values.tolist(), clusters, strict=True):
        sums.setdefault(cluster, []).append(value)
    return np.sort(np.array([sum(sorted(members)) for members in sums.values()]))


SIGN_FLIP = "sign-flip"
"""What signatures call the test over clusters."""


def repeated(clusters: Sequence[str] | None, *within: Sequence[str] | None) -> bool:
    """Whether a cluster has several rows within a set; rows of one set share a name in each of ``within`` (None: no such cut).

    >>> repeated(["a", "a"]), repeated(["a", "a"], ["IndE", "AAVE"])
    (True, False)
    """
    if clusters is None:
        return False
    return len(set(zip(clusters, *filter(None, within), strict=True))) < len(clusters)


def paired_p(shifts: FloatArray, clusters: Sequence[str] | None, test: str, seed: int = 0) -> float:
    """The two-sided p-value of paired flags from their shifts (1, 0 or −1 a pair): McNemar's, as ``test`` says.

    McNemar's takes pairs for independent. With "sign-flip" the clusters are, and each could have had the other sign as a whole.

    >>> shifts = np.array([1.0, 1.0, 1.0, 1.0, 1.0, -1.0])
    >>> paired_p(shifts, None, "paper"), paired_p(shifts, list("aaabbb"), "sign-flip")
    (0.21875, 0.5)
    """
    if test == SIGN_FLIP and clusters is not None:
        sums = cluster_sums(shifts, clusters)
        # A cluster without a shift adds nothing, whatever its sign.
        return sign_flip_p(sums[sums != 0], seed=seed)
    return float(mcnemar_p(int(np.sum(shifts == 1)), int(np.sum(shifts == -1)), test))


def wilson_interval(right: int, n: int, confidence_level: float = 0.95) -> list[float]:
    """Wilson's score interval of a rate of ``right`` out of ``n`` independent rows (``n`` from 1 up).

    >>> [round(bound, 4) for bound in wilson_interval(10, 10)]
    [0.7225, 1.0]
    """
    interval = scipy.stats.binomtest(right, n).proportion_ci(confidence_level, method="wilson")
    return [float(interval.low), float(interval.high)]


def paired_rates(
    name: str,
    flags: FloatArray,
    counted: BoolArray,
    clusters: Sequence[str] | None,
    resampling: Resampling,
    test: str = "paper",
) -> tuple[Answer, Answer]:
    """How often the reference and the variety are flagged in the counted pairs, their shift, and its test (:func:`paired_p`).

    ``flags`` is (n, 2): reference and variety, 0 or 1. The answer holds ``{name}_reference``, ``{name}_variety``,
    ``delta_pp`` (variety minus reference), ``p_value``, ``only_variety`` and ``only_reference``, all None where no pair
    counts; the second dict holds ``ci`` as :func:`estimate` gives it, over the counted pairs.
    """
    rows = np.column_stack([np.ones(len(flags)), flags]) * counted[:, None]

    def statistics(sums: FloatArray) -> FloatArray:
        rates = ratio(sums[..., 1:], sums[..., :1])
        return np.concatenate([rates, 100 * (rates[..., 1:] - rates[..., :1])], axis=-1)

    keys = [f"{name}_reference", f"{name}_variety", "delta_pp"]
    kinds: dict[str, Mean | Paired] = {keys[0]: Mean(1, 0), keys[1]: Mean(2, 0), keys[2]: Paired(1, 2, 0, 100.0)}
    values, ci = estimate(rows, clusters, statistics, keys, resampling, kinds)
    shift = (flags[:, 1] - flags[:, 0])[counted]
    only_variety, only_reference = (int(np.sum(shift == way)) for way in (1, -1))
    tested: Answer = dict.fromkeys(("p_value", "only_variety", "only_reference"))
    if len(shift):
        of_shift = None if clusters is None else [cluster for cluster, counts in zip(clusters, counted, strict=True) if counts]
        p = paired_p(shift, of_shift, test, resampling.seed)
        tested = {"p_value": p, "only_variety": only_variety, "only_reference": only_reference}
    return {**values, **tested}, ci


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's p-values (1979), each in its place.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    # Written out here, since the library that has it would bring five others along.
    corrected, found = 0.0, [1.0] * len(ps)
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        corrected = max(corrected, min(1.0, ps[place] * (len(ps) - rank)))
        found[place] = corrected
    return found


def correct_over_groups(answer: Answer, *p_values: str) -> Answer:
    """``answer`` with ``{p_value}_holm`` in each group, corrected over the groups by Holm's method; None stays None."""
    groups = list(answer.get("by_group", {}).values())
    for p_value in p_values:
        tested = [group for group in groups if group[p_value] is not None]
        for group in groups:
            group[f"{p_value}_holm"] = None
        for group, corrected in zip(tested, holm([group[p_value] for group in tested]), strict=True):
            group[f"{p_value}_holm"] = corrected
    return answer


# The class around evaluate ------------------------------------------------------------------------------------------


LINGT2I = """\
@inproceedings{zhang2026lingt2i,
  title = {On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation},
  author = {Zhang, Sicheng and Yan, Zhonghao and Xie, Binzhu and Qiu, Shi and Naseer, Muzammal and Akhtar, Naveed
            and Shah, Mubarak},
  booktitle = {Proceedings of the 34th ACM International Conference on Multimedia},
  year = {2026},
  doi = {10.1145/3767308.3835058},
}
"""
NOT_SAFE_FOR_ALL = """\
@misc{kim2026notsafe,
  title = {Not Safe for All: Auditing the Dialect Penalty in Text-to-Image Safety Pipelines},
  author = {Kim, Minkyu and Choi, Juhwan and Kim, YoungBin},
  year = {2026},
  eprint = {2608.29589},
  archivePrefix = {arXiv},
}
"""


@dataclass(frozen=True)
class Setting:
    """A keyword of ``compute`` as a form asks for it: one of ``choices`` (where ``free``, or another), a number, or a text.

    ``items`` says that commas separate the items of a list.
    """

    keyword: str
    value: str | float
    choices: tuple[str, ...] = ()
    label: str = ""
    free: bool = False
    items: bool = False


@dataclass(frozen=True)
class About:
    """What a metric says of itself, and the form of its Space: example rows of its required columns, as text, and its settings."""

    description: str
    citation: str
    urls: tuple[str, ...]
    label: str = ""
    rows: tuple[tuple[str, ...], ...] = ()
    settings: tuple[Setting, ...] = ()


class CheckedMetric(Metric):  # type: ignore[misc]
    """Mixin before ``evaluate.Metric``: checks before its storage, keywords after it, and nothing lost on an error.

    evaluate looks at the first row's type only, takes a string for rows, and cannot make a column optional. A metric
    gives ``columns``, ``function`` (its core's ``compute``) and what it says ``about`` itself. The configuration ``grouped``
    also stores the optional columns, for ``add`` and ``add_batch``; left out there, they count as not given. A failed
    ``compute`` keeps the rows added before it.
    """

    columns: ClassVar[tuple[Column, ...]]
    function: ClassVar[Callable[..., Answer]]
    about: ClassVar[About]
    # What evaluate holds between gathering the rows and having computed.
    data: Any
    buf_writer: Any
    filelocks: Any
    file_paths: Any

    def stored_columns(self) -> list[Column]:
        """The columns that this configuration stores. Raises ValueError on an unknown configuration."""
        check_choice(type(self).__name__, "config_name", self.config_name, ("default", "grouped"))
        return [column for column in self.columns if self.config_name == "grouped" or not column.optional]

    def _info(self) -> Any:
        import datasets
        import evaluate

        def feature(column: Column) -> Any:
            if column.kind == "image":
                return datasets.Image(decode=False)  # by the core, a batch at a time
            value = datasets.Value(_DTYPES[(column.item or column).kind])
            return value if column.item is None else datasets.List(value)

        return evaluate.MetricInfo(
            description=self.about.description,
            citation=self.about.citation,
            inputs_description=self.function.__doc__ or "",
            features=datasets.Features({column.name: feature(column) for column in self.stored_columns()}),
            reference_urls=list(self.about.urls),
        )

    def add(self, **row: Any) -> None:
        """Add one row; ``prediction`` and ``reference`` may be written in the singular, as in evaluate."""
        names = {column.name for column in self.stored_columns()}
        plural = {name: name if name in names or name + "s" not in names else name + "s" for name in row}
        self.add_batch(**{plural[name]: [cell] for name, cell in row.items()})

    def add_batch(self, **columns: Any) -> None:
        """Add rows: one list a column. Raises ValueError, adding nothing, when one is wrong."""
        stored = self.stored_columns()
        names = [column.name for column in stored]
        for name, values in columns.items():
            if name not in names and values is not None:
                optional = any(column.name == name for column in self.columns)
                fix = 'load the metric with config_name="grouped"' if optional else f"give only {', '.join(names)}"
                raise ValueError(f"{self.name}: column '{name}': expected only {', '.join(names)} here. Fix: {fix}.")
        checked = check_columns(self.name, stored, columns)
        checked |= {column.name: list(map(_as_stored, checked[column.name])) for column in stored if column.kind == "image"}
        n_rows = len(checked[names[0]])
        super().add_batch(**{name: cells if cells is not None else [None] * n_rows for name, cells in checked.items()})

    def compute(self, **given: Any) -> Answer | None:
        """Score the given rows together with those added before. On a ValueError the metric stays usable."""
        stored = [column.name for column in self.stored_columns()]
        known = [*stored, *(name for name in inspect.signature(self.function).parameters if name not in stored)]
        for name, value in given.items():
            # evaluate.combine hands predictions=None and references=None to every metric
            if name not in known and value is not None:
                raise ValueError(
                    f"{self.name}: unknown column or keyword '{name}': expected {', '.join(known)}. Fix: correct its "
                    "name, or leave it out (evaluate.combine hands everything to every metric: add columns there by "
                    "add_batch, and compute metrics with keywords of their own one by one)."
                )
        if not len(self) and self.num_process == 1 and all(given.get(name) is None for name in stored):
            raise ValueError(f"{self.name}: no rows to score. Fix: give {', '.join(stored)}, or add rows first.")
        added = len(self)
        keywords = {name: value for name, value in given.items() if name in known and name not in stored}
        try:
            answer: Answer | None = super().compute(**{name: given.get(name) for name in stored}, **keywords)
        except Exception:
            self._restore(added)
            raise
        return answer

    def _compute(self, **inputs: Any) -> Answer:
        for column in self.stored_columns():
            if column.optional and all(cell is None for cell in inputs[column.name]):
                inputs[column.name] = None
        return type(self).function(**inputs)

    def _enforce_nested_string_type(self, schema: object, obj: object) -> None:
        """Checked already, over all rows and with None anywhere."""

    def _restore(self, added: int) -> None:
        """After an error in computing: take back the rows added before, and free the files that evaluate holds."""
        if self.data is None or self.num_process != 1:
            return
        rows = {column.name: self.data[column.name][:added] for column in self.stored_columns()}
        self.data = self.buf_writer = None
        for lock, path in zip(self.filelocks or [], self.file_paths or [], strict=True):
            os.remove(path)
            lock.release()
        self.filelocks = self.file_paths = None
        if added:
            super().add_batch(**rows)

    def compute_table(self, table: Sequence[Sequence[Any]], **keywords: Any) -> Answer | None:
        """Score a form's table of the required columns: empty cells are missing, empty rows skipped, "true" is True.

        Commas separate the items of a list.
        """
        required = [column for column in self.columns if not column.optional]
        rows = [row for row in table if any(cell not in (None, "") for cell in row)]
        given = {column.name: [_cell(column, row[place]) for row in rows] for place, column in enumerate(required)}
        return self.compute(**given, **keywords)

    def form(self, card: Path) -> Any:
        """The page of this metric's Space, a gradio ``Interface``: the example's table, the settings, and the card below them."""
        import gradio
        import yaml

        _, front, text = card.read_text(encoding="utf-8").split("---\n", 2)

        def asked(setting: Setting) -> Any:
            label = setting.label or setting.keyword
            if setting.free:
                return gradio.Dropdown(list(setting.choices), value=setting.value, allow_custom_value=True, label=label)
            if setting.choices:
                return gradio.Radio(list(setting.choices), value=setting.value, label=label)
            return (gradio.Textbox if isinstance(setting.value, str) else gradio.Number)(value=setting.value, label=label)

        def score(table: list[list[Any]], *given: Any) -> Answer | None:
            settings = zip(self.about.settings, given, strict=True)
            keywords = {setting.keyword: cell.split(",") if setting.items else cell for setting, cell in settings}
            try:
                return self.compute_table(table, **keywords)
            except (ValueError, RuntimeError) as error:
                raise gradio.Error(str(error)) from error

        headers = [column.name for column in self.columns if not column.optional]
        rows = list(map(list, self.about.rows))
        table = gradio.Dataframe(rows, headers=headers, datatype="str", type="array", label=self.about.label)
        return gradio.Interface(
            score,
            inputs=[table, *map(asked, self.about.settings)],
            outputs=gradio.JSON(label="scores"),
            title=yaml.safe_load(front)["title"],
            article=text,
        )


def _as_stored(cell: Any) -> dict[str, Any] | None:
    """An image as ``datasets`` stores it: a file stays its path, a PIL image becomes PNG bytes of what it shows now.

    ``datasets`` itself would store a PIL image that was opened from a file and then drawn on as that file.
    """
    if cell is None:
        return None
    if isinstance(cell, dict):
        return {"bytes": cell.get("bytes"), "path": cell.get("path")}
    if isinstance(cell, bytes):
        return {"bytes": cell, "path": None}
    if isinstance(cell, str | os.PathLike):
        return {"bytes": None, "path": os.path.abspath(cell)}
    from PIL import ImageOps

    buffer = io.BytesIO()
    ImageOps.exif_transpose(cell).convert("RGB").save(buffer, "PNG", compress_level=1)
    return {"bytes": buffer.getvalue(), "path": None}


def _cell(column: Column, cell: Any) -> Any:
    if cell is None or cell == "":
        return None
    if not isinstance(cell, str) or column.kind == "str":
        return cell
    if column.item is not None:
        return [_cell(column.item, part.strip()) for part in cell.split(",")]
    if column.kind == "bool" or column.flags:
        cell = {"true": True, "false": False}.get(cell.strip().lower(), cell)
    if column.kind == "bool" or not isinstance(cell, str):
        return cell
    try:
        return float(cell)
    except ValueError:
        return cell
