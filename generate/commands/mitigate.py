"""The command ``mitigate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.settings import listed, pairs, recorded
from t2i_parity.dataset_builder.settings import settings as typed

if TYPE_CHECKING:
    from t2i_parity.generate.mitigate.data import Material, Split


def mitigate(
    model: Annotated[str, typer.Option(help="The filter to repair, or a model to make one of: a transformers folder or hub id.")],
    prompts: Annotated[str, typer.Option(help="Prompts in several varieties: a built folder, or a hub id.")],
    out: Annotated[str, typer.Option(metavar="DIR", help="The sweep's folder; one that holds the same sweep is gone on with.")],
    config: Annotated[str, typer.Option(help='Config of the prompts; "" for a folder of parquet that has none.')] = "dialect",
    revision: Annotated[str | None, typer.Option(help="Revision of the prompts on the hub.")] = None,
    model_revision: Annotated[str | None, typer.Option(help="Revision of the model on the hub.")] = None,
    methods: Annotated[
        str, typer.Option(metavar="NAME,…", help="erm, balanced, group-balanced, groupdro.")
    ] = "erm,balanced,group-balanced,groupdro",
    ratios: Annotated[
        str, typer.Option(metavar="PER CENT,…", help="How much of the training rows is in SAE.")
    ] = "97.5,98,98.5,99,99.5,100",
    seeds: Annotated[int, typer.Option(min=1, help="Seeds, from 0 on: of rows, new weights, batches.")] = 10,
    varieties: Annotated[str, typer.Option(metavar="CODE,…", help="Only these beside SAE; all that are there when left out.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="How a filter is trained, e.g. learning_rate=2e-5; may be given again."),
    ] = None,
    test: Annotated[float, typer.Option(min=0.01, max=0.8, help="Share of the meanings to measure on.")] = 0.1,
    validation: Annotated[float, typer.Option(min=0.01, max=0.8, help="Share of the others to end training by.")] = 0.1,
    split_seed: Annotated[int, typer.Option(help="Which meanings stand in which part.")] = 0,
    keep: Annotated[
        str, typer.Option(metavar="best|METHOD[@PER CENT]|none", help="Whose filters may be kept; the best on validation is.")
    ] = "best",
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Train the cells that failed anew.")] = False,
) -> None:
    """Repair a text filter: train it again on varieties of English in given shares, and measure it on other prompts in each variety.

    Every method, ratio and seed is one cell; ended at any moment, the same command goes on where it was. OUT/filter is then a filter for
    audit-filter --filter transformers --set model=OUT/filter, and OUT/test holds the prompts that none was trained on.

    Example: t2i-parity mitigate --model distilbert-base-uncased --prompts prompts --ratios 99,99.5,100 --seeds 3 --out repaired
    """
    import pyarrow as pa

    from t2i_parity.cards.mitigation import PLOT, console_table, filter_card, sweep_card
    from t2i_parity.cards.plots import mitigation_plot
    from t2i_parity.dataset_builder.prompts import load_prompts
    from t2i_parity.dataset_builder.schema import PAIRED
    from t2i_parity.dataset_builder.storage import Folder, parquet_bytes
    from t2i_parity.generate.backends.identity import files_sha256
    from t2i_parity.generate.mitigate import METHODS, data
    from t2i_parity.generate.mitigate.sweep import FILTER, TEST, Sweep, kept, perform, planned, record_of, summary
    from t2i_parity.generate.mitigate.train import TrainingSettings, load_base
    from t2i_parity.generate.run import Run

    arguments = recorded(mitigate, locals())
    chosen_methods = [METHODS.load(name) for name in listed(methods)]
    shares = _ratios(ratios)
    how = typed(TrainingSettings, pairs(settings), "mitigate")
    _check_keep(keep)
    if not Folder(out).local:
        raise InputError(f"--out {out}: filters are written file by file, so the folder must be on a disk of this machine")
    opened = load_prompts(prompts, config or None, revision=revision).need(PAIRED)
    rows = opened.table.to_pylist()
    material = data.material(data.chosen(rows, listed(varieties)) if varieties else rows)
    parts = data.split(material.meanings, test=test, validation=validation, seed=split_seed)
    base, base_config = load_base(model, model_revision, how)
    local = Path(model).is_dir()
    named = {"model": Path(model).resolve().name, "files_sha256": files_sha256(Path(model))} if local else {
        "model": model,
        "revision": model_revision or getattr(base_config, "_commit_hash", None),
    }  # fmt: skip
    identity = {
        "model": named,
        "prompts": opened.origin,
        **record_of(how, test=test, validation=validation, split_seed=split_seed, varieties=material.varieties),
    }
    run = Run.start(out, "mitigation", identity=identity, details={"device": how.device, "arguments": arguments})
    sweep = Sweep(run, base, material, parts, how, keep)
    cells = planned(chosen_methods, shares, seeds, as_given=base.toxic is not None)
    told = Console(stderr=True)
    counts = [len(part) for part in (parts.train, parts.validation, parts.test)]
    told.print(
        f"{counts[0]} meanings to train on, {counts[1]} to end training by, {counts[2]} to measure on, each in "
        f"{', '.join(material.varieties)}" + (f"; {material.incomplete} that lack a variety are left out" if material.incomplete else ""),
        markup=False, soft_wrap=True,
    )  # fmt: skip
    _tell_thin(shares, parts, material, told)
    with run.locked():
        # The filter is audited on these alone: it was trained on the others.
        measured = {meaning.pair_id for meaning in parts.test}
        unseen = [row["pair_id"] in measured and row["variety"] in material.varieties for row in rows]
        run.folder.write(parquet_bytes(opened.table.filter(pa.array(unseen))), TEST, "test.parquet")
        tally = perform(sweep, cells, told, retry_failed=retry_failed)
        best = kept(sweep)
        found = summary(sweep, title=f"Mitigation of {named['model']}")
        plotted = bool(found.lines)
        if plotted:
            title = "Worst-group accuracy and difference in false alarms by the share of SAE in training"
            run.folder.write(mitigation_plot(found, title, "Each mark is a mean over seeds, each bar its deviation.").encode("utf-8"), PLOT)
        run.folder.write(sweep_card(found, best, plotted=plotted).encode("utf-8"), "README.md")
        if best is not None:
            run.folder.write(filter_card(found, best, base=str(named["model"]), hub=not local).encode("utf-8"), FILTER, "README.md")
    console = output()
    console.print(console_table(found))
    if best is not None:
        console.print(
            f"kept: {best['cell_id']} in {out}/{FILTER}; audit it: t2i-parity audit-filter --filter transformers "
            f"--set model={out}/{FILTER} --prompts {out}/{TEST} --out DIR",
            markup=False, soft_wrap=True, highlight=False,
        )  # fmt: skip
    failed = f", {tally.failed} of them failed (their reasons stand in the rows)" if tally.failed else ""
    say(f"{out}: {tally.done} cells made now{failed}, {tally.before} were there")
    if tally.stopped:
        console.print("stopped; the same command goes on from here", markup=False)
        raise typer.Exit(130)


def _ratios(text: str) -> list[float]:
    """The ratios in their order. Raises InputError naming one that is no per cent.

    >>> _ratios("97.5, 100")
    [97.5, 100.0]
    """
    found = []
    for part in listed(text):
        try:
            ratio = float(part)
        except ValueError:
            ratio = -1.0
        if not 0 < ratio <= 100:
            raise InputError(f"--ratios {text}: {part!r} is no per cent of rows in SAE; expected numbers above 0, up to 100")
        found.append(ratio)
    return list(dict.fromkeys(found))


def _check_keep(keep: str) -> None:
    from t2i_parity.generate.mitigate import METHODS

    if keep in ("best", "none"):
        return
    name, at, ratio = keep.partition("@")
    METHODS.load(name)
    if at:
        _ratios(ratio)


def _tell_thin(ratios: list[float], parts: Split, material: Material, console: Console) -> None:
    """Say at which ratios some groups have no training row, so that no sampling and no weighing can help them."""
    from t2i_parity.generate.mitigate.data import composed, group_sizes

    thin = []
    for ratio in ratios:
        sizes = group_sizes(composed(parts.train, material.varieties, share=1 - ratio / 100, seed=0), len(material.groups))
        if ratio < 100 and 0 in sizes:
            thin.append(f"{ratio:g} % ({sizes.count(0)} of {len(sizes)})")
    if thin:
        console.print(
            f"so few prompts that some groups have no training row at {', '.join(thin)}", markup=False, style="yellow", soft_wrap=True
        )
