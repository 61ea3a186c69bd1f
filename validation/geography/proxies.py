"""Can a machine stand in for the raters (RQ4, §4)? Two proxies, each held against the ratings and against guessing 3.0.

*Similarity* (§4.1): of the image and the prompt that names the rater's country, as a CLIP model sees it. To become a rating it is fitted
to those of the other countries (a straight line, country by country left out). *Nearest neighbours* (§4.2): an image gets the mean rating
that the same country gave to the k images of the same noun that look most like it, itself left out; or, as in the study, only among the
images of other models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import scipy.stats

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.schema import NewRow
from t2i_parity.generate.run import Run
from t2i_parity.validation.geography.study import BoolArray, FloatArray, IntArray, Study
from t2i_parity.validation.survey.ratings import CONDITIONS

BASELINE = 3.0
"""The middle of the scale: what the study sets beside its proxies (§4.2)."""
BOTH = "both"
Fold = Literal["images", "models"]


@dataclass(frozen=True, slots=True)
class Items:
    """What is to be predicted: the mean rating that a country gave an image. One item each; places in the study's lists."""

    country: IntArray
    image: IntArray
    noun: IntArray
    model: IntArray
    condition: IntArray
    human: FloatArray

    def of(self, rows: BoolArray) -> Items:
        """Some of the items."""
        return Items(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class ProxyResult:
    """How a proxy does in one condition, or in both.

    ``pearson_countries`` is over countries' means, ``pearson_images`` over items, ``pearson_within`` the mean over countries of that over
    a country's items. ``pairwise`` is the share of pairs of images of one noun, rated differently by one country, that the proxy puts in
    the same order (an equal score counts half; 0.5 is chance); ``named_pairs`` are those of one model in which the image whose prompt
    names the country is rated higher, ``named_agreed`` the share of them in which the proxy says so too. ``difference`` is ``mse`` less
    that of the constant 3.0, each country counted once, with its 95% interval over countries; ``difference_mean`` likewise less that of
    the mean rating of all other countries, ``mse_mean``, which a fitted proxy reaches without looking at an image. None where it is not
    defined.
    """

    proxy: str
    condition: str
    n: int
    n_missing: int
    pearson_countries: float | None
    pearson_images: float | None
    pearson_within: float | None
    pairwise: float | None
    n_pairs: int
    named_agreed: float | None
    named_pairs: int
    mse: float | None
    mse_baseline: float | None
    mse_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    difference_mean: float | None
    low_mean: float | None
    high_mean: float | None

    @property
    def verdict(self) -> str:
        """Whether it predicts ratings better than the constant does, and than the mean that no image is needed for, in words."""
        if self.difference is None:
            return "cannot be compared with the constant 3.0"
        if self.low is None or self.high is None:
            word = "smaller" if self.difference < 0 else "no smaller"
            return f"{word} error than the constant 3.0, of too few countries to tell"
        if self.low > 0:
            return "worse than the constant 3.0"
        if self.high >= 0:
            return "no better than the constant 3.0"
        if self.useful:
            return "better than the constant 3.0, and than the mean of other countries"
        return "better than the constant 3.0, but no better than the mean of other countries"

    @property
    def useful(self) -> bool:
        """Whether its error is shown to be smaller than the constant's, and than that of the mean of all other countries."""
        return self.high is not None and self.high < 0 and self.high_mean is not None and self.high_mean < 0


def items(study: Study) -> Items:
    """Every image with each country that rated it."""
    answers = study.representativeness
    country = study.country[answers.participant]
    key, first, item = np.unique(country * len(study.images) + answers.image, return_index=True, return_inverse=True)
    human = np.bincount(item, answers.rating) / np.bincount(item)
    return Items(country[first], key % len(study.images), answers.noun[first], answers.model[first], answers.condition[first], human)


def by_similarity(study: Study, similarities: Mapping[tuple[str, str], float], name: str = "similarity") -> list[ProxyResult]:
    """How the similarity of image and country-specific prompt does, by (image_id, country); items without one are missing."""
    found = items(study)
    score = np.array(
        [
            similarities.get((study.images[image], study.countries[country]), np.nan)
            for image, country in zip(found.image, found.country, strict=True)
        ],
        np.float64,
    )
    results = []
    for condition, rows in _conditions(found):
        part, x = found.of(rows), score[rows]
        results.append(_result(name, condition, part, x, _calibrated(part, x)))
    return results


def by_neighbours(
    study: Study, features: Mapping[str, FloatArray], *, k: int = 1, fold: Fold = "images", name: str = "features"
) -> list[ProxyResult]:
    """How the k nearest rated images do, by the cosine of their features; both conditions are searched, as in the study (§4.2).

    ``fold`` says which images an image's own rating is predicted from: all others of its country and noun (``images``), or only those
    of other models (``models``). Raises InputError for k below 1 or features of several lengths.
    """
    if k < 1:
        raise InputError(f"nearest neighbours: expected at least 1 neighbour, got {k}")
    found = items(study)
    widths = {len(vector) for vector in features.values()}
    if len(widths) > 1:
        raise InputError(
            f"nearest neighbours: features of lengths {', '.join(map(str, sorted(widths)))}; expected one extractor's for all images"
        )
    width = widths.pop() if widths else 1
    vectors = np.full((len(study.images), width), np.nan)
    for place, image in enumerate(study.images):
        if image in features:
            length = float(np.linalg.norm(features[image], axis=-1))
            if length > 0 and np.isfinite(length):
                vectors[place] = np.asarray(features[image], np.float64) / length
    predicted = np.full(len(found.human), np.nan)
    there = ~np.isnan(vectors[found.image, 0])
    cell = found.country * max(1, len(study.nouns)) + found.noun
    for each in np.unique(cell):
        rows = np.flatnonzero((cell == each) & there)
        here = vectors[found.image[rows]]
        # Not by a BLAS, whose last digits, and so the order of near neighbours, depend on the processor.
        cosine = np.einsum("ik,jk->ij", here, here, optimize=False)
        model = found.model[rows]
        barred = np.eye(len(rows), dtype=np.bool_) if fold == "images" else model[:, None] == model[None, :]
        cosine[barred] = -np.inf
        for number, row in enumerate(rows):
            near = np.argsort(-cosine[number], kind="stable")[:k]
            near = near[np.isfinite(cosine[number][near])]
            if len(near):
                predicted[row] = found.human[rows[near]].mean()
    return [_result(name, condition, found.of(rows), predicted[rows], predicted[rows]) for condition, rows in _conditions(found)]


def _conditions(found: Items) -> list[tuple[str, BoolArray]]:
    parts = [(name, found.condition == place) for place, name in enumerate(CONDITIONS)]
    return [(name, rows) for name, rows in [*parts, (BOTH, np.ones(len(found.human), np.bool_))] if rows.any()]


def _calibrated(part: Items, score: FloatArray) -> FloatArray:
    """A rating from each score: the straight line through the scores and ratings of all other countries, within 1 to 5."""
    predicted = np.full(len(score), np.nan)
    there = ~np.isnan(score)
    for country in np.unique(part.country):
        train, test = there & (part.country != country), there & (part.country == country)
        if np.sum(train) >= 3 and score[train].std() > 0:
            x, y = score[train].mean(), part.human[train].mean()
            slope = ((score[train] - x) * (part.human[train] - y)).sum() / ((score[train] - x) ** 2).sum()
            predicted[test] = np.clip(slope * (score[test] - x) + y, 1, 5)
    return predicted


def _result(name: str, condition: str, part: Items, score: FloatArray, predicted: FloatArray) -> ProxyResult:
    scored = ~np.isnan(score)
    country, human = part.country[scored], part.human[scored]
    codes = np.unique(country)
    means = np.array([[score[scored][country == code].mean(), human[country == code].mean()] for code in codes]).reshape(-1, 2)
    within = [_pearson(score[scored][country == code], human[country == code]) for code in codes]
    defined = [r for r in within if r is not None]
    agreed, pairs, named, of_named = _pairs(part.of(scored), score[scored])
    usable = ~np.isnan(predicted)
    n = int(usable.sum())
    mse = baseline = of_mean = None
    against_constant = against_mean = _NONE
    if n:
        error, where = (predicted - part.human)[usable] ** 2, part.country[usable]
        constant = (BASELINE - part.human)[usable] ** 2
        mean = (_left_out_mean(part.of(usable)) - part.human[usable]) ** 2
        mse, baseline = float(error.mean()), float(constant.mean())
        against_constant = _difference(error - constant, where)
        if not np.isnan(mean).any():
            of_mean, against_mean = float(mean.mean()), _difference(error - mean, where)
    return ProxyResult(
        name, condition, int(scored.sum()), int((~scored).sum()), _pearson(means[:, 0], means[:, 1]), _pearson(score[scored], human),
        float(np.mean(defined)) if defined else None, agreed, pairs, named, of_named, mse, baseline, of_mean,
        *against_constant, *against_mean,
    )  # fmt: skip


_NONE: tuple[float | None, float | None, float | None] = (None, None, None)


def _difference(values: FloatArray, country: IntArray) -> tuple[float | None, float | None, float | None]:
    """The mean over countries of their means, and its 95% interval by Student's t; no interval of one country."""
    of_countries = np.array([values[country == code].mean() for code in np.unique(country)])
    mean = float(of_countries.mean())
    if len(of_countries) < 2:
        return mean, None, None
    half = float(scipy.stats.t.ppf(0.975, len(of_countries) - 1) * of_countries.std(ddof=1) / np.sqrt(len(of_countries)))
    return mean, mean - half, mean + half


def _left_out_mean(part: Items) -> FloatArray:
    """For each item the mean rating of all other countries; NaN where there is no other."""
    mean = np.full(len(part.human), np.nan)
    for country in np.unique(part.country):
        own = part.country == country
        if not own.all():
            mean[own] = part.human[~own].mean()
    return mean


def _pairs(part: Items, score: FloatArray) -> tuple[float | None, int, float | None, int]:
    """Share and number of all pairs, then of those where the image whose prompt names the country is the better one."""
    cells: dict[tuple[int, int], list[int]] = {}
    for row, key in enumerate(zip(part.country.tolist(), part.noun.tolist(), strict=True)):
        cells.setdefault(key, []).append(row)
    agreed, pairs, named, of_named = 0.0, 0, 0.0, 0
    for rows in cells.values():
        for left, right in combinations(rows, 2):
            human = part.human[left] - part.human[right]
            if human:
                pairs += 1
                way = human * (score[left] - score[right])
                right_way = 0.5 if way == 0 else float(way > 0)
                agreed += right_way
                if part.model[left] == part.model[right] and (part.condition[left] - part.condition[right]) * human > 0:
                    of_named += 1
                    named += right_way
    return (agreed / pairs if pairs else None), pairs, (named / of_named if of_named else None), of_named


def _pearson(x: FloatArray, y: FloatArray) -> float | None:
    if len(x) < 3 or x.std() < 1e-12 or y.std() < 1e-12:
        return None
    return float(scipy.stats.pearsonr(x, y).statistic)


# Reading what judges saw


@dataclass(frozen=True, slots=True)
class Seen:
    """What the judges of some runs saw: similarities by judge and (image_id, country), features by judge and image_id."""

    similarities: dict[str, dict[tuple[str, str], float]]
    features: dict[str, dict[str, FloatArray]]


def read_runs(urls: Sequence[str]) -> Seen:
    """The similarities and features in the observations of these runs; a judge of several runs must have looked in one way.

    ``clip-countries`` gives the similarity to every country's prompt, ``clip`` only to the image's own, which counts for the country that
    it names. Raises InputError when no run has such observations, or when a judge's settings differ between runs.
    """
    seen = Seen({}, {})
    signatures: dict[str, str] = {}
    for url in urls:
        run = Run.open(url)
        countries: dict[str, str] | None = None
        for judge in run.judges():
            table = run.observations(judge).read()
            names = table.column_names
            if {"countries", "similarities"} <= set(names):
                found = seen.similarities.setdefault(judge, {})
                for row in _observed(run, judge, table, signatures):
                    found.update(
                        {(row["image_id"], code): value for code, value in zip(row["countries"], row["similarities"], strict=True)}
                    )
            elif "similarity" in names:
                if countries is None:
                    images = run.images().read(["image_id", "country"]).to_pylist()
                    countries = {row["image_id"]: row["country"] for row in images if row["country"]}
                seen.similarities.setdefault(judge, {}).update(
                    {
                        (row["image_id"], countries[row["image_id"]]): row["similarity"]
                        for row in _observed(run, judge, table, signatures)
                        if row["image_id"] in countries
                    }
                )
            elif "embedding" in names:
                rows = _observed(run, judge, table, signatures)
                seen.features.setdefault(judge, {}).update({row["image_id"]: np.asarray(row["embedding"], np.float64) for row in rows})
    if not seen.similarities and not seen.features:
        raise InputError(
            f"{', '.join(urls)}: no observations that a proxy could be made of. Make some first: t2i-parity judge {urls[0]} "
            "--with clip-countries --with features"
        )
    return seen


def _observed(run: Run, judge: str, table: pa.Table, signatures: dict[str, str]) -> list[dict[str, Any]]:
    rows: list[NewRow] = table.to_pylist()
    for row in rows:
        if signatures.setdefault(judge, row["judge"]) != row["judge"]:
            raise InputError(
                f"{run.url}: the observations by {judge} were made under {row['judge']}, those before under {signatures[judge]}; "
                "expected one way. Judge all runs alike, or give the others a name of their own: --as NAME"
            )
    return [row for row in rows if row["status"] == "ok"]
