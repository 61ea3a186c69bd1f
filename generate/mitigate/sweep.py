"""Many filters trained and measured: a cell for each method, ratio and seed, each one durable row; and the best filter kept."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
from rich.console import Console

from t2i_parity.cards.documents import Json
from t2i_parity.cards.mitigation import Line, Mitigation, Spread
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.engine.collect import Tally, bars, stop_signals
from t2i_parity.generate.engine.local import out_of_memory
from t2i_parity.generate.mitigate import AS_GIVEN, METHODS, Method
from t2i_parity.generate.mitigate.data import LABELS, Example, Material, Split, composed, every_variety, group_sizes
from t2i_parity.generate.mitigate.train import Base, Diverged, Stopped, TrainingSettings, judged, train
from t2i_parity.generate.parts import Parts
from t2i_parity.generate.run import Run
from t2i_parity.metrics.dialect_penalty import core as dialect_penalty
from t2i_parity.metrics.worst_group import core as worst_group

SCHEMA = pa.schema(
    [
        ("cell_id", pa.string()),
        ("method", pa.string()),
        ("sae_ratio", pa.float64()),
        ("seed", pa.int64()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("accuracy", pa.float64()),
        ("worst_group_accuracy", pa.float64()),
        ("worst_group", pa.string()),
        ("tpr_gap_pp", pa.float64()),
        ("fpr_gap_pp", pa.float64()),
        ("n_test", pa.int64()),
        ("groups", pa.list_(pa.struct([("group", pa.string()), ("train_rows", pa.int64()), ("accuracy", pa.float64()),
                                       ("weight", pa.float64())]))),
        ("validation_worst_group_accuracy", pa.float64()),
        ("validation_loss", pa.float64()),
        ("epochs", pa.int64()),
        ("best_epoch", pa.int64()),
        ("objective", pa.float64()),
        ("seconds", pa.float64()),
    ]
)  # fmt: skip
"""A cell's row: accuracies in [0, 1] and gaps in percentage points over the test meanings in every variety, ``train_rows`` and GroupDRO's
last ``weight`` of each group, and what chose the kept filter: accuracy and mean loss over the validation meanings in every variety."""


class GroupRow(TypedDict, total=False):
    """What a cell came to in one group."""

    group: str
    accuracy: float | None
    train_rows: int | None
    weight: float | None


class CellRow(TypedDict, total=False):
    """A cell's row, as ``SCHEMA`` has it; of a failed one what was measured is not there."""

    cell_id: str
    method: str
    sae_ratio: float | None
    seed: int | None
    status: str
    reason: str | None
    accuracy: float
    worst_group_accuracy: float
    worst_group: str | None
    tpr_gap_pp: float
    fpr_gap_pp: float
    n_test: int
    groups: list[GroupRow]
    validation_worst_group_accuracy: float
    validation_loss: float
    epochs: int
    best_epoch: int
    objective: float
    seconds: float


FILTER = "filter"
"""Where the kept filter stands in the sweep's folder."""
TEST = "test"
"""Where the prompts that are measured on stand."""
_CANDIDATES = ".candidates"


@dataclass(frozen=True, slots=True)
class Cell:
    """One filter to train. ``ratio`` is the per cent of training rows in the reference variety, None for balanced data and as given."""

    method: str
    ratio: float | None
    seed: int | None

    @property
    def identity(self) -> str:
        """The id of its row.

        >>> Cell("erm", 97.5, 3).identity, Cell("balanced", None, 0).identity
        ('erm-97.5-3', 'balanced-0')
        """
        return "-".join(
            [self.method, *([f"{self.ratio:g}"] if self.ratio is not None else []), *([str(self.seed)] * (self.seed is not None))]
        )

    @property
    def told(self) -> str:
        """What a person is shown."""
        return (
            self.method + (f" {self.ratio:g} %" if self.ratio is not None else "") + (f" seed {self.seed}" if self.seed is not None else "")
        )


