"""The command ``score``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.generate.commands.options import MarginOption

if TYPE_CHECKING:
    from rich.table import Table

    from t2i_parity.generate.run import Run
    from t2i_parity.metrics._common import Signature


def score(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Runs to score.")],
    tokenizer: Annotated[
        str, typer.Option(help="Tokenizer of the token-level NED: a hub id, a folder, or tekken (offline).")
    ] = "google/mt5-base",
    normalization: Annotated[str, typer.Option(help="none or nfc.")] = "none",
    variant: Annotated[str, typer.Option(help="paper or reference: which weights make the precision.")] = "paper",
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    calibration: Annotated[str, typer.Option(metavar="DIR", help="Set the reader's ceiling beside its scores (judge --calibrate).")] = "",
    ceiling: Annotated[str, typer.Option(metavar="SETTING", help="The ceiling in which setting: clean, sign or photo.")] = "sign",
    margin: MarginOption = None,
) -> None:
    """Turn a run's observations into scores with intervals and signatures.

    Example: t2i-parity score runs/glyph --tokenizer tekken
    """
    from t2i_parity.generate import stages

    opened = [stages.open_run(url) for url in runs]
    for run in opened:
        stages.score(
            run,
            tokenizer=tokenizer,
            normalization=normalization,
            variant=variant,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            calibration=calibration,
            ceiling=ceiling,
            margin=margin,
        )
    console = output()
    for table in [*stages.report(opened, samples=False).tables(), *_other_tables(opened)]:
        console.print(table)
    for run in opened:
        say(f"{run.url}: {len(run.scores())} scores in scores.json")
        for judge, columns in run.record["scoring"].get("unused", {}).items():
            say(f"{run.url}: observations/{judge} are kept; no metric is made from {', '.join(columns)}")


def _other_tables(runs: list[Run]) -> list[Table]:
    """Tables of the metrics that the page has sections for, one a run, metric and subset."""
    from rich.table import Table

    from t2i_parity.generate.specs import specs

    elsewhere = [spec.name for spec in specs().values() if spec.place in ("text", "gap")]
    tables: dict[tuple[str, str, Signature], Table] = {}
    for run in runs:
        if run.record["kind"] != "generation":
            continue
        for score in run.scores():
            if score.metric in elsewhere:
                continue
            place = (run.name, score.metric, score.signature)
            if place not in tables:
                title = f"{score.metric} on {score.subset} ({run.name})"
                tables[place] = Table(title=title, title_justify="left", caption=str(score.signature))
                for heading in ("group", "score", "value", "interval", "n", "missing"):
                    tables[place].add_column(heading)
            interval = "–" if score.interval is None else f"{score.interval.low:.3f} … {score.interval.high:.3f}"
            value = "–" if score.value is None else f"{score.value:.3f}"
            tables[place].add_row(str(score.group), score.key, value, interval, str(score.n), str(score.n_missing))
    return list(tables.values())
