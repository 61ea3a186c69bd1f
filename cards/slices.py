"""What a total stands on: slices of a run's images, each a language and a dimension; and what the runs of one page have in common.

Leaving out what a run does worst makes its total better. So a total that stands on fewer slices than others beside it says so, and where
runs differ in theirs, totals are also given over the slices that all of them have.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeAlias

Slice: TypeAlias = tuple[str, str]
"""A language's code and a dimension, "" where there are no dimensions."""


def covers(own: Collection[Slice], every: Collection[Slice]) -> str:
    """What to write beside a total over ``own`` where ``every`` is more; empty where it is not.

    >>> covers({("en", "R-T")}, {("en", "R-T"), ("hi", "R-T"), ("hi", "TA-C")})
    'over 1 of 3 slices (1 of 2 languages, 1 of 2 dimensions)'
    >>> covers({("en", "")}, {("en", ""), ("hi", "")})
    'over 1 of 2 languages'
    """
    if set(own) >= set(every):
        return ""
    counts = [(len({each[axis] for each in own}), len({each[axis] for each in every})) for axis in (0, 1)]
    told = [f"{mine} of {most} {name}" for (mine, most), name in zip(counts, _AXES, strict=True) if mine < most]
    # Where slices are whole rows of a grid, its sides say all.
    if len(told) == 1 and len(own) == counts[0][0] * counts[1][0] and len(every) == counts[0][1] * counts[1][1]:
        return f"over {told[0]}"
    sides = f" ({', '.join(told)})" if told else ""
    return f"over {len(own)} of {len(every)} slices{sides}"


_AXES = ("languages", "dimensions")


def shared(sets: Iterable[Collection[Slice]]) -> frozenset[Slice]:
    """The slices that all have which have any.

    >>> sorted(shared([{("en", ""), ("hi", "")}, {("hi", ""), ("ar", "")}, set()]))
    [('hi', '')]
    """
    filled = [frozenset(each) for each in sets if each]
    return frozenset.intersection(*filled) if filled else frozenset()


def unequal(sets: Iterable[Collection[Slice]]) -> bool:
    """Whether those that have any slice have different ones."""
    return len({frozenset(each) for each in sets if each}) > 1


def over_shared(slices: Collection[Slice], every: Collection[Slice]) -> str:
    """What a total over shared slices is over; dimensions are named where ``every`` slice of the page has several.

    >>> over_shared({("en", "R-T"), ("hi", "R-T")}, {("en", "R-T"), ("hi", "R-T"), ("ar", "R-T")})
    'over the 2 languages that all scored runs have'
    >>> over_shared({("en", "R-T")}, {("en", "R-T"), ("en", "R-B")})
    'over the 1 language and 1 dimension that all scored runs have'
    """
    counts = [len({each[axis] for each in slices}) for axis in (0, 1)]
    told = " and ".join(f"{count} {name}{'s' * (count != 1)}" for count, name in zip(counts, ("language", "dimension"), strict=True))
    if len(slices) != counts[0] * counts[1]:
        told = f"{len(slices)} slices (a language and a dimension each)"
    elif len({dimension for _, dimension in every}) == 1:
        told = told.partition(" and ")[0]
    return f"over the {told} that all scored runs have"
