"""What a text filter does to varieties: rates, scores, categories, and the same against noise as large (dialect-penalty study, §4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.generate.audit import shifts
from t2i_parity.generate.audit.pairs import Pair, toxic_and_benign, variety_of
from t2i_parity.generate.entries import Scores, ScoreSettings
from t2i_parity.generate.specs.audit import SCORE_SHIFT, TRUNCATION, TYPO_ABLATION, TYPO_MATCH
from t2i_parity.metrics._common import Answer, FloatArray, Paired, Resampling, Signature, estimate, ratio
from t2i_parity.metrics.dialect_penalty import core as dialect_penalty
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.scores import Group, Score, labelled

RATES = {"toxic": "tpr", "benign": "fpr"}
TYPO_VERSION = "1.0"

Flags = Sequence[bool | None]


def penalty(subset: str, pairs: Sequence[Pair], flags: Flags, decided_by: Signature, settings: ScoreSettings) -> Scores:
    """Table 1: the rates of each variety against its reference. No number over all varieties: it would weigh them by their pairs."""
    labels, group_of = labelled([pair.group for pair in pairs])
    answer = _penalty(pairs, flags, labels, settings)
    scores: Scores = []
    for label, part in answer["by_group"].items():
        signature = Signature.parse(part["signature"]).having(filter=decided_by)
        scores += DIALECT_PENALTY.read(part, subset, group_of[label], signature, level=settings.confidence_level)
    return scores


def categories(subset: str, pairs: Sequence[Pair], flags: Flags, decided_by: Signature, settings: ScoreSettings) -> Scores:
    """The same shifts in each category; Holm's correction is over all cells of one label."""
    scores: Scores = []
    for label, of_label in toxic_and_benign(pair for pair in pairs if pair.category).items():
        rate = RATES[label]
        labels, cell_of = labelled([pair.cell for pair in of_label])
        answer = _penalty(of_label, flags, labels, settings)
        keys = (f"delta_{rate}_pp", f"{rate}_reference", f"{rate}_variety", f"p_{rate}", f"p_{rate}_holm")
        for name, part in answer["by_group"].items():
            signature = Signature.parse(part["signature"]).having(filter=decided_by, by=f"category of {label} prompts")
            scores += DIALECT_PENALTY.read(part, subset, cell_of[name], signature, level=settings.confidence_level, keys=keys)
    return scores


def score_shifts(
    subset: str, pairs: Sequence[Pair], values: Sequence[float | None], decided_by: Signature, settings: ScoreSettings
) -> Scores:
    """How far the continuous score moves, of toxic and of benign prompts; nothing where the filter has no score."""
    scores: Scores = []
    for label, of_label in toxic_and_benign(pairs).items():
        if all(values[place] is None for pair in of_label for place in (pair.reference, pair.other)):
            continue
        answer = shifts.paired_shift(
            [values[pair.reference] for pair in of_label],
            [values[pair.other] for pair in of_label],
            groups=[pair.variety for pair in of_label],
            clusters=[pair.pair_id for pair in of_label],
            settings=settings,
        )
        signature = Signature.parse(answer["signature"]).having(filter=decided_by)
        for code, part in answer["by_group"].items():
            group = Group(variety=code, label=label)
            scores += SCORE_SHIFT.read(part, subset, group, signature, level=settings.confidence_level)
    return scores


def typo_ablation(subset: str, pairs: Sequence[Pair], flags: Flags, decided_by: Signature, settings: ScoreSettings) -> Scores:
    """Table 3: the shift that typos of the same size make, and what the variety does beyond it, over the seeds of the typos.

    The values are means over the seeds, ``*_sd_pp`` their standard deviation (the population's, ddof 0). A pair counts when the filter
    answered on both wordings and on the typos of every seed, so that all seeds stand on the same pairs. The interval is of the mean over
    seeds, resampled by pair; it says nothing of how much seeds differ.
    """
    scores: Scores = []
    for code in dict.fromkeys(pair.variety for pair in pairs):
        of_variety = [pair for pair in pairs if pair.variety == code]
        seeds = sorted({seed for pair in of_variety for seed in pair.typos})
        if seeds:
            answer = _ablation(of_variety, flags, seeds, settings)
            signature = Signature.parse(answer["signature"]).having(filter=decided_by)
            scores += TYPO_ABLATION.read(answer, subset, Group(variety=code), signature, level=settings.confidence_level)
    return scores


