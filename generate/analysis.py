"""Analyses over a scored run: what lies behind the differences between languages (LingT2I §4, Appendix E).

Each function takes columns, one cell a row (None where nothing was observed), and returns records: plain dicts, one a line of a table,
with the rows that each stands on (``n``, ``n_missing``). None stands for a number that is not defined. Intervals are percentile
bootstraps over meanings, the unit in which all languages are asked the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np
import scipy.stats

from t2i_parity.dataset_builder.controls import NEUTRAL, TAGGED, TRANSLITERATED, control_of
from t2i_parity.dataset_builder.controls.culture_tags import CULTURES, expected_culture
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.prompts import Prompt, rows_of
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.metrics._common import FloatArray, Mean, Paired, Resampling, estimate, ratio
from t2i_parity.metrics._inference import new_group_interval
from t2i_parity.metrics.bias_entropy import core as bias_entropy
from t2i_parity.metrics.clip_score.spec import SPEC as CLIP_SCORE
from t2i_parity.metrics.cross_lingual_gap import core as cross_lingual_gap
from t2i_parity.metrics.culture_alignment import core as culture_alignment
from t2i_parity.metrics.text_rendering_precision import core as text_rendering_precision

Record: TypeAlias = dict[str, Any]
"""A line of a table: plain numbers and words by column."""
Records: TypeAlias = list[Record]
Encode = Callable[[list[str]], Sequence[Sequence[Any]]]

FEW_PEOPLE = 10
"""Below so many people, a bias score of a cell is not told: an even spread cannot show in a handful."""


@dataclass(frozen=True, slots=True)
class Table:
    """One analysis: its name in JSON, its title, what must be known to read it, and its records."""

    name: str
    title: str
    about: str
    records: Records


# Fragmentation


def fragmentation(texts: Sequence[str], languages: Sequence[str], pairs: Sequence[str], encode: Encode) -> Records:
    """How many tokens a tokenizer makes of each language's texts: the mean over prompts, and against English of the same meaning.

    Args:
        texts: what the model got.
        languages: of each text.
        pairs: the meaning of each text.
        encode: texts to their tokens, one list a text, without special tokens.

    A record has ``language``, ``tokens`` (a prompt), ``tokens_per_word`` (words of Unicode's default segmentation that hold a letter or
    digit: for Chinese and Japanese about a character each), ``tokens_per_character`` (user-perceived ones, without spaces),
    ``relative_to_english`` (tokens over those of the English text of the same meaning; None where there is none) and ``n``.

    >>> fragmentation(["a cat", "une chatte"], ["en", "fr"], ["1", "1"], lambda texts: [list(text) for text in texts])[1]["tokens_per_word"]
    5.0
    """
    units = _units(texts, languages, pairs, encode)
    rows_of: dict[str, list[int]] = {}
    for row, code in enumerate(languages):
        rows_of.setdefault(code, []).append(row)
    records = []
    for code, here in rows_of.items():
        means = {name: _mean(value for row in here if (value := values[row]) is not None) for name, values in units.items()}
        records.append({"language": code, **means, "n": len(here)})
    return records


def _units(texts: Sequence[str], languages: Sequence[str], pairs: Sequence[str], encode: Encode) -> dict[str, list[float | None]]:
    """The measures of :func:`fragmentation` of each text; None where there is nothing to divide by."""
    from uniseg.graphemecluster import grapheme_clusters
    from uniseg.wordbreak import words

    tokens = [len(row) for row in encode(list(texts))]
    n_words = [sum(any(sign.isalnum() for sign in word) for word in words(text)) for text in texts]
    n_signs = [sum(not cluster.isspace() for cluster in grapheme_clusters(text)) for text in texts]
    english = {pair: count for pair, language, count in zip(pairs, languages, tokens, strict=True) if language == "en"}
    n_english = [english.get(pair, 0) for pair in pairs]

    def over(counts: Sequence[int]) -> list[float | None]:
        return [count / of if of else None for count, of in zip(tokens, counts, strict=True)]

    return {
        "tokens": [float(count) for count in tokens],
        "tokens_per_word": over(n_words),
        "tokens_per_character": over(n_signs),
        "relative_to_english": over(n_english),
    }


def fragmentation_against_scores(
    texts: Sequence[str],
    languages: Sequence[str],
    pairs: Sequence[str],
    scores: Sequence[float | None],
    encode: Encode,
    resampling: Resampling,
) -> Records:
    """Spearman's ρ over languages between mean fragmentation and mean score (§4.4, Tokenization Analysis: ρ = −0.89 for CLIPScore).

    One record a measure of :func:`fragmentation`: ``rho`` in [−1, 1], ``ci`` over meanings, ``p_value`` (two-sided, permuting languages:
    all orders up to seven languages, 9,999 at random beyond), ``n_languages``, ``n``, ``n_missing``. Fewer than three languages, or
    equal values throughout, give None.
    """
    units = _units(texts, languages, pairs, encode)
    known = [(row, score) for row, score in enumerate(scores) if score is not None and np.isfinite(score)]
    codes = list(dict.fromkeys(languages[row] for row, _ in known))
    place_of = {pair: place for place, pair in enumerate(dict.fromkeys(pairs[row] for row, _ in known))}
    language_of = {code: place for place, code in enumerate(codes)}
    records = []
    for measure in ("tokens_per_word", "tokens_per_character", "relative_to_english"):
        # Sums and counts of the measure and of the score, a meaning and language each.
        cells = np.zeros((len(place_of), 4, len(codes)))
        for row, score in known:
            if (unit := units[measure][row]) is not None:
                cells[place_of[pairs[row]], :, language_of[languages[row]]] += np.array([unit, 1, score, 1])
        kept = [place for place in range(len(codes)) if cells[:, 1, place].sum()]
        used = cells[:, :, kept].reshape(len(place_of), 4 * len(kept))
        # No language has the measure where English is not among them, or no score at all.
        answer: Record = {"rho": None}
        ci: Record = {"ci": {"rho": [None, None]}} if resampling.n_resamples else {}
        if kept:
            answer, ci = estimate(used, None, lambda sums, k=len(kept): _rho_of_sums(sums, k), ("rho",), resampling)  # type: ignore[misc]
        totals = used.sum(axis=0).reshape(4, len(kept))
        records.append(
            {
                "measure": measure,
                **answer,
                **ci,
                "p_value": _permutation_p(ratio(totals[0], totals[1]), ratio(totals[2], totals[3]), resampling.seed),
                "n_languages": len(kept),
                "n": len(known),
                "n_missing": len(scores) - len(known),
            }
        )
    return records


def _rho_of_sums(sums: FloatArray, languages: int) -> FloatArray:
    """Spearman's ρ over languages, of sums (…, 4·languages) of a measure, its count, a score and its count."""
    parts = sums.reshape(*sums.shape[:-1], 4, languages)
    if languages < 3:
        return np.full((*sums.shape[:-1], 1), np.nan)
    return _rho(ratio(parts[..., 0, :], parts[..., 1, :]), ratio(parts[..., 2, :], parts[..., 3, :]))[..., None]


