"""A run to the hub: a scored dataset that shows its images, and that stays a run, which anybody can score again.

Every table is written anew as it is to be published, a batch at a time, so that memory stays flat; the same run gives the same bytes, and
what the hub has by its hash is not sent again. Images of prompts that are toxic on purpose are withheld unless they are asked for, and then
the repository is gated. A withheld image leaves its hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from t2i_parity.cards.plots import Point, Series, scores_plot
from t2i_parity.cards.result import SCORES, Published, ResultCard, result_card
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.licenses import UNKNOWN, terms
from t2i_parity.dataset_builder.release import DATA_SUFFIX, TOXIC, Licensed, refusal
from t2i_parity.dataset_builder.varieties import VARIETIES
from t2i_parity.generate.compare import ScoredRow
from t2i_parity.generate.parts import Parts
from t2i_parity.generate.run import Run, fingerprint, image_features
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Row, Score, ScoreSpec

SHARD_BYTES = 300 * 2**20
"""No part grows beyond this, unless one group of rows does; the hub and its viewer like parts of some hundred megabytes."""
GROUP_ROWS = 100
"""Rows of a row group with images: what a viewer fetches to show a page."""
TABLES = ("scored", "images", "prompts", "outcomes", "observations")
RECORDS = ("run.json", "scores.json", "scores.csv")
TOXICITY = ("R-T", "TX")
"""The dimensions whose prompts ask for something harmful on purpose, by how their codes begin."""
TOLD = ("prompt", "render_text")
"""The columns that repeat a source's text."""
HASH, WITHHELD = "image_sha256", "image_withheld"


@dataclass(frozen=True, slots=True)
class Terms:
    """What of a run is published: its images at all, those of toxic prompts, and prompts without a licence as ids and hashes alone."""

    images: bool = True
    toxic: bool = False
    drop_unlicensed: bool = False


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run as it goes to the hub: its files, and what the card says of them."""

    name: str
    card: Published
    files: Mapping[str, Path]
    digest: str

    @property
    def message(self) -> tuple[str, str]:
        """Title and body of the commit; the same for the same content."""
        body = f"{self.card.withheld:,} images withheld\n\nSHA-256 over record, images and scores: {self.digest}"
        return f"T2I Parity run {self.name}: {self.card.rows:,} rows, content {self.digest[:12]}", body

    def replaces(self, path: str) -> bool:
        """Whether a file there is a part of an earlier push: load_dataset would mix its rows with these."""
        return path.endswith(DATA_SUFFIX) and path.split("/")[0] in TABLES and "/" in path


def is_toxic(row: Row) -> bool:
    """Whether a row's prompt asks for something harmful on purpose.

    >>> is_toxic({"label": "toxic", "dimension": None}), is_toxic({"label": None, "dimension": "R-B"})
    (True, False)
    """
    return row["label"] == TOXIC or str(row["dimension"] or "").startswith(TOXICITY)


def licences(run: Run) -> list[Licensed]:
    """Which of the run's prompts stand under which licence; a row that names none counts as one whose source states none."""
    parts = run.images() if run.record["kind"] == "generation" else run.prompts()
    counts: dict[tuple[str, str], set[str]] = {}
    for row in parts.read(["prompt_id", "source", "license"]).to_pylist():
        counts.setdefault((row["source"] or "a source without a name", row["license"] or UNKNOWN), set()).add(row["prompt_id"])
    config = str(run.record["identity"].get("prompts", {}).get("config") or "the prompts")
    return [Licensed(config, source, terms(name), len(ids)) for (source, name), ids in sorted(counts.items())]


