"""The command ``models``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from t2i_parity.dataset_builder.console import output


def models(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One model, with what it needs here.")] = None,
    family: Annotated[str | None, typer.Option(help="Only this family: diffusers, janus, gemini, openai, adapter, glyph.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every declared field, as JSON.")] = False,
) -> None:
    """List the models of the studies: what each is, its settings, memory, licence, and which study used it.

    Example: t2i-parity models --family diffusers
    """
    from t2i_parity.generate.models import listing

    entries = listing.chosen(family)
    if name is not None:
        made = listing.details(name)
        entries = [entry for entry in listing.chosen(None) if entry.name == name]
    if as_json:
        typer.echo(json.dumps(listing.as_json(entries), indent=2, ensure_ascii=False))
    else:
        output().print(made if name is not None else listing.table(entries))
