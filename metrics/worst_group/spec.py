"""Worst-group accuracy, declared. The repair of a filter makes its scores, over labels and varieties."""

from __future__ import annotations

from t2i_parity.metrics.scores import MetricSpec, ScoreSpec
from t2i_parity.metrics.worst_group import core

SPEC = MetricSpec(
    name=core.NAME,
    title="Worst-group accuracy",
    about="The accuracy of the group that is served worst, beside the average that hides it.",
    scores=(
        ScoreSpec(core.NAME, "accuracy", "Accuracy", "Over all rows.", kind="proportion"),
        ScoreSpec(core.NAME, "worst_group_accuracy", "Worst group", "Of the group with the lowest one.", kind="extreme"),
        ScoreSpec(core.NAME, "std", "Std over groups", "The population's, of the groups' accuracies.", direction="lower", kind="spread"),
        ScoreSpec(
            core.NAME, "spread", "Spread over groups", "That of their true accuracies, noise taken out.", direction="lower", kind="spread"
        ),
    ),
    place="none",
)
