"""The report's sections as its template takes them, and their plots: dots with intervals, levels as a heat map, shares as stacked bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from markupsafe import Markup
from matplotlib.ticker import MaxNLocator

from t2i_parity.cards.environment import visible
from t2i_parity.cards.plots import (
    GRID,
    INK,
    MARKERS,
    MUTED,
    SERIES,
    SURFACE,
    Plot,
    Style,
    _axes,
    _both,
    _figure,
    _inline,
    _label,
    _point,
    _Shape,
    heat_map,
    latin,
)
from t2i_parity.cards.report_audit import AuditSection, Row, merged
from t2i_parity.cards.report_sections import Block, Dots, Levels, Section, Shares
from t2i_parity.metrics._common import Signature


def series_look(number: int) -> Style:
    """The look of a series that is no run, by its place."""
    return Style(SERIES[(number + number // 8) % 8], MARKERS[number % 8])


def swatch(number: int) -> str:
    """The colour of a category, by its place, as a small inline SVG for people only: its name stands beside it."""
    return (
        '<svg class="key" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">'
        f'<path d="M1 1h14v14h-14z" style="fill: var(--s{number % 8})"/></svg>'
    )


def _told(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}".replace("-", "−")


def _named(rows: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """(name, code) of rows in Latin letters; the code empty where it would say the same."""
    told = []
    for number, (name, code) in enumerate(rows):
        short = latin(code, "", 12)
        shown = latin(name, short or f"row {number + 1}", 34)
        told.append((shown, "" if short == shown else short))
    return told


def _margin(shape: _Shape, named: Sequence[tuple[str, str]]) -> tuple[float, list[tuple[str, str]]]:
    """The inches that names of rows need, and the names, cut where a phone has no room for all of one."""
    room = 3.2 if shape.name == "wide" else 1.8
    sign = shape.text * 0.56 / 72
    fitting = int((room - 0.25) / sign)
    cut = [(name if len(name) <= fitting else name[: fitting - 1] + "…", code) for name, code in named]
    beside = 0.55 if shape.name == "wide" and any(code for _, code in cut) else 0
    needed = max(len(name) for name, _ in cut) * sign + 0.25 + beside
    return max(0.8, min(needed, room + beside)), cut


def dots_plot(salt: str, dots: Dots, look: Mapping[str, Style], title: str, description: str) -> Plot:
    """Rows down, the value across; one dot with its interval a series. The axis always holds 0, and goes to 1 where values come near."""
    ends = [dot.value for dot in dots.dots.values() if dot.value is not None]
    ends += [end for dot in dots.dots.values() if dot.interval for end in (dot.interval.low, dot.interval.high)]
    ends += [] if dots.reference is None else [dots.reference]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    if low < 0:
        low *= 1.08
    high = 1.0 if 0.5 < high <= 1 else (high * 1.08 or (1.0 if low == 0 else 0.0))
    if dots.ends is not None:
        low, high = dots.ends
    named = _named(dots.rows)
    steps = [1, 2, 2.5, 5, 10]

    def draw(shape: _Shape) -> str:
        hovers: dict[str, str] = {}
        band = max(len(dots.series) * shape.row, 0.26) + 0.2
        top, bottom = 0.32, 0.5
        margin, names = _margin(shape, named)
        across = shape.width - margin - 0.3
        figure = _figure(shape.width, band * len(names) + top + bottom)
        axes = _axes(figure, shape, (margin, bottom, across, band * len(names)))
        axes.set_xlim(low, high)
        axes.set_ylim(len(names) - 0.5, -0.5)
        locator = MaxNLocator(nbins=5, steps=steps)
        ticks = [float(tick) for tick in locator.tick_values(low, high) if low - 1e-9 <= tick <= high + 1e-9]
        axes.set_xticks(ticks, [f"{round(tick, 6):g}".replace("-", "−") for tick in ticks])
        axes.tick_params(axis="x", labeltop=True)
        axes.set_xlabel(latin(dots.axis, "value", 60), fontsize=shape.text, color=MUTED, labelpad=4)
        if low < 0:
            axes.axvline(0, color=INK, linewidth=1, zorder=1)
        if dots.reference:
            axes.axvline(dots.reference, color=INK, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        for position, (name, code) in enumerate(names):
            if position:
                axes.axhline(position - 0.5, color=GRID, linewidth=0.8, zorder=0)
            _label(axes, shape, (across, band), position, name, code)
            for number, series in enumerate(dots.series):
                dot = dots.dots.get((position, series))
                if dot is None:
                    continue
                y = position + (number - (len(dots.series) - 1) / 2) * shape.row / band
                if dot.value is None:
                    at = low + 0.008 * (high - low)
                    axes.text(at, y, "no score", fontsize=shape.text * 0.72, color=MUTED, va="center", clip_on=False)
                    continue
                interval = None if dot.interval is None else (dot.interval.low, dot.interval.high)
                style, point = look[series], f"p{position}-{number}"
                _point(axes, point, dot.value, interval, y, style.color, style.marker, hollow=style.hollow)
                between = "" if interval is None else f" [{_told(interval[0])}, {_told(interval[1])}]"
                of = latin(series, f"series {number + 1}")
                hovers[point] = f"{named[position][0]}, {of}: {_told(dot.value)}{between}, n = {dot.n}"
        return _inline(figure, f"{salt}-{shape.name}", title, description, hovers)

    return _both(draw)


def levels_plot(salt: str, levels: Levels, title: str, description: str) -> Plot:
    """Rows down, columns across, the shorter list across; a cell is the stronger coloured the larger its value, and says its number.

    Below 0 it is orange, else blue; never stronger than text on it can be read.
    """
    turned = len(levels.columns) > len(levels.rows)
    rows, columns = (levels.columns, levels.rows) if turned else (levels.rows, levels.columns)
    values = [list(column) for column in zip(*levels.values, strict=True)] if turned else levels.values
    named = _named(rows)
    heads = [code or name for name, code in _named(columns)]
    most = levels.most or 1.0

    def draw(shape: _Shape) -> str:
        wide = shape.name == "wide"
        margin, names = _margin(shape, named)
        row, top = (0.3, 0.32) if wide else (0.42, 0.34)
        across = min(shape.width - margin - 0.1, 1.15 * len(heads))
        figure = _figure(shape.width, row * len(names) + top + 0.06)
        axes = _axes(figure, shape, (margin, 0.06, across, row * len(names)))
        axes.grid(visible=False)
        axes.set_xlim(0, len(heads))
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xticks([])
        # Four signs of a number, and as many of a head, must fit in a cell.
        size = min(shape.text * 0.95, across / len(heads) * 72 / 2.5)
        hovers: dict[str, str] = {}
        place: dict[str, Any] = {"ha": "center", "clip_on": False}
        for column, head in enumerate(heads):
            short = head if len(head) * size * 0.56 / 72 <= across / len(heads) else head[:5]
            axes.text(column + 0.5, -0.5 - 0.06 / row, short, fontsize=size, color=MUTED, va="bottom", **place)
        for down, (name, code) in enumerate(names):
            _label(axes, shape, (across, row), down, name, code)
            for column, value in enumerate(values[down]):
                if value is None:
                    axes.text(column + 0.5, down, "–", fontsize=size, color=MUTED, va="center", **place)
                    continue
                gid = f"c{down}-{column}"
                color = SERIES[1] if value < 0 else SERIES[0]
                alpha = round(min(0.55, 0.55 * abs(value) / most), 3)
                bar = axes.barh(down, 0.96, left=column + 0.02, height=0.92, color=color, alpha=alpha, linewidth=0)
                bar[0].set_gid(gid)
                axes.text(column + 0.5, down, _told(value, 2), fontsize=size, color=INK, va="center", **place)
                hovers[gid] = f"{named[down][0]}, {heads[column]}: {_told(value)}"
        return _inline(figure, f"{salt}-{shape.name}", title, description, hovers)

    return _both(draw)


def shares_plot(salt: str, shares: Shares, title: str, description: str) -> Plot:
    """Rows down, one bar each, parted by category in one order; a part that has room says its percent."""
    named = _named(shares.rows)

    def draw(shape: _Shape) -> str:
        hovers: dict[str, str] = {}
        margin, names = _margin(shape, named)
        row, top, bottom = 0.38, 0.1, 0.34
        across = shape.width - margin - 0.3
        figure = _figure(shape.width, row * len(names) + top + bottom)
        axes = _axes(figure, shape, (margin, bottom, across, row * len(names)))
        axes.grid(visible=False)
        axes.set_xlim(0, 1)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0%", "25%", "50%", "75%", "100%"])
        for position, (name, code) in enumerate(names):
            _label(axes, shape, (across, row), position, name, code)
            if all(value is None for value in shares.values[position]):
                axes.text(0.008, position, "nothing told", fontsize=shape.text * 0.8, color=MUTED, va="center")
                continue
            left = 0.0
            for number, value in enumerate(shares.values[position]):
                if not value:
                    continue
                gid = f"b{position}-{number}"
                color = SERIES[number % 8]
                bar = axes.barh(position, value, left=left, height=0.74, color=color, edgecolor=SURFACE, linewidth=1.2, zorder=3)
                bar[0].set_gid(gid)
                told = f"{100 * value:.0f}%"
                if value * across > len(told) * shape.text * 0.62 / 72 + 0.06:
                    middle: dict[str, Any] = {"ha": "center", "va": "center", "zorder": 4}
                    axes.text(left + value / 2, position, told, fontsize=shape.text * 0.86, color=SURFACE, **middle)
                hovers[gid] = f"{name}, {latin(shares.categories[number], f'category {number + 1}')}: {100 * value:.1f}%"
                left += value
        return _inline(figure, f"{salt}-{shape.name}", title, description, hovers)

    return _both(draw)


def drawn_audits(sections: Sequence[AuditSection]) -> list[dict[str, Any]]:
    """The sections as the template takes them: with their heat maps drawn, and rows of one head grouped."""
    answer = []
    for section in merged(sections):
        tables = []
        for place, table in enumerate(section.tables):
            groups: list[list[Row]] = []
            for row in table.rows:
                if groups and (groups[-1][0].head, groups[-1][0].code) == (row.head, row.code):
                    groups[-1].append(row)
                else:
                    groups.append([row])
            plot = None
            if table.heat is not None:
                described = (
                    f"{len(table.heat.rows)} rows by {len(table.heat.columns)} columns of shifts in percentage points. "
                    "The table below the plot holds the same numbers."
                )
                made = heat_map(f"{section.key}{place}", table.heat, table.heat.title, described)
                plot = (Markup(made.wide), Markup(made.narrow))
            tables.append({"table": table, "groups": groups, "plot": plot})
        answer.append({"section": section, "tables": tables})
    return answer


def drawn(sections: Sequence[Section], look: Mapping[str, Style], signatures: Sequence[Signature], level: str) -> list[dict[str, Any]]:
    """The sections as the template takes them: with figures drawn and signatures by their number on the page."""
    answer = []
    for section in sections:
        blocks = []
        for place, block in enumerate(section.blocks):
            plot, legend = _plot(f"{section.key}{place}", block, look, level)
            cited: dict[int, dict[str, None]] = {}
            for signature, what in block.signatures:
                cited.setdefault(signatures.index(signature) + 1, {})[what] = None
            blocks.append(
                {
                    "block": block,
                    "groups": [list(rows) for _, rows in groupby(block.rows, key=lambda row: (row.head, row.code))],
                    "span": (len(block.heads) - block.leading) // max(1, len(block.runs)),
                    "plot": plot,
                    "legend": legend,
                    "cited": [(number, list(names)) for number, names in sorted(cited.items())],
                }
            )
        answer.append({"section": section, "blocks": blocks})
    return answer


def _plot(salt: str, block: Block, look: Mapping[str, Style], level: str) -> tuple[tuple[Markup, Markup] | None, list[tuple[Markup, str]]]:
    """(the plot in both shapes, its legend: a mark and a name each)."""
    figure, title = block.figure, visible(block.title)
    below = "The table below the plot holds the same numbers."
    if isinstance(figure, Dots):
        looks = {name: look.get(name) or series_look(number) for number, name in enumerate(figure.series)}
        interval = f"{figure.level or level} interval"
        described = f"{len(figure.rows)} rows, {len(figure.series)} dots a row at most, each with its {interval}. {below}"
        plot = dots_plot(salt, figure, looks, title, described)
        legend = [(Markup(style.legend), name) for name, style in looks.items()]
    elif isinstance(figure, Levels):
        plot = levels_plot(salt, figure, title, f"{len(figure.rows)} by {len(figure.columns)} cells, each with its number. {below}")
        legend = []
    elif isinstance(figure, Shares):
        described = f"{len(figure.rows)} bars, one a row, each parted by {len(figure.categories)} categories in the legend’s order. {below}"
        plot = shares_plot(salt, figure, title, described)
        legend = [(Markup(swatch(number)), name) for number, name in enumerate(figure.categories)]
    else:
        return None, []
    return (Markup(plot.wide), Markup(plot.narrow)), legend
