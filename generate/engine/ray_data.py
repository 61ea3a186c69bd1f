"""The engine over many GPUs or nodes: one streaming graph of Ray Data, with the command that began it as the only writer.

``generate``: batches of rows → actors that hold the model → finished batches, appended here as they come. ``judge``: row groups of the
run's parquet → CPU tasks that read and decode → one stage of actors a judge, each with GPUs of its own → observations, appended here.
Parts, ids and resuming are those of the local engine. Ray starts an actor that died anew and gives its batch to another, so that a killed
worker costs no row and doubles none; a batch over which a worker died is tried row by row, so that a row that kills every worker costs
no other.

The packages of this project must be installed on every node, and the folders that the command names must be reachable from there.
Nothing is uploaded: neither the working directory nor usage statistics.
"""

from __future__ import annotations

import logging
import os
import pickle
import socket
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from rich.console import Console

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.dataset_builder.languages import VARIABLE
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.generate import observe
from t2i_parity.generate.engine.collect import Tally, until
from t2i_parity.generate.engine.devices import PREPARING, Recipe
from t2i_parity.generate.engine.local import RETRIES, Batch, Failure, Job, Outcome, Station
from t2i_parity.generate.judges import Judge
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow
from t2i_parity.generate.run import Run

AT_ONCE = 2
"""Batches an actor has at once: it computes one while it encodes the other."""
_STREAMS: weakref.WeakSet[Any] = weakref.WeakSet()
_STREAMING = ("StreamingExecutor", "iter_threaded", "ray-data-")
"""How the names begin of the threads with which Ray Data runs a graph in this process."""
_PATIENCE = 60.0
"""Seconds that they get to end."""


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """A Ray session: one on the cluster at ``address``, or one that is started on this machine and ends with the context."""
    # Read when Ray is imported or started. The uv hook would upload the working directory.
    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0"), ("RAY_BACKEND_LOG_LEVEL", "fatal")):
        os.environ.setdefault(name, value)
    ray = require("ray", package="ray[data]", extra="ray")
    data = require("ray.data", package="ray[data]", extra="ray")
    local: dict[str, Any] = {"include_dashboard": False} if address is None else {}
    if VARIABLE in os.environ:
        # Actors read the user's languages where they look; on another machine the file must lie at the same place.
        local["runtime_env"] = {"env_vars": {VARIABLE: os.environ[VARIABLE]}}
    try:
        _reach(address)
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, configure_logging=True, **local)
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"no Ray cluster at {address or 'this machine'} ({first_line(error)}). Give --ray-address the address of a running one, "
            "or leave it out to start one here"
        ) from error
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # Loading a large model can take long, and so can a judge behind an API.
    context.execution_no_progress_timeout_s = -1
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        yield ray
    finally:
        _let_go()
        ray.shutdown()


def _let_go() -> None:
    """End what Ray Data still runs here, and wait for it.

    A graph that is not run to its end (after a signal, an error) has threads that ask Ray for news. Ray Data gives them two seconds,
    and one that asks when the session is over has Ray end this whole process at once, with 1 and without a word.
    """
    for blocks in list(_STREAMS):
        blocks.close()
    deadline = time.monotonic() + _PATIENCE
    for thread in threading.enumerate():
        if thread.name.startswith(_STREAMING):
            thread.join(max(0.0, deadline - time.monotonic()))


