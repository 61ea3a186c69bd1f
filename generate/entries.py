"""What scoring is told, what it reads of a run, and its scores as a table for spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t2i_parity.dataset_builder import vocabulary
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.run import Run
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Row, Score
from t2i_parity.metrics.stored import instrument
from t2i_parity.metrics.text_rendering_precision.core import DEFAULT_TOKENIZER

Scores = list[Score]


@dataclass(frozen=True, slots=True)
class ScoreSettings:
    """What a scoring is told: the metrics' keywords, how intervals are drawn, and where readers' ceilings stand, in which setting."""

    tokenizer: str = DEFAULT_TOKENIZER
    normalization: str = "none"
    variant: str = "paper"
    confidence_level: float = 0.95
    n_resamples: int = 1000
    seed: int = 0
    calibration: str = ""
    ceiling: str = "sign"

    @property
    def resampling(self) -> dict[str, Any]:
        """The keywords that every metric shares."""
        return {"confidence_level": self.confidence_level, "n_resamples": self.n_resamples, "seed": self.seed}

    @property
    def record(self) -> dict[str, Any]:
        """All of it, as run.json keeps it, so that the scores can be computed again; of folders only their names."""
        names = {name: Path(value).name for name, value in (("tokenizer", self.tokenizer), ("calibration", self.calibration))}
        named = names if Path(self.tokenizer).is_dir() else {"calibration": names["calibration"]}
        return {**asdict(self), **named}


def seen_by(run: Run, judge: str, key: str, ids: Sequence[str]) -> tuple[dict[str, list[Any]], Signature]:
    """What a judge saw, a column each in the order of ``ids`` (None where there is nothing), and the judge's signature."""
    table = run.observations(judge).read()
    signatures = table["judge"].unique().to_pylist()
    if len(signatures) != 1:
        raise InputError(
            f"{run.url}: observations/{judge} were made under {len(signatures)} settings ({'; '.join(signatures)}); judge them anew"
        )
    place = {identity: row for row, identity in enumerate(table[key].to_pylist())}
    order = [place.get(identity) for identity in ids]
    seen = [name for name in table.column_names if name not in (key, "judge", "status", "reason")]
    values = {name: table[name].to_pylist() for name in seen}
    return {name: [None if row is None else values[name][row] for row in order] for name in seen}, instrument(signatures[0])


def stamped(signature: Signature, rows: Sequence[Row]) -> Signature:
    """A signature that also says which vocabulary of somebody else's these rows' languages and varieties are declared in, if one is."""
    stamp = vocabulary.stamp({row["language"] for row in rows}, {row["variety"] for row in rows})
    return signature if stamp is None else signature.having(vocabulary=stamp)


def csv_of(scores: Sequence[Score]) -> bytes:
    """The scores as CSV, one a line; a text that a spreadsheet would take for a formula is quoted as a text."""
    stream = io.StringIO()
    columns = [
        "metric",
        "key",
        "subset",
        "group",
        "value",
        "n",
        "n_missing",
        "ci_low",
        "ci_high",
        "level",
        "unit",
        "direction",
        "signature",
    ]
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    for score in scores:
        low, high = score.ends
        row = {**score.json(), "group": str(score.group), "ci_low": low, "ci_high": high}
        cells = {name: row[name] for name in columns}
        writer.writerow(
            {name: f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@") else cell for name, cell in cells.items()}
        )
    return stream.getvalue().encode("utf-8")
