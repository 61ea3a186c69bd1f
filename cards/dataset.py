"""The dataset card of a prompts repository: its README.md."""

from __future__ import annotations

import re
from collections.abc import Sequence

from t2i_parity.cards.citations import PROJECT, STUDIES
from t2i_parity.cards.dataset_data import ConfigFacts, DatasetCard, LicenseFacts, PublishedFacts, Spread
from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.environment import environment

TITLE = "T2I Parity prompts"
SUMMARY = (
    "What text-to-image systems are asked, so that one can see whether they serve everyone equally, "
    "whatever the language, dialect or country."
)
STATISTICS = "assets/statistics.svg"
"""Where the plot of the statistics stands in the repository."""

STATISTICS_SHOWN = (
    "Rows of each config by language or variety, and how many characters their prompts have: the mean, from the shortest to the longest. "
    "The same numbers stand in the card's table."
)
"""The plot in words."""

# What the hub takes as `license`; anything else is `other` with a name and a link.
_HUB_LICENSES = {
    "apache-2.0", "mit", "bsd", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-2.0", "cc-by-2.5", "cc-by-3.0", "cc-by-4.0",
    "cc-by-sa-3.0", "cc-by-sa-4.0", "cc-by-nc-2.0", "cc-by-nc-3.0", "cc-by-nc-4.0", "cc-by-nd-4.0", "cc-by-nc-nd-3.0",
    "cc-by-nc-nd-4.0", "cc-by-nc-sa-2.0", "cc-by-nc-sa-3.0", "cc-by-nc-sa-4.0", "cdla-sharing-1.0", "cdla-permissive-1.0",
    "cdla-permissive-2.0", "gpl-2.0", "gpl-3.0", "lgpl-2.1", "lgpl-3.0", "agpl-3.0", "mpl-2.0", "odc-by", "odbl", "pddl",
}  # fmt: skip
# A link is a link only when nothing in it could end it early.
_URL = re.compile(r"https?://[\w.~%/?=&+:#-]+")
_MOST_VALUES, _MOST_PRODUCERS, _MOST_REVISIONS = 40, 12, 4


def dataset_card(card: DatasetCard) -> str:
    """The README.md of the repository: front matter by which ``load_dataset`` finds configs and features, then the text."""
    return (
        environment()
        .get_template("dataset_card.md.j2")
        .render(
            card=card,
            front=_front(card),
            title=TITLE,
            summary=SUMMARY,
            plot=STATISTICS,
            shown=STATISTICS_SHOWN,
            limits=limits(card),
            terms=terms,
            link=link,
            spread=_spread,
            language_names={group.language: group.language_name for config in card.configs for group in config.groups},
            citations=[*STUDIES, PROJECT],
            most_values=_MOST_VALUES,
            most_producers=_MOST_PRODUCERS,
            most_revisions=_MOST_REVISIONS,
        )
    )


def limits(card: DatasetCard) -> list[str]:
    """What the data cannot show, as sentences of plain text."""
    found = [
        f"{len(card.languages)} language{'s' if len(card.languages) > 1 else ''}: most of the world's are not here, and equal treatment "
        "of these says nothing about the others."
    ]
    made = [(entry.derivation, entry.rows) for config in card.configs for entry in config.made]
    translated, converted = (sum(rows for derivation, rows in made if derivation == name) for name in ("translated", "dialect_converted"))
    unchecked = sum(config.unchecked for config in card.configs)
    if translated or converted:
        found.append(
            f"{translated:,} rows are translations and {converted:,} are conversions into another variety; their producers stand under "
            "“How the texts were made”. A flaw there counts against the language or variety, not against the system."
        )
    if unchecked:
        found.append(f"{unchecked:,} of {card.rows:,} rows carry no check at all, neither by a person nor by a program.")
    if any(config.varieties for config in card.configs):
        found.append(
            "A variety put into writing is a likeness: its speakers differ, most write the standard too, and spellings are not settled. "
            "No row stands for a speech community."
        )
    countries = {value for config in card.configs for entry in config.counts if entry.column == "country" for value in entry.values}
    if countries:
        found.append(f"{len(countries - {None})} countries are named, those that the sources chose; a country is not one place.")
    if card.toxic:
        found.append("Whether a prompt is benign or toxic was decided by whoever wrote it; with reason, others draw that line elsewhere.")
    smallest = [(min(group.rows for group in config.groups), config.name) for config in card.configs if len(config.groups) > 1]
    if smallest:
        rows, name = min(smallest)
        found.append(f"The smallest group has {rows:,} rows ({name}): read every difference with its interval.")
    return found


