"""Magnitude-matched typos (Kim et al. 2026, §3.4): noise as far from the standard text as a variety's text is, and nothing else.

For every pair, variety and seed the rate of typos is searched by bisection until the embedding of the standard text with typos is as
similar to the standard text's as the variety's is. What a filter does on it is the effect of distance alone; what it does on the
variety beyond that is the bias gap.

A typo row is the pair's *standard* row with typos: same pair, language, variety and label. Its subset says what it was matched
to and with which seed: ``typo_AAVE_seed0``, ``typo_bar_seed3``; ``by_pair`` finds the rows again for the audit's optional
column ``typo``. Its ``checks`` hold what was reached, and rows that missed the tolerance stay, with the verdict "not matched".

From the study: bisection over rates in [0, 1], tolerance 0.005, at most 20 steps, seeds 0 to 4; a typo substitutes, deletes or
swaps characters; spaces are skipped; nothing is deleted from a text of ten characters or fewer. Ours: the draws belong to the pair
and the seed, not to the rate, so that a higher rate adds typos and, but for a few swaps, keeps the others; a bracket that holds no
text still unseen is left, and the steps that remain go into the seed's next draws; a word never loses its last character; a letter is
replaced by one of its own alphabet, in its own case; combining marks stay with their letter. Where the target is not reached, the
closest text that was seen is kept; where the variety is as good as equal to the standard, that is the standard text itself.
"""

from __future__ import annotations

import hashlib
import random
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from t2i_parity.dataset_builder.controls import TYPOS, check, control_of, derived, originals
from t2i_parity.dataset_builder.controls.encoders import TextEncoder
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES, SCRIPTS
from t2i_parity.dataset_builder.schema import NewRow, Row
from t2i_parity.dataset_builder.varieties import VARIETIES

VERSION = "1.0"
SEEDS = (0, 1, 2, 3, 4)
TOLERANCE = 0.005
MAX_STEPS = 20
DELETE_ABOVE = 10
"""A text of so many characters or fewer loses none."""

_OPERATIONS = ("substitute", "delete", "swap")
_AT_ONCE = 512


class Noise:
    """One text's typos at every rate: the draws are made once, and a rate decides how many of them take place."""

    def __init__(self, text: str, key: str, script: str = "Latn") -> None:
        letters = SCRIPTS[script].alphabet if script in SCRIPTS else ""
        if not letters:
            known = ", ".join(code for code, each in SCRIPTS.items() if each.alphabet)
            raise InputError(f"typos are declared for texts in {known}, not in {script}: it has no alphabet to draw from")
        self._units = _clusters(text)
        # random() alone is the same in every version of Python.
        draws = random.Random(int.from_bytes(hashlib.sha256(f"{key}\0{text}".encode()).digest()[:8], "big"))
        self._plan = []
        for unit in self._units:
            chance, operation, letter = draws.random(), draws.random(), draws.random()
            others = [other for other in letters if other != unit[0].lower()]
            replacement = others[int(letter * len(others))]
            self._plan.append((chance, _OPERATIONS[int(operation * 3)], replacement.upper() if unit[0].isupper() else replacement))

    def between(self, low: float, high: float) -> int:
        """How many characters are hit at the rate ``high`` and not at ``low``."""
        return sum(low <= chance < high for chance, _, _ in self._plan)

    def at(self, rate: float) -> str:
        """The text at a rate in [0, 1]: each character but spaces is hit with that probability."""
        units, plan, left = self._units, self._plan, len(self._units)
        in_word = _word_lengths(units)
        word, out, position = 0, [], 0
        while position < len(units):
            unit, (chance, operation, letter) = units[position], plan[position]
            if unit.isspace():
                word += 1
            if unit.isspace() or chance >= rate:
                out.append(unit)
                position += 1
                continue
            following = units[position + 1] if position + 1 < len(units) else " "
            if operation == "swap" and not following.isspace() and following != unit:
                out += [following, unit]
                position += 2
                continue
            if operation == "delete" and left > DELETE_ABOVE and in_word[word] > 1:
                left -= 1
                in_word[word] -= 1
            else:
                out.append(letter)
            position += 1
        return "".join(out)


def perturb(text: str, rate: float, seed: int | str, script: str = "Latn") -> str:
    """A text with typos at a rate in [0, 1].

    >>> perturb("a family dinner suddenly interrupted", 0.0, 0)
    'a family dinner suddenly interrupted'
    """
    return Noise(text, str(seed), script).at(rate)


