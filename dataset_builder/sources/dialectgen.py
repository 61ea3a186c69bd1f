"""DialectGen (Zhou et al. 2025, arXiv:2510.14949): pairs of prompts that differ in one dialect word, read into the ``dialect`` schema.

Upstream layout: one CSV a dialect (aae, bre, che, ine, sge) in ``concise/`` and in ``detailed/``. Every pair is benign.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dataset_builder.errors import InputError

PARTS = ("concise", "detailed")
COLUMNS = (
    "Dialect_Word",
    "SAE_Word",
    "Dialect_Prompt",
    "SAE_Prompt",
    "person_in_prompt",
    "dialect_word_count",
    "polysemic",
    "Polysemy_Prompt",
)
VARIETY_OF_FILE = {"aae": "AAVE", "bre": "BrE", "che": "ChcE", "ine": "IndE", "sge": "CollSgE"}
ROWS_OF_FILE = {"aae": 204, "bre": 222, "che": 204, "ine": 216, "sge": 204}
REVISION = "93c6bbe5"


def folder(root: Path, part: str) -> Path:
    """The folder of ``part`` below ``root``, which may be the repository, its ``text`` folder, or the part itself.

    Raises InputError, listing the places looked at, when none holds the five files.
    """
    if part not in PARTS:
        raise InputError(f"unknown part {part!r} of DialectGen: expected one of {', '.join(PARTS)}")
    places = [root, root / part, root / "text" / part]
    if root.name in PARTS and root.name != part:
        raise InputError(f"{root} holds the part {root.name}, and {part} was asked for: pass --part {root.name}, or the folder above")
    for place in places:
        if all((place / f"{name}.csv").is_file() for name in VARIETY_OF_FILE):
            return place
    raise InputError(
        f"no DialectGen files below {root}: expected {', '.join(f'{name}.csv' for name in VARIETY_OF_FILE)} in one of "
        f"{', '.join(str(place) for place in places)}. Clone github.com/DialectGen/DialectGen and pass its folder as --input"
    )


def rows(root: Path, part: str = "concise") -> Iterator[dict[str, Any]]:
    """Two rows a pair, the SAE prompt and its dialect twin.

    Raises InputError, naming file and line, when a file's columns or counts are not those of the pinned revision, or a prompt is empty.
    """
    place = folder(root, part)
    for name, variety in VARIETY_OF_FILE.items():
        path = place / f"{name}.csv"
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            if tuple(reader.fieldnames or ()) != COLUMNS:
                raise InputError(f"{path}: expected the columns {', '.join(COLUMNS)}, got {', '.join(reader.fieldnames or ())}")
            lines = list(reader)
        if len(lines) != ROWS_OF_FILE[name]:
            raise InputError(
                f"{path}: expected {ROWS_OF_FILE[name]} pairs, as in DialectGen at {REVISION}, got {len(lines)}; check out that revision"
            )
        for number, line in enumerate(lines, start=1):
            pair = f"dialectgen-{part}-{name}-{number:04d}"
            for code, column in (("SAE", "SAE_Prompt"), (variety, "Dialect_Prompt")):
                text = (line[column] or "").strip()
                if not text:
                    raise InputError(f"{path}: pair {number}, column {column} is empty; a pair needs both prompts")
                yield {
                    "prompt_id": f"{pair}-{code}",
                    "pair_id": pair,
                    "prompt": text,
                    "language": "en",
                    "variety": code,
                    "subset": f"dialectgen_{part}",
                    "label": "benign",
                    "category": None,
                    "source": "DialectGen",
                    "source_id": f"text/{part}/{name}.csv#{number}",
                    "source_revision": REVISION,
                    "source_url": "https://github.com/DialectGen/DialectGen",
                    "license": "MIT",
                    "derivation": "verbatim",
                    "derived_from": None if code == "SAE" else f"{pair}-SAE",
                    "producer": "DialectGen authors",
                }
