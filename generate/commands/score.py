"""The command ``score``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from t2i_parity.dataset_builder.console import output, say


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
        )
    console = output()
    for table in [*stages.report(opened, samples=False).tables(), *_other_tables(opened)]:
        console.print(table)
    for run in opened:
        say(f"{run.url}: {len(run.scores())} scores in scores.json")


def _other_tables(runs: list[Any]) -> list[Any]:
    """Tables of the metrics that the page has sections for, one a run, metric and subset."""
    from rich.table import Table

    tables: dict[tuple[str, str, str], Table] = {}
    for run in runs:
        if run.record["kind"] != "generation":
            continue
        for entry in run.scores():
            module, key = entry["metric"].split(".", 1)
            if module in ("text_rendering_precision", "cross_lingual_gap", "dialect_penalty"):
                continue
            place = (run.name, module, entry["signature"])
            if place not in tables:
                tables[place] = Table(title=f"{module} on {entry['subset']} ({run.name})", title_justify="left", caption=entry["signature"])
                for heading in ("group", "score", "value", "interval", "n", "missing"):
                    tables[place].add_column(heading)
            interval = "–" if entry["ci_low"] is None else f"{entry['ci_low']:.3f} … {entry['ci_high']:.3f}"
            value = "–" if entry["value"] is None else f"{entry['value']:.3f}"
            tables[place].add_row(entry["group"], key, value, interval, str(entry["n"]), str(entry["n_missing"]))
    return list(tables.values())
