"""Text-rendering precision: what a reader (OCR) saw in an image against the text that was asked for.

Source: "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002),
Appendix C.2.1.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import operator
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import regex  # type: ignore[import-untyped]
from rapidfuzz.distance import Levenshtein

from .common import (
    CLUSTERS,
    GROUPS,
    Answer,
    Column,
    FloatArray,
    IntArray,
    Mean,
    Resampling,
    Signature,
    by_group,
    check_choice,
    check_columns,
    estimate,
    ratio,
)

NAME = "text_rendering_precision"
VERSION = "1.0"
COLUMNS = (Column("predictions", "str", missing=True), Column("references", "str"), GROUPS, CLUSTERS)
DEFAULT_TOKENIZER = "google/mt5-base"
TEKKEN = "tekken_240911"

# Weights of ned_char, ned_token and sentence accuracy.
VARIANTS = {"paper": (1 / 3, 1 / 3, 1 / 3), "reference": (0.4, 0.4, 0.2)}
KEYS = ("precision", "ned_char", "ned_token", "sentence_accuracy")
NORMALIZATIONS = ("none", "nfc")
UNITS = ("codepoints", "graphemes")

# Texts given to a tokenizer at once: enough for one that works in parallel, few enough to hold no million lists.
_TEXTS_AT_ONCE = 1000


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer under the name that signatures carry; ``encode`` maps texts to token sequences (ids or strings)."""

    name: str
    encode: Callable[[list[str]], Sequence[Sequence[Hashable]]]


TokenizerSpec = str | Tokenizer | Callable[[str], Sequence[Hashable]]

_cluster = regex.compile(r"\X").findall
GRAPHEMES = Tokenizer("graphemes", lambda texts: [_cluster(text) for text in texts])
"""Extended grapheme clusters (UAX #29), what a person calls a character, in the Unicode version of ``regex``."""


def load_tokenizer(spec: TokenizerSpec = DEFAULT_TOKENIZER) -> Tokenizer:
    """The tokenizer that ``spec`` names.

    ``spec`` is a hub id or a folder for ``transformers.AutoTokenizer`` (special tokens off), ``"tekken"`` for the file
    that ``mistral-common`` packages (no network), or a callable text → sequence of tokens, named by its ``name``
    attribute or ``__qualname__``. A folder is named by its last part and a hash of its tokenizer files, so that
    signatures agree between machines.

    Raises ValueError when ``spec`` is none of these and RuntimeError, with the fix, when the tokenizer cannot be
    loaded. Nothing is ever put in its place: another tokenizer gives another number.

    >>> load_tokenizer(str.split).encode(["two words"])
    [['two', 'words']]
    """
    if isinstance(spec, Tokenizer):
        return spec
    if isinstance(spec, str) and spec:
        return _tekken() if spec == "tekken" else _from_transformers(spec)
    if callable(spec):
        name = getattr(spec, "name", None) or getattr(spec, "__qualname__", None) or type(spec).__qualname__
        return Tokenizer(str(name), lambda texts: [_tokens_of(spec, text) for text in texts])
    told = f"{NAME}: tokenizer: expected a hub id, a folder, 'tekken' or a callable text → tokens, got {spec!r}."
    raise ValueError(told)


def _tokens_of(function: Callable[[str], Sequence[Hashable]], text: str) -> Sequence[Hashable]:
    tokens = function(text)
    if isinstance(tokens, Sequence | np.ndarray):
        return tokens
    raise ValueError(
        f"{NAME}: tokenizer: expected a sequence of tokens for {text!r}, got {type(tokens).__name__}. Fix: give a "
        "callable text → list, such as the `tokenize` method of a transformers tokenizer, or the tokenizer's name."
    )


@lru_cache(maxsize=4)
def _from_transformers(spec: str) -> Tokenizer:
    try:
        from transformers import AutoTokenizer

        tokenizer: Any = AutoTokenizer.from_pretrained(spec)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise RuntimeError(
            f"{NAME}: the tokenizer {spec!r} could not be loaded ({reason}). Fix: install what reads it with "
            "`pip install transformers sentencepiece protobuf`, and fetch the study's tokenizer once, where there is a "
            f"network, with `hf download {DEFAULT_TOKENIZER} --include '*.json' '*.model'` (or give a folder); "
            "or choose tokenizer='tekken', which `pip install mistral-common` brings along for offline use: the "
            "signature then names another tokenizer, and the numbers do not compare with the study's."
        ) from error
    name = _folder_name(Path(spec)) if Path(spec).is_dir() else spec
    return Tokenizer(name, lambda texts: tokenizer(texts, add_special_tokens=False)["input_ids"])


