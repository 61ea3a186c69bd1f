"""A null for parity: what a language-blind model of a run's own quality would score in each language.

Precision goes with the length of a text, with its script and with the tokenizer: of two languages whose characters a model damages alike,
the one with longer texts has fewer whole texts right, and the one with more tokens a character loses more of them to one damaged character.
So a lower precision is no sign that a language is served worse. Here every wanted text is damaged as the run damages characters *over all
languages*, and read by the same metric; what is left between a language's score and that is the language's own.

A character is an extended grapheme cluster, what a person calls one. How many of a text's characters are damaged is beta-binomial, since
images are not alike in quality, with a share of images that are lost wholly; it is fitted by maximum likelihood, each language weighing
the same. ``evaluate`` does not carry this file: import it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.optimize
from rapidfuzz.distance import Levenshtein
from scipy.special import betaln, expit, gammaln

from .common import Answer, BoolArray, FloatArray, IntArray, Resampling, Signature
from .core import GRAPHEMES, Tokenizer, observed_texts, per_row
from .inference import GroupMeans

NAME = "parity_null"
VERSION = "1.0"
KEYS = ("precision", "ned_char")
# Texts that are damaged and read in all, at most; and how often each at least and at most.
_TEXTS = 200_000
_LEAST, _MOST = 4, 40


@dataclass(frozen=True, slots=True)
class Errors:
    """How a run damages characters, whatever their language.

    ``rate`` of them on average, ``alike`` from 0 (some images lose everything, others nothing) to 1 (all images alike); of what is done to
    one, the shares ``substituted`` and ``deleted`` (the rest: something is added beside it). ``lost`` is the share of images that show
    nothing of the text, of which ``empty`` show nothing at all; others show ``length`` characters for each wanted one.
    """

    rate: float
    alike: float
    substituted: float
    deleted: float
    lost: float
    empty: float
    length: float

    def counts(self, lengths: IntArray, rng: np.random.Generator) -> IntArray:
        """A number of damaged characters for each text of so many."""
        if self.rate <= 0:
            return np.zeros(len(lengths), np.intp)
        if self.alike >= 1:
            return rng.binomial(lengths, self.rate).astype(np.intp)
        size = self.alike / (1 - self.alike)
        rates = rng.beta(max(self.rate * size, 1e-9), max((1 - self.rate) * size, 1e-9), len(lengths))
        return rng.binomial(lengths, np.clip(rates, 0.0, 1.0)).astype(np.intp)


def fit(shown: Sequence[str], wanted: Sequence[str], languages: Sequence[str]) -> Errors:
    """The errors of a run, from what was read and what was wanted in rows of one kind.

    >>> errors = fit(["abcd", "abXd", "", "abcd"] * 9, ["abcd"] * 36, ["en", "es"] * 18)
    >>> round(errors.rate, 2), round(errors.lost, 2), errors.empty, errors.substituted
    (0.08, 0.25, 1.0, 1.0)
    """
    read, meant = GRAPHEMES.encode(list(shown)), GRAPHEMES.encode(list(wanted))
    done = np.array([_operations(one, other) for one, other in zip(meant, read, strict=True)], np.float64).reshape(-1, 4)
    substituted, deleted, inserted, kept = done.T
    lengths = np.array([len(text) for text in meant], np.float64)
    weights = _alike(languages)
    lost: BoolArray = np.asarray((kept == 0) & (lengths > 1))
    damaged = np.minimum(substituted + deleted + inserted, lengths)
    rate, alike, share = _fitted(lengths, damaged, lost, weights)
    left = ~lost
    of = np.array([float((weights * part)[left].sum()) for part in (substituted, deleted, inserted)])
    total = float(of.sum())
    empty = np.array([not text for text in shown])
    garbage = lost & ~empty
    return Errors(
        rate=rate,
        alike=alike,
        substituted=float(of[0] / total) if total else 1.0,
        deleted=float(of[1] / total) if total else 0.0,
        lost=share,
        empty=float(weights[lost & empty].sum() / weights[lost].sum()) if lost.any() else 1.0,
        length=float((weights * np.array([len(text) for text in read]))[garbage].sum() / (weights * lengths)[garbage].sum())
        if garbage.any()
        else 1.0,
    )


def _alike(languages: Sequence[str]) -> FloatArray:
    """Weights of rows under which every language weighs the same; they add up to the number of rows."""
    codes, at, counts = np.unique(np.asarray(languages, object).astype(str), return_inverse=True, return_counts=True)
    return np.asarray(len(languages) / len(codes) / counts[at], np.float64)


def _operations(meant: Sequence[Hashable], read: Sequence[Hashable]) -> tuple[int, int, int, int]:
    """Substitutions, deletions, insertions, and characters kept, of the shortest way from one text to the other."""
    substituted = deleted = inserted = 0
    for step in Levenshtein.opcodes(meant, read):
        if step.tag == "replace":
            substituted += step.src_end - step.src_start
        elif step.tag == "delete":
            deleted += step.src_end - step.src_start
        elif step.tag == "insert":
            inserted += step.dest_end - step.dest_start
    return substituted, deleted, inserted, len(meant) - substituted - deleted


def _fitted(lengths: FloatArray, damaged: FloatArray, lost: BoolArray, weights: FloatArray) -> tuple[float, float, float]:
    """Mean rate, likeness of images, and the share of lost ones: a beta-binomial with a point at losing everything, by likelihood."""
    total = float((weights * damaged).sum())
    if total == 0:
        return 0.0, 1.0, 0.0
    cells, at = np.unique(np.column_stack([lengths, damaged, lost]), axis=0, return_inverse=True)
    weight = np.bincount(at.ravel(), weights)
    n, k, gone = cells.T
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    ever = bool(lost.any())

    def unlikely(given: FloatArray) -> float:
        rate, alike = expit(given[0]), expit(given[1])
        share = expit(given[2]) if ever else 0.0
        size = alike / (1 - alike)
        a, b = rate * size, (1 - rate) * size
        usual = np.exp(choose + betaln(k + a, n - k + b) - betaln(a, b)) * (1 - share)
        return -float((weight * np.log(np.maximum(usual + share * gone, 1e-300))).sum())

    mean = min(max(float((weights * damaged)[~lost].sum()) / max(float((weights * lengths)[~lost].sum()), 1.0), 1e-4), 0.99)
    share = min(max(float((weights * lost).sum() / weights.sum()), 1e-3), 0.99)
    start = [math.log(mean / (1 - mean)), 1.0, math.log(share / (1 - share))][: 3 if ever else 2]
    bounds = [(-12.0, 12.0), (-8.0, 8.0), (-12.0, 12.0)][: len(start)]
    best = scipy.optimize.minimize(unlikely, start, method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-4, "fatol": 1e-6})
    rate, alike = float(expit(best.x[0])), float(expit(best.x[1]))
    # At the bound images do not differ.
    return rate, 1.0 if best.x[1] > 7.9 else alike, float(expit(best.x[2])) if ever else 0.0


def damaged(errors: Errors, wanted: Sequence[str], languages: Sequence[str], rng: np.random.Generator) -> list[str]:
    """Every text once, as a language-blind model with these errors would be read; what is put in comes from the language's own texts."""
    texts = GRAPHEMES.encode(list(wanted))
    seen: dict[str, list[str]] = {}
    for text, code in zip(texts, languages, strict=True):
        seen.setdefault(code, []).extend(map(str, text))
    lengths = np.array([len(text) for text in texts], np.intp)
    counts = errors.counts(lengths, rng)
    lost = rng.random(len(texts)) < errors.lost
    empty = rng.random(len(texts)) < errors.empty
    made = []
    for row, (text, code) in enumerate(zip(texts, languages, strict=True)):
        letters = seen[code]
        if lost[row]:
            size = 0 if empty[row] else max(1, round(len(text) * errors.length))
            made.append("".join(letters[place] for place in rng.integers(0, len(letters), size)) if size else "")
            continue
        if not counts[row]:
            made.append("".join(map(str, text)))
            continue
        signs = list(map(str, text))
        places = rng.permutation(len(signs))[: counts[row]]
        what, put = rng.random(len(places)), rng.integers(0, len(letters), len(places))
        for place, kind, letter in zip(places.tolist(), what.tolist(), put.tolist(), strict=True):
            if kind < errors.substituted:
                signs[place] = letters[letter]
            elif kind < errors.substituted + errors.deleted:
                signs[place] = ""
            else:
                signs[place] += letters[letter]
        made.append("".join(signs))
    return made