def _ablation(pairs: Sequence[Pair], flags: Flags, seeds: Sequence[int], settings: ScoreSettings) -> Answer:
    def typo(pair: Pair, seed: int) -> bool | None:
        place = pair.typos.get(seed)
        return None if place is None else flags[place]

    def whole(pair: Pair) -> bool:
        cells = [flags[pair.reference], flags[pair.other], *(typo(pair, seed) for seed in seeds)]
        return all(cell is not None for cell in cells)

    kept = [pair for pair in pairs if whole(pair)]
    n_toxic, of_toxic = (sum(pair.label == "toxic" for pair in each) for each in (kept, pairs))
    fields = {"seeds": "+".join(map(str, seeds)), "sd": "population"}
    answer: Answer = {
        "n": len(kept),
        "n_toxic": n_toxic,
        "n_benign": len(kept) - n_toxic,
        "n_missing": len(pairs) - len(kept),
        "n_missing_toxic": of_toxic - n_toxic,
        "n_missing_benign": len(pairs) - of_toxic - (len(kept) - n_toxic),
        "signature": str(Signature("typo_ablation", fields, TYPO_VERSION)),
    }
    names = [f"{kind}_{rate}_pp" for rate in RATES.values() for kind in ("delta_typo", "bias_gap")]
    if not kept:
        return {**answer, **dict.fromkeys([*names, *(name.replace("_pp", "_sd_pp") for name in names)])}
    by_seed = [
        dialect_penalty.compute(
            [flags[pair.reference] for pair in kept],
            [flags[pair.other] for pair in kept],
            [pair.label for pair in kept],
            typo=[typo(pair, seed) for pair in kept],
            n_resamples=0,
        )
        for seed in seeds
    ]
    for name in names:
        values = [found[name] for found in by_seed if found[name] is not None]
        answer[name] = float(np.mean(values)) if values else None
        answer[name.replace("_pp", "_sd_pp")] = float(np.std(values)) if values else None
    # The mean over seeds of a rate is the rate of the mean flag, so that pairs can be resampled as they are.
    rows = np.array(
        [[1.0, float(flags[pair.reference]), float(flags[pair.other]), np.mean([typo(pair, s) for s in seeds])] for pair in kept]  # type: ignore[arg-type]
    )
    toxic = np.array([pair.label == "toxic" for pair in kept])[:, None]

    def statistics(sums: FloatArray) -> FloatArray:
        columns = []
        for half in np.split(sums, 2, axis=-1):
            rates = 100 * ratio(half[..., 1:], half[..., :1])
            columns += [rates[..., 2] - rates[..., 0], rates[..., 1] - rates[..., 2]]
        return np.stack(columns, axis=-1)

    resampling = Resampling(settings.confidence_level, settings.n_resamples, settings.seed)
    clusters = [pair.pair_id for pair in kept]
    # Of each half: how many pairs, and what of the reference, the variety and the typos was flagged.
    columns = {rate: half * rows.shape[1] for half, rate in enumerate(RATES.values())}
    kinds = {f"delta_typo_{rate}_pp": Paired(at + 1, at + 3, at, 100.0) for rate, at in columns.items()}
    kinds |= {f"bias_gap_{rate}_pp": Paired(at + 3, at + 2, at, 100.0) for rate, at in columns.items()}
    _, ci = estimate(np.hstack([rows * toxic, rows * ~toxic]), clusters, statistics, names, resampling, kinds)
    return {**answer, **ci}


def typo_match(subset: str, rows: Sequence[Prompt], pairs: Sequence[Pair]) -> Scores:
    """How well the typos were matched (Appendix C): the share within the tolerance, and the mean similarity reached and aimed at.

    From the checks that the typos' maker left in their rows; nothing where they have none.
    """
    scores: Scores = []
    for code in dict.fromkeys(pair.variety for pair in pairs):
        places = [place for pair in pairs if pair.variety == code for place in pair.typos.values()]
        found = [{each["check"]: each for each in rows[place].get("checks") or []} for place in places]
        made = [checks for checks in found if "typo_similarity" in checks and "typo_target" in checks]
        if not made:
            continue
        by = sorted({str(checks["typo_similarity"].get("by")) for checks in made})
        signature = Signature("typo_match", {"encoder": "; ".join(by)}, TYPO_VERSION)
        values: dict[str, list[float | None]] = {
            "matched": [checks["typo_similarity"]["verdict"] == "matched" for checks in made],
            "similarity": [checks["typo_similarity"]["score"] for checks in made],
            "target": [checks["typo_target"]["score"] for checks in made],
        }
        for key, cells in values.items():
            there = [float(cell) for cell in cells if cell is not None]
            value = float(np.mean(there)) if there else None
            missing = len(places) - len(there)
            scores.append(Score(TYPO_MATCH[key], subset, Group(variety=code), value, len(there), missing, None, signature))
    return scores


def truncation(subset: str, rows: Sequence[Prompt], places: Iterable[int], cut: Flags, decided_by: Signature) -> Scores:
    """How many texts of each variety the filter saw only the beginning of; nothing where it does not say."""
    by_variety: dict[str, list[bool | None]] = {}
    for place in places:
        by_variety.setdefault(variety_of(rows[place]), []).append(cut[place])
    signature = Signature("truncation", {"filter": decided_by}, "1.0")
    scores: Scores = []
    for code, found in by_variety.items():
        known = [cell for cell in found if cell is not None]
        if known:
            missing = len(found) - len(known)
            group = Group(variety=code)
            scores.append(Score(TRUNCATION["n_truncated"], subset, group, sum(known), len(known), missing, None, signature))
    return scores


def _penalty(pairs: Sequence[Pair], flags: Flags, groups: Sequence[str], settings: ScoreSettings) -> Answer:
    return dialect_penalty.compute(
        [flags[pair.reference] for pair in pairs],
        [flags[pair.other] for pair in pairs],
        [pair.label for pair in pairs],
        groups=groups,
        clusters=[pair.pair_id for pair in pairs],
        **settings.resampling,
    )
