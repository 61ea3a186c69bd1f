"""An audit's scores → the sections of the page and of the console: what stands where, and in which words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from t2i_parity.cards.environment import number, p_value, percent, points
from t2i_parity.cards.report import SIGNIFICANT
from t2i_parity.cards.report_audit import AuditSection, AuditTable, Cell, HeatMap, Row
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.audit.pairs import reference_of
from t2i_parity.metrics._common import Signature

Entry = Mapping[str, Any]
Keyed = Mapping[str, Entry]
RATE_OF = {"toxic": "TPR", "benign": "FPR"}
GROUPED = "by"
"""The signature's field that tells a table by categories from the one by varieties."""


def sections(run: str, scores: Sequence[Entry], level: float) -> list[AuditSection]:
    """The sections that the run's scores fill; rates by variety have a place of their own on the page."""
    made = (
        AuditSection("scores", "Filters’ scores", SCORES_ABOUT, [*_shifts(run, scores), *_truncated(run, scores)]),
        AuditSection("typos", "Against noise of the same size", TYPOS_ABOUT.format(level=f"{level:.0%}").split("\n"), _typos(run, scores)),
        AuditSection("categories", "By category", CATEGORIES_ABOUT, _categories(run, scores)),
        AuditSection(
            "wording", "Where the varieties’ wordings lie", WORDING_ABOUT, [*_preservation(run, scores), *_directions(run, scores)]
        ),
        AuditSection("checks", "Checks of the prompts", CHECKS_ABOUT, _checks(run, scores)),
        AuditSection("images", "Images and guardrails", IMAGES_ABOUT, _images(run, scores)),
    )
    return [section for section in made if section.tables]


ORDER = ("scores", "typos", "categories", "wording", "checks", "images")
"""The sections' keys in the order of the page, whichever run has which."""


SCORES_ABOUT = (
    "Verdicts hide shifts that do not cross a filter’s threshold. Here is how far its continuous score moves from the reference to each "
    "variety, on the filter’s own scale. The p-value is a paired t-test’s; Holm’s correction is over the varieties of a table’s label.",
)
TYPOS_ABOUT = (
    "A filter may flag a variety merely because it is unusual. Typos put the reference as far off as the variety’s wording is, and "
    "nothing else: Δ typo is what a filter makes of that, and the bias gap (Δ variety − Δ typo) is what the variety does beyond it. "
    "Values are means over the seeds of the typos, ± is their standard deviation over seeds; brackets hold {level} intervals of the "
    "mean, resampled by meaning."
)
CATEGORIES_ABOUT = (
    "The shift of each variety in each category of prompts, in percentage points. Holm’s correction is over all cells of one map: with "
    "few prompts in a cell, only large shifts can be told from chance.",
)
WORDING_ABOUT = (
    "How near a variety’s wording lies to its reference in an encoder’s space (cosine, 1 is the same). Two different reference prompts "
    "of one category are the baseline to read it by: far above that, the meaning was kept.",
    "And in which direction it lies: if a variety were nothing but noise as large, its shift would align with typo shifts as well as "
    "two typo shifts align with each other. The difference says how much less it does; above 0 speaks for features of the variety.",
)
CHECKS_ABOUT = (
    "What was checked when the varieties’ prompts were made, as a round trip through another model: shares of verdicts, and mean "
    "scores. Where a check tells that meaning or toxicity was not kept, a shift of a filter may be the translation’s doing.",
)
IMAGES_ABOUT = (
    "Unguarded shifts tell whether the generator alone makes a variety’s images more toxic (an evaluator’s probabilities, summed, × "
    "100). The toxic bypass rate (TBR) is the share of toxic pairs, toxic in both wordings without the guardrail, whose image still is "
    "with it; an image that the guardrail withheld has not got past it. The over-censorship rate (OCR) is the share of benign pairs "
    "whose image the guardrail moves away from the reference’s text by more than the threshold; that can also come from a change of "
    "style or quality.",
    "A pair counts only with all four of its images and all their judgements; the others are missing.",
)


# The tables


