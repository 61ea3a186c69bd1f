"""RUN/analysis.json → the report's sections on what lies behind the differences between languages; a run without the file has none."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2i_parity.cards.environment import number
from t2i_parity.cards.report_audit import Cell, Row
from t2i_parity.cards.report_sections import Block, Dot, Dots, Levels, Section, Shares
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.report_sections import DASH, Scored, cell_of, name_of
from t2i_parity.metrics.scores import Interval

Record = Mapping[str, Any]
FILE = "analysis.json"
HIDDEN = ("ci", "counts")
"""Fields of records that are no column: intervals stand beside their numbers."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A section of the page, and the analyses in it: by the first word of their name, how each becomes blocks."""

    key: str
    title: str
    about: str
    blocks: Mapping[str, Callable[[str, Sequence[Record]], list[Block]]]


def analysis_sections(scored: Sequence[Scored]) -> list[Section]:
    """The sections that any run's analyses fill, run after run. Raises InputError when a file is none that ``analyse`` wrote."""
    found: dict[str, list[Block]] = {}
    for each in scored:
        run = each.run
        if not run.folder.exists(FILE):
            continue
        try:
            content = json.loads(run.folder.read(FILE), parse_constant=_no_number)
            for analysis in content["analyses"]:
                place, make = _place_of(str(analysis["name"]))
                records = analysis["records"]
                how = _settings(content["settings"]) if any("ci" in record for record in records) else ""
                about = " ".join(part for part in (str(analysis["about"]), how) if part)
                made = make(str(analysis["title"]), records)
                found.setdefault(place, []).extend(_told_of(block, each.name, about, content["settings"]) for block in made)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            told = f"{type(error).__name__}: {error}"
            raise InputError(f"{run.url}/{FILE} is not what analyse writes ({told}); make it anew: t2i-parity analyse {run.url}") from error
    return [Section(place.key, place.title, (place.about,), found[place.key]) for place in PLACES if place.key in found]


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number")


def _place_of(name: str) -> tuple[str, Callable[[str, Sequence[Record]], list[Block]]]:
    kind = name.split(" ", 1)[0]
    return next(((place.key, place.blocks[kind]) for place in PLACES if kind in place.blocks), (PLACES[-1].key, _other))


def _settings(settings: Mapping[str, Any]) -> str:
    return f"{settings['confidence_level']:.0%} intervals from {settings['n_resamples']} resamples."


def _told_of(block: Block, run: str, about: str, settings: Mapping[str, Any]) -> Block:
    """A block with the run's name, and with its intervals' own level, which need not be that of the page."""
    figure = block.figure
    if isinstance(figure, Dots):
        figure = replace(figure, level=f"{settings['confidence_level']:.0%}")
    return replace(block, title=f"{block.title}: {run}", note=" ".join(part for part in (about, block.note) if part), figure=figure)


# Tables


def _columns(records: Sequence[Record], without: Sequence[str] = ()) -> list[str]:
    return [name for name in records[0] if name not in (*HIDDEN, *without)]


def _told(name: str) -> str:
    return {"n_missing": "Missing", "n": "n", "rho": "Spearman’s ρ", "p_value": "p", "n_languages": "Languages",
            "relative_to_english": "Relative to English"}.get(name, name.replace("_", " ").capitalize())  # fmt: skip


def _cell(record: Record, name: str) -> Cell:
    """A number with its interval, a list as words; what is missing is a dash."""
    value = record.get(name)
    if value is None:
        return Cell(DASH)
    if isinstance(value, list):
        return Cell(", ".join(name_of(str(each)) for each in value))
    if not isinstance(value, float):
        return Cell(str(value))
    return cell_of(value, *record.get("ci", {}).get(name, (None, None)))


def _named(value: object) -> tuple[str, str]:
    """(name, code) of a language, "all" of them, or of anything else."""
    text = str(value)
    return ("All languages", "") if text == "all" else (name_of(text), text if name_of(text) != text else "")


def _table(title: str, records: Sequence[Record], head: str, without: Sequence[str] = (), **more: Any) -> Block:
    """Records as rows; the field ``head`` names them."""
    columns = _columns(records, (head, *without))
    words = frozenset(place + 1 for place, name in enumerate(columns) if any(isinstance(each.get(name), str | list) for each in records))
    rows = [Row(_named(each[head])[0], [_cell(each, name) for name in columns], _named(each[head])[1]) for each in records]
    return Block(title, (_told(head), *map(_told, columns)), rows, words=words, **more)


def _dot(record: Record, key: str) -> Dot:
    # A plot does not say the level that its note says.
    return Dot(record[key], record["n"], Interval.of(record.get("ci", {}).get(key), 0.95))


def _dots(records: Sequence[Record], head: str, keys: Sequence[str], axis: str, ends: tuple[float, float] | None = None) -> Dots | None:
    """A dot for each record and key; None where no record has any."""
    if all(record[key] is None for record in records for key in keys):
        return None
    dots = {(place, _told(key)): _dot(record, key) for place, record in enumerate(records) for key in keys}
    return Dots(axis, [_named(record[head]) for record in records], [_told(key) for key in keys], dots, ends=ends)


def _other(title: str, records: Sequence[Record]) -> list[Block]:
    return [_table(title, records, next(iter(records[0])))]


# Each analysis


def _fragmentation(title: str, records: Sequence[Record]) -> list[Block]:
    if "language" not in records[0]:
        named = [{**each, "measure": _told(each["measure"])} for each in records]
        return [_table(title, named, "measure", figure=_dots(named, "measure", ["rho"], "Spearman's rho", (-1, 1)), note=RHO)]
    figure = _dots(records, "language", ["tokens_per_word", "relative_to_english"], "Tokens a word, and relative to English")
    return [_table(title, records, "language", figure=figure)]