def planned(methods: Sequence[Method], ratios: Sequence[float], seeds: int, *, as_given: bool) -> list[Cell]:
    """The cells, seed after seed so that a sweep that is cut short holds fewer seeds rather than fewer rows of the table.

    Methods that balance their batches are left out at 100 %, where there is nothing to balance with (§3.5).

    >>> from t2i_parity.generate.mitigate import METHODS
    >>> len(planned(METHODS.all(), [97.5, 98.0, 98.5, 99.0, 99.5, 100.0], 10, as_given=False))
    170
    """
    cells = [Cell(AS_GIVEN, None, None)] if as_given else []
    for seed in range(seeds):
        for ratio in ratios:
            cells += [
                Cell(each.name, ratio, seed) for each in methods if not each.balanced_data and (ratio < 100 or not each.balanced_batches)
            ]
        cells += [Cell(each.name, None, seed) for each in methods if each.balanced_data]
    return cells


@dataclass(frozen=True, slots=True)
class Sweep:
    """All that cells share: where their rows go, what is trained from, on what, and how; ``keep`` says whose filter may be kept."""

    run: Run
    base: Base
    material: Material
    split: Split
    settings: TrainingSettings
    keep: str

    def cells(self) -> Parts:
        """The cells' rows."""
        return Parts(self.run.folder, "cells", key="cell_id", schema=SCHEMA, row_group_rows=10_000)

    @property
    def root(self) -> Path:
        """The sweep's folder; filters are written beneath it, so it lies on a disk."""
        return Path(self.run.folder.root)


def perform(sweep: Sweep, cells: Sequence[Cell], console: Console, *, retry_failed: bool = False) -> Tally:
    """Train and measure every cell that has no row yet. A crash costs the cell at hand; SIGINT and SIGTERM end it early and in order.

    Raises InputError when memory does not suffice.
    """
    parts = sweep.cells()
    sweep.run.tell_set_aside(parts.recover(), console)
    if retry_failed:
        parts.drop(row["cell_id"] for row in parts.read(["cell_id", "status"]).to_pylist() if row["status"] == "failed")
    done = parts.ids()
    todo = [cell for cell in cells if cell.identity not in done]
    failed = made = 0
    _clear(sweep)
    with bars(console, hidden=not todo) as progress, stop_signals() as stop:
        task = progress.add_task("cells", total=len(cells), completed=len(cells) - len(todo))

        for cell in todo:

            def hear(epoch: int, cell: Cell = cell) -> None:
                progress.update(task, description=f"{cell.told}, round {min(epoch + 1, sweep.settings.epochs)}")

            hear(0)
            try:
                row = _made(sweep, cell, hear, stop)
            except Stopped:
                break
            parts.append(pa.Table.from_pylist([row], schema=SCHEMA))
            _only_best(sweep)
            made += 1
            failed += row["status"] == "failed"
            progress.update(task, advance=1)
            if stop.is_set():
                break
        parts.fold()
    _clear(sweep)
    return Tally(len(cells) - len(todo), made, failed, made < len(todo))


def kept(sweep: Sweep) -> CellRow | None:
    """Put the best candidate's filter in its place; the row of the cell whose filter stands there, None when there is none."""
    best = _best(sweep)
    if best is None:
        return None
    place, candidate = sweep.root / FILTER, sweep.root / _CANDIDATES / best["cell_id"]
    if candidate.is_dir():
        if place.exists():
            shutil.rmtree(place)
        os.replace(candidate, place)
    return best if _owner(place) == best["cell_id"] else None


def summary(sweep: Sweep, *, title: str) -> Mitigation:
    """The table over all rows of the sweep, in the order of the study's Table 8."""
    rows: list[CellRow] = sweep.cells().read().to_pylist()
    order = {each.name: (place, each) for place, each in enumerate(METHODS.all())}
    found: dict[tuple[str, float | None], list[CellRow]] = {}
    for row in rows:
        found.setdefault((row["method"], row["sae_ratio"]), []).append(row)

    def place(key: tuple[str, float | None]) -> tuple[int, float, int]:
        name, ratio = key
        return (0, 0.0, 0) if name == AS_GIVEN else (1, ratio, order[name][0]) if ratio is not None else (2, 0.0, order[name][0])

    lines = []
    for key in sorted(found, key=place):
        name, ratio = key
        done = [row for row in found[key] if row["status"] == "ok"]
        lines.append(
            Line(
                share="As given" if name == AS_GIVEN else "Balanced data" if ratio is None else f"{ratio:.1f} %",
                ratio=ratio,
                method=name,
                algorithm="no training" if name == AS_GIVEN else "ERM" if order[name][1].balanced_data else order[name][1].title,
                accuracy=_spread([100 * row["accuracy"] for row in done]),
                worst_group=_spread([100 * row["worst_group_accuracy"] for row in done]),
                tpr_gap=_spread([row["tpr_gap_pp"] for row in done]),
                fpr_gap=_spread([row["fpr_gap_pp"] for row in done]),
                n=len(done),
                failed=len(found[key]) - len(done),
            )
        )
    return Mitigation(title=title, record=sweep.run.record, lines=tuple(lines), groups=sweep.material.groups)


