"""The engine in one process: what becomes of rows that fail, and of batches that do not fit into memory.

The same ``Worker`` stands in every process that computes, whichever engine started it, so that all engines treat rows alike.
"""

from __future__ import annotations

import gc
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError

Row = TypeVar("Row")
Result = TypeVar("Result")

RETRIES = 2
"""How often a row that raised is tried again, unless told otherwise."""

_ADDRESS = re.compile(r"(?: at)? ?\b0x[0-9a-fA-F]{6,16}\b")
_OUT_OF_MEMORY = re.compile(r"out of memory|(can't|cannot|failed to) allocate|not enough memory", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a row has no result. ``refused`` tells a model that declined from one that broke.

    One that is returned is the model's last word; what is raised is tried again.
    """

    reason: str
    refused: bool = False

    def __post_init__(self) -> None:
        """Leave out where things lay in memory, or two runs that failed alike would be told apart.

        >>> Failure("cannot draw <Brush object at 0x7f1c2a9d5e50>").reason
        'cannot draw <Brush object>'
        """
        object.__setattr__(self, "reason", _ADDRESS.sub("", self.reason))

    @property
    def status(self) -> str:
        """``refused`` or ``failed``."""
        return "refused" if self.refused else "failed"


class RefusedError(Exception):
    """Raised by a model or judge that declines a row; recorded as ``refused``, never tried again within the run."""


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """What came of one row: a result, or why there is none; the size of the batch that made it; how often the row was tried.

    A try that ended because the batch did not fit into memory is not counted: that was not the row's doing.
    """

    result: Result | Failure | Future[Result | Failure]
    batch_size: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A finished batch: its rows as they are kept, how many of them failed, and the largest batch that fitted, if memory was short.

    ``kept`` is called when the batch is durable.
    """

    table: pa.Table
    failed: int
    halved_to: int | None = None
    kept: Callable[[], None] | None = None

    @classmethod
    def of(cls, table: pa.Table, outcomes: Sequence[Outcome[Any]]) -> Batch:
        """The batch that these outcomes make."""
        return cls(
            table,
            sum(isinstance(outcome.result, Failure) for outcome in outcomes),
            halved_to([outcome.batch_size for outcome in outcomes], [outcome.attempts for outcome in outcomes]),
        )


Job = Callable[[], Batch]
"""What is left to do for a computed batch, off the thread that computes: waiting, encoding, making the table."""


class Station(Protocol):
    """Something that computes batches, in whichever process it was made."""

    def start(self, rows: Sequence[Any]) -> Any:
        """Compute; on the device, one call at a time."""

    def finish(self, rows: Sequence[Any], started: Any) -> Batch:
        """Make of what ``start`` gave the rows to be kept; called from another thread, while the next batch computes."""

    def ask(self, question: str, *arguments: Any) -> Any:
        """The answer of a method of what computes, or the value of its attribute."""


def answer(of: Any, question: str, *arguments: Any) -> Any:
    """An attribute of an object, or the answer of its method.

    >>> answer("abc", "upper"), answer(3, "real")
    ('ABC', 3)
    """
    found = getattr(of, question)
    return found(*arguments) if callable(found) else found


def jobs(station: Station, batches: Iterable[Sequence[Any]]) -> Iterator[Job]:
    """Each batch computed here, in its order."""
    for rows in batches:
        yield partial(station.finish, rows, station.start(rows))


class Worker(Generic[Row, Result]):
    """Sends batches through ``work``, and sees to it that one bad row costs no other.

    A batch that raises is tried again row by row; a row that raises is tried ``retries`` times more and then becomes a ``Failure``
    with its reason. A batch that does not fit into memory is halved, and no later one is larger than what fitted. ``InputError``
    passes through: it is about the whole run, not a row.
    """

    def __init__(self, work: Callable[[Sequence[Row]], Sequence[Any]], *, retries: int = RETRIES) -> None:
        self._work = work
        self._retries = retries
        self._limit: int | None = None
        # A result that comes late may have to be tried again while the next batch computes; the device takes one call at a time.
        self._one_at_a_time = threading.RLock()

    def __call__(self, rows: Sequence[Row]) -> list[Outcome[Result]]:
        """One outcome a row, none of them a future."""
        return self.settle(rows, self.start(rows))

    def start(self, rows: Sequence[Row]) -> list[Outcome[Result]]:
        """One outcome a row; results may be futures where ``work`` gave such."""
        outcomes: list[Outcome[Result]] = []
        with self._one_at_a_time:
            while len(outcomes) < len(rows):
                chunk = rows[len(outcomes) : len(outcomes) + (self._limit or len(rows))]
                outcomes += self._together(chunk)
        return outcomes

    def settle(self, rows: Sequence[Row], outcomes: Sequence[Outcome[Result]]) -> list[Outcome[Result]]:
        """The outcomes with every future waited for; a row whose future raised is tried again."""
        return [self._settled(row, outcome) for row, outcome in zip(rows, outcomes, strict=True)]

    def _together(self, rows: Sequence[Row]) -> list[Outcome[Result]]:
        """The outcomes of one call, or none at all when it ran out of memory: the limit is then lower."""
        try:
            results = self._work(rows)
        except InputError:
            raise
        except Exception as error:
            short, problem = out_of_memory(error), _Problem.of(error)
        else:
            if len(results) != len(rows):
                raise RuntimeError(f"{len(rows)} rows went in and {len(results)} results came out")
            return [Outcome(result, len(rows), 1) for result in results]
        # Here and not in the handler, where the exception still holds the frames, and these the tensors.
        if short:
            _release()
            if len(rows) > 1:
                self._halve(len(rows))
                return []
        return [self._alone(row, problem, len(rows), attempts=1, its_own=len(rows) == 1) for row in rows]

    def _alone(self, row: Row, problem: _Problem, batch_size: int, *, attempts: int, its_own: bool) -> Outcome[Result]:
        """A row after a problem; one that may have been another row's is given a try in any case."""
        allowed = 1 + (self._retries if its_own else max(self._retries, 1))
        if its_own and problem.refused:
            return Outcome(problem.failure, batch_size, attempts)
        while attempts < allowed:
            attempts += 1
            batch_size = 1
            try:
                with self._one_at_a_time:
                    (result,) = self._work([row])
                return Outcome(result, 1, attempts)
            except InputError:
                raise
            except Exception as error:
                short, problem = out_of_memory(error), _Problem.of(error)
            if short:
                _release()
            if problem.refused:
                break
        return Outcome(problem.failure, batch_size, attempts)

    def _settled(self, row: Row, outcome: Outcome[Result]) -> Outcome[Result]:
        while isinstance(outcome.result, Future):
            try:
                return replace(outcome, result=outcome.result.result())
            except InputError:
                raise
            except Exception as error:
                short, problem = out_of_memory(error), _Problem.of(error)
            if short:
                _release()
            if short and outcome.batch_size > 1:
                self._halve(outcome.batch_size)
            its_own = not (short and outcome.batch_size > 1)
            outcome = self._alone(row, problem, outcome.batch_size, attempts=outcome.attempts, its_own=its_own)
        return outcome

    def _halve(self, size: int) -> None:
        self._limit = min(self._limit or size, max(1, size // 2))


@dataclass(frozen=True, slots=True)
class _Problem:
    """What an exception said, without the exception, which would keep the batch's tensors alive."""

    reason: str
    refused: bool

    @classmethod
    def of(cls, error: Exception) -> _Problem:
        refused = isinstance(error, RefusedError)
        return cls(str(error) if refused else f"{type(error).__name__}: {error}", refused)

    @property
    def failure(self) -> Failure:
        return Failure(self.reason, self.refused)


def out_of_memory(error: BaseException) -> bool:
    """Whether an exception says that memory ran out, on a device or in the process.

    >>> out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")), out_of_memory(RuntimeError("bad shape"))
    (True, False)
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and bool(_OUT_OF_MEMORY.search(str(error)))


def halved_to(batch_sizes: Sequence[int], attempts: Sequence[int]) -> int | None:
    """The largest batch that fitted, where rows that went well at once were made in smaller batches than was asked for; else None.

    >>> halved_to([2, 2, 2, 2], [1, 1, 1, 1]), halved_to([4, 4, 4, 1], [1, 1, 1, 3])
    (2, None)
    """
    at_once = [size for size, tries in zip(batch_sizes, attempts, strict=True) if tries == 1]
    # The last of the pieces may be smaller for want of rows.
    return max(at_once) if at_once and max(at_once) < len(batch_sizes) else None


def _release() -> None:
    gc.collect()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()


def in_batches(rows: Sequence[Row], size: int) -> Iterator[Sequence[Row]]:
    """Consecutive slices of at most ``size`` rows.

    >>> list(in_batches([1, 2, 3], 2))
    [[1, 2], [3]]
    """
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