def _rho(a: FloatArray, b: FloatArray) -> FloatArray:
    """Spearman's ρ along the last axis; NaN where a value is missing or all are equal.

    >>> _rho(np.array([1.0, 2.0, 3.0]), np.array([9.0, 7.0, 1.0])).item()
    -1.0
    """
    missing = np.isnan(a).any(axis=-1) | np.isnan(b).any(axis=-1)
    x, y = (scipy.stats.rankdata(np.nan_to_num(values), axis=-1) for values in (a, b))
    x, y = x - x.mean(axis=-1, keepdims=True), y - y.mean(axis=-1, keepdims=True)
    found = ratio((x * y).sum(axis=-1), np.sqrt((x * x).sum(axis=-1) * (y * y).sum(axis=-1)))
    answer: FloatArray = np.where(missing, np.nan, np.clip(found, -1, 1))
    return answer


def _permutation_p(a: FloatArray, b: FloatArray, seed: int, draws: int = 9_999) -> float | None:
    from itertools import permutations

    observed = float(_rho(a, b)) if len(a) > 2 else np.nan
    if not np.isfinite(observed):
        return None
    if len(a) <= 7:
        orders = np.array(list(permutations(range(len(a)))))
        return float(np.mean(np.abs(_rho(a[orders], np.broadcast_to(b, orders.shape))) >= abs(observed) - 1e-12))
    rng = np.random.default_rng(seed)
    orders = rng.permuted(np.broadcast_to(np.arange(len(a)), (draws, len(a))), axis=1)
    beyond = np.sum(np.abs(_rho(a[orders], np.broadcast_to(b, orders.shape))) >= abs(observed) - 1e-12)
    return float((beyond + 1) / (draws + 1))


