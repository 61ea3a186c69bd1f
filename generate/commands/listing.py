"""The commands ``judges``, ``filters``, ``guardrails`` and ``sources``: what can be named, what it needs, and what of that is here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from t2i_parity.dataset_builder.console import fact_sheet, output
from t2i_parity.dataset_builder.registry import OURS, Entry, Registry
from t2i_parity.dataset_builder.sources import SOURCES
from t2i_parity.generate.backends import CHATS as CHATS  # with the filters, found from the room below by its kind
from t2i_parity.generate.filters import FILTERS
from t2i_parity.generate.guardrails import GUARDRAILS
from t2i_parity.generate.judges import JUDGES

NameArgument = Annotated[str | None, typer.Argument(metavar="NAME", help="One of them, with its settings and the fix of what is missing.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The same as JSON.")]

app = typer.Typer()


def _command(registry: Registry[Any], about: str) -> None:
    """One command over a registry."""

    def listed(name: NameArgument = None, as_json: JsonOption = False) -> None:
        if as_json:
            made = [as_dict(registry, entry) for entry in registry.entries()] if name is None else details(registry, name)
            typer.echo(json.dumps(made, indent=2, ensure_ascii=False))
        elif name is None:
            output().print(table(registry))
        else:
            output().print(sheet(registry, name))

    listed.__doc__ = f"{about}\n\nExample: t2i-parity {registry.kind}s"
    app.command(f"{registry.kind}s")(listed)


_command(JUDGES, "List the judges, which look at images: what each sees, what it needs, and what of that is missing here.")
_command(FILTERS, "List the text filters: what each is, what it needs, and what of that is missing here.")
_command(GUARDRAILS, "List the guardrails: what each does, what it needs, and what of that is missing here.")
_command(SOURCES, "List the sources of prompts, which build --source and --edition full read: what each holds.")


def table(registry: Registry[Any]) -> Table:
    """One entry a row."""
    legend = f"missing: what is not on this machine. t2i-parity {registry.kind}s NAME tells the fix, and every setting."
    made = Table(title=f"{registry.kind}s".capitalize(), title_justify="left", caption=legend, caption_justify="left", box=box.SIMPLE_HEAD)
    entries = registry.entries()
    made.add_column("name", no_wrap=True, min_width=max(len(entry.name) for entry in entries))
    made.add_column("what it is", overflow="fold", ratio=1)
    made.add_column("needs", overflow="fold", ratio=1)
    for entry in entries:
        lacking = [need.what for need in entry.needs if need.lacking()]
        lines = [Text(", ".join(need.what for need in entry.needs if need.what not in lacking))]
        lines += [Text(f"missing: {', '.join(lacking)}", "yellow")] if lacking else []
        lines += [Text(clash, "red")] if (clash := registry.clash(entry.name)) else []
        by = "" if entry.origin == OURS else f"\nby {entry.origin}"
        made.add_row(Text(entry.name, "bold"), Text.assemble(entry.about, (by, "dim")), Text("\n").join(filter(None, lines)) or "–")
    return made


def as_dict(registry: Registry[Any], entry: Entry) -> dict[str, Any]:
    """An entry as JSON."""
    target = entry.target if isinstance(entry.target, str) else f"{entry.origin}:{getattr(entry.target, '__qualname__', entry.name)}"
    return {
        "name": entry.name,
        "about": entry.about,
        "by": entry.origin,
        "object": target,
        "needs": [need.what for need in entry.needs],
        "missing": entry.missing(),
        "otherwise": entry.otherwise,
        "clash": registry.clash(entry.name),
    }


def details(registry: Registry[Any], name: str) -> dict[str, Any]:
    """An entry as JSON, with what is known when its object is imported: its settings, its languages, and a value's own fields."""
    entry = registry.find(name)
    found = entry.object()
    settings = {key: None if value is MISSING else value for key, value in entry.settings().items()}
    required = [key for key, value in entry.settings().items() if value is MISSING]
    known = {"settings": settings, "required": required, "languages": list(getattr(found, "languages", ()))}
    plain = isinstance(found, type) or not is_dataclass(found)
    value = {} if plain else {each.name: _plain(getattr(found, each.name)) for each in fields(found)}
    return {**as_dict(registry, entry), **known, **{key: each for key, each in value.items() if each and key != "name"}}


def _plain(value: Any) -> Any:
    """A value as JSON has it; nothing for a function."""
    if isinstance(value, Mapping):
        return dict(value)
    return None if callable(value) else list(value) if isinstance(value, tuple) else value


def sheet(registry: Registry[Any], name: str) -> Table:
    """The same for people."""
    known = details(registry, name)
    required = known.pop("required")
    facts = {
        "what it is": known.pop("about"),
        "object": known.pop("object"),
        "by": known.pop("by"),
        "settings": "\n".join(
            f"{key}: to be given" if key in required else f"{key}={value}" for key, value in known.pop("settings").items()
        ),
        "needs": ", ".join(known.pop("needs")),
        "missing here": "\n".join(known.pop("missing")) or "nothing that can be told without loading it",
        "or": known.pop("otherwise"),
    }
    rest = {key: _told(value) for key, value in known.items() if key != "name"}
    return fact_sheet(name, {**facts, **rest})


def _told(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {each}" for key, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
