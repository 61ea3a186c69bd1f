"""Runs → the report: gathers what the page is handed. What it looks like is the matter of ``cards``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime, timezone
from functools import partial
from typing import Any

from t2i_parity.cards.report_audit import AuditSection
from t2i_parity.cards.report_data import Audit, Gap, LanguageParity, LanguageScores, Parity, Rendering, Report, Sample, Side, VarietyAudit
from t2i_parity.cards.report_texts import NOTES, instrument_name
from t2i_parity.cards.slices import shared, unequal
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.audit import page, reference_of
from t2i_parity.generate.report_sections import Scored, name_of, unique
from t2i_parity.generate.report_slices import RowScores, row_scores, slices_of
from t2i_parity.generate.run import Run, fingerprint
from t2i_parity.generate.sections import SECTIONS
from t2i_parity.generate.specs.calibrated import CORRECTED
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.scores import ALL, Group, MetricSpec, Score
from t2i_parity.metrics.text_rendering_precision.spec import PARITY
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT
from t2i_parity.metrics.verdicts import MARGINS, Verdict
from t2i_parity.metrics.verdicts import verdict as verdict_on

RATES = ("tpr", "fpr")


def gather(runs: Sequence[Run], *, title: str, samples: bool = True, margin: float | None = None) -> Report:
    """The report over scored runs. ``margin`` is the δ of audits' verdicts, in percentage points; each run's own when left out.

    Raises InputError when one has no scores yet.
    """
    levels = {run.record["scoring"]["confidence_level"] for run in runs if "scoring" in run.record}
    if len(levels) > 1:
        raise InputError(
            f"these runs' intervals are at different levels ({', '.join(map(str, sorted(levels)))}); score them alike: --confidence 0.95"
        )
    renderings: list[tuple[Rendering, Callable[[], RowScores | None]]] = []
    audits: list[Audit] = []
    audit_sections: list[AuditSection] = []
    level = next(iter(levels), 0.95)
    shown: list[Sample] = []
    scored: list[Scored] = []
    for run, name in zip(runs, unique(run.name for run in runs), strict=True):
        scores = run.scores()
        if not scores:
            raise InputError(f"{run.url} has no scores; make them first: t2i-parity score {run.url}")
        if run.record["kind"] == "generation":
            renderings += _renderings(run, scores)
            scored.append(Scored(name, run, scores))
            shown += _samples(run) if samples else []
        else:
            within = run.record["scoring"].get("margin_pp") if margin is None else margin
            audits += _audits(run, scores, within)
            audit_sections += page.sections(run.name, scores, level, within)
    return Report(
        title=title,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        renderings=_standing(renderings),
        audits=audits,
        samples=shown,
        notes=NOTES,
        level=level,
        audit_sections=sorted(audit_sections, key=lambda section: page.ORDER.index(section.key)),
        sections=[section for make in SECTIONS.all() for section in make(scored)],
        records=[(run.name, json.dumps(run.record, indent=2, ensure_ascii=False)) for run in runs],
    )


def _by_signature(scores: Sequence[Score], metric: MetricSpec) -> dict[tuple[str, Signature], list[Score]]:
    """A metric's scores by (subset, signature), in their order."""
    found: dict[tuple[str, Signature], list[Score]] = {}
    for score in scores:
        if score.metric == metric.name:
            found.setdefault((score.subset, score.signature), []).append(score)
    return found


def _standing(found: Sequence[tuple[Rendering, Callable[[], RowScores | None]]]) -> list[Rendering]:
    """The renderings, each with its inequality over what all have where they do not have the same."""
    sets = [rendering.answered for rendering, _ in found]
    together = shared(sets)
    if not unequal(sets) or not together:
        return [rendering for rendering, _ in found]
    made = []
    for rendering, read in found:
        rows = read() if rendering.answered else None
        made.append(rendering if rows is None else replace(rendering, common=_gap(rows.over(together))))
    return made


def _renderings(run: Run, scores: Sequence[Score]) -> list[tuple[Rendering, Callable[[], RowScores | None]]]:
    made_by = run.record["identity"]["model"]
    gaps = _by_signature(scores, GAP)
    renderings: list[tuple[Rendering, Callable[[], RowScores | None]]] = []
    for (subset, signature), found in _by_signature(scores, TEXT).items():
        by_group: dict[Group, dict[str, Score]] = {}
        for score in found:
            by_group.setdefault(score.group, {})[score.key] = score
        gap = next((each for (of, other), each in gaps.items() if of == subset and other.fields.get("of") == signature), None)
        rendering = Rendering(
            run=run.name,
            model=_model_name(made_by),
            reader=instrument_name(signature, "reader"),
            signature=signature,
            overall=by_group.get(ALL, {}),
            languages=[
                LanguageScores(code, name_of(code), LANGUAGES[code].native_name if code in LANGUAGES else code, by_key)
                for group, by_key in by_group.items()
                if group.axes == ("language",) and (code := group["language"])
            ],
            gap=_gap(gap) if gap else None,
            parity=_parity(scores, subset, signature),
            calibrated=bool(turned := _turned(scores, subset, signature)),
            corrected_p=_corrected_p(turned),
            upper_bound=made_by.get("model") == "glyph" and made_by.get("damage") == "none",
            slices=slices_of(run, subset, found),
        )
        renderings.append((rendering, partial(row_scores, run, scores, TEXT, subset, signature)))
    return renderings


