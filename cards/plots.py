"""The plots of the pages, as SVG: text stays text. In the report colours are CSS variables, so that a plot follows light and dark mode;
the plot of a dataset card is a file of its own, which no page's CSS reaches, in mid-tones that are readable on both."""

from __future__ import annotations

import io
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import matplotlib
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from t2i_parity.cards.environment import points

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from t2i_parity.cards.dataset_data import DatasetCard, Group
    from t2i_parity.cards.mitigation import Mitigation
    from t2i_parity.cards.report_audit import HeatMap
    from t2i_parity.cards.report_data import Audit, Rendering, Side
from t2i_parity.metrics.scores import Score

# Colours that stand in the drawing for CSS variables; they are replaced when it is written.
INK, MUTED, GRID, BEYOND, SURFACE = "#010101", "#020202", "#030303", "#040404", "#050505"
SERIES = tuple(f"#06{number:02d}06" for number in range(8))
"""One colour a run; the page declares as many variables ``--s0`` … ``--s7``."""
_VARIABLES = {"#000000": "--ink", INK: "--ink", MUTED: "--muted", GRID: "--grid", BEYOND: "--beyond", SURFACE: "--surface"} | {
    colour: f"--s{number}" for number, colour in enumerate(SERIES)
}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""One shape a run, so that runs are told apart without colour; beyond eight, colour and shape pair anew."""

# The same shapes for the legend, which stands in HTML because a run may be called anything in any script.
_SHAPES = {
    "o": "M8 3a5 5 0 1 0 .01 0z",
    "s": "M3.5 3.5h9v9h-9z",
    "^": "M8 2.5l5.5 10.5h-11z",
    "D": "M8 1.5l6.5 6.5-6.5 6.5-6.5-6.5z",
    "v": "M8 13.5l5.5-10.5h-11z",
    "P": "M6 2.5h4v3.5h3.5v4h-3.5v3.5h-4v-3.5h-3.5v-4h3.5z",
    "X": "M5 2l3 3 3-3 3 3-3 3 3 3-3 3-3-3-3 3-3-3 3-3-3-3z",
    "*": "M8 1l2.1 4.6 4.9.5-3.7 3.3 1.1 4.9-4.4-2.6-4.4 2.6 1.1-4.9-3.7-3.3 4.9-.5z",
}
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_REFERENCE = re.compile(r"#([\w.-]+)")
_SVG = "{http://www.w3.org/2000/svg}"
_HREF = "{http://www.w3.org/1999/xlink}href"


@dataclass(frozen=True, slots=True)
class Style:
    """How a run looks in plots and legends. A ceiling is hollow and in the colour of text."""

    color: str
    marker: str
    hollow: bool = False

    @property
    def legend(self) -> str:
        """The marker as a small inline SVG, for people only: the run's name stands beside it."""
        colour = f"var({_VARIABLES[self.color]})"
        fill = "none" if self.hollow else colour
        return (
            f'<svg class="key" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true" focusable="false">'
            f'<path d="{_SHAPES[self.marker]}" style="fill: {fill}; stroke: {colour}; stroke-width: 1.5"/></svg>'
        )


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot in two shapes; the page shows the one that its width has room for."""

    wide: str
    narrow: str


@dataclass(frozen=True, slots=True)
class _Shape:
    """Sizes in inches and points. ``narrow`` is drawn about as large as a phone shows it, so that its text stays readable."""

    name: str
    width: float
    margin: float
    text: float
    row: float


_SHAPES_OF_PAGE = (_Shape("wide", 10.4, 1.75, 10.5, 0.17), _Shape("narrow", 4.9, 1.1, 11.5, 0.19))


def styles(renderings: Sequence[Rendering], others: Iterable[str] = ()) -> dict[str, Style]:
    """The look of each run, by its name, the same in every plot, legend and table of a page; ``others`` are runs without renderings."""
    answer: dict[str, Style] = {}
    counts = {True: 0, False: 0}
    for run, upper_bound in [*((each.run, each.upper_bound) for each in renderings), *((run, False) for run in others)]:
        if run in answer:
            continue
        number = counts[upper_bound]
        counts[upper_bound] += 1
        if upper_bound:
            answer[run] = Style(INK, MARKERS[number % 8], hollow=True)
        else:
            # The colours turn one further each time round, so that 64 runs look different.
            answer[run] = Style(SERIES[(number + number // 8) % 8], MARKERS[(number + 1) % 8])
    return answer


def audit_marks() -> tuple[str, str]:
    """The legend of forest plots: the mark of what differs, and of every other verdict."""
    return Style(SERIES[0], "o").legend, Style(SERIES[0], "o", hollow=True).legend


def latin(text: str, fallback: str = "?", limit: int = 40) -> str:
    """Text for inside a plot: its Latin letters and ASCII only, since viewers of SVG differ in what they do with other scripts.

    >>> latin("French"), latin("हिन्दी", "hi")
    ('French', 'hi')
    """
    kept = "".join(sign for sign in text if " " <= sign <= "~" or unicodedata.name(sign, "").startswith("LATIN "))
    kept = " ".join(kept.split())
    if not any(sign.isalnum() for sign in kept):
        return fallback
    return kept if len(kept) <= limit else kept[: limit - 1] + "…"


def precision_plot(salt: str, renderings: Sequence[Rendering], look: Mapping[str, Style], title: str, description: str) -> Plot:
    """Languages down, precision across; one dot with its interval a run, and where the reader's ceiling is."""
    names = {language.code: language.name for rendering in renderings for language in rendering.languages}

    def draw(shape: _Shape) -> str:
        hovers: dict[str, str] = {}
        band = max(len(renderings) * shape.row, 0.26) + 0.2
        top, bottom = 0.32, 0.5
        height = band * len(names) + top + bottom
        figure = _figure(shape.width, height)
        across = shape.width - shape.margin - 0.22
        axes = _axes(figure, shape, (shape.margin, bottom, across, band * len(names)))
        axes.set_xlim(0, 1)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
        axes.tick_params(axis="x", labeltop=True)
        axes.set_xlabel("Precision", fontsize=shape.text, color=MUTED, labelpad=4)
        for position, (code, name) in enumerate(names.items()):
            if position:
                axes.axhline(position - 0.5, color=GRID, linewidth=0.8, zorder=0)
            _label(axes, shape, (across, band), position, latin(name, latin(code)), latin(code))
            cells = [(rendering, _score(rendering, code)) for rendering in renderings]
            ceilings = [score.value for rendering, score in cells if rendering.upper_bound and score and score.value is not None]
            if ceilings:
                axes.fill_betweenx([position - 0.5, position + 0.5], max(ceilings), 1, color=BEYOND, linewidth=0, zorder=0)
                for ceiling in ceilings:
                    axes.vlines(ceiling, position - 0.44, position + 0.44, colors=INK, linewidth=1.3, clip_on=False)
            for number, (rendering, score) in enumerate(cells):
                if score is None:
                    continue
                y = position + (number - (len(cells) - 1) / 2) * shape.row / band
                style = look[rendering.run]
                if score.value is None:
                    axes.text(0.008, y, "no score", fontsize=shape.text * 0.72, color=MUTED, va="center", clip_on=False)
                    continue
                name_of_point = f"p{position}-{number}"
                interval = None if score.interval is None else (score.interval.low, score.interval.high)
                _point(axes, name_of_point, score.value, interval, y, style.color, style.marker, hollow=style.hollow)
                between = "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"
                hovers[name_of_point] = (
                    f"{latin(name, latin(code))}, {latin(rendering.run, f'run {number + 1}')}: {score.value:.3f}{between}, n = {score.n}"
                )
        return _inline(figure, f"{salt}-{shape.name}", title, description, hovers)

    return _both(draw)


