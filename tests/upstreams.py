"""Files of the exact upstream layouts, written for tests: small ones, and all of them at full size."""

from __future__ import annotations

import csv
import dataclasses
import functools
import io
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.sources import dialect_pairs as pairs_source
from t2i_parity.dataset_builder.sources import dialectgen as dialectgen_source
from t2i_parity.dataset_builder.sources import easytext as easytext_source
from t2i_parity.dataset_builder.sources import lingt2i as lingt2i_source
from t2i_parity.dataset_builder.sources import risky_prompt as risky_source
from t2i_parity.dataset_builder.sources.base import Source

LAYOUT = [[[[100, 190], [912, 190], [912, 420], [100, 420]], [[0, 0], [512, 128]]]]


def unproven(source: Source, **expected: int) -> Source:
    """A source that expects other numbers and no digests, for files that a test writes."""
    return dataclasses.replace(source, expected={**source.expected, **expected}, sha256={})


# DialectGen -------------------------------------------------------------------------------------------------------------


def dialectgen(root: Path, **counts: int) -> Path:
    """The concise part of DialectGen below ``root``, with other row counts where they are given."""
    folder = root / "text" / "concise"
    folder.mkdir(parents=True)
    for name, expected in dialectgen_source.ROWS_OF_FILE.items():
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(dialectgen_source.COLUMNS)
            for number in range(counts.get(name, expected)):
                writer.writerow([f"w{number}", "word", f"a w{number}, by {name}", f"a word {number}", 0, 1, 0, ""])
    return root


# LingT2I ----------------------------------------------------------------------------------------------------------------

FEW = 2
"""Meanings a dimension in the small files; upstream has 300."""


def content_rows(meanings: int = FEW) -> list[dict[str, Any]]:
    """The split content_generation, so many meanings in each dimension and language."""
    words = _Words(1)
    return [
        {"data_id": f"{dimension}_{code}_{number}", "prompt": words.text(code, 20), "dimension": dimension, "lang": code}
        for dimension in lingt2i_source.CONTENT_DIMENSIONS
        for number in range(meanings)
        for code in LINGT2I_LANGUAGES
    ]


def text_rows(meanings: int = FEW) -> list[dict[str, Any]]:
    """The split text_rendering, so many meanings in each language."""
    words = _Words(2)
    layout = json.dumps(LAYOUT)
    rows = []
    for number in range(meanings):
        prompt = f"{words.text('en', 30)} <sks1> {words.text('en', 40)}"
        image = {"bytes": _jpeg(number), "path": f"TR_{number}.jpg"}
        rows += [
            {
                "data_id": f"TR_{code}_{number}",
                "prompt": prompt,
                "dimension": "TR",
                "lang": code,
                "render_text": words.text(code, 2),
                "render_layout": layout,
                "condition_image": image,
                "img_id": f"TR_{code}_{number}.jpg",
            }
            for code in LINGT2I_LANGUAGES
        ]
    return rows


def lingt2i(
    root: Path,
    *,
    content: Sequence[Mapping[str, Any]] | None = None,
    text: Sequence[Mapping[str, Any]] | None = None,
    shared_columns: bool = False,
) -> Path:
    """The two splits as parquet files in ``data``, both with all columns when they are ``shared_columns``."""
    kinds = lingt2i_source.TEXT_COLUMNS
    for name, rows in (("content_generation", content or content_rows()), ("text_rendering", text or text_rows())):
        columns = dict.fromkeys((*rows[0], *(kinds if shared_columns else ())))
        table = pa.table(
            {column: [row[column] for row in rows] if column in rows[0] else pa.nulls(len(rows), kinds[column]) for column in columns}
        )
        (root / "data").mkdir(parents=True, exist_ok=True)
        pq.write_table(table, root / "data" / f"{name}-00000-of-00001.parquet")
    return root


@functools.cache
def _jpeg(number: int) -> bytes:
    picture = Image.effect_noise((96, 24), 40 + number)
    file = io.BytesIO()
    picture.save(file, "jpeg")
    return file.getvalue()


# The paired prompts of the dialect-penalty study --------------------------------------------------------------------------


def pair_counts(meanings: int = FEW) -> dict[str, int]:
    """How many prompts a category has, as many to upstream's as ``meanings`` to 300."""
    return {name: max(1, round(category.count * meanings / 300)) for name, category in pairs_source.CATEGORIES.items()}


def pair_rows(label: str, meanings: int = FEW) -> list[list[str]]:
    """The lines of a file, its columns first."""
    words, counts = _Words(3), pair_counts(meanings)
    lines = [list(pairs_source.COLUMNS)]
    for name, category in pairs_source.CATEGORIES.items():
        for _ in range(counts[name] if category.label == label else 0):
            # Typographic apostrophes, commas, quotes and what other readers take for a missing value occur.
            text = f"{words.text('en', 45 if label == 'benign' else 25)}, it’s “so”, NA"
            lines.append([str(len(lines) - 1), name, *(f"{code} {text}" for code in pairs_source.CODES)])
    return lines