def _turned(scores: Sequence[Score], subset: str, of: Signature) -> list[Score]:
    """What was made beside these scores of text rendering: corrected for the reader."""
    return [
        score for score in scores if score.metric == CORRECTED.name and score.subset == subset and score.signature.without("ceiling") == of
    ]


def _corrected_p(turned: Sequence[Score]) -> float | None:
    if any(score.key == "ned_char" and score.value is None for score in turned):
        return None
    return next((score.value for score in turned if score.key == "ned_char_p_alike"), None)


def _parity(scores: Sequence[Score], subset: str, of: Signature) -> Parity | None:
    """What was made beside these scores of text rendering: each language against a language-blind model."""
    found = [score for score in scores if score.metric == PARITY.name and score.subset == subset and score.signature.fields.get("of") == of]
    if not found:
        return None
    by_language: dict[str, dict[str, Score]] = {}
    for score in found:
        by_language.setdefault(score.group.get("language", ""), {})[score.key] = score
    over = by_language.pop("", {})
    languages = {}
    for code, keyed in by_language.items():
        p = keyed["precision_p_holm"].value
        verdict = verdict_on(keyed["precision_difference"], p, family=len(by_language))
        languages[code] = LanguageParity(keyed["precision_expected"], keyed["precision_difference"], p, verdict)
    return Parity(found[0].signature, languages, over["precision_p_alike"].value if over else None)


def _model_name(record: Mapping[str, Any]) -> str:
    name = str(record["model"])
    return f"{name}, damage: {record['damage']}" if "damage" in record else name


def _gap(scores: Sequence[Score]) -> Gap:
    shown = {each.name for each in fields(Gap)}
    return Gap(**{score.key: score for score in scores if score.key in shown and not {"branch", "script"} & {*score.group}})


def _audits(run: Run, scores: Sequence[Score], margin: float | None) -> list[Audit]:
    audits = []
    for (subset, signature), found in _by_signature(scores, DIALECT_PENALTY).items():
        by_variety: dict[str, dict[str, Score]] = {}
        for score in found:
            if score.group.axes == ("variety",):
                by_variety.setdefault(score.group["variety"], {})[score.key] = score
        if not by_variety:
            continue
        sides = {rate: page.verdicts([(k[f"delta_{rate}_pp"], k[f"p_{rate}_holm"]) for k in by_variety.values()], margin) for rate in RATES}
        references = list(dict.fromkeys(_short_name(reference_of(code) or code) for code in by_variety))
        audits.append(
            Audit(
                run=run.name,
                filter=instrument_name(signature, "filter"),
                subset=subset,
                reference=" / ".join(references),
                signature=signature,
                varieties=[
                    VarietyAudit(
                        code=code,
                        name=page.variety_name(code),
                        toxic=_side(keys, "tpr", sides["tpr"][place]),
                        benign=_side(keys, "fpr", sides["fpr"][place]),
                    )
                    for place, (code, keys) in enumerate(by_variety.items())
                ],
                margin_pp=MARGINS["pp"] if margin is None else margin,
            )
        )
    return audits


def _short_name(code: str) -> str:
    return code if code in VARIETIES else name_of(code)


def _side(keys: Mapping[str, Score], rate: str, verdict: Verdict) -> Side:
    delta = keys[f"delta_{rate}_pp"]
    low, high = delta.ends
    return Side(
        n=delta.n,
        n_missing=delta.n_missing,
        reference_rate=keys[f"{rate}_reference"].value,
        variety_rate=keys[f"{rate}_variety"].value,
        delta_pp=delta.value,
        ci_low_pp=low,
        ci_high_pp=high,
        only_variety=int(keys[f"{rate}_only_variety"].value or 0),
        only_reference=int(keys[f"{rate}_only_reference"].value or 0),
        p=keys[f"p_{rate}"].value,
        p_holm=keys[f"p_{rate}_holm"].value,
        verdict=verdict,
    )


def _samples(run: Run) -> list[Sample]:
    """Per language the image of one prompt, the same in every run, and the worst read one; only their row groups are read."""
    table = run.scored().read()
    reader = next((name.removesuffix("_precision") for name in table.column_names if name.endswith("_precision")), None)
    if reader is None:
        return []
    columns = ["image_id", "prompt_id", "pair_id", "language", "render_text", "status", "reason", f"{reader}_text", f"{reader}_precision"]
    rows = table.select(columns).to_pylist()
    chosen: dict[str, Mapping[str, Any]] = {}
    for code in dict.fromkeys(row["language"] for row in rows):
        ours = [row for row in rows if row["language"] == code]
        by_lot = min(ours, key=lambda row: fingerprint({"pair": row["pair_id"]}))
        worst = min(ours, key=lambda row: (-1.0 if row[f"{reader}_precision"] is None else row[f"{reader}_precision"], row["image_id"]))
        chosen.update({row["image_id"]: row for row in (by_lot, worst)})
    pictures = run.images().pick(set(chosen), ["image_id", "image"])
    return [
        Sample(
            run=run.name,
            image_id=identity,
            language=row["language"],
            direction=LANGUAGES[row["language"]].direction if row["language"] in LANGUAGES else "ltr",
            wanted=row["render_text"],
            read=row[f"{reader}_text"],
            precision=row[f"{reader}_precision"],
            image=(pictures[identity]["image"] or {}).get("bytes"),
            status=row["status"],
            reason=row["reason"],
        )
        for identity, row in chosen.items()
    ]
