"""TRIGScore, declared: a rater's tokens with their log-probabilities become a mark and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from t2i_parity.metrics._common import Answer, FloatArray
from t2i_parity.metrics.scores import MetricSpec, Observed, RowScore, ScoreSpec, Settings, Task
from t2i_parity.metrics.trigscore import core


def _compute(part: Observed, *, groups: Sequence[str], settings: Settings) -> Answer:
    rated = part.columns["rating_tokens"], part.columns["rating_logprobs"]
    return core.compute(*rated, variant=settings.variant, groups=groups, clusters=part.pairs, **settings.resampling)


def _per_row(part: Observed, settings: Settings) -> Mapping[str, FloatArray]:
    rows = core.per_row(part.columns["rating_tokens"], part.columns["rating_logprobs"], variant=settings.variant)
    return {"trigscore": rows["score"], "confidence": rows["confidence"]}


SPEC = MetricSpec(
    name=core.NAME,
    title="TRIGScore",
    about="A rater’s mark for each image, read from how likely it found each word of the scale: 1 is the best word for certain, 0 the "
    "worst. Confidence is how sure the rater was.",
    scores=(
        ScoreSpec(
            core.NAME,
            "trigscore",
            "TRIGScore",
            "A rater’s word for each image, from its log-probabilities.",
            row=RowScore("trigscore"),
            board="Rated quality: TRIGScore",
            headline="TRIGScore",
            task=Task("trigscore", "lingt2i_content"),
        ),
        ScoreSpec(core.NAME, "confidence", "Confidence", "How sure the rater was of its word.", board="Rated quality: confidence"),
    ),
    columns=("rating_tokens", "rating_logprobs"),
    instrument="rater",
    compute=_compute,
    per_row=_per_row,
    unequal="trigscore",
    order=20,
)