# Inside


def _spread(values: Sequence[float]) -> Spread | None:
    """Mean and population standard deviation over seeds, as the study has it; None without any."""
    return Spread(float(np.mean(values)), float(np.std(values))) if values else None


def _made(sweep: Sweep, cell: Cell, hear: Any, stop: threading.Event) -> CellRow:
    """The row of one cell; its filter is left among the candidates when it may be kept."""
    start = time.monotonic()
    varieties, groups = sweep.material.varieties, sweep.material.groups
    row: CellRow = {"cell_id": cell.identity, "method": cell.method, "sae_ratio": cell.ratio, "seed": cell.seed, "status": "ok"}
    test, validation = (every_variety(part, varieties) for part in (sweep.split.test, sweep.split.validation))
    if cell.method == AS_GIVEN:
        row |= _measured(sweep, sweep.base.source, sweep.base.revision, sweep.settings.unsafe, test, validation)
        sizes: Sequence[int | None] = [None] * len(groups)
        weights = None
    else:
        assert cell.seed is not None
        how = METHODS[cell.method]
        share = (len(varieties) - 1) / len(varieties) if cell.ratio is None else 1 - cell.ratio / 100
        rows, stopping = (composed(part, varieties, share=share, seed=cell.seed) for part in (sweep.split.train, sweep.split.validation))
        sizes = group_sizes(rows, len(groups))
        made = sweep.root / _CANDIDATES / f"{cell.identity}.part"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        try:
            trained = train(
                sweep.base, rows, stopping, n_groups=len(groups), method=how, seed=cell.seed, settings=sweep.settings, out=made,
                told=hear, stop=stop,
            )  # fmt: skip
        except Diverged as error:
            shutil.rmtree(made)
            return {**row, "status": "failed", "reason": str(error), "seconds": time.monotonic() - start}
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            smaller = max(1, sweep.settings.batch_size // 2)
            raise InputError(
                f"memory does not suffice to train {cell.told}: make the batches smaller (--set batch_size={smaller}) "
                "in a new folder, or train on another machine. What was finished is kept"
            ) from error
        row |= {"epochs": trained.epochs, "best_epoch": trained.best_epoch, "objective": trained.objective}
        row |= _measured(sweep, str(made), None, "", test, validation)
        weights = trained.weights
        if _may_be_kept(sweep, cell.method, cell.ratio):
            (made / _CELL).write_text(json.dumps({"cell_id": cell.identity}) + "\n", encoding="utf-8")
            shutil.rmtree(sweep.root / _CANDIDATES / cell.identity, ignore_errors=True)
            os.replace(made, sweep.root / _CANDIDATES / cell.identity)
        else:
            shutil.rmtree(made)
    for place, group in enumerate(row["groups"]):
        group |= {"train_rows": sizes[place], "weight": None if weights is None else weights[place]}
    return {**row, "seconds": round(time.monotonic() - start, 3)}


def _measured(
    sweep: Sweep, source: str, revision: str | None, unsafe: str, test: Sequence[Example], validation: Sequence[Example]
) -> CellRow:
    """The metrics of Table 8 over the test meanings, and what chooses a filter over the validation meanings."""
    scores = judged(source, revision, unsafe, [row.text for row in [*test, *validation]], sweep.settings)
    groups, varieties = sweep.material.groups, sweep.material.varieties
    flagged = [score > 0.5 for score in scores]
    halves = []
    for rows, flags in ((test, flagged[: len(test)]), (validation, flagged[len(test) :])):
        right = [flag == bool(row.label) for row, flag in zip(rows, flags, strict=True)]
        halves.append(worst_group.compute(right, [groups[row.group] for row in rows], n_resamples=0))
    by_pair = {(row.pair_id, row.variety): flag for row, flag in zip(test, flagged, strict=False)}
    others = [row for row in test if row.variety != varieties[0]]
    penalty = dialect_penalty.compute(
        [by_pair[row.pair_id, varieties[0]] for row in others],
        [by_pair[row.pair_id, row.variety] for row in others],
        [LABELS[row.label] for row in others],
        groups=[row.variety for row in others],
        n_resamples=0,
    )
    gaps = {rate: [abs(part[f"delta_{rate}_pp"]) for part in penalty["by_group"].values()] for rate in ("tpr", "fpr")}
    tail = np.clip(np.array(scores[len(test) :]), 1e-12, 1 - 1e-12)
    toxic = np.array([row.label for row in validation])
    return {
        "accuracy": halves[0]["accuracy"],
        "worst_group_accuracy": halves[0]["worst_group_accuracy"],
        "worst_group": halves[0]["worst_group"],
        "tpr_gap_pp": float(np.mean(gaps["tpr"])),
        "fpr_gap_pp": float(np.mean(gaps["fpr"])),
        "n_test": len(test),
        "groups": [{"group": group, "accuracy": halves[0]["by_group"][group]["accuracy"]} for group in groups],
        "validation_worst_group_accuracy": halves[1]["worst_group_accuracy"],
        "validation_loss": float(-np.mean(np.log(np.where(toxic == 1, tail, 1 - tail)))),
    }


_CELL = "t2i_parity_cell.json"
"""In a filter's folder: which cell it is of."""


def _owner(place: Path) -> str | None:
    file = place / _CELL
    return str(json.loads(file.read_text(encoding="utf-8"))["cell_id"]) if file.is_file() else None


def _may_be_kept(sweep: Sweep, method: str, ratio: float | None) -> bool:
    if sweep.keep in ("none", "best") or method == AS_GIVEN:
        return sweep.keep == "best" and method != AS_GIVEN
    name, _, wanted = sweep.keep.partition("@")
    return method == name and (not wanted or (ratio is not None and ratio == float(wanted)))


def _best(sweep: Sweep) -> CellRow | None:
    """The row, among those whose filter may be kept and is there, of the best filter by the validation meanings: never by the test's."""
    held = {path.name for path in (sweep.root / _CANDIDATES).glob("*") if not path.name.endswith(".part")}
    held |= {owner} if (owner := _owner(sweep.root / FILTER)) else set()
    cells: list[CellRow] = sweep.cells().read().to_pylist()
    rows = [row for row in cells if row["status"] == "ok" and row["cell_id"] in held]
    able = [row for row in rows if _may_be_kept(sweep, row["method"], row["sae_ratio"])]
    return min(able, key=lambda row: (-row["validation_worst_group_accuracy"], row["validation_loss"], row["cell_id"]), default=None)


def _only_best(sweep: Sweep) -> None:
    """Of the candidates, leave the best; a filter in its place stays until a better one takes it at the end."""
    best = _best(sweep)
    for path in (sweep.root / _CANDIDATES).glob("*"):
        if best is None or path.name != best["cell_id"]:
            shutil.rmtree(path)


def _clear(sweep: Sweep) -> None:
    """Remove what a crash left: half-made filters, and finished ones whose row was not written."""
    rows = sweep.cells().ids()
    for path in (sweep.root / _CANDIDATES).glob("*"):
        if path.name not in rows:
            shutil.rmtree(path)


def record_of(sweep_settings: TrainingSettings, *, test: float, validation: float, split_seed: int, varieties: Sequence[str]) -> Json:
    """What of a sweep decides its numbers beside model and prompts; the device does not belong to it."""
    training = {name: value for name, value in asdict(sweep_settings).items() if name != "device"}
    return {"training": training, "split": {"test": test, "validation": validation, "seed": split_seed}, "varieties": list(varieties)}
