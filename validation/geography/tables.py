"""GR(c, m, ·, p) and GR(·, m, n, p): mean ratings by country and by noun, for each model and condition (§3.1, Tables 1 and 2)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

import numpy as np

from t2i_parity.validation.geography.study import Estimate, Means, Study, means
from t2i_parity.validation.survey.ratings import CONDITIONS

GAIN = "gain"
"""What stands for a condition where it is the difference: with the country's name less without it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One number of a table: of a country and all nouns, or of a noun and all countries (None: all of them)."""

    measure: str
    country: str | None
    model: str | None
    noun: str | None
    condition: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    participants: int


def tables(study: Study, level: float = 0.95) -> list[Cell]:
    """Every cell: by country and over countries for each model and all, by noun likewise, both conditions and their difference."""
    return [*_cells(study, "representativeness", level), *_realism(study, level)]


def _cells(study: Study, measure: str, level: float) -> Iterator[Cell]:
    for noun in (None, *range(len(study.nouns))):
        for model in (None, *range(len(study.models))):
            conditions = [means(study, study.rows(model, condition, noun)) for condition in range(len(CONDITIONS))]
            named = (study.models[model] if model is not None else None, study.nouns[noun] if noun is not None else None)
            yield from _of(study, measure, *named, conditions, level, by_country=noun is None)


def _realism(study: Study, level: float) -> Iterator[Cell]:
    answers = study.realism
    for model, name in enumerate(study.models):
        rows = [(answers.model == model) & (answers.condition == condition) for condition in range(len(CONDITIONS))]
        if any(each.any() for each in rows):
            yield from _of(study, "realism", name, None, [means(study, each, answers) for each in rows], level, by_country=True)
    if len(study.influence.rating):
        of_all = means(study, np.ones(len(study.influence.rating), np.bool_), study.influence)
        for code, each in zip((*study.countries, None), (*of_all.by_country(level), of_all.over_countries(level)), strict=True):
            yield _cell("influence", code, None, None, "both", each)


def _of(
    study: Study, measure: str, model: str | None, noun: str | None, conditions: list[Means], level: float, *, by_country: bool
) -> Iterator[Cell]:
    unspecified, country = conditions
    for condition, each in zip((*CONDITIONS, GAIN), (unspecified, country, country - unspecified), strict=True):
        if by_country:
            for code, estimate in zip(study.countries, each.by_country(level), strict=True):
                yield _cell(measure, code, model, noun, condition, estimate)
        yield _cell(measure, None, model, noun, condition, each.over_countries(level))


def _cell(measure: str, country: str | None, model: str | None, noun: str | None, condition: str, estimate: Estimate) -> Cell:
    return Cell(measure, country, model, noun, condition, estimate.value, estimate.low, estimate.high, estimate.n, estimate.participants)


def as_csv(cells: Iterable[Cell]) -> bytes:
    """The cells as CSV; what is missing is empty."""
    stream = io.StringIO(newline="")
    writer = csv.DictWriter(stream, list(Cell.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    for cell in cells:
        writer.writerow({name: "" if value is None else value for name, value in asdict(cell).items()})
    return stream.getvalue().encode("utf-8")
