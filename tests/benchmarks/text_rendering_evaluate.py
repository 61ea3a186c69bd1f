"""Text-rendering precision through evaluate: its overhead over the core, and its time against jiwer's CER.

The peers: a metric of evaluate that stores the same columns and computes nothing, and what evaluate's ``cer`` computes
(that metric itself loads from the hub only, and calls a function that jiwer 4 no longer has).
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

import datasets
import evaluate
import jiwer
from measure import Row, main, mixed_pairs, seconds

from t2i_parity.metrics.text_rendering_precision import core

FOLDER = Path(core.__file__).parent


class Nothing(evaluate.Metric):  # type: ignore[misc]
    """evaluate's own part: rows stored, checked, read back, and no score."""

    def _info(self) -> evaluate.MetricInfo:
        features = datasets.Features(predictions=datasets.Value("string"), references=datasets.Value("string"))
        return evaluate.MetricInfo(description="", citation="", inputs_description="", features=features)

    def _compute(self, predictions: list[str], references: list[str]) -> dict[str, Any]:
        return {"n": len(predictions)}


_CHARACTERS = jiwer.Compose(
    [
        jiwer.RemoveMultipleSpaces(),
        jiwer.Strip(),
        jiwer.ReduceToSingleSentence(""),
        jiwer.ReduceToListOfListOfChars(),
    ]
)


def cer(predictions: list[str], references: list[str]) -> float:
    """Character error rate as evaluate's ``cer`` adds it up, with its transforms, pair by pair."""
    wrong = total = 0
    for prediction, reference in zip(predictions, references, strict=True):
        seen = jiwer.process_words(reference, prediction, reference_transform=_CHARACTERS, hypothesis_transform=_CHARACTERS)
        wrong += seen.substitutions + seen.deletions + seen.insertions
        total += seen.substitutions + seen.deletions + seen.hits
    return wrong / total


def run(size: int, repeats: int) -> list[Row]:
    """Time ``size`` rows, in three settings."""
    readings, references, _ = mixed_pairs(size)
    given = {"predictions": readings, "references": references}
    core.load_tokenizer("tekken")
    with tempfile.TemporaryDirectory() as cache:
        own = {"cache_dir": cache, "experiment_id": uuid.uuid4().hex}
        ours = evaluate.load(str(FOLDER), **own)
        nothing = Nothing(**own)
        rows = []
        for tokenizer, name in (("tekken", "tekken"), (str.split, "str.split")):
            for n_resamples in (1000, 0):
                keywords = {"tokenizer": tokenizer, "n_resamples": n_resamples}
                through, alone, null, jiwers = seconds(
                    [
                        lambda: ours.compute(**given, **keywords),  # noqa: B023
                        lambda: core.compute(**given, **keywords),  # noqa: B023
                        lambda: nothing.compute(**given),
                        lambda: cer(readings, references),
                    ],
                    repeats,
                )
                what = f"evaluate, {name}, {n_resamples} resamples, {size:,} rows"
                rows.append(Row(what, through, "evaluate's null metric + core", null + alone, 2.0))
                rows.append(Row(what, through, "jiwer, as evaluate's cer", jiwers))
        ned, jiwers = seconds([lambda: core.ned(readings, references), lambda: cer(readings, references)], repeats)
        rows.append(Row(f"ned of characters, {size:,} rows", ned, "jiwer, as evaluate's cer", jiwers, 0.1))
    return rows


if __name__ == "__main__":
    main(run, 33_000, 3, __doc__)
