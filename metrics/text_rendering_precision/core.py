"""Text-rendering precision: what a reader (OCR) saw in an image against the text that was asked for.

Source: "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002),
Appendix C.2.1.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from .common import (
    CLUSTERS,
    GROUPS,
    Column,
    FloatArray,
    IntArray,
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


@dataclass(frozen=True)
class Tokenizer:
    """A tokenizer under the name that signatures carry; ``encode`` maps texts to token sequences (ids or strings)."""

    name: str
    encode: Callable[[list[str]], Sequence[Sequence[Hashable]]]


TokenizerSpec = str | Tokenizer | Callable[[str], Sequence[Hashable]]


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
    raise ValueError(f"{NAME}: tokenizer: expected a hub id, a folder, 'tekken' or a callable text → tokens, got {spec!r}.")


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
        raise RuntimeError(
            f"{NAME}: tokenizer='tekken' needs the file data/{TEKKEN}.json of mistral-common ({error}). Fix: pip install mistral-common."
        ) from error
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
    longer = np.fromiter(map(max, map(len, left), map(len, right)), np.float64, n)
    return np.where(longer == 0, 1.0, 1 - distance / np.maximum(longer, 1))


def per_row(
    predictions: Sequence[str | None],
    references: Sequence[str],
    *,
    tokenizer: TokenizerSpec = DEFAULT_TOKENIZER,
    normalization: str = "none",
    variant: str = "paper",
) -> dict[str, FloatArray]:
    """Scores of each row: arrays ``ned_char``, ``ned_token``, ``exact`` and ``precision``, in [0, 1].

    NaN where the prediction is None; arguments as in :func:`compute`.

    Raises as :func:`compute` does.

    >>> per_row(["no cat", None], ["no dog", "x"], tokenizer=str.split)["precision"].round(4).tolist()
    [0.3333, nan]
    """
    weights = VARIANTS[check_choice(NAME, "variant", variant, tuple(VARIANTS))]
    check_choice(NAME, "normalization", normalization, ("none", "nfc"))
    given = {"predictions": predictions, "references": references}
    columns = check_columns(NAME, COLUMNS[:2], given)
    seen = [row for row, text in enumerate(columns["predictions"]) if text is not None]
    shown, wanted = ([columns[name][row] for row in seen] for name in ("predictions", "references"))
    if normalization == "nfc":
        shown, wanted = ([_nfc(text) for text in texts] for texts in (shown, wanted))
    scores = {
        "ned_char": ned(shown, wanted),
        "ned_token": ned(*_tokens(load_tokenizer(tokenizer), shown, wanted)),
        "exact": np.fromiter((a == b for a, b in zip(shown, wanted, strict=True)), np.float64, len(shown)),
    }
    scores["precision"] = sum(weight * score for weight, score in zip(weights, scores.values(), strict=True))  # type: ignore[assignment]
    rows = {name: np.full(len(columns["predictions"]), np.nan) for name in scores}
    for name, score in scores.items():
        rows[name][seen] = score
    return rows


def _nfc(text: str) -> str:
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


def _tokens(tokenizer: Tokenizer, shown: list[str], wanted: list[str]) -> tuple[list[list[int]], list[list[int]]]:
    """Both columns as token numbers, each distinct text tokenized once.

    Tokens are numbered by equality because rapidfuzz compares hashes, under which -1 and -2, or "a" and 97, are one.
    """
    texts = list(dict.fromkeys([*shown, *wanted]))
    numbers: dict[Hashable, int] = {}
    encoded = tokenizer.encode(texts) if texts else []
    try:
        known = {text: [numbers.setdefault(token, len(numbers)) for token in tokens] for text, tokens in zip(texts, encoded, strict=True)}
    except TypeError as error:
        raise ValueError(f"{NAME}: tokenizer {tokenizer.name}: expected tokens that can be hashed: {error}.") from error
    return [known[text] for text in shown], [known[text] for text in wanted]


def compute(
    predictions: Sequence[str | None],
    references: Sequence[str],
    *,
    tokenizer: TokenizerSpec = DEFAULT_TOKENIZER,
    normalization: str = "none",
    variant: str = "paper",
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> dict[str, Any]:
    """Text-rendering precision (C.2.1): ``precision``, ``ned_char``, ``ned_token``, ``sentence_accuracy`` in [0, 1].

    Args:
        predictions: what was read in each image; None where reading failed (counted in ``n_missing``, never scored).
        references: the text asked for.
        tokenizer: see :func:`load_tokenizer`.
        normalization: "none" as the study, or "nfc" (both sides).
        variant: "paper", thirds of the three means, or "reference", the weights 0.4, 0.4, 0.2 of the authors' code.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name are resampled together (default: each row alone).

    Returns a dict of plain numbers with ``n``, ``n_missing``, ``ci`` (unless ``n_resamples`` is 0) and ``signature``;
    None stands for a number that is not defined.

    Raises ValueError on wrong input, naming column and row, and RuntimeError when the tokenizer cannot be loaded.

    >>> answer = compute(["no cat", "yes"], ["no dog", "yes"], tokenizer=str.split, n_resamples=0)
    >>> answer["precision"], answer["sentence_accuracy"], answer["signature"]
    (0.6666666666666666, 0.5, 'text_rendering_precision|tok:str.split|norm:none|variant:paper|v:1.0')
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    columns = check_columns(NAME, COLUMNS, {"predictions": predictions, "references": references, "groups": groups, "clusters": clusters})
    weights = np.array(VARIANTS[check_choice(NAME, "variant", variant, tuple(VARIANTS))])
    tokenizer = load_tokenizer(tokenizer)
    scores = per_row(columns["predictions"], columns["references"], tokenizer=tokenizer, normalization=normalization, variant=variant)
    signature = Signature(NAME, {"tok": tokenizer.name, "norm": normalization, "variant": variant}, VERSION)
    parts = np.stack([scores["ned_char"], scores["ned_token"], scores["exact"], np.ones(len(scores["exact"]))], axis=1)
    observed = ~np.isnan(scores["exact"])

    def statistics(sums: FloatArray) -> FloatArray:
        means = ratio(sums[..., :3], sums[..., 3:])
        return np.concatenate([(means @ weights)[..., None], means], axis=-1)

    def describe(rows: IntArray) -> dict[str, Any]:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        values, ci = estimate(parts[kept], of_kept, statistics, KEYS, resampling)
        return {**values, "n": len(kept), "n_missing": len(rows) - len(kept), **ci}

    return {**by_group(describe, len(parts), columns["groups"]), "signature": str(signature)}
