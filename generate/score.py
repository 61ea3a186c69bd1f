"""Observations → scores: every metric over a whole run, each file read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.controls.culture_tags import expected_culture
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.prompts import PROMPT_COLUMNS
from t2i_parity.generate import ceilings
from t2i_parity.generate.audit import score_audit
from t2i_parity.generate.entries import Scores, csv_of, seen_by, stamped
from t2i_parity.generate.entries import ScoreSettings as ScoreSettings
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.cross_lingual_gap import core as cross_lingual_gap
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
from t2i_parity.metrics.scores import ALL, Group, MetricSpec, Observed, Score, labelled
from t2i_parity.metrics.text_rendering_precision import core as text_rendering_precision
from t2i_parity.metrics.text_rendering_precision import null
from t2i_parity.metrics.text_rendering_precision.spec import PARITY
from t2i_parity.metrics.toxicity_rejection.spec import SPEC as REJECTION


@dataclass(frozen=True, slots=True)
class Scored:
    """The scores of a run, its ``scored`` table, and the observations that no metric is made from (judge: its columns)."""

    scores: Scores
    table: pa.Table
    unused: dict[str, list[str]]


def score(run: Run, settings: ScoreSettings, *, margin: float | None = None) -> Scored:
    """Score all that the run has observations for; writes scores.json, the ``scored`` table and the card, and returns what was scored.

    Observations that no metric is made from are kept, named in the record and in the answer, and harm nobody. ``margin`` is the δ of an
    audit's verdicts in percentage points, and stands in the record; without one it is that of the scores.

    Raises InputError when there is nothing to score, or when a metric refuses what it was given.
    """
    scored = computed(run, settings)
    run.scored().replace(scored.table)
    run.write_scores(scored.scores)
    run.folder.write(csv_of(scored.scores), "scores.csv")
    told = {"unused": scored.unused or None, "margin_pp": margin}
    run.record["scoring"] = {**settings.record, **{name: value for name, value in told.items() if value is not None}}
    run.write_record()
    run.write_card()
    return scored


def computed(run: Run, settings: ScoreSettings) -> Scored:
    """What :func:`score` returns, from the run's observations; nothing is written. Raises as it does."""
    judges = run.judges()
    generated = run.record["kind"] == "generation"
    if not judges and (generated or not run.outcomes().files()):
        raise InputError(f"{run.url} has no observations to score; make some first: t2i-parity judge {run.url} --with tesseract")
    try:
        if generated:
            return _score_images(run, judges, settings)
        scores, table, unused = score_audit(run, judges, settings)
        return Scored(scores, table, unused)
    except (ValueError, RuntimeError) as error:
        raise InputError(str(error)) from error


# Images


def _score_images(run: Run, judges: Sequence[str], settings: ScoreSettings) -> Scored:
    """Every judge's observations through every metric that what it saw is enough for; images and each judge are read once."""
    columns = ["image_id", *PROMPT_COLUMNS, "seed_index", "seed", "status", "reason"]
    images = run.images().read(columns)
    rows = [{**row, "expected_culture": expected_culture(row)} for row in images.to_pylist()]
    scores: Scores = []
    unused: dict[str, list[str]] = {}
    for judge in judges:
        observed, by = seen_by(run, judge, "image_id", images["image_id"].to_pylist())
        measured = [spec for spec in specs().values() if spec.compute is not None and set(spec.columns) <= set(observed)]
        if not measured:
            unused[judge] = list(observed)
            continue
        prefix = judge.replace("-", "_")
        for name in dict.fromkeys(name for spec in measured for name in spec.columns):
            images = images.append_column(f"{prefix}_{name}", pa.array(observed[name]))
        whole = Observed(rows, observed, by)
        for spec in measured:
            for subset in dict.fromkeys(row["subset"] for row in rows):
                chosen = [number for number, row in enumerate(rows) if row["subset"] == subset and spec.suits(row)]
                if not chosen:
                    continue
                part = whole.of(chosen)
                found = _measured(spec, part, subset, settings)
                scores += found
                if spec.place == "text":
                    scores += _parity(part, subset, found[0].signature, settings)
                if spec.place == "text" and settings.calibration:
                    scores += ceilings.beside(part.rows, part.columns["text"], subset, found[0].signature, by, settings)
                if spec.name == REJECTION.name and settings.calibration:
                    scores += ceilings.beside_verdicts(part, subset, found[0].signature, settings)
            if spec.per_row is not None:
                for key, values in spec.per_row(whole, settings).items():
                    images = images.append_column(f"{prefix}_{key}", pa.array(values, pa.float64(), mask=np.isnan(values)))
    if not scores:
        sources = "; ".join(" and ".join(spec.columns) for spec in specs().values() if spec.compute is not None)
        raise InputError(
            f"{run.url}: what {', '.join(judges)} saw gives no score on these rows{_told(unused)}. A culture, for one, is not measured "
            f"where a prompt asks for a text or a country; metrics are made from {sources}"
        )
    ceilings.check(scores, settings)
    return Scored(scores, images, unused)


