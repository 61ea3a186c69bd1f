"""Observations → scores: every metric over a whole run, each file read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dataset_builder.controls import typos
from dataset_builder.errors import InputError
from dataset_builder.languages import LANGUAGES
from dataset_builder.varieties import VARIETIES
from generate.run import PROMPT_COLUMNS, Run
from metrics.bias_entropy import core as bias_entropy
from metrics.clip_score import core as clip_score
from metrics.cross_lingual_gap import core as cross_lingual_gap
from metrics.dialect_penalty import core as dialect_penalty
from metrics.text_rendering_precision import core as text_rendering_precision
from metrics.text_rendering_precision.common import Signature
from metrics.toxicity_rejection import core as toxicity_rejection
from metrics.trigscore import core as trigscore

Scores = list[dict[str, Any]]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """What a scoring is told: the metrics' keywords, and how intervals are drawn."""

    tokenizer: str = text_rendering_precision.DEFAULT_TOKENIZER
    normalization: str = "none"
    variant: str = "paper"
    confidence_level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0

    @property
    def resampling(self) -> dict[str, Any]:
        """The keywords that every metric shares."""
        return {"confidence_level": self.confidence_level, "n_resamples": self.n_resamples, "seed": self.seed}


def score(run: Run, settings: ScoreSettings) -> Scores:
    """Score all that the run has observations for; writes scores.json, the ``scored`` table and the card, and returns the scores.

    Raises InputError when there is nothing to score, or when a metric refuses what it was given.
    """
    judges = run.judges()
    if not judges:
        raise InputError(f"{run.url} has no observations to score; make some first: t2i-parity judge {run.url} --with tesseract")
    of_kind = _score_images if run.record["kind"] == "generation" else _score_audit
    try:
        scores, table = of_kind(run, judges, settings)
    except (ValueError, RuntimeError) as error:
        raise InputError(str(error)) from error
    run.scored().replace(table)
    run.write_scores(scores)
    run.record["scoring"] = settings.resampling
    run.write_record()
    run.write_card()
    return scores


# Images


def _score_images(run: Run, judges: Sequence[str], settings: ScoreSettings) -> tuple[Scores, pa.Table]:
    """Every judge's observations through every metric that what it saw is enough for; images and each judge are read once."""
    columns = ["image_id", *PROMPT_COLUMNS, "seed_index", "seed", "status", "reason"]
    images = run.images().read(columns)
    rows = images.to_pylist()
    scores: Scores = []
    for judge in judges:
        observed, signature = _observed(run, judge, "image_id", images["image_id"].to_pylist())
        by = Signature.parse(signature)
        measured = [measure for measure in MEASURES if set(measure.columns) <= set(observed)]
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
                chosen = [number for number, row in enumerate(rows) if row["subset"] == subset]
                seen = {name: [observed[name][number] for number in chosen] for name in measure.columns}
                part = Observed([rows[number] for number in chosen], seen, by)
                scores += _measured(measure, part, subset, settings)
            if measure.per_row is not None:
                for key, values in measure.per_row(Observed(rows, observed, by), settings).items():
                    images = images.append_column(f"{prefix}_{key}", pa.array(values, pa.float64(), mask=np.isnan(values)))
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


def _measured(measure: Measure, part: Observed, subset: str, settings: ScoreSettings) -> Scores:
    """One metric over one subset: all rows, each language, and, where there are several, each dimension alone and by language."""
    languages = [row["language"] for row in part.rows]
    groupings = [[f"language:{code}" for code in languages]]
    dimensions = [row["dimension"] for row in part.rows]
    if len(set(dimensions)) > 1 and None not in dimensions:
        groupings.append([f"dimension:{dimension}" for dimension in dimensions])
        groupings.append([f"dimension:{dimension},language:{code}" for dimension, code in zip(dimensions, languages, strict=True)])
    scores: Scores = []
    for groups in groupings:
        answer = measure.compute(part, groups=groups, settings=settings)
        signature = _with_judge(answer["signature"], measure.judge, str(part.judge))
        if not scores:
            scores += _entries(measure.metric, measure.keys, subset, "all", answer, signature)
        for group, found in answer["by_group"].items():
            scores += _entries(measure.metric, measure.keys, subset, group, found, signature)
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