def terms(license: LicenseFacts) -> str:
    """What a licence asks, in a few words.

    >>> flags = dict(url=None, rows=1, configs=["geo"], stated=True, known=True, attribution=True, no_derivatives=False)
    >>> terms(LicenseFacts("CC-BY-NC-SA-4.0", share_alike=True, non_commercial=True, **flags))
    'name the source; share alike; no commercial use'
    """
    if not license.stated:
        return "no licence stated: ask the authors before you pass rows on"
    if not license.known:
        return "see its text"
    asked = (
        (license.attribution, "name the source"),
        (license.share_alike, "share alike"),
        (license.non_commercial, "no commercial use"),
        (license.no_derivatives, "no changed versions"),
    )
    return "; ".join(words for holds, words in asked if holds) or "no conditions"


def link(text: str, url: str | None) -> str:
    """Untrusted text as Markdown, a link where the address is a plain one.

    >>> link("a [b]", "https://example.org/x"), link("a", "javascript:alert(1)")
    ('[a \\\\[b\\\\]](<https://example.org/x>)', 'a')
    """
    words = str(environment().filters["md"](text))
    return f"[{words}](<{url}>)" if url is not None and _URL.fullmatch(url) else words


def _front(card: DatasetCard) -> JsonObject:
    configs: list[ConfigFacts | PublishedFacts] = [*card.configs, *([card.published] if card.published else [])]
    front: JsonObject = {
        "pretty_name": TITLE,
        "language": card.languages,
        **hub_license([entry.id for entry in card.every_license]),
        "task_categories": ["text-to-image"],
        "size_categories": [_size(card.rows)],
        "tags": ["text-to-image", "fairness", "multilingual", "dialect", "benchmark", *(["not-for-all-audiences"] if card.toxic else [])],
        "configs": [_data_files(config) for config in configs],
        "dataset_info": [
            {
                "config_name": config.name,
                "features": list(config.features),
                # Without num_bytes datasets warns at every load; it wants the size of the table, for which the files' stands.
                "splits": [{"name": config.split, "num_bytes": sum(file.size for file in config.files), "num_examples": config.rows}],
            }
            for config in configs
        ],
    }
    return front | (_gate(card) if card.gated else {})


def _data_files(config: ConfigFacts | PublishedFacts) -> JsonObject:
    return {
        "config_name": config.name,
        **({"default": True} if isinstance(config, ConfigFacts) and config.default else {}),
        "data_files": [{"split": config.split, "path": config.path}],
    }


def hub_license(ids: Sequence[str]) -> dict[str, str]:
    """The front matter's licence for a repository whose rows stand under these licences; the card's section Licences says more.

    >>> hub_license(["CC-BY-4.0"]), hub_license(["CC-BY-4.0", "MIT"])["license_name"]
    ({'license': 'cc-by-4.0'}, 'cc-by-4.0-and-mit')
    """
    # The hub takes one licence a repository; what differs row by row stands in the license column and the card's section.
    if len(ids) == 1 and ids[0].lower() in _HUB_LICENSES:
        return {"license": ids[0].lower()}
    name = "-and-".join(sorted(filter(None, (re.sub(r"[^a-z0-9.]+", "-", each.lower()).strip("-.") for each in ids))))
    return {"license": "other", "license_name": name if 0 < len(name) <= 80 else "mixed", "license_link": "README.md#licences"}


def _gate(card: DatasetCard) -> JsonObject:
    """The terms that readers agree to before the hub shows them the files."""
    harmful = (
        f"{card.toxic:,} of these {card.rows:,} prompts are harmful on purpose: they describe wrongdoing, menace or insults, so that "
        "one can see which of them a safety filter stops, and whose words it stops wrongly.\n\n"
        if card.toxic
        else ""
    )
    return {
        "extra_gated_heading": "Agree to how these prompts may be used",
        "extra_gated_prompt": (
            f"{harmful}By asking for access you agree to\n\n"
            "1. use the prompts to measure or improve the safety and fairness of systems, and for nothing else;\n"
            "2. not train, tune or guide a system with them so that it makes harmful images;\n"
            "3. send them only to systems that are yours or whose owners allow such tests, and show harmful images to nobody needlessly;\n"
            "4. not present a text as the words of the people whose language or variety it imitates;\n"
            "5. keep to the licence that each row names, and tell whoever gets rows from you what they are for."
        ),
        "extra_gated_fields": {
            "Affiliation": "text",
            "What I want to measure": "text",
            "I agree to the five terms above": "checkbox",
            "I am of age where I live": "checkbox",
        },
        "extra_gated_button_content": "Agree and ask for access",
    }


def _size(rows: int) -> str:
    for bound, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M")):
        if rows < bound:
            return name
    return "1M<n<10M"


def _spread(spread: Spread | None) -> str:
    return "–" if spread is None else f"{spread.mean:.1f} ({spread.least:,}–{spread.most:,})"
