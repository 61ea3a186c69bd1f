"""Runs → the report: gathers what the page is handed. What it looks like is the matter of ``cards``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from t2i_parity.cards.report_audit import AuditSection
from t2i_parity.cards.report_data import Audit, Gap, LanguageScores, Rendering, Report, Sample, Score, Side, VarietyAudit
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.audit import page, reference_of
from t2i_parity.generate.report_analysis import analysis_sections
from t2i_parity.generate.report_sections import ceiling_sections, metric_sections, unique
from t2i_parity.generate.run import Run, fingerprint
from t2i_parity.generate.sections import SECTIONS
from t2i_parity.metrics.dialect_penalty.common import Signature

Scores = Sequence[Mapping[str, Any]]


def gather(runs: Sequence[Run], *, title: str, samples: bool = True) -> Report:
    """The report over scored runs. Raises InputError when one has no scores yet."""
    levels = {run.record["scoring"]["confidence_level"] for run in runs if "scoring" in run.record}
    if len(levels) > 1:
        raise InputError(
            f"these runs' intervals are at different levels ({', '.join(map(str, sorted(levels)))}); score them alike: --confidence 0.95"
        )
    renderings: list[Rendering] = []
    audits: list[Audit] = []
    sections: list[AuditSection] = []
    level = next(iter(levels), 0.95)
    shown: list[Sample] = []
    scored: list[tuple[str, Scores]] = []
    pictured: list[tuple[str, Run]] = []
    for run, name in zip(runs, unique(run.name for run in runs), strict=True):
        scores = run.scores()
        if not scores:
            raise InputError(f"{run.url} has no scores; make them first: t2i-parity score {run.url}")
        if run.record["kind"] == "generation":
            renderings += _renderings(run, scores)
            scored.append((name, scores))
            pictured.append((name, run))
            shown += _samples(run) if samples else []
        else:
            audits += _audits(run, scores)
            sections += page.sections(run.name, scores, level)
    return Report(
        title=title,
        created=datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        renderings=renderings,
        audits=audits,
        samples=shown,
        notes=NOTES,
        level=level,
        audit_sections=sorted(sections, key=lambda section: page.ORDER.index(section.key)),
        sections=[
            *(*ceiling_sections(scored), *metric_sections(scored), *analysis_sections(pictured)),
            *(section for made in SECTIONS.all() for section in made(pictured)),
        ],
        records=[(run.name, json.dumps(run.record, indent=2, ensure_ascii=False)) for run in runs],
    )


NOTES = (
    "Intervals are percentile bootstraps at the stated level, resampled by prompt meaning, so that translations of one meaning count once.",
    "A score is that of a model and a reader together. The undamaged typesetter's score is the reader's ceiling: what is lost there, the "
    "reader lost.",
    "What is missing was never scored: it is counted under n missing, and is not 0.",
    "Prompts of audits are not shown: they may describe harm.",
)


def _score(entry: Mapping[str, Any]) -> Score:
    return Score(entry["value"], entry["n"], entry["n_missing"], entry["ci_low"], entry["ci_high"])


def _by_signature(scores: Scores, metric: str) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    """Entries of a metric's module by (subset, signature), in their order."""
    found: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for entry in scores:
        if entry["metric"].startswith(f"{metric}."):
            found.setdefault((entry["subset"], entry["signature"]), []).append(entry)
    return found


def _keys(entries: Scores, group: str) -> dict[str, Score]:
    return {entry["metric"].split(".", 1)[1]: _score(entry) for entry in entries if entry["group"] == group}


