"""Ratings, or the study's own printed means, to everything that is said of them: one object, written as JSON, CSV and a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.countries import COUNTRIES, CountrySet, countries
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.geo_published import OVERALL, published
from t2i_parity.dataset_builder.sources import geo
from t2i_parity.validation.geography import over_representation, proxies
from t2i_parity.validation.geography.agreement import Agreements, agreements
from t2i_parity.validation.geography.figures import GDP, POPULATION, RICH_WEST_SOURCE
from t2i_parity.validation.geography.over_representation import Index, OfNoun
from t2i_parity.validation.geography.partial_pooling import Pooling, pooling
from t2i_parity.validation.geography.power import Spread, half_width_of, participants_needed, spread
from t2i_parity.validation.geography.proxies import ProxyResult, Seen
from t2i_parity.validation.geography.questions import ALL, Answer, ByCountry, answers, by_country
from t2i_parity.validation.geography.study import study_of
from t2i_parity.validation.geography.tables import GAIN, Cell, tables
from t2i_parity.validation.survey.ratings import CONDITIONS

IMAGES = (10, 20, 40, 80)
"""For how many images a participant the power calculator is asked; those of the study itself are added."""
HALF_WIDTHS = (0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True, slots=True)
class Needed:
    """Participants a country for a half-width, at so many images a participant; None where no number is enough."""

    half_width: float
    images: int
    participants: int | None


@dataclass(frozen=True, slots=True)
class Analysis:
    """All that is known of a study; ``excluded`` gives the reason by participant, and what cannot be computed is None or empty."""

    source: str
    level: float
    participants: int
    excluded: dict[str, str]
    ratings: int
    skipped: int
    countries: tuple[str, ...]
    models: tuple[str, ...]
    nouns: tuple[str, ...]
    cells: tuple[Cell, ...]
    answers: tuple[Answer, ...]
    agreement: Agreements | None
    pooling: tuple[Pooling, ...]
    over_representation: tuple[Index, ...]
    by_noun: tuple[OfNoun, ...]
    spread: Spread | None
    needed: tuple[Needed, ...]
    proxies: tuple[ProxyResult, ...]
    notes: tuple[str, ...]

    def as_json(self) -> JsonObject:
        """Plain lists, strings and numbers."""
        return {**asdict(self), "proxies": [{**asdict(each), "verdict": each.verdict} for each in self.proxies]}


_FIGURES = (
    f"Population: {POPULATION}.",
    f"GDP per capita: {GDP}.",
    f"Rich West: {RICH_WEST_SOURCE}; the study does not say which it means.",
)


def analyse(
    table: pa.Table,
    *,
    source: str,
    seen: Seen | None = None,
    k: int = 1,
    cover: CountrySet | None = None,
    half_widths: Sequence[float] = HALF_WIDTHS,
    level: float = 0.95,
) -> Analysis:
    """Analyse checked rating rows.

    ``seen`` is what judges saw of the images, for the proxies; ``k`` how many neighbours are asked; ``cover`` names the set of countries
    that estimates by partial pooling are given for, rated or not (the rated ones when None). Raises InputError when nothing can be
    analysed, or for a level outside 0 to 1.
    """
    if not 0 < level < 1:
        raise InputError(f"expected a level of the intervals between 0 and 1, got {level:g}")
    study = study_of(table)
    unrated = list(countries(cover)) if cover else []
    pooled = tuple(pooling(study, place, name, unrated, level) for place, name in enumerate(CONDITIONS))
    found = spread(study)
    own = max(1, round(study.n_ratings / len(np.unique(study.representativeness.participant))))
    needed = tuple(
        Needed(width, images, _needed(width, found.of_mean(images), level))
        for width in (half_widths if found else ())
        for images in sorted({*IMAGES, own})
        if found
    )
    results: list[ProxyResult] = []
    if seen is not None:
        for judge, similarities in seen.similarities.items():
            results += proxies.by_similarity(study, similarities, f"{judge}, similarity")
        for judge, features in seen.features.items():
            folds: tuple[proxies.Fold, ...] = ("images", "models") if len(study.models) > 1 else ("images",)
            for fold in folds:
                among = "all other images" if fold == "images" else "other models' images"
                name = f"{judge}, {k} nearest of {among}"
                results += proxies.by_neighbours(study, features, k=k, fold=fold, name=name)
    return Analysis(
        source=source,
        level=level,
        participants=study.n_participants,
        excluded=study.excluded,
        ratings=study.n_ratings,
        skipped=study.n_skipped,
        countries=study.countries,
        models=study.models,
        nouns=study.nouns,
        cells=tuple(tables(study, level)),
        answers=tuple(answers(by_country(study), level)),
        agreement=agreements(study),
        pooling=pooled,
        over_representation=tuple(over_representation.over_representation(study, level)),
        by_noun=tuple(over_representation.by_noun(study)),
        spread=found,
        needed=needed,
        proxies=tuple(results),
        notes=(
            "Intervals are of participants, by Student's t over a country's participants; the images are those of the study.",
            "A mean over countries counts each country once.",
            *_FIGURES,
        ),
    )


def _needed(half_width: float, deviation: float, level: float) -> int | None:
    if deviation <= 0:
        return None
    try:
        return participants_needed(half_width, deviation, level)
    except InputError:
        return None


def analyse_published(level: float = 0.95) -> Analysis:
    """The study's own questions, asked of the means that it printed in Tables 1 and 2; single ratings were not published."""
    codes = tuple(COUNTRIES)
    models = tuple(dict.fromkeys(each.model for each in published() if each.table == 1 and each.model not in (None, OVERALL)))
    printed = {(each.measure, each.country, each.model, each.condition): each for each in published()}
    cells: list[Cell] = []
    for measure, of_models in (("representativeness", (OVERALL, *models)), ("realism", models)):
        for model in of_models:
            for condition in CONDITIONS:
                for code in (*codes, None):
                    each = printed[measure, code, model, condition]
                    name = None if model == OVERALL else model
                    low, high = each.value - each.half_width, each.value + each.half_width
                    cells.append(Cell(measure, code, name, None, condition, each.value, low, high, 0, 0))
            for code in codes:
                name = None if model == OVERALL else model
                gain = printed[measure, code, model, "country"].value - printed[measure, code, model, "unspecified"].value
                cells.append(Cell(measure, code, name, None, GAIN, gain, None, None, 0, 0))

    def column(measure: str, model: str | None, condition: str | None) -> Any:
        return np.array([printed[measure, code, model, condition].value for code in codes])

    of = ByCountry(
        codes,
        tuple(str(model) for model in models),
        {
            (ALL if model == OVERALL else str(model), c): column("representativeness", model, c)
            for model in (OVERALL, *models)
            for c in CONDITIONS
        },
        {(str(model), c): column("realism", model, c) for model in models for c in CONDITIONS},
        column("influence", None, None),
    )
    return Analysis(
        source=f"{geo.SOURCE.title}, Tables 1 and 2",
        level=level,
        participants=540,
        excluded={},
        ratings=0,
        skipped=0,
        countries=codes,
        models=of.models,
        nouns=(),
        cells=tuple(cells),
        answers=tuple(answers(of, level)),
        agreement=None,
        pooling=(),
        over_representation=(),
        by_noun=(),
        spread=None,
        needed=(),
        proxies=(),
        notes=(
            "Means and half-widths as printed; the study does not say which interval its ± is. Single ratings were not published, so that "
            "agreement, pooling, over-representation and proxies cannot be computed.",
            *_FIGURES,
        ),
    )


def half_widths_of(participants: Sequence[int], images: int, found: Spread, level: float = 0.95) -> list[float]:
    """The half-width that so many participants a country give, each with so many images."""
    return [half_width_of(n, found.of_mean(images), level) for n in participants]