class RayImages:
    """A model on Ray's actors: what an engine is to ``generate.images``."""

    def __init__(self, ray: Any, recipe: Recipe, *, actors: int, gpus: float | None) -> None:
        self._ray = ray
        self._recipe = recipe
        self._actors = actors
        have = float(ray.cluster_resources().get("GPU", 0))
        self._gpus = (1.0 if have else 0.0) if gpus is None else gpus
        _check_gpus(ray, actors * self._gpus, "--actors times --gpus-per-actor")
        self._told: list[tuple[str, tuple[Any, ...]]] = []
        self._desk: Any = None

    @classmethod
    @contextmanager
    def on(cls, address: str | None, recipe: Recipe, *, actors: int, gpus: float | None) -> Iterator[RayImages]:
        """On the cluster at ``address``, or on one that is started here for as long as the context lasts."""
        with cluster(address) as ray:
            yield cls(ray, recipe, actors=actors, gpus=gpus)

    def ask(self, question: str, *arguments: Any) -> Any:
        """The model's answer, from one copy that is loaded for questions, on the resources of an actor, and goes before the work begins."""
        if question in PREPARING:
            self._told.append((question, arguments))
        if question == "prepare":
            return None
        if self._desk is None:
            self._desk = self._ray.remote(_Desk).options(num_cpus=0 if self._gpus else 1, num_gpus=self._gpus).remote(self._recipe)
        answer = _got(self._ray, self._desk.ask.remote(question, arguments))
        return f"ray: {self._actors} × {answer}" if question == "device" else answer

    def jobs(self, batches: Iterable[Sequence[Any]], stop: threading.Event) -> Iterator[Job]:
        """Every batch computed, in the order in which they are done; a stop lets go of those in flight."""
        if self._desk is not None:
            self._ray.kill(self._desk)
            self._desk = None
        # All at once: what is coming is a list of rows without images, and Ray schedules blocks that exist.
        items = [{"number": number, "rows": pickle.dumps(rows)} for number, rows in enumerate(batches)]
        stage = _stage(
            _items(items),
            _ImageActor,
            (self._recipe, self._told, _ledger(self._ray)),
            actors=self._actors,
            gpus=self._gpus,
            cpus=_cpus_each(self._ray, [(self._actors, self._gpus)], readers=0),
            batch_size=1,
        )
        seen: set[int] = set()
        for number, batch in until(stop, _stream(self._ray, stage)):
            if number not in seen:
                seen.add(number)
                yield partial(_given, batch)


class _Desk:
    """Answers questions about a model, in a process that has what the model needs."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._station: Station | None = None

    def ask(self, question: str, arguments: tuple[Any, ...]) -> Any:
        """The station's answer, and what went wrong as a value: Ray would wrap an exception."""
        try:
            if self._station is None:
                self._station = self._recipe()
            return self._station.ask(question, *arguments)
        except Exception as error:
            return _Wrong.of(error)


class _ImageActor:
    """Computes batches with a model of its own. Two calls run at once, of which one computes."""

    def __init__(self, recipe: Recipe, told: Sequence[tuple[str, tuple[Any, ...]]], ledger: Any) -> None:
        self._recipe = recipe
        self._told = told
        self._deaths = _Deaths(ledger, recipe.retries)
        self._loading = threading.Lock()
        self._suspects = threading.Lock()
        self._places = threading.Semaphore(AT_ONCE)
        self._station: Station | None = None

    def __call__(self, table: pa.Table) -> pa.Table:
        """One batch, pickled, to its number and what came of it, pickled."""
        made: list[Any] = []
        for item in table.to_pylist():
            try:
                made.append((item["number"], self._made(item["number"], pickle.loads(item["rows"]))))
            except Exception as error:
                made.append(_Wrong.of(error))
        return _pickled(made)

    def _made(self, number: int, rows: Sequence[Any]) -> Batch:
        station = self._ready()
        with self._deaths.watched(f"images {number}") as before:
            if not before:
                with self._places:
                    return station.finish(rows, station.start(rows))
            batches = []
            with self._alone():
                for place, row in enumerate(rows):
                    with self._deaths.watched(f"images {number} {place}") as deaths:
                        if reason := self._deaths.too_many(deaths):
                            batches.append(self._recipe.failed([row], reason, deaths + 1))
                        else:
                            batches.append(station.finish([row], station.start([row])))
        return Batch(pa.concat_tables([batch.table for batch in batches]), sum(batch.failed for batch in batches))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nothing else runs in this worker meanwhile: should it die, it is known over what."""
        with self._suspects:
            for _ in range(AT_ONCE):
                self._places.acquire()
            try:
                yield
            finally:
                for _ in range(AT_ONCE):
                    self._places.release()

    def _ready(self) -> Station:
        with self._loading:
            if self._station is None:
                station = self._recipe()
                for question, arguments in self._told:
                    station.ask(question, *arguments)
                self._station = station
            return self._station


class _Ledger:
    """What was begun and not ended, anywhere in the cluster: a worker that dies leaves its work standing here."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def begin(self, work: str) -> int:
        """Note a beginning; returns how many earlier ones had no end."""
        before = self._open.get(work, 0)
        self._open[work] = before + 1
        return before

    def end(self, work: str) -> None:
        """Note the end."""
        self._open.pop(work, None)