@dataclass(slots=True)
class Search:
    """Bisection of the rate at which a falling similarity meets a target; it remembers the closest that it saw."""

    target: float
    tolerance: float = TOLERANCE
    max_steps: int = MAX_STEPS
    low: float = 0.0
    high: float = 1.0
    steps: int = 0
    best: tuple[float, float, str] | None = None
    """Similarity, rate and text of the closest so far."""

    @property
    def rate(self) -> float:
        """The rate to try next."""
        return (self.low + self.high) / 2

    @property
    def matched(self) -> bool:
        """Whether the closest is within the tolerance."""
        return self.best is not None and abs(self.best[0] - self.target) <= self.tolerance

    @property
    def done(self) -> bool:
        """Whether there is nothing more to try."""
        return self.matched or self.steps >= self.max_steps

    def saw(self, similarity: float, text: str = "") -> None:
        """Take in the similarity that the text at ``rate`` has."""
        self.steps += 1
        if self.best is None or abs(similarity - self.target) < abs(self.best[0] - self.target):
            self.best = (similarity, self.rate, text)
        if similarity > self.target:
            self.low = self.rate
        else:
            self.high = self.rate

    def again(self) -> None:
        """Begin again over all rates, with the steps that remain."""
        self.low, self.high = 0.0, 1.0


@dataclass(slots=True)
class _Task:
    reference: Row
    other: Row
    seed: int
    search: Search = field(default_factory=lambda: Search(1.0))
    draws: int = 0
    noise: Noise = field(init=False)

    def __post_init__(self) -> None:
        self.draw()

    def draw(self) -> None:
        """Take the next draws of the pair and seed."""
        key = f"{self.seed}\0{self.reference['pair_id']}\0{self.draws}"
        self.noise = Noise(self.reference["prompt"], key, _script(self.reference))
        self.draws += 1

    def saw(self, similarity: float, text: str) -> None:
        """Take in a step, and go on with other draws when these have no text left between the two nearest."""
        search = self.search
        search.saw(similarity, text)
        unchanged_is_near = search.low == 0.0 and search.target >= 1 - search.tolerance
        if search.high < 1.0 and not unchanged_is_near and self.noise.between(search.low, search.high) < 2:
            self.draw()
            search.again()


def derive(
    rows: Sequence[Row],
    encoder: TextEncoder,
    *,
    seeds: Iterable[int] = SEEDS,
    tolerance: float = TOLERANCE,
    max_steps: int = MAX_STEPS,
    varieties: Iterable[str] = (),
) -> Iterator[NewRow]:
    """One typo row a pair, variety and seed, in the order of the variety rows.

    Args:
        rows: decoded rows with a standard row in every pair; rows that a control made are passed over.
        encoder: see ``dataset_builder.controls.encoders``.
        seeds: one set of draws each.
        tolerance: how far the reached similarity may lie from the variety's.
        max_steps: steps of the bisection.
        varieties: only these (or, where rows have no variety, languages such as "bar").

    Raises InputError when a pair has no standard row, or one variety twice, or a script that typos are not declared for.
    """
    chosen, wanted = list(dict.fromkeys(seeds)), set(varieties)
    if not chosen or not 0 <= tolerance < 2 or max_steps < 1:
        raise InputError(f"typos need a seed, a tolerance from 0 on and a step, got {chosen}, {tolerance} and {max_steps}")
    tasks = iter(_Task(reference, other, seed) for reference, other in _pairs(rows, wanted) for seed in chosen)
    signature = encoder.signature()
    while block := list(islice(tasks, _AT_ONCE)):
        _match(block, encoder, tolerance, max_steps)
        for task in block:
            yield _row(task, signature)


def by_pair(rows: Sequence[Row]) -> dict[tuple[str, str], dict[int, int]]:
    """Where the typo rows of an audit stand: (pair_id, what they were matched to) → seed → position in ``rows``.

    >>> by_pair([{"pair_id": "p", "subset": "dialect"}, {"pair_id": "p", "subset": "typo_AAVE_seed2"}])
    {('p', 'AAVE'): {2: 1}}
    """
    found: dict[tuple[str, str], dict[int, int]] = {}
    for position, row in enumerate(rows):
        control = control_of(row)
        if control is not None and control.of is not None and control.seed is not None:
            found.setdefault((row["pair_id"], control.of), {})[control.seed] = position
    return found


