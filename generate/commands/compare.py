"""The command ``compare``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from t2i_parity.dataset_builder.console import output, say


def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Scored runs; the others are compared with the first.")],
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Compare every two of them.")] = False,
    on: Annotated[str, typer.Option(metavar="prompt|pair", help="Rows are matched by prompt_id, or by meaning and language.")] = "prompt",
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    margin: Annotated[
        float | None, typer.Option(metavar="δ", help="Differences within ±δ are equivalent, in the scores' unit; else 0.05, or 5 pp.")
    ] = None,
    permutations: Annotated[int, typer.Option(min=99, help="Sign flips drawn for a p-value.")] = 9999,
    seed: Annotated[int, typer.Option(help="Seed of the sign flips.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write every number here.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as a page here.")] = None,
    title: Annotated[str, typer.Option(help="The page's title.")] = "Runs compared",
) -> None:
    """Compare runs row by row: what differs, is equivalent or undecided, with paired differences and Holm's p, per language and overall.

    Example: t2i-parity compare runs/glyph-light runs/glyph-heavy --out compare.html
    """
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.generate import stages

    found = stages.compare(
        runs,
        all_pairs=all_pairs,
        on=on,
        confidence=confidence,
        margin=margin,
        permutations=permutations,
        seed=seed,
        out=out,
        title=title,
    )
    if json_file is not None:
        text = json.dumps(found.as_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        Folder(str(json_file.parent)).write(text.encode("utf-8"), json_file.name)
    console = output()
    for table in found.tables():
        console.print(table)
        console.print()
    for note in found.content.notes:
        say(note)
    if out is not None:
        say(f"page: {out}")