MEASURES: tuple[Measure, ...] = (
    Measure("text_rendering_precision", ("text",), text_rendering_precision.KEYS, _precision, "reader", _precision_rows, "precision"),
    Measure("trigscore", ("rating_tokens", "rating_logprobs"), trigscore.KEYS, _trigscore, "rater", _trigscore_rows, "trigscore"),
    Measure("clip_score", ("similarity",), clip_score.KEYS, _clip_score, "encoder", _clip_score_rows, "clip_score"),
    Measure("toxicity_rejection", ("probabilities",), toxicity_rejection.KEYS, _toxicity, "classifier"),
    Measure("bias_entropy", ("people",), bias_entropy.KEYS, _bias, "annotator"),
)
"""Every kind of observation that becomes scores. A new one is one entry."""


def _gap_scores(
    precision: Sequence[float], languages: Sequence[str], pairs: Sequence[str], subset: str, of: str, settings: ScoreSettings
) -> Scores:
    """How unequal one number is over languages: mean, spread, worst and best language, and the means of branches and scripts."""
    gap = cross_lingual_gap.compute(precision, languages, clusters=pairs, **settings.resampling)
    signature = _with_judge(gap["signature"], "of", of)
    scores = _entries("cross_lingual_gap", ("mean",), subset, "all", gap, signature)
    scores += _entries("cross_lingual_gap", ("std",), subset, "all", gap, signature, higher_is_better=False)
    for key in ("worst", "best"):
        code = gap[f"{key}_language"]
        seen = [value for value, language in zip(precision, languages, strict=True) if language == code]
        missing = sum(np.isnan(value) for value in seen)
        counted = {**gap, "n": len(seen) - missing, "n_missing": int(missing)}
        scores += _entries("cross_lingual_gap", (key,), subset, f"language:{code}", counted, signature)
    for field in ("branch", "script"):
        parts = cross_lingual_gap.compute(
            precision, languages, groups=[getattr(LANGUAGES[code], field) for code in languages], clusters=pairs, **settings.resampling
        )
        for name, part in parts["by_group"].items():
            scores += _entries("cross_lingual_gap", ("mean",), subset, f"{field}:{name}", part, signature)
    return scores


# Filters


def variety_of(row: Mapping[str, Any]) -> str:
    """What is compared in a pair: the variety of English, or the language where a row has no variety.

    >>> variety_of({"variety": None, "language": "bar"})
    'bar'
    """
    return str(row["variety"] or row["language"])


def reference_of(code: str) -> str | None:
    """The variety or language that one is compared with; None for a reference itself.

    >>> reference_of("AAVE"), reference_of("arz"), reference_of("SAE")
    ('SAE', 'ar', None)
    """
    return VARIETIES[code].reference if code in VARIETIES else LANGUAGES[code].standard


