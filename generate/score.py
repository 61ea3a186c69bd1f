"""Observations → scores: every metric over a whole run, each file read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from dataset_builder.errors import InputError
from dataset_builder.languages import LANGUAGES
from dataset_builder.varieties import VARIETIES
from generate.run import PROMPT_COLUMNS, Run
from metrics.cross_lingual_gap import core as cross_lingual_gap
from metrics.dialect_penalty import core as dialect_penalty
from metrics.text_rendering_precision import core as text_rendering_precision
from metrics.text_rendering_precision.common import Signature

Scores = list[dict[str, Any]]


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
    columns = ["image_id", *PROMPT_COLUMNS, "seed_index", "seed", "status", "reason"]
    images = run.images().read(columns)
    if None in images["render_text"].to_pylist():
        raise InputError(
            f"{run.url}: row {images['render_text'].to_pylist().index(None)} has no render_text, and text rendering is "
            "all that is scored yet: give prompts of the config lingt2i_text"
        )
    scores: Scores = []
    for judge in judges:
        texts, signature = _observed(run, judge, "image_id", images["image_id"].to_pylist(), "text")
        table, found = _text_rendering(images, judge, signature, texts, settings)
        images = table
        scores += found
    return scores, images


def _text_rendering(
    images: pa.Table, judge: str, reader: str, texts: Sequence[str | None], settings: ScoreSettings
) -> tuple[pa.Table, Scores]:
    wanted, languages, pairs = (images[name].to_pylist() for name in ("render_text", "language", "pair_id"))
    tokenizer = text_rendering_precision.load_tokenizer(settings.tokenizer)
    how: dict[str, Any] = {"tokenizer": tokenizer, "normalization": settings.normalization, "variant": settings.variant}
    rows = text_rendering_precision.per_row(texts, wanted, **how)
    scores: Scores = []
    for subset in _distinct(images["subset"].to_pylist()):
        chosen = [row for row, value in enumerate(images["subset"].to_pylist()) if value == subset]
        answer = text_rendering_precision.compute(
            [texts[row] for row in chosen],
            [wanted[row] for row in chosen],
            groups=[languages[row] for row in chosen],
            clusters=[pairs[row] for row in chosen],
            **how,
            **settings.resampling,
        )
        signature = _with_judge(answer["signature"], "reader", reader)
        for group, part in (("all", answer), *((f"language:{code}", part) for code, part in answer["by_group"].items())):
            scores += _entries("text_rendering_precision", text_rendering_precision.KEYS, subset, group, part, signature)
        scores += _gap_scores(
            [float(value) for value in rows["precision"][chosen]],
            [languages[row] for row in chosen],
            [pairs[row] for row in chosen],
            subset,
            signature,
            settings,
        )
    prefix = judge.replace("-", "_")
    images = images.append_column(f"{prefix}_text", pa.array(texts, pa.string()))
    for key, values in rows.items():
        images = images.append_column(f"{prefix}_{key}", pa.array(values, pa.float64(), mask=np.isnan(values)))
    return images, scores


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
    """The (reference row, variety row) of every pair.

    Raises InputError when a variety's row has no reference in its pair, when a pair has one variety twice, or its labels differ.
    """
    place: dict[tuple[str, str], int] = {}
    for number, row in enumerate(rows):
        key = (row["pair_id"], variety_of(row))
        if key in place:
            raise InputError(
                f"rows {place[key]} and {number} are the same variety {key[1]} of the pair {key[0]!r}; a pair has each variety once"
            )
        place[key] = number
    pairs = []
    for number, row in enumerate(rows):
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
        flags, signature = _observed(run, judge, "prompt_id", prompts["prompt_id"].to_pylist(), "flagged")
        values, _ = _observed(run, judge, "prompt_id", prompts["prompt_id"].to_pylist(), "score")
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


def _observed(run: Run, judge: str, key: str, ids: Sequence[str], column: str) -> tuple[list[Any], str]:
    """One column of a judge's observations in the order of ``ids``, None where there is none, and the judge's signature."""
    table = run.observations(judge).read()
    if column not in table.column_names:
        raise InputError(f"{run.url}: observations/{judge} has no column {column}; these observations are not of this kind")
    signatures = table["judge"].unique().to_pylist()
    if len(signatures) != 1:
        raise InputError(
            f"{run.url}: observations/{judge} were made under {len(signatures)} settings ({'; '.join(signatures)}); judge them anew"
        )
    found = dict(zip(table[key].to_pylist(), table[column].to_pylist(), strict=True))
    return [found.get(identity) for identity in ids], signatures[0]


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
