"""Scores and analyses → the report's sections beside text rendering and audits: what stands where, and in which words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from t2i_parity.cards.environment import number
from t2i_parity.cards.report_audit import Cell, Row
from t2i_parity.cards.report_data import Score
from t2i_parity.cards.report_sections import Block, Dots, Levels, Section
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.metrics._common import Signature

Entry = Mapping[str, Any]
Scored = Sequence[tuple[str, Sequence[Entry]]]
"""(run, its scores) of runs of images; no two runs of one name."""

TEXT, GAP, CEILING, SHARE = "text_rendering_precision", "cross_lingual_gap", "reader_ceiling", "share_of_ceiling"
DASH = "–"


@dataclass(frozen=True, slots=True)
class _Words:
    """How a metric is called on the page, and how it is read."""

    title: str
    about: str


WORDS: Mapping[str, _Words] = {
    "trigscore": _Words(
        "TRIGScore",
        "A rater’s mark for each image, read from how likely it found each word of the scale: 1 is the best word for certain, 0 the worst. "
        "Confidence is how sure the rater was.",
    ),
    "clip_score": _Words(
        "CLIPScore",
        "How well images fit their prompts: the cosine of their embeddings under one multilingual encoder. Encoders do not know all "
        "languages equally well, so a difference between languages is that of the model and the encoder together.",
    ),
    "bias_entropy": _Words(
        "Bias score",
        "How evenly the people shown are spread over races, genders and ages: 1 is evenly, 0 is all of one kind. n counts people, and an "
        "image without anybody is one missing. Few people cannot be spread evenly, so languages compare only where n is alike.",
    ),
    "toxicity_rejection": _Words(
        "Toxicity rejection",
        "Of prompts that ask for harm, the share of images that a classifier found free of it: 1 is all.",
    ),
    "culture_alignment": _Words(
        "Culture alignment",
        "Cue rate: images in which a culture can be told. Match rate: those that show the culture of the prompt’s language, among images "
        "with a cue (or with a known culture). Western rate: those that show a Western one, also where another was expected (shift).",
    ),
}
"""The metrics in the order of the page; any other comes after them under its own name."""
NAMES = {"trigscore": "TRIGScore", "clip_score": "CLIPScore", "ned_char": "Characters", "n_truncated": "Prompts cut short"}
"""What a score is called where its key does not say it."""
OWN_PLACE = (TEXT, GAP, CEILING, SHARE, "dialect_penalty")
"""Modules that the page shows elsewhere, or beside others."""


def metric_sections(scored: Scored) -> list[Section]:
    """A section a metric: a table each subset and signature, its spread over languages, and its dimensions where there are several."""
    modules = dict.fromkeys(_module(entry) for _, scores in scored for entry in scores)
    known = [*(name for name in WORDS if name in modules), *(name for name in modules if name not in WORDS)]
    sections = []
    for module in known:
        if module in OWN_PLACE:
            continue
        words = WORDS.get(module, _Words(module, "A score of images by language."))
        blocks: list[Block] = []
        for (subset, signature), runs in _placed(scored, module).items():
            blocks += _metric(words.title, subset, signature, runs)
            blocks += _gap(words.title, subset, signature, scored)
            blocks += _dimensions(words.title, subset, signature, runs)
        sections.append(Section(f"metric-{_anchor(module, list(modules))}", words.title, (words.about,), blocks))
    return sections


def _anchor(module: str, modules: Sequence[str]) -> str:
    """A name for an id: the module's own where it is ours, else its place, since anything may stand in a file."""
    return module.replace("_", "-") if module in WORDS else str(modules.index(module))


def _module(entry: Entry) -> str:
    return str(entry["metric"]).split(".", 1)[0]


def _key(entry: Entry) -> str:
    return str(entry["metric"]).partition(".")[2] or str(entry["metric"])


Keyed = Mapping[tuple[str, str], Entry]
"""Entries of one run, subset and signature by (group, key)."""


def _placed(scored: Scored, module: str) -> dict[tuple[str, str], dict[str, dict[tuple[str, str], Entry]]]:
    """Entries of a metric by (subset, signature), by run."""
    found: dict[tuple[str, str], dict[str, dict[tuple[str, str], Entry]]] = {}
    for run, scores in scored:
        for entry in scores:
            if _module(entry) == module:
                place = found.setdefault((entry["subset"], entry["signature"]), {})
                place.setdefault(run, {})[entry["group"], _key(entry)] = entry
    return found


def score_of(entry: Entry) -> Score:
    """An entry of scores.json as the page takes it."""
    return Score(entry["value"], entry["n"], entry["n_missing"], entry["ci_low"], entry["ci_high"])


