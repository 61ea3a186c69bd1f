"""An audit's scores → the sections of the page and of the console: what stands where, and in which words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from t2i_parity.cards.environment import number, p_value, percent, points
from t2i_parity.cards.report import FLAGGED
from t2i_parity.cards.report_audit import WHAT, AuditSection, AuditTable, Cell, HeatMap, Row
from t2i_parity.cards.report_texts import (
    CATEGORIES_ABOUT,
    CHECKS_ABOUT,
    IMAGES_ABOUT,
    SCORES_ABOUT,
    TYPOS_ABOUT,
    WORDING_ABOUT,
    instrument_name,
)
from t2i_parity.cards.verdicts import mark, words
from t2i_parity.cards.verdicts import short as in_short
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.audit.pairs import reference_of
from t2i_parity.generate.specs.audit import (
    IMAGE_SCORE_SHIFT,
    PROMPT_CHECKS,
    SCORE_SHIFT,
    SEMANTIC_PRESERVATION,
    SHIFT_DIRECTION,
    TRUNCATION,
    TYPO_ABLATION,
    TYPO_MATCH,
)
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.dialect_penalty.spec import SPEC as DIALECT_PENALTY
from t2i_parity.metrics.over_censorship_rate.spec import SPEC as OVER_CENSORSHIP_RATE
from t2i_parity.metrics.scores import Group, MetricSpec, Score
from t2i_parity.metrics.toxic_bypass_rate.spec import SPEC as TOXIC_BYPASS_RATE
from t2i_parity.metrics.verdicts import MARGINS, Verdict, margin_of, verdict

Keyed = Mapping[str, Score]
"""Scores of one subset, signature and group by key."""
RATE_OF = {"toxic": "TPR", "benign": "FPR"}


def sections(run: str, scores: Sequence[Score], level: float, margin: float | None = None) -> list[AuditSection]:
    """The sections that the run's scores fill; rates by variety have a place of their own on the page.

    ``margin`` is the δ of verdicts in percentage points, where it is another than their scores'.
    """
    made = (
        AuditSection("scores", "Filters’ scores", SCORES_ABOUT, [*_shifts(run, scores), *_truncated(run, scores)]),
        AuditSection("typos", "Against noise of the same size", TYPOS_ABOUT.format(level=f"{level:.0%}").split("\n"), _typos(run, scores)),
        AuditSection("categories", "By category", CATEGORIES_ABOUT, _categories(run, scores, margin)),
        AuditSection(
            "wording", "Where the varieties’ wordings lie", WORDING_ABOUT, [*_preservation(run, scores), *_directions(run, scores)]
        ),
        AuditSection("checks", "Checks of the prompts", CHECKS_ABOUT, _checks(run, scores)),
        AuditSection("images", "Images and guardrails", IMAGES_ABOUT, _images(run, scores, margin)),
    )
    return [section for section in made if section.tables]


ORDER = ("scores", "typos", "categories", "wording", "checks", "images")
"""The sections' keys in the order of the page, whichever run has which."""


# Verdicts


def verdicts(family: Sequence[tuple[Score, Score]], margin: float | None = None) -> list[Verdict]:
    """Of each difference and its corrected p of one family, what they show; ``margin`` is δ in percentage points.

    The family is as large as it has tests: a group without a p-value is in none.
    """
    tests = max(1, sum(p.value is not None for _, p in family))

    def within(delta: Score) -> Score:
        return delta if margin is None or delta.spec.unit != "pp" else replace(delta, spec=replace(delta.spec, margin=margin))

    return [verdict(within(delta), p.value, family=tests) for delta, p in family]


def _stated(what: str, count: int, delta: str) -> str:
    return f"Holm’s correction is over {what} ({count} {'test' if count == 1 else 'tests'}); δ = {delta}"


def _tests(family: Sequence[tuple[Score, Score]]) -> int:
    return sum(p.value is not None for _, p in family)


# The tables


