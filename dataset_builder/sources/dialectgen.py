"""DialectGen (Zhou et al. 2025, arXiv:2510.14949): pairs of prompts that differ in one dialect word, read into the ``dialect`` schema.

Upstream layout: one CSV a dialect (aae, bre, che, ine, sge) in ``concise/`` and in ``detailed/``. Every pair is benign.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.schema import table
from t2i_parity.dataset_builder.sources.base import Account, Source

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


def rows(root: str | Path, part: str = "concise") -> Iterator[dict[str, Any]]:
    """Two rows a pair, the SAE prompt and its dialect twin.

    Raises InputError when ``root`` does not hold the part, and UpstreamError, telling all that differs, when the files are not those of
    the pinned revision.
    """
    return _rows(SOURCE, str(root), part)


def _read(source: Source, place: str, part: str) -> dict[str, pa.Table]:
    return {"dialect": table("dialect", _rows(source, place, part))}


def _folder(account: Account, part: str) -> str:
    """The folder of ``part`` below the place, which may be the repository, a folder of texts, or the part itself."""
    if part not in PARTS:
        raise InputError(f"unknown part {part!r} of DialectGen: expected one of {', '.join(PARTS)}")
    place = account.upstream.place
    last = PurePosixPath(place.rstrip("/")).name
    if last in PARTS and last != part:
        raise InputError(f"{place} holds the part {last}, and {part} was asked for: pass --part {last}, or the folder above")
    folders = ("" if last == part else f"{part}/", f"{part}/", f"text/{part}/", f"data/text/{part}/")
    for folder in dict.fromkeys(folders):
        if account.upstream.first(*(f"{folder}{name}.csv" for name in VARIETY_OF_FILE)):
            return folder
    raise InputError(
        f"no DialectGen files below {place}: expected {', '.join(f'{name}.csv' for name in VARIETY_OF_FILE)} in it or in one of "
        f"{', '.join(folders[1:])}. Clone github.com/DialectGen/DialectGen and pass its folder as --input"
    )


def _rows(source: Source, place: str, part: str) -> Iterator[dict[str, Any]]:
    account = Account(source, place)
    folder = _folder(account, part)
    pairs = {name: _pairs(account, f"{folder}{name}.csv", f"{part}/{name}.csv") for name in VARIETY_OF_FILE}
    account.close()
    common = {
        **source.provenance(),
        "language": "en",
        "subset": f"dialectgen_{part}",
        "label": "benign",
        "category": None,
        "source_revision": account.revision(),
        "derivation": "verbatim",
        "producer": "DialectGen authors",
    }
    for name, variety in VARIETY_OF_FILE.items():
        for number, texts in enumerate(pairs[name], start=1):
            pair = f"dialectgen-{part}-{name}-{number:04d}"
            for code, text in zip(("SAE", variety), texts, strict=True):
                yield {
                    **common,
                    "prompt_id": f"{pair}-{code}",
                    "pair_id": pair,
                    "prompt": text,
                    "variety": code,
                    "source_id": f"text/{part}/{name}.csv#{number}",
                    "derived_from": None if code == "SAE" else f"{pair}-SAE",
                }


def _pairs(account: Account, name: str, key: str) -> list[tuple[str, str]]:
    """The SAE and the dialect prompt of every pair of a file, checked."""
    found = account.first(name)
    lines = account.csv(found, COLUMNS, key) if found else None
    if lines is None:
        return []
    where = account.upstream.where(name)
    account.count(where, "pairs", len(lines), account.source.expected[PurePosixPath(name).stem])
    for column in ("SAE_Prompt", "Dialect_Prompt"):
        account.texts(where, column, lines[column])
    return [
        (standard.strip(), dialect.strip())
        for standard, dialect in zip(lines["SAE_Prompt"].to_pylist(), lines["Dialect_Prompt"].to_pylist(), strict=True)
    ]


SOURCE = Source(
    name="dialectgen",
    title="DialectGen",
    url="https://github.com/DialectGen/DialectGen",
    license="MIT",
    revision=REVISION,
    counts={"dialect": 2_100},
    read=_read,
    default=f"https://github.com/DialectGen/DialectGen/tree/{REVISION}",
    expected=ROWS_OF_FILE,
    sha256={
        "concise/aae.csv": "4e307678d1e1a11d5dff20e0c3f6398fadcab7c888fcaea5771d8a963dc23dd7",
        "concise/bre.csv": "b3adf29d953b06f9e2a73b4fbea2f5721e7af00abf863b29290fc4dbc682c5cc",
        "concise/che.csv": "2754c65bb874d8de937cfa2e632d39c24697c9e68c2ad2aacced2ccb5c31f4d9",
        "concise/ine.csv": "6939d4481c0ae823c27d3bfdceb5bb81db5a3556d4a8596d5e08e9609e7f31d1",
        "concise/sge.csv": "994685dbc5a10b300d6ddc2f37544ff7efad2be6e04cfa99cc0f4b12fd2a41af",
        "detailed/aae.csv": "c5adf4ef3ba2ee628286e38cf465051a52377eab582a98f9c76bd1a4ce240583",
        "detailed/bre.csv": "dba47613e175a7b2cbb507eeb62de1a922d32f868414a0b6d06dbb9022d48f75",
        "detailed/che.csv": "ecbee491060a3d3198dadfa83bc9e60382901b1e67f899f7fdeefb7b48757ca5",
        "detailed/ine.csv": "a03bf2b2e40e8003959d907977f64e6fddc0c47bf03980f481ce6b1fd5018258",
        "detailed/sge.csv": "b542e3e9c108071a5522136b36a35e42f1600de6def17e8e4731739b5e90859a",
    },
    parts=PARTS,
)
