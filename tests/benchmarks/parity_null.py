"""Language-blind models through the line: how often a worst language is named that is none, and how often a planted one is found.

    python tests/benchmarks/parity_null.py --models 200

Each model damages the characters of the starter edition's texts in ten languages, all alike, in a way of its own: evenly, unevenly from
image to image, whole runs of characters, with images that are lost. What it drew is scored, and held against the null that was fitted to
it. *named* is the share of models of which a language is said to be served worse than the others (it should be at most 5%); *r* is the mean
correlation over languages of the texts' length with the raw score, and with what the null leaves of it. *found* is how often a language
whose score was lowered by ten points is named, and *power* how often Student's t would show ten points of that noise.
"""

from __future__ import annotations

import argparse
import importlib.resources
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.stats

from t2i_parity.metrics._common import FloatArray
from t2i_parity.metrics.text_rendering_precision.core import GRAPHEMES, Tokenizer, load_tokenizer, per_row
from t2i_parity.metrics.text_rendering_precision.null import compute

Damage = Callable[[list[str], list[str], np.random.Generator], list[str]]
PLANTED = 0.10


def evenly(rate: float) -> Damage:
    """Each character alike."""

    def damage(text: list[str], letters: list[str], rng: np.random.Generator) -> list[str]:
        return [letters[rng.integers(len(letters))] if rng.random() < rate else sign for sign in text]

    return damage


def unevenly(rate: float, size: float) -> Damage:
    """Each image has a rate of its own."""

    def damage(text: list[str], letters: list[str], rng: np.random.Generator) -> list[str]:
        return evenly(float(rng.beta(rate * size, (1 - rate) * size)))(text, letters, rng)

    return damage


def in_runs(rate: float) -> Damage:
    """Two characters beside each other are dropped or doubled."""

    def damage(text: list[str], letters: list[str], rng: np.random.Generator) -> list[str]:
        made: list[str] = []
        place = 0
        while place < len(text):
            run = text[place : place + 2]
            broken = rng.random() < rate
            made += ([] if rng.random() < 0.5 else run * 2) if broken else run
            place += 2
        return made

    return damage


def losing(rate: float, share: float) -> Damage:
    """A share of images shows nothing of the text."""

    def damage(text: list[str], letters: list[str], rng: np.random.Generator) -> list[str]:
        if rng.random() < share:
            return [] if rng.random() < 0.5 else [letters[place] for place in rng.integers(0, len(letters), len(text))]
        return unevenly(rate, 6.0)(text, letters, rng)

    return damage


MODELS: tuple[tuple[str, Damage], ...] = (
    *((f"evenly {rate:g}", evenly(rate)) for rate in (0.01, 0.05, 0.15, 0.4)),
    *((f"unevenly {rate:g}", unevenly(rate, size)) for rate, size in ((0.05, 2.0), (0.2, 1.0), (0.2, 8.0), (0.5, 2.0))),
    *((f"in runs {rate:g}", in_runs(rate)) for rate in (0.03, 0.1)),
    *((f"losing {share:g}", losing(0.08, share)) for share in (0.05, 0.3)),
)


