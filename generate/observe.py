"""Images → observations, and prompts → verdicts: every instrument goes through here, so that all resume alike."""

from __future__ import annotations

import io
import os
import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa
from PIL import Image
from rich.console import Console
from rich.progress import Progress

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.prompts import PROMPT_COLUMNS, Prompt
from t2i_parity.generate.engine.collect import Tally, bars, collect, stop_signals, until
from t2i_parity.generate.engine.local import RETRIES, Batch, Failure, Job, Outcome, Worker, in_batches
from t2i_parity.generate.filters import VERDICT_COLUMNS, Asked
from t2i_parity.generate.judges import Judge
from t2i_parity.generate.parts import Parts
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow
from t2i_parity.generate.run import Run
from t2i_parity.metrics import stored
from t2i_parity.metrics._common import Signature

IMAGE_COLUMNS = ["image_id", *PROMPT_COLUMNS, "status", "reason", "image"]
"""What is read of an image row for its judges."""


def judge(
    run: Run,
    instruments: Mapping[str, Judge],
    *,
    batch_size: int,
    console: Console,
    retries: int = RETRIES,
    repair: bool = False,
) -> dict[str, Tally]:
    """Observe every image of the run, in one pass, with each instrument that has not observed it yet; a tally by instrument's name.

    Images are read and decoded once, a batch ahead of the instruments, each of which has a thread, parts and a resuming of its own: one
    that fails on a row or a batch, or altogether, costs the others nothing. An image that was never made gets an observation too:
    missing, with the reason, so that no row is silently left out. Raises InputError, when the others are through, for an instrument that
    could not go on.
    """
    rows = image_rows(run)
    stages = []
    for name, instrument in instruments.items():
        # A signature may depend on the rows' languages, which a judge is shown here.
        instrument.check(rows)
        parts = begin(run, name, instrument.signature(), console, repair=repair)
        see = Observing(instrument, retries=retries)
        stages.append(Stage(name, instrument.signature(), instrument.columns, parts, see, [row["image_id"] for row in rows]))
    skip = set.intersection(*(stage.done for stage in stages))

    def decoded() -> Iterator[list[SeenRow]]:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1), thread_name_prefix="decode") as decoders:
            for batch in run.images().batches(IMAGE_COLUMNS, batch_size, skip=skip):
                yield list(decoders.map(decoded_row, batch))

    return one_pass(run, stages, decoded(), console)


def one_pass(run: Run, stages: Sequence[Stage], batches: Iterable[list[SeenRow]], console: Console) -> dict[str, Tally]:
    """Each batch to every stage, whichever way its rows are observed; a tally by the stage's name."""
    with bars(console, hidden=not any(stage.total for stage in stages)) as progress, stop_signals() as stop:
        threads = [threading.Thread(target=stage.run, args=(run, progress, stop), name=f"judge-{stage.name}") for stage in stages]
        for thread in threads:
            thread.start()
        try:
            for batch in until(stop, batches) if any(stage.total for stage in stages) else ():
                for stage in stages:
                    stage.put(batch)
                if all(stage.ended.is_set() for stage in stages):
                    break
        finally:
            for stage in stages:
                stage.put(None)
            for thread in threads:
                thread.join()
    errors = [stage.error for stage in stages if stage.error is not None]
    if errors:
        raise next((error for error in errors if not isinstance(error, InputError)), errors[0])
    return {stage.name: stage.tally for stage in stages if stage.tally is not None}


def image_rows(run: Run) -> list[ImageRow]:
    """Every image row of a run without its image. Raises InputError when there is none."""
    rows: list[ImageRow] = run.images().read(["image_id", *PROMPT_COLUMNS, "status"]).to_pylist()
    if not rows:
        raise InputError(f"{run.url} holds no images to judge; generate them first: t2i-parity generate --out {run.url}")
    return rows


class Stage:
    """One instrument of a pass: what it has to do, and how it ended. ``see`` gives an outcome for each of a batch's rows."""

    def __init__(
        self,
        name: str,
        signature: str,
        columns: Mapping[str, pa.DataType],
        parts: Parts,
        see: Callable[[Sequence[SeenRow]], Sequence[Outcome[Observation]]],
        ids: Sequence[str],
    ) -> None:
        self.name = name
        self.done = parts.ids()
        self.total = sum(identity not in self.done for identity in ids)
        self.ended = threading.Event()
        self.tally: Tally | None = None
        self.error: BaseException | None = None
        self._before = len(ids) - self.total
        self._signature = signature
        self._columns = columns
        self._parts = parts
        self._see = see
        self._coming: queue.Queue[list[SeenRow] | None] = queue.Queue(1)

    def put(self, batch: list[SeenRow] | None) -> None:
        """Hand in a batch, None after the last; waits while the instrument has one waiting already."""
        while not self.ended.is_set():
            with suppress(queue.Full):
                self._coming.put(batch, timeout=0.2)
                return

    def run(self, run: Run, progress: Progress, stop: threading.Event) -> None:
        """Observe until the end; what ended it early is kept in ``error``."""
        try:
            self.tally = collect(
                self._jobs(stop),
                total=self.total,
                before=self._before,
                parts=self._parts,
                label=f"read by {self.name}",
                progress=progress,
                stop=stop,
                halved=lambda size: run.note_halved(self._parts.name, size),
            )
        except BaseException as error:
            self.error = error
        finally:
            self.ended.set()

    def _jobs(self, stop: threading.Event) -> Iterator[Job]:
        for batch in until(stop, iter(self._coming.get, None)):
            fresh = [row for row in batch if row["image_id"] not in self.done]
            if fresh:
                ids = [row["image_id"] for row in fresh]
                yield partial(observations, "image_id", ids, self._see(fresh), self._signature, self._columns)


