"""The command ``generate``."""

from __future__ import annotations

from typing import Annotated

import typer

from t2i_parity.generate.commands.options import (
    EngineOption,
    LanguagesOption,
    LimitOption,
    OutOption,
    PromptsOption,
    RayAddressOption,
    RepairOption,
    RetriesOption,
    SetOption,
    finished,
)


def generate(
    model: Annotated[
        str, typer.Option(help="A name that t2i-parity models lists, FAMILY:SOURCE, or a diffusers pipeline by folder or hub id.")
    ],
    prompts: PromptsOption,
    out: OutOption,
    config: Annotated[str | None, typer.Option(help="Config of the prompts; their default when left out.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of the prompts on the hub.")] = None,
    settings: SetOption = None,
    guardrail: Annotated[
        str | None, typer.Option(metavar="NAME", help="One that t2i-parity guardrails lists, or module:Class; unguarded when left out.")
    ] = None,
    guard: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A setting of the guardrail; may be given again.")] = None,
    languages: LanguagesOption = "",
    only: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE,…", help="Only such rows, e.g. --only dimension=IQ-R.")] = None,
    mini: Annotated[bool, typer.Option("--mini", help="A tenth of the meanings, the same ones every time.")] = False,
    limit: LimitOption = None,
    seed: Annotated[int, typer.Option(help="Base seed; 42 in the LingT2I study.")] = 42,
    images_per_prompt: Annotated[int, typer.Option(min=1)] = 1,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows at once; 32 for glyph, 4 for a pipeline.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make the rows that failed anew.")] = False,
    retries: RetriesOption = 2,
    repair: RepairOption = False,
    devices: Annotated[
        str, typer.Option(metavar="DEVICE,…", help="One process a device, e.g. cuda:0,cuda:1; the model's own when left out.")
    ] = "",
    engine: EngineOption = "local",
    ray_address: RayAddressOption = None,
    actors: Annotated[int, typer.Option(min=1, help="With --engine ray: how many copies of the model.")] = 1,
    gpus_per_actor: Annotated[float | None, typer.Option(min=0, help="With --engine ray: GPUs each; 1 where Ray knows of any.")] = None,
) -> None:
    """Generate images from prompts; ended at any moment, the same command goes on where it was.

    Example: t2i-parity generate --model glyph --prompts prompts --config lingt2i_text --out runs/glyph
    """
    from t2i_parity.dataset_builder.prompts import load_prompts
    from t2i_parity.generate import stages

    opened = load_prompts(prompts, config, revision=revision, languages=languages, only=only or [], mini=mini, limit=limit)
    finished(
        lambda: stages.generate(
            model,
            opened,
            out=out,
            settings=settings,
            guardrail=guardrail,
            guard=guard,
            seed=seed,
            images_per_prompt=images_per_prompt,
            batch_size=batch_size,
            retry_failed=retry_failed,
            retries=retries,
            repair=repair,
            devices=devices,
            engine=engine,
            ray_address=ray_address,
            actors=actors,
            gpus_per_actor=gpus_per_actor,
        ),
        "images",
    )
