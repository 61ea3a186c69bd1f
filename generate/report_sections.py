"""Scores → the report's sections beside text rendering and audits: what stands where, and in which words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2i_parity.cards.environment import number
from t2i_parity.cards.report_audit import Cell, Row
from t2i_parity.cards.report_sections import Block, Dot, Dots, Levels, Section
from t2i_parity.cards.report_texts import (
    CEILING_ABOUT,
    CEILING_NOTE,
    CLASSIFIER_ABOUT,
    GAP_HEADS,
    GAP_NOTE,
    MEANS_NOTE,
    NOT_CORRECTED,
    NOTHING_SHARED,
    SHARED_NOTE,
    UNKNOWN_ABOUT,
    instrument_name,
)
from t2i_parity.cards.slices import Slice, covers, over_shared, shared, unequal
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.generate.report_slices import RowScores, answered, row_scores, slices_of
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.generate.specs.calibrated import CEILING, CORRECTED, RATE, SHARE
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.cross_lingual_gap import core as cross_lingual_gap
from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
from t2i_parity.metrics.scores import ALL, Group, MetricSpec, Score, ScoreSpec
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT
from t2i_parity.metrics.toxicity_rejection.spec import SPEC as REJECTION
from t2i_parity.metrics.verdicts import ALPHA


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
            sets = _Sets.of(spec, subset, signature, runs, scored)
            blocks += _metric(spec.title, subset, signature, runs, sets)
            blocks += _gap(spec.title, subset, signature, scored, sets)
            blocks += _dimensions(spec.title, subset, signature, runs, sets)
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


@dataclass(frozen=True, slots=True)
class _Sets:
    """The slices that each run of a table was asked and has a score of, and its row scores where its files say which they are."""

    asked: Mapping[str, frozenset[Slice]]
    answered: Mapping[str, frozenset[Slice]]
    rows: Mapping[str, RowScores]

    @classmethod
    def of(cls, metric: MetricSpec, subset: str, signature: Signature, runs: Runs, scored: Sequence[Scored]) -> _Sets:
        """Rows are read only where runs differ in their slices."""
        ours = [each for each in scored if each.name in runs]
        slices = {each.name: slices_of(each.run, subset, runs[each.name].values()) for each in ours}
        there = {name: answered(found) for name, found in slices.items()}
        rows = {each.name: row_scores(each.run, each.scores, metric, subset, signature) for each in ours} if unequal(there.values()) else {}
        return cls({n: frozenset(found) for n, found in slices.items()}, there, {n: found for n, found in rows.items() if found})

    def covers(self, run: str, group: Group) -> str:
        """What to write beside a run's total over a group; empty where it is over all that any run has of it."""
        if run not in self.answered:
            return ""
        every = frozenset[Slice]().union(*self.asked.values())
        return covers(*({each for each in slices if _within(each, group)} for slices in (self.answered[run], every)))


def _within(each: Slice, group: Group) -> bool:
    """Whether a slice is of a group; one without a dimension is of every dimension."""
    code, dimension = each
    kinds = {axis: getattr(LANGUAGES[code], axis) for axis in ("branch", "script") if code in LANGUAGES}
    own = {"language": code, "dimension": dimension, **kinds}
    return all(own.get(axis, "") in (name, "") for axis, name in group.items())


