"""The catalog for people: a table of all models, and one model with what it needs and what of that is missing on this machine."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterable
from dataclasses import asdict, fields
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import fonts
from t2i_parity.generate.models import FAMILIES
from t2i_parity.generate.models.catalog import CATALOG, STUDIES, TEXT_INPUTS, CatalogModel, columns_of

PACKAGES = {
    "diffusers": (("torch", "generate"), ("diffusers", "generate"), ("transformers", "generate"), ("accelerate", "generate")),
    "janus": (("torch", "generate"), ("transformers", "generate"), ("torchvision", "clip")),
}
"""What a family imports, and the extra that brings it."""
SCRIPTS = ("Latn", "Cyrl", "Arab", "Deva", "Jpan", "Kore", "Hans")
"""The scripts that text is set in, where text is set here."""


def chosen(family: str | None) -> list[CatalogModel]:
    """The catalogued models of a family, all of them for None. Raises InputError for a family that there is not."""
    if family is not None and family not in FAMILIES:
        raise InputError(f"--family {family}: expected one of {', '.join(FAMILIES)}")
    return [entry for entry in CATALOG.values() if family in (None, entry.family)]


def table(entries: Iterable[CatalogModel]) -> Table:
    """One model a row."""
    made = Table(title="Models", title_justify="left", caption=LEGEND, caption_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 1, 0))
    made.add_column("name, family", no_wrap=True, min_width=max(map(len, CATALOG)))
    made.add_column("what it is, and from where", overflow="fold", width=38)
    for heading in ("steps", "guid.", "size", "GB"):
        made.add_column(heading, justify="right", no_wrap=True, min_width=max(len(heading), 4 if heading == "size" else 2))
    made.add_column("licence, text", overflow="fold", width=15)
    made.add_column("studies, roles", width=18)
    for entry in entries:
        made.add_row(*_cells(entry))
    return made


def _cells(entry: CatalogModel) -> list[Text]:
    studies: dict[str, list[str]] = {}
    for use in entry.studies:
        studies.setdefault(use.study, []).append(use.role)
    source = _origin(entry).removeprefix("https://")
    plain = [
        _shown(entry.steps),
        _shown(entry.guidance),
        _size(entry),
        _shown(entry.memory_gb),
    ]
    return [
        Text.assemble((entry.name, "bold"), "\n", (entry.family, "dim")),
        Text.assemble(entry.title, "\n", (source, "dim")),
        *(Text(cell) for cell in plain),
        Text.assemble(entry.license.split(" (")[0], "\n", (entry.text_input, "dim")),
        Text("\n".join(f"{study}: {', '.join(roles)}" for study, roles in studies.items()) or "–"),
    ]


LEGEND = "GB: of GPU memory that all weights need. text: how a text to render is given. t2i-parity models NAME tells more."


def _origin(entry: CatalogModel) -> str:
    return entry.hub_id or entry.repository or entry.source or "this package"


def _shown(value: object) -> str:
    return "–" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _size(entry: CatalogModel) -> str:
    return "–" if entry.width is None else f"{entry.width}" if entry.width == entry.height else f"{entry.width}×{entry.height}"


def as_json(entries: Iterable[CatalogModel]) -> list[dict[str, Any]]:
    """Every declared field, and what ``load`` makes of it."""
    return [{**asdict(entry), "more": dict(entry.more), "hub_id": entry.hub_id, "defaults": entry.defaults} for entry in entries]


def details(name: str) -> Table:
    """Everything about one model, down to what is missing here. Raises InputError for a name that is not in the catalog."""
    if name not in CATALOG:
        raise InputError(
            f"unknown model {name!r}: expected one of {', '.join(CATALOG)}; any diffusers pipeline also runs by hub id or folder"
        )
    entry = CATALOG[name]
    made = Table(title=entry.title, title_justify="left", show_header=False)
    made.add_column(no_wrap=True)
    made.add_column(overflow="fold")
    roles = {use.study: ", ".join(each.role for each in entry.studies if each.study == use.study) for use in entry.studies}
    uses = "\n".join(f"{STUDIES[study]}: {role}" for study, role in roles.items())
    lacking = missing(entry)
    rows = {
        "what it is": entry.about,
        "command": f"t2i-parity generate --model {entry.name} --prompts PROMPTS --out runs/{entry.name}",
        "family": f"{entry.family}: {FAMILIES[entry.family].about}",
        "class": entry.pipeline,
        "from": _origin(entry),
        "revision": entry.revision or f"unpinned: {entry.unpinned}",
        "defaults": ", ".join(f"{key}={value}" for key, value in entry.defaults.items() if key != "revision") or "the family's own",
        "where from": entry.settings_from,
        "memory": None if entry.memory_gb is None else f"{entry.memory_gb} GB of GPU memory hold all weights",
        "licence": entry.license + (" (gated: its terms must be accepted on the hub)" if entry.gated else ""),
        "text to render": f"{entry.text_input}: {TEXT_INPUTS[entry.text_input]}",
        "columns": ", ".join(column.name for column in columns_of(entry.name)) or "prompts of any config",
        "studies": uses or "none",
        "repository": entry.repository,
        "needs": entry.needs,
        "steps to take": "\n".join(f"{number}. {step}" for number, step in enumerate(_steps(entry), 1)),
        "missing here": "\n".join(lacking) if lacking else "nothing that can be told without loading it",
    }
    for heading, value in rows.items():
        if value:
            made.add_row(Text(heading), Text(value))
    return made


def _steps(entry: CatalogModel) -> list[str]:
    """What the program of an adapter wants done before it runs."""
    if entry.family != "adapter" or not FAMILIES["adapter"].present:
        return []
    from t2i_parity.generate.models.adapters import ADAPTERS

    manifest = ADAPTERS.get(entry.source)
    return manifest.steps() if manifest is not None else []


def missing(entry: CatalogModel) -> list[str]:
    """What keeps this machine from running a model, each with its fix; what only loading could tell is not among it."""
    family = FAMILIES[entry.family]
    if not family.present:
        return [f"the family {entry.family}: {family.about} are not part of this version"]
    found = [
        f"the package {package}: pip install 't2i-parity[{extra}]'"
        for package, extra in PACKAGES.get(entry.family, ())
        if importlib.util.find_spec(package) is None
    ]
    if entry.hub_id is not None and (weights := _weights(entry)):
        found.append(weights)
    if entry.text_input != "prompt":
        try:
            fonts.check(SCRIPTS)
        except InputError as error:
            found.append(str(error))
    variable = _key_variable(entry)
    if variable and not os.environ.get(variable):
        found.append(f"a key in the environment variable {variable}")
    if entry.family == "adapter":
        found.append("what the steps above bring; the program is asked before the first prompt")
    return found


def _weights(entry: CatalogModel) -> str | None:
    """Whether the weights lie in the hub's cache, by the file that every copy has."""
    from huggingface_hub import constants, get_token, try_to_load_from_cache

    index = "model_index.json" if entry.family == "diffusers" else "config.json"
    cached = try_to_load_from_cache(str(entry.hub_id), index, revision=entry.revision)
    if isinstance(cached, str):
        return None
    told = f"the weights: {entry.hub_id} is not in the hub's cache, and is downloaded when it is first asked for"
    if constants.HF_HUB_OFFLINE:
        told += "; HF_HUB_OFFLINE is set, which forbids that"
    elif entry.gated and get_token() is None:
        told += f"; it is gated: accept its terms at https://huggingface.co/{entry.hub_id}, then hf auth login"
    return told


def _key_variable(entry: CatalogModel) -> str | None:
    if entry.family not in ("gemini", "openai"):
        return None
    given = {field.name: field.default for field in fields(FAMILIES[entry.family].settings_class())}
    variable = {**given, **entry.more}.get("key_variable")
    return variable if isinstance(variable, str) else None
