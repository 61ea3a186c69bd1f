"""One published value beside ours, and the verdict on the two.

A value is *equal* when the difference is at most half a unit of its last printed place, plus what the rounding of its
inputs can add. It is *noted* when recomputing is known to give another number, and gives that one. Else it *differs*.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from t2i_parity.cards.documents import JsonObject
from t2i_parity.validation.published_values import Stated

Verdict = Literal["equal", "noted", "differs"]
Relation = Literal["=", "<", "≥"]

HALF_UNIT = 0.005
"""The most by which rounding to two places moves a number."""
KNOWN_WITHIN = 0.0005
"""How closely a known difference must come out again; they are declared to three places."""
SLACK = 1 + 1e-9
"""What binary fractions add to a difference."""
VERDICTS: tuple[Verdict, ...] = ("equal", "noted", "differs")


@dataclass(frozen=True)
class Check:
    """One published value beside ours. ``relation`` says what ours must be to it: equal within ``within``, below, or at least.

    ``source`` is the paper or file, ``place`` the table, row or section of it.
    """

    group: str
    item: str
    source: str
    published: float
    ours: float
    within: float = 0.0
    relation: Relation = "="
    place: str = ""
    known: float | None = None
    note: str = ""

    @property
    def difference(self) -> float:
        """Ours minus the published value."""
        return self.ours - self.published

    @property
    def verdict(self) -> Verdict:
        """Whether the two agree.

        >>> Check("table", "mean", "a paper", published=3.49, ours=3.4863, within=0.005).verdict
        'equal'
        >>> Check("table", "mean", "a paper", published=3.73, ours=3.7644, within=0.005, known=3.764).verdict
        'noted'
        """
        holds = {
            "=": abs(self.difference) <= self.within * SLACK,
            "<": self.ours < self.published,
            "≥": self.ours >= self.published,
        }
        if holds[self.relation]:
            return "equal"
        return "noted" if self.known is not None and abs(self.ours - self.known) <= KNOWN_WITHIN else "differs"


@dataclass(frozen=True)
class Group:
    """Checks of one kind, counted; ``largest`` is the largest difference among those that ask for equality."""

    name: str
    checks: Sequence[Check]

    def count(self, verdict: Verdict) -> int:
        return sum(check.verdict == verdict for check in self.checks)

    @property
    def largest(self) -> float | None:
        differences = (abs(check.difference) for check in self.checks if check.relation == "=")
        return max((difference for difference in differences if not math.isnan(difference)), default=None)


@dataclass(frozen=True)
class Report:
    """All checks, and what the published inputs leave open."""

    checks: Sequence[Check]
    remarks: Sequence[str]

    @property
    def agrees(self) -> bool:
        return all(check.verdict != "differs" for check in self.checks)

    def groups(self) -> list[Group]:
        members: dict[str, list[Check]] = {}
        for check in self.checks:
            members.setdefault(check.group, []).append(check)
        return [Group(name, checks) for name, checks in members.items()]

    def as_json(self) -> JsonObject:
        """Plain lists and numbers; null where a number is not one."""

        def number(value: float | None) -> float | None:
            return None if value is None or math.isnan(value) else value

        return {
            "agrees": self.agrees,
            "groups": [
                {
                    "group": group.name,
                    "cells": len(group.checks),
                    **{verdict: group.count(verdict) for verdict in VERDICTS},
                    "largest_difference": number(group.largest),
                }
                for group in self.groups()
            ],
            "checks": [
                {
                    "group": check.group,
                    "item": check.item,
                    "source": check.source,
                    "place": check.place,
                    "relation": check.relation,
                    "published": number(check.published),
                    "ours": number(check.ours),
                    "difference": number(check.difference),
                    "within": check.within,
                    "verdict": check.verdict,
                    "note": check.note,
                }
                for check in self.checks
            ],
            "remarks": list(self.remarks),
        }


def stated_check(
    group: str,
    item: str,
    stated: Stated,
    ours: float,
    inputs: float = 0.0,
    relation: Relation = "=",
) -> Check:
    """A check of a stated number; ``inputs`` is what the rounding of its inputs can add."""
    within = stated.unit / 2 + inputs
    return Check(group, item, stated.paper, stated.value, ours, within, relation, stated.place, stated.known, stated.note)
