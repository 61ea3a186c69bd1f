"""The catalog for people: a table of all models, and one model with what it needs and what of that is missing on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from rich import box
from rich.table import Table
from rich.text import Text

from t2i_parity.cards.documents import JsonObject
from t2i_parity.dataset_builder.console import fact_sheet
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.registry import Key, Weights
from t2i_parity.generate import fonts
from t2i_parity.generate.models import FAMILIES
from t2i_parity.generate.models.catalog import CATALOG, STUDIES, TEXT_INPUTS, CatalogModel, columns_of

SCRIPTS = ("Latn", "Cyrl", "Arab", "Deva", "Jpan", "Kore", "Hans")
"""The scripts that text is set in, where text is set here."""


def chosen(family: str | None) -> list[CatalogModel]:
    """The catalogued models of a family, all of them for None. Raises InputError for a family that there is not."""
    if family is not None and family not in FAMILIES:
        raise FAMILIES.unknown(family)
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


def as_json(entries: Iterable[CatalogModel]) -> list[JsonObject]:
    """Every declared field, and what ``load`` makes of it."""
    return [{**asdict(entry), "more": dict(entry.more), "hub_id": entry.hub_id, "defaults": entry.defaults} for entry in entries]


def details(name: str) -> Table:
    """Everything about one model, down to what is missing here. Raises InputError for a name that is not in the catalog."""
    if name not in CATALOG:
        raise InputError(f"{CATALOG.unknown(name)}; any diffusers pipeline also runs by hub id or folder")
    entry = CATALOG[name]
    roles = {use.study: ", ".join(each.role for each in entry.studies if each.study == use.study) for use in entry.studies}
    uses = "\n".join(f"{STUDIES[study]}: {role}" for study, role in roles.items())
    lacking = missing(entry)
    facts = {
        "what it is": entry.about,
        "command": f"t2i-parity generate --model {entry.name} --prompts PROMPTS --out runs/{entry.name}",
        "family": f"{entry.family}: {FAMILIES.find(entry.family).about}",
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
    return fact_sheet(entry.title, facts)


def _steps(entry: CatalogModel) -> list[str]:
    """What the program of an adapter wants done before it runs."""
    if entry.family != "adapter":
        return []
    from t2i_parity.generate.models.adapters import ADAPTERS

    manifest = ADAPTERS.get(entry.source)
    return manifest.steps() if manifest is not None else []


def missing(entry: CatalogModel) -> list[str]:
    """What keeps this machine from running a model, each with its fix; what only loading could tell is not among it."""
    family = FAMILIES.find(entry.family)
    found = family.missing()
    if entry.hub_id is not None:
        index = "model_index.json" if entry.family == "diffusers" else "config.json"
        found += [told for told in (Weights(entry.hub_id, entry.revision, index, entry.gated).lacking(),) if told]
    if entry.text_input != "prompt":
        try:
            fonts.check(SCRIPTS)
        except InputError as error:
            found.append(str(error))
    variable = {**family.settings(), **entry.more}.get("key_variable")
    if isinstance(variable, str) and variable != "none" and (told := Key(variable).lacking()):
        found.append(told)
    if entry.family == "adapter":
        found.append("what the steps above bring; the program is asked before the first prompt")
    return found
