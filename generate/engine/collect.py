"""The one writer of a run: finished batches in, durable parts out, whichever engine computed them.

Writing runs one batch behind: while batch k + 1 is computed, batch k is waited for, encoded and appended, on a thread of its own. The
next batch is handed over only when the one before is durable. A SIGKILL therefore costs at most one finished batch and what was being
computed (of either, one a device); every batch before is in the journal, and the same command goes on from there.
"""

from __future__ import annotations

import signal
import textwrap
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import TypeVar

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

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.local import Batch, Job
from t2i_parity.generate.parts import Parts

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tally:
    """How a stage went: rows that were there before, done now, failed now (and how many for which reason); and whether a signal ended it
    early."""

    before: int
    done: int
    failed: int
    stopped: bool
    reasons: Mapping[str, int] = field(default_factory=dict)


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("–/s" if speed is None else f"{speed:.1f}/s", style="progress.data.speed")


@contextmanager
def bars(console: Console, *, hidden: bool = False) -> Iterator[Progress]:
    """Bars with rate and time left, one for each ``collect`` that is given them."""
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=hidden,
    )
    with progress:
        yield progress


def collect(
    jobs: Iterable[Job],
    *,
    total: int,
    before: int,
    parts: Parts,
    label: str,
    progress: Progress,
    stop: threading.Event,
    halved: Callable[[int], None] = lambda size: None,
) -> Tally:
    """Finish and append what ``jobs`` gives, until it ends; what was appended is folded into parts in any case.

    ``total`` rows are to come and ``before`` were there already. ``halved`` is told the size of the batches when memory ran short. Who
    makes the jobs looks at ``stop`` (see ``until``), knowing what is in flight; here it tells only whether the end came early.
    """
    done = failed = 0
    reasons: Counter[str] = Counter()
    smallest: int | None = None
    task = progress.add_task(label, total=total + before, completed=before)
    parts.check_room(total)

    def append(job: Job) -> None:
        nonlocal done, failed, smallest
        batch: Batch = job()
        parts.append(batch.table)
        if batch.kept is not None:
            batch.kept()
        done += len(batch.table)
        failed += batch.failed
        if batch.failed:
            rows = batch.table.select(["status", "reason"]).to_pylist()
            reasons.update(reason_of(row["reason"]) for row in rows if row["status"] != "ok")
        progress.update(task, advance=len(batch.table))
        if batch.halved_to is not None and (smallest is None or batch.halved_to < smallest):
            smallest = batch.halved_to
            halved(smallest)
        if done < total and (warning := parts.short_of_room(total - done)):
            progress.console.print(warning, markup=False, style="yellow", soft_wrap=True)

    with ThreadPoolExecutor(1, thread_name_prefix="writer") as writer:
        behind: Future[None] | None = None
        try:
            for job in jobs:
                if behind is not None:
                    behind.result()
                behind = writer.submit(append, job)
            if behind is not None:
                behind.result()
        except BaseException:
            # What ended the run is what is told; that the disk which is full takes no fold either is no news.
            with suppress(Exception):
                if behind is not None:
                    behind.result()
            with suppress(InputError):
                parts.fold()
            raise
    parts.fold()
    return Tally(before, done, failed, stop.is_set() and done < total, dict(reasons.most_common()))


def reason_of(told: str | None) -> str:
    """The first line of a row's reason, short.

    >>> reason_of("TypeError: <Model object> is none\\nmore")
    'TypeError: <Model object> is none'
    """
    lines = (told or "no reason was given").strip().splitlines()
    return textwrap.shorten(lines[0], 200, placeholder=" …")


def until(stop: threading.Event, items: Iterable[T]) -> Iterator[T]:
    """The items up to the moment at which ``stop`` is set."""
    for item in items:
        if stop.is_set():
            return
        yield item


@contextmanager
def stop_signals() -> Iterator[threading.Event]:
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
