"""The result card: the README.md of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cards.environment import environment


@dataclass(frozen=True, slots=True)
class ResultCard:
    """What the card shows: the run's record, its tables as configs (name, path pattern), and its scores as in scores.json."""

    title: str
    record: Mapping[str, Any]
    configs: Sequence[tuple[str, str]]
    scores: Sequence[Mapping[str, Any]]


def result_card(card: ResultCard) -> str:
    """The README.md of the run: front matter by which ``load_dataset`` opens each table, the scores, and how they came about."""
    default = next((name for name in ("scored", "images", "prompts") if name in dict(card.configs)), None)
    front: dict[str, Any] = {
        "pretty_name": card.title,
        "tags": ["t2i-parity", "text-to-image", "evaluation-results"],
        "configs": [
            {
                "config_name": name,
                **({"default": True} if name == default else {}),
                "data_files": [{"split": "test", "path": pattern}],
            }
            for name, pattern in card.configs
        ],
    }
    level = f"{card.record.get('scoring', {}).get('confidence_level', 0.95):.0%}"
    signatures = list(dict.fromkeys(score["signature"] for score in card.scores))
    return (
        environment()
        .get_template("result_card.md.j2")
        .render(front=front, card=card, tables=_tables(card.scores), signatures=signatures, level=level)
    )


def _tables(scores: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Scores as tables, one a metric module, subset and signature: a row a group, a column a key."""
    tables: dict[tuple[str, str, str], dict[str, Any]] = {}
    for score in scores:
        module, _, key = score["metric"].partition(".")
        table = tables.setdefault(
            (module, score["subset"], score["signature"]),
            {"module": module, "subset": score["subset"], "signature": score["signature"], "keys": [], "rows": {}},
        )
        if key not in table["keys"]:
            table["keys"].append(key)
        table["rows"].setdefault(score["group"], {})[key] = score
    return list(tables.values())