def _shifts(run: str, scores: Sequence[Entry], metric: str = "score_shift", of: str = "filter") -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, metric):
        title = f"{_field(signature, of)} on {subset} ({run})"
        if "|of:" in signature:
            images = _field(signature, "of").removeprefix("images of ")
            title = f"Images of {images}, without a guardrail, scored by {_field(signature, of)}, on {subset} ({run})"
        digits = _digits(keyed["mean_reference"]["value"] for keyed in groups.values())
        rows = []
        for group, keyed in _by_variety(groups):
            delta = keyed["delta"]
            cells = [
                Cell(group["label"]),
                *_counts(delta),
                Cell(f"{number(keyed['mean_reference']['value'], digits)} → {number(keyed['mean_variety']['value'], digits)}"),
                _shift_cell(delta, keyed["p_value_holm"], digits),
                Cell(p_value(keyed["p_value"]["value"])),
                Cell(p_value(keyed["p_value_holm"]["value"])),
            ]
            rows.append(Row(_name(group["variety"]), cells, group["variety"]))
        heads = ("Variety", "Prompts", "n", "Missing", "Mean score, reference → variety", "Δ score", "p", "Holm p")
        tables.append(AuditTable(title, heads, rows, [signature], words=frozenset({1})))
    return tables


def _truncated(run: str, scores: Sequence[Entry]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, "truncation"):
        if not any(keyed["n_truncated"]["value"] for keyed in groups.values()):
            continue
        rows = [
            Row(_name(group["variety"]), [Cell(str(keyed["n_truncated"]["value"])), *_counts(keyed["n_truncated"])], group["variety"])
            for group, keyed in _by_variety(groups)
        ]
        title = f"Prompts of {subset} that {_field(signature, 'filter')} saw only the beginning of ({run})"
        tables.append(AuditTable(title, ("Variety", "Cut", "n", "Missing"), rows, [signature]))
    return tables


def _typos(run: str, scores: Sequence[Entry]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, "typo_ablation"):
        rows = []
        for group, keyed in _by_variety(groups):
            for label, rate in RATE_OF.items():
                typo, gap = (keyed[f"{kind}_{rate.lower()}_pp"] for kind in ("delta_typo", "bias_gap"))
                if not typo["n"]:
                    continue
                spreads = [keyed[f"{kind}_{rate.lower()}_sd_pp"]["value"] for kind in ("delta_typo", "bias_gap")]
                cells = [
                    Cell(f"{label}, {rate}"),
                    *_counts(typo),
                    *(_with_spread(*both) for both in zip((typo, gap), spreads, strict=True)),
                ]
                rows.append(Row(_name(group["variety"]), cells, group["variety"]))
        seeds = _field(signature, "seeds").replace("+", ", ")
        title = f"{_field(signature, 'filter')} on {subset} ({run})"
        heads = ("Variety", "Prompts", "n", "Missing", "Δ typo, pp", "Bias gap, pp")
        tables.append(AuditTable(title, heads, rows, [signature], f"seeds {seeds}", frozenset({1})))
    for subset, signature, groups in _tables(scores, "typo_match"):
        rows = [
            Row(
                _name(group["variety"]),
                [
                    *_counts(keyed["matched"]),
                    Cell(percent(keyed["matched"]["value"])),
                    Cell(number(keyed["target"]["value"])),
                    Cell(number(keyed["similarity"]["value"])),
                ],
                group["variety"],
            )
            for group, keyed in _by_variety(groups)
        ]
        heads = ("Variety", "Texts with typos", "Missing", "Within the tolerance", "Likeness aimed at", "Likeness reached")
        tables.append(AuditTable(f"How well the typos of {subset} were matched ({run})", heads, rows, [signature]))
    return tables


def _categories(run: str, scores: Sequence[Entry]) -> list[AuditTable]:
    tables = []
    for metric in ("dialect_penalty", "toxic_bypass_rate", "over_censorship_rate"):
        for subset, signature, groups in _tables(scores, metric, by_category=True):
            first = next(iter(groups.values()))
            if metric == "dialect_penalty":
                rate = "tpr" if "delta_tpr_pp" in first else "fpr"
                keys = (f"delta_{rate}_pp", f"{rate}_reference", f"{rate}_variety", f"p_{rate}_holm")
                what = f"Δ{rate.upper()} of {_field(signature, 'filter')}"
            else:
                short = "tbr" if metric.startswith("toxic") else "ocr"
                keys = ("delta_pp", f"{short}_reference", f"{short}_variety", "p_value_holm")
                judge = _field(signature, "evaluator" if short == "tbr" else "encoder")
                what = f"Δ{short.upper()} of {_field(signature, 'guarded')}, judged by {judge}"
            tables.append(_by_category(f"{what} on {subset} ({run})", signature, groups, keys))
    return tables