def staged(run: Run, place: Path, how: Terms) -> PublishedRun:
    """Write the run as it is to be published into ``place``.

    Raises InputError when the run is not scored, was ended midway or changed since, and when rows may not be published.
    """
    scores = run.scores()
    if not scores or not run.scored().files():
        raise InputError(f"{run.url} is not scored yet, and what is published is a scored run; score it first: t2i-parity score {run.url}")
    for parts in _tables(run):
        if run.folder.names(".journal", *Path(parts.name).parts):
            raise InputError(
                f"{run.url} was ended midway: rows of {parts.name} are in its journal still. Run the command that was ended again, then "
                "score it"
            )
    groups = licences(run)
    refused = refusal(groups)
    if refused is not None and not how.drop_unlicensed:
        told = "publish their ids and hashes alone with --drop-unlicensed"
        raise InputError(refused.replace("publish the rest with --drop-unlicensed", told))
    place.mkdir(parents=True, exist_ok=True)
    writer = _Writer(run, place, how, {group.license.id for group in groups if group.refusal})
    writer.write()
    if how.toxic and not writer.toxic:
        raise InputError(f"no row of {run.url} answers a toxic prompt; leave --with-toxic out")
    if how.toxic and run.record["kind"] != "generation":
        raise InputError(f"{run.url} is an audit and has no images; leave --with-toxic out")
    plotted = _plot(scores, place)
    card = Published(
        rows=writer.rows,
        toxic=writer.toxic,
        withheld=writer.withheld,
        untold=writer.untold,
        gated=how.toxic,
        images=run.record["kind"] == "generation",
        languages=sorted(writer.languages),
        licenses=sorted({group.license.id for group in groups}),
        plotted=plotted,
    )
    shown = ResultCard(
        title=run.name,
        record=run.record,
        configs=[(name, f"{folder}/part-*.parquet") for name, folder in writer.configs.items()],
        scores=scores,
        published=card,
    )
    (place / "README.md").write_text(result_card(shown), encoding="utf-8")
    for name in RECORDS:
        if run.folder.exists(name):
            (place / name).write_bytes(run.folder.read(name))
    files = {path.relative_to(place).as_posix(): path for path in sorted(place.rglob("*")) if path.is_file()}
    content = {"identity": run.record["identity"], "scores": [score.json() for score in scores], "images": writer.digest.hexdigest()}
    return PublishedRun(" ".join(run.name.split())[:60], card, files, fingerprint(content))


def _tables(run: Run) -> list[Parts]:
    return [run.images(), run.prompts(), run.outcomes(), run.scored(), *(run.observations(judge) for judge in run.judges())]


class _Writer:
    """Writes a run's tables into a folder, and counts what it leaves out."""

    def __init__(self, run: Run, place: Path, how: Terms, refused: set[str]) -> None:
        self.run, self.place, self.how = run, place, how
        self.refused = {name.lower() for name in refused}
        self.rows = self.toxic = self.withheld = self.untold = 0
        self.languages: set[str] = set()
        self.configs: dict[str, str] = {}
        self.digest = hashlib.sha256()

    def write(self) -> None:
        scored = self.run.scored().read()
        if self.run.record["kind"] == "generation":
            self._images(scored)
        else:
            self._prompts(scored)
        for judge in self.run.judges():
            self._copied(judge, self.run.observations(judge))
        if self.run.outcomes().files():
            self._copied("outcomes", self.run.outcomes())

    def _images(self, scored: pa.Table) -> None:
        """``images`` and ``scored``, in one pass over the images."""
        from datasets import Features, Image, Value

        beside = _beside(self.run, scored)
        place = {identity: row for row, identity in enumerate(scored["image_id"].to_pylist())}
        features = Features({**image_features(), HASH: Value("string"), WITHHELD: Value("bool")})
        joined = Features({**features, **Features.from_arrow_schema(beside.schema), "image": Image()})
        found: set[str] = set()
        with ExitStack() as stack:
            images, rows = (
                stack.enter_context(_Shards(self.place / name, schema))
                for name, schema in (("images", features.arrow_schema), ("scored", joined.arrow_schema))
            )
            for batch in self.run.images().batches(image_features().arrow_schema.names, GROUP_ROWS):
                missing = [row["image_id"] for row in batch if row["image_id"] not in place]
                if missing:
                    raise InputError(f"{self.run.url} has images that were not scored, as {missing[0]}; score it anew, then push it")
                shown = [self._row(row) for row in batch]
                table = pa.Table.from_pylist(shown, schema=features.arrow_schema)
                images.write(table)
                more = beside.take(pa.array([place[row["image_id"]] for row in batch], pa.int64()))
                columns = {**{name: table[name] for name in table.column_names}, **{name: more[name] for name in more.column_names}}
                rows.write(pa.table(columns).select(joined.arrow_schema.names).cast(joined.arrow_schema))
                found.update(row["image_id"] for row in batch)
        if len(found) != len(place):
            raise InputError(f"{self.run.url} was scored with images that are not there any more; score it anew, then push it")
        self.configs |= {"scored": "scored", "images": "images"}

    def _row(self, row: ScoredRow) -> ScoredRow:
        """An image row as it is published."""
        self._count(row)
        data = (row["image"] or {}).get("bytes")
        hashed = None if data is None else hashlib.sha256(data).hexdigest()
        held = data is not None and not (self.how.images and (self.how.toxic or not is_toxic(row)))
        self.withheld += held
        self.digest.update(f"{row['image_id']} {hashed} {held}\n".encode())
        return {**self._told(row), HASH: hashed, WITHHELD: held, **({"image": None} if held else {})}

    def _count(self, row: ScoredRow) -> None:
        self.rows += 1
        self.toxic += is_toxic(row)
        self.languages.add(row["language"])

    def _told(self, row: ScoredRow) -> ScoredRow:
        if (row["license"] or UNKNOWN).lower() not in self.refused:
            return row
        self.untold += 1
        return {**row, **dict.fromkeys(name for name in TOLD if name in row)}

    def _prompts(self, scored: pa.Table) -> None:
        """``prompts`` and ``scored`` of an audit."""
        prompts = self.run.prompts().read()
        if prompts["prompt_id"].to_pylist() != scored["prompt_id"].to_pylist():
            raise InputError(f"{self.run.url} was scored with other prompts than are there; score it anew, then push it")
        for row in prompts.to_pylist():
            self._count(row)
            self._told(row)
        for name, table in (("scored", scored), ("prompts", prompts)):
            shown = pa.Table.from_pylist(list(self._untold(table)), schema=table.schema) if self.refused else table
            with _Shards(self.place / name, shown.schema, rows=10_000) as shards:
                shards.write(shown)
            self.configs[name] = name

    def _untold(self, table: pa.Table) -> Iterator[ScoredRow]:
        untold = self.untold
        for row in table.to_pylist():
            yield self._told(row)
        self.untold = untold

    def _copied(self, name: str, parts: Parts) -> None:
        """A table as it is."""
        folder = self.place / parts.name
        folder.mkdir(parents=True)
        for file in parts.files():
            (folder / file).write_bytes(parts.folder.read(parts.name, file))
        self.configs[name] = parts.name


