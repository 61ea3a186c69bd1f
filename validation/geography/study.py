"""Ratings as arrays, and means of them with intervals: what every table and question of the analysis is computed from.

The intervals are of the participants: whoever rates 80 images gives 80 answers that resemble each other, so the participant is what was
sampled, and the images are those of the study. A mean's error is that of a ratio over participants, with Student's t and as many degrees
of freedom as the country has participants less one. (Resampling 20 participants a country and taking quantiles gives intervals that are
too narrow: see the benchmark ``tests/benchmarks/geography_coverage.py``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.stats
from numpy.typing import NDArray

from t2i_parity.dataset_builder.countries import COUNTRIES
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.validation.survey.ratings import CONDITIONS, excluded

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to one kind of question: a number a row each, places in the study's lists; −1 where a column is null."""

    rating: FloatArray
    participant: IntArray
    model: IntArray
    noun: IntArray
    condition: IntArray
    image: IntArray

    def of(self, rows: BoolArray) -> Answers:
        """Some of the rows."""
        return Answers(*(getattr(self, name)[rows] for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Study:
    """What the participants who pass the trick questions answered. ``country`` is each participant's, a place in ``countries``."""

    countries: tuple[str, ...]
    models: tuple[str, ...]
    nouns: tuple[str, ...]
    images: tuple[str, ...]
    participants: tuple[str, ...]
    country: IntArray
    representativeness: Answers
    realism: Answers
    influence: Answers
    excluded: dict[str, str]
    n_participants: int
    n_ratings: int
    n_skipped: int

    def rows(self, model: int | None = None, condition: int | None = None, noun: int | None = None) -> BoolArray:
        """Which representativeness answers are about a model, a condition, a noun."""
        answers = self.representativeness
        chosen = np.ones(len(answers.rating), np.bool_)
        for column, value in ((answers.model, model), (answers.condition, condition), (answers.noun, noun)):
            if value is not None:
                chosen &= column == value
        return chosen


def study_of(table: pa.Table) -> Study:
    """The study in checked rating rows; countries in the study's order, those beyond it by their codes.

    Raises InputError when no participant passes the trick questions, or none of those rated an image.
    """
    failed = excluded(table)
    everyone = table["participant"].unique().to_pylist()
    rows = table.filter(pc.invert(pc.is_in(table["participant"], pa.array(list(failed), pa.string()))))
    about = pc.equal(rows["question"], "representativeness")
    rated = rows.filter(pc.equal(rows["status"], "ok"))
    images = rated.filter(pc.equal(rated["question"], "representativeness"))
    if not len(images):
        told = (
            f" ({len(failed)} of {len(everyone)} participants fail the trick questions, e.g. {next(iter(failed.values()))})"
            if failed
            else ""
        )
        raise InputError(f"no image was rated by a participant who passes the trick questions{told}. Collect more answers")
    known = list(COUNTRIES)
    countries = sorted(rated["country"].unique().to_pylist(), key=lambda code: (known.index(code) if code in known else len(known), code))
    participants = sorted(rated["participant"].unique().to_pylist())
    models, nouns, ids = (sorted(filter(None, images[name].unique().to_pylist())) for name in ("model", "noun", "image_id"))

    def place(part: pa.Table, column: str, values: Sequence[str]) -> IntArray:
        found = pc.index_in(part[column], value_set=pa.array(list(values), pa.string()))
        return np.asarray(pc.fill_null(found, -1).to_numpy(), np.int64)

    def answers(question: str) -> Answers:
        part = rated.filter(pc.equal(rated["question"], question))
        columns = (("participant", participants), ("model", models), ("noun", nouns), ("condition", CONDITIONS), ("image_id", ids))
        return Answers(np.asarray(part["rating"].to_numpy(), np.float64), *(place(part, name, values) for name, values in columns))

    of_country = np.zeros(len(participants), np.int64)
    of_country[place(rated, "participant", participants)] = place(rated, "country", countries)
    return Study(
        tuple(countries),
        tuple(models),
        tuple(nouns),
        tuple(ids),
        tuple(participants),
        of_country,
        answers("representativeness"),
        answers("realism"),
        answers("influence"),
        failed,
        len(everyone),
        len(images),
        int(pc.sum(pc.and_(about, pc.invert(pc.equal(rows["status"], "ok")))).as_py() or 0),
    )


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval, on the scale of the ratings; None where there is no rating, or too few participants for an interval.

    ``n`` counts ratings, ``participants`` those who gave them.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    participants: int


@dataclass(frozen=True, slots=True)
class Means:
    """Mean ratings by country, and each participant's part in them, from which intervals of means and differences follow.

    ``influence`` (participants) is what a participant adds to its own country's mean, in ratings; it sums to 0 in every country.
    """

    mean: FloatArray
    influence: FloatArray
    present: BoolArray
    n: IntArray
    country: IntArray

    def __sub__(self, other: Means) -> Means:
        """The difference of two means of the same participants' answers."""
        return Means(self.mean - other.mean, self.influence - other.influence, self.present | other.present, self.n + other.n, self.country)

    @property
    def participants(self) -> IntArray:
        """How many participants of each country have a part in it."""
        return np.bincount(self.country[self.present], minlength=len(self.mean)).astype(np.int64)

    def variance(self) -> tuple[FloatArray, FloatArray]:
        """The error variance of each country's mean and its degrees of freedom; NaN and 0 below two participants."""
        count = self.participants.astype(np.float64)
        squares = np.bincount(self.country, self.influence**2, len(self.mean))
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.where(count > 1, squares * count / (count - 1), np.nan)
        return variance, np.maximum(count - 1, 0)

    def by_country(self, level: float = 0.95) -> list[Estimate]:
        """Each country's mean with its interval."""
        variance, df = self.variance()
        with np.errstate(invalid="ignore"):
            half = scipy.stats.t.ppf((1 + level) / 2, np.maximum(df, 1)) * np.sqrt(variance)
        return [
            _estimate(float(mean), float(width), int(n), int(count))
            for mean, width, n, count in zip(self.mean, half, self.n, self.participants, strict=True)
        ]

    def over_countries(self, level: float = 0.95) -> Estimate:
        """The mean over the countries that have one, each counted once, whatever their participants.

        A country with a single participant takes the mean spread of the others' participants; the degrees of freedom are Satterthwaite's.
        """
        there = ~np.isnan(self.mean)
        variance, df = (values[there] for values in self.variance())
        count = self.participants[there]
        if not there.any():
            return Estimate(None, None, None, 0, 0)
        mean = float(self.mean[there].mean())
        usable = df > 0
        if not usable.any():
            return Estimate(mean, None, None, int(self.n.sum()), int(count.sum()))
        spread = float(np.sum(variance[usable] * count[usable] * df[usable]) / np.sum(df[usable]))
        freedom = np.where(usable, df, df[usable].sum())
        variance = np.where(usable, variance, spread)
        total = float(variance.sum())
        whole = total**2 / float(np.sum(variance**2 / freedom)) if total > 0 else 1.0
        half = float(scipy.stats.t.ppf((1 + level) / 2, whole)) * np.sqrt(total) / len(variance)
        return _estimate(mean, float(half), int(self.n.sum()), int(count.sum()))


def means(study: Study, rows: BoolArray, answers: Answers | None = None) -> Means:
    """The mean rating of each country over some of the answers (representativeness, unless others are given)."""
    answers = study.representativeness if answers is None else answers
    who = answers.participant[rows]
    total = np.bincount(who, answers.rating[rows], len(study.participants))
    count = np.bincount(who, minlength=len(study.participants)).astype(np.float64)
    n = np.bincount(study.country, count, len(study.countries))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(n > 0, np.bincount(study.country, total, len(study.countries)) / n, np.nan)
        influence = np.where(count > 0, (total - mean[study.country] * count) / n[study.country], 0.0)
    return Means(mean, influence, count > 0, n.astype(np.int64), study.country)


def _estimate(value: float, half: float, n: int, participants: int) -> Estimate:
    if np.isnan(value):
        return Estimate(None, None, None, n, participants)
    if np.isnan(half):
        return Estimate(value, None, None, n, participants)
    return Estimate(value, value - half, value + half, n, participants)
