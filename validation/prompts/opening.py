"""Open a prompts repository for its checks: all its configs as they stand, faults and all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.repository import read_folder, read_hub
from t2i_parity.dataset_builder.storage import card_configs
from t2i_parity.validation.prompts.model import Prompts

UNNAMED = "default"
"""What the one config of a folder is called that declares none, as ``datasets`` calls it."""


def open_repository(source: str) -> Prompts:
    """Every config of a built folder, or of a dataset on the hub.

    Raises InputError, naming file or id, when it cannot be read at all.
    """
    folder = Path(source)
    if folder.is_dir():
        names: list[str | None] = [str(entry.get("config_name")) for entry in card_configs(folder)] or [None]
        return Prompts(folder.name, {name or UNNAMED: _read(folder, name) for name in names}, _licence(folder / "README.md"))
    return _hub(source)


def _read(folder: Path, name: str | None) -> pa.Table:
    try:
        return read_folder(folder, name)[0]
    except pa.ArrowException as error:
        raise InputError(
            f"{folder}: the parquet files of config {name or UNNAMED} do not fit together ({first_line(error)}). "
            "Give all of them the same columns and types, or build the prompts anew"
        ) from error


def _hub(source: str) -> Prompts:
    import datasets
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    try:
        names = datasets.get_dataset_config_names(source)
    except (datasets.exceptions.DatasetsError, HfHubHTTPError, HFValidationError, FileNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"{source!r} is neither a folder nor a dataset that the hub gave ({first_line(error)}). "
            "Give the path of a built folder, or a hub id you can reach (hf auth login for a gated one)"
        ) from error
    try:
        card = Path(hf_hub_download(source, "README.md", repo_type="dataset"))
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError):
        card = None
    return Prompts(source, {name: read_hub(source, name) for name in names}, _licence(card) if card else None)


def _licence(card: Path) -> str | None:
    """The licence that a card's front matter states, None when it states none, or several."""
    from huggingface_hub import metadata_load

    if not card.is_file():
        return None
    try:
        metadata: Any = metadata_load(card)
    except (ValueError, yaml.YAMLError):
        return None
    stated = metadata.get("license") if isinstance(metadata, dict) else None
    return stated if isinstance(stated, str) else None
