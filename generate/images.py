"""Prompts → images: what to generate, and how a batch becomes durable rows."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
from PIL import Image
from rich.console import Console

from generate.engine.local import Failure, Tally, in_batches, process
from generate.models import TextToImageModel
from generate.run import Run, fingerprint, image_features, image_id, seed_of

Row = Mapping[str, Any]


def planned(rows: Sequence[Row], model: TextToImageModel, *, seed: int, images_per_prompt: int) -> list[dict[str, Any]]:
    """The image rows to make, without their images: id and seed of each, from the row, the model's record and the seed index alone."""
    made_by = fingerprint(model.record())
    return [
        {
            **row,
            "image_id": image_id(row["prompt_id"], row["text_sha256"], made_by, None, index),
            "seed_index": index,
            "seed": seed_of(seed, row["pair_id"], index),
        }
        for index in range(images_per_prompt)
        for row in rows
    ]


def generate(
    run: Run, plan: Sequence[Row], model: TextToImageModel, *, batch_size: int, console: Console, retry_failed: bool = False
) -> Tally[Row]:
    """Make the planned images that the run does not have yet; a row that fails is kept with its reason."""
    parts = run.images()
    parts.recover()
    if retry_failed:
        kept = parts.read(["image_id", "status"]).to_pylist()
        parts.drop(row["image_id"] for row in kept if row["status"] == "failed")
    done = parts.ids()
    todo = [row for row in plan if row["image_id"] not in done]
    schema = image_features().arrow_schema

    with ThreadPoolExecutor(2, thread_name_prefix="png") as pool:

        def to_table(batch: Sequence[Row], results: Sequence[Image.Image | Failure]) -> pa.Table:
            encoded = list(pool.map(_png, results))
            return pa.Table.from_pylist(
                [_image_row(row, result, png, len(batch), schema.names) for row, result, png in zip(batch, results, encoded, strict=True)],
                schema=schema,
            )

        return process(
            in_batches(todo, batch_size),
            total=len(todo),
            before=len(plan) - len(todo),
            work=lambda batch: model.generate(batch, [row["seed"] for row in batch]),
            to_table=to_table,
            parts=parts,
            label=f"images by {model.name}",
            console=console,
        )


def _png(result: Image.Image | Failure) -> bytes | None:
    if isinstance(result, Failure):
        return None
    # Level 1 is four times as fast as the default and a few percent larger.
    buffer = io.BytesIO()
    result.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def _image_row(row: Row, result: Image.Image | Failure, png: bytes | None, batch_size: int, names: Sequence[str]) -> dict[str, Any]:
    made = None if isinstance(result, Failure) else result
    values: dict[str, Any] = {
        **row,
        "image": None if png is None else {"bytes": png, "path": f"{row['image_id']}.png"},
        "width": made.width if made else None,
        "height": made.height if made else None,
        "batch_size": batch_size,
        "status": result.status if isinstance(result, Failure) else "ok",
        "reason": result.reason if isinstance(result, Failure) else None,
    }
    return {name: values.get(name) for name in names}