@dataclass(frozen=True, slots=True)
class Material:
    """Texts of one meaning in ten languages."""

    texts: list[str]
    languages: list[str]
    meanings: list[str]

    @classmethod
    def of(cls, meanings: int) -> Material:
        file = importlib.resources.files("t2i_parity.dataset_builder.starter") / "lingt2i_text.jsonl"
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()][:meanings]
        cells = [(text, code, row["meaning"]) for row in rows for code, text in row["texts"].items()]
        return cls(*map(list, zip(*cells, strict=True)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one model: is a language named worst, the correlations with length, is the planted one found, and how likely was that."""

    named: bool
    raw: float
    adjusted: float
    found: bool
    power: float


def drawn(material: Material, damage: Damage, rng: np.random.Generator) -> list[str]:
    texts = [list(map(str, text)) for text in GRAPHEMES.encode(material.texts)]
    letters: dict[str, list[str]] = {}
    for text, code in zip(texts, material.languages, strict=True):
        letters.setdefault(code, []).extend(text)
    return ["".join(damage(text, letters[code], rng)) for text, code in zip(texts, material.languages, strict=True)]


def outcome(material: Material, damage: Damage, tokenizer: Tokenizer, seed: int) -> Outcome:
    """One model, judged."""
    rng = np.random.default_rng(seed)
    shown = drawn(material, damage, rng)
    answer = compute(shown, material.texts, material.languages, tokenizer=tokenizer, clusters=material.meanings, seed=seed)
    by_language = answer["by_group"]
    codes = list(by_language)
    length = {code: np.mean([len(t) for t, of in zip(material.texts, material.languages, strict=True) if of == code]) for code in codes}
    scores = per_row(shown, material.texts, tokenizer=tokenizer)["precision"]
    at = np.array(material.languages)
    raw = [float(scores[at == code].mean()) for code in codes]
    adjusted = [by_language[code]["precision_difference"] for code in codes]
    lengths = [length[code] for code in codes]
    planted = codes[seed % len(codes)]
    worse = _lowered(shown, material, planted, tokenizer, rng)
    again = compute(worse, material.texts, material.languages, tokenizer=tokenizer, clusters=material.meanings, seed=seed)["by_group"]
    part = again[planted]
    low, high = part["ci"]["precision_difference"]
    df = len(set(material.meanings)) - 1
    reach = float(scipy.stats.t.ppf(1 - 0.025 / len(codes), df))
    error = (high - low) / 2 / reach
    power = float(scipy.stats.nct.sf(reach, df, PLANTED / error)) if error else 1.0
    return Outcome(
        any(each["precision_p_holm"] < 0.05 and each["precision_difference"] < 0 for each in by_language.values()),
        float(np.corrcoef(lengths, raw)[0, 1]),
        float(np.corrcoef(lengths, adjusted)[0, 1]) if np.ptp(adjusted) else 0.0,
        part["precision_p_holm"] < 0.05 and part["precision_difference"] < 0,
        power,
    )


def _lowered(shown: Sequence[str], material: Material, code: str, tokenizer: Tokenizer, rng: np.random.Generator) -> list[str]:
    """The same with texts of one language lost, until its mean is ten points lower."""
    made = list(shown)
    here = np.flatnonzero(np.array(material.languages) == code)
    scores: FloatArray = per_row([made[row] for row in here], [material.texts[row] for row in here], tokenizer=tokenizer)["precision"]
    owed = PLANTED * len(here)
    for place in rng.permutation(len(here)).tolist():
        if owed < scores[place] / 2:
            continue
        made[here[place]] = ""
        owed -= scores[place]
    return made


def run(models: int, meanings: int, seed: int = 0) -> dict[str, list[Outcome]]:
    """So many models, in turn of each kind."""
    material, tokenizer = Material.of(meanings), load_tokenizer("tekken")
    found: dict[str, list[Outcome]] = {}
    for number in range(models):
        name, damage = MODELS[number % len(MODELS)]
        found.setdefault(name, []).append(outcome(material, damage, tokenizer, seed + number))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--meanings", type=int, default=20, help="texts in each language (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    found = run(given.models, given.meanings, given.seed)
    print(f"{'model':<16} {'n':>4}  named  r raw  r adjusted  found  power")
    for name, each in [*found.items(), ("all", [one for group in found.values() for one in group])]:
        numbers = [float(np.mean([getattr(one, key) for one in each])) for key in ("named", "raw", "adjusted", "found", "power")]
        print(
            f"{name:<16} {len(each):>4}  {numbers[0]:5.3f}  {numbers[1]:5.2f}  {numbers[2]:10.2f}  {numbers[3]:5.2f}  {numbers[4]:5.2f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
