"""The starter edition: prompts written for this project, enough to run every analysis on a laptop offline.

One ``.jsonl`` a config, one line a meaning. The texts were written with a large language model and no native speaker has reviewed
them; every row says so in ``producer``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pyarrow as pa

from t2i_parity.dataset_builder.schema import NewRow, table
from t2i_parity.dataset_builder.sources import geo
from t2i_parity.dataset_builder.varieties import VARIETIES

REVISION = "1.0"
LICENSE = "CC-BY-4.0"
WRITER = "T2I Parity team, drafted with a large language model (Claude), no native-speaker review"
TRANSLATOR = "large language model (Claude), machine translation, no native-speaker review"
CONVERTER = "large language model (Claude), machine-made dialect conversion, no native-speaker review"


def tables() -> dict[str, pa.Table]:
    """Every config of the starter edition, by name."""
    return {
        "lingt2i_text": table("lingt2i_text", _text_rows()),
        "lingt2i_content": table("lingt2i_content", _content_rows()),
        "dialect": table("dialect", _dialect_rows()),
        "dialect_crosslingual": table("dialect_crosslingual", _crosslingual_rows()),
        "geo": table("geo", geo.rows()),
    }


def _lines(name: str) -> Iterator[NewRow]:
    text = (resources.files(__package__) / name).read_text(encoding="utf-8")
    for line in text.splitlines():
        yield json.loads(line)


def _row(subset: str, meaning: str, key: str, first: str, made_by: tuple[str, str], derivation: str, **columns: Any) -> NewRow:
    """One row of a meaning; ``first`` is the key (language or variety) that was written first and that the others were made from."""
    original = key == first
    return {
        "prompt_id": f"starter-{meaning}-{key}",
        "pair_id": f"starter-{meaning}",
        "subset": subset,
        "source": "T2I Parity starter edition",
        "source_id": meaning,
        "source_revision": REVISION,
        "license": LICENSE,
        "derivation": "verbatim" if original else derivation,
        "derived_from": None if original else f"starter-{meaning}-{first}",
        "producer": made_by[0] if original else made_by[1],
        **columns,
    }


def _content_rows() -> Iterator[NewRow]:
    for line in _lines("lingt2i_content.jsonl"):
        for code, prompt in line["prompts"].items():
            yield _row(
                "lingt2i_content", line["meaning"], code, "en", (WRITER, TRANSLATOR), "translated",
                prompt=prompt, language=code, dimension=line["dimension"],
            )  # fmt: skip


def _text_rows() -> Iterator[NewRow]:
    """The description stays English in every row and only the rendered text changes, as in LingT2I (§3.3)."""
    backgrounds = {line["background"]: line for line in _lines("lingt2i_text_backgrounds.jsonl")}
    for line in _lines("lingt2i_text.jsonl"):
        background = backgrounds[line["background"]]
        for code, text in line["texts"].items():
            yield _row(
                "lingt2i_text", line["meaning"], code, "en", (WRITER, TRANSLATOR), "translated",
                prompt=background["description"].replace("{text}", text), language=code, dimension="TR", render_text=text,
                render_layout=json.dumps(background["layout"]),
            )  # fmt: skip


def _dialect_rows() -> Iterator[NewRow]:
    for line in _lines("dialect.jsonl"):
        for code, prompt in line["prompts"].items():
            yield _row(
                "dialect", line["meaning"], code, "SAE", (WRITER, CONVERTER), "dialect_converted",
                prompt=prompt, language=VARIETIES[code].language, variety=code, label=line["label"], category=line["category"],
            )  # fmt: skip


def _crosslingual_rows() -> Iterator[NewRow]:
    """German beside Bavarian and Modern Standard beside Egyptian Arabic; a pair is one meaning in one of the two."""
    for line in _lines("dialect_crosslingual.jsonl"):
        for standard, regional in (("de", "bar"), ("ar", "arz")):
            for code in (standard, regional):
                yield {
                    **_row(
                        "dialect_crosslingual", line["meaning"], code, standard, (TRANSLATOR, CONVERTER), "dialect_converted",
                        prompt=line["prompts"][code], language=code, label=line["label"], category=line["category"],
                    ),
                    "pair_id": f"starter-{line['meaning']}-{standard}",
                    **({"derivation": "translated"} if code == standard else {}),
                }  # fmt: skip
