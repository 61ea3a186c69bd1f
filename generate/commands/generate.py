"""The command ``generate``."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Console

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.settings import pairs
from t2i_parity.generate.commands.options import (
    Engine,
    EngineOption,
    LanguagesOption,
    LimitOption,
    OutOption,
    PromptsOption,
    RayAddressOption,
    RepairOption,
    RetriesOption,
    SetOption,
    arguments,
    only_with_ray,
    tell,
)


def generate(
    ctx: typer.Context,
    model: Annotated[
        str, typer.Option(help="A name that t2i-parity models lists, FAMILY:SOURCE, or a diffusers pipeline by folder or hub id.")
    ],
    prompts: PromptsOption,
    out: OutOption,
    config: Annotated[str | None, typer.Option(help="Config of the prompts; their default when left out.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of the prompts on the hub.")] = None,
    settings: SetOption = None,
    guardrail: Annotated[
        str | None, typer.Option(metavar="NAME", help="safe-latent-diffusion, promptguard or safety-checker; unguarded when left out.")
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
    engine: EngineOption = Engine.local,
    ray_address: RayAddressOption = None,
    actors: Annotated[int, typer.Option(min=1, help="With --engine ray: how many copies of the model.")] = 1,
    gpus_per_actor: Annotated[float | None, typer.Option(min=0, help="With --engine ray: GPUs each; 1 where Ray knows of any.")] = None,
) -> None:
    """Generate images from prompts; ended at any moment, the same command goes on where it was.

    Example: t2i-parity generate --model glyph --prompts prompts --config lingt2i_text --out runs/glyph
    """
    from t2i_parity.dataset_builder.repository import open_prompts
    from t2i_parity.dataset_builder.schema import MINIMUM
    from t2i_parity.dataset_builder.selection import select_rows, wanted
    from t2i_parity.generate import images
    from t2i_parity.generate.guardrails.model import load
    from t2i_parity.generate.layout import with_condition_images
    from t2i_parity.generate.models.catalog import columns_of
    from t2i_parity.generate.run import Run, fingerprint, rows_of

    options, guards = pairs(settings), pairs(guard, "--guard")
    # The light one first: the rows' errors come before a model is loaded.
    needs = MINIMUM + columns_of(model)
    opened = open_prompts(prompts, config, columns=needs, revision=revision)
    chosen = wanted([*(only or []), *([f"language={languages}"] if languages else [])])
    rows = with_condition_images(select_rows(rows_of(opened.table), **chosen, mini=mini, limit=limit), opened.table, model)
    loading = images.Loading(partial(load, model, guardrail=guardrail, guards=guards), options, retries)
    with _maker(loading, engine, devices, ray_address, actors, gpus_per_actor) as maker:
        maker.ask("check", rows)
        cut = maker.ask("truncated", rows)
        for part, languages_cut in cut.items():
            counts = ", ".join(f"{code} {number}" for code, number in languages_cut.items())
            Console(stderr=True).print(
                f"{part} sees only the beginning of some prompts: {counts}", markup=False, style="yellow", soft_wrap=True
            )
        record = maker.ask("record")
        guarded_by = maker.ask("guardrail_record") if guardrail is not None else None
        run = Run.start(
            out,
            "generation",
            identity={"model": record, "guardrail": guarded_by, "seed": seed, "prompts": opened.origin},
            details={
                "device": maker.ask("device"),
                "engine": engine.value,
                "execution": maker.ask("execution"),
                "truncated": cut,
                "arguments": arguments(ctx),
            },
        )
        with run.locked():
            tally = images.generate(
                run,
                images.planned(
                    rows,
                    record,
                    seed=seed,
                    images_per_prompt=images_per_prompt,
                    guardrail=None if guarded_by is None else fingerprint(guarded_by),
                ),
                maker,
                batch_size=batch_size or maker.ask("rows_at_once") or (32 if model == "glyph" else 4),
                console=Console(stderr=True),
                retry_failed=retry_failed,
                repair=repair,
            )
            run.write_card()
    tell(tally, "images", out)


def _maker(loading: Any, engine: Engine, devices: str, ray_address: str | None, actors: int, gpus: float | None) -> Any:
    """What makes the images, as a context that ends the processes that it began."""
    if engine is Engine.ray:
        if devices:
            raise InputError("--devices goes with --engine local; with ray, --actors and --gpus-per-actor say where the model runs")
        from t2i_parity.generate.engine import ray_data

        return ray_data.RayImages.on(ray_address, loading, actors=actors, gpus=gpus)
    only_with_ray(ray_address=ray_address, actors=actors if actors != 1 else None, gpus_per_actor=gpus)
    if devices:
        from t2i_parity.generate.engine.devices import Devices

        return Devices(loading, [device.strip() for device in devices.split(",")])
    return nullcontext(loading())