def compute(
    predictions: Sequence[str | None],
    references: Sequence[str],
    languages: Sequence[str],
    *,
    tokenizer: Tokenizer,
    normalization: str = "none",
    variant: str = "paper",
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Each language against a language-blind model of the quality that the run shows in the other languages.

    Args: as of :func:`t2i_parity.metrics.text_rendering_precision.core.compute`, with the language of each row; ``clusters`` are the
    meanings. ``n_resamples`` of 0 leaves out the intervals; ``seed`` draws the damage.

    Returns ``by_group`` (the languages that have a score), each with ``n``, ``n_missing``, and for ``precision`` and ``ned_char``:
    ``{key}_expected``, ``{key}_difference`` (the score less that: above 0 the language is served better than the others), with ``ci``
    that hold for all languages at once, ``{key}_p`` of the test that the difference is 0 and ``{key}_p_holm``, corrected over the
    languages. Over all languages: ``{key}_p_alike`` tests whether all differences are 0. ``errors`` are what was fitted. ``by_group`` is
    empty where fewer than two languages have a score, and without tests where one has fewer than five meanings.

    Raises ValueError as the core's ``compute``.
    """
    seen, shown, wanted = observed_texts(list(predictions), list(references), normalization)
    codes = [languages[row] for row in seen]
    missing = {code: sum(row is None for row, of in zip(predictions, languages, strict=True) if of == code) for code in set(languages)}
    fields = {"errors": "beta_binomial", "unit": "graphemes", "draws": "0", "seed": str(seed)}
    counts: Answer = {"n": len(seen), "n_missing": len(predictions) - len(seen)}
    if len(set(codes)) < 2:
        nothing: Answer = {f"{key}_p_alike": None for key in KEYS}
        return {**nothing, **counts, "by_group": {}, "signature": str(Signature(NAME, fields, VERSION))}
    level = Resampling(confidence_level, n_resamples, seed).confidence_level
    errors = fit(shown, wanted, codes)
    rng = np.random.default_rng(seed)
    draws = min(_MOST, max(_LEAST, _TEXTS // len(seen)))
    drawn = [text for _ in range(draws) for text in damaged(errors, wanted, codes, rng)]
    how = {"tokenizer": tokenizer, "normalization": normalization, "variant": variant}
    blind = per_row(drawn, list(wanted) * draws, **how)  # type: ignore[arg-type]
    own = per_row(list(shown), list(wanted), **how)  # type: ignore[arg-type]
    of = None if clusters is None else [clusters[row] for row in seen]
    answer: Answer = dict(counts)
    answer["by_group"] = {
        code: {"n": codes.count(code), "n_missing": missing[code], "ci": {}, "ci_method": {}} for code in sorted(set(codes))
    }
    for key in KEYS:
        by_draw = blind[key].reshape(draws, -1)
        answer[f"{key}_p_alike"] = _against(answer["by_group"], key, own[key], by_draw, codes, of, level, bool(n_resamples))
    answer["errors"] = {name: getattr(errors, name) for name in Errors.__slots__}
    return {**answer, "signature": str(Signature(NAME, {**fields, "draws": str(draws)}, VERSION))}


def _against(
    by_group: Answer,
    key: str,
    scores: FloatArray,
    blind: FloatArray,
    codes: Sequence[str],
    clusters: Sequence[str] | None,
    level: float,
    intervals: bool,
) -> float | None:
    """Fill in each language's numbers of one score, and return the test of them all."""
    left = scores - blind.mean(axis=0)
    found = GroupMeans.of(left, codes, clusters, low=None, high=None)
    at = np.asarray(codes, object).astype(str)
    covariance = found.covariance.copy()
    for place, code in enumerate(found.codes):
        # As much as a language-blind model's own scores vary: rows that are all perfect by chance do not show that nothing does.
        here = at == code
        under = float(blind[:, here].var(axis=0, ddof=1).sum()) / int(here.sum()) ** 2
        covariance[place, place] = max(covariance[place, place], under)
    found = GroupMeans(found.codes, found.means, covariance, found.clusters, None, None)
    contrasts = {each.code: each for each in found.contrasts(level)}
    for place, code in enumerate(found.codes):
        own = float(scores[at == code].mean())
        others = float(np.delete(found.means, place).mean())
        difference = float(found.means[place]) - others
        part, each = by_group[code], contrasts.get(code)
        part[f"{key}_expected"], part[f"{key}_difference"] = own - difference, difference
        part[f"{key}_p"], part[f"{key}_p_holm"] = (None, None) if each is None else (each.p, each.p_holm)
        if intervals:
            ends = None if each is None else each.interval
            part["ci"][f"{key}_difference"] = [None, None] if ends is None else list(ends)
            few = "none: a language has fewer than five meanings"
            part["ci_method"][f"{key}_difference"] = few if ends is None else "t, simultaneous"
    return found.alike_p()
