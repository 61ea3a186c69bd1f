"""Where rendered text goes wrong: error rates by class of character, strokes and position, and failure patterns.

Source: "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002),
§4.3 "Rendering Errors" and Figure 8, §4.4 "Failure Pattern Analysis". Nothing here is part of the precision, and
``evaluate`` does not carry this file: import it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
from fontTools import unicodedata as scripts
from rapidfuzz.distance import Levenshtein

from .common import (
    CLUSTERS,
    GROUPS,
    Answer,
    BoolArray,
    Column,
    FloatArray,
    IntArray,
    Mean,
    Resampling,
    Signature,
    check_columns,
    estimate,
    ratio,
)
from .core import COLUMNS as TEXTS
from .core import GRAPHEMES, ned, observed_texts
from .languages import LANGUAGES

NAME = "text_rendering_errors"
VERSION = "1.0"
COLUMNS = (*TEXTS[:2], Column("languages", "str", allowed=LANGUAGES), GROUPS, CLUSTERS)

# General categories of Unicode by their first letters. Line breaks and tabs, which are "Cc", count as space.
CLASSES = {
    "upper": ("Lu", "Lt"),
    "lower": ("Ll",),
    "other_letter": ("Lo", "Lm"),
    "mark": ("M",),
    "digit": ("N",),
    "punctuation": ("P",),
    "symbol": ("S",),
    "space": ("Z",),
    "control": ("C",),
}
STROKES = ("1-5", "6-10", "11-15", "16-20", "21+", "unknown")
_STROKES_FROM = (1, 6, 11, 16, 21)
POSITIONS = tuple(f"{tenth / 10:.1f}-{(tenth + 1) / 10:.1f}" for tenth in range(10))
PATTERNS = ("reversed", "other_script", "other")

# Similarity (NED) to the reversed reference from which a reading counts as written in the wrong direction.
NEARLY = 0.8
_BIDI_CONTROLS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_NO_SCRIPT = ("Zyyy", "Zinh", "Zzzz")

_RATES = [
    ("characters", ("all", *CLASSES)),
    ("strokes", STROKES),
    ("positions", POSITIONS),
    ("insertions", ("",)),
    ("patterns", ("erroneous", *PATTERNS)),
]
_NAMES = [f"{part}.{name}" for part, names in _RATES for name in names]


@cache
def character_class(character: str) -> str:
    """The class, a key of ``CLASSES``, that a code point belongs to.

    >>> [character_class(character) for character in "Aaक्7!€ 龍"]
    ['upper', 'lower', 'other_letter', 'mark', 'digit', 'punctuation', 'symbol', 'space', 'other_letter']
    """
    category = "Zs" if character.isspace() else unicodedata.category(character)
    return next(name for name, starts in CLASSES.items() if category.startswith(starts))


def is_ideograph(character: str) -> bool:
    """Is it a CJK ideograph, unified or compatibility (what Unihan counts strokes of)?"""
    return unicodedata.category(character) == "Lo" and scripts.script(character) == "Hani"


def stroke_counter() -> Callable[[str], int]:
    """Strokes of one ideograph (Unihan's kTotalStrokes), 0 where unknown; raises RuntimeError without its package.

    >>> count = stroke_counter()
    >>> count("一"), count("龍"), count("a")
    (1, 16, 0)
    """
    try:
        counter: Callable[[str], int] = importlib.import_module("strokes").strokes
    except ImportError as error:
        raise RuntimeError(
            f"{NAME}: counting strokes of CJK ideographs needs Unihan's counts ({error}). "
            "Fix: pip install strokes, or leave them out with strokes=False."
        ) from error
    return counter


def failure_patterns(
    predictions: Sequence[str | None],
    references: Sequence[str],
    *,
    normalization: str = "none",
) -> dict[str, FloatArray]:
    """Flags of each row (0 or 1; NaN where the prediction is None) and its number of bidi controls.

    ``erroneous``: the reading differs from the reference. Of these rows,
    ``reversed``: the reading is more like the reference back to front (by code points or by grapheme clusters) than
    like the reference, and at least 0.8 like it (NED);
    ``other_script``: more than half of the reading's letters are in scripts of which the reference has no letter, as
    in a romanization; a reference without letters never counts;
    ``other``: neither. Structural errors (malformed characters of the right script) and semantic substitution
    (another wording) are both in here: two strings do not tell them apart, a model or a person has to.
    ``bidi_controls``: directional formatting characters in the reading.

    Raises ValueError on wrong input, naming column and row.

    >>> flags = failure_patterns(["قفن", "nafaq", "نفقة", "نفق", None], ["نفق"] * 5)
    >>> [name for row in range(3) for name in PATTERNS if flags[name][row]]
    ['reversed', 'other_script', 'other']
    """
    columns = check_columns(NAME, COLUMNS[:2], {"predictions": predictions, "references": references})
    seen, shown, wanted = observed_texts(columns["predictions"], columns["references"], normalization)
    flags = _flags(shown, wanted)
    rows = {name: np.full(len(columns["references"]), np.nan) for name in flags}
    for name, values in flags.items():
        rows[name][seen] = values
    return rows


def _flags(shown: list[str], wanted: list[str]) -> dict[str, FloatArray]:
    flags = {name: np.zeros(len(shown)) for name in ("erroneous", *PATTERNS, "bidi_controls")}
    flags["bidi_controls"][:] = [0 if text.isascii() else len(_BIDI_CONTROLS.findall(text)) for text in shown]
    wrong = [row for row, text in enumerate(shown) if text != wanted[row]]
    read, asked = [shown[row] for row in wrong], [wanted[row] for row in wrong]
    by_codepoints = ned(read, [text[::-1] for text in asked])
    by_graphemes = ned(read, ["".join(map(str, clusters[::-1])) for clusters in GRAPHEMES.encode(asked)])
    likeness = np.maximum(by_codepoints, by_graphemes)
    flags["erroneous"][wrong] = 1
    flags["reversed"][wrong] = (likeness >= NEARLY) & (likeness > ned(read, asked))
    flags["other_script"][wrong] = list(map(_is_in_other_script, read, asked))
    flags["other"][wrong] = ((flags["reversed"] == 0) & (flags["other_script"] == 0))[wrong]
    return flags


def _is_in_other_script(reading: str, reference: str) -> bool:
    asked = set(map(_script_of_letter, reference)) - {None}
    read = [script for script in map(_script_of_letter, reading) if script is not None]
    return bool(asked) and 2 * sum(script not in asked for script in read) > len(read)


@cache
def _script_of_letter(character: str) -> str | None:
    script: str = scripts.script(character)
    return script if unicodedata.category(character).startswith("L") and script not in _NO_SCRIPT else None


def error_analysis(
    predictions: Sequence[str | None],
    references: Sequence[str],
    *,
    languages: Sequence[str],
    normalization: str = "none",
    strokes: bool = True,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Error rates of rendered text (§4.3, Figure 8) and its failure patterns (§4.4), from one alignment a row.

    A character of the reference is in error where the shortest edit (Levenshtein, by code points) from the reference
    to the reading replaces or deletes it.

    Args:
        predictions, references, normalization, groups, clusters: as in the precision's ``compute``.
        languages: BCP-47 code of each row; adds ``by_language`` and, by their writing systems, ``by_script``.
        strokes: count the strokes of CJK ideographs (needs the package ``strokes``).

    Returns a dict of ``characters`` (error rate of the reference's characters: ``all`` and each class), ``strokes``
    (of its ideographs, by strokes), ``positions`` (by tenths of the reference's length; a character that several
    tenths share counts in each by its share), ``insertions`` (share of the *reading's* characters that answer to none
    of the reference) and ``patterns`` (``erroneous``: share of rows; the others, see :func:`failure_patterns`: share
    of erroneous rows). Each rate is ``{"rate", "n", "ci"}``: a number in [0, 1] or None, what it is a share of, and
    the interval, left out with ``n_resamples=0``. Then ``bidi_controls`` (how many, in how many rows' readings), ``n``,
    ``n_missing``, ``by_language``, ``by_script``, ``by_group`` where groups are given, and ``signature``.

    Raises ValueError on wrong input, naming column and row, and RuntimeError where strokes cannot be counted.

    >>> read, asked = ["GRAND OPENlNG", "营亚中"], ["GRAND OPENING", "营业中"]
    >>> answer = error_analysis(read, asked, languages=["en", "zh"], n_resamples=0)
    >>> answer["characters"]["upper"], answer["strokes"]["1-5"]
    ({'rate': 0.08333333333333333, 'n': 12}, {'rate': 0.5, 'n': 2})
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    given = {
        "predictions": predictions,
        "references": references,
        "languages": languages,
        "groups": groups,
        "clusters": clusters,
    }
    columns = check_columns(NAME, COLUMNS, given)
    seen, shown, wanted = observed_texts(columns["predictions"], columns["references"], normalization)
    bins, counted_with = _stroke_bins(wanted) if strokes else ({}, "none")
    flags = _flags(shown, wanted)
    n_rows, n_rates = len(columns["references"]), len(_NAMES)
    parts, bidi = np.zeros((n_rows, 2 * n_rates)), np.zeros(n_rows)
    parts[seen], bidi[seen] = _count(shown, wanted, bins, flags), flags["bidi_controls"]
    observed: BoolArray = np.zeros(n_rows, np.bool_)
    observed[seen] = True

    def statistics(sums: FloatArray) -> FloatArray:
        return ratio(sums[..., :n_rates], sums[..., n_rates:])

    kinds = {name: Mean(place, n_rates + place) for place, name in enumerate(_NAMES)}

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        rates, intervals = estimate(parts[kept], of_kept, statistics, _NAMES, resampling, kinds)
        shares_of = dict(zip(_NAMES, parts[kept, n_rates:].sum(axis=0), strict=True))

        def cell(part: str, name: str) -> Answer:
            key = f"{part}.{name}"
            n = shares_of[key] / 10 if part == "positions" else int(shares_of[key])
            interval = {"ci": intervals["ci"][key]} if intervals else {}
            return {"rate": rates[key], "n": n, **interval}

        answer = {part: {name: cell(part, name) for name in names} for part, names in _RATES}
        return {
            **answer,
            "insertions": answer["insertions"][""],
            "bidi_controls": {"n": int(bidi[kept].sum()), "rows": int((bidi[kept] > 0).sum())},
            "n": len(kept),
            "n_missing": len(rows) - len(kept),
        }

    answer = describe(np.arange(n_rows))
    writing = [LANGUAGES[code].script for code in columns["languages"]]
    for key, names in (("by_language", columns["languages"]), ("by_script", writing), ("by_group", columns["groups"])):
        if names is not None:
            name_of = np.array(names, object)  # numpy's own texts lose a NUL at their end
            answer[key] = {name: describe(np.flatnonzero(name_of == name)) for name in sorted(set(names))}
    fields = {"norm": normalization, "unicode": unicodedata.unidata_version, "strokes": counted_with}
    return {**answer, "signature": str(Signature(NAME, fields, VERSION))}


def _stroke_bins(references: list[str]) -> tuple[dict[str, int], str]:
    """Each ideograph's place in ``STROKES``, and what counted: the package's version, "none" without an ideograph."""
    ideographs = sorted(filter(is_ideograph, set().union(*references)))
    if not ideographs:
        return {}, "none"
    count = stroke_counter()
    counts = {character: count(character) for character in ideographs}
    unknown = STROKES.index("unknown")
    bins = {character: bisect_right(_STROKES_FROM, n) - 1 if n else unknown for character, n in counts.items()}
    return bins, importlib.metadata.version("strokes")


def _count(shown: list[str], wanted: list[str], bins: dict[str, int], flags: dict[str, FloatArray]) -> FloatArray:
    """(rows, 2·rates): what each row adds to the numerator of every rate, then to its denominator (``_NAMES``)."""
    n = len(wanted)
    lengths = np.fromiter(map(len, wanted), np.intp, n)
    starts = np.cumsum(lengths) - lengths
    wrong = np.zeros(int(lengths.sum()), np.intp)
    inserted = np.zeros((n, 1))
    for row in np.flatnonzero(flags["erroneous"]).tolist():
        for operation, place, _ in Levenshtein.editops(wanted[row], shown[row]).as_list():
            if operation == "insert":
                inserted[row] += 1
            else:
                wrong[starts[row] + place] = 1
    row_of = np.repeat(np.arange(n), lengths)
    codes = np.frombuffer("".join(wanted).encode("utf-32-le"), "<u4")
    distinct, where = np.unique(codes, return_inverse=True)
    class_places = {name: place for place, name in enumerate(CLASSES)}

    def by(places: list[int], width: int) -> tuple[FloatArray, FloatArray]:
        """Errors and characters of each row, by the place of each distinct character; those at -1 are left out."""
        place = np.array(places, np.intp)[where]
        kept = place >= 0
        flat = row_of[kept] * width + place[kept]
        counts = [np.bincount(flat, weights, n * width).reshape(n, width) for weights in (wrong[kept], None)]
        return counts[0].astype(np.float64), counts[1].astype(np.float64)

    characters = [chr(code) for code in distinct.tolist()]
    classes = by([class_places[character_class(character)] for character in characters], len(CLASSES))
    ideographs = by([bins.get(character, -1) for character in characters], len(STROKES))
    # Tenths of a text in tenths of a character, so that all counts are whole: the first `edge` of them end a tenth.
    before = np.r_[0, np.cumsum(wrong)]
    edge, rest = np.divmod(10 * starts[:, None] + np.arange(11) * lengths[:, None], 10)
    positions = np.diff(10 * before[edge] + rest * np.r_[wrong, 0][edge], axis=1)
    one, erroneous = np.ones((n, 1)), flags["erroneous"][:, None]
    numerators = [
        classes[0].sum(axis=1, keepdims=True),
        classes[0],
        ideographs[0],
        positions,
        inserted,
        erroneous,
        *(flags[name][:, None] for name in PATTERNS),
    ]
    denominators = [
        lengths[:, None],
        classes[1],
        ideographs[1],
        np.repeat(lengths[:, None], 10, axis=1),
        np.fromiter(map(len, shown), np.float64, n)[:, None],
        one,
        *(erroneous for _ in PATTERNS),
    ]
    return np.hstack([*numerators, *denominators]).astype(np.float64)