def _by_category(title: str, signature: str, groups: Mapping[str, Keyed], keys: tuple[str, str, str, str]) -> AuditTable:
    delta, reference, variety, holm = keys
    found = {(group["category"], group["variety"]): keyed for group, keyed in _by_variety(groups)}
    names = sorted({category for category, _ in found})
    varieties = list(dict.fromkeys(code for _, code in found))
    values = [[found[name, code][delta]["value"] if (name, code) in found else None for code in varieties] for name in names]
    shown = [
        [bool(_mark(found[name, code][delta], found[name, code][holm])) if (name, code) in found else False for code in varieties]
        for name in names
    ]
    rows = []
    heat = HeatMap(title, names, varieties, values, shown) if any(value is not None for row in values for value in row) else None
    for name in names:
        for code in varieties:
            if (name, code) in found:
                keyed = found[name, code]
                rates = f"{percent(keyed[reference]['value'])} → {percent(keyed[variety]['value'])}"
                cells = [
                    Cell(code),
                    *_counts(keyed[delta]),
                    Cell(rates),
                    _pp_cell(keyed[delta], keyed[holm]),
                    Cell(p_value(keyed[holm]["value"])),
                ]
                rows.append(Row(name, cells))
    heads = ("Category", "Variety", "n", "Missing", "Rate, reference → variety", "Δ pp", "Holm p")
    return AuditTable(title, heads, rows, [signature], words=frozenset({1}), heat=heat)


def _preservation(run: str, scores: Sequence[Entry]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, "semantic_preservation"):
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
                rows.append(Row(_name(group["variety"]), cells, group["variety"]))
        title = f"Likeness to the reference on {subset}, by {_field(signature, 'encoder')} ({run})"
        heads = ("Variety", "Prompts", "n", "Missing", "Likeness to the reference", "Within-category baseline, macro-averaged")
        tables.append(AuditTable(title, heads, rows, [signature], words=frozenset({1})))
        if inner:
            heads = ("Category", "Prompts", "Reference", "n", "Missing", "Likeness of two different prompts")
            title = f"Within-category baseline of {subset}, by {_field(signature, 'encoder')} ({run})"
            tables.append(AuditTable(title, heads, inner, [signature], words=frozenset({1, 2})))
    return tables


def _directions(run: str, scores: Sequence[Entry]) -> list[AuditTable]:
    tables = []
    for subset, signature, groups in _tables(scores, "shift_direction"):
        rows, between = [], []
        for group, keyed in _by_variety(groups):
            if "dialect_typo" in keyed:
                cells = [
                    Cell(group["label"]),
                    *_counts(keyed["difference"]),
                    *(_value_cell(keyed[key]) for key in ("dialect_typo", "typo_typo", "difference")),
                    Cell(f"{number(keyed['dialect_length']['value'])}, {number(keyed['typo_length']['value'])}"),
                ]
                rows.append(Row(_name(group["variety"]), cells, group["variety"]))
            elif "dialect_dialect" in keyed:
                one, _, other = group["varieties"].partition("+")
                cells = [Cell(group["label"]), *_counts(keyed["dialect_dialect"]), _value_cell(keyed["dialect_dialect"])]
                between.append(Row(f"{one} and {other}", cells))
            else:
                cell = keyed["dialect_dialect_macro"]
                between.append(Row("mean over the combinations", [Cell(group["label"]), *_counts(cell), _value_cell(cell)]))
        encoder = _field(signature, "encoder")
        if rows:
            along = ("Variety", "Prompts", "n", "Missing", "Variety with typo", "Typo with typo", "Difference", "Lengths")
            title = f"Alignment of shifts on {subset}, by {encoder} ({run})"
            tables.append(AuditTable(title, along, rows, [signature], "lengths: of the variety’s shift, of the typos’", frozenset({1})))
        if between:
            heads = ("Varieties", "Prompts", "n", "Missing", "Variety with variety")
            title = f"Alignment of two varieties’ shifts on {subset}, by {encoder} ({run})"
            tables.append(AuditTable(title, heads, between, [signature], words=frozenset({1})))
    return tables


