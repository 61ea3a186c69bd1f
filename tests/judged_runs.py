"""Runs to be judged, made without a model: prompts of content generation with a plain picture each."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
from PIL import Image

from t2i_parity.generate.run import Run, image_features

DIMENSIONS = ("TA-C", "R-T", "R-B")
LANGUAGES = ("en", "hi")
MEANINGS = 2


def content_run(folder: Path, *, missing: int = 0) -> str:
    """14 rows: three dimensions, two languages, two meanings, then an English prompt with a culture tag and one without; the first
    ``missing`` rows have no image."""
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": "m"}}, "packages": {}})
    run.write_record()
    rows = [
        row_of(f"{dimension}-{meaning}", language, dimension=dimension)
        for dimension in DIMENSIONS
        for meaning in range(MEANINGS)
        for language in LANGUAGES
    ]
    rows.append(row_of("tagged", "en", subset="culture_tag_hi", dimension="TA-C"))
    rows.append(row_of("neutral", "en", subset="culture_neutral", dimension="TA-C"))
    for number, row in enumerate(rows):
        if number < missing:
            row |= {"status": "failed", "reason": "the model broke"}
        else:
            row["image"] = {"bytes": _png(number), "path": f"{row['image_id']}.png"}
    run.images().replace(pa.Table.from_pylist(rows, schema=image_features().arrow_schema))
    return str(folder)


def row_of(meaning: str, language: str, *, subset: str = "lingt2i_content", **columns: Any) -> dict[str, Any]:
    """One image row without its image."""
    identity = f"{subset}-{meaning}-{language}"
    given = {
        "image_id": identity,
        "prompt_id": identity,
        "pair_id": meaning,
        "prompt": f"a prompt about {meaning} with {{braces}}",
        "language": language,
        "subset": subset,
        "status": "ok",
    }
    return {**dict.fromkeys(image_features().arrow_schema.names), **given, **columns}


def _png(number: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (64 + number, 48), (17 * number % 256, 90, 140)).save(buffer, "PNG")
    return buffer.getvalue()