class Observing:
    """A judge at work on decoded rows; an image that is missing or cannot be decoded is not shown to it."""

    def __init__(self, instrument: Judge, *, retries: int = RETRIES) -> None:
        self._instrument = instrument
        self._worker: Worker[SeenRow, Observation] = Worker(self._work, retries=retries)

    def __call__(self, rows: Sequence[SeenRow]) -> list[Outcome[Observation]]:
        """One outcome a row."""
        return self._worker(rows)

    def _work(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        there = [row for row in rows if not isinstance(row["image"], Failure)]
        found = self._instrument.observe(there) if there else []
        if len(found) != len(there):
            raise RuntimeError(f"{len(there)} images went in and {len(found)} observations came out")
        seen = iter(found)
        return [row["image"] if isinstance(row["image"], Failure) else next(seen) for row in rows]


def audit(
    run: Run,
    rows: Sequence[Prompt],
    text_filter: Asked,
    *,
    name: str,
    batch_size: int,
    console: Console,
    retries: int = RETRIES,
    retry_failed: bool = False,
    columns: Mapping[str, pa.DataType] = VERDICT_COLUMNS,
) -> Tally:
    """Ask the filter about every prompt that it has not been asked about yet; an encoder is asked alike, and answers other ``columns``."""
    parts = begin(run, name, text_filter.signature(), console)
    if retry_failed:
        kept = parts.read(["prompt_id", "status"]).to_pylist() if parts.ids() else []
        parts.drop(row["prompt_id"] for row in kept if row["status"] == "failed")
    done = parts.ids()
    todo = [row for row in rows if row["prompt_id"] not in done]
    worker: Worker[Prompt, Any] = Worker(lambda batch: text_filter.judge([row["prompt"] for row in batch]), retries=retries)

    def verdicts(batch: Sequence[Prompt], started: Sequence[Outcome[Any]]) -> Batch:
        outcomes = [Outcome(_row(each.result), each.batch_size, each.attempts) for each in worker.settle(batch, started)]
        return observations("prompt_id", [row["prompt_id"] for row in batch], outcomes, text_filter.signature(), columns)

    def jobs(batches: Iterable[Sequence[Prompt]]) -> Iterator[Job]:
        for batch in batches:
            yield partial(verdicts, batch, worker.start(batch))

    with bars(console, hidden=not todo) as progress, stop_signals() as stop:
        return collect(
            jobs(until(stop, in_batches(todo, batch_size))),
            total=len(todo),
            before=len(rows) - len(todo),
            parts=parts,
            label=f"asked {name}",
            progress=progress,
            stop=stop,
            halved=lambda size: run.note_halved(parts.name, size),
        )


def _row(result: Any) -> Any:
    return result if isinstance(result, Failure) else result.row()


def decoded_row(row: Mapping[str, Any]) -> SeenRow:
    """An image row as it is kept with its image decoded, or with the reason why there is none."""
    seen: SeenRow = {**row, "image": _decoded(row)}  # type: ignore[typeddict-item]
    return seen


def _decoded(row: Mapping[str, Any]) -> Image.Image | Failure:
    if row["image"] is None:
        return Failure(f"no image: {row['status']}: {row['reason']}")
    try:
        with Image.open(io.BytesIO(row["image"]["bytes"])) as opened:
            return opened.convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        return Failure(f"the image cannot be decoded: {error}")


def begin(run: Run, name: str, signature: str, console: Console, *, repair: bool = False) -> Parts:
    """The parts of a judge in this run. Raises InputError when they were observed under other settings."""
    parts = run.observations(name)
    run.tell_set_aside(parts.recover(repair=repair), console)
    known = run.record.setdefault("judges", {})
    if stored.instrument(known.get(name, signature)) != Signature.parse(signature) and parts.ids():
        raise InputError(
            f"{run.url} has observations by {name} under other settings ({known[name]} there, {signature} now). "
            "Keep both by giving these a name of their own: --as NAME"
        )
    known[name] = signature
    run.write_record()
    return parts


def observations(
    key: str, ids: Sequence[str], outcomes: Sequence[Outcome[Any]], signature: str, columns: Mapping[str, pa.DataType]
) -> Batch:
    """Observation rows: ``key``, ``judge``, what was seen, ``status`` and ``reason``."""
    schema = pa.schema([(key, pa.string()), ("judge", pa.string()), *columns.items(), ("status", pa.string()), ("reason", pa.string())])
    rows = []
    for identity, outcome in zip(ids, outcomes, strict=True):
        result = outcome.result
        rows.append(
            {
                key: identity,
                "judge": signature,
                **dict.fromkeys(columns),
                **(result if isinstance(result, dict) else {}),
                "status": result.status if isinstance(result, Failure) else "ok",
                "reason": result.reason if isinstance(result, Failure) else None,
            }
        )
    return Batch.of(pa.Table.from_pylist(rows, schema=schema), outcomes)