def _checks(run: str, scores: Sequence[Entry]) -> list[AuditTable]:
    tables = []
    found: dict[tuple[str, str], dict[tuple[str, str, str], list[Row]]] = {}
    for subset, signature, groups in _tables(scores, "prompt_checks"):
        rows: dict[tuple[str, str, str], list[Row]] = found.setdefault((subset, signature), {})
        for group, keyed in _by_variety(groups):
            place = (group["variety"], group["label"], "")
            for key, cell in keyed.items():
                what, value = (f"“{group['verdict']}”", percent(cell["value"])) if key == "share" else ("mean score", number(cell["value"]))
                line = [Cell(group["label"]), Cell(what), *_counts(cell), Cell(value, _interval(cell, number))]
                rows.setdefault(place, []).append(Row(_name(group["variety"]), line, group["variety"]))
    for (subset, signature), by_place in found.items():
        title = f"{_field(signature, 'check')} by {_field(signature, 'by')}, on {subset} ({run})"
        heads = ("Variety", "Prompts", "What", "n", "Missing", "Value")
        lines = [row for rows in by_place.values() for row in rows]
        tables.append(AuditTable(title, heads, lines, [signature], words=frozenset({1, 2})))
    return tables


def _images(run: str, scores: Sequence[Entry]) -> list[AuditTable]:
    tables = _shifts(run, scores, "image_score_shift", "evaluator")
    for metric, short, judge in (("toxic_bypass_rate", "tbr", "evaluator"), ("over_censorship_rate", "ocr", "encoder")):
        # One table for all thresholds.
        together: dict[tuple[str, str], dict[str, dict[str, dict[str, Entry]]]] = {}
        for subset, signature, groups in _tables(scores, metric):
            parsed_signature = Signature.parse(signature)
            rest = {key: value for key, value in parsed_signature.fields.items() if key != "threshold"}
            alike = str(Signature(parsed_signature.metric, rest, parsed_signature.version))
            together.setdefault((subset, alike), {})[signature] = groups
        for (subset, alike), by_signature in together.items():
            rows = []
            for place, (signature, groups) in enumerate(by_signature.items()):
                for group, keyed in _by_variety(groups):
                    first = [Cell(_field(signature, "threshold"))] if short == "ocr" else []
                    rows.append(
                        (list(groups).index(f"variety:{group['variety']}"), place, _rate_row(group["variety"], keyed, short, first))
                    )
            rows.sort(key=lambda row: row[:2])
            guard = f"{_field(alike, 'guarded')} (guardrail: {_field(alike, 'guardrail')})"
            title = f"{short.upper()} of {guard} on {subset}, judged by {_field(alike, judge)} ({run})"
            notes = ["n: pairs whose images are both toxic without the guardrail"] if short == "tbr" else []
            notes += [] if _field(alike, "noise") == "shared" else ["the runs began from different noise, so that chance moves images too"]
            heads = (
                "Variety",
                *(("Threshold",) if short == "ocr" else ()),
                "n",
                "Missing",
                f"{short.upper()}, reference → variety",
                "Δ pp",
            )
            heads = (*heads, "Only variety, only reference", "p", "Holm p")
            tables.append(AuditTable(title, heads, [row for *_, row in rows], list(by_signature), "; ".join(notes)))
    return tables


def _rate_row(code: str, keyed: Keyed, short: str, first: Sequence[Cell]) -> Row:
    rates = f"{percent(keyed[f'{short}_reference']['value'])} → {percent(keyed[f'{short}_variety']['value'])}"
    only = (keyed["only_variety"]["value"], keyed["only_reference"]["value"])
    cells = [
        *first,
        *_counts(keyed["delta_pp"]),
        Cell(rates),
        _pp_cell(keyed["delta_pp"], keyed["p_value_holm"]),
        Cell(", ".join("–" if count is None else str(count) for count in only)),
        Cell(p_value(keyed["p_value"]["value"])),
        Cell(p_value(keyed["p_value_holm"]["value"])),
    ]
    return Row(_name(code), cells, code)


# Inside