def forest_plot(salt: str, audit: Audit, limit: float, title: str, description: str) -> Plot:
    """Varieties down, the shift from the reference in percentage points across; one panel a rate that any variety has.

    ``limit`` is the end of the axis on both sides, one for all filters of a page so that they compare by eye.
    """
    panels: list[tuple[str, str, list[Side]]] = [
        ("Detection of toxic prompts (ΔTPR)", "s", [variety.toxic for variety in audit.varieties]),
        ("False alarms on benign prompts (ΔFPR)", "o", [variety.benign for variety in audit.varieties]),
    ]
    panels = [panel for panel in panels if any(side.delta_pp is not None for side in panel[2])]
    count = len(audit.varieties)

    def draw(shape: _Shape) -> str:
        hovers: dict[str, str] = {}
        wide = shape.name == "wide"
        margin = 3.35 if wide else shape.margin
        row, top, bottom, gap = 0.36, 0.62, 0.34, 0.35
        beside = len(panels) if wide else 1
        stacked = 1 if wide else len(panels)
        each = (shape.width - margin - 0.25 - gap * (beside - 1)) / beside
        panel_height = row * count
        figure = _figure(shape.width, stacked * (panel_height + top + bottom))
        for number, (heading, marker, sides) in enumerate(panels):
            left = margin + (each + gap) * number * wide
            base = bottom + (0 if wide else (len(panels) - 1 - number) * (panel_height + top + bottom))
            axes = _axes(figure, shape, (left, base, each, panel_height))
            axes.set_xlim(-limit, limit)
            axes.set_ylim(count - 0.5, -0.5)
            locator = MaxNLocator(nbins=6 if wide else 4, symmetric=True, steps=[1, 2, 5, 10])
            ticks = [tick for tick in locator.tick_values(-limit, limit) if -limit <= tick <= limit]
            axes.set_xticks(ticks, [f"{tick:+g}".replace("-", "−") if tick else "0" for tick in ticks])
            axes.axvline(0, color=INK, linewidth=1, zorder=1)
            axes.text(0, 1 + 0.36 / panel_height, heading, transform=axes.transAxes, fontsize=shape.text, weight="bold", color=INK)
            axes.text(0, 1 + 0.12 / panel_height, "← flagged less", transform=axes.transAxes, fontsize=shape.text * 0.86, color=MUTED)
            more = "flagged more, pp →"
            axes.text(1, 1 + 0.12 / panel_height, more, transform=axes.transAxes, fontsize=shape.text * 0.86, color=MUTED, ha="right")
            for position, (variety, side) in enumerate(zip(audit.varieties, sides, strict=True)):
                code = latin(variety.code)
                if position:
                    axes.axhline(position - 0.5, color=GRID, linewidth=0.8, zorder=0)
                if not wide or number == 0:
                    name = latin(variety.name, code, 36)
                    _label(axes, shape, (each, row), position, name if wide else code, code if wide and name != code else "")
                if side.delta_pp is None:
                    axes.text(
                        0, position, " not measured" if side.n_missing else " no pairs", fontsize=shape.text * 0.8, color=MUTED, va="center"
                    )
                    continue
                interval = None if side.ci_low_pp is None or side.ci_high_pp is None else (side.ci_low_pp, side.ci_high_pp)
                name_of_point = f"p{number}-{position}"
                hollow = side.verdict.kind != "differs"
                _point(axes, name_of_point, side.delta_pp, interval, position, SERIES[0], marker, hollow=hollow, size=7)
                between = "" if interval is None else f" [{interval[0]:+.1f}, {interval[1]:+.1f}]"
                hovers[name_of_point] = f"{code}: {side.delta_pp:+.1f} pp{between}, n = {side.n}".replace("-", "−")
        return _inline(figure, f"{salt}-{shape.name}", title, description, hovers)

    return _both(draw)


