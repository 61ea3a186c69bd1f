"""Going on with a finished run: the whole ``generate`` command when every row is there, and what of it is planning.

The limit: 3 s for 33,000 rows. Images are 2 kB of bytes here; only ids are read of finished rows, however large their images are.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from measure import Row, main, seconds

LIMIT = 3.0


def run(size: int, repeats: int) -> list[Row]:
    """Time a command that finds ``size`` finished rows."""
    from rich.console import Console

    from t2i_parity.dataset_builder.console import main as t2i_parity
    from t2i_parity.dataset_builder.prompts import load_prompts
    from t2i_parity.generate import images
    from t2i_parity.generate.models import load
    from t2i_parity.generate.run import Run, image_features

    def quietly(*arguments: str) -> str:
        told = io.StringIO()
        with contextlib.redirect_stdout(told), contextlib.redirect_stderr(told), contextlib.suppress(SystemExit):
            t2i_parity(list(arguments))
        return told.getvalue()

    def whole_command() -> None:
        told = quietly(*command)
        if f"0 images made now, {size} were there" not in told:
            raise RuntimeError(told)

    with tempfile.TemporaryDirectory() as place:
        quietly("build", "lingt2i_text", "--edition", "starter", "--out", f"{place}/prompts")
        path = next(Path(place, "prompts", "lingt2i_text").glob("*.parquet"))
        starter = pq.read_table(path)
        copies = -(-size // len(starter))
        table = pa.concat_tables([starter] * copies).slice(0, size)
        for name in ("prompt_id", "pair_id"):
            values = [f"{value}-{number // len(starter)}" for number, value in enumerate(table[name].to_pylist())]
            table = table.set_column(table.column_names.index(name), name, pa.array(values))
        pq.write_table(table, path)
        out = f"{place}/run"
        command = ("generate", "--model", "glyph", "--prompts", f"{place}/prompts", "--config", "lingt2i_text", "--out", out)
        quietly(*command, "--limit", "10")

        opened = Run.open(out)
        parts = opened.images()
        schema = image_features().arrow_schema
        rows = list(load_prompts(f"{place}/prompts", "lingt2i_text"))
        record = load("glyph", {}).record()
        plan = images.planned(rows, record, seed=42, images_per_prompt=1)
        done = parts.ids()
        todo = [row for row in plan if row["image_id"] not in done]
        for chunk in (
            itertools.batched(todo, 1000) if hasattr(itertools, "batched") else (todo[at : at + 1000] for at in range(0, size, 1000))
        ):
            made = [
                {**row, "image": {"bytes": os.urandom(2000), "path": "x.png"}, "batch_size": 1, "attempts": 1, "status": "ok"}
                for row in chunk
            ]
            parts.append(pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in made], schema=schema))
        parts.fold()
        if len(parts.ids()) != size:
            raise RuntimeError(f"{len(parts.ids())} rows stand there, not {size}")

        def planning() -> None:
            plan = images.planned(list(load_prompts(f"{place}/prompts", "lingt2i_text")), record, seed=42, images_per_prompt=1)
            studio = images.Studio(load("glyph", {}))
            tally = images.generate(Run.open(out), plan, studio, batch_size=4, console=Console(quiet=True))
            if tally.before != size:
                raise RuntimeError(f"{tally.before} of {size} rows were found")

        whole, alone = seconds([whole_command, planning], repeats)
    return [
        Row(f"the command on {size:,} finished rows, once imported", whole, f"the limit of {LIMIT:g} s", LIMIT, 1.0),
        Row("reading prompts, planning, finding what is there", alone, f"the limit of {LIMIT:g} s", LIMIT, 1.0),
    ]


if __name__ == "__main__":
    main(run, 33_000, 3, __doc__)
