"""Images → observations, and prompts → verdicts: every instrument goes through here, so that all resume alike."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from PIL import Image
from rich.console import Console

from dataset_builder.errors import InputError
from generate.engine.local import Failure, Tally, in_batches, process
from generate.filters import TextFilter, Verdict
from generate.judges import Judge
from generate.parts import Parts
from generate.run import PROMPT_COLUMNS, Run

Row = Mapping[str, Any]


def judge(run: Run, instrument: Judge, *, name: str, batch_size: int, console: Console) -> Tally[Row]:
    """Observe every image of the run that the instrument has not observed yet.

    An image that was never made gets an observation too: missing, with the reason, so that no row is silently left out.
    """
    images = run.images()
    if not images.ids():
        raise InputError(f"{run.url} holds no images to judge; generate them first: t2i-parity generate --out {run.url}")
    parts = _begin(run, name, instrument.signature())
    rows = images.read(["image_id", *PROMPT_COLUMNS, "status"]).to_pylist()
    instrument.check(rows)
    done = parts.ids()
    todo = sum(row["image_id"] not in done for row in rows)
    columns = ["image_id", *PROMPT_COLUMNS, "status", "reason", "image"]

    def work(batch: Sequence[Row]) -> list[dict[str, Any] | Failure]:
        decoded = [_decoded(row) for row in batch]
        there = [{**row, "image": image} for row, image in zip(batch, decoded, strict=True) if not isinstance(image, Failure)]
        seen = iter(instrument.observe(there) if there else [])
        return [image if isinstance(image, Failure) else next(seen) for image in decoded]

    def to_table(batch: Sequence[Row], results: Sequence[dict[str, Any] | Failure]) -> pa.Table:
        return _observations("image_id", [row["image_id"] for row in batch], results, instrument.signature(), instrument.columns)

    return process(
        images.batches(columns, batch_size, skip=done),
        total=todo,
        before=len(rows) - todo,
        work=work,
        to_table=to_table,
        parts=parts,
        label=f"read by {name}",
        console=console,
    )


def audit(run: Run, rows: Sequence[Row], text_filter: TextFilter, *, name: str, batch_size: int, console: Console) -> Tally[Row]:
    """Ask the filter about every prompt that it has not been asked about yet."""
    parts = _begin(run, name, text_filter.signature())
    done = parts.ids()
    todo = [row for row in rows if row["prompt_id"] not in done]

    def work(batch: Sequence[Row]) -> Sequence[Verdict | Failure]:
        return text_filter.judge([row["prompt"] for row in batch])

    def to_table(batch: Sequence[Row], results: Sequence[Verdict | Failure]) -> pa.Table:
        seen = [result if isinstance(result, Failure) else {"flagged": result.flagged, "score": result.score} for result in results]
        return _observations(
            "prompt_id",
            [row["prompt_id"] for row in batch],
            seen,
            text_filter.signature(),
            {"flagged": pa.bool_(), "score": pa.float64()},
        )

    return process(
        in_batches(todo, batch_size),
        total=len(todo),
        before=len(rows) - len(todo),
        work=work,
        to_table=to_table,
        parts=parts,
        label=f"asked {name}",
        console=console,
    )


def _decoded(row: Row) -> Image.Image | Failure:
    if row["image"] is None:
        return Failure(f"no image: {row['status']}: {row['reason']}")
    try:
        with Image.open(io.BytesIO(row["image"]["bytes"])) as opened:
            return opened.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        return Failure(f"the image cannot be decoded: {error}")


def _begin(run: Run, name: str, signature: str) -> Parts:
    """The parts of a judge in this run. Raises InputError when they were observed under other settings."""
    parts = run.observations(name)
    parts.recover()
    known = run.record.setdefault("judges", {})
    if known.get(name, signature) != signature and parts.ids():
        raise InputError(
            f"{run.url} has observations by {name} under other settings ({known[name]} there, {signature} now). "
            "Keep both by giving these a name of their own: --as NAME"
        )
    known[name] = signature
    run.write_record()
    return parts


def _observations(
    key: str,
    ids: Sequence[str],
    results: Sequence[dict[str, Any] | Failure],
    signature: str,
    columns: Mapping[str, pa.DataType],
) -> pa.Table:
    schema = pa.schema([(key, pa.string()), ("judge", pa.string()), *columns.items(), ("status", pa.string()), ("reason", pa.string())])
    rows = []
    for identity, result in zip(ids, results, strict=True):
        rows.append(
            {
                key: identity,
                "judge": signature,
                **dict.fromkeys(columns),
                **({} if isinstance(result, Failure) else result),
                "status": result.status if isinstance(result, Failure) else "ok",
                "reason": result.reason if isinstance(result, Failure) else None,
            }
        )
    return pa.Table.from_pylist(rows, schema=schema)
