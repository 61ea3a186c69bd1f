"""The stages of an audit, as the commands run them: what was asked for, the filters, the encoder, the images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
from rich.console import Console

from t2i_parity.dataset_builder.controls.encoders import ENCODERS
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import SCHEMA, Prompt, Prompts
from t2i_parity.dataset_builder.settings import Arguments, Pairs, owned
from t2i_parity.generate import observe
from t2i_parity.generate.audit import encoding, image_level
from t2i_parity.generate.audit.pairs import pairs_of
from t2i_parity.generate.engine.collect import Tally
from t2i_parity.generate.filters import FILTERS, TextFilter, load
from t2i_parity.generate.run import Run


@dataclass(frozen=True, slots=True)
class Asked:
    """What an audit is to be made of.

    ``names`` are what the filters' verdicts are called, one each in their order (a filter's own name where there is none); ``settings`` are
    NAME=VALUE for the only filter, or OWNER.NAME=VALUE, an owner being such a name or the encoder's. ``unguarded``, ``guarded`` are runs.
    """

    filters: Sequence[str]
    names: Sequence[str] = ()
    settings: Pairs = None
    encoder: str | None = None
    unguarded: Run | None = None
    guarded: Sequence[Run] = ()
    batch_size: int | None = None
    retry_failed: bool = False


def perform(run_url: str, prompts: Prompts, asked: Asked, arguments: Arguments, console: Console) -> tuple[Run, dict[str, Tally]]:
    """Ask every filter and the encoder about every prompt, gather the images' outcomes, and keep it all in the run; a tally by stage.

    What can be refused is refused before anything is asked. Raises InputError for pairs that are none, settings that are none, a filter
    that cannot be loaded, and runs that do not fit.
    """
    rows = prompts.rows
    pairs_of(rows)
    names = named([FILTERS.find(each).name for each in asked.filters], asked.names)
    if not names and not asked.encoder and not asked.unguarded:
        raise InputError("there is nothing to audit: give a filter (--filter NAME), an encoder (--encoder NAME) or runs (--unguarded RUN)")
    encoder_name = None if asked.encoder is None else ENCODERS.find(asked.encoder).name
    if encoder_name in names:
        raise InputError(f"a filter and the encoder are both called {encoder_name}; give the filter another name: --as NAME")
    options = owned([*names, *([encoder_name] if encoder_name else [])], names, asked.settings)
    outcomes = None
    if asked.unguarded:
        outcomes = image_level.gather(rows, asked.unguarded, asked.guarded)
        for run in asked.guarded:
            if other := image_level.differing(asked.unguarded, run):
                console.print(
                    f"{asked.unguarded.name} and {run.name} differ in more than the guardrail: {'; '.join(other)}",
                    markup=False,
                    style="yellow",
                    soft_wrap=True,
                )
    filters = {name: load(spec, options[name]) for name, spec in zip(names, asked.filters, strict=True)}
    encoder = encoding.load(asked.encoder, options[str(encoder_name)]) if asked.encoder else None
    for text_filter in filters.values():
        warn_of_languages(text_filter, rows, console)
    audit_run = Run.start(run_url, "audit", identity={"prompts": prompts.origin}, details={"arguments": arguments})
    tallies: dict[str, Tally] = {}
    with audit_run.locked():
        if not audit_run.prompts().files():
            audit_run.prompts().replace(pa.Table.from_pylist(list(rows), schema=SCHEMA))
        if outcomes is not None:
            audit_run.outcomes().replace(outcomes)
        for name, text_filter in filters.items():
            size = asked.batch_size or text_filter.at_once
            tallies[name] = observe.audit(
                audit_run, rows, text_filter, name=name, batch_size=size, console=console, retry_failed=asked.retry_failed
            )
        if encoder is not None and encoder_name is not None:
            tallies[encoder_name] = observe.audit(
                audit_run,
                rows,
                encoder,
                name=encoder_name,
                batch_size=asked.batch_size or 256,
                console=console,
                retry_failed=asked.retry_failed,
                columns=encoding.VECTOR_COLUMNS,
            )
        audit_run.write_card()
    return audit_run, tallies


def named(filters: Sequence[str], names: Sequence[str]) -> list[str]:
    """What each filter's verdicts are called.

    Raises InputError when there are other names than filters, or two are called alike.

    >>> named(["python", "python"], ["mine", "yours"])
    ['mine', 'yours']
    """
    if names and len(names) != len(filters):
        raise InputError(
            f"--as is given {len(names)} times and --filter {len(filters)} times; name all of the filters, in their order, or none"
        )
    chosen = list(names or filters)
    if len(set(chosen)) < len(chosen):
        raise InputError(
            f"two filters are both called {next(name for name in chosen if chosen.count(name) > 1)}; name each: --as NAME --as NAME"
        )
    return chosen


def warn_of_languages(text_filter: TextFilter, rows: Sequence[Prompt], console: Console) -> None:
    """Say so when the prompts are in languages that the filter was not made for."""
    foreign = sorted({row["language"] for row in rows} - set(text_filter.languages))
    if text_filter.languages and foreign:
        console.print(
            f"{text_filter.name} was made for {', '.join(text_filter.languages)}; what it says of {', '.join(foreign)} shows little",
            markup=False,
            style="yellow",
            soft_wrap=True,
        )
