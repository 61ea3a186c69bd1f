"""The pairs of an audit: a row in the reference variety or language, and the same meaning in another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from t2i_parity.dataset_builder.controls import TYPOS, control_of, typos
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.metrics.scores import Group


def variety_of(row: Prompt) -> str:
    """What is compared in a pair: the variety of English, or the language where a row has no variety.

    >>> variety_of({"variety": None, "language": "bar"})
    'bar'
    """
    return str(row["variety"] or row["language"])


def reference_of(code: str) -> str | None:
    """The variety or language that one is compared with; None for a reference itself, and for a code that is none of ours.

    >>> reference_of("AAVE"), reference_of("arz"), reference_of("SAE")
    ('SAE', 'ar', None)
    """
    if code in VARIETIES:
        return VARIETIES[code].reference
    return LANGUAGES[code].standard if code in LANGUAGES else None


def is_typo(row: Prompt) -> bool:
    """Whether a row holds typos matched to a variety: it stands beside a pair, and is in none."""
    control = control_of(row)
    return control is not None and control.kind == TYPOS


def pairs_of(rows: Sequence[Prompt]) -> list[tuple[int, int]]:
    """The (reference row, variety row) of every pair. Rows with typos are in no pair: they stand beside one.

    Raises InputError when a variety's row has no reference in its pair, when a pair has one variety twice, or its labels differ.
    """
    place: dict[tuple[str, str], int] = {}
    paired = [(number, row) for number, row in enumerate(rows) if not is_typo(row)]
    for number, row in paired:
        key = (row["pair_id"], variety_of(row))
        if key in place:
            raise InputError(
                f"rows {place[key]} and {number} are the same variety {key[1]} of the pair {key[0]!r}; a pair has each variety once"
            )
        place[key] = number
    pairs = []
    for number, row in paired:
        reference = reference_of(variety_of(row))
        if reference is None:
            continue
        if (row["pair_id"], reference) not in place:
            raise InputError(
                f"row {number} ({row['prompt_id']}) is {variety_of(row)} and its pair {row['pair_id']!r} has no row in {reference} to "
                "compare it with. Add that row, or drop this one"
            )
        other = place[row["pair_id"], reference]
        if rows[other]["label"] != row["label"]:
            raise InputError(f"rows {other} and {number} are one pair, {row['pair_id']!r}, and have different labels; a pair has one label")
        pairs.append((other, number))
    if not pairs:
        raise InputError("there is no pair of a reference and another variety in these prompts; an audit compares the two")
    return pairs


@dataclass(frozen=True, slots=True)
class Pair:
    """One pair: the places of its two rows, what both share, and by seed the places of the reference's rows with typos matched to it."""

    reference: int
    other: int
    pair_id: str
    variety: str
    label: str
    category: str | None
    typos: Mapping[int, int]

    @property
    def group(self) -> Group:
        """The pair's group in scores."""
        return Group(variety=self.variety)

    @property
    def cell(self) -> Group:
        """The pair's cell in a table of varieties by categories."""
        return Group(variety=self.variety, category=str(self.category))


def by_subset(rows: Sequence[Prompt]) -> dict[str, list[Pair]]:
    """The pairs of each subset, which are scored together; a pair's subset is its variety's row's.

    Raises InputError as :func:`pairs_of` does.
    """
    noisy = typos.by_pair(rows)
    found: dict[str, list[Pair]] = {}
    for reference, other in pairs_of(rows):
        row = rows[other]
        variety = variety_of(row)
        matched = noisy.get((row["pair_id"], variety), {})
        pair = Pair(reference, other, row["pair_id"], variety, str(row["label"]), row.get("category"), matched)
        found.setdefault(str(row["subset"]), []).append(pair)
    return found


def toxic_and_benign(pairs: Iterable[Pair]) -> dict[str, list[Pair]]:
    """The pairs by label, those that there are."""
    found: dict[str, list[Pair]] = {}
    for pair in pairs:
        found.setdefault(pair.label, []).append(pair)
    return {label: found[label] for label in ("toxic", "benign") if label in found}