class _Deaths:
    """Keeps a row at which every worker dies from ending all workers for ever: Ray itself tries again without end."""

    def __init__(self, ledger: Any, retries: int) -> None:
        self._ledger = ledger
        self._retries = retries

    @contextmanager
    def watched(self, work: str) -> Iterator[int]:
        """While the context lasts, the work is begun; gives the number of workers that died over it before."""
        import ray

        yield ray.get(self._ledger.begin.remote(work))
        ray.get(self._ledger.end.remote(work))

    def too_many(self, deaths: int) -> str | None:
        """The reason to give a row up, over which so many died after the first, which held its batch; None for another try."""
        return f"a Ray worker died over this row {deaths + 1} times" if deaths + 1 > self._retries else None


def _ledger(ray: Any) -> Any:
    return ray.remote(_Ledger).options(num_cpus=0).remote()


# Judges


@dataclass(frozen=True, slots=True)
class JudgePlan:
    """How a judge runs on Ray: what loads it (picklable), on how many actors, each with how many GPUs; ``retries`` as everywhere."""

    load: Callable[[], Judge]
    actors: int = 1
    gpus: float = 0.0
    retries: int = RETRIES


def judge(run: Run, plans: Mapping[str, JudgePlan], *, batch_size: int, console: Console, repair: bool = False) -> dict[str, Tally]:
    """As ``generate.observe.judge``: one pass over the run's images, every judge a stage of one graph.

    Raises InputError also when Ray does not give back all that it was given; what was observed is kept.
    """
    import ray

    rows = observe.image_rows(run)
    if run.folder.fs.protocol in ("memory", ("memory",)):
        raise InputError(f"{run.url} lies in this process's memory, where Ray's workers cannot read it; judge it with --engine local")
    _check_gpus(ray, sum(plan.actors * plan.gpus for plan in plans.values()), "the judges' --actors times --gpus-per-actor")
    shown = ray.put(rows)
    stages = []
    for name, plan in plans.items():
        introduce = ray.remote(_introduced).options(num_cpus=0 if plan.gpus else 1, num_gpus=plan.gpus)
        signature, columns = _got(ray, introduce.remote(plan.load, shown))
        parts = observe.begin(run, name, signature, console, repair=repair)
        see = partial(_seen, name)
        stages.append(observe.Stage(name, signature, columns, parts, see, [row["image_id"] for row in rows]))
    if not any(stage.total for stage in stages):
        return observe.one_pass(run, stages, (), console)
    groups = run.images().groups(skip=set.intersection(*(stage.done for stage in stages)))
    reading = [{"path": path, "group": group, "ids": ids} for path, group, ids in groups]
    cpus = _cpus_each(ray, [(plan.actors, plan.gpus) for plan in plans.values()], readers=1)
    graph = _items(reading).map_batches(partial(_read, run.url, batch_size), batch_size=1, batch_format="pyarrow", num_cpus=min(1.0, cpus))
    ledger = _ledger(ray)
    for place, (stage, plan) in enumerate(zip(stages, plans.values(), strict=True)):
        graph = _stage(
            graph,
            _JudgeActor,
            (stage.name, plan, [shown], stage.done, ledger, place == len(stages) - 1),
            actors=plan.actors,
            gpus=plan.gpus,
            cpus=cpus,
            batch_size=batch_size,
        )
    left = {identity for _, _, ids in groups for identity in ids}

    def observed() -> Iterator[list[SeenRow]]:
        for batch in _stream(ray, graph):
            fresh = [row for row in batch if row["image_id"] in left]
            left.difference_update(row["image_id"] for row in fresh)
            yield fresh

    tallies = observe.one_pass(run, stages, observed(), console)
    if left and not any(tally.stopped for tally in tallies.values()):
        raise InputError(f"{len(left)} images of {run.url} did not come back from Ray, {min(left)} among them; run the same command again")
    return tallies


def _introduced(load: Callable[[], Judge], rows: Sequence[ImageRow]) -> Any:
    """A judge's signature and columns, once it has checked the rows."""
    try:
        instrument = load()
        instrument.check(rows)
        return instrument.signature(), dict(instrument.columns)
    except Exception as error:
        return _Wrong.of(error)


