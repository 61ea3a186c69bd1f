"""Observations → scores: every metric over a whole run, each file read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from t2i_parity.dataset_builder.controls.culture_tags import expected_culture
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.prompts import PROMPT_COLUMNS
from t2i_parity.generate import ceilings
from t2i_parity.generate.audit import pairs_of as pairs_of
from t2i_parity.generate.audit import reference_of as reference_of
from t2i_parity.generate.audit import score_audit
from t2i_parity.generate.audit import variety_of as variety_of
from t2i_parity.generate.entries import Scores, csv_of, entries, seen_by, with_judge
from t2i_parity.generate.entries import ScoreSettings as ScoreSettings
from t2i_parity.generate.run import Run
from t2i_parity.metrics.bias_entropy import core as bias_entropy
from t2i_parity.metrics.clip_score import core as clip_score
from t2i_parity.metrics.cross_lingual_gap import core as cross_lingual_gap
from t2i_parity.metrics.culture_alignment import core as culture_alignment
from t2i_parity.metrics.text_rendering_precision import core as text_rendering_precision
from t2i_parity.metrics.text_rendering_precision.common import Signature
from t2i_parity.metrics.toxicity_rejection import core as toxicity_rejection
from t2i_parity.metrics.trigscore import core as trigscore

FloatArray = NDArray[np.float64]

FOR_PROXIES = (("countries", "similarities"), ("embedding",))
"""The columns of observations that no metric is made from: the geographical study's proxies read them (``t2i-parity geography``)."""


def score(run: Run, settings: ScoreSettings) -> Scores:
    """Score all that the run has observations for; writes scores.json, the ``scored`` table and the card, and returns the scores.

    Raises InputError when there is nothing to score, or when a metric refuses what it was given.
    """
    scores, table = computed(run, settings)
    run.scored().replace(table)
    run.write_scores(scores)
    run.folder.write(csv_of(scores), "scores.csv")
    run.record["scoring"] = settings.record
    run.write_record()
    run.write_card()
    return scores


def computed(run: Run, settings: ScoreSettings) -> tuple[Scores, pa.Table]:
    """The scores of a run and its ``scored`` table, from its observations; nothing is written. Raises as :func:`score`."""
    judges = run.judges()
    generated = run.record["kind"] == "generation"
    if not judges and (generated or not run.outcomes().files()):
        raise InputError(f"{run.url} has no observations to score; make some first: t2i-parity judge {run.url} --with tesseract")
    of_kind = _score_images if generated else score_audit
    try:
        return of_kind(run, judges, settings)
    except (ValueError, RuntimeError) as error:
        raise InputError(str(error)) from error


# Images


def _score_images(run: Run, judges: Sequence[str], settings: ScoreSettings) -> tuple[Scores, pa.Table]:
    """Every judge's observations through every metric that what it saw is enough for; images and each judge are read once."""
    columns = ["image_id", *PROMPT_COLUMNS, "seed_index", "seed", "status", "reason"]
    images = run.images().read(columns)
    rows = images.to_pylist()
    scores: Scores = []
    for judge in judges:
        observed, signature = seen_by(run, judge, "image_id", images["image_id"].to_pylist())
        by = Signature.parse(signature)
        measured = [measure for measure in MEASURES if set(measure.columns) <= set(observed)]
        if any(set(names) <= set(observed) for names in FOR_PROXIES):
            continue
        if not measured:
            raise InputError(
                f"{run.url}: observations/{judge} has the columns {', '.join(observed)}, and no metric is made from those; "
                f"expected one of {'; '.join(' and '.join(measure.columns) for measure in MEASURES)}"
            )
        prefix = judge.replace("-", "_")
        for name in dict.fromkeys(name for measure in measured for name in measure.columns):
            images = images.append_column(f"{prefix}_{name}", pa.array(observed[name]))
        for measure in measured:
            for subset in _distinct(row["subset"] for row in rows):
                chosen = [number for number, row in enumerate(rows) if row["subset"] == subset and measure.suits(row)]
                if not chosen:
                    continue
                names = [*measure.columns, *(name for name in measure.counted if name in observed)]
                seen = {name: [observed[name][number] for number in chosen] for name in names}
                part = Observed([rows[number] for number in chosen], seen, by)
                scores += _measured(measure, part, subset, settings)
                if measure.metric == text_rendering_precision.NAME and settings.calibration:
                    raw = next(score["signature"] for score in scores[::-1] if score["metric"].startswith(measure.metric))
                    scores += ceilings.beside(part.rows, part.columns["text"], subset, raw, by, settings)
            if measure.per_row is not None:
                for key, values in measure.per_row(Observed(rows, observed, by), settings).items():
                    images = images.append_column(f"{prefix}_{key}", pa.array(values, pa.float64(), mask=np.isnan(values)))
    if not scores:
        raise InputError(
            f"{run.url}: what {', '.join(judges)} saw gives no score on these rows; a culture, for one, is not measured where a prompt "
            "asks for a text or a country"
        )
    ceilings.check(scores, settings)
    return scores, images


