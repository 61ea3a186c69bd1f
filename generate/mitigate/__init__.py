"""Repairing a text filter: it is trained again on prompts in several varieties, and measured on varieties of other prompts.

After §3.5 of the dialect-penalty study. ``data`` splits and composes, ``group_dro`` holds the objective, ``train`` trains one filter,
``sweep`` trains many and keeps what each reached.
"""

from __future__ import annotations

from dataclasses import dataclass

from t2i_parity.dataset_builder.registry import Entry, Registry


@dataclass(frozen=True, slots=True)
class Method:
    """One way to train: with which data, which batches, and which loss (§3.5).

    ``balanced_data`` composes the training rows of all varieties in equal shares, whatever the ratio; ``balanced_batches`` draws each
    group equally often; ``robust`` weighs the groups' losses by GroupDRO, where the others take the mean.
    """

    name: str
    title: str
    balanced_data: bool = False
    balanced_batches: bool = False
    robust: bool = False


METHODS: Registry[Method] = Registry(
    "method",
    (
        Entry(each.name, each, each.title)
        for each in (
            Method("erm", "ERM"),
            Method("group-balanced", "ERM + balanced sampling", balanced_batches=True),
            Method("groupdro", "GroupDRO", balanced_batches=True, robust=True),
            Method("balanced", "ERM on balanced data", balanced_data=True),
        )
    ),
)
"""Every method, in the order of the study's Table 8."""

AS_GIVEN = "as-given"
"""What the rows of the filter before any training are called."""