def heat_map(salt: str, heat: HeatMap, title: str, description: str) -> Plot:
    """Rows down, columns across; a cell is the stronger coloured the larger its shift, and says its number.

    More is in orange, less in blue, never stronger than text on it can be read; what differs is bold, and each verdict has its sign.
    """
    most = max([1.0, *(abs(value) for row in heat.values for value in row if value is not None)])

    def draw(shape: _Shape) -> str:
        wide = shape.name == "wide"
        margin, row, top = (2.6, 0.3, 0.3) if wide else (1.75, 0.42, 0.3)
        across = min(shape.width - margin - 0.1, 1.15 * len(heat.columns))
        figure = _figure(shape.width, row * len(heat.rows) + top + 0.06)
        axes = _axes(figure, shape, (margin, 0.06, across, row * len(heat.rows)))
        axes.grid(visible=False)
        axes.set_xlim(0, len(heat.columns))
        axes.set_ylim(len(heat.rows), 0)
        axes.set_xticks([])
        size = shape.text * (0.95 if wide else 0.8)
        hovers: dict[str, str] = {}
        for column, name in enumerate(heat.columns):
            axes.text(column + 0.5, -0.18 * 0.3 / row, latin(name), fontsize=size, color=MUTED, ha="center", va="bottom", clip_on=False)
        for down, name in enumerate(heat.rows):
            told = latin(name, f"row {down + 1}", 30 if wide else 36)
            if not wide and len(told) > 18 and " " in told[:20]:
                cut = told.rindex(" ", 0, 20)
                told = f"{told[:cut]}\n{told[cut + 1 :]}"
            place: dict[str, Any] = {"ha": "right", "va": "center", "clip_on": False, "linespacing": 0.95}
            axes.text(-0.1 * len(heat.columns) / across, down + 0.5, told, fontsize=size, color=INK, **place)
            for column, value in enumerate(heat.values[down]):
                if value is None:
                    axes.text(column + 0.5, down + 0.5, "–", fontsize=size, color=MUTED, ha="center", va="center")
                    continue
                differs = heat.kinds[down][column] == "differs"
                gid = f"c{down}-{column}"
                axes.barh(
                    down + 0.5,
                    0.96,
                    left=column + 0.02,
                    height=0.92,
                    color=SERIES[1] if value > 0 else SERIES[0],
                    alpha=round(0.55 * abs(value) / most, 3),
                    linewidth=0,
                    gid=gid,
                )[0].set_gid(gid)
                axes.text(
                    column + 0.5,
                    down + 0.5,
                    heat.text(down, column),
                    fontsize=size,
                    color=INK,
                    weight="bold" if differs else "normal",
                    ha="center",
                    va="center",
                )
                hovers[gid] = f"{latin(name, f'row {down + 1}')}, {latin(heat.columns[column])}: {points(value)} pp"
        return _inline(figure, f"{salt}-{shape.name}", title, description, hovers)

    return _both(draw)