@dataclass(frozen=True, slots=True)
class Observed:
    """Image rows and, beside them, what one judge saw: a column each, None where it saw nothing."""

    rows: Sequence[Mapping[str, Any]]
    columns: Mapping[str, Sequence[Any]]
    judge: Signature


@dataclass(frozen=True, slots=True)
class Measure:
    """How observations of one kind become scores: the columns that they have, the metric, and, where it has them, row scores.

    ``of_rows`` is the row score whose inequality over languages is measured; ``judge`` is the judge's name in the signature.
    """

    metric: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    compute: Callable[..., dict[str, Any]]
    judge: str = "judge"
    per_row: Callable[[Observed, ScoreSettings], dict[str, FloatArray]] | None = None
    of_rows: str | None = None
    counted: Mapping[str, str] = field(default_factory=dict)
    """Columns that a judge may have beside, each with the key that the answer then has of it."""
    suits: Callable[[Mapping[str, Any]], bool] = lambda row: True
    """Whether the metric says anything of a row; the others are not in it, neither scored nor missing."""
    higher_is_better: bool | None = True


def _measured(measure: Measure, part: Observed, subset: str, settings: ScoreSettings) -> Scores:
    """One metric over one subset: all rows, each language, and, where there are several, each dimension alone and by language."""
    languages = [row["language"] for row in part.rows]
    groupings = [[f"language:{code}" for code in languages]]
    dimensions = [row["dimension"] for row in part.rows]
    if len(set(dimensions)) > 1 and None not in dimensions:
        groupings.append([f"dimension:{dimension}" for dimension in dimensions])
        groupings.append([f"dimension:{dimension},language:{code}" for dimension, code in zip(dimensions, languages, strict=True)])
    keys = [*measure.keys, *(key for name, key in measure.counted.items() if name in part.columns)]
    scores: Scores = []
    for groups in groupings:
        answer = measure.compute(part, groups=groups, settings=settings)
        signature = with_judge(answer["signature"], measure.judge, str(part.judge))
        if not scores:
            scores += entries(measure.metric, keys, subset, "all", answer, signature, higher_is_better=measure.higher_is_better)
        for group, found in answer["by_group"].items():
            scores += entries(measure.metric, keys, subset, group, found, signature, higher_is_better=measure.higher_is_better)
    if measure.per_row is not None and measure.of_rows is not None:
        values = [float(value) for value in measure.per_row(part, settings)[measure.of_rows]]
        pairs = [row["pair_id"] for row in part.rows]
        scores += _gap_scores(values, languages, pairs, subset, scores[0]["signature"], settings)
    return scores


def _pairs(part: Observed) -> list[str]:
    return [row["pair_id"] for row in part.rows]


def _text_keywords(part: Observed, settings: ScoreSettings) -> dict[str, Any]:
    wanted = [row["render_text"] for row in part.rows]
    if None in wanted:
        raise InputError(
            f"row {wanted.index(None)} ({part.rows[wanted.index(None)]['prompt_id']}) has no render_text to compare what was read with; "
            "readers are for prompts of the config lingt2i_text"
        )
    return {
        "predictions": part.columns["text"],
        "references": wanted,
        "tokenizer": text_rendering_precision.load_tokenizer(settings.tokenizer),
        "normalization": settings.normalization,
        "variant": settings.variant,
    }


def _precision(part: Observed, *, groups: Sequence[str], settings: ScoreSettings) -> dict[str, Any]:
    how = _text_keywords(part, settings)
    return text_rendering_precision.compute(**how, groups=groups, clusters=_pairs(part), **settings.resampling)


def _precision_rows(part: Observed, settings: ScoreSettings) -> dict[str, FloatArray]:
    return text_rendering_precision.per_row(**_text_keywords(part, settings))


def _trigscore(part: Observed, *, groups: Sequence[str], settings: ScoreSettings) -> dict[str, Any]:
    seen = part.columns
    return trigscore.compute(
        seen["rating_tokens"],
        seen["rating_logprobs"],
        variant=settings.variant,
        groups=groups,
        clusters=_pairs(part),
        **settings.resampling,
    )


def _trigscore_rows(part: Observed, settings: ScoreSettings) -> dict[str, FloatArray]:
    rows = trigscore.per_row(part.columns["rating_tokens"], part.columns["rating_logprobs"], variant=settings.variant)
    return {"trigscore": rows["score"], "confidence": rows["confidence"]}


