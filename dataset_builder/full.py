"""The full edition: the studies' own published prompts, read by the pinned importers."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.schema import CONFIGS
from t2i_parity.dataset_builder.sources import SOURCES

EDITION = ("lingt2i", "dialect_pairs", "dialectgen", "geo")
"""The sources of the edition; another one joins when an input names it."""

ABSENT = {
    "dialect_crosslingual": (
        "published only in a gated dataset on the hub (Minguinho-zeze/dialect-penalty-t2i, config crosslingual_prompts), "
        "whose files no importer here knows"
    ),
}
"""The configs that the edition does not have, each with the reason."""


def tables(inputs: Mapping[str, str]) -> dict[str, pa.Table]:
    """Every config of the full edition, by name, from the places that ``inputs`` gives by source (paths, URLs or hub ids).

    A source without an input is read from its default place, on the hub or GitHub. A source beyond ``EDITION`` joins when it is named.
    Raises InputError for an unknown source or a place that cannot be read, and UpstreamError when it holds something else.
    """
    sources = {name: SOURCES.load(name) for name in dict.fromkeys((*EDITION, *inputs))}
    parts: dict[str, list[pa.Table]] = {}
    for name, source in sources.items():
        for config, table in source.tables(inputs.get(name)).items():
            parts.setdefault(config, []).append(table)
    joined = {config: pa.concat_tables(parts[config]).combine_chunks() for config in CONFIGS if config in parts}
    ids = pa.concat_arrays([chunk for table in joined.values() for chunk in table["prompt_id"].chunks])
    if len(ids.unique()) != len(ids):
        twice = next(pair["values"] for pair in ids.value_counts().to_pylist() if pair["counts"] > 1)
        raise InputError(f"prompt_id {twice!r} stands in more than one row; two of the inputs hold the same prompts")
    return joined