# Trade-offs


def trade_offs(
    scores: Mapping[str, Sequence[float | None]], pairs: Sequence[str], groups: Sequence[str], resampling: Resampling
) -> Records:
    """Spearman's ρ between each two scores of the same images, in each group: do they rise together, or is one bought with the other?

    As TRIG has it for pairs of dimensions, a language at a time (LingT2I §4.2). Scores of one meaning in one group (several seeds) are
    averaged first. A record has ``first``, ``second``, ``group``, ``rho``, ``ci``, ``n`` (meanings with both) and ``n_missing``.

    >>> answer = trade_offs({"a": [1, 2, 3], "b": [3, 2, 1]}, ["x", "y", "z"], ["en"] * 3, Resampling(n_resamples=0))
    >>> answer[0]["rho"], answer[0]["n"]
    (-1.0, 3)
    """
    records = []
    for first, second in combinations(scores, 2):
        for group in dict.fromkeys(groups):
            here = [row for row, name in enumerate(groups) if name == group]
            both: dict[str, list[tuple[float, float]]] = {}
            for row in here:
                a, b = scores[first][row], scores[second][row]
                if a is not None and b is not None and np.isfinite(a) and np.isfinite(b):
                    both.setdefault(pairs[row], []).append((a, b))
            means = np.array([np.mean(values, axis=0) for values in both.values()]).reshape(-1, 2)
            asked = len({pairs[row] for row in here})
            records.append(
                {
                    "first": first,
                    "second": second,
                    "group": group,
                    **_spearman(means, resampling),
                    "n": len(means),
                    "n_missing": asked - len(means),
                }
            )
    return records