def _clip_score(part: Observed, *, groups: Sequence[str], settings: ScoreSettings) -> dict[str, Any]:
    fields = part.judge.fields
    return clip_score.aggregate(
        part.columns["similarity"],
        truncated=part.columns.get("truncated"),
        model=fields.get("model", part.judge.metric),
        pretrained=fields.get("pretrained", "unknown"),
        groups=groups,
        clusters=_pairs(part),
        **settings.resampling,
    )


def _clip_score_rows(part: Observed, settings: ScoreSettings) -> dict[str, FloatArray]:
    return {"clip_score": np.array([np.nan if value is None else value for value in part.columns["similarity"]], np.float64)}


def _toxicity(part: Observed, *, groups: Sequence[str], settings: ScoreSettings) -> dict[str, Any]:
    # A classifier of several heads calls an image toxic when any of them does (dialect-penalty study, §3.3).
    nsfw = [None if heads is None else max(heads) for heads in part.columns["probabilities"]]
    return toxicity_rejection.compute(nsfw, groups=groups, clusters=_pairs(part), **settings.resampling)


def _bias(part: Observed, *, groups: Sequence[str], settings: ScoreSettings) -> dict[str, Any]:
    """One row a person; an image without an answer, or without anybody in it, is one missing person, so that it is counted."""
    nobody = {"race": None, "gender": None, "age": None}
    people = [(row, person) for row, seen in enumerate(part.columns["people"]) for person in (seen or [nobody])]
    return bias_entropy.compute(
        *([person[name] for _, person in people] for name in ("race", "gender", "age")),
        groups=[groups[row] for row, _ in people],
        clusters=[part.rows[row]["pair_id"] for row, _ in people],
        **settings.resampling,
    )


def _culture(part: Observed, *, groups: Sequence[str], settings: ScoreSettings) -> dict[str, Any]:
    expected = [str(expected_culture(row)) for row in part.rows]
    return culture_alignment.compute(part.columns["culture"], expected, groups=groups, clusters=_pairs(part), **settings.resampling)


MEASURES: tuple[Measure, ...] = (
    Measure("text_rendering_precision", ("text",), text_rendering_precision.KEYS, _precision, "reader", _precision_rows, "precision"),
    Measure("trigscore", ("rating_tokens", "rating_logprobs"), trigscore.KEYS, _trigscore, "rater", _trigscore_rows, "trigscore"),
    Measure(
        "clip_score", ("similarity",), clip_score.KEYS, _clip_score, "encoder", _clip_score_rows, "clip_score", {"truncated": "n_truncated"}
    ),
    Measure("toxicity_rejection", ("probabilities",), toxicity_rejection.KEYS, _toxicity, "classifier"),
    Measure("bias_entropy", ("people",), bias_entropy.KEYS, _bias, "annotator"),
    Measure(
        "culture_alignment",
        ("culture",),
        culture_alignment.KEYS,
        _culture,
        "annotator",
        suits=lambda row: expected_culture(row) is not None,
        higher_is_better=None,
    ),
)
"""Every kind of observation that becomes scores. A new one is one entry."""


def _gap_scores(
    precision: Sequence[float], languages: Sequence[str], pairs: Sequence[str], subset: str, of: str, settings: ScoreSettings
) -> Scores:
    """How unequal one number is over languages: mean, spread, worst and best language, and the means of branches and scripts."""
    gap = cross_lingual_gap.compute(precision, languages, clusters=pairs, **settings.resampling)
    signature = with_judge(gap["signature"], "of", of)
    scores = entries("cross_lingual_gap", ("mean",), subset, "all", gap, signature)
    scores += entries("cross_lingual_gap", ("std",), subset, "all", gap, signature, higher_is_better=False)
    for key in ("worst", "best"):
        code = gap[f"{key}_language"]
        seen = [value for value, language in zip(precision, languages, strict=True) if language == code]
        missing = sum(np.isnan(value) for value in seen)
        counted = {**gap, "n": len(seen) - missing, "n_missing": int(missing)}
        scores += entries("cross_lingual_gap", (key,), subset, f"language:{code}", counted, signature)
    for kind in ("branch", "script"):
        parts = cross_lingual_gap.compute(
            precision, languages, groups=[getattr(LANGUAGES[code], kind) for code in languages], clusters=pairs, **settings.resampling
        )
        for name, part in parts["by_group"].items():
            scores += entries("cross_lingual_gap", ("mean",), subset, f"{kind}:{name}", part, signature)
    return scores


# Inside


def _distinct(values: Any) -> list[str]:
    return list(dict.fromkeys(values))
