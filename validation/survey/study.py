"""The design of the survey: what one participant is asked, in which order (Basu et al. 2023, §2, "Questionnaire Details").

Half of the images come from prompts that name the participant's country. Models and nouns are spread as evenly as the pictures allow; the
order is the participant's own and follows from the study's seed. The four trick questions stand among the images, and the questions about
realism, one a model and condition, and about its influence come at the end.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from t2i_parity.validation.survey.pictures import Picture
from t2i_parity.validation.survey.ratings import CONDITIONS, TRICKS, Question

PER_PARTICIPANT = 80
"""Images that a participant rates in the study."""
QUOTA = 20
"""Participants a country: the study's 540 over 27 countries."""
TOGETHER = 4
"""Pictures shown together when realism is asked for."""
SECONDS = 9
"""What one question takes, for the estimate that participants are told."""
SKIPPED = "the participant could not answer"


@dataclass(frozen=True, slots=True)
class Item:
    """One question of one participant: its kind, the pictures shown by id, and what its rating row says of them."""

    question: Question
    shown: tuple[str, ...] = ()
    noun: str | None = None
    condition: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Design:
    """What decides the questions: the seed and how many images each participant rates."""

    seed: int = 0
    per_participant: int = PER_PARTICIPANT

    def plan(self, pictures: Mapping[str, Picture], country: str, participant: str) -> list[Item]:
        """The questions of a participant (a hash) of a country, in their order; the same for the same seed, pictures and participant."""
        rng = self._rng(country, participant)
        chosen = list(self._chosen([picture for picture in pictures.values() if picture.country in (None, country)], rng))
        rng.shuffle(chosen)
        items = [Item("representativeness", (p.image_id,), p.noun, p.condition, p.model) for p in chosen]
        tricks = list(TRICKS)
        rng.shuffle(tricks)
        for noun, place in zip(tricks, self._places(len(items), rng), strict=True):
            items.insert(place, Item("trick", (f"trick-{noun}",), noun))
        return [*items, *self._realism(chosen, rng), Item("influence")]

    def _rng(self, *parts: str) -> random.Random:
        digest = hashlib.sha256("\0".join((str(self.seed), *parts)).encode("utf-8")).digest()
        return random.Random(int.from_bytes(digest[:8], "big"))

    def _chosen(self, pictures: Sequence[Picture], rng: random.Random) -> Iterator[Picture]:
        """At most ``per_participant``: half a condition, fewer of one that has fewer, the models and nouns of each in turn."""
        queues = {condition: _in_turn([p for p in pictures if p.condition == condition], rng) for condition in CONDITIONS}
        half, odd = divmod(self.per_participant, 2)
        larger = rng.choice(CONDITIONS)
        for condition, queue in queues.items():
            yield from queue[: half + (odd if condition == larger else 0)]

    @staticmethod
    def _places(n: int, rng: random.Random) -> list[int]:
        """Where the trick questions go: one somewhere in each quarter, and none as the very first question.

        Given from the last to the first, so that inserting one moves none of the others.
        """
        edges = [n * quarter // len(TRICKS) for quarter in range(len(TRICKS) + 1)]
        return [rng.randint(min(low + 1, high), high) for low, high in pairwise(edges)][::-1]

    @staticmethod
    def _realism(chosen: Sequence[Picture], rng: random.Random) -> Iterator[Item]:
        """One question a model and condition, over some of the pictures that the participant has rated, no noun twice where it can be."""
        groups: dict[tuple[str, str], list[Picture]] = defaultdict(list)
        for picture in chosen:
            groups[picture.model, picture.condition].append(picture)
        order = sorted(groups)
        rng.shuffle(order)
        for model, condition in order:
            shown = _in_turn(groups[model, condition], rng)[:TOGETHER]
            yield Item("realism", tuple(picture.image_id for picture in shown), None, condition, model)


def _in_turn(pictures: Sequence[Picture], rng: random.Random) -> list[Picture]:
    """The pictures shuffled, so that every first few hold models and then nouns as evenly as can be."""
    nouns: dict[str, dict[str, list[Picture]]] = defaultdict(lambda: defaultdict(list))
    for picture in sorted(pictures, key=lambda picture: picture.image_id):
        nouns[picture.model][picture.noun].append(picture)
    by_model = []
    for model in sorted(nouns):
        cells = [nouns[model][noun] for noun in sorted(nouns[model])]
        for cell in cells:
            rng.shuffle(cell)
        rng.shuffle(cells)
        by_model.append(_round_robin(cells))
    rng.shuffle(by_model)
    return _round_robin(by_model)


def _round_robin(queues: Sequence[Sequence[Picture]]) -> list[Picture]:
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[number] for number in range(longest) for queue in queues if number < len(queue)]


def minutes(items: int) -> int:
    """How long so many questions take, in whole minutes.

    >>> minutes(89)
    14
    """
    return max(1, -(-items * SECONDS // 60))