def _shifts(run: str, scores: Sequence[Score], metric: MetricSpec = SCORE_SHIFT) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, metric):
        title = f"{instrument_name(signature, 'filter')} on {subset} ({run})"
        if metric is IMAGE_SCORE_SHIFT:
            of = instrument_name(signature, "of")
            evaluator = instrument_name(signature, "evaluator")
            title = f"{of[:1].upper()}{of[1:]}, without a guardrail, scored by {evaluator}, on {subset} ({run})"
        digits = _digits(keyed["mean_reference"].value for keyed in groups.values())
        rows, counts = [], []
        found: dict[Group, Verdict] = {}
        for label in dict.fromkeys(group["label"] for group in groups):
            members = {group: (keyed["delta"], keyed["p_value_holm"]) for group, keyed in groups.items() if group["label"] == label}
            found.update(zip(members, verdicts(list(members.values())), strict=True))
            counts.append(f"{_tests(list(members.values()))} on {label} prompts")
        for group, keyed in _by_variety(groups):
            delta = keyed["delta"]
            cells = [
                Cell(group["label"]),
                *_counts(delta),
                Cell(f"{number(keyed['mean_reference'].value, digits)} → {number(keyed['mean_variety'].value, digits)}"),
                _shift_cell(delta, found[group], digits),
                Cell(p_value(keyed["p_value"].value)),
                Cell(p_value(keyed["p_value_holm"].value)),
                _verdict_cell(found[group], ("scored higher", "scored lower")),
            ]
            rows.append(Row(variety_name(group["variety"]), cells, group["variety"]))
        heads = ("Variety", "Prompts", "n", "Missing", "Mean score, reference → variety", "Δ score", "p", "Holm p", WHAT)
        note = f"Holm’s correction is over the varieties of one label (tests: {', '.join(counts)}); δ = {margin_of(metric['delta']):g}"
        tables.append(AuditTable(title, heads, rows, [signature], note, frozenset({1, 8})))
    return tables


def _truncated(run: str, scores: Sequence[Score]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, TRUNCATION):
        if not any(keyed["n_truncated"].value for keyed in groups.values()):
            continue
        rows = [
            Row(variety_name(group["variety"]), [Cell(str(keyed["n_truncated"].value)), *_counts(keyed["n_truncated"])], group["variety"])
            for group, keyed in _by_variety(groups)
        ]
        title = f"Prompts of {subset} that {instrument_name(signature, 'filter')} saw only the beginning of ({run})"
        tables.append(AuditTable(title, ("Variety", "Cut", "n", "Missing"), rows, [signature]))
    return tables


def _typos(run: str, scores: Sequence[Score]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, TYPO_ABLATION):
        rows = []
        for group, keyed in _by_variety(groups):
            for label, rate in RATE_OF.items():
                typo, gap = (keyed[f"{kind}_{rate.lower()}_pp"] for kind in ("delta_typo", "bias_gap"))
                if not typo.n:
                    continue
                spreads = [keyed[f"{kind}_{rate.lower()}_sd_pp"].value for kind in ("delta_typo", "bias_gap")]
                cells = [
                    Cell(f"{label}, {rate}"),
                    *_counts(typo),
                    *(_with_spread(*both) for both in zip((typo, gap), spreads, strict=True)),
                ]
                rows.append(Row(variety_name(group["variety"]), cells, group["variety"]))
        seeds = instrument_name(signature, "seeds").replace("+", ", ")
        title = f"{instrument_name(signature, 'filter')} on {subset} ({run})"
        heads = ("Variety", "Prompts", "n", "Missing", "Δ typo, pp", "Bias gap, pp")
        tables.append(AuditTable(title, heads, rows, [signature], f"seeds {seeds}", frozenset({1})))
    for subset, signature, groups in _tables(scores, TYPO_MATCH):
        rows = [
            Row(
                variety_name(group["variety"]),
                [
                    *_counts(keyed["matched"]),
                    Cell(percent(keyed["matched"].value)),
                    Cell(number(keyed["target"].value)),
                    Cell(number(keyed["similarity"].value)),
                ],
                group["variety"],
            )
            for group, keyed in _by_variety(groups)
        ]
        heads = ("Variety", "Texts with typos", "Missing", "Within the tolerance", "Likeness aimed at", "Likeness reached")
        tables.append(AuditTable(f"How well the typos of {subset} were matched ({run})", heads, rows, [signature]))
    return tables