def _read(url: str, batch_size: int, table: pa.Table) -> Iterator[pa.Table]:
    """Row groups → decoded rows, at most ``batch_size`` a block: pickled row, and its pixels beside it so that they are not copied."""
    folder = Folder(url)
    for item in table.to_pylist():
        wanted = set(item["ids"])
        with folder.fs.open(item["path"], "rb") as file:
            parquet = pq.ParquetFile(file)
            for batch in parquet.iter_batches(batch_size=batch_size, row_groups=[item["group"]], columns=observe.IMAGE_COLUMNS):
                blank = dict.fromkeys(observe.IMAGE_COLUMNS)
                rows = [observe.decoded_row({**blank, **row}) for row in batch.to_pylist() if row["image_id"] in wanted]
                if rows:
                    yield _packed(rows)


class _PassingRow(SeenRow):
    """A row on its way through the judges: what each of them saw so far, by its name."""

    seen: dict[str, Any]


def _packed(rows: Sequence[SeenRow]) -> pa.Table:
    images = [row["image"] for row in rows]
    bare = [
        {**row, "image": image if isinstance(image, Failure) else image.size, "seen": {}} for row, image in zip(rows, images, strict=True)
    ]
    return pa.table(
        {
            "row": pa.array([pickle.dumps(row) for row in bare], pa.large_binary()),
            "pixels": pa.array([b"" if isinstance(image, Failure) else image.tobytes() for image in images], pa.large_binary()),
        }
    )


def _unpacked(table: pa.Table) -> list[_PassingRow]:
    rows: list[_PassingRow] = [pickle.loads(row) for row in table["row"].to_pylist()]
    for row, pixels in zip(rows, table["pixels"], strict=True):
        if not isinstance(row["image"], Failure):
            row["image"] = Image.frombytes("RGB", row["image"], pixels.as_buffer())
    return rows


class _JudgeActor:
    """One judge's observations of the batches that pass, put beside the rows; the last one lets the images go."""

    def __init__(self, name: str, plan: JudgePlan, shown: list[Any], done: set[str], ledger: Any, last: bool) -> None:
        self._name = name
        self._plan = plan
        self._shown = shown
        self._done = done
        self._deaths = _Deaths(ledger, plan.retries)
        self._last = last
        self._see: observe.Observing | None = None
        self._wrong: _Wrong | None = None

    def __call__(self, table: pa.Table) -> pa.Table:
        """Rows with pixels to rows with pixels, or, from the last judge, to what all of them saw."""
        rows = _unpacked(table)
        fresh = [row for row in rows if row["image_id"] not in self._done]
        try:
            outcomes: Sequence[Any] = self._outcomes(fresh) if fresh else []
        except Exception as error:
            # It concerns this judge and its whole run; the others go on.
            self._wrong = _Wrong.of(error)
            outcomes = [self._wrong] * len(fresh)
        for row, outcome in zip(fresh, outcomes, strict=True):
            row["seen"][self._name] = outcome
        if self._last:
            return _pickled([[{"image_id": row["image_id"], "seen": row["seen"]} for row in rows]])
        kept = [{**row, "image": row["image"] if isinstance(row["image"], Failure) else row["image"].size} for row in rows]
        return table.set_column(0, "row", pa.array([pickle.dumps(row) for row in kept], pa.large_binary()))

    def _outcomes(self, rows: Sequence[SeenRow]) -> list[Outcome[Observation]]:
        see = self._ready()
        with self._deaths.watched(f"{self._name} {rows[0]['image_id']}…") as before:
            if not before:
                return see(rows)
            outcomes: list[Outcome[Observation]] = []
            for row in rows:
                with self._deaths.watched(f"{self._name} {row['image_id']}") as deaths:
                    reason = self._deaths.too_many(deaths)
                    outcomes += see([row]) if reason is None else [Outcome(Failure(reason), 1, deaths + 1)]
        return outcomes

    def _ready(self) -> observe.Observing:
        if self._wrong is not None:
            self._wrong.throw()
        if self._see is None:
            import ray

            instrument = self._plan.load()
            instrument.check(ray.get(self._shown[0]))
            self._see = observe.Observing(instrument, retries=self._plan.retries)
        return self._see


