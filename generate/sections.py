"""Sections of the report beside text rendering and audits, each a function from the runs on a page to tables with a figure each.

A package of somebody else's adds one by ``@SECTIONS.entry(name, about)`` over its function, in a module that it names in the entry-point
group ``t2i_parity.plugins``.
"""

from __future__ import annotations

from t2i_parity.dataset_builder.registry import Entry, Registry
from t2i_parity.generate.report_sections import Sections

SECTIONS: Registry[Sections] = Registry(
    "report section",
    (
        Entry("ceilings", "t2i_parity.generate.report_sections:ceiling_sections", "scores beside their reader's ceiling"),
        Entry("classifiers", "t2i_parity.generate.report_sections:classifier_sections", "toxicity rejection corrected for the classifier"),
        Entry("metrics", "t2i_parity.generate.report_sections:metric_sections", "every metric that has no place of its own"),
        Entry("analyses", "t2i_parity.generate.report_analysis:analysis_sections", "what analyse found"),
    ),
)
"""Every section, in the order of the page."""