def _categories(run: str, scores: Sequence[Score], margin: float | None) -> list[AuditTable]:
    tables = []
    for metric, short, judge in ((DIALECT_PENALTY, "", ""), *GUARDED):
        for subset, signature, groups in _tables(scores, metric, by_category=True):
            first = next(iter(groups.values()))
            if metric is DIALECT_PENALTY:
                rate = "tpr" if "delta_tpr_pp" in first else "fpr"
                keys = (f"delta_{rate}_pp", f"{rate}_reference", f"{rate}_variety", f"p_{rate}_holm")
                what = f"Δ{rate.upper()} of {instrument_name(signature, 'filter')}"
            else:
                keys = ("delta_pp", f"{short}_reference", f"{short}_variety", "p_value_holm")
                what = f"Δ{short.upper()} of {instrument_name(signature, 'guarded')}, judged by {instrument_name(signature, judge)}"
            tables.append(_by_category(f"{what} on {subset} ({run})", signature, groups, keys, MORE[short], margin))
    return tables


def _by_category(
    title: str,
    signature: Signature,
    groups: Mapping[Group, Keyed],
    keys: tuple[str, str, str, str],
    more: tuple[str, str],
    margin: float | None,
) -> AuditTable:
    delta, reference, variety, holm = keys
    found = {(group["category"], group["variety"]): keyed for group, keyed in _by_variety(groups)}
    family = [(keyed[delta], keyed[holm]) for keyed in found.values()]
    judged = dict(zip(found, verdicts(family, margin), strict=True))
    names = sorted({category for category, _ in found})
    varieties = list(dict.fromkeys(code for _, code in found))
    values = [[found[name, code][delta].value if (name, code) in found else None for code in varieties] for name in names]
    kinds = [[judged[name, code].kind if (name, code) in found else None for code in varieties] for name in names]
    rows = []
    heat = HeatMap(title, names, varieties, values, kinds) if any(value is not None for row in values for value in row) else None
    for name in names:
        for code in varieties:
            if (name, code) in found:
                keyed = found[name, code]
                rates = f"{percent(keyed[reference].value)} → {percent(keyed[variety].value)}"
                cells = [
                    Cell(code),
                    *_counts(keyed[delta]),
                    Cell(rates),
                    _pp_cell(keyed[delta], judged[name, code]),
                    Cell(p_value(keyed[holm].value)),
                    _verdict_cell(judged[name, code], more),
                ]
                rows.append(Row(name, cells))
    heads = ("Category", "Variety", "n", "Missing", "Rate, reference → variety", "Δ pp", "Holm p", WHAT)
    note = _stated("all cells of one map", _tests(family), _points(margin))
    return AuditTable(title, heads, rows, [signature], note, frozenset({1, 7}), heat)


def _preservation(run: str, scores: Sequence[Score]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, SEMANTIC_PRESERVATION):
        baseline, rows, inner = {}, [], []
        for group, keyed in _by_variety(groups):
            if "category" in group:
                cell = keyed["within_category"]
                inner.append(Row(group["category"], [Cell(group["label"]), Cell(group["variety"]), *_counts(cell), _value_cell(cell)]))
            elif "within_category_macro" in keyed:
                baseline[group["variety"], group["label"]] = keyed["within_category_macro"]
        for group, keyed in _by_variety(groups):
            if "similarity" in keyed:
                below = baseline.get((reference_of(group["variety"]) or group["variety"], group["label"]))
                cells = [
                    Cell(group["label"]),
                    *_counts(keyed["similarity"]),
                    _value_cell(keyed["similarity"]),
                    _value_cell(below) if below else Cell("–"),
                ]
                rows.append(Row(variety_name(group["variety"]), cells, group["variety"]))
        title = f"Likeness to the reference on {subset}, by {instrument_name(signature, 'encoder')} ({run})"
        heads = ("Variety", "Prompts", "n", "Missing", "Likeness to the reference", "Within-category baseline, macro-averaged")
        tables.append(AuditTable(title, heads, rows, [signature], words=frozenset({1})))
        if inner:
            heads = ("Category", "Prompts", "Reference", "n", "Missing", "Likeness of two different prompts")
            title = f"Within-category baseline of {subset}, by {instrument_name(signature, 'encoder')} ({run})"
            tables.append(AuditTable(title, heads, inner, [signature], words=frozenset({1, 2})))
    return tables