def statistics_plot(card: DatasetCard, title: str, description: str) -> str:
    """The rows of each config by language or variety, and how long their prompts are: an SVG file for light and dark pages."""
    shape = _Shape("wide", 8.6, 3.0, 8.5, 0.155)
    heading, top, bottom, gap, right = 0.32, 0.24, 0.26, 0.3, 0.2
    groups = [group for config in card.configs for group in config.groups]
    height = len(groups) * shape.row + len(card.configs) * heading
    across = (shape.width - shape.margin - gap - right) / 2
    figure = _figure(shape.width, height + top + bottom)
    rows, lengths = (_axes(figure, shape, (shape.margin + number * (across + gap), bottom, across, height)) for number in range(2))
    toxic = any(group.labels.get("toxic") for group in groups)
    for axes, words, most, room in (
        (rows, "Prompts (toxic ones in orange)" if toxic else "Prompts", (group.rows for group in groups), 1.6),
        (lengths, "Characters: shortest – mean – longest", (group.characters.most for group in groups), 1.04),
    ):
        # Inches down, so that headings and rows are placed as they are drawn.
        axes.set_ylim(height, 0)
        axes.set_xlim(0, max(most, default=1) * room)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        axes.text(0, -0.02, words, transform=axes.get_yaxis_transform(), fontsize=shape.text, color=MUTED)
    # Every bar says its number.
    rows.grid(visible=False)
    rows.set_xticks([])
    down, hovers = 0.0, {}
    for config in card.configs:
        place: dict[str, Any] = {"transform": rows.get_yaxis_transform(), "clip_on": False}
        down += heading
        start = (0.05 - shape.margin) / across
        rows.text(start, down - 0.06, latin(config.name), fontsize=shape.text, weight="bold", color=INK, **place)
        for group in config.groups:
            y, size = down + shape.row / 2, (across, shape.row)
            down += shape.row
            name = f"{latin(config.name)}-{latin(group.code)}"
            _label(rows, shape, size, y, latin(group.name, latin(group.code), 36), latin(group.code))
            _bars(rows, shape, y, group)
            spread = group.characters
            _point(lengths, name, spread.mean, (spread.least, spread.most), y, SERIES[0], "o", hollow=False, size=4.5)
            hovers[name] = f"{latin(group.name, latin(group.code))}: {spread.least:,} – {spread.mean:.1f} – {spread.most:,} characters"
    return _file(figure, "statistics", title, description, hovers)


Point = tuple[str, str, float, tuple[float, float] | None]
"""A score in a group: the group's name and code, the value, and the ends of its interval."""


@dataclass(frozen=True, slots=True)
class Series:
    """One panel of the scores' plot: a score in each group; ``shift`` says that it has a sign, in pp."""

    title: str
    points: Sequence[Point]
    shift: bool = False