def matched(rows: Iterable[Row]) -> dict[str, tuple[int, int]]:
    """By what they were matched to: how many typo rows are within the tolerance, and how many there are."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows:
        verdicts = [entry["verdict"] for entry in row["checks"] if entry["check"] == "typo_similarity"]
        if verdicts:
            control = control_of(row)
            name = (control.of if control else None) or "nobody"
            within, total = found.get(name, (0, 0))
            found[name] = (within + (verdicts[0] == "matched"), total + 1)
    return found


def _match(tasks: Sequence[_Task], encoder: TextEncoder, tolerance: float, max_steps: int) -> None:
    """Run the searches of many tasks side by side: one call of the encoder a step, no text encoded twice."""
    known: dict[str, NDArray[np.float64]] = {}

    def vectors(texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            encoded = np.asarray(encoder.encode(new), np.float64)
            if encoded.shape[0] != len(new) or not np.allclose(np.linalg.norm(encoded, axis=1), 1, atol=1e-3):
                raise ValueError(f"{encoder.signature()}: expected {len(new)} vectors of length 1, got an array of shape {encoded.shape}")
            known.update(zip(new, encoded, strict=True))

    def similarity(task: _Task, text: str) -> float:
        return float(known[task.reference["prompt"]] @ known[text])

    vectors(text for task in tasks for text in (task.reference["prompt"], task.other["prompt"]))
    for task in tasks:
        task.search = Search(similarity(task, task.other["prompt"]), tolerance, max_steps)
    while active := [task for task in tasks if not task.search.done]:
        texts = [task.noise.at(task.search.rate) for task in active]
        vectors(texts)
        for task, text in zip(active, texts, strict=True):
            task.saw(similarity(task, text), text)


def _row(task: _Task, signature: str) -> NewRow:
    search, name = task.search, _name(task.other)
    assert search.best is not None
    reached, rate, text = search.best
    return derived(
        task.reference,
        f"typo-{name}-{task.seed}",
        prompt=text,
        subset=f"typo_{name}_seed{task.seed}",
        derivation=TYPOS,
        producer=(
            f"dataset_builder.controls.typos {VERSION}, seed {task.seed}, at most {search.max_steps} steps to within {search.tolerance}; "
            f"{signature}"
        ),
        checks=[
            check("typo_similarity", "matched" if search.matched else "not matched", reached, signature),
            check("typo_target", task.other["prompt_id"], search.target, signature),
            check("typo_tolerance", None, search.tolerance, None),
            check("typo_rate", None, rate, None),
            check("typo_steps", None, float(search.steps), None),
            check("typo_seed", None, float(task.seed), None),
        ],
    )


def _pairs(rows: Sequence[Row], wanted: set[str]) -> list[tuple[Row, Row]]:
    place: dict[tuple[str, str], Row] = {}
    written = originals(rows)
    for row in written:
        key = (row["pair_id"], _name(row))
        if key in place:
            raise InputError(f"{place[key]['prompt_id']} and {row['prompt_id']} are the same variety {key[1]} of the pair {key[0]!r}")
        place[key] = row
    pairs = []
    for row in written:
        name = _name(row)
        standard = VARIETIES[name].reference if name in VARIETIES else LANGUAGES[name].standard
        if standard is None or (wanted and name not in wanted):
            continue
        if (row["pair_id"], standard) not in place:
            raise InputError(f"{row['prompt_id']} is {name} and its pair {row['pair_id']!r} has no row in {standard} to put typos into")
        pairs.append((place[row["pair_id"], standard], row))
    if missing := wanted - {_name(other) for _, other in pairs}:
        raise InputError(f"there is no row in {', '.join(sorted(missing))} among these prompts to match typos to")
    return pairs


def _name(row: Row) -> str:
    return str(row.get("variety") or row["language"])


def _script(row: Row) -> str:
    return str(row.get("script") or LANGUAGES[row["language"]].script)


def _clusters(text: str) -> list[str]:
    """A text's characters, each with the combining marks that follow it."""
    units: list[str] = []
    for character in text:
        if units and unicodedata.category(character).startswith("M"):
            units[-1] += character
        else:
            units.append(character)
    return units


def _word_lengths(units: Sequence[str]) -> list[int]:
    lengths = [0]
    for unit in units:
        if unit.isspace():
            lengths.append(0)
        else:
            lengths[-1] += 1
    return lengths