def _seen(name: str, rows: Sequence[_PassingRow]) -> list[Outcome[Observation]]:
    outcomes = [row["seen"][name] for row in rows]
    for outcome in outcomes:
        if isinstance(outcome, _Wrong):
            outcome.throw()
    return outcomes


# Ray


def _reach(address: str | None) -> None:
    """Raises OSError when nobody listens at host:port. Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host and port.isdigit() and "/" not in host:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


@dataclass(frozen=True, slots=True)
class _Wrong:
    """An exception as a value, since Ray wraps those that are raised, and the wrapping hides whether it is the user's to mend."""

    told: str
    by_user: bool

    @classmethod
    def of(cls, error: Exception) -> _Wrong:
        return cls(str(error), True) if isinstance(error, InputError) else cls(f"on a Ray worker: {traceback.format_exc()}", False)

    def throw(self) -> None:
        raise InputError(self.told) if self.by_user else RuntimeError(self.told)


def _got(ray: Any, reference: Any) -> Any:
    """A remote call's answer. Raises InputError for what the user can mend, and when the worker ended."""
    try:
        answer = ray.get(reference)
    except ray.exceptions.RayError as error:
        raise InputError(
            f"a Ray worker ended before it could answer ({first_line(error)}). Is there memory enough, and is this project installed on "
            "every node?"
        ) from error
    if isinstance(answer, _Wrong):
        answer.throw()
    return answer


def _items(items: Sequence[Mapping[str, Any]]) -> Any:
    """A dataset with one block an item, so that each is scheduled, computed, handed on and tried again by itself."""
    import ray.data

    return ray.data.from_items(list(items), override_num_blocks=len(items))


def _stage(dataset: Any, actor: type, arguments: tuple[Any, ...], *, actors: int, gpus: float, cpus: float, batch_size: int) -> Any:
    from ray.data import ActorPoolStrategy

    several = actor is _ImageActor
    return dataset.map_batches(
        actor,
        fn_constructor_args=arguments,
        batch_size=batch_size,
        batch_format="pyarrow",
        compute=ActorPoolStrategy(
            size=actors,
            max_tasks_in_flight_per_actor=AT_ONCE,
            max_concurrent_calls_per_actor=AT_ONCE if several else None,
            enable_true_multi_threading=several or None,
        ),
        num_cpus=0 if gpus else cpus,
        num_gpus=gpus or None,
    )


def _stream(ray: Any, dataset: Any) -> Iterator[Any]:
    """What the last stage pickled, as it comes. Raises InputError when Ray gives up."""
    # Prefetching has a thread that Ray Data never ends, see _let_go; blocks are fetched ahead of us in any case.
    blocks = iter(dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0))
    _STREAMS.add(blocks)
    while True:
        try:
            block = next(blocks, None)
        except ray.exceptions.RayError as error:
            raise InputError(
                f"Ray gave up ({first_line(error)}). All that was finished is kept; the same command goes on from there"
            ) from error
        if block is None:
            return
        for content in block["pickled"].to_pylist():
            made = pickle.loads(content)
            if isinstance(made, _Wrong):
                made.throw()
            yield made


def _pickled(made: Sequence[Any]) -> pa.Table:
    return pa.table({"pickled": pa.array([pickle.dumps(each) for each in made], pa.large_binary())})


def _given(batch: Batch) -> Batch:
    return batch


def _check_gpus(ray: Any, wanted: float, what: str) -> None:
    have = float(ray.cluster_resources().get("GPU", 0))
    if wanted > have:
        raise InputError(f"{what} come to {wanted:g} GPUs, and the Ray cluster has {have:g}; ask for fewer, or add nodes first")


def _cpus_each(ray: Any, stages: Sequence[tuple[int, float]], *, readers: int) -> float:
    """CPUs of each actor without GPU and of each reader: one, or less where the cluster has fewer than all of them together need.

    Ray waits without end for what a cluster does not have.
    """
    needed = readers + sum(actors for actors, gpus in stages if not gpus)
    have = float(ray.cluster_resources().get("CPU", 1))
    return 1.0 if needed <= have else max(0.01, int(100 * have / needed) / 100)