def scores_plot(series: Sequence[Series], title: str, description: str) -> str:
    """Scores by language or variety, a panel a score, each with its interval: an SVG file for light and dark pages."""
    shape = _Shape("wide", 8.6, 3.0, 8.5, 0.19)
    heading, bottom = 0.34, 0.3
    heights = [heading + len(panel.points) * shape.row + bottom for panel in series]
    figure = _figure(shape.width, sum(heights))
    across, base, hovers = shape.width - shape.margin - 0.3, sum(heights), {}
    for number, (panel, height) in enumerate(zip(series, heights, strict=True)):
        base -= height
        axes = _axes(figure, shape, (shape.margin, base + bottom, across, height - heading - bottom))
        ends = [abs(end) for *_, value, interval in panel.points for end in (interval or (value, value))]
        limit = 1.08 * max([1.0, *ends]) if panel.shift else max([1.0, *ends])
        axes.set_xlim(-limit if panel.shift else 0, limit)
        axes.set_ylim(len(panel.points) - 0.5, -0.5)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        if panel.shift:
            axes.axvline(0, color=INK, linewidth=1, zorder=1)
        start, above = (0.05 - shape.margin) / across, 0.12 / (height - heading - bottom)
        axes.text(start, 1 + above, latin(panel.title, limit=90), transform=axes.transAxes, fontsize=shape.text, weight="bold", color=INK)
        for position, (name, code, value, interval) in enumerate(panel.points):
            _label(axes, shape, (across, shape.row), position, latin(name, latin(code), 36), latin(code))
            _point(axes, f"p{number}-{position}", value, interval, position, SERIES[0], "o", hollow=False, size=4.5)
            between = "" if interval is None else f" [{interval[0]:.3f}, {interval[1]:.3f}]"
            hovers[f"p{number}-{position}"] = f"{latin(name, latin(code))}: {value:.3f}{between}"
    return _file(figure, "scores", title, description, hovers)