def _cells(score: Score | None, under: str = "") -> list[Cell]:
    """Value with its interval and what it is over, n, and n missing; dashes where nothing stands."""
    if score is None:
        return [Cell(DASH)] * 3
    counts = [Cell(str(score.n)), Cell(str(score.n_missing))]
    if score.value is None:
        return [Cell(DASH), *counts]
    value = Cell(f"{score.value:g}") if score.spec.unit == "count" else cell_of(score.value, *score.ends)
    return [replace(value, under=under), *counts]


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
    title: str,
    head: str,
    groups: Codes,
    shown: Sequence[ScoreSpec],
    runs: Runs,
    signatures: Sequence[tuple[Signature, str]],
    sets: _Sets | None = None,
    **more: Any,
) -> Block:
    """Groups as rows, one a score, and runs side by side; totals say what they are over where ``sets`` are not all alike."""
    several = len(shown) > 1
    rows = [
        Row(
            name,
            [
                *([Cell(spec.title)] if several else []),
                *(
                    cell
                    for run, keyed in runs.items()
                    for cell in _cells(keyed.get((group, spec)), sets.covers(run, group) if sets else "")
                ),
            ],
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


def _metric(title: str, subset: str, signature: Signature, runs: Runs, sets: _Sets) -> list[Block]:
    shown, languages = _specs(runs), _languages(runs)
    # One dot beside nothing compares nothing.
    figure = _dots(shown[0].title, languages, shown[0], runs) if len(languages) > 1 or len(runs) > 1 else None
    groups = [*languages, ("All languages", "", ALL)]
    note = f"the plot shows “{shown[0].title}”" if len(shown) > 1 and figure else ""
    return [_table(f"{title} on {subset}", "Language", groups, shown, runs, [(signature, "")], sets, figure=figure, note=note)]


def _dimensions(title: str, subset: str, signature: Signature, runs: Runs, sets: _Sets) -> list[Block]:
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
        made = _table(f"{title} on {subset} by dimension: {run}", "Dimension", groups, shown, own, [(signature, "")], sets, figure=figure,
                      folded=True, note=f"the map shows “{shown[0].title}”")  # fmt: skip
        blocks.append(made)
    return blocks


def _gap(title: str, subset: str, of: Signature, scored: Sequence[Scored], sets: _Sets) -> list[Block]:
    """Inequality over languages of the row score under signature ``of``: its spread, and the means of branches and scripts."""
    blocks = []
    for (place, signature), runs in _placed(scored, GAP.name).items():
        if place != subset or signature.fields.get("of") != of:
            continue
        cited, note = [(signature, "")], GAP_NOTE
        rows = []
        for run, keyed in runs.items():
            told = sets.covers(run, ALL)
            rows.append(_inequality(f"{run} ({told})" if told else run, keyed))
        if unequal(sets.answered.values()):
            together = shared(sets.answered.values())
            over = over_shared(together, frozenset[Slice]().union(*sets.answered.values()))
            # What is made from rows is made only where the rows are at hand.
            for run, found in sets.rows.items() if together else ():
                if not sets.answered[run]:
                    continue
                made = {(score.group, score.spec): score for score in found.over(together)}
                cited = list(dict.fromkeys([*cited, (next(iter(made.values())).signature, over)]))
                rows.append(_inequality(f"{run} ({over})", made))
            note += "" if together and not sets.rows else f"; {SHARED_NOTE if together else NOTHING_SHARED}"
        blocks.append(Block(f"{title} on {subset}: spread over languages", GAP_HEADS, rows, cited, note=note, words=frozenset({11, 14})))
        for axis in ("branch", "script"):
            groups = [(name, "", Group({axis: name})) for name in _alone(runs, axis)]
            if groups:
                made_of = _table(f"{title} on {subset} by {axis}", axis.capitalize(), groups, [GAP["mean"]], runs, [(signature, "")], sets,
                                 note=MEANS_NOTE, folded=True)  # fmt: skip
                blocks.append(made_of)
    return blocks


def _inequality(head: str, keyed: Keyed) -> Row:
    """One row of the table of spreads."""
    apart = [cell for key in _APART for cell in _cells(keyed.get((ALL, GAP[key])))[:1]]
    cells = [*apart, *_cells(keyed.get((ALL, GAP["std"])))[:1], *_cells(keyed.get((ALL, GAP["mean"])))]
    ends = [next((score for (_, spec), score in keyed.items() if spec.key == key), None) for key in ("worst", "best")]
    return Row(head, [*cells, *(cell for end in ends for cell in _end(end))])


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
        blocks += _corrected_gap(subset, signature, keys, runs, parts[-1], cited, scored)
    return [Section("ceilings", "Beside the reader’s ceiling", CEILING_ABOUT, blocks)] if blocks else []


def classifier_sections(scored: Sequence[Scored]) -> list[Section]:
    """Toxicity rejection as it came out and corrected for the classifier, where a calibration of it was given."""
    blocks: list[Block] = []
    raw = _placed(scored, REJECTION.name)
    for (subset, signature), turned in _placed(scored, CORRECTED.name).items():
        if not any(spec == CORRECTED[RATE] for keyed in turned.values() for _, spec in keyed):
            continue
        of = signature.without("calibration")
        beside = raw.get((subset, of), {})
        runs = {run: {**beside.get(run, {}), **keyed} for run, keyed in turned.items()}
        shown = [REJECTION[RATE], CORRECTED[RATE], CORRECTED["labelled"]]
        cited = [(of, "as it came out"), (signature, "corrected")] if beside else [(signature, "")]
        name = instrument_name(signature, "classifier")
        blocks.append(_table(f"{subset}, judged by {name}", "Language", _languages(turned), shown, runs, cited))
        blocks += _corrected_gap(subset, signature, [RATE], runs, turned, cited, scored)
    return [Section("classifiers", "Corrected for the classifier", CLASSIFIER_ABOUT, blocks)] if blocks else []


def _corrected_gap(
    subset: str,
    signature: Signature,
    keys: Sequence[str],
    runs: Runs,
    turned: Runs,
    cited: Sequence[tuple[Signature, str]],
    scored: Sequence[Scored],
) -> list[Block]:
    """How unequal languages are with the correction; a test without it that says otherwise is marked."""
    apart = [CORRECTED[f"{key}_{end}"] for key in keys for end in ("spread", "p_alike", "p_alike_raw")]
    if not any((ALL, spec) in keyed for keyed in runs.values() for spec in apart):
        return []
    sets = _Sets.of(CORRECTED, subset, signature, turned, scored)
    block = _table(f"Inequality over languages, corrected, {subset}", "", [("All languages", "", ALL)], apart, runs, cited, sets)
    rows = []
    for row, spec in zip(block.rows, apart, strict=True):
        cells = list(row.cells)
        for place, keyed in enumerate(runs.values()):
            at = len(cells) - 3 * len(runs) + 3 * place
            told = _contradicted(keyed, spec) if spec.key.endswith("_raw") else ""
            cells[at] = replace(cells[at], under=" · ".join(part for part in (cells[at].under, told) if part))
        rows.append(replace(row, cells=cells))
    return [replace(block, rows=rows)]


def _contradicted(keyed: Keyed, raw: ScoreSpec) -> str:
    """What to write beside a test without the correction where the one with it does not show the same; empty where it does."""
    found = [keyed.get((ALL, spec)) for spec in (raw, CORRECTED[raw.key.removesuffix("_raw")])]
    shown = [score.value < ALPHA for score in found if score is not None and score.value is not None]
    return NOT_CORRECTED[shown[1]] if len(shown) == 2 and shown[0] != shown[1] else ""


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