def _directions(run: str, scores: Sequence[Score]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, SHIFT_DIRECTION):
        rows, between = [], []
        for group, keyed in _by_variety(groups):
            if "dialect_typo" in keyed:
                cells = [
                    Cell(group["label"]),
                    *_counts(keyed["difference"]),
                    *(_value_cell(keyed[key]) for key in ("dialect_typo", "typo_typo", "difference")),
                    Cell(f"{number(keyed['dialect_length'].value)}, {number(keyed['typo_length'].value)}"),
                ]
                rows.append(Row(variety_name(group["variety"]), cells, group["variety"]))
            elif "dialect_dialect" in keyed:
                cells = [Cell(group["label"]), *_counts(keyed["dialect_dialect"]), _value_cell(keyed["dialect_dialect"])]
                between.append(Row(f"{group['variety']} and {group['other']}", cells))
            else:
                cell = keyed["dialect_dialect_macro"]
                between.append(Row("mean over the combinations", [Cell(group["label"]), *_counts(cell), _value_cell(cell)]))
        encoder = instrument_name(signature, "encoder")
        if rows:
            along = ("Variety", "Prompts", "n", "Missing", "Variety with typo", "Typo with typo", "Difference", "Lengths")
            title = f"Alignment of shifts on {subset}, by {encoder} ({run})"
            tables.append(AuditTable(title, along, rows, [signature], "lengths: of the variety’s shift, of the typos’", frozenset({1})))
        if between:
            heads = ("Varieties", "Prompts", "n", "Missing", "Variety with variety")
            title = f"Alignment of two varieties’ shifts on {subset}, by {encoder} ({run})"
            tables.append(AuditTable(title, heads, between, [signature], words=frozenset({1})))
    return tables


def _checks(run: str, scores: Sequence[Score]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, PROMPT_CHECKS):
        rows: dict[tuple[str, str], list[Row]] = {}
        for group, keyed in _by_variety(groups):
            for key, cell in keyed.items():
                what, value = (f"“{group['verdict']}”", percent(cell.value)) if key == "share" else ("mean score", number(cell.value))
                line = [Cell(group["label"]), Cell(what), *_counts(cell), Cell(value, _interval(cell, number))]
                rows.setdefault((group["variety"], group["label"]), []).append(Row(variety_name(group["variety"]), line, group["variety"]))
        title = f"{instrument_name(signature, 'check')} by {instrument_name(signature, 'by')}, on {subset} ({run})"
        heads = ("Variety", "Prompts", "What", "n", "Missing", "Value")
        lines = [row for members in rows.values() for row in members]
        tables.append(AuditTable(title, heads, lines, [signature], words=frozenset({1, 2})))
    return tables


GUARDED = ((TOXIC_BYPASS_RATE, "tbr", "evaluator"), (OVER_CENSORSHIP_RATE, "ocr", "encoder"))
"""What a guardrail does to images: the metric, its short name, and whose judgement it is."""


MORE = {
    "": FLAGGED,
    "tbr": ("bypassed more often", "bypassed less often"),
    "ocr": ("over-censored more often", "over-censored less often"),
}
"""What a difference is called, above 0 and below, by the rate's short name; a filter's has none."""


def _points(margin: float | None) -> str:
    return f"{MARGINS['pp'] if margin is None else margin:g} pp"


def _images(run: str, scores: Sequence[Score], margin: float | None) -> list[AuditTable]:
    tables = _shifts(run, scores, IMAGE_SCORE_SHIFT)
    for metric, short, judge in GUARDED:
        # One table for all thresholds.
        together: dict[tuple[str, Signature], dict[Signature, Mapping[Group, Keyed]]] = {}
        for subset, signature, groups in _tables(scores, metric, by_category=False):
            together.setdefault((subset, signature.without("threshold")), {})[signature] = groups
        for (subset, alike), by_signature in together.items():
            rows, tests = [], 0
            for place, (signature, groups) in enumerate(by_signature.items()):
                family = [(keyed["delta_pp"], keyed["p_value_holm"]) for keyed in groups.values()]
                judged, tests = dict(zip(groups, verdicts(family, margin), strict=True)), max(tests, _tests(family))
                for group, keyed in _by_variety(groups):
                    first = [Cell(instrument_name(signature, "threshold"))] if short == "ocr" else []
                    rows.append((list(groups).index(group), place, _rate_row(group["variety"], keyed, short, first, judged[group])))
            rows.sort(key=lambda row: row[:2])
            guard = f"{instrument_name(alike, 'guarded')} (guardrail: {instrument_name(alike, 'guardrail')})"
            title = f"{short.upper()} of {guard} on {subset}, judged by {instrument_name(alike, judge)} ({run})"
            notes = ["n: pairs whose images are both toxic without the guardrail"] if short == "tbr" else []
            if alike.fields.get("noise") != "shared":
                notes.append("the runs began from different noise, so that chance moves images too")
            heads = (
                "Variety",
                *(("Threshold",) if short == "ocr" else ()),
                "n",
                "Missing",
                f"{short.upper()}, reference → variety",
                "Δ pp",
            )
            heads = (*heads, "Only variety, only reference", "p", "Holm p", WHAT)
            over = "the varieties at one threshold" if short == "ocr" else "the varieties"
            notes.append(_stated(over, tests, _points(margin)))
            last = frozenset({len(heads) - 1})
            tables.append(AuditTable(title, heads, [row for *_, row in rows], list(by_signature), "; ".join(notes), last))
    return tables


