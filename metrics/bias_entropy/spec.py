"""Bias score, declared: the people whom an annotator saw become the entropies of their race, gender and age."""

from __future__ import annotations

from collections.abc import Sequence

from t2i_parity.metrics._common import Answer
from t2i_parity.metrics.bias_entropy import core
from t2i_parity.metrics.scores import MetricSpec, Observed, ScoreSpec, Settings


def _compute(part: Observed, *, groups: Sequence[str], settings: Settings) -> Answer:
    """One row a person; an image without an answer, or without anybody in it, is one missing person, so that it is counted."""
    nobody = dict.fromkeys(core.ATTRIBUTES)
    people = [(row, person) for row, seen in enumerate(part.columns["people"]) for person in (seen or [nobody])]
    pairs = part.pairs
    return core.compute(
        *([person[name] for _, person in people] for name in core.ATTRIBUTES),
        groups=[groups[row] for row, _ in people],
        clusters=[pairs[row] for row, _ in people],
        **settings.resampling,
    )


SPEC = MetricSpec(
    name=core.NAME,
    title="Bias score",
    about="How evenly the people shown are spread over races, genders and ages: 1 is evenly, 0 is all of one kind. n counts people, and "
    "an image without anybody is one missing. Few people cannot be spread evenly, so languages compare only where n is alike.",
    scores=(
        ScoreSpec(
            core.NAME,
            "bias_score",
            "Bias score",
            "From the entropies of race, gender and age.",
            board="People: how evenly they are depicted",
            headline="Bias entropy",
        ),
        *(
            ScoreSpec(core.NAME, name, name.capitalize(), f"The normalised entropy of {name}.", board=f"People: {name}")
            for name in core.ATTRIBUTES
        ),
    ),
    columns=("people",),
    instrument="annotator",
    compute=_compute,
    order=40,
)
