"""The result card: the README.md of a run, as it lies on a disk and, with what a reader there must know, as it stands on the hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2i_parity.cards.dataset import hub_license
from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.environment import environment
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Group, Score

SCORES = "assets/scores.svg"
"""Where the plot of the scores stands in a published run."""


@dataclass(frozen=True, slots=True)
class Published:
    """What the card of a published run says beyond its scores: how many rows there are, whose images are not among them, and on what terms.

    ``toxic`` rows are labelled so or are of the toxicity dimension; ``withheld`` counts the images that were made and are left out, each
    of which leaves its hash. ``untold`` rows are those whose prompts are left out for want of a licence.
    """

    rows: int
    toxic: int
    withheld: int
    untold: int
    gated: bool
    images: bool
    languages: Sequence[str]
    licenses: Sequence[str]
    plotted: str = ""


@dataclass(frozen=True, slots=True)
class ResultCard:
    """What the card shows: the run's record, its tables as configs (name, path pattern), and its scores."""

    title: str
    record: Mapping[str, Any]
    configs: Sequence[tuple[str, str]]
    scores: Sequence[Score]
    published: Published | None = None


def result_card(card: ResultCard) -> str:
    """The README.md of the run: front matter by which ``load_dataset`` opens each table, the scores, and how they came about."""
    default = next((name for name in ("scored", "images", "prompts") if name in dict(card.configs)), None)
    tags = ["t2i-parity", "text-to-image", "evaluation-results"]
    front: JsonObject = {
        "pretty_name": card.title,
        **({} if card.published is None else _of_published(card.published)),
        "tags": [*tags, *(["not-for-all-audiences"] if card.published and card.published.toxic else [])],
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
    signatures = list(dict.fromkeys(str(score.signature) for score in card.scores))
    return (
        environment()
        .get_template("result_card.md.j2")
        .render(front=front, card=card, tables=_tables(card.scores), signatures=signatures, level=level, default=default, plot=SCORES)
    )


def _of_published(published: Published) -> JsonObject:
    return {
        "language": list(published.languages),
        # The images stand under the terms of the system that made them, whatever the prompts' licence is.
        **(_OF_IMAGES if published.images else hub_license(published.licenses)),
        "task_categories": ["text-to-image"],
        **(_GATE if published.gated else {}),
    }


_OF_IMAGES: JsonObject = {"license": "other", "license_name": "see-licences", "license_link": "README.md#licences"}
_GATE: JsonObject = {
    "extra_gated_heading": "Agree to how these images may be used",
    "extra_gated_prompt": (
        "Some of these images answer prompts that are harmful on purpose, so that one can see what a system makes of them and whom its "
        "safety measures fail. By asking for access you agree to\n\n"
        "1. use the images to measure or improve the safety and fairness of systems, and for nothing else;\n"
        "2. not train, tune or guide a system with them so that it makes harmful images;\n"
        "3. show harmful images to nobody needlessly;\n"
        "4. keep to the licence of the model and of the prompts, and tell whoever gets images from you what they are for."
    ),
    "extra_gated_fields": {
        "Affiliation": "text",
        "What I want to measure": "text",
        "I agree to the four terms above": "checkbox",
        "I am of age where I live": "checkbox",
    },
    "extra_gated_button_content": "Agree and ask for access",
}


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The scores of one metric, subset and signature: a row a group, a column a key."""

    metric: str
    subset: str
    signature: Signature
    keys: Sequence[str]
    rows: Mapping[Group, Mapping[str, Score]]


def _tables(scores: Sequence[Score]) -> list[ScoreTable]:
    found: dict[tuple[str, str, Signature], list[Score]] = {}
    for score in scores:
        found.setdefault((score.metric, score.subset, score.signature), []).append(score)
    tables = []
    for (metric, subset, signature), members in found.items():
        rows: dict[Group, dict[str, Score]] = {}
        for score in members:
            rows.setdefault(score.group, {})[score.key] = score
        tables.append(ScoreTable(metric, subset, signature, list(dict.fromkeys(score.key for score in members)), rows))
    return tables
