"""Culture alignment, declared: the culture that an annotator saw in an image, against that of its prompt's language."""

from __future__ import annotations

from collections.abc import Sequence

from t2i_parity.metrics._common import Answer
from t2i_parity.metrics.culture_alignment import core
from t2i_parity.metrics.scores import MetricSpec, Observed, ScoreSpec, Settings


def _compute(part: Observed, *, groups: Sequence[str], settings: Settings) -> Answer:
    expected = [str(row["expected_culture"]) for row in part.rows]
    known = list(dict.fromkeys([*core.KNOWN, *expected]))
    return core.compute(part.columns["culture"], expected, known=known, groups=groups, clusters=part.pairs, **settings.resampling)


def _rate(key: str, title: str, about: str, counted: str = "n") -> ScoreSpec:
    return ScoreSpec(core.NAME, key, title, about, direction="none", kind="proportion", counted=counted)


SPEC = MetricSpec(
    name=core.NAME,
    title="Culture alignment",
    about="Cue rate: images in which a culture can be told. Match rate: those that show the culture of the prompt’s language, among "
    "images with a cue (or with a known culture). Western rate: those that show a Western one, also where another was expected (shift).",
    scores=(
        _rate("cue_rate", "Cue rate", "Images in which a culture can be told."),
        _rate("match_rate", "Match rate", "Those that show the expected culture, among images with a cue.", "n_cue"),
        _rate("match_rate_known", "Match rate known", "The same among images with a known culture.", "n_known"),
        _rate("western_rate", "Western rate", "Images that show a Western culture."),
        _rate("western_shift_rate", "Western shift rate", "The same where another culture was expected."),
    ),
    columns=("culture",),
    instrument="annotator",
    compute=_compute,
    suits=lambda row: row.get("expected_culture") is not None,
    order=60,
)