def _spearman(means: FloatArray, resampling: Resampling) -> Record:
    """ρ of two columns, and its interval over the rows."""
    rho = float(_rho(means[:, 0], means[:, 1])) if len(means) > 2 else np.nan
    answer: Record = {"rho": rho if np.isfinite(rho) else None}
    if not resampling.n_resamples:
        return answer
    if answer["rho"] is None:
        return {**answer, "ci": {"rho": [None, None]}}
    rng = np.random.default_rng(resampling.seed)
    drawn = []
    # In blocks, so that memory stays flat: 10 MB of ranks at most.
    block = max(1, 600_000 // len(means))
    for start in range(0, resampling.n_resamples, block):
        chosen = rng.integers(len(means), size=(min(block, resampling.n_resamples - start), len(means)))
        drawn.append(_rho(means[chosen, 0], means[chosen, 1]))
    values = np.concatenate(drawn)
    values = values[np.isfinite(values)]
    tails = (1 - resampling.confidence_level) / 2
    bounds = (
        [float(bound) for bound in np.quantile(values, [tails, 1 - tails])] if len(values) > 0.95 * resampling.n_resamples else [None, None]
    )
    return {**answer, "ci": {"rho": bounds}}


# Branches, scripts, people, cultures


def by_kind(scores: Sequence[float | None], languages: Sequence[str], pairs: Sequence[str], kind: str, resampling: Resampling) -> Records:
    """The mean of a score over the languages of each ``branch`` or ``script`` (§4.1): every language counts alike, however many rows.

    A record has the ``languages`` that the mean is over, and those ``without_score`` that it lacks; those that lack any come last.
    """
    names = [str(getattr(LANGUAGES[code], kind)) for code in languages]
    answer = cross_lingual_gap.compute(
        list(scores), list(languages), groups=names, clusters=list(pairs),
        confidence_level=resampling.confidence_level, n_resamples=resampling.n_resamples, seed=resampling.seed,
    )  # fmt: skip
    scored = {code for code, score in zip(languages, scores, strict=True) if score is not None and np.isfinite(score)}
    records = []
    for name, part in answer["by_group"].items():
        members = sorted({code for code, of in zip(languages, names, strict=True) if of == name}, key=list(LANGUAGES).index)
        ci = {"ci": {"mean": part["ci"]["mean"]}} if "ci" in part else {}
        records.append(
            {
                kind: name,
                "languages": [code for code in members if code in scored],
                "without_score": [code for code in members if code not in scored],
                "mean": part["mean"],
                **ci,
                "n": part["n"],
                "n_missing": part["n_missing"],
            }
        )
    # A mean that lacks a language is no mean of its branch, and takes no place before one that lacks none.
    return sorted(records, key=lambda record: (bool(record["without_score"]), -(record["mean"] if record["mean"] is not None else -np.inf)))


def new_language(scores: Mapping[str, Sequence[float | None]], languages: Sequence[str], resampling: Resampling) -> Records:
    """The mean score that is to be expected in a language that is not among the run's, were it one of the same kind, asked as much.

    A record has ``score``, ``languages`` (how many have a score), ``expected`` with its prediction interval as ``ci``, ``n`` and
    ``n_missing``. Fewer than three languages tell nothing of another, and have no record; so have scores when no intervals are wanted.

    >>> (told,) = new_language({"a": [0.6, 0.7, 0.8, 0.7]}, ["en", "hi", "ar", "fr"], Resampling())
    >>> round(told["expected"], 3), [round(end, 3) for end in told["ci"]["expected"]]
    (0.7, [0.409, 0.991])
    """
    records = []
    for name, values in scores.items() if resampling.n_resamples else ():
        known: dict[str, list[float]] = {}
        for code, value in zip(languages, values, strict=True):
            if value is not None and np.isfinite(value):
                known.setdefault(code, []).append(float(value))
        ends = new_group_interval(np.array([np.mean(each) for each in known.values()]), float(resampling.confidence_level))
        if ends is None:
            continue
        if all(0 <= value <= 1 for each in known.values() for value in each):
            ends = max(ends[0], 0.0), min(ends[1], 1.0)
        n = sum(map(len, known.values()))
        mean = float(np.mean([np.mean(each) for each in known.values()]))
        counts = {"languages": len(known), "expected": mean, "ci": {"expected": list(ends)}, "n": n, "n_missing": len(values) - n}
        records.append({"score": name, **counts})
    return records


def demographics(people: Sequence[Sequence[Mapping[str, Any]] | None], languages: Sequence[str]) -> Records:
    """Who is shown, by language (Figure 5): the share of each race, gender and age among the people that the annotator could tell.

    A record has ``language``, ``attribute``, ``category``, ``share`` in [0, 1], ``n`` (people with that attribute told) and ``n_missing``
    (people, or images without an answer, for whom it was not).
    """
    persons = [(code, person) for code, seen in zip(languages, people, strict=True) for person in (seen or [{}])]
    if not any(person for _, person in persons):
        return []
    answer = bias_entropy.compute(
        *([person.get(name) for _, person in persons] for name in bias_entropy.ATTRIBUTES),
        groups=[code for code, _ in persons],
        n_resamples=0,
    )
    records = []
    for code, part in answer["by_group"].items():
        total = sum(language == code for language, _ in persons)
        for attribute in bias_entropy.ATTRIBUTES:
            counts = part["counts"][attribute]
            n = sum(counts.values())
            for category, count in counts.items():
                share = count / n if n else None
                records.append(
                    {"language": code, "attribute": attribute, "category": category, "share": share, "n": n, "n_missing": total - n}
                )
    return records


def bias_by_alignment(
    people: Sequence[Sequence[Mapping[str, Any]] | None],
    alignment: Sequence[float | None],
    languages: Sequence[str],
    *,
    buckets: int = 5,
    edges: Sequence[float] | None = None,
) -> Records:
    """Bias scores in shared intervals of image-text alignment (§4.4, Figure 10): is a language's imbalance only its weaker alignment?

    Args:
        people: those seen in each image; None or [] where there are none.
        alignment: of each image, as CLIPScore.
        languages: of each image.
        buckets: how many intervals, equally full over all languages together; unless
        edges: gives their inner bounds, ascending, which must not come from the run itself where runs are compared.

    A record has ``low`` and ``high`` of the interval, ``language`` ("all" beside each), ``bias_score`` (None below ten people: so few
    cannot be spread evenly), ``n`` people, ``images``. Images without alignment are in none.
    """
    known = [row for row, value in enumerate(alignment) if value is not None and np.isfinite(value)]
    if not known:
        return []
    values = np.array([alignment[row] for row in known], np.float64)
    inner = list(edges) if edges is not None else [float(bound) for bound in np.quantile(values, np.linspace(0, 1, buckets + 1)[1:-1])]
    if inner != sorted(set(inner)):
        if edges is not None:
            raise ValueError(f"edges: expected ascending numbers, got {list(edges)}")
        inner = sorted(set(inner))
    where = np.searchsorted(inner, values, side="right")
    bounds = [float(values.min()), *inner, float(values.max())]
    records = []
    for bucket in range(len(inner) + 1):
        here = [row for row, place in zip(known, where, strict=True) if place == bucket]
        for code in ["all", *dict.fromkeys(languages)]:
            images = [row for row in here if code in ("all", languages[row])]
            persons = [person for row in images for person in (people[row] or [])]
            score = None
            if len(persons) >= FEW_PEOPLE:
                columns = [[person.get(name) for person in persons] for name in bias_entropy.ATTRIBUTES]
                score = bias_entropy.compute(*columns, n_resamples=0)["bias_score"]
            records.append(
                {
                    "low": bounds[bucket],
                    "high": bounds[bucket + 1],
                    "language": code,
                    "bias_score": score,
                    "n": len(persons),
                    "images": len(images),
                }
            )
    return records


def culture_statistics(culture: Sequence[str | None], rows: Sequence[Prompt], resampling: Resampling) -> Records:
    """Which cultures images show (§4.3, Cultural Tendency): the rates of ``culture_alignment``, over all rows and by language."""
    kept = [row for row, each in enumerate(rows) if control_of(each) is None and expected_culture(each) is not None]
    if not kept:
        return []
    answer = culture_alignment.compute(
        [culture[row] for row in kept],
        [str(expected_culture(rows[row])) for row in kept],
        groups=[rows[row]["language"] for row in kept],
        clusters=[rows[row]["pair_id"] for row in kept],
        confidence_level=resampling.confidence_level, n_resamples=resampling.n_resamples, seed=resampling.seed,
    )  # fmt: skip
    keys = (*culture_alignment.KEYS, "counts", "ci", "n", "n_missing")
    return [
        {"language": code, **{key: part[key] for key in keys if key in part}}
        for code, part in (("all", answer), *answer["by_group"].items())
    ]


# Contrasts


def culture_tag_contrast(culture: Sequence[str | None], rows: Sequence[Prompt], resampling: Resampling) -> Records:
    """Is a culture shown because of the prompt's language, or only when it is named (§4.4, Culture-tag Analysis)?

    The target culture's rate among judged images in three versions of one meaning: ``translated`` into its language, ``tagged``
    (English with the culture named) and ``neutral`` (English without). Only meanings that have all three judged count. One record a
    target language and one over "all": the rates, ``language_effect`` (translated − neutral) and ``tag_effect`` (tagged − neutral) with
    ``ci``, ``n`` meanings (of "all": meanings times targets) and ``n_missing``.
    """
    seen: dict[tuple[str, str], list[str | None]] = {}
    for row, shown in zip(rows, culture, strict=True):
        control = control_of(row)
        if control is not None and control.kind in (TAGGED, NEUTRAL):
            seen.setdefault((control.of or NEUTRAL, row["pair_id"]), []).append(shown)
        elif control is None and expected_culture(row) is not None:
            seen.setdefault((f"in {row['language']}", row["pair_id"]), []).append(shown)
    targets = sorted({code for code, _ in seen if code in CULTURES}, key=list(CULTURES).index)
    units: dict[str, list[tuple[str, list[float]]]] = {}
    missing: dict[str, int] = {}
    for code in targets:
        wanted = CULTURES[code].expected.casefold()
        for pair in dict.fromkeys(pair for of, pair in seen if of == code):
            versions = [[shown for shown in seen.get((of, pair), []) if shown is not None] for of in (f"in {code}", code, NEUTRAL)]
            if all(versions):
                rates = [float(np.mean([shown.strip().casefold() == wanted for shown in version])) for version in versions]
                units.setdefault(code, []).append((pair, rates))
            else:
                missing[code] = missing.get(code, 0) + 1
    names = ("translated", "tagged", "neutral", "language_effect", "tag_effect")
    rated: dict[str, Mean | Paired] = {name: Mean(at, 3) for at, name in enumerate(names[:3])}
    kinds = {**rated, "language_effect": Paired(2, 0, 3), "tag_effect": Paired(2, 1, 3)}

    def statistics(sums: FloatArray) -> FloatArray:
        rates = ratio(sums[..., :3], sums[..., 3:])
        return np.concatenate([rates, rates[..., :2] - rates[..., 2:3]], axis=-1)

    records = []
    every = [unit for code in targets for unit in units.get(code, [])]
    for code, chosen in [("all", every), *((code, units.get(code, [])) for code in targets)] if targets else []:
        parts = np.array([[*rates, 1.0] for _, rates in chosen]).reshape(-1, 4)
        answer, ci = estimate(parts, [pair for pair, _ in chosen], statistics, names, resampling, kinds)
        lacking = sum(missing.values()) if code == "all" else missing.get(code, 0)
        records.append({"target": code, **answer, **ci, "n": len(chosen), "n_missing": lacking})
    return records


def transliteration_contrast(scores: Sequence[float | None], rows: Sequence[Prompt], resampling: Resampling) -> Records:
    """Does a prompt fare better in Latin letters (§4.4, Transliteration Control)? Scores of the same meaning and language in both forms.

    One record a language and one over "all": ``original``, ``transliterated``, ``difference`` (the latter minus the former) with ``ci``
    over meanings, ``n`` pairs and ``n_missing``.
    """
    forms: dict[tuple[str, str, bool], list[float]] = {}
    asked: set[tuple[str, str]] = set()
    for row, score in zip(rows, scores, strict=True):
        control = control_of(row)
        latin = control is not None and control.kind == TRANSLITERATED
        if latin:
            asked.add((row["language"], row["pair_id"]))
        if score is not None and np.isfinite(score) and (latin or control is None):
            forms.setdefault((row["language"], row["pair_id"], latin), []).append(float(score))
    both = {key: tuple(float(np.mean(forms[(*key, latin)])) for latin in (False, True)) for key in sorted(asked)
            if (*key, False) in forms and (*key, True) in forms}  # fmt: skip

    def statistics(sums: FloatArray) -> FloatArray:
        means = ratio(sums[..., :2], sums[..., 2:])
        return np.concatenate([means, means[..., 1:] - means[..., :1]], axis=-1)

    records = []
    for code in ["all", *dict.fromkeys(language for language, _ in sorted(asked))] if asked else []:
        chosen = {key: values for key, values in both.items() if code in ("all", key[0])}
        parts = np.array([[*values, 1.0] for values in chosen.values()]).reshape(-1, 3)
        names = ("original", "transliterated", "difference")
        kinds: dict[str, Mean | Paired] = {
            "original": Mean(0, 2, None, None),
            "transliterated": Mean(1, 2, None, None),
            "difference": Paired(0, 1, 2, bound=None),
        }
        answer, ci = estimate(parts, [pair for _, pair in chosen], statistics, names, resampling, kinds)
        lacking = sum(code in ("all", language) for language, _ in asked) - len(chosen)
        records.append({"language": code, **answer, **ci, "n": len(chosen), "n_missing": lacking})
    return records


# A run


def analyse(
    run: Run, *, tokenizer: str | None = None, resampling: Resampling, buckets: int = 5, edges: Sequence[float] | None = None
) -> list[Table]:
    """Every analysis that a scored run has the columns for. ``tokenizer`` is a hub id, a folder or "tekken"; None leaves fragmentation out.

    Raises InputError when the run is no scored run of images, or has nothing to analyse.
    """
    if run.record["kind"] != "generation" or not run.scored().files():
        raise InputError(f"{run.url} is no scored run of images; score it first: t2i-parity score {run.url}")
    table = run.scored().read()
    columns = {name: table[name].to_pylist() for name in table.column_names if name != "image"}
    rows = rows_of(table)
    judges = {judge.replace("-", "_"): judge for judge in run.judges()}
    analysed = [spec.unequal for spec in specs().values() if spec.unequal]
    scores: dict[str, list[float | None]] = {}
    aligned: list[list[float | None]] = []
    for name, values in columns.items():
        for prefix, judge in judges.items():
            for column in analysed:
                if name == f"{prefix}_{column}" and any(value is not None for value in values):
                    scores[f"{judge} {column}"] = values
                    aligned += [values] if column == CLIP_SCORE.unequal else []
    plain = [row for row, each in enumerate(rows) if control_of(each) is None]
    languages, pairs = [rows[row]["language"] for row in plain], [rows[row]["pair_id"] for row in plain]
    found: list[Table] = []

    def add(name: str, title: str, about: str, records: Records) -> None:
        if records:
            found.append(Table(name, title, about, records))

    own = {name: [values[row] for row in plain] for name, values in scores.items()}
    if tokenizer is not None:
        loaded = _tokenizer(tokenizer)
        texts = [rows[row]["render_text"] or rows[row]["prompt"] for row in plain]
        about = "Means over prompts; of text rendering, the text to render."
        add("fragmentation", f"Tokens of the prompts, by {loaded.name}", about, fragmentation(texts, languages, pairs, loaded.encode))
        for name, values in own.items():
            records = fragmentation_against_scores(texts, languages, pairs, values, loaded.encode, resampling)
            add(f"fragmentation against {name}", f"Fragmentation against {name}", "Spearman’s ρ of the languages’ means.", records)
    for name, values in own.items():
        for kind in ("branch", "script"):
            add(f"{kind} {name}", f"{name} by {kind}", "Means over languages.", by_kind(values, languages, pairs, kind, resampling))
        records = transliteration_contrast(scores[name], rows, resampling)
        add(f"transliteration {name}", f"{name} in the own script and in Latin letters", "The same meanings in both.", records)
    about = "Of a language like these, asked as much: Student’s t over the languages’ means."
    add("new_language", "What to expect in a language that is not among these", about, new_language(own, languages, resampling))
    records = trade_offs(own, pairs, languages, resampling)
    add("trade_offs", "Trade-offs between scores of the same images", "Spearman’s ρ over meanings.", records)
    alignment = [aligned[0][row] for row in plain] if aligned else None
    for prefix, judge in judges.items():
        if (people := columns.get(f"{prefix}_people")) is not None:
            seen = [people[row] for row in plain]
            add(
                f"demographics {judge}",
                f"Who is shown, by {judge}",
                "Shares of the people of whom it could be told.",
                demographics(seen, languages),
            )
            if alignment is not None:
                records = bias_by_alignment(seen, alignment, languages, buckets=buckets, edges=edges)
                about = f"Bias scores; none below {FEW_PEOPLE} people."
                add(f"bias_by_alignment {judge}", f"Bias by how well images fit their prompts, {judge}", about, records)
        if (culture := columns.get(f"{prefix}_culture")) is not None:
            add(
                f"culture {judge}",
                f"Cultures shown, by {judge}",
                "Rates among judged images.",
                culture_statistics(culture, rows, resampling),
            )
            records = culture_tag_contrast(culture, rows, resampling)
            about = "Rates of the target culture in the same meanings."
            add(f"culture_tags {judge}", f"Language against culture tag, {judge}", about, records)
    if not found:
        raise InputError(
            f"{run.url} holds no score of single images ({', '.join(analysed)}), people or cultures to analyse; "
            "judge it with others, or give --tokenizer"
        )
    return found


# Inside


def _tokenizer(name: str) -> Any:
    try:
        return text_rendering_precision.load_tokenizer(name)
    except (ValueError, RuntimeError) as error:
        raise InputError(str(error)) from error


def _mean(values: Iterable[float]) -> float | None:
    given = list(values)
    return float(np.mean(given)) if given else None
