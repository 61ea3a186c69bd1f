"""The geographical analysis on simulated studies of known truth: how often intervals hold it, whom it excludes, and how long it takes.

    python tests/benchmarks/geography_coverage.py --seeds 200

A study is 540 participants of 27 countries, 80 images each; one in twenty does not look and fails a trick question. The truth is what a
participant drawn at random is expected to answer about these images. The thinly rated study has 20 participants in ten countries and
0 to 4 in the others. Each line: what was estimated, how many intervals hold the truth, of how many, and the share (0.95 is nominal).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from geography_study import CONDITIONS, MODELS, Truth, ratings, truth

from t2i_parity.dataset_builder.countries import NOUNS
from t2i_parity.validation.geography.analysis import analyse
from t2i_parity.validation.geography.partial_pooling import pooling
from t2i_parity.validation.geography.study import study_of
from t2i_parity.validation.geography.tables import GAIN
from t2i_parity.validation.survey.ratings import check_ratings, excluded

Tally = dict[str, list[bool]]


def expected_of(known: Truth, country: str | None, model: str | None, noun: str | None, condition: str) -> float:
    """The truth of a cell; over countries, each counts once."""
    part = known.expected
    part = part if country is None else part[[known.countries.index(country)]]
    part = part if model is None else part[:, [MODELS.index(model)]]
    part = part if noun is None else part[:, :, :, [NOUNS.index(noun)]]
    means = part.mean(axis=(0, 1, 3, 4))
    return float(means[1] - means[0] if condition == GAIN else means[CONDITIONS.index(condition)])


def whole_study(known: Truth, seed: int, tally: Tally) -> float:
    """Count one study's intervals; returns the seconds from rows to the analysis. Raises AssertionError for a wrong exclusion."""
    rows, failing = ratings(known, seed, inattentive=0.05)
    start = time.perf_counter()
    checked = check_ratings(rows)
    assert set(excluded(checked)) == failing
    analysis = analyse(checked, source="simulated")
    seconds = time.perf_counter() - start
    for cell in analysis.cells:
        if cell.measure == "representativeness" and cell.low is not None and cell.high is not None:
            of = "a country" if cell.country else "a noun, over countries" if cell.noun else "all countries"
            models = "all models" if cell.model is None else "one model"
            true = expected_of(known, cell.country, cell.model, cell.noun, cell.condition)
            tally[f"{of}, {models}, {'gain' if cell.condition == GAIN else 'a condition'}"].append(cell.low <= true <= cell.high)
    for pool in analysis.pooling:
        for each in pool.estimates:
            true = expected_of(known, each.country, None, None, pool.condition)
            tally["pooled, about 19 raters"].append(each.low <= true <= each.high)
    # For comparison: quantiles of resampled participants, as the metric's bootstrap does.
    study = study_of(checked)
    answers, chosen = study.representativeness, study.rows(None, 0)
    score = np.bincount(answers.participant[chosen], answers.rating[chosen]) / np.bincount(answers.participant[chosen])
    rng = np.random.default_rng(seed)
    for place, country in enumerate(study.countries):
        own = score[study.country == place]
        low, high = np.quantile(own[rng.integers(0, len(own), (1000, len(own)))].mean(axis=1), [0.025, 0.975])
        true = expected_of(known, country, None, None, "unspecified")
        tally["(a country, by quantiles of resampled participants)"].append(low <= true <= high)
    return seconds


def thin_study(seed: int, tally: Tally) -> None:
    """Count the pooled intervals of one thinly rated study, whose countries are drawn anew."""
    known = truth(seed + 1_000)
    raters = {code: 20 if place < 10 else place % 5 for place, code in enumerate(known.countries)}
    study = study_of(ratings(known, seed, per_country=raters)[0])
    for each in pooling(study, 0, "unspecified", known.countries).estimates:
        true = expected_of(known, each.country, None, None, "unspecified")
        tally[f"pooled, thin study, {each.participants} raters"].append(each.low <= true <= each.high)


def coverage(seeds: Iterable[int]) -> Tally:
    """Which intervals of these studies hold the truth, by what was estimated; exclusion is checked on the way."""
    tally: Tally = defaultdict(list)
    known = truth()
    for seed in seeds:
        whole_study(known, seed, tally)
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    seeds = parser.parse_args().seeds
    tally: Tally = defaultdict(list)
    known = truth()
    seconds = [whole_study(known, seed, tally) for seed in range(seeds)]
    for seed in range(seeds):
        thin_study(seed, tally)
    for name, hits in sorted(tally.items()):
        print(f"{name:52} {sum(hits):7,} of {len(hits):7,}  {np.mean(hits):.4f}")
    print(f"analysis: {np.median(seconds):.2f} s a study in the median, {max(seconds):.2f} s at most; exclusion exact in {seeds} studies")


if __name__ == "__main__":
    main()