def _cells(entry: Entry | None) -> list[Cell]:
    """Value with its interval, n, and n missing; dashes where nothing stands."""
    if entry is None:
        return [Cell(DASH)] * 3
    counts = [Cell(str(entry["n"])), Cell(str(entry["n_missing"]))]
    return [_value(entry["value"], (entry["ci_low"], entry["ci_high"]), count=entry.get("unit") == "count"), *counts]


def _value(value: float | None, interval: Sequence[float | None], *, count: bool = False) -> Cell:
    if value is None:
        return Cell(DASH)
    if count:
        return Cell(f"{value:g}")
    return cell_of(value, *interval)


def cell_of(value: float, low: float | None, high: float | None) -> Cell:
    """A number with its interval, where it has one."""
    return Cell(_signed(value), "" if low is None or high is None else f"[{_signed(low)}, {_signed(high)}]")


def _signed(value: float) -> str:
    return number(value).replace("-", "−")


def name_of(code: str) -> str:
    """A language's name, or what stands for it where it is none of ours."""
    return LANGUAGES[code].name if code in LANGUAGES else code


def _groups(runs: Mapping[str, Keyed], kind: str) -> list[str]:
    """The groups of one kind in any run, such as the codes of ``language:``."""
    return list(dict.fromkeys(group.split(":", 1)[1] for keyed in runs.values() for group, _ in keyed if group.startswith(f"{kind}:")))


def _keys(runs: Mapping[str, Keyed]) -> list[str]:
    return list(dict.fromkeys(key for keyed in runs.values() for _, key in keyed))


def _told(key: str) -> str:
    return NAMES.get(key, key.replace("_", " ").capitalize())


HEADS = ("Value [interval]", "n", "Missing")


def _table(
    title: str,
    head: str,
    groups: Sequence[tuple[str, str, str]],
    keys: Sequence[str],
    runs: Mapping[str, Keyed],
    signature: str,
    **more: Any,
) -> Block:
    """Groups, (name, code, group in the scores), as rows, one a key, and runs side by side."""
    several = len(keys) > 1
    rows = [
        Row(
            name,
            [*([Cell(_told(key))] if several else []), *(cell for keyed in runs.values() for cell in _cells(keyed.get((group, key))))],
            code,
        )
        for name, code, group in groups
        for key in keys
    ]
    leading = 1 + several
    heads = (head, *(["Score"] if several else []), *HEADS * len(runs))
    words = frozenset({1} if several else ())
    return Block(title, heads, rows, [(signature, "")], runs=tuple(runs), leading=leading, words=words, **more)


def _dots(
    axis: str, groups: Sequence[tuple[str, str, str]], key: str, runs: Mapping[str, Keyed], reference: float | None = None
) -> Dots | None:
    scores = {
        (place, run): score_of(entry)
        for place, (_, _, group) in enumerate(groups)
        for run, keyed in runs.items()
        if (entry := keyed.get((group, key))) is not None
    }
    told = any(score.value is not None for score in scores.values())
    return Dots(axis, [(name, code) for name, code, _ in groups], list(runs), scores, reference) if told else None


def _metric(title: str, subset: str, signature: str, runs: Mapping[str, Keyed]) -> list[Block]:
    keys = _keys(runs)
    languages = [(name_of(code), code, f"language:{code}") for code in _groups(runs, "language")]
    # One dot beside nothing compares nothing.
    figure = _dots(_told(keys[0]), languages, keys[0], runs) if len(languages) > 1 or len(runs) > 1 else None
    groups = [*languages, ("All languages", "", "all")]
    note = f"the plot shows “{_told(keys[0])}”" if len(keys) > 1 and figure else ""
    return [_table(f"{title} on {subset}", "Language", groups, keys, runs, signature, figure=figure, note=note)]


def _dimensions(title: str, subset: str, signature: str, runs: Mapping[str, Keyed]) -> list[Block]:
    """One block a run: dimensions by language as a heat map, one scale over all runs, and the same as a folded table."""
    keys = _keys(runs)
    crossed = {
        run: {group: entry for (group, key), entry in keyed.items() if key == keys[0] and ",language:" in group}
        for run, keyed in runs.items()
    }
    most = max((abs(e["value"]) for found in crossed.values() for e in found.values() if e["value"] is not None), default=0.0)
    blocks = []
    for run, keyed in runs.items():
        own = {run: keyed}
        dimensions = list(dict.fromkeys(name.split(",language:", 1)[0] for name in _groups(own, "dimension")))
        codes = _groups(own, "language")
        if not dimensions or not codes:
            continue
        values = [[_plain(crossed[run].get(f"dimension:{name},language:{code}")) for code in codes] for name in dimensions]
        groups = [
            row
            for name in dimensions
            for row in [
                (name, "", f"dimension:{name}"),
                *((f"{name}, {name_of(code)}", code, f"dimension:{name},language:{code}") for code in codes),
            ]
        ]
        figure = Levels([(name, "") for name in dimensions], [(name_of(code), code) for code in codes], values, most)
        made = _table(f"{title} on {subset} by dimension: {run}", "Dimension", groups, keys, own, signature, figure=figure, folded=True,
                      note=f"the map shows “{_told(keys[0])}”")  # fmt: skip
        blocks.append(made)
    return blocks


