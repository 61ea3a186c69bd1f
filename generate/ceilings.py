"""A reader's ceiling beside what was read: the score that the same reader gives a faultless picture in the same language.

A model's 0.6 in a language in which the reader reaches 0.9 at best is another thing than 0.6 where it reaches 1. The raw score stays what
it is; beside it stand the ceiling, the share of it that was reached, and the score that the pictures hold by what the reader makes of
texts of known damage, with the calibration's error in its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import calibration
from t2i_parity.generate.calibration import LabelledPictures, Probe
from t2i_parity.generate.entries import Scores, ScoreSettings
from t2i_parity.generate.specs.calibrated import CEILING, CORRECTED, KEYS, RATE, SHARE
from t2i_parity.metrics import instrument
from t2i_parity.metrics._common import MIN_CLUSTERS, Resampling, Signature, compare, estimate, ratio
from t2i_parity.metrics._inference import GroupMeans
from t2i_parity.metrics.instrument import Line
from t2i_parity.metrics.scores import ALL, Group, Interval, Observed, Row, Score
from t2i_parity.metrics.text_rendering_precision import core as text_rendering_precision

FloatArray = NDArray[np.float64]


def probes(folder: str, reader: Signature, setting: str) -> tuple[str, list[Probe]] | None:
    """The material's name with its hash, and its probes that a reader saw in one setting.

    None when the folder has no calibration of that reader at all.

    Raises InputError when it has one under another signature (what differs is named), or not in that setting.
    """
    known = {name: found for name, found in calibration.read(folder).items() if Signature.parse(found["signature"]).metric == reader.metric}
    if not known:
        return None
    for name, found in known.items():
        if found["signature"] == str(reader):
            settings = list(found["material"].get("settings", ()))
            if setting not in settings:
                raise InputError(f"{folder} has no ceiling of {name} in the setting {setting!r}; expected one of {', '.join(settings)}")
            rows = calibration.probes_of(folder, name)
            material = str(Signature.parse(found["scores"][0]["signature"]).fields["material"])
            return material, [row for row in rows if row["setting"] == setting]
    raise _other(folder, reader, next(iter(known.items())), "reader than the one that read")


def _other(folder: str, judge: Signature, known: tuple[str, Mapping[str, Any]], than: str) -> InputError:
    """What is said of a calibration of the judge under another signature."""
    name, found = known
    differing = "; ".join(f"{key}: {there!r} there, {here!r} here" for key, (there, here) in compare(found["signature"], judge).items())
    return InputError(
        f"the calibration of {name} in {folder} is of another {than} this run ({differing}). "
        f"Calibrate that one: t2i-parity judge --calibrate --with {judge.metric} --out {folder}"
    )


def beside(
    rows: Sequence[Row],
    read: Sequence[str | None],
    subset: str,
    signature: Signature,
    reader: Signature,
    settings: ScoreSettings,
) -> Scores:
    """Per language, ``reader_ceiling``, ``share_of_ceiling`` (score over ceiling) and ``corrected`` of what one reader read.

    Empty without calibration.

    ``rows`` have ``language``, ``pair_id`` and ``render_text``; ``signature`` is the raw score's. A language that was not calibrated has
    entries without a value. A share above 1 says that the model's pictures were easier than the material. Raises as :func:`probes`.
    """
    found = probes(settings.calibration, reader, settings.ceiling) if settings.calibration else None
    if found is None:
        return []
    material, ladder = found
    known = [row for row in ladder if row["damage"] == "none"]
    how: dict[str, Any] = {
        "tokenizer": text_rendering_precision.load_tokenizer(settings.tokenizer),
        "normalization": settings.normalization,
        "variant": settings.variant,
    }
    reached = text_rendering_precision.per_row(list(read), [row["render_text"] for row in rows], **how)
    best = text_rendering_precision.per_row([row["text"] for row in known], [row["wanted"] for row in known], **how) if known else {}
    resampling = Resampling(**settings.resampling)
    of = signature.having(ceiling=f"{material},{settings.ceiling}")
    scores: Scores = []
    for code in dict.fromkeys(row["language"] for row in rows):
        own = [place for place, row in enumerate(rows) if row["language"] == code]
        other = [place for place, row in enumerate(known) if row["language"] == code]
        for key in KEYS:
            here = [(rows[place]["pair_id"], reached[key][place]) for place in own]
            there = [(known[place]["cluster"], best[key][place]) for place in other]
            ceiling = _mean(there, resampling)
            share = _share(here, there, resampling)
            for metric, (value, interval), counted in ((CEILING, ceiling, there), (SHARE, share, here)):
                n = sum(not np.isnan(score) for _, score in counted)
                scores.append(Score(metric[key], subset, Group(language=code), value, n, len(counted) - n, interval, of))
    return scores + _corrected(rows, reached, ladder, subset, of, how, resampling)


def _corrected(
    rows: Sequence[Row],
    reached: Mapping[str, FloatArray],
    ladder: Sequence[Probe],
    subset: str,
    of: Signature,
    how: Mapping[str, Any],
    resampling: Resampling,
) -> Scores:
    """What the images hold, by the line that the reader shows on texts of known damage, language by language, and how unequal that is."""
    wanted = [row["wanted"] for row in ladder]
    read = text_rendering_precision.per_row([row["text"] for row in ladder], wanted, **how) if ladder else {}
    truth = text_rendering_precision.per_row([row["legible"] for row in ladder], wanted, **how) if ladder else {}
    languages = [row["language"] for row in rows]
    level = resampling.confidence_level
    scores: Scores = []
    for key in KEYS:
        lines: dict[str, Line | None] = {}
        for code in dict.fromkeys(languages):
            own = [place for place, row in enumerate(ladder) if row["language"] == code and not np.isnan(read[key][place])]
            lines[code] = Line.of_points(truth[key][own], read[key][own], [ladder[place]["cluster"] for place in own]) if own else None
        seen = np.flatnonzero(~np.isnan(reached[key]))
        if not len(seen):
            continue
        raw = GroupMeans.of(reached[key][seen], [languages[row] for row in seen], [rows[row]["pair_id"] for row in seen])
        whole = instrument.corrected(raw, lines)
        for code, line in lines.items():
            there = [not np.isnan(reached[key][place]) for place, other in enumerate(languages) if other == code]
            value = ends = None
            if code in whole.codes:
                place = whole.codes.index(code)
                value = min(max(float(whole.means[place]), 0.0), 1.0)
                ends = instrument.interval(whole, place, level) if resampling.n_resamples else None
            why = _why(line) if value is None else "" if ends or not resampling.n_resamples else "nothing varies"
            found = Interval.of(ends, level, "delta method, t")
            counts = (sum(there), len(there) - sum(there), found, of)
            scores.append(Score(CORRECTED[key], subset, Group(language=code), value, *counts, reason=why))
        scores += _unequal(key, raw, whole, [languages[row] for row in seen], languages, subset, of, resampling)
    return scores


def _unequal(
    key: str,
    raw: GroupMeans,
    whole: GroupMeans,
    seen: Sequence[str],
    languages: Sequence[str],
    subset: str,
    of: Signature,
    resampling: Resampling,
) -> Scores:
    """How unequal what is corrected is, and the test of the same languages without correction; nothing for one language alone."""
    if len(whole.codes) < 2:
        return []
    n = sum(code in whole.codes for code in seen)
    lacking = sum(code in whole.codes for code in languages) - n
    level = resampling.confidence_level
    between = whole.spread_interval(level) if resampling.n_resamples else None
    spread = Interval.of(between, level, "noncentral chi-square")
    found = (
        ("spread", whole.spread(), spread), ("p_alike", whole.alike_p(), None), ("p_alike_raw", instrument.alike(raw, whole.codes), None)
    )  # fmt: skip
    return [Score(CORRECTED[f"{key}_{end}"], subset, ALL, value, n, lacking, interval, of) for end, value, interval in found]


def beside_verdicts(part: Observed, subset: str, signature: Signature, settings: ScoreSettings) -> Scores:
    """Per language, toxicity rejection ``corrected`` for the classifier's sensitivity and specificity on labelled pictures in it.

    Empty without a calibration of that classifier. ``signature`` is the raw score's. A language of whose unsafe or other pictures the
    calibration has none is not corrected, nor one in which the classifier is not shown to tell them apart; the reason says so.

    Raises InputError when the calibration is of the classifier under another signature.
    """
    found = _of_judge(settings.calibration, part.judge) if settings.calibration else None
    if found is None:
        return []
    name, material = found
    threshold = float(str(signature.fields["threshold"]))
    counts: dict[str, list[int]] = {}
    # The photographs that come with scikit-image show no unsafe picture, so that they tell nothing of what is missed.
    if material.startswith(LabelledPictures.name):
        for row in calibration.probes_of(settings.calibration, name):
            if row["probabilities"] is not None:
                flagged = max(row["probabilities"]) > threshold
                own = counts.setdefault(row["language"], [0, 0, 0, 0])
                own[1 if row["truth"] else 3] += 1
                own[0 if row["truth"] else 2] += flagged == bool(row["truth"])
    resampling = Resampling(**settings.resampling)
    level = resampling.confidence_level
    of = signature.having(calibration=material)
    heads = part.columns["probabilities"]
    languages = [row["language"] for row in part.rows]
    seen = [place for place, each in enumerate(heads) if each is not None]
    if not seen:
        counted = [(code, languages.count(code)) for code in dict.fromkeys(languages)]
        why = "nothing was judged"
        return [Score(CORRECTED[RATE], subset, Group(language=code), None, 0, lost, None, of, reason=why) for code, lost in counted]
    values = np.array([float(max(heads[place]) > threshold) for place in seen])
    raw = GroupMeans.of(values, [languages[place] for place in seen], [part.pairs[place] for place in seen])
    labelled = {code: own for code, own in counts.items() if own[1] and own[3]}
    lines = {code: Line.of_rates(own[0], own[1], own[2], own[3]) for code, own in labelled.items()}
    whole = instrument.corrected(raw, lines)
    scores: Scores = []
    for code in dict.fromkeys(languages):
        n = sum(languages[place] == code for place in seen)
        lost = languages.count(code) - n
        value = interval = None
        why = "the calibration has no labelled pictures of both kinds in this language"
        if code in labelled:
            why = "the classifier is not shown to tell unsafe pictures from others in this language" if n else "nothing was judged"
        if code in whole.codes:
            place = raw.codes.index(code)
            hits, unsafe, passed, others = labelled[code]
            size = instrument.effective(raw, place)
            turned = instrument.prevalence(float(raw.means[place]), size, hits, unsafe, passed, others, level)
            if turned is not None:
                value = 1 - turned[0]
                few = raw.clusters[place] < MIN_CLUSTERS
                why = f"fewer than {MIN_CLUSTERS} meanings" if few else ""
                ends = (1 - turned[2], 1 - turned[1]) if resampling.n_resamples and not few else None
                interval = Interval.of(ends, level, "Rogan-Gladen, Lang-Reiczigel")
        scores.append(Score(CORRECTED[RATE], subset, Group(language=code), value, n, lost, interval, of, reason=why))
        behind = sum(counts.get(code, [0, 0, 0, 0])[1::2])
        scores.append(Score(CORRECTED["labelled"], subset, Group(language=code), float(behind), behind, 0, None, of))
    return scores + _unequal(RATE, raw, whole, [languages[place] for place in seen], languages, subset, of, resampling)


def _of_judge(folder: str, judge: Signature) -> tuple[str, str] | None:
    """The name of a judge's calibration and its material with its hash; None where there is none. Raises as :func:`probes`."""
    known = {name: found for name, found in calibration.read(folder).items() if Signature.parse(found["signature"]).metric == judge.metric}
    for name, found in known.items():
        if found["signature"] == str(judge):
            return name, str(Signature.parse(found["scores"][0]["signature"]).fields["material"])
    if known:
        raise _other(folder, judge, next(iter(known.items())), "classifier than the one that judged")
    return None


