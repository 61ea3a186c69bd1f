"""Samples that a hash decides: the same for the same ids and salt, whatever their order and however many rounds come after."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def rank(salt: str, key: str) -> int:
    """Where a key stands in the order of a salt."""
    return int.from_bytes(hashlib.sha256(f"{salt}\0{key}".encode()).digest()[:8], "big")


def stratified(
    items: Sequence[Item], share: float, *, key: Callable[[Item], str], stratum: Callable[[Item], Hashable], salt: str
) -> list[Item]:
    """``share`` of the items (rounded up), spread over strata in proportion to their sizes, in their own order.

    A stratum's part is rounded down, and what is left goes to the largest remainders.

    >>> letters = [f"{kind}{n}" for kind in "ab" for n in range(40)]
    >>> picked = stratified(letters, 0.05, key=str, stratum=lambda item: item[0], salt="s")
    >>> [item[0] for item in picked]
    ['a', 'a', 'b', 'b']
    """
    if not items:
        return []
    strata: dict[Hashable, list[Item]] = {}
    for item in items:
        strata.setdefault(stratum(item), []).append(item)
    total = min(len(items), math.ceil(round(share * len(items), 9)))
    exact = {name: total * len(members) / len(items) for name, members in strata.items()}
    parts = {name: int(size) for name, size in exact.items()}
    order = sorted(strata, key=lambda name: (parts[name] - exact[name], rank(salt, str(name))))
    for name in order[: total - sum(parts.values())]:
        parts[name] += 1
    chosen = {
        key(item) for name, members in strata.items() for item in sorted(members, key=lambda item: rank(salt, key(item)))[: parts[name]]
    }
    return [item for item in items if key(item) in chosen]
