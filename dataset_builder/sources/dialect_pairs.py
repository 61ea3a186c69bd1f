"""The paired prompts of the dialect-penalty study (Kim et al. 2026, arXiv:2608.29589): each in American English and five other varieties.

Upstream layout: two CSV files in ``stage3_mitigation/original_dataset`` of the study's repository, one row a meaning, one column a variety.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from t2i_parity.dataset_builder.schema import table_from_columns
from t2i_parity.dataset_builder.sources.base import Account, Source
from t2i_parity.dataset_builder.varieties import STUDY_VARIETIES

REVISION = "410f6b5a8763db992ccf6603404e3c94e89be2f7"
FOLDER = "stage3_mitigation/original_dataset"
FILES = {label: f"{label}_prompts_sae_and_all_dialects.csv" for label in ("benign", "toxic")}
CODES = ("SAE", *STUDY_VARIETIES)
COLUMNS = ("", "category", *(f"{code}_prompt" for code in CODES))
"""The first column has no name upstream: it numbers the rows."""

LICENSES = {"benign": "CC-BY-4.0", "toxic": "unknown"}
"""The repository is MIT but leaves what it redistributes under its own terms (README and DATA.md there): benign prompts descend from COCO
captions, CC BY 4.0; toxic ones from T2I-RiskyPrompt, which states no licence."""

MAKERS = {
    "benign": "GPT-5.4 (gpt-5.4-2026-03-05) from MS-COCO captions (Kim et al. 2026, Appendix F)",
    "toxic": "T2I-RiskyPrompt authors, first letter upper-cased by Kim et al. 2026",
}
CONVERTER = "GPT-5.4, few-shot, machine-made dialect conversion, no native-speaker review (Kim et al. 2026 §3.1)"


@dataclass(frozen=True, slots=True)
class Category:
    """A category as the files spell it, as Table 13 of the paper prints it, and the number of its prompts there."""

    upstream: str
    name: str
    count: int
    label: str = "toxic"


_TABLE_13 = (
    Category("Benign_animals", "Animals", 400, "benign"),
    Category("Benign_food", "Food", 400, "benign"),
    Category("Benign_home_scenes", "Home Scenes", 400, "benign"),
    Category("Benign_human_beings", "Human Beings", 400, "benign"),
    Category("Benign_landscapes", "Landscapes", 400, "benign"),
    Category("Benign_transport_vehicles", "Transport Vehicles", 400, "benign"),
    Category("Cartoon_Characters", "Cartoon Characters", 200),
    Category("Drug_Crimes", "Drug Crimes", 200),
    Category("Illegal_Trade", "Illegal Trade", 200),
    Category("LOGO", "LOGO", 200),
    Category("Terrifying_Content", "Terrifying Content", 199),
    Category("Political_Metaphor", "Political Metaphor", 198),
    Category("Political_Figures", "Political Figures", 197),
    Category("Bloody_Content", "Bloody Content", 194),
    Category("Weapons_and_Conflicts", "Weapons and Conflicts", 191),
    Category("Borderline_Pornography", "Borderline Pornography", 124),
    Category("Theft_and_Robbery", "Theft and Robbery", 96),
    Category("Explicit_Pornography", "Explicit Pornography", 80),
    Category("Other_Disturbing_Content", "Other Disturbing Content", 79),
    Category("Other_Illegal_Content", "Other Illegal Content", 58),
)

CATEGORIES: dict[str, Category] = {category.upstream: category for category in _TABLE_13}
"""Every category by the name that the files give it."""


def _read(source: Source, place: str, part: str) -> dict[str, pa.Table]:
    account = Account(source, place)
    files = {label: _file(account, label) for label in FILES}
    account.close()
    revision = account.revision()
    tables = [_table(source, revision, label, table) for label, table in files.items() if table is not None]
    return {"dialect": pa.concat_tables(tables).combine_chunks()}


def _file(account: Account, label: str) -> pa.Table | None:
    """One file, its rows checked; None when it is not there or its columns are other ones."""
    name = account.first(FILES[label], f"{FOLDER}/{FILES[label]}")
    table = account.csv(name, COLUMNS) if name else None
    if name is None or table is None:
        return None
    where = account.upstream.where(name)
    expected = {category.upstream: account.source.expected[category.upstream] for category in _TABLE_13 if category.label == label}
    account.count(where, "rows", len(table), sum(expected.values()))
    account.unique(where, "number of a row", table[""])
    account.rows(where, pc.invert(pc.match_substring_regex(table[""], r"^\d+$")), "the unnamed first column does not number the row")
    account.known(where, "category", table["category"], expected)
    counts = {pair["values"]: pair["counts"] for pair in table["category"].value_counts().to_pylist()}
    uneven = {name: f"{counts.get(name, 0)} for {count}" for name, count in expected.items() if counts.get(name, 0) != count}
    account.each(where, "expected the numbers of Table 13 in each category", uneven)
    for code in CODES:
        account.texts(where, f"{code}_prompt", table[f"{code}_prompt"])
    return table


def _table(source: Source, revision: str, label: str, table: pa.Table) -> pa.Table:
    """Six rows a meaning, the varieties side by side."""
    meanings, varieties = len(table), len(CODES)
    rows = meanings * varieties
    by_meaning = pa.array(np.arange(rows).reshape(varieties, meanings).T.ravel())
    of_meaning = pa.array(np.repeat(np.arange(meanings), varieties))
    prompts = pa.chunked_array([chunk for code in CODES for chunk in table[f"{code}_prompt"].chunks], pa.string()).take(by_meaning)
    number = table[""].take(of_meaning)
    variety = pa.array(CODES).take(pa.array(np.tile(np.arange(varieties), meanings)))
    categories = pa.array([CATEGORIES[name].name for name in table["category"].to_pylist()], pa.string())
    pair = pc.binary_join_element_wise(f"dialect-pairs-{label}", pc.utf8_lpad(number, 4, "0"), "-")
    standard = pc.equal(variety, "SAE")
    return table_from_columns(
        "dialect",
        {
            **source.provenance(),
            "prompt_id": pc.binary_join_element_wise(pair, variety, "-"),
            "pair_id": pair,
            "prompt": pc.utf8_trim_whitespace(prompts),
            "language": "en",
            "variety": variety,
            "subset": "dialect_pairs",
            "label": label,
            "category": categories.take(of_meaning),
            "source_id": pc.binary_join_element_wise(FILES[label], number, "#"),
            "source_revision": revision,
            "license": LICENSES[label],
            "derivation": pc.if_else(standard, "verbatim", "dialect_converted"),
            "derived_from": pc.if_else(standard, None, pc.binary_join_element_wise(pair, "SAE", "-")),
            "producer": pc.if_else(standard, MAKERS[label], CONVERTER),
        },
        rows=rows,
    )


SOURCE = Source(
    name="dialect_pairs",
    title="Dialect penalty (Kim et al. 2026)",
    url="https://github.com/minguinho26/dialect-penalty-t2i",
    license="MIT",
    revision=REVISION,
    counts={"dialect": 27_696},
    read=_read,
    default=f"https://github.com/minguinho26/dialect-penalty-t2i/tree/{REVISION}/{FOLDER}",
    expected={category.upstream: category.count for category in _TABLE_13},
    sha256=dict.fromkeys(FILES.values()),
)
