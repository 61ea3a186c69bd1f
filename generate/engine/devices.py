"""One process a device, on this machine: each has its own copy of the model, and the process that began them is the only writer.

A device is given its next batch when one of its two before is durable, so that it computes one while the other is encoded, sent and
appended. A process that dies (a crash in native code, the kernel's out-of-memory killer) is begun anew, and its rows are tried one by
one; a row at which a process dies time and again becomes a failure.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Protocol

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.collect import until
from t2i_parity.generate.engine.local import Batch, Job, Station

PREPARING = ("check", "prepare")
"""What a station is told before its first batch; one that is begun anew is told it again."""
AT_ONCE = 2
"""Batches of a device that are not durable yet: the one it computes, and the one before."""


class Recipe(Protocol):
    """How a process gets its station; picklable."""

    @property
    def retries(self) -> int:
        """How often a row is tried again."""

    def on(self, device: str) -> Recipe:
        """The same for a device."""

    def __call__(self) -> Station:
        """The station, made in the process that calls this."""

    def failed(self, rows: Sequence[Any], reason: str, attempts: int) -> Batch:
        """What is kept of rows whose process died over them."""


class Devices:
    """A station on each of the named devices, as one; a context that ends the processes.

    Raises InputError when one of them cannot be made.
    """

    def __init__(self, recipe: Recipe, devices: Sequence[str]) -> None:
        if not all(devices):
            raise InputError("--devices expects names separated by commas, e.g. cuda:0,cuda:1")
        self._recipe = recipe
        self._told: list[tuple[str, tuple[Any, ...]]] = []
        threads = max(1, (os.cpu_count() or 1) // len(devices))
        self._processes = [_Process(recipe.on(device), device, threads) for device in devices]
        try:
            for process in self._processes:
                process.ready()
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> Devices:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in self._processes:
            process.end()

    def ask(self, question: str, *arguments: Any) -> Any:
        """The stations' answer. Raises InputError when they are of different minds, as devices of different kinds are."""
        for process in self._processes:
            process.ask(question, arguments)
        answers = [process.answer() for process in self._processes]
        if question in PREPARING:
            self._told.append((question, arguments))
        if question == "device":
            return ",".join(answers)
        if any(answer != answers[0] for answer in answers):
            named = "; ".join(f"{process.device}: {answer}" for process, answer in zip(self._processes, answers, strict=True))
            raise InputError(f"--devices: the model is not the same on all of them ({question}: {named}). Give devices of one kind")
        return answers[0]

    def jobs(self, batches: Iterable[Sequence[Any]], stop: threading.Event) -> Iterator[Job]:
        """Every batch computed, in the order in which they are done; a stop ends it after those in flight."""
        coming = _Shared(until(stop, batches))
        done: queue.SimpleQueue[Batch | BaseException | None] = queue.SimpleQueue()
        for process in self._processes:
            threading.Thread(target=self._drive, args=(process, coming, done), name=f"drive-{process.device}", daemon=True).start()
        running = len(self._processes)
        while running:
            batch = done.get()
            if batch is None:
                running -= 1
            elif isinstance(batch, BaseException):
                raise batch
            else:
                yield partial(_given, batch)

    def _drive(self, process: _Process, coming: _Shared, done: queue.SimpleQueue[Batch | BaseException | None]) -> None:
        """Keep one process busy until nothing is coming; what it makes, or what ends it, goes into ``done``."""
        try:
            while lost := process.work(coming, done):
                process.restart(self._told)
                alone = deque((row, 1) for rows in lost for row in rows)
                while alone:
                    row, deaths = alone.popleft()
                    if process.work(iter([[row]]), done):
                        deaths += 1
                        if deaths > self._recipe.retries:
                            reason = f"the process on {process.device} died over this row {deaths} times ({process.end_told()})"
                            done.put(self._recipe.failed([row], reason, deaths))
                        else:
                            alone.append((row, deaths))
                        process.restart(self._told)
            done.put(None)
        except BaseException as error:
            done.put(error)


class _Shared:
    """An iterator that threads may share."""

    def __init__(self, items: Iterable[Sequence[Any]]) -> None:
        self._items = iter(items)
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Sequence[Any]]:
        return self

    def __next__(self) -> Sequence[Any]:
        with self._lock:
            return next(self._items)


