"""Every check, in the order in which they run and are reported."""

from __future__ import annotations

from t2i_parity.validation.prompts import (
    characters,
    copies,
    counts,
    language,
    leftovers,
    lengths,
    licences,
    pairs,
    published,
    rendering,
    script,
    table,
)
from t2i_parity.validation.prompts.model import Check

CHECKS: tuple[Check, ...] = (
    *table.CHECKS,
    *pairs.CHECKS,
    *counts.CHECKS,
    *characters.CHECKS,
    *leftovers.CHECKS,
    *script.CHECKS,
    *language.CHECKS,
    *copies.CHECKS,
    *lengths.CHECKS,
    *rendering.CHECKS,
    *licences.CHECKS,
)

PUBLISHED_CHECKS: tuple[Check, ...] = (*published.CHECKS, *licences.CHECKS[:2])
"""The checks of the config of published values."""
