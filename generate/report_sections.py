"""Scores → the report's sections beside text rendering and audits: what stands where, and in which words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2i_parity.cards.environment import number
from t2i_parity.cards.report_audit import Cell, Row
from t2i_parity.cards.report_sections import Block, Dot, Dots, Levels, Section
from t2i_parity.cards.report_texts import CEILING_ABOUT, CEILING_NOTE, GAP_HEADS, GAP_NOTE, MEANS_NOTE, UNKNOWN_ABOUT, instrument_name
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.generate.specs.calibrated import CEILING, CORRECTED, SHARE
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.cross_lingual_gap import core as cross_lingual_gap
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
from t2i_parity.metrics.scores import ALL, Group, MetricSpec, Score, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT


@dataclass(frozen=True, slots=True)
class Scored:
    """A run and its scores; no two of one page share a name."""

    name: str
    run: Run
    scores: Sequence[Score]


Sections = Callable[[Sequence[Scored]], list[Section]]
"""Makes sections of the report from runs of images; none where they have nothing for it."""
Keyed = Mapping[tuple[Group, ScoreSpec], Score]
"""Scores of one run, subset and signature."""
Runs = Mapping[str, Keyed]
Codes = Sequence[tuple[str, str, Group]]
"""Rows of a table: (name, code, of whom)."""
DASH = "–"


def metric_sections(scored: Sequence[Scored]) -> list[Section]:
    """A section a metric: a table each subset and signature, its spread over languages, and its dimensions where there are several."""
    names = list(dict.fromkeys(score.metric for each in scored for score in each.scores))
    made = []
    for place, name in enumerate(names):
        # What a file holds and nobody here declares has a place for its anchor, since anything may stand in a file.
        spec = specs().get(name) or MetricSpec(str(place), name, UNKNOWN_ABOUT, (), order=1000 + place)
        if spec.place in ("gap", "ceilings", "audit", "none") or name == TEXT.name:
            continue
        blocks: list[Block] = []
        for (subset, signature), runs in _placed(scored, name).items():
            blocks += _metric(spec.title, subset, signature, runs)
            blocks += _gap(spec.title, subset, signature, scored)
            blocks += _dimensions(spec.title, subset, signature, runs)
        made.append((spec.order, Section(f"metric-{spec.name.replace('_', '-')}", spec.title, (spec.about,), blocks)))
    return [section for _, section in sorted(made, key=lambda pair: pair[0])]


def _placed(scored: Sequence[Scored], metric: str) -> dict[tuple[str, Signature], dict[str, dict[tuple[Group, ScoreSpec], Score]]]:
    """Scores of a metric by (subset, signature), by run."""
    found: dict[tuple[str, Signature], dict[str, dict[tuple[Group, ScoreSpec], Score]]] = {}
    for each in scored:
        for score in each.scores:
            if score.metric == metric:
                place = found.setdefault((score.subset, score.signature), {})
                place.setdefault(each.name, {})[score.group, score.spec] = score
    return found


def _cells(score: Score | None) -> list[Cell]:
    """Value with its interval, n, and n missing; dashes where nothing stands."""
    if score is None:
        return [Cell(DASH)] * 3
    counts = [Cell(str(score.n)), Cell(str(score.n_missing))]
    if score.value is None:
        return [Cell(DASH), *counts]
    return [Cell(f"{score.value:g}") if score.spec.unit == "count" else cell_of(score.value, *score.ends), *counts]


def cell_of(value: float, low: float | None, high: float | None) -> Cell:
    """A number with its interval, where it has one."""
    return Cell(_signed(value), "" if low is None or high is None else f"[{_signed(low)}, {_signed(high)}]")


def _signed(value: float) -> str:
    return number(value).replace("-", "−")


def name_of(code: str) -> str:
    """A language's name, or what stands for it where it is none of ours."""
    return LANGUAGES[code].name if code in LANGUAGES else code


