"""From runs to the pictures of a survey: which images may be shown to whom, encoded anew so that nothing tells what made them."""

from __future__ import annotations

import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from PIL import Image, ImageOps

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.storage import Folder, parquet_bytes, read_parquet

if TYPE_CHECKING:
    from t2i_parity.generate.run import Run

SIDE = 640
"""Pixels of the longer side of every picture shown: a model must not be known by its size."""
QUALITY = 88
"""WebP quality."""
MAX_PIXELS = 64 * 2**20
"""A larger image is refused unread."""
BATCH = 16


@dataclass(frozen=True, slots=True)
class Picture:
    """One picture that may be shown: whose country, what was asked for, what made it, and the encoded bytes.

    ``country`` is the alpha-3 code that the prompt named, None for an unspecified prompt, which every country's participants may see.
    """

    image_id: str
    pair_id: str
    noun: str
    country: str | None
    model: str
    run: str
    webp: bytes

    @property
    def condition(self) -> str:
        """``country`` or ``unspecified``."""
        return "unspecified" if self.country is None else "country"


def gather(
    runs: Sequence[str], countries: Sequence[str], *, done: Callable[[int], None] | None = None
) -> tuple[list[Picture], Counter[str]]:
    """The pictures of these runs for participants of these countries, in the order of the runs, and how many were left out by reason.

    Left out are images that failed, that no prompt of the geographical study asked for, of other countries, of prompts that are toxic on
    purpose, that a safety judge of the run finds unsafe, or that cannot be read. ``done`` is told of each batch. Raises InputError where
    nothing is left, an image stands in two runs, or a country has no picture with its name in the prompt.
    """
    # Here, since a Space shows pictures that were gathered before, and has no runs.
    from t2i_parity.generate.run import Run

    pictures: list[Picture] = []
    left_out: Counter[str] = Counter()
    for url in runs:
        for picture in _of_run(Run.open(url), set(countries), left_out, done):
            pictures.append(picture)
    twice = [identity for identity, n in Counter(picture.image_id for picture in pictures).items() if n > 1]
    if twice:
        raise InputError(f"image {twice[0]!r} stands in the given runs more than once; give each run once, and no copies of a run")
    told = "; ".join(f"{n} {reason}" for reason, n in left_out.most_common()) or "the runs hold no images"
    if not pictures:
        raise InputError(
            f"no image of {', '.join(runs)} can be shown ({told}). A survey needs images of the config geo: "
            "t2i-parity generate --prompts PROMPTS --config geo …"
        )
    lacking = [country for country in countries if all(picture.country != country for picture in pictures)]
    if lacking:
        raise InputError(
            f"there is no picture whose prompt names {', '.join(lacking)} ({told}). Generate those prompts "
            f"(t2i-parity generate --config geo --only country=unspecified,{','.join(lacking)} …), or leave the country out"
        )
    return pictures, left_out


def _of_run(run: Run, countries: set[str], left_out: Counter[str], done: Callable[[int], None] | None) -> Iterator[Picture]:
    if run.record.get("kind") != "generation":
        raise InputError(f"{run.url} is a run of {run.record.get('kind')!r} and holds no images; give runs of t2i-parity generate")
    model = str(run.record["identity"]["model"].get("model", run.name))
    if Path(model).is_absolute():
        # Ratings are published; where somebody keeps their models is their own business.
        model = Path(model).name
    unsafe = _unsafe(run)
    columns = ["image_id", "pair_id", "noun", "country", "label", "dimension", "status", "image"]
    with ThreadPoolExecutor(4, thread_name_prefix="webp") as pool:
        for rows in run.images().batches(columns, BATCH):
            shown = []
            for row in rows:
                reason = _reason(row, countries, unsafe)
                if reason is None:
                    shown.append(row)
                else:
                    left_out[reason] += 1
            for row, webp in zip(shown, pool.map(lambda row: encoded(row["image"]["bytes"]), shown), strict=True):
                if webp is None:
                    left_out["cannot be read"] += 1
                else:
                    yield Picture(row["image_id"], row["pair_id"], row["noun"], row["country"], model, run.name, webp)
            if done is not None:
                done(len(rows))


def _reason(row: Mapping[str, Any], countries: set[str], unsafe: set[str]) -> str | None:
    """Why an image is not shown; None for one that is."""
    from t2i_parity.generate.publish import TOXICITY

    if row["status"] != "ok" or not row["image"] or not row["image"]["bytes"]:
        return "without an image"
    if not row["noun"]:
        return "of prompts without a noun"
    if row["country"] is not None and row["country"] not in countries:
        return "of other countries"
    if row["label"] == "toxic" or (row["dimension"] or "").startswith(TOXICITY):
        return "of prompts that are toxic on purpose"
    if row["image_id"] in unsafe:
        return "found unsafe by a judge of the run"
    return None


def _unsafe(run: Run) -> set[str]:
    """The images that any safety judge of the run finds unsafe, by the rule that scoring has, or is not certain about."""
    from t2i_parity.generate.audit.image_level import is_toxic

    found: set[str] = set()
    for judge in run.judges():
        table = run.observations(judge).read()
        if "probabilities" in table.column_names:
            found.update(row["image_id"] for row in table.to_pylist() if is_toxic(row) or row.get("verdict") == "uncertain")
    return found


def encoded(data: bytes) -> bytes | None:
    """A picture with its longer side at ``SIDE`` pixels, as WebP without metadata; None for what is no picture or is too large."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image: Image.Image = Image.open(io.BytesIO(data))
            if image.width * image.height > MAX_PIXELS:
                return None
            image = ImageOps.exif_transpose(image)
            if image.mode not in ("RGB", "L"):
                image = image.convert("RGBA")
                ground = Image.new("RGBA", image.size, "white")
                image = Image.alpha_composite(ground, image)
            image = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    scale = SIDE / max(image.size)
    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    # A new image, so that no profile, comment or text of the old one comes along.
    clean = Image.new("RGB", size)
    clean.paste(image.resize(size, Image.Resampling.LANCZOS))
    buffer = io.BytesIO()
    clean.save(buffer, "WEBP", quality=QUALITY, method=2)
    return buffer.getvalue()


_SCHEMA = pa.schema([pa.field(field.name, pa.binary() if field.name == "webp" else pa.string()) for field in fields(Picture)])


def write_pictures(pictures: Sequence[Picture], folder: Folder, name: str) -> None:
    """All of them as one parquet file, for a Space that has no runs."""
    table = pa.Table.from_pylist([{field.name: getattr(picture, field.name) for field in fields(Picture)} for picture in pictures], _SCHEMA)
    folder.write(parquet_bytes(table, row_group_rows=100), name)


def read_pictures(folder: Folder, name: str) -> list[Picture]:
    """What :func:`write_pictures` wrote. Raises InputError where it is not there or is torn."""
    if not folder.exists(name):
        raise InputError(f"{folder.path(name)} is not there; t2i-parity survey RUN --space FOLDER writes it")
    return [Picture(**row) for row in read_parquet(folder, folder.path(name)).to_pylist()]
