"""Prompts → images: what to generate, and how a batch becomes durable rows."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Protocol

import pyarrow as pa
from PIL import Image
from rich.console import Console

from t2i_parity.cards.documents import Json
from t2i_parity.dataset_builder.errors import first_line
from t2i_parity.generate.engine.collect import Tally, bars, collect, stop_signals, until
from t2i_parity.generate.engine.local import RETRIES, Batch, Failure, Job, Outcome, Worker, answer, in_batches, jobs
from t2i_parity.generate.models import TextToImageModel
from t2i_parity.generate.rows import PlannedRow, WordedRow
from t2i_parity.generate.run import Run, fingerprint, image_features, image_id, seed_of

OPTIONAL = ("announce", "execution", "prepare", "rows_at_once")
"""What some models tell: a line before the first of so many images (what they cost), and the size of batch that suits them."""


class Maker(Protocol):
    """A model at work, in this process or in others: what an engine is to this module."""

    def ask(self, question: str, *arguments: Any) -> Any:
        """The answer of one of the model's methods, or the value of one of its attributes."""

    def jobs(self, batches: Iterable[Sequence[PlannedRow]], stop: threading.Event) -> Iterator[Job]:
        """Every batch computed, until ``stop`` is set; what is left to do for each is the job."""


@dataclass(frozen=True, slots=True)
class Loading:
    """How a process gets its own model: what loads it (picklable), from which settings, and how often a row is tried again."""

    load: Callable[[Mapping[str, str]], TextToImageModel]
    options: Mapping[str, str]
    retries: int = RETRIES

    def on(self, device: str) -> Loading:
        """The same on a device of one's choice."""
        return replace(self, options={**self.options, "device": device})

    def __call__(self) -> Studio:
        """The loaded model at work."""
        return Studio(self.load(self.options), retries=self.retries)

    def failed(self, rows: Sequence[PlannedRow], reason: str, attempts: int) -> Batch:
        """Image rows without images, for one reason."""
        return image_rows(rows, [Outcome(Failure(reason), len(rows), attempts)] * len(rows))


class Studio:
    """A model at work in this process (a ``Station`` of the engines): generates on one thread, encodes PNG on others."""

    def __init__(self, model: TextToImageModel, *, retries: int = RETRIES) -> None:
        self.model = model
        self._worker: Worker[PlannedRow, Image.Image] = Worker(
            lambda rows: model.generate(rows, [row["seed"] for row in rows]),
            retries=retries,
        )
        self._encoders = ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="png")

    def ask(self, question: str, *arguments: Any) -> Any:
        """The answer of one of the model's methods, or the value of one of its attributes.

        ``batch_keys`` of rows is each one's ``batch_key``, None for a model that has none; the ``OPTIONAL`` ones are None likewise.
        """
        if question in OPTIONAL and not hasattr(self.model, question):
            return None
        if question == "batch_keys":
            key = getattr(self.model, "batch_key", None)
            return None if key is None else [key(row) for row in arguments[0]]
        return answer(self.model, question, *arguments)

    def start(self, rows: Sequence[PlannedRow]) -> list[Outcome[Image.Image]]:
        """Generate."""
        return self._worker.start(rows)

    def finish(self, rows: Sequence[PlannedRow], started: list[Outcome[Image.Image]]) -> Batch:
        """Wait for what comes late, encode, and make the image rows."""
        return image_rows(rows, list(self._encoders.map(_encoded, self._worker.settle(rows, started))))

    def jobs(self, batches: Iterable[Sequence[PlannedRow]], stop: threading.Event) -> Iterator[Job]:
        """Each batch computed here, in its order; a stop ends it after the one in flight."""
        return jobs(self, until(stop, batches))


def planned(
    rows: Sequence[WordedRow], record: Json, *, seed: int, images_per_prompt: int, guardrail: str | None = None
) -> list[PlannedRow]:
    """The image rows to make, without their images: id and seed of each, from the row, the model's record and the seed index alone.

    ``guardrail`` is the fingerprint of what guards the model; it changes ids, and no seed.
    """
    made_by = fingerprint(record)
    return [
        {
            **row,
            "image_id": image_id(row["prompt_id"], row["text_sha256"], made_by, guardrail, index),
            "seed_index": index,
            "seed": seed_of(seed, row["pair_id"], index),
        }
        for index in range(images_per_prompt)
        for row in rows
    ]


