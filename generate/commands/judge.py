"""The command ``judge``."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer
from rich.console import Console

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.settings import listed
from t2i_parity.generate.commands.options import (
    EngineOption,
    RayAddressOption,
    RepairOption,
    RetriesOption,
    finished,
)


def judge(
    instruments: Annotated[
        list[str],
        typer.Option("--with", help="A judge that t2i-parity judges lists, e.g. hybrid, or module:Class; several share one pass."),
    ],
    run: Annotated[str | None, typer.Argument(metavar="RUN", help="The run's folder (any fsspec URL); none with --calibrate.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting; JUDGE.NAME=VALUE where there are several judges."),
    ] = None,
    name: Annotated[str | None, typer.Option("--as", help="Keep the observations under this name (one judge only).")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    retries: RetriesOption = 2,
    repair: RepairOption = False,
    engine: EngineOption = "local",
    ray_address: RayAddressOption = None,
    actors: Annotated[
        list[str] | None, typer.Option(metavar="N", help="With --engine ray: copies of each judge; JUDGE=N for one of several.")
    ] = None,
    gpus_per_actor: Annotated[
        list[str] | None, typer.Option(metavar="N", help="With --engine ray: GPUs of each copy, 0 if left out; JUDGE=N for one of several.")
    ] = None,
    calibrate: Annotated[bool, typer.Option("--calibrate", help="Measure the judges themselves, on material of known truth.")] = False,
    out: Annotated[str, typer.Option(metavar="DIR", help="With --calibrate: the folder of the calibrations.")] = "calibration",
    languages: Annotated[str, typer.Option(help="With --calibrate: only these languages, e.g. en,hi.")] = "",
    texts: Annotated[int | None, typer.Option(min=1, help="With --calibrate: texts a language; 12 when left out.")] = None,
    inside: Annotated[str, typer.Option("--in", metavar="SETTING,…", help="With --calibrate: clean, sign, photo; all when left out.")] = "",
    photos: Annotated[str, typer.Option(metavar="DIR", help="With --calibrate: photographs; scikit-image's own when left out.")] = "",
    truth: Annotated[
        str, typer.Option(metavar="PARQUET", help="With --calibrate: labelled pictures for safety classifiers (image, language, truth).")
    ] = "",
) -> None:
    """Observe every image of a run that the judges have not seen yet; each image is read and decoded once for all of them.

    With --calibrate: how well do the judges see, in every language? Texts of known truth are shown to them, on paper, on signs in scenes
    and in photographs, whole and damaged; score RUN --calibration DIR then sets a reader's ceiling beside what was read. With --truth, a
    parquet file of labelled pictures (image, language, truth: 1 is unsafe), classifiers have a sensitivity and a specificity in each
    language, and score RUN --calibration DIR corrects toxicity rejection for them.

    Example: t2i-parity judge runs/glyph --with hybrid
    """
    from t2i_parity.generate import stages

    if calibrate:
        if run is not None or name is not None:
            raise InputError("--calibrate takes no run and no --as: its material is its own, and DIR/JUDGE.json names the judge")
        _calibrate(instruments, settings, out, languages, texts, inside, photos, truth, batch_size)
        return
    if run is None:
        raise InputError("judge needs a run: t2i-parity judge RUN --with JUDGE; or, to measure the judge itself, --calibrate")
    if languages or texts or inside or photos or truth:
        raise InputError("--languages, --texts, --in, --photos and --truth go with --calibrate; a run is judged whole")
    finished(
        lambda: stages.judge(
            run,
            *instruments,
            settings=settings,
            name=name,
            batch_size=batch_size,
            retries=retries,
            repair=repair,
            engine=engine,
            ray_address=ray_address,
            actors=actors,
            gpus_per_actor=gpus_per_actor,
        ),
        "observations",
    )


def _calibrate(
    instruments: list[str],
    settings: list[str] | None,
    out: str,
    languages: str,
    texts: int | None,
    inside: str,
    photos: str,
    truth: str,
    batch_size: int,
) -> None:
    from t2i_parity.generate.calibration import SETTINGS, Plan, calibrate, table
    from t2i_parity.generate.judges import JUDGES, load
    from t2i_parity.generate.stages import judge_settings

    names = [JUDGES.find(each).name for each in instruments]
    options = judge_settings(names, settings)
    named = dict(zip(names, instruments, strict=True))
    chosen = listed(inside)
    if unknown := sorted(set(chosen) - set(SETTINGS)):
        raise InputError(f"--in {','.join(unknown)}: expected some of {', '.join(SETTINGS)}")
    plan = Plan(settings=chosen or tuple(SETTINGS), photos=photos)
    if truth and (texts or inside or photos):
        raise InputError("--truth brings its own pictures: leave out --texts, --in and --photos")
    plan = replace(plan, languages=listed(languages), truth=truth) if languages or truth else plan
    plan = replace(plan, texts=texts) if texts else plan
    for each, spec in named.items():
        found = calibrate(each, load(spec, options[each]), plan, out, batch_size=batch_size, console=Console(stderr=True))
        for code, reason in found["unread"].items():
            Console(stderr=True).print(f"{each} was not asked about {code}: {reason}", markup=False, style="yellow", soft_wrap=True)
        output().print(table(found))
        say(f"{out}/{each}.json, {out}/{each}.parquet")