def _folder_name(folder: Path) -> str:
    """The folder's last part and a hash of its tokenizer files: no machine's path, no two contents under one name."""
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.name.startswith(("tokenizer", "vocab", "merges")) or file.suffix == ".model":
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return f"{folder.resolve().name}@{digest.hexdigest()[:12]}"


@lru_cache(maxsize=1)
def _tekken() -> Tokenizer:
    try:
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        file = importlib.resources.files("mistral_common") / "data" / f"{TEKKEN}.json"
        with importlib.resources.as_file(file) as path:
            tekken = Tekkenizer.from_file(path)
    except (ImportError, OSError) as error:
        needed = f"the file data/{TEKKEN}.json of mistral-common ({error})"
        raise RuntimeError(f"{NAME}: tokenizer='tekken' needs {needed}. Fix: pip install mistral-common.") from error
    name = f"mistral-common/{TEKKEN}"
    return Tokenizer(name, lambda texts: [tekken.encode(text, bos=False, eos=False) for text in texts])


def ned(left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> FloatArray:
    """Normalised edit similarity of each pair of sequences: 1 − Levenshtein / length of the longer, in [0, 1].

    Two empty sequences give 1, one empty sequence 0. Texts are compared by code point, with no folding or stripping.

    >>> ned(["kitten", "", ""], ["sitting", "", "a"]).round(4).tolist()
    [0.5714, 1.0, 0.0]
    """
    n = len(left)
    distance = np.fromiter(map(Levenshtein.distance, left, right), np.float64, n)
    longer = np.maximum(*(np.fromiter(map(len, side), np.float64, n) for side in (left, right)))
    return np.where(longer == 0, 1.0, 1 - distance / np.maximum(longer, 1))


def per_row(
    predictions: Sequence[str | None],
    references: Sequence[str],
    *,
    tokenizer: TokenizerSpec = DEFAULT_TOKENIZER,
    normalization: str = "none",
    units: str = "codepoints",
    variant: str = "paper",
) -> dict[str, FloatArray]:
    """Scores of each row: arrays ``ned_char``, ``ned_token``, ``exact`` and ``precision``, in [0, 1].

    NaN where the prediction is None; arguments as in :func:`compute`.

    Raises as :func:`compute` does.

    >>> per_row(["no cat", None], ["no dog", "x"], tokenizer=str.split)["precision"].round(4).tolist()
    [0.3333, nan]
    """
    columns = check_columns(NAME, COLUMNS[:2], {"predictions": predictions, "references": references})
    tokenizer = load_tokenizer(tokenizer)
    return _scores(columns["predictions"], columns["references"], tokenizer, normalization, units, variant)


def _scores(
    predictions: list[str | None],
    references: list[str],
    tokenizer: Tokenizer,
    normalization: str,
    units: str,
    variant: str,
) -> dict[str, FloatArray]:
    weights = VARIANTS[check_choice(NAME, "variant", variant, tuple(VARIANTS))]
    check_choice(NAME, "units", units, UNITS)
    seen, shown, wanted = observed_texts(predictions, references, normalization)
    scores = {
        "ned_char": ned(*(_tokens(GRAPHEMES, shown, wanted) if units == "graphemes" else (shown, wanted))),
        "ned_token": ned(*_tokens(tokenizer, shown, wanted)),
        "exact": np.fromiter(map(operator.eq, shown, wanted), np.float64, len(shown)),
    }
    weighted = [weight * score for weight, score in zip(weights, scores.values(), strict=True)]
    scores["precision"] = np.sum(weighted, axis=0)
    rows = {name: np.full(len(predictions), np.nan) for name in scores}
    for name, score in scores.items():
        rows[name][seen] = score
    return rows


def observed_texts(
    predictions: list[str | None],
    references: list[str],
    normalization: str,
) -> tuple[list[int], list[str], list[str]]:
    """The rows that have a prediction, and both texts of each in the form that is compared.

    Raises ValueError on a normalization other than "none" and "nfc".
    """
    check_choice(NAME, "normalization", normalization, NORMALIZATIONS)
    seen = [row for row, text in enumerate(predictions) if text is not None]
    shown = [text for text in predictions if text is not None]
    wanted = references if len(seen) == len(references) else [references[row] for row in seen]
    if normalization == "nfc":
        shown, wanted = [_nfc(text) for text in shown], [_nfc(text) for text in wanted]
    return seen, shown, wanted


def _nfc(text: str) -> str:
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _tokens(
    tokenizer: Tokenizer,
    shown: list[str],
    wanted: list[str],
) -> tuple[list[Sequence[Hashable]], list[Sequence[Hashable]]]:
    """Both columns as sequences of numbered tokens, each distinct text tokenized once.

    Tokens are numbered by equality because rapidfuzz compares hashes, under which -1 and -2, or "a" and 97, are one.
    """
    texts = list(dict.fromkeys([*shown, *wanted]))
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    known: dict[str, Sequence[Hashable]] = {}
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        some = texts[start : start + _TEXTS_AT_ONCE]
        for text, tokens in zip(some, tokenizer.encode(some), strict=True):
            try:
                known[text] = _compact([numbers[token] for token in tokens])
            except TypeError as error:
                told = f"{NAME}: tokenizer {tokenizer.name}: expected tokens that can be hashed: {error}."
                raise ValueError(told) from error
    return [known[text] for text in shown], [known[text] for text in wanted]


def _compact(numbers: list[int]) -> Sequence[Hashable]:
    """The numbers as the code points of a text, which costs least to hold and compare.

    Where they go past Unicode's last they stay numbers: rapidfuzz takes a code point and its number for equal.
    """
    try:
        return "".join(map(chr, numbers))
    except ValueError:
        return numbers


def compute(
    predictions: Sequence[str | None],
    references: Sequence[str],
    *,
    tokenizer: TokenizerSpec = DEFAULT_TOKENIZER,
    normalization: str = "none",
    units: str = "codepoints",
    variant: str = "paper",
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """Text-rendering precision (C.2.1): ``precision``, ``ned_char``, ``ned_token``, ``sentence_accuracy`` in [0, 1].

    Args:
        predictions: what was read in each image; None where reading failed (counted in ``n_missing``, never scored).
        references: the text asked for.
        tokenizer: see :func:`load_tokenizer`.
        normalization: "none" as the study, or "nfc" (both sides).
        units: what ``ned_char`` counts: "codepoints" as the study, or "graphemes" (extended grapheme clusters); the
            signature names the latter.
        variant: "paper", thirds of the three means, or "reference", the weights 0.4, 0.4, 0.2 of the authors' code.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name count as one draw (default: each row alone).

    Returns a dict of plain numbers with ``n``, ``n_missing``, ``ci`` and ``ci_method`` (unless ``n_resamples`` is 0) and
    ``signature``; None stands for a number that is not defined.

    Raises ValueError on wrong input, naming column and row, and RuntimeError when the tokenizer cannot be loaded.

    >>> answer = compute(["no cat", "yes"], ["no dog", "yes"], tokenizer=str.split, n_resamples=0)
    >>> answer["precision"], answer["sentence_accuracy"], answer["signature"]
    (0.6666666666666666, 0.5, 'text_rendering_precision|tok:str.split|norm:none|variant:paper|v:1.0')
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    given = {"predictions": predictions, "references": references, "groups": groups, "clusters": clusters}
    columns = check_columns(NAME, COLUMNS, given)
    weights = np.array(VARIANTS[check_choice(NAME, "variant", variant, tuple(VARIANTS))])
    tokenizer = load_tokenizer(tokenizer)
    scores = _scores(columns["predictions"], columns["references"], tokenizer, normalization, units, variant)
    fields = {"tok": tokenizer.name, "norm": normalization, "variant": variant}
    if units != "codepoints":
        fields["units"] = units
    signature = Signature(NAME, fields, VERSION)
    measured = [scores["ned_char"], scores["ned_token"], scores["exact"]]
    ones = np.ones(len(scores["exact"]))
    parts = np.stack([*measured, ones, sum(weight * score for weight, score in zip(weights, measured, strict=True))], axis=1)
    kinds = dict(zip(KEYS, (Mean(4, 3), Mean(0, 3), Mean(1, 3), Mean(2, 3)), strict=True))
    observed = ~np.isnan(scores["exact"])

    def statistics(sums: FloatArray) -> FloatArray:
        means = ratio(sums[..., :3], sums[..., 3:4])
        return np.concatenate([(means * weights).sum(axis=-1, keepdims=True), means], axis=-1)

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        values, ci = estimate(parts[kept], of_kept, statistics, KEYS, resampling, kinds)
        return {**values, "n": len(kept), "n_missing": len(rows) - len(kept), **ci}

    return {**by_group(describe, len(parts), columns["groups"]), "signature": str(signature)}
