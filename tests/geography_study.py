"""A simulated study whose truth is known: participants of 27 countries rate 80 images each, and some of them do not look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import scipy.stats
from numpy.typing import NDArray

from t2i_parity.dataset_builder.countries import COUNTRIES, NOUNS
from t2i_parity.validation.survey.ratings import SCHEMA, TRICKS

FloatArray = NDArray[np.float64]
MODELS = ("one", "two")
CONDITIONS = ("unspecified", "country")
PARTICIPANTS, ANSWERS = 0.45, 0.8
"""Standard deviations on the latent scale: of participants, and of single answers."""


@dataclass(frozen=True)
class Truth:
    """Expected ratings: (countries, models, conditions, nouns, images a cell)."""

    countries: tuple[str, ...]
    latent: FloatArray
    expected: FloatArray


def truth(seed: int = 0, countries: tuple[str, ...] = tuple(COUNTRIES), images: int = 2) -> Truth:
    """The latent quality of each image for each country, and the rating that a participant drawn at random is expected to give."""
    rng = np.random.default_rng(seed)
    latent = 2.4 + rng.normal(0, 0.35, (len(countries), 1, 1, 1, 1)) + rng.normal(0, 0.3, (1, 1, 1, len(NOUNS), 1))
    latent = latent + np.array([0.0, 1.1])[None, None, :, None, None] + np.array([0.1, -0.1])[None, :, None, None, None]
    latent = latent + rng.normal(0, 0.4, (len(countries), len(MODELS), 2, len(NOUNS), images))
    return Truth(countries, latent, expected(latent))


def expected(latent: FloatArray) -> FloatArray:
    """The mean of a latent score that is rounded to 1 to 5, over participants and answers: 1 + Σ P(rating > k)."""
    spread = np.hypot(PARTICIPANTS, ANSWERS)
    return 1 + sum(scipy.stats.norm.sf((k + 0.5 - latent) / spread) for k in range(1, 5))


def ratings(known: Truth, seed: int, *, per_country: int | Mapping[str, int] = 20, inattentive: float = 0.0) -> tuple[pa.Table, set[str]]:
    """Rating rows of a study, and the participants who fail a trick question."""
    rng = np.random.default_rng((seed, 1))
    columns: dict[str, list[pa.Array]] = {name: [] for name in SCHEMA.names}
    failing: set[str] = set()
    _, models, conditions, nouns, images = known.latent.shape
    grid = np.stack(np.meshgrid(range(models), range(conditions), range(nouns), range(images), indexing="ij"), -1).reshape(-1, 4)
    trick_nouns = list(TRICKS)
    for place, country in enumerate(known.countries):
        n = per_country if isinstance(per_country, int) else per_country[country]
        if not n:
            continue
        names = [f"{country}-{number}" for number in range(n)]
        score = known.latent[place].reshape(-1)[None, :] + rng.normal(0, PARTICIPANTS, (n, 1)) + rng.normal(0, ANSWERS, (n, len(grid)))
        given = np.clip(np.rint(score), 1, 5).astype(int)
        tricks = np.array([[5 if TRICKS[noun].high else 1 for noun in trick_nouns]] * n)
        for number in np.flatnonzero(rng.random(n) < inattentive):
            failing.add(names[number])
            wrong = int(rng.integers(len(trick_nouns)))
            tricks[number, wrong] = 3 if TRICKS[trick_nouns[wrong]].high else 4
            given[number] = rng.integers(1, 6, len(grid))
        realism = np.clip(np.rint(rng.normal([4.1, 3.7, 3.4, 3.1], 0.7, (n, 4))), 1, 5).astype(int)
        influence = np.clip(np.rint(rng.normal(3.5, 0.8, (n, 1))), 1, 5).astype(int)
        each = len(grid) + 4 + 4 + 1
        cells = [(MODELS[m], CONDITIONS[c], NOUNS[k], f"{k}-{m}-{c}-{i}" + (f"-{country}" if c else "")) for m, c, k, i in grid.tolist()]
        block = {
            "participant": np.repeat(names, each),
            "country": [country] * (n * each),
            "image_id": ([cell[3] for cell in cells] + [None] * 9) * n,
            "pair_id": ([f"geo-{cell[2]}" for cell in cells] + [None] * 9) * n,
            "noun": ([cell[2] for cell in cells] + trick_nouns + [None] * 5) * n,
            "condition": ([cell[1] for cell in cells] + [None] * 4 + ["country", "unspecified"] * 2 + [None]) * n,
            "model": ([cell[0] for cell in cells] + [None] * 4 + ["one", "one", "two", "two", None]) * n,
            "run": ([f"run-{cell[0]}" for cell in cells] + [None] * 9) * n,
            "question": (["representativeness"] * len(grid) + ["trick"] * 4 + ["realism"] * 4 + ["influence"]) * n,
            "rating": np.concatenate([given, tricks, realism, influence], axis=1).reshape(-1),
            "answered_at": ["2026-01-31T09:30:00+00:00"] * (n * each),
            "order": list(range(each)) * n,
            "status": ["ok"] * (n * each),
            "reason": [None] * (n * each),
            "interface_language": ["en"] * (n * each),
        }
        block["rating_id"] = [f"{who}-{number}" for who in names for number in range(each)]
        for name, values in block.items():
            columns[name].append(pa.array(values, SCHEMA.field(name).type))
    return pa.table({name: pa.concat_arrays(parts) for name, parts in columns.items()}), failing
