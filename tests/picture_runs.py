"""Runs with given pictures, for tests of judges: as ``generate`` writes them, without a model."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from PIL import Image

from t2i_parity.generate.run import Run, image_features


def noise(seed: int, size: tuple[int, int] = (48, 40)) -> Image.Image:
    """A picture of noise, (width, height) pixels."""
    return Image.fromarray(np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), np.uint8))


def photographs() -> dict[str, Image.Image]:
    """Harmless photographs that ship with scikit-image."""
    import skimage.data

    return {name: Image.fromarray(getattr(skimage.data, name)()) for name in ("astronaut", "cat", "coffee", "rocket")}


def png(picture: Image.Image) -> bytes:
    """The picture as a run stores it."""
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


def picture_run(folder: Path, rows: Sequence[Mapping[str, Any]], pictures: Sequence[Image.Image | bytes | None]) -> Run:
    """A run of these image rows: columns that a row leaves out are plain ones, and None is a picture that failed."""
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": "given"}}, "packages": {}})
    run.write_record()
    schema = image_features().arrow_schema
    table = []
    for number, (row, picture) in enumerate(zip(rows, pictures, strict=True)):
        plain = {"image_id": f"image-{number}", "prompt_id": f"prompt-{number}", "pair_id": f"pair-{number}", "prompt": f"picture {number}"}
        data = png(picture) if isinstance(picture, Image.Image) else picture
        kept = {"image": None if data is None else {"bytes": data, "path": None}, "status": "ok" if data else "failed"}
        defaults = {"language": "en", "subset": "given", "reason": None if data else "no such picture"}
        table.append({**dict.fromkeys(schema.names), **plain, **defaults, **kept, **row})
    run.images().replace(pa.Table.from_pylist(table, schema=schema))
    return run


def observations(run: Run, judge: str) -> list[dict[str, Any]]:
    """What a judge has observed, in the order of the images."""
    order = run.images().read(["image_id"])["image_id"].to_pylist()
    found = {row["image_id"]: row for row in run.observations(judge).read().to_pylist()}
    assert sorted(found) == sorted(order)
    return [found[identity] for identity in order]
