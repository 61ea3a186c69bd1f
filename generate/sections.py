"""Sections of the report beyond our own: a function from the runs on a page to sections, of tables with a figure each.

A package of somebody else's adds one by ``@SECTIONS.entry(name, about)`` over its function, in a module that it names in the entry-point
group ``t2i_parity.plugins``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from t2i_parity.cards.report_sections import Section
from t2i_parity.dataset_builder.registry import Registry
from t2i_parity.generate.run import Run


class ReportSection(Protocol):
    """What makes sections."""

    def __call__(self, runs: Sequence[tuple[str, Run]], /) -> Sequence[Section]:
        """The sections over runs of images, each under its name on the page; none where these have nothing to show."""


SECTIONS: Registry[ReportSection] = Registry("report section")
"""Every section of other people's."""