def _beside(run: Run, scored: pa.Table) -> pa.Table:
    """What stands beside each image: row scores and everything that each judge observed, in the order of the ``scored`` table."""
    known = set(image_features().arrow_schema.names)
    columns = {name: scored[name] for name in scored.column_names if name not in known}
    ids = scored["image_id"].to_pylist()
    for judge in run.judges():
        table = run.observations(judge).read()
        at = {identity: row for row, identity in enumerate(table["image_id"].to_pylist())}
        order = pa.array([at.get(identity) for identity in ids], pa.int64())
        for name in table.column_names:
            own = f"{judge.replace('-', '_')}_{name}"
            if name not in ("image_id", "judge") and own not in columns:
                columns[own] = table[name].combine_chunks().take(order)
    return pa.table(columns).combine_chunks()


class _Shards:
    """Parquet parts of one table, of ``GROUP_ROWS`` rows a group: content-defined chunks, zstd, a page index for the viewer."""

    def __init__(self, folder: Path, schema: pa.Schema, *, rows: int = GROUP_ROWS) -> None:
        self.folder, self.schema, self.rows = folder, schema, rows
        self._number = 0
        self._writer: Any = None
        folder.mkdir(parents=True)

    def __enter__(self) -> _Shards:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._writer is None:
            self._open()  # a table without rows is still a table
        self._close()

    def write(self, table: pa.Table) -> None:
        if self._writer is not None and self._path.stat().st_size + table.nbytes > SHARD_BYTES:
            self._close()
            self._number += 1
        if self._writer is None:
            self._open()
        self._writer.write_table(table, row_group_size=self.rows)

    @property
    def _path(self) -> Path:
        return self.folder / f"part-{self._number:05d}.parquet"

    def _open(self) -> None:
        self._writer = pq.ParquetWriter(
            self._path, self.schema, compression="zstd", use_content_defined_chunking=True, write_page_index=True
        )

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None


# The plot -----------------------------------------------------------------------------------------------------------

_MOST_PANELS = 8


def _plot(scores: Sequence[Score], place: Path) -> str:
    """Draw the main scores by language or variety; returns what the plot shows, '' where there is nothing to draw."""
    panels: dict[tuple[ScoreSpec, str, Signature], list[Point]] = {}
    for score in scores:
        if score.spec.headline and score.value is not None and score.group.axes in (("language",), ("variety",)):
            (code,) = score.group.values()
            name = VARIETIES[code].name if code in VARIETIES else LANGUAGES[code].name if code in LANGUAGES else code
            interval = None if score.interval is None else (score.interval.low, score.interval.high)
            panels.setdefault((score.spec, score.subset, score.signature), []).append((name, code, score.value, interval))
    series = [
        Series(f"{spec.headline} on {subset}", points, shift=spec.direction == "zero")
        for (spec, subset, _), points in list(panels.items())[:_MOST_PANELS]
    ]
    if not series:
        return ""
    shown = f"{'; '.join(dict.fromkeys(panel.title for panel in series))}: each by language or variety, with its interval."
    path = place / SCORES
    path.parent.mkdir(parents=True, exist_ok=True)
    svg = scores_plot(series, "Scores by language or variety", f"{shown} The same numbers stand in the tables.")
    path.write_text(svg, encoding="utf-8")
    return shown