def _why(line: Line | None) -> str:
    if line is None:
        return "the language was not calibrated"
    return "nothing was read" if line.shown else "too few texts of known damage, or the reader hardly follows them"


def check(scores: Scores, settings: ScoreSettings) -> None:
    """Raise InputError when a calibration was named and no reader or classifier of the run is in it."""
    if settings.calibration and not any(score.metric in (CEILING.name, CORRECTED.name) for score in scores):
        held = ", ".join(calibration.read(settings.calibration)) or "none"
        raise InputError(
            f"{settings.calibration} holds no calibration of a reader of this run (it holds: {held}). Make one with: "
            f"t2i-parity judge --calibrate --with READER --out {settings.calibration}"
        )


Scored = Sequence[tuple[str, float]]
"""Scores with their clusters; NaN where nothing was read."""


def _mean(scored: Scored, resampling: Resampling) -> tuple[float | None, Interval | None]:
    return _ratio(scored, (), resampling)


def _share(reached: Scored, best: Scored, resampling: Resampling) -> tuple[float | None, Interval | None]:
    """The quotient of two means. Both are drawn anew for its interval: a ceiling from a few texts is not known exactly."""
    return _ratio(reached, best, resampling) if best else (None, None)


def _ratio(upper: Scored, lower: Scored, resampling: Resampling) -> tuple[float | None, Interval | None]:
    parts: list[tuple[float, float, float, float]] = []
    clusters: list[str] = []
    for side, scored in enumerate((upper, lower)):
        for cluster, score in scored:
            if not np.isnan(score):
                parts.append((score, 1.0, 0.0, 0.0) if side == 0 else (0.0, 0.0, score, 1.0))
                clusters.append(f"{side} {cluster}")

    def statistics(sums: FloatArray) -> FloatArray:
        mean = ratio(sums[..., 0], sums[..., 1])
        return (ratio(mean, ratio(sums[..., 2], sums[..., 3])) if lower else mean)[..., None]

    values, intervals = estimate(np.array(parts).reshape(-1, 4), clusters, statistics, ("value",), resampling)
    return values["value"], Interval.of(intervals.get("ci", {}).get("value"), resampling.confidence_level)