def _rate_row(code: str, keyed: Keyed, short: str, first: Sequence[Cell], judged: Verdict) -> Row:
    rates = f"{percent(keyed[f'{short}_reference'].value)} → {percent(keyed[f'{short}_variety'].value)}"
    only = (keyed["only_variety"].value, keyed["only_reference"].value)
    cells = [
        *first,
        *_counts(keyed["delta_pp"]),
        Cell(rates),
        _pp_cell(keyed["delta_pp"], judged),
        Cell(", ".join("–" if count is None else str(count) for count in only)),
        Cell(p_value(keyed["p_value"].value)),
        Cell(p_value(keyed["p_value_holm"].value)),
        _verdict_cell(judged, MORE[short]),
    ]
    return Row(variety_name(code), cells, code)


# Inside


def _tables(
    scores: Sequence[Score], metric: MetricSpec, *, by_category: bool | None = None
) -> Iterator[tuple[str, Signature, Mapping[Group, Keyed]]]:
    """(subset, signature, {group: {key: score}}) of a metric; ``by_category`` takes only groups that have a category, or none that has."""
    found: dict[tuple[str, Signature], dict[Group, dict[str, Score]]] = {}
    for score in scores:
        if score.metric == metric.name and by_category in (None, "category" in score.group):
            found.setdefault((score.subset, score.signature), {}).setdefault(score.group, {})[score.key] = score
    for (subset, signature), groups in found.items():
        yield subset, signature, groups


def _by_variety(groups: Mapping[Group, Keyed]) -> list[tuple[Group, Keyed]]:
    """Each group with its scores, varieties together in the order of their first."""
    order = list(dict.fromkeys((group.get("variety"), group.get("other")) for group in groups))
    return sorted(groups.items(), key=lambda pair: order.index((pair[0].get("variety"), pair[0].get("other"))))


def variety_name(code: str) -> str:
    """What a variety or language is called, or its code where it is none of ours."""
    return VARIETIES[code].name if code in VARIETIES else LANGUAGES[code].name if code in LANGUAGES else code


def _counts(score: Score) -> list[Cell]:
    return [Cell(str(score.n)), Cell(str(score.n_missing))]


def _interval(score: Score, show: Callable[[float | None], str]) -> str:
    return "" if score.interval is None else f"[{', '.join(map(show, score.ends))}]"


def _verdict_cell(judged: Verdict, more: tuple[str, str]) -> Cell:
    return Cell(words(judged, *more), short=in_short(judged))


def _pp_cell(delta: Score, judged: Verdict) -> Cell:
    return Cell(points(delta.value), _interval(delta, points), mark(judged))


def _shift_cell(delta: Score, judged: Verdict, digits: int) -> Cell:
    def signed(value: float | None) -> str:
        if value is None:
            return "–"
        text = f"{value:+.{digits}f}"
        # What rounds to nothing has no sign.
        return (text if float(text) else text[1:]).replace("-", "−")

    return Cell(signed(delta.value), _interval(delta, signed), mark(judged))


def _with_spread(mean: Score, spread: float | None) -> Cell:
    told = points(mean.value) if spread is None else f"{points(mean.value)} ± {spread:.1f}"
    return Cell(told, _interval(mean, points))


def _value_cell(entry: Score) -> Cell:
    def plain(value: float | None) -> str:
        return number(value).replace("-", "−")

    return Cell(plain(entry.value), _interval(entry, plain))


def _digits(values: Iterator[float | None]) -> int:
    """Fewer digits for scores on a wide scale."""
    return 3 if max((abs(value) for value in values if value is not None), default=0) <= 1 else 2