def _plain(entry: Entry | None) -> float | None:
    return None if entry is None else entry["value"]


def _gap(title: str, subset: str, of: str, scored: Scored) -> list[Block]:
    """Inequality over languages of the row score under signature ``of``: its spread, and the means of branches and scripts."""
    inner = of.replace("|", ",").replace(":", "=")
    blocks = []
    for (place, signature), runs in _placed(scored, GAP).items():
        if place != subset or Signature.parse(signature).fields.get("of") != inner:
            continue
        rows = []
        for run, keyed in runs.items():
            ends = {key: next(((g, e) for (g, k), e in keyed.items() if k == key), None) for key in ("worst", "best")}
            cells = [*_cells(keyed.get(("all", "std")))[:1], *_cells(keyed.get(("all", "mean")))]
            rows.append(Row(run, [*cells, *(cell for key in ("worst", "best") for cell in _end(ends[key]))]))
        heads = (
            "Run",
            "Std over languages",
            "Mean of languages",
            "n",
            "Missing",
            "Worst served",
            "Its value",
            "n",
            "Best served",
            "Its value",
            "n",
        )
        note = "std is the population’s over languages: at 0, all are served alike"
        blocks.append(
            Block(f"{title} on {subset}: spread over languages", heads, rows, [(signature, "")], note=note, words=frozenset({5, 8}))
        )
        for kind in ("branch", "script"):
            groups = [(name, "", f"{kind}:{name}") for name in _groups(runs, kind)]
            if groups:
                made = _table(f"{title} on {subset} by {kind}", kind.capitalize(), groups, ["mean"], runs, signature,
                              note="means over languages, each counting alike", folded=True)  # fmt: skip
                blocks.append(made)
    return blocks


def _end(found: tuple[str, Entry] | None) -> list[Cell]:
    """The worst or best served language of a run: its name, value and n."""
    if found is None or found[0] == "language:None":
        return [Cell(DASH)] * 3
    group, entry = found
    return [Cell(name_of(group.split(":", 1)[1])), *_cells(entry)[:2]]


def ceiling_sections(scored: Scored) -> list[Section]:
    """Text-rendering scores beside their reader's ceiling and the share of it that was reached, where a calibration was given."""
    blocks: list[Block] = []
    raw = _placed(scored, TEXT)
    shares = _placed(scored, SHARE)
    for place, ceilings in _placed(scored, CEILING).items():
        subset, signature = place
        parsed = Signature.parse(signature)
        beside = {name: text for name, text in parsed.fields.items() if name != "ceiling"}
        of = str(Signature(parsed.metric, beside, parsed.version))
        parts = (raw.get((subset, of), {}), ceilings, shares.get(place, {}))
        runs: dict[str, dict[tuple[str, str], Entry]] = {}
        for run in ceilings:
            keyed = runs.setdefault(run, {})
            for kind, part in zip(KINDS, parts, strict=True):
                keyed.update({(group, f"{kind}{_told(key)}"): entry for (group, key), entry in part.get(run, {}).items()})
        names = _keys(ceilings)
        keys = [f"{kind}{_told(key)}" for key in names for kind in KINDS]
        groups = [(name_of(code), code, f"language:{code}") for code in _groups(ceilings, "language")]
        figure = _dots(f"Share of ceiling, {_told(names[0]).lower()}", groups, f"{KINDS[2]}{_told(names[0])}", runs, 1.0)
        reader = parsed.fields.get("reader", "").split(",", 1)[0]
        made = _table(f"{subset}, read by {reader}", "Language", groups, keys, runs, signature, figure=figure,
                      note="the plot shows the share reached; its line at 1 is the ceiling")  # fmt: skip
        cited = [(of, "scores"), (signature, "ceilings and shares")] if parts[0] else [(signature, "")]
        blocks.append(replace(made, signatures=cited))
    return [Section("ceilings", "Beside the reader’s ceiling", CEILING_ABOUT, blocks)] if blocks else []


KINDS = ("", "Ceiling: ", "Share of ceiling: ")
"""The lines of a score with a ceiling."""
CEILING_ABOUT = (
    "What the same reader makes of faultless pictures in the same language is its ceiling. A score of 0.6 where the reader reaches 0.9 "
    "at best is another thing than 0.6 where it reaches 1: the share is the score over the ceiling. Above 1, the run’s pictures were "
    "easier to read than the material. A language without calibration has no ceiling and no share.",
)


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
