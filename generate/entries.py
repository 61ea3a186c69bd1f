"""Scores as scores.json keeps them: one entry a number, with its interval, how many rows it stands on, and what it depends on."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.run import Run
from t2i_parity.metrics.text_rendering_precision.common import Signature
from t2i_parity.metrics.text_rendering_precision.core import DEFAULT_TOKENIZER

Scores = list[dict[str, Any]]


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


def seen_by(run: Run, judge: str, key: str, ids: Sequence[str]) -> tuple[dict[str, list[Any]], str]:
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
    return {name: [None if row is None else values[name][row] for row in order] for name in seen}, signatures[0]


def with_judge(signature: str, key: str, other: str) -> str:
    """A metric's signature with that of what it measured through: without it two numbers would look comparable that are not."""
    parsed = Signature.parse(signature)
    inner = other.replace("|", ",").replace(":", "=")
    return str(Signature(parsed.metric, {**parsed.fields, key: inner}, parsed.version))


def entries(
    metric: str,
    keys: Sequence[str],
    subset: str,
    group: str,
    answer: Mapping[str, Any],
    signature: str,
    *,
    higher_is_better: bool | None = True,
    unit: str | None = None,
) -> Scores:
    """The entries of a metric's answer, one a key; ``unit`` where its name does not tell."""
    intervals = answer.get("ci", {})
    return [
        entry(
            f"{metric}.{key}",
            subset,
            group,
            answer[key],
            _n(key, answer),
            answer["n_missing"],
            tuple(intervals.get(key, (None, None))),
            signature,
            higher_is_better=higher_is_better,
            unit=unit,
        )
        for key in keys
    ]


_STANDS_ON = {"match_rate": "n_cue", "match_rate_known": "n_known"}
"""Rates over a part of the judged rows, and the key of an answer that counts that part."""


def _n(key: str, answer: Mapping[str, Any]) -> int:
    """How many rows a number stands on: a rate of toxic pairs, say, on those alone."""
    for rate, count in (("tpr", "n_toxic"), ("fpr", "n_benign")):
        if rate in key.split("_"):
            return int(answer[count])
    if key in _STANDS_ON:
        return int(answer[_STANDS_ON[key]])
    return int(answer.get("n_conditioned", answer["n"]))


def entry(
    metric: str,
    subset: str,
    group: str,
    value: float | None,
    n: int,
    n_missing: int,
    interval: Sequence[float | None],
    signature: str,
    *,
    higher_is_better: bool | None = True,
    unit: str | None = None,
) -> dict[str, Any]:
    """One entry of scores.json: a value with what every printed score has."""
    if unit is None or ".p_" in metric:
        unit = (
            "p" if ".p_" in metric else "pp" if metric.endswith("_pp") else "count" if "_only_" in metric or ".n_" in metric else "fraction"
        )
    return {
        "metric": metric,
        "subset": subset,
        "group": group,
        "value": value,
        "n": n,
        "n_missing": n_missing,
        "ci_low": interval[0],
        "ci_high": interval[1],
        "signature": signature,
        "higher_is_better": None if unit in ("p", "count") else higher_is_better,
        "unit": unit,
    }


def csv_of(scores: Sequence[Mapping[str, Any]]) -> bytes:
    """The entries as CSV, one a line; a text that a spreadsheet would take for a formula is quoted as a text."""
    stream = io.StringIO()
    columns = ["metric", "subset", "group", "value", "n", "n_missing", "ci_low", "ci_high", "unit", "higher_is_better", "signature"]
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    for score in scores:
        row = {name: score[name] for name in columns}
        writer.writerow(
            {name: f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@") else cell for name, cell in row.items()}
        )
    return stream.getvalue().encode("utf-8")