def _kind(title: str, records: Sequence[Record]) -> list[Block]:
    head = next(iter(records[0]))
    return [_table(title, records, head, figure=_dots(records, head, ["mean"], "Mean over languages"))]


def _new_language(title: str, records: Sequence[Record]) -> list[Block]:
    return [_table(title, records, "score", figure=_dots(records, "score", ["expected"], "Expected mean, with a prediction interval"))]


def _trade_offs(title: str, records: Sequence[Record]) -> list[Block]:
    """One table, and one plot of all pairs where there are no more than shapes to tell them apart."""
    told = [{"scores": f"{each['first']} and {each['second']}", **each} for each in records]
    groups, pairs = ([*dict.fromkeys(each[name] for each in told)] for name in ("group", "scores"))
    dots = {(groups.index(each["group"]), each["scores"]): _dot(each, "rho") for each in told}
    told_apart = len(pairs) <= 8 and any(dot.value is not None for dot in dots.values())
    figure = Dots("Spearman's rho", [_named(group) for group in groups], pairs, dots, ends=(-1, 1)) if told_apart else None
    named = [{**each, "group": _named(each["group"])[0]} for each in told]
    return [_table(title, named, "scores", ("first", "second"), figure=figure, note=RHO)]


def _demographics(title: str, records: Sequence[Record]) -> list[Block]:
    """Stacked bars and a table of each attribute: languages down, categories across."""
    blocks = []
    for attribute in dict.fromkeys(each["attribute"] for each in records):
        own = [each for each in records if each["attribute"] == attribute]
        categories = list(dict.fromkeys(str(each["category"]) for each in own))
        by = {(each["language"], str(each["category"])): each for each in own}
        codes = list(dict.fromkeys(each["language"] for each in own))
        values = [[by[code, name]["share"] if (code, name) in by else None for name in categories] for code in codes]
        rows = []
        for code, shares in zip(codes, values, strict=True):
            first = next(each for each in own if each["language"] == code)
            cells = [Cell(DASH if share is None else f"{100 * share:.1f}%") for share in shares]
            rows.append(Row(_named(code)[0], [*cells, Cell(str(first["n"])), Cell(str(first["n_missing"]))], _named(code)[1]))
        figure = Shares([_named(code) for code in codes], categories, values)
        blocks.append(Block(f"{title}, {attribute}", ("Language", *categories, "n", "Missing"), rows, figure=figure))
    return blocks


def _bias(title: str, records: Sequence[Record]) -> list[Block]:
    """Languages down, intervals of alignment across, as a heat map; the table has the people that each cell stands on."""
    bounds = sorted({(each["low"], each["high"]) for each in records})
    codes = list(dict.fromkeys(each["language"] for each in records))
    by = {((each["low"], each["high"]), each["language"]): each for each in records}
    values = [[by[bound, code]["bias_score"] if (bound, code) in by else None for bound in bounds] for code in codes]
    columns = [(f"{number(low, 2)} to {number(high, 2)}", "") for low, high in bounds]
    figure = Levels([_named(code) for code in codes], columns, values, 1.0)
    ordered = sorted(records, key=lambda each: (codes.index(each["language"]), each["low"]))
    return [_table(title, ordered, "language", figure=figure, folded=True)]


def _culture(title: str, records: Sequence[Record]) -> list[Block]:
    keys = [key for key in ("cue_rate", "match_rate", "western_rate") if key in records[0]]
    return [_table(title, records, "language", figure=_dots(records, "language", keys, "Rate"))]


def _culture_tags(title: str, records: Sequence[Record]) -> list[Block]:
    figure = _dots(records, "target", ["language_effect", "tag_effect"], "Change of the rate against neutral prompts")
    return [_table(title, records, "target", figure=figure)]


def _transliteration(title: str, records: Sequence[Record]) -> list[Block]:
    figure = _dots(records, "language", ["difference"], "Latin letters minus own script")
    return [_table(title, records, "language", figure=figure)]


RHO = "−1: one falls as the other rises; 1: both rise together; 0: neither."

PLACES: tuple[_Place, ...] = (
    _Place(
        "analysis-fragmentation",
        "Fragmentation of prompts",
        "Into how many tokens the text encoder’s tokenizer breaks the same meaning in each language, and whether scores are lower where it "
        "breaks more. With few languages, a correlation over languages is a hint and no proof.",
        {"fragmentation": _fragmentation},
    ),
    _Place(
        "analysis-families",
        "Branches and scripts",
        "Scores by the family branch and by the script of languages. Every language counts alike, however many images it has.",
        {"branch": _kind, "script": _kind, "new_language": _new_language},
    ),
    _Place(
        "analysis-trade-offs",
        "Trade-offs between scores",
        "Whether two scores of the same images rise together within a language, or one is bought with the other.",
        {"trade_offs": _trade_offs},
    ),
    _Place(
        "analysis-people",
        "Who is shown",
        "The people shown where the prompt says nothing of them, by language, as an annotator told them: what a classifier sees, not how "
        "anybody describes themself. And how evenly they are spread among images that fit their prompts alike well.",
        {"demographics": _demographics, "bias_by_alignment": _bias},
    ),
    _Place(
        "analysis-cultures",
        "Cultures shown",
        "Which cultures images show by the language of the prompt, and whether the language alone brings one out or only its name.",
        {"culture": _culture, "culture_tags": _culture_tags},
    ),
    _Place(
        "analysis-transliteration",
        "Own script and Latin letters",
        "The same prompts in their language’s own script and transliterated. Above 0, Latin letters fare better.",
        {"transliteration": _transliteration},
    ),
    _Place("analysis-other", "Other analyses", "As they stand in the run’s file.", {}),
)
"""The sections in the order of the page; an analysis that none names stands in the last."""