def dialect_pairs(root: Path, **files: Sequence[Sequence[str]]) -> Path:
    """The two files below ``root``, with other lines where they are given by label."""
    folder = root / pairs_source.FOLDER
    folder.mkdir(parents=True)
    for label, name in pairs_source.FILES.items():
        with open(folder / name, "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(files.get(label) or pair_rows(label))
    return root


# T2I-RiskyPrompt ----------------------------------------------------------------------------------------------------------


def risky_entries(count: int = 6) -> list[tuple[str, Any]]:
    """Ids and entries, one of two categories, two with the same prompt."""
    words = _Words(4)
    names = list(risky_source.SUBCATEGORIES.values())
    entries = []
    for number in range(count):
        label = {f"Primary--{names[number % len(names)].replace(' ', '_')}": ["a reason"]}
        if number == 1:
            label["Other--Illegal Trade"] = ["a reason", "another"]
        entries.append((str(number), {"prompt": words.text("en", 20) if number != 3 else "the same", "label": label}))
    entries[2][1]["prompt"] = "the same"
    return entries


def risky_prompt(root: Path, entries: Iterable[tuple[str, Any]] | None = None) -> Path:
    """The one file in ``root``; entries may repeat an id."""
    root.mkdir(parents=True, exist_ok=True)
    members = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in (risky_entries() if entries is None else entries))
    (root / risky_source.FILE).write_text("{" + ",\n".join(members) + "}", encoding="utf-8")
    return root


# EasyText -----------------------------------------------------------------------------------------------------------------


def easytext(root: Path) -> Path:
    """Six prompts with their layouts and condition images."""
    for folder in ("prompt", "condition"):
        (root / folder).mkdir(parents=True)
    for number, texts in easytext_source.TEXTS.items():
        places = ", ".join(f"<sks{place}>" for place in range(1, len(texts) + 1))
        (root / "prompt" / f"{number}.txt").write_text(f"A sign with {places} on it. ", encoding="utf-8")
        (root / "condition" / f"{number}-position.txt").write_text(json.dumps(LAYOUT * len(texts), indent=4), encoding="utf-8")
        (root / "condition" / f"{number}-text-wb.png").write_bytes(_jpeg(number))
    return root


# The whole of it ----------------------------------------------------------------------------------------------------------


def sources(meanings: int = FEW) -> dict[str, Source]:
    """Every source, expecting what the functions above write with so many meanings; nothing else of it is changed."""
    return {
        "lingt2i": unproven(lingt2i_source.SOURCE, content_generation=100 * meanings, text_rendering=10 * meanings),
        "dialect_pairs": unproven(pairs_source.SOURCE, **pair_counts(meanings)),
        "dialectgen": unproven(dialectgen_source.SOURCE),
        "risky_prompt": unproven(risky_source.SOURCE, **{risky_source.FILE: len(risky_entries())}),
        "easytext": unproven(easytext_source.SOURCE),
    }


def accept(monkeypatch: pytest.MonkeyPatch, meanings: int = FEW) -> None:
    """Have the commands take the files that the functions above write for the published ones."""
    for name, source in sources(meanings).items():
        monkeypatch.setattr(f"t2i_parity.dataset_builder.sources.{name}.SOURCE", source)


def edition(root: Path, meanings: int = FEW) -> dict[str, str]:
    """The files of the full edition below ``root``, 63K rows with 300 meanings; returns the places by source."""
    places = {
        "lingt2i": lingt2i(root / "lingt2i", content=content_rows(meanings), text=text_rows(meanings)),
        "dialect_pairs": dialect_pairs(root / "dialect_pairs", **{label: pair_rows(label, meanings) for label in pairs_source.FILES}),
        "dialectgen": dialectgen(root / "dialectgen"),
    }
    return {name: str(place) for name, place in places.items()}


@functools.cache
def _vocabulary() -> dict[str, list[str]]:
    file = resources.files("t2i_parity.dataset_builder.starter") / "lingt2i_content.jsonl"
    texts = [json.loads(line)["prompts"] for line in file.read_text(encoding="utf-8").splitlines()]
    return {code: sorted({word for text in texts for word in text[code].split()}) for code in LINGT2I_LANGUAGES}


class _Words:
    """Texts of real words in ten languages, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def text(self, code: str, words: int) -> str:
        """So many words; a language without spaces has phrases for words, so it gets fewer of them."""
        words = max(1, words // 8) if code in ("zh", "ja") else words
        return " ".join(self._random.choices(_vocabulary()[code], k=words))
