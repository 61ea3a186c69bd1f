"""Prompts on their way into a run: read, checked, hashed and chosen here, once; whatever comes after is handed typed rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

import pyarrow as pa

from t2i_parity.dataset_builder import geo_published, starter
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.repository import SPLIT, content_sha256, hub_configs, read_folder, read_hub, vocabulary_of
from t2i_parity.dataset_builder.schema import DEFAULT_CONFIG, MINIMUM, Check, Column, check_columns, check_table, text_hashes
from t2i_parity.dataset_builder.schema import config as declared
from t2i_parity.dataset_builder.selection import select_rows, wanted
from t2i_parity.dataset_builder.settings import Arguments, listed, recorded
from t2i_parity.dataset_builder.storage import card_configs, decode_classes


class Prompt(TypedDict):
    """One prompt with all that later stages need of it, so that none reads the prompts again; the columns that image rows carry."""

    prompt_id: str
    pair_id: str
    prompt: str
    language: str
    variety: str | None
    script: str | None
    subset: str | None
    dimension: str | None
    render_text: str | None
    render_layout: str | None
    label: str | None
    category: str | None
    country: str | None
    noun: str | None
    source: str | None
    source_id: str | None
    license: str | None
    text_sha256: str
    config: str | None
    derivation: str | None
    derived_from: str | None
    producer: str | None
    checks: list[Check] | None


PROMPT_COLUMNS = tuple(Prompt.__annotations__)
"""The columns of a prompt's row, in the order of files."""

ADDED = ("config", "derivation", "derived_from", "producer", "checks")
"""The columns that rows of runs made by version 0.1 lack."""

CHECKS = pa.list_(pa.struct([(name, pa.float64() if name == "score" else pa.string()) for name in Check.__annotations__]))
"""The type of the column ``checks``."""

