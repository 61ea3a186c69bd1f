"""Every check over a prompts repository as large as the full edition, against the language identifier alone over the same texts."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from measure import Row, main, seconds

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.identification import identifier
from t2i_parity.dataset_builder.schema import DIMENSIONS, table
from t2i_parity.dataset_builder.storage import decode_classes
from t2i_parity.validation.prompts.model import Prompts
from t2i_parity.validation.prompts.runner import validate

SHARES = {"lingt2i_content": 0.49, "dialect": 0.46, "lingt2i_text": 0.05}
"""What part of the full edition's rows each config has."""


def synthetic(size: int, seed: int = 0) -> dict[str, pa.Table]:
    """About ``size`` rows in the full edition's configs: new sentences out of the starter edition's words, by language and variety."""
    rng = random.Random(seed)
    built = {}
    for config, share in SHARES.items():
        rows: list[dict[str, Any]] = decode_classes(starter.tables()[config]).to_pylist()
        texts: dict[tuple[str, str | None], list[str]] = {}
        for row in rows:
            texts.setdefault((row["language"], row["variety"]), []).append(row.get("render_text") or row["prompt"])
        built[config] = table(config, _meanings(config, texts, max(1, round(size * share / len(texts))), rng))
    return built


def _meanings(config: str, texts: dict[tuple[str, str | None], list[str]], n: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    spaced = {key: " " in "".join(each) and key[0] not in ("zh", "ja") for key, each in texts.items()}
    words = {key: [word for text in each for word in (text.split() if spaced[key] else text)] for key, each in texts.items()}
    lengths = {key: [len(text.split() if spaced[key] else text) for text in each] for key, each in texts.items()}
    dimensions = [dimension for dimension in DIMENSIONS if dimension != "TR"]
    for meaning in range(n):
        for language, variety in texts:
            key = (language, variety)
            text = (" " if spaced[key] else "").join(rng.choices(words[key], k=rng.choice(lengths[key]))).strip("。，、 ") or "1"
            own = {
                "lingt2i_content": {"prompt": text, "dimension": dimensions[meaning % 10]},
                "lingt2i_text": {"prompt": f"A wooden board reads “{text}” in white", "dimension": "TR", "render_text": text},
                "dialect": {"prompt": text, "variety": variety, "label": "benign" if meaning % 2 else "toxic"},
            }[config]
            yield {
                "prompt_id": f"{config}-{meaning}-{variety or language}", "pair_id": f"{config}-{meaning}", "language": language,
                "subset": config, "source": "synthetic", "source_id": f"{meaning}", "source_revision": "1", "license": "CC0-1.0",
                "derivation": "verbatim", "producer": "tests/benchmarks/validate_prompts.py", **own,
            }  # fmt: skip


def run(size: int, repeats: int) -> list[Row]:
    """Both read the same tables from memory; loading the identifier is in neither time."""
    tables = synthetic(size)
    classify = identifier().classify
    rows = sum(map(len, tables.values()))

    def checks() -> object:
        return validate(Prompts("synthetic", tables))

    def alone() -> object:
        return [classify(text) for prompts in Prompts("synthetic", tables).configs.values() for text in prompts.texts]

    ours, peer = seconds([checks, alone], repeats)
    return [Row(f"validate, {rows:,} rows", ours, "py3langid classify, one text after the other", peer, 5.0)]


if __name__ == "__main__":
    main(run, 61_000, 2, __doc__)
