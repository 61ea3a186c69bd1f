"""Ten thousand clustered resamples of a score in ten languages, against a plain numpy gather loop."""

from __future__ import annotations

import numpy as np
from measure import Row, main, seconds

from t2i_parity.metrics._common import FloatArray, Resampling, estimate, ratio
from t2i_parity.metrics.cross_lingual_gap.core import compute

LANGUAGES = ("en", "zh", "hi", "es", "ar", "fr", "pt", "ru", "ja", "ko")
RESAMPLES = 10_000


def run(size: int, repeats: int) -> list[Row]:
    """``size`` rows, a tenth of them in each language, ten rows a cluster; then ``size`` clusters of ten languages."""
    return [*_rows(size, repeats), *_rows(10 * size, repeats)]


def _rows(size: int, repeats: int) -> list[Row]:
    n_clusters = size // len(LANGUAGES)
    rng = np.random.default_rng(0)
    table = rng.beta(5, 2, size=(n_clusters, len(LANGUAGES)))
    rows = np.zeros((n_clusters, len(LANGUAGES), 2 * len(LANGUAGES)))
    for place in range(len(LANGUAGES)):
        rows[:, place, place] = table[:, place]
        rows[:, place, len(LANGUAGES) + place] = 1
    flat = rows.reshape(-1, 2 * len(LANGUAGES))
    clusters = np.repeat([f"pair-{pair}" for pair in range(n_clusters)], len(LANGUAGES)).tolist()
    settings = Resampling(n_resamples=RESAMPLES)

    def means(sums: FloatArray) -> FloatArray:
        scores, counts = np.split(sums, 2, axis=-1)
        return ratio(scores, counts)

    def gather() -> FloatArray:
        draws = np.random.default_rng(0)
        drawn = [table[draws.integers(0, n_clusters, n_clusters)].mean(axis=0) for _ in range(RESAMPLES)]
        bounds: FloatArray = np.quantile(drawn, [0.025, 0.975], axis=0)
        return bounds

    def ours() -> object:
        return estimate(flat, clusters, means, LANGUAGES, settings)

    def whole() -> object:
        columns = {"scores": table.ravel(), "languages": list(LANGUAGES) * n_clusters}
        return compute(**columns, clusters=clusters, n_resamples=RESAMPLES)

    ours_s, gather_s, whole_s = seconds([ours, gather, whole], repeats)
    loop = f"numpy gather loop, {RESAMPLES:,} of {n_clusters:,} clusters"
    what = f"{len(flat):,} rows, {n_clusters:,} clusters"
    return [
        Row(f"estimate, {what}", ours_s, loop, gather_s, 0.5),
        Row(f"cross_lingual_gap.compute, {what}", whole_s, loop, gather_s, 0.5),
    ]


if __name__ == "__main__":
    main(run, 33_000, 2, __doc__)
