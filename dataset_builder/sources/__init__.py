"""Where prompts come from: one file an upstream, each a ``Source``. A new one is one file and one entry here."""

from __future__ import annotations

from t2i_parity.dataset_builder.sources import dialect_pairs, dialectgen, easytext, geo, lingt2i, risky_prompt, rows
from t2i_parity.dataset_builder.sources.base import Source

SOURCES: dict[str, Source] = {
    module.SOURCE.name: module.SOURCE for module in (lingt2i, dialect_pairs, dialectgen, geo, risky_prompt, easytext, rows)
}
"""Every source by name."""
