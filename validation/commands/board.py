"""The command ``board``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from t2i_parity.dataset_builder.console import say
from t2i_parity.dataset_builder.errors import InputError


def board(
    results: Annotated[str, typer.Argument(metavar="RESULTS", help="The results: a folder that holds results/, or a dataset on the hub.")],
    out: Annotated[str, typer.Option(help="The Space's folder (any fsspec URL); README.md and index.html are written into it.")],
    title: Annotated[str, typer.Option(help="The page's title.")] = "T2I Parity leaderboard",
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Leave out files that are no valid record, and say so.")] = False,
) -> None:
    """Build the leaderboard, a static Space of one page, from result records.

    Example: t2i-parity board my-results --out my-board
    """
    from huggingface_hub import constants

    from t2i_parity.cards.board import space
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.validation.board import gather
    from t2i_parity.validation.results import is_hub_id, read_results

    found = read_results(results)
    if found.refused and not skip_invalid:
        more = f" (and {len(found.refused) - 1} more files)" if len(found.refused) > 1 else ""
        raise InputError(f"{found.refused[0][1]}{more}. To build the board without them: --skip-invalid")
    for _, reason in found.refused:
        say(f"left out: {reason}")
    hub_id = is_hub_id(results)
    made = gather(
        found,
        title=title,
        source=results if hub_id else Path(Folder(results).root).name,
        source_url=f"{constants.ENDPOINT}/datasets/{results}" if hub_id else "",
        hub=constants.ENDPOINT,
    )
    folder = Folder(out)
    for name, text in space(made).items():
        folder.write(text.encode("utf-8"), name)
    models = {(entry.model, entry.revision) for table in made.tables for entry in table.entries}
    say(f"{out}: {len(models)} models in {len(made.tables)} tables from {len(found.files)} records; open {out}/index.html")