def _told(unused: dict[str, list[str]]) -> str:
    return "".join(f"; {judge} has the columns {', '.join(columns)}" for judge, columns in unused.items())


def _measured(spec: MetricSpec, part: Observed, subset: str, settings: ScoreSettings) -> Scores:
    """One metric over one subset: all rows, each language, and, where there are several, each dimension alone and by language."""
    assert spec.compute is not None
    languages = [row["language"] for row in part.rows]
    groupings = [[Group(language=code) for code in languages]]
    dimensions = [row["dimension"] for row in part.rows]
    if len(set(dimensions)) > 1 and None not in dimensions:
        groupings.append([Group(dimension=name) for name in dimensions])
        groupings.append([Group(dimension=name, language=code) for name, code in zip(dimensions, languages, strict=True)])
    keys = [score.key for score in spec.given(part.columns)]
    scores: Scores = []
    for groups in groupings:
        labels, group_of = labelled(groups)
        answer = spec.compute(part, groups=labels, settings=settings)
        signature = stamped(Signature.parse(answer["signature"]).having(**{spec.instrument: part.judge}), part.rows)
        answers = [(ALL, answer)] if not scores else []
        for group, found in [*answers, *((group_of[label], found) for label, found in answer["by_group"].items())]:
            scores += spec.read(found, subset, group, signature, level=settings.confidence_level, keys=keys)
    if spec.per_row is not None and spec.unequal:
        values = [float(value) for value in spec.per_row(part, settings)[spec.unequal]]
        scores += _gap_scores(values, languages, part.pairs, subset, scores[0].signature, settings)
    return scores


def _parity(part: Observed, subset: str, of: Signature, settings: ScoreSettings) -> Scores:
    """What was read against a language-blind model of the run's own quality, where there are several languages."""
    answer = null.compute(
        part.columns["text"],
        [row["render_text"] for row in part.rows],
        [row["language"] for row in part.rows],
        tokenizer=text_rendering_precision.load_tokenizer(settings.tokenizer),
        normalization=settings.normalization,
        variant=settings.variant,
        clusters=part.pairs,
        **settings.resampling,
    )
    if not answer["by_group"]:
        return []
    signature = Signature.parse(answer["signature"]).having(of=of)
    level, over = settings.confidence_level, [key for key in answer if key.endswith("_p_alike")]
    scores = PARITY.read(answer, subset, ALL, signature, level=level, keys=over)
    for code, found in answer["by_group"].items():
        keys = [score.key for score in PARITY.scores if score.key in found]
        scores += PARITY.read(found, subset, Group(language=code), signature, level=level, keys=keys)
    return scores


def _gap_scores(
    values: Sequence[float], languages: Sequence[str], pairs: Sequence[str], subset: str, of: Signature, settings: ScoreSettings
) -> Scores:
    """How unequal one number is over languages, and the means of branches and scripts."""
    scores = gap_over_languages(values, languages, pairs, subset, of, settings)
    signature, level = scores[0].signature, settings.confidence_level
    for axis in ("branch", "script"):
        groups = [getattr(LANGUAGES[code], axis) for code in languages]
        parts = cross_lingual_gap.compute(values, languages, groups=groups, clusters=pairs, **settings.resampling)
        for name, part in parts["by_group"].items():
            scores.append(Score.of(GAP["mean"], part, subset, Group({axis: name}), signature, level=level))
    return scores


def gap_over_languages(
    values: Sequence[float],
    languages: Sequence[str],
    pairs: Sequence[str],
    subset: str,
    of: Signature,
    settings: ScoreSettings,
    **only: str,
) -> Scores:
    """Mean, spread, worst and best language of one number; ``only`` stands in the signature where these are some of a run's rows."""
    level = settings.confidence_level
    gap = cross_lingual_gap.compute(values, languages, clusters=pairs, **settings.resampling)
    signature = Signature.parse(gap["signature"]).having(of=of, **only)
    scores = GAP.read(gap, subset, ALL, signature, level=level, keys=("mean", "std", *cross_lingual_gap.INFERRED))
    for key in ("worst", "best"):
        code = gap[f"{key}_language"]
        seen = [value for value, language in zip(values, languages, strict=True) if language == code]
        missing = sum(np.isnan(value) for value in seen)
        counted = {**gap, "n": len(seen) - missing, "n_missing": int(missing)}
        scores.append(Score.of(GAP[key], counted, subset, Group() if code is None else Group(language=code), signature, level=level))
    return scores