def _tables(scores: Sequence[Entry], metric: str, *, by_category: bool = False) -> Iterator[tuple[str, str, dict[str, dict[str, Entry]]]]:
    """(subset, signature, {group: {key: entry}}) of a metric's entries."""
    found: dict[tuple[str, str], dict[str, dict[str, Entry]]] = {}
    for entry in scores:
        module, _, key = entry["metric"].partition(".")
        if module == metric and (f"|{GROUPED}:category" in entry["signature"]) == by_category:
            found.setdefault((entry["subset"], entry["signature"]), {}).setdefault(entry["group"], {})[key] = entry
    for (subset, signature), groups in found.items():
        yield subset, signature, groups


def _by_variety(groups: Mapping[str, Keyed]) -> Iterator[tuple[dict[str, str], Keyed]]:
    """Each group taken apart ({"variety": "AAVE", "label": "toxic"}), varieties together in the order of their first."""
    parts = [(parsed(group), keyed) for group, keyed in groups.items()]
    order = list(dict.fromkeys(each.get("variety", each.get("varieties", "")) for each, _ in parts))
    yield from sorted(parts, key=lambda pair: order.index(pair[0].get("variety", pair[0].get("varieties", ""))))


def parsed(group: str) -> dict[str, str]:
    """A group's name as its parts. A category may hold anything, and stands last.

    >>> parsed("variety:AAVE,category:Drugs, crime: other")
    {'variety': 'AAVE', 'category': 'Drugs, crime: other'}
    """
    head, found, category = group.partition(",category:")
    parts = dict(part.split(":", 1) for part in head.split(",") if ":" in part)
    return {**parts, **({"category": category} if found else {})}


def _field(signature: str, key: str, default: str = "unknown") -> str:
    """What a signature says of a key; of an instrument, its short name."""
    return short_name(Signature.parse(signature).fields.get(key, default))


GENERIC = frozenset({"python", "http", "transformers"})
"""Instruments whose name does not say what they are: their first setting does."""


def short_name(instrument: str) -> str:
    """What an instrument is called in a title, from its signature inside a metric's.

    >>> short_name("profanity-check,threshold=0.5,v=1.9"), short_name("python,function=mine=is_rude,v=1")
    ('profanity-check', 'python mine:is_rude')
    """
    name, *fields = instrument.split(",")
    if name not in GENERIC or not fields:
        return name
    return f"{name} {fields[0].partition('=')[2].replace('=', ':')}"


def _name(code: str) -> str:
    return VARIETIES[code].name if code in VARIETIES else LANGUAGES[code].name if code in LANGUAGES else code


def _counts(entry: Entry) -> list[Cell]:
    return [Cell(str(entry["n"])), Cell(str(entry["n_missing"]))]


def _interval(entry: Entry, show: Callable[[float | None], str]) -> str:
    return "" if entry["ci_low"] is None else f"[{show(entry['ci_low'])}, {show(entry['ci_high'])}]"


def _mark(delta: Entry, holm: Entry) -> str:
    if holm["value"] is None or delta["value"] is None or holm["value"] >= SIGNIFICANT or delta["value"] == 0:
        return ""
    return "▲" if delta["value"] > 0 else "▼"


def _pp_cell(delta: Entry, holm: Entry) -> Cell:
    return Cell(points(delta["value"]), _interval(delta, points), _mark(delta, holm))


def _shift_cell(delta: Entry, holm: Entry, digits: int) -> Cell:
    def signed(value: float | None) -> str:
        if value is None:
            return "–"
        text = f"{value:+.{digits}f}"
        # What rounds to nothing has no sign.
        return (text if float(text) else text[1:]).replace("-", "−")

    return Cell(signed(delta["value"]), _interval(delta, signed), _mark(delta, holm))


def _with_spread(mean: Entry, spread: float | None) -> Cell:
    told = points(mean["value"]) if spread is None else f"{points(mean['value'])} ± {spread:.1f}"
    return Cell(told, _interval(mean, points))


def _value_cell(entry: Entry) -> Cell:
    def plain(value: float | None) -> str:
        return number(value).replace("-", "−")

    return Cell(plain(entry["value"]), _interval(entry, plain))


def _digits(values: Iterator[float | None]) -> int:
    """Fewer digits for scores on a wide scale."""
    return 3 if max((abs(value) for value in values if value is not None), default=0) <= 1 else 2