def _codes(runs: Runs, axis: str) -> list[str]:
    """The codes that any run has on an axis, alone or with others."""
    return list(dict.fromkeys(group[axis] for keyed in runs.values() for group, _ in keyed if axis in group))


def _alone(runs: Runs, axis: str) -> list[str]:
    """The codes of groups that are cut by this axis only."""
    return list(dict.fromkeys(group[axis] for keyed in runs.values() for group, _ in keyed if group.axes == (axis,)))


def _languages(runs: Runs) -> Codes:
    return [(name_of(code), code, Group(language=code)) for code in _alone(runs, "language")]


def _specs(runs: Runs) -> list[ScoreSpec]:
    return list(dict.fromkeys(spec for keyed in runs.values() for _, spec in keyed))


def _table(
    title: str, head: str, groups: Codes, shown: Sequence[ScoreSpec], runs: Runs, signatures: Sequence[tuple[Signature, str]], **more: Any
) -> Block:
    """Groups as rows, one a score, and runs side by side."""
    several = len(shown) > 1
    rows = [
        Row(
            name,
            [*([Cell(spec.title)] if several else []), *(cell for keyed in runs.values() for cell in _cells(keyed.get((group, spec))))],
            code,
        )
        for name, code, group in groups
        for spec in shown
    ]
    heads = (head, *(["Score"] if several else []), *("Value [interval]", "n", "Missing") * len(runs))
    words = frozenset({1} if several else ())
    return Block(title, heads, rows, signatures, runs=tuple(runs), leading=1 + several, words=words, **more)


def _dots(axis: str, groups: Codes, spec: ScoreSpec, runs: Runs, reference: float | None = None) -> Dots | None:
    dots = {
        (place, run): Dot(score.value, score.n, score.interval)
        for place, (_, _, group) in enumerate(groups)
        for run, keyed in runs.items()
        if (score := keyed.get((group, spec))) is not None
    }
    told = any(dot.value is not None for dot in dots.values())
    return Dots(axis, [(name, code) for name, code, _ in groups], list(runs), dots, reference) if told else None


def _metric(title: str, subset: str, signature: Signature, runs: Runs) -> list[Block]:
    shown, languages = _specs(runs), _languages(runs)
    # One dot beside nothing compares nothing.
    figure = _dots(shown[0].title, languages, shown[0], runs) if len(languages) > 1 or len(runs) > 1 else None
    groups = [*languages, ("All languages", "", ALL)]
    note = f"the plot shows “{shown[0].title}”" if len(shown) > 1 and figure else ""
    return [_table(f"{title} on {subset}", "Language", groups, shown, runs, [(signature, "")], figure=figure, note=note)]


def _dimensions(title: str, subset: str, signature: Signature, runs: Runs) -> list[Block]:
    """One block a run: dimensions by language as a heat map, one scale over all runs, and the same as a folded table."""
    shown = _specs(runs)
    crossed = {
        run: {group: score.value for (group, spec), score in keyed.items() if spec == shown[0] and {*group} == {"dimension", "language"}}
        for run, keyed in runs.items()
    }
    most = max((abs(value) for found in crossed.values() for value in found.values() if value is not None), default=0.0)
    blocks = []
    for run, keyed in runs.items():
        own = {run: keyed}
        dimensions, codes = _codes(own, "dimension"), _alone(own, "language")
        if not dimensions or not codes:
            continue
        values = [[crossed[run].get(Group(dimension=name, language=code)) for code in codes] for name in dimensions]
        groups = [
            row
            for name in dimensions
            for row in [
                (name, "", Group(dimension=name)),
                *((f"{name}, {name_of(code)}", code, Group(dimension=name, language=code)) for code in codes),
            ]
        ]
        figure = Levels([(name, "") for name in dimensions], [(name_of(code), code) for code in codes], values, most)
        made = _table(f"{title} on {subset} by dimension: {run}", "Dimension", groups, shown, own, [(signature, "")], figure=figure,
                      folded=True, note=f"the map shows “{shown[0].title}”")  # fmt: skip
        blocks.append(made)
    return blocks