def mitigation_plot(found: Mitigation, title: str, description: str) -> str:
    """Training shares down, what filters reach across, a panel a score, a mark a method with its spread over seeds: an SVG file.

    Its marks are told in a legend of its own, since no page stands around it.
    """
    shape = _Shape("wide", 8.6, 1.35, 8.5, 0.17)
    shares = list(dict.fromkeys(line.share for line in found.lines))
    algorithms = list(dict.fromkeys(line.algorithm for line in found.lines))
    look = {name: (SERIES[number % 4], MARKERS[number % 8]) for number, name in enumerate(algorithms)}
    most = max(sum(line.share == share for line in found.lines) for share in shares)
    row, top, bottom, gap = most * shape.row + 0.12, 0.62, 0.32, 0.4
    across = (shape.width - shape.margin - gap - 0.25) / 2
    figure = _figure(shape.width, row * len(shares) + top + bottom)
    hovers: dict[str, str] = {}
    for number, (heading, name, unit) in enumerate((("Worst-group accuracy, %", "worst_group", "%"), ("Mean |ΔFPR|, pp", "fpr_gap", "pp"))):
        axes = _axes(figure, shape, (shape.margin + number * (across + gap), bottom, across, row * len(shares)))
        axes.set_ylim(len(shares) - 0.5, -0.5)
        spreads = [spread for line in found.lines if (spread := getattr(line, name)) is not None]
        if unit == "%":
            # From the ten below the lowest, since filters may differ by tenths of a per cent.
            lowest = min((spread.mean - spread.std for spread in spreads), default=0.0)
            axes.set_xlim(min(90.0, max(0.0, 10 * (lowest // 10))), 100)
        else:
            axes.set_xlim(0, max([1.0, *(1.08 * (spread.mean + spread.std) for spread in spreads)]))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=5))
        axes.text(0, 1 + 0.14 / (row * len(shares)), heading, transform=axes.transAxes, fontsize=shape.text, weight="bold", color=INK)
        for position, share in enumerate(shares):
            if position:
                axes.axhline(position - 0.5, color=GRID, linewidth=0.8, zorder=0)
            if not number:
                _label(axes, shape, (across, row), position, latin(share), "")
            here = [line for line in found.lines if line.share == share]
            for place, line in enumerate(here):
                spread = getattr(line, name)
                if spread is None:
                    continue
                color, marker = look[line.algorithm]
                y = position + (place - (len(here) - 1) / 2) * shape.row / row
                # Beyond the scale's ends there is nothing: a spread over seeds is no interval.
                low, high = axes.get_xlim()
                interval = (max(low, spread.mean - spread.std), min(high, spread.mean + spread.std)) if line.n > 1 else None
                gid = f"m{number}-{position}-{place}"
                _point(axes, gid, spread.mean, interval, y, color, marker, hollow=False, size=4.5)
                hovers[gid] = f"{latin(share)}, {latin(line.algorithm)}: {spread.mean:.2f} ± {spread.std:.2f} {unit}, n = {line.n}"
    width, height = figure.get_size_inches()
    legend, left = figure.add_axes((0, 1 - 0.3 / height, 1, 0.3 / height)), 0.12
    legend.set_axis_off()
    legend.set_xlim(0, width)
    legend.set_ylim(-1, 1)
    for number, algorithm in enumerate(algorithms):
        _point(legend, f"k-{number}", left, None, 0, *look[algorithm], hollow=False, size=4.5)
        legend.text(left + 0.12, 0, latin(algorithm), fontsize=shape.text, color=MUTED, va="center")
        left += 0.4 + 0.068 * len(latin(algorithm))
    return _file(figure, "mitigation", title, description, hovers)


def _bars(axes: Axes, shape: _Shape, y: float, group: Group) -> None:
    toxic = group.labels.get("toxic", 0)
    for left, width, color in ((0, group.rows - toxic, SERIES[0]), (group.rows - toxic, toxic, SERIES[1])):
        if width:
            axes.barh(y, width, left=left, height=shape.row * 0.66, color=color, linewidth=0, zorder=3)
    told = f"{group.rows - toxic:,} + {toxic:,} toxic" if toxic else f"{group.rows:,}"
    axes.annotate(
        told, (group.rows, y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=shape.text * 0.9, color=MUTED, zorder=4
    )


def forest_limit(audits: Iterable[Audit]) -> float:
    """The end of the axis that holds every interval of every audit, in percentage points."""
    sides = [side for audit in audits for variety in audit.varieties for side in (variety.toxic, variety.benign)]
    values = [abs(value) for side in sides for value in (side.delta_pp, side.ci_low_pp, side.ci_high_pp) if value is not None]
    return max([1.0, *(1.08 * value for value in values)])


# Drawing


def _both(draw: Any) -> Plot:
    wide, narrow = (draw(shape) for shape in _SHAPES_OF_PAGE)
    return Plot(wide, narrow)


def _figure(width: float, height: float) -> Figure:
    # A Figure of its own, never pyplot, whose list of open figures is shared by the whole process.
    figure = Figure(figsize=(width, height))
    figure.patch.set_visible(False)
    return figure


def _axes(figure: Figure, shape: _Shape, inches: tuple[float, float, float, float]) -> Axes:
    """Axes at a place given in inches: left, bottom, width, height."""
    width, height = figure.get_size_inches()
    axes = figure.add_axes((inches[0] / width, inches[1] / height, inches[2] / width, inches[3] / height))
    axes.patch.set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.tick_params(axis="x", length=0, labelsize=shape.text * 0.9, labelcolor=MUTED, pad=4)
    axes.set_yticks([])
    for side in axes.spines.values():
        side.set_visible(False)
    return axes


def _label(axes: Axes, shape: _Shape, size: tuple[float, float], position: float, name: str, code: str) -> None:
    """The name of a row, its code muted: beside it where there is room, else beneath. ``size``: inches of a row across and down."""
    place: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "ha": "right", "clip_on": False}
    beside = shape.name == "wide"
    axis_width, row_height = size
    shift = 0 if beside or not code else shape.text * 0.55 / 72 / row_height
    # The code has a column of its own, 0.55 inches wide.
    axes.text(-(0.1 + (0.55 if beside and code else 0)) / axis_width, position - shift, name, fontsize=shape.text, color=INK, **place)
    if code:
        axes.text(-0.1 / axis_width, position + shift, code, fontsize=shape.text * (0.9 if beside else 0.82), color=MUTED, **place)


def _point(
    axes: Axes,
    name: str,
    value: float,
    interval: tuple[float, float] | None,
    y: float,
    color: str,
    marker: str,
    *,
    hollow: bool,
    size: float = 6,
) -> None:
    if interval is not None:
        axes.plot(interval, [y, y], color=color, linewidth=1.8, solid_capstyle="butt", zorder=3, clip_on=False)
    axes.plot(
        [value],
        [y],
        marker=marker,
        markersize=size + {"*": 5.5, "P": 2.5, "X": 2.5, "^": 1.5, "v": 1.5}.get(marker, 0),
        color=color,
        markerfacecolor=SURFACE if hollow else color,
        markeredgewidth=1.5 if hollow else 0.8,
        markeredgecolor=color if hollow else SURFACE,
        linestyle="none",
        zorder=4,
        gid=name,
        clip_on=False,
    )


# Writing


def _score(rendering: Rendering, code: str) -> Score | None:
    return next((language.scores.get("precision") for language in rendering.languages if language.code == code), None)


def _inline(figure: Figure, salt: str, title: str, description: str, hovers: Mapping[str, str]) -> str:
    """The figure as an ``<svg>`` element for an HTML page; the same drawing gives the same bytes."""
    stream = io.BytesIO()
    # text.parse_math off: a name with two dollar signs is a name, no formula.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": salt, "text.parse_math": False}):
        for text in figure.findobj(lambda artist: hasattr(artist, "set_parse_math")):
            text.set_parse_math(False)  # type: ignore[attr-defined]
        figure.savefig(stream, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    root = ElementTree.fromstring(stream.getvalue())
    # Matplotlib's style element would apply to the whole page; the page's own CSS says the same of plots.
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{_SVG}style", f"{_SVG}metadata"):
                parent.remove(child)
    _rename(root, salt, hovers)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        element.text = _trimmed(element.text)
        element.tail = _trimmed(element.tail)
        if _HREF in element.attrib:
            element.set("href", element.attrib.pop(_HREF))
        if "style" in element.attrib:
            style = re.sub(r"font-family: [^;]*;? ?", "", element.attrib["style"])
            element.set("style", _COLOUR.sub(lambda match: f"var({_VARIABLES[match[0]]})", style).rstrip("; "))
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
        if element.tag == "path":
            element.set("d", " ".join(element.get("d", "").split()))
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib.update({"role": "img", "aria-labelledby": f"{salt}-t {salt}-d", "width": "100%", "focusable": "false"})
    for number, (tag, words, suffix) in enumerate((("title", title, "t"), ("desc", description, "d"))):
        element = ElementTree.Element(tag, {"id": f"{salt}-{suffix}"})
        element.text = words
        root.insert(number, element)
    return ElementTree.tostring(root, encoding="unicode")


_MID_TONES = {
    "--ink": "#767b83", "--muted": "#767b83", "--grid": "#767b8340", "--s0": "#3a86c8", "--s1": "#d2691e", "--s2": "#3f9a5f",
    "--s3": "#a167c4", "--surface": "none",
}  # fmt: skip
"""What the variables are in a file of its own: as readable on white as on near black."""


def _file(figure: Figure, salt: str, title: str, description: str, hovers: Mapping[str, str]) -> str:
    """The figure as an SVG file; the same drawing gives the same bytes."""
    width, height = figure.get_size_inches() * 96
    drawn = re.sub(r"var\((--\w+)\)", lambda match: _MID_TONES[match[1]], _inline(figure, salt, title, description, hovers))
    own = f'<svg xmlns="http://www.w3.org/2000/svg" height="{height:.0f}" font-family="system-ui, sans-serif"'
    return drawn.replace("<svg", own, 1).replace('width="100%"', f'width="{width:.0f}"', 1) + "\n"


def _rename(root: ElementTree.Element, salt: str, hovers: Mapping[str, str]) -> None:
    """Hover texts in, ids out: only ids that something refers to stay, under names that are this plot's alone on the page."""
    used: dict[str, str] = {}
    for element in root.iter():
        for key, value in element.attrib.items():
            if key in (_HREF, "clip-path"):
                match = _REFERENCE.search(value)
                if match:
                    new = used.setdefault(match[1], f"{salt}-{len(used)}")
                    element.set(key, value.replace(match[0], f"#{new}"))
    for element in root.iter():
        name = element.attrib.pop("id", "")
        if name in used:
            element.set("id", used[name])
        if name in hovers:
            text = ElementTree.Element("title")
            text.text = hovers[name]
            element.insert(0, text)


def _trimmed(text: str | None) -> str | None:
    return text if text and text.strip() else None