SCHEMA = pa.schema([(name, CHECKS if name == "checks" else pa.string()) for name in PROMPT_COLUMNS])
"""The types of a prompt's columns."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """Opened prompts: the ``rows`` that were chosen, and the whole ``table`` that they were chosen from, with class names as strings.

    ``origin`` tells which prompts these are, and goes into every run's record; ``arguments`` are those by which they were chosen.
    """

    table: pa.Table
    rows: Sequence[Prompt]
    origin: Mapping[str, Any]
    arguments: Arguments

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self.rows)

    def need(self, columns: Iterable[Column]) -> Prompts:
        """These prompts; raises InputError, naming row and column, when they do not have what the work at hand needs beside the least."""
        check_columns(self.table, columns, where=_where(self.origin))
        return self


def load_prompts(
    source: str | os.PathLike[str] | None = None,
    config: str | None = None,
    *,
    revision: str | None = None,
    split: str = SPLIT,
    languages: str | Iterable[str] = (),
    only: Mapping[str, str | Iterable[str]] | Iterable[str] = (),
    mini: bool = False,
    limit: int | None = None,
) -> Prompts:
    """Open prompts, ours or anybody's, from a local folder or by hub id; the starter edition when ``source`` is left out.

    ``config`` is the dataset's default when left out. ``languages`` keeps those; ``only`` keeps rows by what they are, as
    ``{"dimension": ["IQ-R", "TA-C"]}``; ``mini`` a tenth of the meanings, always the same; ``limit`` at most so many rows, spread
    evenly over languages and varieties. Anybody's dataset will do that has the columns prompt_id, pair_id, prompt and language. A folder
    is read file by file (``load_dataset`` would answer from a stale cache after a rebuild); a hub id goes through ``datasets``.

    Raises InputError, naming file, row and column, when they cannot be read or do not hold what is needed, and naming the configs of
    prompts when the config holds published values instead.

    >>> prompts = load_prompts(config="dialect", only={"variety": ["SAE", "AAVE"], "label": "benign"}, limit=4)
    >>> len(prompts), prompts.rows[1]["variety"], prompts.rows[1]["derivation"]
    (4, 'AAVE', 'dialect_converted')
    >>> load_prompts(languages=["en", "tlh"])
    Traceback (most recent call last):
    t2i_parity.dataset_builder.errors.InputError: unknown language 'tlh': these prompts are in en, zh, hi, es, ar, fr, pt, ru, ja, ko
    """
    arguments = recorded(load_prompts, locals())
    where = None if source is None else os.fspath(source)
    folder = None if where is None or not Path(where).is_dir() else Path(where)
    origin: dict[str, Any]
    if where is None:
        name = declared(config or DEFAULT_CONFIG).name
        table, origin = starter.tables()[name], {"repository": "starter", "config": name, "split": split}
    elif folder is not None:
        table, folder_config = read_folder(folder, config, split)
        origin = {"repository": folder.name, "config": folder_config, "split": split}
    else:
        table = read_hub(where, config, split, revision)
        origin = {"repository": where, "config": config, "split": split, "revision": revision}
    named = _where({**origin, "repository": where or origin["repository"]})
    if not len(table):
        raise InputError(f"{named}: the table has no rows")
    if geo_published.holds(table):
        names = [str(entry.get("config_name")) for entry in card_configs(folder)] if folder else hub_configs(str(where), revision)
        others = [name for name in names if name not in (geo_published.NAME, origin["config"])]
        fix = f"Name a config of prompts: {', '.join(others)}" if others else "Build some: t2i-parity build --edition starter --out DIR"
        raise InputError(f"{named} holds means that a study printed, to compare with, and no prompts. {fix}")
    check_table(table, MINIMUM, where=named)
    if "text_sha256" not in table.column_names:
        table = table.append_column("text_sha256", text_hashes(table["prompt"]))
    origin["content_sha256"] = content_sha256(table)
    if used := vocabulary_of([table]):
        origin["vocabulary"] = used
    table = decode_classes(table)
    chosen = [f"{name}={values if isinstance(values, str) else ','.join(values)}" for name, values in only.items()] if isinstance(
        only, Mapping
    ) else list(only)  # fmt: skip
    codes = listed(languages) if isinstance(languages, str) else tuple(languages)
    choice = wanted([*chosen, *([f"language={','.join(codes)}"] if codes else [])])
    rows = select_rows(rows_of(table, origin["config"], where=named), **choice, mini=mini, limit=limit)
    return Prompts(table, cast("list[Prompt]", rows), origin, arguments)


def rows_of(table: pa.Table, config: str | None = None, *, where: str = "prompts") -> list[Prompt]:
    """A table of prompts or images as typed rows: columns that it lacks are null, but ``config``, which is the given one.

    Raises InputError for a column that holds something else than is declared.
    """
    columns: dict[str, list[Any]] = {}
    for name in PROMPT_COLUMNS:
        if name not in table.column_names:
            columns[name] = [config if name == "config" else None] * len(table)
            continue
        found = table.schema.field(name).type
        if name == "checks":
            item = found.value_type if pa.types.is_list(found) or pa.types.is_large_list(found) else None
            fields = list(Check.__annotations__)
            if pa.types.is_null(found):
                columns[name] = [None] * len(table)
            elif item is None or not pa.types.is_struct(item) or not set(fields) <= {field.name for field in item}:
                raise InputError(
                    f"{where}, column checks: expected a list of {{{', '.join(fields)}}} in each row, got {found}. "
                    "Rename the column, or drop it"
                )
            else:
                columns[name] = [[{key: each[key] for key in fields} for each in cell or []] for cell in table[name].to_pylist()]
        elif pa.types.is_string(found) or pa.types.is_large_string(found) or pa.types.is_null(found):
            columns[name] = table[name].to_pylist()
        else:
            raise InputError(f"{where}, column {name}: expected texts, got {found}. Convert the column, rename it, or drop it")
    names = list(columns)
    return [cast(Prompt, dict(zip(names, cells, strict=True))) for cells in zip(*columns.values(), strict=True)]


def _where(origin: Mapping[str, Any]) -> str:
    return f"{origin['repository']}" + (f" (config {origin['config']})" if origin["config"] else "")