def _gap(title: str, subset: str, of: Signature, scored: Sequence[Scored]) -> list[Block]:
    """Inequality over languages of the row score under signature ``of``: its spread, and the means of branches and scripts."""
    blocks = []
    for (place, signature), runs in _placed(scored, GAP.name).items():
        if place != subset or signature.fields.get("of") != of:
            continue
        rows = []
        for run, keyed in runs.items():
            apart = [cell for key in _APART for cell in _cells(keyed.get((ALL, GAP[key])))[:1]]
            cells = [*apart, *_cells(keyed.get((ALL, GAP["std"])))[:1], *_cells(keyed.get((ALL, GAP["mean"])))]
            ends = [next((score for (_, spec), score in keyed.items() if spec.key == key), None) for key in ("worst", "best")]
            rows.append(Row(run, [*cells, *(cell for end in ends for cell in _end(end))]))
        cited = [(signature, "")]
        blocks.append(
            Block(f"{title} on {subset}: spread over languages", GAP_HEADS, rows, cited, note=GAP_NOTE, words=frozenset({11, 14}))
        )
        for axis in ("branch", "script"):
            groups = [(name, "", Group({axis: name})) for name in _alone(runs, axis)]
            if groups:
                made = _table(f"{title} on {subset} by {axis}", axis.capitalize(), groups, [GAP["mean"]], runs, cited, note=MEANS_NOTE,
                              folded=True)  # fmt: skip
                blocks.append(made)
    return blocks


_APART = cross_lingual_gap.INFERRED


def _end(score: Score | None) -> list[Cell]:
    """The worst or best served language of a run: its name, value and n."""
    if score is None or "language" not in score.group:
        return [Cell(DASH)] * 3
    return [Cell(name_of(score.group["language"])), *_cells(score)[:2]]


def ceiling_sections(scored: Sequence[Scored]) -> list[Section]:
    """Text-rendering scores beside their reader's ceiling and the share of it that was reached, where a calibration was given."""
    blocks: list[Block] = []
    raw, shares, turned = (_placed(scored, metric.name) for metric in (TEXT, SHARE, CORRECTED))
    for (subset, signature), ceilings in _placed(scored, CEILING.name).items():
        of = signature.without("ceiling")
        parts = (raw.get((subset, of), {}), ceilings, shares.get((subset, signature), {}), turned.get((subset, signature), {}))
        runs = {run: {key: score for part in parts for key, score in part.get(run, {}).items()} for run in ceilings}
        there = _specs(ceilings)
        keys = [spec.key for spec in CEILING.scores if spec in there]
        if not keys:
            continue
        shown = [metric[key] for key in keys for metric in (TEXT, CEILING, SHARE, CORRECTED)]
        languages, best = _languages(ceilings), SHARE[keys[0]]
        figure = _dots(f"Share of ceiling, {TEXT[keys[0]].title.lower()}", languages, best, runs, 1.0)
        cited = [(of, "scores"), (signature, "ceilings and shares")] if parts[0] else [(signature, "")]
        reader = instrument_name(signature, "reader")
        blocks.append(_table(f"{subset}, read by {reader}", "Language", languages, shown, runs, cited, figure=figure, note=CEILING_NOTE))
        apart = [CORRECTED[f"{key}_{end}"] for key in keys for end in ("spread", "p_alike")]
        if any((ALL, spec) in keyed for keyed in runs.values() for spec in apart):
            blocks.append(_table(f"Inequality over languages, corrected, {subset}", "", [("All languages", "", ALL)], apart, runs, cited))
    return [Section("ceilings", "Beside the reader’s ceiling", CEILING_ABOUT, blocks)] if blocks else []


def unique(names: Iterable[str]) -> list[str]:
    """Names of runs, told apart where two folders are called alike.

    >>> unique(["glyph", "glyph"])
    ['glyph', 'glyph (2)']
    """
    answer: list[str] = []
    for name in names:
        made, place = name, 2
        while made in answer:
            made, place = f"{name} ({place})", place + 1
        answer.append(made)
    return answer
