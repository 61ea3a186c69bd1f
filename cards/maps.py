"""World maps and dot plots of the geographical study, as SVG that follows a page's colours.

The shapes stand in ``world.jsonl``, a line a country: outlines of Natural Earth's 1:110m countries (version 4.1.0, public domain, by way
of the package world-atlas 2.0.2), and for those too small for it the midpoint of its 1:50m outline, in the Equal Earth projection on
1000 units across, rounded to half a unit and cut at the antimeridian. Areas that ISO 3166-1 has no code for are drawn and never coloured.
Borders are Natural Earth's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from t2i_parity.cards.environment import visible
from t2i_parity.cards.plots import GRID, INK, MUTED, SERIES, Plot, _axes, _both, _figure, _inline, _label, _point, _Shape, latin

VIEW = (0, -4, 1000, 438)
STEPS = 5
_FAINT, _STRONG = 0.08, 1.0


@dataclass(frozen=True, slots=True)
class Map:
    """A map as SVG, its legend's swatches (opacity and label), and the codes of countries with a value that it cannot show."""

    label: str
    svg: str
    legend: Sequence[tuple[float, str]]
    not_shown: Sequence[str]


@cache
def _world() -> tuple[Mapping[str, Any], ...]:
    text = (resources.files(__package__) / "world.jsonl").read_text(encoding="utf-8")
    return tuple(json.loads(line) for line in text.splitlines())


def drawn() -> frozenset[str]:
    """The countries that a map can show, by alpha-3 code.

    >>> {"IND", "SGP"} <= drawn(), "TUV" in drawn()
    (True, False)
    """
    return frozenset(each["country"] for each in _world() if each["country"])


def shapes() -> str:
    """Every shape once, for the maps of a page to refer to."""
    paths = [f'<path id="w{number}" d="{each["path"]}"/>' for number, each in enumerate(_world()) if "path" in each]
    return f'<svg width="0" height="0" style="position: absolute" aria-hidden="true" focusable="false"><defs>{"".join(paths)}</defs></svg>'


def world_map(salt: str, values: Mapping[str, float], scale: tuple[float, float], label: str, names: Mapping[str, str]) -> Map:
    """Countries the stronger coloured the higher their value; those without one stay in the colour of the ground."""

    def opacity(value: float) -> float:
        share = (value - scale[0]) / (scale[1] - scale[0])
        return round(_FAINT + (_STRONG - _FAINT) * min(1.0, max(0.0, share)), 3)

    parts = []
    for number, each in enumerate(_world()):
        code = each["country"]
        value = values.get(code) if code else None
        style = "fill: var(--beyond)" if value is None else f"fill: var(--s0); fill-opacity: {opacity(value):g}"
        told = "" if value is None else f"<title>{escape(visible(names.get(code, code)))}: {value:.2f}</title>"
        if "path" in each:
            ground = "" if value is None else f'<use href="#w{number}" style="fill: var(--surface)"/>'
            parts.append(f'{ground}<use href="#w{number}" style="{style}">{told}</use>')
        elif value is not None:
            x, y = each["point"]
            parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="3.5" style="{style}; stroke: var(--ink); stroke-width: 0.8">{told}</circle>')
    description = f"World map of {len(values)} countries; the table below has every number."
    svg = (
        f'<svg class="map" viewBox="{" ".join(map(str, VIEW))}" width="100%" role="img" aria-labelledby={quoteattr(f"{salt}-t {salt}-d")} '
        f'focusable="false"><title id="{salt}-t">{escape(label)}</title><desc id="{salt}-d">{escape(description)}</desc>'
        f'<g style="stroke: var(--line); stroke-width: 0.5; stroke-linejoin: round">{"".join(parts)}</g></svg>'
    )
    ticks = [scale[0] + (scale[1] - scale[0]) * step / (STEPS - 1) for step in range(STEPS)]
    return Map(label, svg, [(opacity(tick), f"{tick:g}") for tick in ticks], sorted(set(values) - drawn()))


Dot = tuple[float, float | None, float | None] | None


def dot_plot(salt: str, places: Sequence[tuple[str, str, Dot, Dot]], title: str, description: str) -> Plot:
    """Places down, ratings across: a hollow dot without, a filled one with the country's name, each with its interval."""

    def draw(shape: _Shape) -> str:
        hovers: dict[str, str] = {}
        wide = shape.name == "wide"
        margin, row, top, bottom = (2.15 if wide else 1.5), (0.25 if wide else 0.36), 0.3, 0.5
        height = row * len(places)
        figure = _figure(shape.width, height + top + bottom)
        across = shape.width - margin - 0.25
        axes = _axes(figure, shape, (margin, bottom, across, height))
        axes.set_xlim(1, 5)
        axes.set_ylim(len(places) - 0.5, -0.5)
        axes.set_xticks([1, 2, 3, 4, 5])
        axes.tick_params(axis="x", labeltop=True)
        axes.set_xlabel(
            "Mean rating (1 not at all, 5 to a great extent)" if wide else "Mean rating, 1 to 5", fontsize=shape.text, color=MUTED
        )
        axes.axvline(3, color=INK, linewidth=0.9, zorder=1)
        for position, (name, code, unspecified, country) in enumerate(places):
            if position:
                axes.axhline(position - 0.5, color=GRID, linewidth=0.8, zorder=0)
            told = latin(name, latin(code, f"row {position + 1}"), 24 if wide else 16)
            _label(axes, shape, (across, row), position, told, latin(code, "") if code else "")
            for kind, dot, color, marker, hollow, shift in (
                ("without", unspecified, SERIES[1], "o", True, -0.16),
                ("with", country, SERIES[0], "s", False, 0.16),
            ):
                if dot is None:
                    continue
                value, low, high = dot
                interval = None if low is None or high is None else (max(1.0, low), min(5.0, high))
                identity = f"p{position}-{kind}"
                _point(axes, identity, value, interval, position + shift, color, marker, hollow=hollow, size=5)
                between = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
                hovers[identity] = f"{told}, {kind} the country's name: {value:.2f}{between}"
        return _inline(figure, f"{salt}-{shape.name}", title, description, hovers)

    return _both(draw)
