"""Prompt tables to a hub-ready folder, and back: the one place that knows the repository's layout."""

from __future__ import annotations

import glob
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from t2i_parity.cards.croissant import croissant_json
from t2i_parity.cards.dataset import STATISTICS, STATISTICS_SHOWN, dataset_card
from t2i_parity.cards.dataset_data import DataFile, DatasetCard
from t2i_parity.dataset_builder import geo_published, vocabulary
from t2i_parity.dataset_builder.benchmark import EVAL_YAML, eval_yaml
from t2i_parity.dataset_builder.describe import describe
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.schema import CONFIGS, check_table, config
from t2i_parity.dataset_builder.storage import Folder, card_configs, parquet_bytes, read_parquet

SPLIT = "test"
VOCABULARY = "vocabulary.json"
"""The file in which a repository says what vocabulary of the user's its rows stand on: file, SHA-256 and codes."""


def write_repository(
    tables: Mapping[str, pa.Table], out: Path, *, edition: str, gated: bool = False, published: bool = False
) -> list[Path]:
    """Write one parquet file a config, the card that makes ``load_dataset(out, config)`` work, and what the card shows; returns the paths.

    ``gated`` puts the terms into the card that readers agree to before the hub lets them in. ``published`` adds the config
    ``geo_published``: the means that the geographical study printed.

    Raises InputError when a table does not hold what ``schema.check_table`` asks, when a prompt_id stands in two configs, or when
    ``out`` is a file.
    """
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file; --out expects a folder to write the repository into")
    owner: dict[str, str] = {}
    for name, table in tables.items():
        check_table(table, config(name).all_columns, where=f"config {name}")
        for prompt_id in table["prompt_id"].to_pylist():
            if prompt_id in owner:
                raise InputError(
                    f"prompt_id {prompt_id!r} stands in config {owner[prompt_id]} and in config {name}; ids must be unique over all configs"
                )
            owner[prompt_id] = name
    folder = Folder(str(out))
    files = {}
    for name in CONFIGS:
        if name in tables:
            path, content = f"{name}/{SPLIT}-00000-of-00001.parquet", parquet_bytes(tables[name])
            folder.write(content, path)
            files[name] = DataFile(path, hashlib.sha256(content).hexdigest(), len(content))
    beside = None
    if published:
        content = parquet_bytes(geo_published.table())
        folder.write(content, geo_published.FILE)
        beside = DataFile(geo_published.FILE, hashlib.sha256(content).hexdigest(), len(content))
    card = describe(tables, files, edition=edition, split=SPLIT, gated=gated, published=beside)
    pages = _pages(card)
    if used := vocabulary_of(tables.values()):
        pages = {VOCABULARY: json.dumps(used, indent=2, ensure_ascii=False) + "\n", **pages}
    for path, text in pages.items():
        folder.write(text.encode("utf-8"), path)
    return [*(out / file.path for file in (*files.values(), *([beside] if beside else []))), *(out / path for path in pages)]


def _pages(card: DatasetCard) -> dict[str, str]:
    """What stands beside the data, by path: the plot, the metadata for machines and, last, the card that shows both."""
    from t2i_parity.cards.plots import statistics_plot

    title = "Rows and lengths of the prompts"
    return {
        STATISTICS: statistics_plot(card, title, STATISTICS_SHOWN),
        "croissant.json": croissant_json(card),
        **({EVAL_YAML: tasks} if (tasks := eval_yaml([config.name for config in card.configs], SPLIT)) else {}),
        "README.md": dataset_card(card),
    }


def vocabulary_of(tables: Iterable[pa.Table]) -> dict[str, Any] | None:
    """The user's vocabulary that rows stand on, None where they stand on ours alone."""
    codes: dict[str, set[str]] = {"language": set(), "variety": set()}
    for table in tables:
        for column in codes.keys() & set(table.column_names):
            codes[column].update(filter(None, table[column].unique().to_pylist()))
    return vocabulary.record(codes["language"], codes["variety"])


def content_sha256(table: pa.Table) -> str:
    """One hash over ids and texts, whatever the rows' order: two runs with the same one were asked the same."""
    digest = hashlib.sha256()
    for prompt_id, text in sorted(zip(table["prompt_id"].to_pylist(), table["text_sha256"].to_pylist(), strict=True)):
        digest.update(f"{prompt_id}\0{text}\n".encode())
    return digest.hexdigest()


def read_folder(folder: Path, config_name: str | None, split: str = SPLIT) -> tuple[pa.Table, str | None]:
    """A config of a dataset folder as it stands, unchecked, and its name; raises InputError when it cannot be read."""
    configs = card_configs(folder)
    if not configs:
        files = sorted(folder.glob("*.parquet")) or sorted(folder.glob("data/*.parquet"))
        if config_name is not None or not files:
            raise InputError(
                f"{folder} is not a dataset folder: its README.md declares no configs"
                + ("" if files else " and it holds no parquet files")
                + ". Build one with: t2i-parity build --edition starter --out DIR"
            )
        return pa.concat_tables([read_parquet(Folder(str(folder)), str(file)) for file in files], promote_options="default"), None
    names = [str(entry.get("config_name")) for entry in configs]
    if config_name is None:
        chosen = next((entry for entry in configs if entry.get("default")), configs[0])
    elif config_name in names:
        chosen = configs[names.index(config_name)]
    else:
        raise InputError(f"{folder} has no config {config_name!r}: expected one of {', '.join(names)}")
    data_files = chosen.get("data_files", [])
    patterns = [entry["path"] for entry in data_files if isinstance(entry, dict) and entry.get("split") == split]
    if not patterns:
        raise InputError(f"{folder}: config {chosen.get('config_name')} has no split {split!r}")
    flat = [pattern for entry in patterns for pattern in ([entry] if isinstance(entry, str) else entry)]
    files = [Path(path) for pattern in flat for path in sorted(glob.glob(str(Path(glob.escape(str(folder))) / pattern)))]
    if not files:
        raise InputError(f"{folder}: no file matches {', '.join(flat)}, which README.md names for config {chosen.get('config_name')}")
    return pa.concat_tables([read_parquet(Folder(str(folder)), str(file)) for file in files], promote_options="default"), str(
        chosen.get("config_name")
    )


def hub_configs(source: str, revision: str | None) -> list[str]:
    """The configs of a dataset on the hub."""
    import datasets

    names: list[str] = datasets.get_dataset_config_names(source, revision=revision)
    return names


def read_hub(source: str, config_name: str | None, split: str = SPLIT, revision: str | None = None) -> pa.Table:
    """A config of a dataset on the hub as it stands, unchecked; raises InputError when the hub does not give it."""
    import datasets
    from huggingface_hub.errors import HfHubHTTPError

    try:
        loaded = datasets.load_dataset(source, config_name, split=split, revision=revision)
    except (datasets.exceptions.DatasetsError, HfHubHTTPError, FileNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"{source!r} is neither a folder nor a dataset that the hub gave ({first_line(error)}). "
            "Give the path of a built folder, or a hub id you can reach (hf auth login for a gated one)"
        ) from error
    return loaded.with_format("arrow")[:]
