"""Character and token NED of mixed-script pairs, against the bare rapidfuzz loops plus tokenising."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from measure import Row, main, mixed_pairs, seconds
from rapidfuzz.distance import Levenshtein

from t2i_parity.metrics.text_rendering_precision.core import load_tokenizer, ned, per_row


def run(size: int, repeats: int) -> list[Row]:
    """Time ``size`` pairs; the tokenizers are loaded beforehand."""
    readings, references, _ = mixed_pairs(size)
    rows = []
    for name, tokenizer in (("tekken", load_tokenizer("tekken")), ("str.split", load_tokenizer(str.split))):

        def peer(encode: Callable[[list[str]], Sequence[Sequence[object]]] = tokenizer.encode) -> None:
            left, right = encode(readings), encode(references)
            for _ in map(Levenshtein.distance, readings, references):
                pass
            for _ in map(Levenshtein.distance, left, right):
                pass

        def ours(name: str = name) -> None:
            per_row(readings, references, tokenizer="tekken" if name == "tekken" else str.split)

        ours_s, peer_s = seconds([ours, peer], repeats)
        rows.append(Row(f"per_row, {name}, {size:,} pairs", ours_s, f"rapidfuzz loops + {name}", peer_s, 1.6))
    ours_s, peer_s = seconds([lambda: ned(readings, references), lambda: list(map(Levenshtein.distance, readings, references))], repeats)
    rows.append(Row(f"ned of characters, {size:,} pairs", ours_s, "rapidfuzz loop", peer_s))
    return rows


if __name__ == "__main__":
    main(run, 1_000_000, 1, __doc__)
