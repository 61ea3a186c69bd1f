"""Where prompts come from: one file an upstream, each a ``Source``, and one entry here.

A package of somebody else's adds one by ``SOURCES.entry(name, about)(SOURCE)``, in a module that it names in the entry-point group
``t2i_parity.plugins``; ``build --source module:SOURCE`` needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from t2i_parity.dataset_builder.registry import Entry, Registry

if TYPE_CHECKING:
    from t2i_parity.dataset_builder.sources.base import Source

_ELSEWHERE = "a copy of it by --input PLACE"
_HERE = "t2i_parity.dataset_builder.sources."

SOURCES: Registry[Source] = Registry(
    "source",
    (
        Entry("lingt2i", f"{_HERE}lingt2i:SOURCE", "content and text rendering in ten languages, on the hub", (), _ELSEWHERE),
        Entry("dialect_pairs", f"{_HERE}dialect_pairs:SOURCE", "prompts in six varieties of English, toxic and benign", (), _ELSEWHERE),
        Entry("dialectgen", f"{_HERE}dialectgen:SOURCE", "prompts with a dialect's word and the standard's", (), _ELSEWHERE),
        Entry("geo", f"{_HERE}geo:SOURCE", "common nouns with and without a country, from templates"),
        Entry("risky_prompt", f"{_HERE}risky_prompt:SOURCE", "unsafe prompts by category of harm", (), _ELSEWHERE),
        Entry("easytext", f"{_HERE}easytext:SOURCE", "six texts to render, with their places", (), _ELSEWHERE),
        Entry("rows", f"{_HERE}rows:SOURCE", "rows of your own: JSON lines, CSV or parquet, by --input PLACE alone"),
    ),
)
"""Every source by name."""
