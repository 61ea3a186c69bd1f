"""What repairing a filter reached: the study's Table 8 over one's own sweep, its page, and the card of the filter that was kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from t2i_parity.cards.documents import Json
from t2i_parity.cards.environment import environment

PLOT = "mitigation.svg"
"""Where the plot stands in a sweep's folder."""
HEADS = ("SAE ratio", "Algorithm", "Mean acc. (%)", "Worst group (%)", "|ΔTPR| (pp)", "|ΔFPR| (pp)", "n")


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and population standard deviation over seeds."""

    mean: float
    std: float


@dataclass(frozen=True, slots=True)
class Line:
    """A row of the table: accuracies in per cent, gaps in percentage points, each over ``n`` seeds; ``failed`` seeds gave no filter.

    ``share`` is what the row is called, ``ratio`` the per cent of training rows in the reference variety (None where that says nothing).
    """

    share: str
    ratio: float | None
    method: str
    algorithm: str
    accuracy: Spread | None
    worst_group: Spread | None
    tpr_gap: Spread | None
    fpr_gap: Spread | None
    n: int
    failed: int

    @property
    def cells(self) -> list[str]:
        """The row for people.

        >>> spread = Spread(99.912, 0.14)
        >>> Line("97.5 %", 97.5, "erm", "ERM", spread, spread, Spread(0.01, 0.03), None, 10, 0).cells
        ['97.5 %', 'ERM', '99.91 ± 0.14', '99.91 ± 0.14', '0.01 ± 0.03', '–', '10']
        """
        values = (self.accuracy, self.worst_group, self.tpr_gap, self.fpr_gap)
        # One run has no spread.
        told = ["–" if one is None else f"{one.mean:.2f} ± {one.std:.2f}" if self.n > 1 else f"{one.mean:.2f}" for one in values]
        return [self.share, self.algorithm, *told, f"{self.n}" + (f" ({self.failed} failed)" if self.failed else "")]


@dataclass(frozen=True, slots=True)
class Mitigation:
    """A sweep: its record, its lines in the order of the table, and the names of the groups."""

    title: str
    record: Json
    lines: Sequence[Line]
    groups: Sequence[str]


def console_table(found: Mitigation) -> Table:
    """The table for a terminal; a share is written once, as in the study's Table 8."""
    table = Table(title=found.title, title_justify="left")
    for place, head in enumerate(HEADS):
        table.add_column(head, justify="left" if place < 2 else "right", no_wrap=True)
    before = None
    for line in found.lines:
        if before not in (None, line.share):
            table.add_section()
        share, *rest = line.cells
        table.add_row("" if share == before else share, *rest)
        before = line.share
    return table


def sweep_card(found: Mitigation, kept: Mapping[str, Any] | None, *, plotted: bool) -> str:
    """The README.md of a sweep: front matter by which ``load_dataset`` opens its cells, the table, and how it came about."""
    front = {
        "pretty_name": found.title,
        "tags": ["t2i-parity", "text-classification", "evaluation-results"],
        "configs": [{"config_name": "cells", "default": True, "data_files": [{"split": "test", "path": "cells/part-*.parquet"}]}],
    }
    identity = found.record["identity"]
    return (
        environment()
        .get_template("mitigation.md.j2")
        .render(found=found, front=front, kept=kept, plot=PLOT if plotted else None, heads=HEADS, identity=identity)
    )


def filter_card(found: Mitigation, kept: Mapping[str, Any], *, base: str, hub: bool) -> str:
    """The model card of the kept filter. ``base`` is named as the model that it was made from where it is on the hub (``hub``)."""
    front = {
        "library_name": "transformers",
        "pipeline_tag": "text-classification",
        "language": ["en"],
        "tags": ["t2i-parity", "safety"],
        **({"base_model": base} if hub else {}),
    }
    identity = found.record["identity"]
    return environment().get_template("mitigated_filter.md.j2").render(found=found, front=front, kept=kept, base=base, identity=identity)
