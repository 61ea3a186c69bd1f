"""One process: batches of rows through a worker, each batch durable before the next, failures kept row by row."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Generic, TypeVar

import pyarrow as pa
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from dataset_builder.errors import InputError
from generate.parts import Parts

Row = TypeVar("Row")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a row has no result. ``refused`` tells a model that declined from one that broke."""

    reason: str
    refused: bool = False

    @property
    def status(self) -> str:
        """``refused`` or ``failed``."""
        return "refused" if self.refused else "failed"


class RefusedError(Exception):
    """Raised by a model or judge that declines a row; recorded as ``refused``, never tried again within the run."""


@dataclass(frozen=True, slots=True)
class Tally(Generic[Row]):
    """How a stage went: rows that were there before, done now, failed now; and whether a signal ended it early."""

    before: int
    done: int
    failed: int
    stopped: bool


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("–/s" if speed is None else f"{speed:.1f}/s", style="progress.data.speed")


def process(
    batches: Iterable[Sequence[Row]],
    *,
    total: int,
    before: int,
    work: Callable[[Sequence[Row]], Sequence[Result | Failure]],
    to_table: Callable[[Sequence[Row], Sequence[Result | Failure]], pa.Table],
    parts: Parts,
    label: str,
    console: Console,
) -> Tally[Row]:
    """Send batches through ``work`` and append what comes back; SIGINT and SIGTERM end it cleanly after the batch in flight.

    A batch that raises is tried again row by row, so that one bad row costs no other; a row that raises becomes a Failure with its
    reason. InputError passes through: it is about the whole run, not a row.
    """
    done = failed = 0
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=total == 0,
    )
    with progress, _stop_signals() as stop:
        task = progress.add_task(label, total=total + before, completed=before)
        try:
            for batch in batches:
                if stop.is_set():
                    break
                results = _attempt(batch, work)
                parts.append(to_table(batch, results))
                done += len(batch)
                failed += sum(isinstance(result, Failure) for result in results)
                progress.update(task, advance=len(batch))
        finally:
            parts.fold()
    return Tally(before=before, done=done, failed=failed, stopped=stop.is_set() and done < total)


def _attempt(batch: Sequence[Row], work: Callable[[Sequence[Row]], Sequence[Result | Failure]]) -> Sequence[Result | Failure]:
    try:
        results = work(batch)
    except InputError:
        raise
    except RefusedError as error:
        return [Failure(str(error), refused=True)] if len(batch) == 1 else _one_by_one(batch, work)
    except Exception as error:
        return [Failure(f"{type(error).__name__}: {error}")] if len(batch) == 1 else _one_by_one(batch, work)
    if len(results) != len(batch):
        raise RuntimeError(f"{len(batch)} rows went in and {len(results)} results came out")
    return results


def _one_by_one(batch: Sequence[Row], work: Callable[[Sequence[Row]], Sequence[Result | Failure]]) -> list[Result | Failure]:
    return [result for row in batch for result in _attempt([row], work)]


def in_batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """Consecutive slices of at most ``size`` rows.

    >>> list(in_batches([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


@contextmanager
def _stop_signals() -> Iterator[threading.Event]:
    """SIGINT and SIGTERM set the event instead of ending the process; a second one ends it as usual."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    previous = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: FrameType | None) -> None:
        stop.set()
        for each, handler in previous.items():
            signal.signal(each, handler)

    for number in previous:
        signal.signal(number, ask)
    try:
        yield stop
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