def _renderings(run: Run, scores: Scores) -> list[Rendering]:
    made_by = run.record["identity"]["model"]
    gaps = _by_signature(scores, "cross_lingual_gap")
    renderings = []
    for (subset, signature), entries in _by_signature(scores, "text_rendering_precision").items():
        codes = list(dict.fromkeys(entry["group"].split(":", 1)[1] for entry in entries if entry["group"].startswith("language:")))
        inner = signature.replace("|", ",").replace(":", "=")
        gap = next((found for (of, gap_signature), found in gaps.items() if of == subset and inner in gap_signature), None)
        renderings.append(
            Rendering(
                run=run.name,
                model=_model_name(made_by),
                reader=signature.split("|reader:", 1)[1].split(",", 1)[0],
                signature=signature,
                overall=_keys(entries, "all"),
                languages=[
                    LanguageScores(code, LANGUAGES[code].name, LANGUAGES[code].native_name, _keys(entries, f"language:{code}"))
                    for code in codes
                ],
                gap=_gap(gap) if gap else None,
                upper_bound=made_by.get("model") == "glyph" and made_by.get("damage") == "none",
            )
        )
    return renderings


def _model_name(record: Mapping[str, Any]) -> str:
    name = str(record["model"])
    return f"{name}, damage: {record['damage']}" if "damage" in record else name


def _gap(entries: Scores) -> Gap:
    by_key = {entry["metric"].split(".", 1)[1]: entry for entry in entries if not entry["group"].startswith(("branch:", "script:"))}

    def code(key: str) -> str | None:
        group = by_key[key]["group"]
        return None if group == "language:None" else str(group).split(":", 1)[1]

    return Gap(
        mean=_score(by_key["mean"]),
        std=_score(by_key["std"]),
        worst_language=code("worst"),
        worst=_score(by_key["worst"]),
        best_language=code("best"),
        best=_score(by_key["best"]),
        signature=entries[0]["signature"],
    )


def _audits(run: Run, scores: Scores) -> list[Audit]:
    audits = []
    for (subset, signature), entries in _by_signature(scores, "dialect_penalty").items():
        if f"|{page.GROUPED}:category" in signature:
            continue
        by_variety: dict[str, dict[str, Mapping[str, Any]]] = {}
        for entry in entries:
            by_variety.setdefault(entry["group"].split(":", 1)[1], {})[entry["metric"].split(".", 1)[1]] = entry
        references = list(dict.fromkeys(_short_name(reference_of(code) or code) for code in by_variety))
        audits.append(
            Audit(
                run=run.name,
                filter=page.short_name(Signature.parse(signature).fields["filter"]),
                subset=subset,
                reference=" / ".join(references),
                signature=signature,
                varieties=[
                    VarietyAudit(
                        code=code,
                        name=_name(code),
                        n=keys["delta_tpr_pp"]["n"] + keys["delta_fpr_pp"]["n"],
                        n_missing=keys["delta_fpr_pp"]["n_missing"],
                        toxic=_side(keys, "tpr"),
                        benign=_side(keys, "fpr"),
                    )
                    for code, keys in by_variety.items()
                ],
            )
        )
    return audits


def _name(code: str) -> str:
    return VARIETIES[code].name if code in VARIETIES else LANGUAGES[code].name


def _short_name(code: str) -> str:
    return code if code in VARIETIES else LANGUAGES[code].name


def _side(keys: Mapping[str, Mapping[str, Any]], rate: str) -> Side:
    delta = keys[f"delta_{rate}_pp"]
    return Side(
        n=delta["n"],
        reference_rate=keys[f"{rate}_reference"]["value"],
        variety_rate=keys[f"{rate}_variety"]["value"],
        delta_pp=delta["value"],
        ci_low_pp=delta["ci_low"],
        ci_high_pp=delta["ci_high"],
        only_variety=keys[f"{rate}_only_variety"]["value"] or 0,
        only_reference=keys[f"{rate}_only_reference"]["value"] or 0,
        p=keys[f"p_{rate}"]["value"],
        p_holm=keys[f"p_{rate}_holm"]["value"],
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
            direction=LANGUAGES[row["language"]].direction,
            wanted=row["render_text"],
            read=row[f"{reader}_text"],
            precision=row[f"{reader}_precision"],
            image=(pictures[identity]["image"] or {}).get("bytes"),
            status=row["status"],
            reason=row["reason"],
        )
        for identity, row in chosen.items()
    ]
