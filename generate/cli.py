"""Commands of this package: ``generate``, ``judge``, ``audit-filter``, ``score``, ``report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from dataset_builder.console import output
from dataset_builder.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

RunPath = Annotated[str, typer.Argument(metavar="RUN", help="The run's folder (any fsspec URL).")]
SetOption = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help="A setting; may be given again.")]
PromptsOption = Annotated[str, typer.Option(help="Prompts: a built folder, or a hub id.")]
LanguagesOption = Annotated[str, typer.Option(help="Only these languages, e.g. en,hi.")]
LimitOption = Annotated[int | None, typer.Option(help="At most so many rows, spread evenly over languages and varieties.")]
OutOption = Annotated[str, typer.Option(help="The run's folder (any fsspec URL); one that holds the same run is gone on with.")]


@app.callback()
def _package() -> None:
    """Run models, judges and filters over rows; score what they saw."""


@app.command()
def generate(
    ctx: typer.Context,
    model: Annotated[str, typer.Option(help="glyph, or a diffusers pipeline by folder or hub id.")],
    prompts: PromptsOption,
    out: OutOption,
    config: Annotated[str | None, typer.Option(help="Config of the prompts; their default when left out.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of the prompts on the hub.")] = None,
    settings: SetOption = None,
    languages: LanguagesOption = "",
    only: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE,…", help="Only such rows, e.g. --only dimension=IQ-R.")] = None,
    mini: Annotated[bool, typer.Option("--mini", help="A tenth of the meanings, the same ones every time.")] = False,
    limit: LimitOption = None,
    seed: Annotated[int, typer.Option(help="Base seed; 42 in the LingT2I study.")] = 42,
    images_per_prompt: Annotated[int, typer.Option(min=1)] = 1,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Rows at once; 32 for glyph, 4 for a pipeline.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make the rows that failed anew.")] = False,
) -> None:
    """Generate images from prompts; ended at any moment, the same command goes on where it was.

    Example: t2i-parity generate --model glyph --prompts prompts --config lingt2i_text --out runs/glyph
    """
    from dataset_builder.repository import open_prompts
    from dataset_builder.schema import MINIMUM
    from dataset_builder.selection import select_rows, wanted
    from generate import images
    from generate.models import load
    from generate.run import Run, rows_of

    options = _options(settings)
    # The light one first: the rows' errors come before a model is loaded.
    needs = MINIMUM if model != "glyph" else MINIMUM + _glyph_columns()
    opened = open_prompts(prompts, config, columns=needs, revision=revision)
    chosen = wanted([*(only or []), *([f"language={languages}"] if languages else [])])
    rows = select_rows(rows_of(opened.table), **chosen, mini=mini, limit=limit)
    generator = load(model, options)
    generator.check(rows)
    cut = generator.truncated(rows)
    for part, languages_cut in cut.items():
        counts = ", ".join(f"{code} {number}" for code, number in languages_cut.items())
        Console(stderr=True).print(
            f"{part} sees only the beginning of some prompts: {counts}", markup=False, style="yellow", soft_wrap=True
        )
    run = Run.start(
        out,
        "generation",
        identity={"model": generator.record(), "guardrail": None, "seed": seed, "prompts": opened.origin},
        details={"device": generator.device, "compile": None, "truncated": cut, "arguments": _arguments(ctx)},
    )
    with run.locked():
        plan = images.planned(rows, generator, seed=seed, images_per_prompt=images_per_prompt)
        tally = images.generate(
            run,
            plan,
            generator,
            batch_size=batch_size or (32 if model == "glyph" else 4),
            console=Console(stderr=True),
            retry_failed=retry_failed,
        )
        run.write_card()
    _tell(tally, "images", out)


@app.command()
def judge(
    run: RunPath,
    instrument: Annotated[str, typer.Option("--with", help="The judge: tesseract.")],
    settings: SetOption = None,
    name: Annotated[str | None, typer.Option("--as", help="Keep the observations under this name.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
) -> None:
    """Observe every image of a run that the judge has not seen yet.

    Example: t2i-parity judge runs/glyph --with tesseract
    """
    from generate import observe
    from generate.judges import load
    from generate.run import Run

    opened = Run.open(run)
    if opened.record["kind"] != "generation":
        raise InputError(f"{run} is an audit of a text filter and has no images to judge")
    loaded = load(instrument, _options(settings))
    with opened.locked():
        tally = observe.judge(opened, loaded, name=name or loaded.name, batch_size=batch_size, console=Console(stderr=True))
        opened.write_card()
    _tell(tally, "observations", run)


@app.command("audit-filter")
def audit_filter(
    ctx: typer.Context,
    text_filter: Annotated[str, typer.Option("--filter", help="The filter: profanity-check.")],
    prompts: PromptsOption,
    out: OutOption,
    config: Annotated[str | None, typer.Option(help="Config of the prompts; their default when left out.")] = None,
    revision: Annotated[str | None, typer.Option(help="Revision of the prompts on the hub.")] = None,
    settings: SetOption = None,
    name: Annotated[str | None, typer.Option("--as", help="Keep the verdicts under this name.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 1024,
) -> None:
    """Ask a text filter about paired prompts: does it treat a variety of a language like its standard?

    Takes any dataset with the columns prompt_id, pair_id, prompt, language, variety and label (benign, toxic).

    Example: t2i-parity audit-filter --filter profanity-check --prompts prompts --config dialect --out runs/audit
    """
    from dataset_builder.repository import open_prompts
    from dataset_builder.schema import PAIRED
    from generate import observe
    from generate.filters import load
    from generate.run import Run, rows_of
    from generate.score import pairs_of

    opened = open_prompts(prompts, config, columns=PAIRED, revision=revision)
    rows = rows_of(opened.table)
    pairs_of(rows)
    loaded = load(text_filter, _options(settings))
    if foreign := sorted({row["language"] for row in rows} - set(loaded.languages)):
        Console(stderr=True).print(
            f"{loaded.name} was made for {', '.join(loaded.languages)}; what it says of {', '.join(foreign)} shows little",
            markup=False,
            style="yellow",
            soft_wrap=True,
        )
    run = Run.start(out, "audit", identity={"prompts": opened.origin}, details={"arguments": _arguments(ctx)})
    with run.locked():
        if not run.prompts().files():
            run.prompts().replace(_strings(rows))
        tally = observe.audit(run, rows, loaded, name=name or loaded.name, batch_size=batch_size, console=Console(stderr=True))
        run.write_card()
    _tell(tally, "verdicts", out)


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
) -> None:
    """Turn a run's observations into scores with intervals and signatures.

    Example: t2i-parity score runs/glyph --tokenizer tekken
    """
    from cards.report import console_tables
    from generate.report import gather
    from generate.run import Run
    from generate.score import ScoreSettings
    from generate.score import score as score_run

    how = ScoreSettings(tokenizer, normalization, variant, confidence, resamples, seed)
    opened = [Run.open(url) for url in runs]
    for run in opened:
        with run.locked():
            score_run(run, how)
    console = output()
    for table in [*console_tables(gather(opened, title="", samples=False)), *_other_tables(opened)]:
        console.print(table)
    for run in opened:
        console.print(f"{run.url}: {len(run.scores())} scores in scores.json", markup=False, soft_wrap=True, highlight=False)


def _other_tables(runs: list[Any]) -> list[Any]:
    """Tables of the metrics that the report has no place for yet, one a run, metric and subset."""
    from rich.table import Table

    tables: dict[tuple[str, str, str], Table] = {}
    for run in runs:
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
    from cards.report import console_tables, render
    from dataset_builder.storage import Folder
    from generate.report import gather
    from generate.run import Run

    gathered = gather([Run.open(url) for url in runs], title=title)
    Folder(str(out.parent)).write(render(gathered).encode("utf-8"), out.name)
    console = output()
    if tables:
        for table in console_tables(gathered):
            console.print(table)
    console.print(f"report: {out}", markup=False, soft_wrap=True, highlight=False)


def _glyph_columns() -> Any:
    from dataset_builder.schema import CONFIGS

    return tuple(column for column in CONFIGS["lingt2i_text"].columns if column.name in ("render_text", "render_layout"))


def _options(pairs: list[str] | None) -> dict[str, str]:
    options = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(f"--set {pair}: expected NAME=VALUE")
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
        for name in ("out", "prompts", "model"):
            if isinstance(values.get(name), str) and Path(values[name]).is_absolute():
                values[name] = Path(values[name]).name
    return found


def _strings(rows: list[dict[str, Any]]) -> Any:
    import pyarrow as pa

    from generate.run import PROMPT_COLUMNS

    return pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in PROMPT_COLUMNS]))


def _tell(tally: Any, what: str, out: str) -> None:
    console = output()
    failed = f", {tally.failed} of them failed (their reasons stand in the rows)" if tally.failed else ""
    console.print(f"{out}: {tally.done} {what} made now{failed}, {tally.before} were there", markup=False, soft_wrap=True, highlight=False)
    if tally.stopped:
        console.print("stopped; the same command goes on from here", markup=False)
        raise typer.Exit(130)
