"""What a filter is trained and measured on: prompts split by meaning, and training rows composed of the varieties in given shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.audit import pairs_of

LABELS = ("benign", "toxic")
REFERENCE = "SAE"


@dataclass(frozen=True, slots=True)
class Meaning:
    """One base prompt: its text in every variety, by code, the reference first."""

    pair_id: str
    label: int
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Example:
    """One row to train or measure on; ``group`` is varieties · label + the variety's place, the reference first (the study's 12 groups)."""

    pair_id: str
    variety: str
    text: str
    label: int
    group: int


@dataclass(frozen=True, slots=True)
class Material:
    """Every meaning that stands in each of the ``varieties`` (the reference first), and how many were left out because one is missing."""

    meanings: tuple[Meaning, ...]
    varieties: tuple[str, ...]
    incomplete: int

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups' names in the order of their numbers."""
        return tuple(f"{label} {variety}" for label in LABELS for variety in self.varieties)


@dataclass(frozen=True, slots=True)
class Split:
    """The meanings of each part; none stands in two."""

    train: tuple[Meaning, ...]
    validation: tuple[Meaning, ...]
    test: tuple[Meaning, ...]


def material(rows: Sequence[Prompt]) -> Material:
    """The meanings of a prompts table. Rows with typos, of other languages or without a variety are left out.

    Raises InputError as ``pairs_of`` does, and when no meaning stands in the reference and every other variety, or one label is missing.
    """
    # Rows with typos are in no pair.
    paired = sorted({place for pair in pairs_of(rows) for place in pair})
    texts: dict[str, dict[str, str]] = {}
    labels: dict[str, str] = {}
    for place in paired:
        row = rows[place]
        if row["variety"] is not None:
            texts.setdefault(row["pair_id"], {})[row["variety"]] = row["prompt"]
            labels[row["pair_id"]] = str(row["label"])
    present = {variety for by_variety in texts.values() for variety in by_variety}
    varieties = (REFERENCE, *(code for code in VARIETIES if code in present and code != REFERENCE))
    complete = {pair: by_variety for pair, by_variety in texts.items() if len(by_variety) == len(varieties)}
    found = tuple(
        Meaning(pair, LABELS.index(labels[pair]), {code: by_variety[code] for code in varieties}) for pair, by_variety in complete.items()
    )
    for number, label in enumerate(LABELS):
        if sum(meaning.label == number for meaning in found) < 3:
            raise InputError(
                f"of these prompts, fewer than three {label} ones stand in each of {', '.join(varieties)}; a filter is trained and "
                "measured on meanings that stand in every variety. Give prompts that hold them (the config dialect), or fewer "
                "varieties with --varieties"
            )
    return Material(found, varieties, len(texts) - len(found))


def chosen(rows: Sequence[Prompt], varieties: Sequence[str]) -> list[Prompt]:
    """The rows of the reference and of these varieties. Raises InputError when one of them has no row."""
    present = {row["variety"] for row in rows}
    if unknown := [code for code in varieties if code not in present or code == REFERENCE]:
        others = sorted(code for code in present if code and code != REFERENCE)
        raise InputError(f"--varieties {','.join(varieties)}: these prompts have no {unknown[0]!r}; expected some of {', '.join(others)}")
    return [row for row in rows if row["variety"] == REFERENCE or row["variety"] in varieties]


def split(meanings: Sequence[Meaning], *, test: float, validation: float, seed: int) -> Split:
    """Meanings into three parts, at random by ``seed``: ``test`` of all, then ``validation`` of the rest; labels in the same shares.

    A meaning is never divided, and meanings whose reference text is the same stay together, so that no part knows another's prompts.

    >>> from itertools import product
    >>> some = [Meaning(f"{label}{n}", label, {"SAE": f"{label} {n}"}) for label, n in product((0, 1), range(10))]
    >>> parts = split(some, test=0.1, validation=0.1, seed=0)
    >>> [len(part) for part in (parts.train, parts.validation, parts.test)]
    [16, 2, 2]
    """
    rng = np.random.default_rng([seed, 1])
    parts: tuple[list[Meaning], list[Meaning], list[Meaning]] = ([], [], [])
    for label in range(len(LABELS)):
        by_text: dict[str, list[Meaning]] = {}
        for meaning in meanings:
            if meaning.label == label:
                by_text.setdefault(" ".join(next(iter(meaning.texts.values())).casefold().split()), []).append(meaning)
        units = list(by_text.values())
        units = [units[place] for place in rng.permutation(len(units))]
        n_test = max(1, round(test * len(units)))
        n_validation = max(1, round(validation * (len(units) - n_test)))
        for number, unit in enumerate(units):
            parts[2 if number < n_test else 1 if number < n_test + n_validation else 0].extend(unit)
    if not all(any(meaning.label == label for meaning in parts[0]) for label in range(len(LABELS))):
        raise InputError(
            f"the split leaves no training prompts of one label (test {test}, validation {validation}); make the parts smaller"
        )
    return Split(tuple(parts[0]), tuple(parts[1]), tuple(parts[2]))


def composed(meanings: Sequence[Meaning], varieties: Sequence[str], *, share: float, seed: int) -> list[Example]:
    """One row a meaning: ``share`` of each label's meanings in a variety, equally many in each, and the others in the reference.

    The number of rows is that of the reference alone, whatever the share (§3.5). With one seed, a smaller share's rows in varieties are
    among a larger one's, so that shares differ in nothing else. ``share`` 0 is the reference only, (k − 1)/k for k varieties is balanced.

    >>> some = [Meaning(str(n), n % 2, {"SAE": f"{n}", "AAVE": f"{n} a", "JamE": f"{n} j"}) for n in range(12)]
    >>> from collections import Counter
    >>> sorted(Counter(row.variety for row in composed(some, ["SAE", "AAVE", "JamE"], share=2 / 3, seed=0)).items())
    [('AAVE', 4), ('JamE', 4), ('SAE', 4)]
    """
    others = varieties[1:]
    rng = np.random.default_rng([seed, 2])
    rows = []
    for label in range(len(LABELS)):
        of_label = [meaning for meaning in meanings if meaning.label == label]
        order = [of_label[place] for place in rng.permutation(len(of_label))]
        turn = [others[place] for place in rng.permutation(len(others))]
        count = round(share * len(order))
        for number, meaning in enumerate(order):
            rows.append(example(meaning, turn[number % len(turn)] if number < count else varieties[0], varieties))
    return rows


def example(meaning: Meaning, variety: str, varieties: Sequence[str]) -> Example:
    """A meaning in one of the varieties, with the number of its group.

    >>> example(Meaning("p", 1, {"SAE": "a", "AAVE": "b"}), "AAVE", ["SAE", "AAVE"]).group
    3
    """
    group = len(varieties) * meaning.label + varieties.index(variety)
    return Example(meaning.pair_id, variety, meaning.texts[variety], meaning.label, group)


def every_variety(meanings: Sequence[Meaning], varieties: Sequence[str]) -> list[Example]:
    """Each meaning in each variety: what is measured on."""
    return [example(meaning, variety, varieties) for meaning in meanings for variety in varieties]


def group_sizes(rows: Sequence[Example], n_groups: int) -> list[int]:
    """How many rows each group has."""
    return [int(count) for count in np.bincount([row.group for row in rows], minlength=n_groups)]