def pairs_of(rows: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """The (reference row, variety row) of every pair. Rows with typos are in no pair: they stand beside one.

    Raises InputError when a variety's row has no reference in its pair, when a pair has one variety twice, or its labels differ.
    """
    place: dict[tuple[str, str], int] = {}
    paired = [(number, row) for number, row in enumerate(rows) if not typos.by_pair([row])]
    for number, row in paired:
        key = (row["pair_id"], variety_of(row))
        if key in place:
            raise InputError(
                f"rows {place[key]} and {number} are the same variety {key[1]} of the pair {key[0]!r}; a pair has each variety once"
            )
        place[key] = number
    pairs = []
    for number, row in paired:
        reference = reference_of(variety_of(row))
        if reference is None:
            continue
        if (row["pair_id"], reference) not in place:
            raise InputError(
                f"row {number} ({row['prompt_id']}) is {variety_of(row)} and its pair {row['pair_id']!r} has no row in {reference} to "
                "compare it with. Add that row, or drop this one"
            )
        other = place[row["pair_id"], reference]
        if rows[other]["label"] != row["label"]:
            raise InputError(f"rows {other} and {number} are one pair, {row['pair_id']!r}, and have different labels; a pair has one label")
        pairs.append((other, number))
    if not pairs:
        raise InputError("there is no pair of a reference and another variety in these prompts; an audit compares the two")
    return pairs


AUDIT_KEYS = (
    "delta_tpr_pp", "delta_fpr_pp", "tpr_reference", "tpr_variety", "fpr_reference", "fpr_variety", "p_tpr", "p_fpr", "p_tpr_holm",
    "p_fpr_holm", "tpr_only_variety", "tpr_only_reference", "fpr_only_variety", "fpr_only_reference",
)  # fmt: skip


def _score_audit(run: Run, judges: Sequence[str], settings: ScoreSettings) -> tuple[Scores, pa.Table]:
    prompts = run.prompts().read()
    rows = prompts.to_pylist()
    pairs = pairs_of(rows)
    scores: Scores = []
    for judge in judges:
        observed, signature = _observed(run, judge, "prompt_id", prompts["prompt_id"].to_pylist())
        flags, values = observed["flagged"], observed["score"]
        prefix = judge.replace("-", "_")
        prompts = prompts.append_column(f"{prefix}_flagged", pa.array(flags, pa.bool_()))
        prompts = prompts.append_column(f"{prefix}_score", pa.array(values, pa.float64()))
        for subset in _distinct(row["subset"] for row in rows):
            chosen = [(reference, other) for reference, other in pairs if rows[other]["subset"] == subset]
            if not chosen:
                continue
            answer = dialect_penalty.compute(
                [flags[reference] for reference, _ in chosen],
                [flags[other] for _, other in chosen],
                [rows[other]["label"] for _, other in chosen],
                groups=[variety_of(rows[other]) for _, other in chosen],
                clusters=[rows[other]["pair_id"] for _, other in chosen],
                **settings.resampling,
            )
            of = _with_judge(answer["signature"], "filter", signature)
            # No number over all varieties: it would weigh them by how many pairs each happens to have.
            for code, part in answer["by_group"].items():
                scores += _entries("dialect_penalty", AUDIT_KEYS, subset, f"variety:{code}", part, of, higher_is_better=False)
    return scores, prompts


# Inside


def _observed(run: Run, judge: str, key: str, ids: Sequence[str]) -> tuple[dict[str, list[Any]], str]:
    """What a judge saw, a column each in the order of ``ids`` (None where there is nothing), and the judge's signature."""
    table = run.observations(judge).read()
    signatures = table["judge"].unique().to_pylist()
    if len(signatures) != 1:
        raise InputError(
            f"{run.url}: observations/{judge} were made under {len(signatures)} settings ({'; '.join(signatures)}); judge them anew"
        )
    place = {identity: row for row, identity in enumerate(table[key].to_pylist())}
    order = [place.get(identity) for identity in ids]
    seen = [name for name in table.column_names if name not in (key, "judge", "status", "reason")]
    values = {name: table[name].to_pylist() for name in seen}
    return {name: [None if row is None else values[name][row] for row in order] for name in seen}, signatures[0]


def _with_judge(signature: str, key: str, other: str) -> str:
    """A metric's signature with that of what it measured through: without it two numbers would look comparable that are not."""
    parsed = Signature.parse(signature)
    inner = other.replace("|", ",").replace(":", "=")
    return str(Signature(parsed.metric, {**parsed.fields, key: inner}, parsed.version))


def _entries(
    metric: str,
    keys: Sequence[str],
    subset: str,
    group: str,
    answer: Mapping[str, Any],
    signature: str,
    *,
    higher_is_better: bool = True,
) -> Scores:
    intervals = answer.get("ci", {})
    return [
        _entry(
            f"{metric}.{key}",
            subset,
            group,
            answer[key],
            _n(key, answer),
            answer["n_missing"],
            tuple(intervals.get(key, (None, None))),
            signature,
            higher_is_better=higher_is_better,
        )
        for key in keys
    ]


def _n(key: str, answer: Mapping[str, Any]) -> int:
    """How many rows a number stands on: a rate of toxic pairs, say, on those alone."""
    for rate, count in (("tpr", "n_toxic"), ("fpr", "n_benign")):
        if rate in key.split("_"):
            return int(answer[count])
    return int(answer["n"])


def _entry(
    metric: str,
    subset: str,
    group: str,
    value: float | None,
    n: int,
    n_missing: int,
    interval: Sequence[float | None],
    signature: str,
    *,
    higher_is_better: bool = True,
) -> dict[str, Any]:
    unit = "p" if ".p_" in metric else "pp" if metric.endswith("_pp") else "count" if "_only_" in metric else "fraction"
    return {
        "metric": metric,
        "subset": subset,
        "group": group,
        "value": value,
        "n": n,
        "n_missing": n_missing,
        "ci_low": interval[0],
        "ci_high": interval[1],
        "signature": signature,
        "higher_is_better": higher_is_better if unit in ("pp", "fraction") else None,
        "unit": unit,
    }


def _distinct(values: Any) -> list[str]:
    return list(dict.fromkeys(values))
