"""The command ``analyse``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError


def analyse(
    url: Annotated[str, typer.Argument(metavar="RUN", help="A scored run of images.")],
    tokenizer: Annotated[
        str | None,
        typer.Option(help="Count this tokenizer's tokens: a hub id, a folder, or tekken (offline). Take the one of the run's model."),
    ] = None,
    buckets: Annotated[int, typer.Option(min=1, help="Intervals of image-text alignment, equally full.")] = 5,
    edges: Annotated[str, typer.Option(metavar="NUMBER,…", help="Their inner bounds instead, so that runs share them.")] = "",
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of bootstrap and permutations.")] = 0,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every number here; RUN/analysis.json when left out.")
    ] = None,
) -> None:
    """What lies behind the differences between languages: fragmentation, branches and scripts, trade-offs, people, cultures, contrasts.

    Example: t2i-parity analyse runs/mine --tokenizer tekken
    """
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.generate.analysis import analyse as analyse_run
    from t2i_parity.generate.run import Run
    from t2i_parity.metrics._common import Resampling

    run = Run.open(url)
    try:
        bounds = [float(edge) for edge in edges.split(",")] if edges else None
    except ValueError:
        raise InputError(f"--edges {edges}: expected numbers parted by commas, such as 0.2,0.25,0.3") from None
    try:
        resampling = Resampling(confidence, resamples, seed)
        tables = analyse_run(run, tokenizer=tokenizer, resampling=resampling, buckets=buckets, edges=bounds)
    except ValueError as error:
        raise InputError(str(error)) from error
    content = {
        "run": run.name,
        "settings": {"tokenizer": tokenizer and Path(tokenizer).name if Path(tokenizer or "").is_dir() else tokenizer, "buckets": buckets,
                     "edges": bounds, "confidence_level": confidence, "n_resamples": resamples, "seed": seed},
        "analyses": [{"name": each.name, "title": each.title, "about": each.about, "records": each.records} for each in tables],
    }  # fmt: skip
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    place = run.folder if json_file is None else Folder(str(json_file.parent))
    place.write(text.encode("utf-8"), "analysis.json" if json_file is None else json_file.name)
    console = output()
    for each in tables:
        console.print(_table(each.title, each.about, each.records))
        console.print()
    told = f"{url}/analysis.json" if json_file is None else json_file
    say(f"{len(tables)} analyses in {told}")


def _table(title: str, about: str, records: list[dict[str, Any]]) -> Any:
    """Records for a terminal, their intervals beside the numbers; trade-offs and shares as one column a group."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), title_justify="left", caption=Text(about) if about else None, caption_justify="left")
    heads = [name for name in records[0] if name not in ("ci", "counts")]
    for head in heads:
        table.add_column(Text(head.replace("_", " ")), justify="left" if isinstance(records[0][head], str | list) else "right")
    for record in records:
        table.add_row(*(Text(_cell(record, head)) for head in heads))
    return table


def _cell(record: Mapping[str, Any], head: str) -> str:
    """A number with its interval, a list as words, what is missing as a dash.

    >>> _cell({"rho": -0.5, "ci": {"rho": [-0.9, 0.1]}}, "rho"), _cell({"mean": None}, "mean")
    ('-0.500 [-0.900, 0.100]', '–')
    """
    value = record.get(head)
    if value is None:
        return "–"
    if isinstance(value, list):
        return " ".join(map(str, value))
    if not isinstance(value, float):
        return str(value)
    low, high = record.get("ci", {}).get(head, (None, None))
    return f"{value:.3f}" + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")