class _Process:
    """The process of one device, seen from the one that began it."""

    def __init__(self, recipe: Recipe, device: str, threads: int) -> None:
        self.device = device
        self._recipe = recipe
        self._threads = threads
        self._ending = False
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._recipe, self._threads), name=f"device-{self.device}", daemon=True
        )
        self._process.start()
        theirs.close()

    def ready(self) -> None:
        """Wait until the station is made. Raises InputError when it cannot be."""
        try:
            self._checked(self._connection.recv())
        except (EOFError, OSError):
            raise InputError(
                f"the process on {self.device} ended before its model was loaded ({self.end_told()}); "
                "what it printed last stands above. Is there memory enough for one copy of the model a device?"
            ) from None

    def ask(self, question: str, arguments: tuple[Any, ...]) -> None:
        """Put a question, to be answered by ``answer``."""
        self._connection.send(("ask", question, arguments))

    def answer(self) -> Any:
        """The answer to the oldest open question."""
        try:
            return self._checked(self._connection.recv())
        except (EOFError, OSError):
            raise InputError(f"the process on {self.device} ended while it was asked about its model ({self.end_told()})") from None

    def work(self, batches: Iterator[Sequence[Any]], done: queue.SimpleQueue[Batch | BaseException | None]) -> list[Sequence[Any]]:
        """Have batches computed until there are none; what was given and not made when the process died, [] when it did not."""
        free = threading.Semaphore(AT_ONCE)
        given: dict[int, Sequence[Any]] = {}
        coming = True
        try:
            while (coming or given) and not self._ending:
                while coming and free.acquire(blocking=False):
                    rows = next(batches, None)
                    if rows is None:
                        coming = False
                    else:
                        self._number += 1
                        given[self._number] = rows
                        self._connection.send(("rows", self._number, rows))
                # Not blocking: a batch that became durable meanwhile lets the next be given, before this one is through.
                if self._connection.poll(0.02):
                    number, batch = self._checked(self._connection.recv())
                    del given[number]
                    done.put(replace(batch, kept=free.release))
        except (EOFError, OSError):
            return list(given.values())
        return []

    def restart(self, told: Sequence[tuple[str, tuple[Any, ...]]]) -> None:
        """Begin anew after a death, and tell the new process what the old one had been told."""
        if self._ending:
            return
        self._connection.close()
        self._begin()
        self.ready()
        for question, arguments in told:
            self.ask(question, arguments)
            self.answer()

    def end_told(self) -> str:
        """How the process ended, in words."""
        self._process.join(5)
        code = self._process.exitcode
        if code is not None and code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"exit code {code}"

    def end(self) -> None:
        """End the process."""
        self._ending = True
        with suppress(OSError):
            self._connection.send(None)
        self._process.join(5)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()

    @staticmethod
    def _checked(message: tuple[str, Any]) -> Any:
        kind, content = message
        if kind == "wrong":
            raise content
        return content


def _given(batch: Batch) -> Batch:
    return batch


def _serve(connection: Connection, recipe: Recipe, threads: int) -> None:
    """What the process of a device does: make its station, then answer and compute until told to end, or until nobody is there."""
    # A Ctrl-C in the terminal reaches every process; the one that began this says when it is time.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    sending = threading.Lock()

    def send(kind: str, content: Any) -> None:
        with sending:
            connection.send((kind, content))

    def wrong(error: Exception) -> None:
        told = error if isinstance(error, InputError) else RuntimeError(f"in a device's process: {traceback.format_exc()}")
        send("wrong", told)

    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while (message := connection.recv()) is not None:
                messages.put(message)
        except (EOFError, OSError):
            # Nobody is there any more to keep what is being computed.
            os._exit(1)
        messages.put(None)

    try:
        station = recipe()
    except Exception as error:
        wrong(error)
        return
    threading.Thread(target=listen, daemon=True).start()
    send("right", None)

    def finish(number: int, rows: Sequence[Any], started: Any) -> None:
        try:
            send("right", (number, station.finish(rows, started)))
        except Exception as error:
            wrong(error)

    with ThreadPoolExecutor(1, thread_name_prefix="finish") as finisher:
        behind: Future[None] | None = None
        while (message := messages.get()) is not None:
            kind, first, second = message
            try:
                if kind == "ask":
                    send("right", station.ask(first, *second))
                    continue
                started = station.start(second)
            except Exception as error:
                wrong(error)
                continue
            if behind is not None:
                behind.result()
            behind = finisher.submit(finish, first, second, started)
