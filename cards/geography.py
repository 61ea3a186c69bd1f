"""The page of a geographical study: what it is handed, as plain frozen objects, its maps and dot plots, and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from t2i_parity.cards.environment import environment, visible
from t2i_parity.cards.maps import Map, dot_plot, shapes, world_map


@dataclass(frozen=True, slots=True)
class Score:
    """A mean rating and its interval; None where there is none. ``n`` counts ratings, 0 where only the mean is known."""

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0


@dataclass(frozen=True, slots=True)
class Place:
    """A country, or a noun (``code`` is then empty), by condition: without and with the country's name in the prompt."""

    name: str
    code: str
    unspecified: Score
    country: Score


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts for people: the first ``left`` columns are names, the others numbers."""

    caption: str
    note: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page: its anchor, its heading, paragraphs, and tables."""

    anchor: str
    heading: str
    paragraphs: Sequence[str]
    tables: Sequence[Table] = ()


@dataclass(frozen=True, slots=True)
class GeographyPage:
    """All that the page shows."""

    title: str
    lead: Sequence[str]
    findings: Sequence[str]
    countries: Sequence[Place]
    nouns: Sequence[Place]
    sections: Sequence[Section]
    notes: Sequence[str]


SCALE = (1.0, 5.0)


def render(page: GeographyPage) -> str:
    """One HTML page that asks for nothing outside itself and needs no JavaScript; same input, same text."""
    names = {place.code: place.name for place in page.countries}
    maps: list[Map] = []
    for label, values in (
        ("Without the country’s name in the prompt", {place.code: place.unspecified.value for place in page.countries}),
        ("With the country’s name in the prompt", {place.code: place.country.value for place in page.countries}),
    ):
        known = {code: value for code, value in values.items() if value is not None}
        if known:
            maps.append(world_map(f"map{len(maps)}", known, SCALE, label, names))
    plots = []
    for salt, what, places in (("dots-c", "country", page.countries), ("dots-n", "noun", page.nouns)):
        if places:
            title = f"Representativeness by {what}"
            description = f"Mean rating from 1 to 5 of each {what}, hollow without and filled with the country's name in the prompt."
            scores = [(place.name, place.code, _point(place.unspecified), _point(place.country)) for place in places]
            plots.append((title, dot_plot(salt, scores, title, description)))
    template = environment().get_template("geography.html.j2")
    return template.render(page=page, shapes=shapes() if maps else "", maps=maps, plots=plots, visible=visible).lstrip()


def _point(score: Score) -> tuple[float, float | None, float | None] | None:
    return None if score.value is None else (score.value, score.low, score.high)