def generate(
    run: Run,
    plan: Sequence[PlannedRow],
    maker: Maker,
    *,
    batch_size: int,
    console: Console,
    retry_failed: bool = False,
    repair: bool = False,
) -> Tally:
    """Make the planned images that the run does not have yet; a row that fails is kept with its reason.

    Rows go through the model in the order of its ``batch_key``, if it has one, so that those of like size and length share a batch;
    ids and pixels do not depend on that.
    """
    parts = run.images()
    run.tell_set_aside(parts.recover(repair=repair), console)
    if retry_failed:
        kept = parts.read(["image_id", "status"]).to_pylist()
        parts.drop(row["image_id"] for row in kept if row["status"] == "failed")
    done = parts.ids()
    todo = [row for row in plan if row["image_id"] not in done]
    batches = batched(todo, batch_size, maker)
    if todo and (told := maker.ask("announce", len(todo))) is not None:
        console.print(told, markup=False, soft_wrap=True)
    if todo:
        maker.ask("prepare", todo)
    with bars(console, hidden=not todo) as progress, stop_signals() as stop:
        return collect(
            maker.jobs(batches, stop) if todo else (),
            total=len(todo),
            before=len(plan) - len(todo),
            parts=parts,
            label=f"images by {maker.ask('name')}",
            progress=progress,
            stop=stop,
            halved=lambda size: run.note_halved("images", size),
        )


def batched(rows: Sequence[PlannedRow], size: int, maker: Maker) -> Iterator[Sequence[PlannedRow]]:
    """Batches of at most ``size``; where the model has a ``batch_key``, sorted by it."""
    keys = maker.ask("batch_keys", rows)
    if keys is None:
        return in_batches(rows, size)
    order = sorted(range(len(rows)), key=keys.__getitem__)
    return in_batches([rows[number] for number in order], size)


@cache
def _schema() -> pa.Schema:
    return image_features().arrow_schema


@dataclass(frozen=True, slots=True)
class _Encoded:
    """An image as it is kept."""

    png: bytes
    width: int
    height: int


def _encoded(outcome: Outcome[Image.Image]) -> Outcome[_Encoded]:
    made = outcome.result
    if isinstance(made, Image.Image):
        buffer = io.BytesIO()
        try:
            # Level 1 is four times as fast as the default and a few percent larger.
            made.save(buffer, "PNG", compress_level=1)
        except (OSError, ValueError) as error:
            return Outcome(Failure(f"the image cannot be kept as PNG: {first_line(error)}"), outcome.batch_size, outcome.attempts)
        return Outcome(_Encoded(buffer.getvalue(), made.width, made.height), outcome.batch_size, outcome.attempts)
    if isinstance(made, Failure):
        return Outcome(made, outcome.batch_size, outcome.attempts)
    return Outcome(Failure(f"the model gave a {type(made).__name__} instead of an image"), outcome.batch_size, outcome.attempts)


def image_rows(rows: Sequence[PlannedRow], outcomes: Sequence[Outcome[_Encoded]]) -> Batch:
    """The image rows of a batch."""
    schema = _schema()
    made = [_image_row(row, outcome, schema.names) for row, outcome in zip(rows, outcomes, strict=True)]
    return Batch.of(pa.Table.from_pylist(made, schema=schema), outcomes)


def _image_row(row: PlannedRow, outcome: Outcome[_Encoded], names: Sequence[str]) -> dict[str, Any]:
    made = outcome.result
    values: dict[str, Any] = {**row, "batch_size": outcome.batch_size, "attempts": outcome.attempts, "status": "ok"}
    if isinstance(made, _Encoded):
        image = {"bytes": made.png, "path": f"{row['image_id']}.png"}
        values.update(image=image, width=made.width, height=made.height)
    elif isinstance(made, Failure):
        values.update(status=made.status, reason=made.reason)
    return {name: values.get(name) for name in names}
