"""The command ``push``: prompts, a run, or the metrics; what is named is looked at to see which it is."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from t2i_parity.dataset_builder.commands import push as push_cli
from t2i_parity.dataset_builder.commands.push import show_plan, tell
from t2i_parity.dataset_builder.console import say
from t2i_parity.dataset_builder.errors import InputError

METRICS = "metrics"
_OWN: dict[str, tuple[str, ...]] = {
    "prompts": ("--revision", "--pr", "--private", "--drop-unlicensed", "--gated-toxic", "--gate", "--gated-revision"),
    "a run": ("--revision", "--pr", "--private", "--drop-unlicensed", "--no-images", "--with-toxic", "--gate"),
    METRICS: ("--private",),
}
"""The options that each kind of content takes, beside --to and --dry-run."""


def push(
    what: Annotated[
        str, typer.Argument(metavar="PROMPTS|RUN|metrics", help="A folder that build wrote, a scored run, or the word metrics.")
    ],
    to: Annotated[
        str,
        typer.Option("--to", metavar="NAMESPACE/NAME", help="The dataset repository, made where there is none; for metrics a NAMESPACE."),
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and write nothing.")] = False,
    pr: Annotated[bool, typer.Option("--pr", help="Propose it as a pull request.")] = False,
    revision: Annotated[
        str | None, typer.Option(metavar="REF", help="Go on with a pull request (refs/pr/3), or commit to this branch.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    drop_unlicensed: Annotated[
        bool,
        typer.Option(
            "--drop-unlicensed", help="Leave out prompts without a licence or whose licence forbids derivatives; of runs, their texts."
        ),
    ] = False,
    no_images: Annotated[bool, typer.Option("--no-images", help="Of a run: withhold every image; their hashes stay.")] = False,
    with_toxic: Annotated[
        bool, typer.Option("--with-toxic", help="Of a run: publish the images of toxic prompts too, and put the repository behind a gate.")
    ] = False,
    gated_toxic: Annotated[
        str | None, typer.Option(metavar="NAMESPACE/NAME", help="Of prompts: put the toxic rows into this repository, behind a gate.")
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(
            metavar="auto|manual",
            help="The gate lets in all who agree to its terms (auto, the default), or only whom you choose; it is never loosened here.",
        ),
    ] = None,
    gated_revision: Annotated[str | None, typer.Option(metavar="REF", help="--revision of the gated repository.")] = None,
) -> None:
    """Publish prompts, a scored run or the metrics on the hub; run again, it sends only what is missing.

    Example: t2i-parity push prompts --to me/t2i-parity-prompts --dry-run

    Example: t2i-parity push runs/sdxl --to me/sdxl-run --no-images
    """
    kind = _kind(what)
    given = {
        "--revision": revision, "--pr": pr, "--private": private, "--drop-unlicensed": drop_unlicensed, "--no-images": no_images,
        "--with-toxic": with_toxic, "--gated-toxic": gated_toxic, "--gate": gate, "--gated-revision": gated_revision,
    }  # fmt: skip
    for option, value in given.items():
        if value and option not in _OWN[kind]:
            raise InputError(f"{option} does not go with {kind}; what does: {', '.join(_OWN[kind])}")
    if kind == METRICS:
        _metrics(to, dry_run=dry_run, private=private)
    elif kind == "prompts":
        push_cli.push(Path(what), to, dry_run, pr, revision, private, drop_unlicensed, gated_toxic, gate or "auto", gated_revision)
    else:
        how = (not no_images, with_toxic, drop_unlicensed)
        _run(what, to, dry_run=dry_run, pr=pr, revision=revision, private=private, gate=gate, how=how)


def _kind(what: str) -> str:
    from t2i_parity.dataset_builder.storage import Folder

    if what == METRICS and not Folder(what).exists("run.json") and not Folder(what).exists("README.md"):
        return METRICS
    return "a run" if Folder(what).exists("run.json") else "prompts"


def _run(
    url: str, to: str, *, dry_run: bool, pr: bool, revision: str | None, private: bool, gate: str | None, how: tuple[bool, bool, bool]
) -> None:
    from t2i_parity.dataset_builder import publish
    from t2i_parity.generate.publish import Terms, licences, staged
    from t2i_parity.generate.run import Run

    terms = Terms(*how)
    if gate and not terms.toxic:
        raise InputError("--gate closes a repository that holds images of toxic prompts: give --with-toxic too")
    target = publish.Target(to, revision, create_pr=pr, private=private, gate=(gate or "auto") if terms.toxic else None)
    run = Run.open(url)
    with tempfile.TemporaryDirectory(prefix="t2i-parity-push-") as made:
        content = staged(run, Path(made), terms)
        plan = publish.plan(content, target)
        show_plan(plan, f"{content.card.rows:,} rows")
        push_cli.show_terms(licences(run))
        card = content.card
        if card.withheld:
            which = "images of toxic prompts" if terms.images else "images"
            more = "; --with-toxic publishes them too, behind a gate" if terms.images else ""
            say(f"{card.withheld:,} {which} are withheld, and leave their hashes{more}.")
        if card.untold:
            say(f"{card.untold:,} rows leave their prompts out, for want of a licence.")
        if dry_run:
            say("Dry run: nothing was written.")
            return
        tell(plan, publish.push(content, plan), "scored")


def _metrics(namespace: str, *, dry_run: bool, private: bool) -> None:
    from t2i_parity.generate import spaces

    planned: list[tuple[Any, Any]] = [(space, spaces.plan(space, namespace, private=private)) for space in spaces.metrics()]
    for space, plan in planned:
        counts = Counter(change.kind for change in plan.files)
        state = "a new Space" if plan.head is None else f"main at {plan.head[:12]}"
        say(f"{plan.target.repo_id} {space.tag}, {state}: {', '.join(f'{count} {kind}' for kind, count in counts.items())}")
    if dry_run:
        say("Dry run: nothing was written.")
        return
    for space, plan in planned:
        tell(plan, spaces.push(space, plan))
        say(f'Load it: evaluate.load("{plan.target.repo_id}", revision="{space.tag}")')
