"""The dataset card of a prompts repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.environment import environment


@dataclass(frozen=True, slots=True)
class DatasetCard:
    """What the card shows: per config its rows, languages, licences and sources, and every column with its meaning."""

    edition: str
    configs: Sequence[Mapping[str, Any]]
    columns: Sequence[Mapping[str, Any]]
    n_configs: int


def dataset_card(card: DatasetCard) -> str:
    """The README.md of the repository: front matter by which ``load_dataset`` finds configs and features, then the text."""
    languages = sorted({language for entry in card.configs for language in entry["languages"]})
    rows = sum(entry["rows"] for entry in card.configs)
    licenses = sorted({license_ for entry in card.configs for license_ in entry["licenses"]})
    toxic = any(entry["labels"].get("toxic") for entry in card.configs)
    front: dict[str, Any] = {
        "pretty_name": "T2I Parity prompts",
        "language": languages,
        **_license(licenses),
        "task_categories": ["text-to-image"],
        "size_categories": [_size(rows)],
        "tags": ["text-to-image", "fairness", "multilingual", "dialect", "benchmark", *(["not-for-all-audiences"] if toxic else [])],
        "configs": [
            {
                "config_name": entry["config_name"],
                **({"default": True} if entry["default"] else {}),
                "data_files": [{"split": entry["split"], "path": entry["path"]}],
            }
            for entry in card.configs
        ],
        "dataset_info": [
            {
                "config_name": entry["config_name"],
                "features": entry["features"],
                "splits": [{"name": entry["split"], "num_examples": entry["rows"]}],
            }
            for entry in card.configs
        ],
    }
    return environment().get_template("dataset_card.md.j2").render(front=front, card=card, rows=rows, toxic=toxic)


def _license(licenses: Sequence[str]) -> dict[str, str]:
    # The hub takes one licence a repository; what differs row by row stands in the license column and the card's table.
    if len(licenses) == 1 and licenses[0] != "unknown":
        return {"license": licenses[0].lower()}
    return {"license": "other", "license_name": "see-license-column", "license_link": "README.md"}


def _size(rows: int) -> str:
    for bound, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")):
        if rows < bound:
            return name
    return "100K<n<1M"
