"""The command ``push`` for prompts, and how any push is shown; ``generate.commands.push`` has it for runs and metrics too."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError

if TYPE_CHECKING:
    from t2i_parity.dataset_builder.publish import Outcome, Plan
    from t2i_parity.dataset_builder.release import Dropped, Licensed, Release


def push(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that build wrote.")],
    to: Annotated[str, typer.Option("--to", metavar="NAMESPACE/NAME", help="The dataset repository; made where there is none.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would change, and write nothing.")] = False,
    pr: Annotated[bool, typer.Option("--pr", help="Propose it as a pull request.")] = False,
    revision: Annotated[
        str | None, typer.Option(metavar="REF", help="Go on with a pull request (refs/pr/3), or commit to this branch.")
    ] = None,
    private: Annotated[bool, typer.Option("--private", help="Make a new repository private.")] = False,
    drop_unlicensed: Annotated[
        bool, typer.Option("--drop-unlicensed", help="Leave out rows without a licence or whose licence forbids derivatives.")
    ] = False,
    gated_toxic: Annotated[
        str | None, typer.Option(metavar="NAMESPACE/NAME", help="Put the rows labelled toxic into this repository, behind a gate.")
    ] = None,
    gate: Annotated[
        str,
        typer.Option(
            help="The gate lets in everybody who agrees to its terms (auto), or only whom you choose (manual); it is never loosened here."
        ),
    ] = "auto",
    gated_revision: Annotated[str | None, typer.Option(metavar="REF", help="--revision of the gated repository.")] = None,
) -> None:
    """Publish built prompts on the hub in one commit; run again, it sends only what is missing.

    Example: t2i-parity push prompts --to me/t2i-parity-prompts --dry-run
    """
    from t2i_parity.dataset_builder import publish
    from t2i_parity.dataset_builder.release import drop_unlicensed as without_unlicensed
    from t2i_parity.dataset_builder.release import licensed, read_release, rebuilt, refusal, split_toxic

    target = publish.Target(to, revision, create_pr=pr, private=private)
    if gated_toxic is None and gated_revision is not None:
        raise InputError("--gated-revision belongs to the repository of --gated-toxic; give that too")
    if gated_toxic == to:
        raise InputError(f"--to and --gated-toxic are both {to}; the toxic rows go into a repository of their own")
    release = read_release(folder)
    refused = None if drop_unlicensed else refusal(licensed(release.tables))
    if refused is not None and not dry_run:
        raise InputError(refused)
    with tempfile.TemporaryDirectory(prefix="t2i-parity-push-") as made:
        place = Path(made)
        tables, dropped = without_unlicensed(release.tables) if drop_unlicensed else (dict(release.tables), [])
        groups = licensed(tables)
        planned: list[tuple[Release, Plan]] = []
        if gated_toxic is not None:
            tables, toxic = split_toxic(tables)
            if not toxic:
                raise InputError(f"no row of {folder} that would be published is labelled toxic; leave --gated-toxic out")
            behind = publish.Target(gated_toxic, gated_revision, create_pr=pr, private=private, gate=gate)
            apart = rebuilt(toxic, release.edition, place / "gated", gated=True)
            planned.append((apart, publish.plan(apart, behind)))
        if dropped or gated_toxic is not None:
            release = rebuilt(tables, release.edition, place / "open", published=release.published)
        planned.append((release, publish.plan(release, target)))
        for each, plan in planned:
            show_plan(plan, f"{each.rows:,} rows", each.left)
        show_terms(groups, dropped)
        if release.toxic:
            say(f"{release.toxic:,} rows labelled toxic are for everybody to see; --gated-toxic NAMESPACE/NAME puts them behind a gate.")
        if (dropped or gated_toxic is not None) and any(change.kind != "added" for change in planned[-1][1].changes):
            say(f"Earlier revisions of {to} stay as they are, with the rows that they hold.")
        if refused is not None:
            raise InputError(refused)
        if dry_run:
            say("Dry run: nothing was written.")
            return
        for each, plan in planned:
            tell(plan, publish.push(each, plan), next(iter(each.tables)))


def show_plan(plan: Plan, what: str, left: Collection[str] = ()) -> None:
    """What a push would do, as a table; ``left`` are the files that stay here."""
    from rich.table import Table
    from rich.text import Text

    target = plan.target
    state = "a new repository" if plan.head is None else f"{target.revision or 'main'} at {plan.head[:12]}"
    states = {"private": plan.private, "gated": plan.gated or target.gate, "as a pull request": target.create_pr}
    flags = [word for word, holds in states.items() if holds]
    title = f"{target.repo_id}: {what}, into {', '.join([state, *flags])}"
    shown = Table(title=Text(title), title_justify="left")
    for heading in ("", "file", "bytes"):
        shown.add_column(heading, justify="right" if heading == "bytes" else "left", overflow="fold")
    for change in plan.files:
        shown.add_row(change.kind, Text(change.path), f"{change.size:,}")
    output().print(shown)
    if plan.kept:
        say(f"Not ours, left as it is on the hub: {', '.join(plan.kept)}")
    if left:
        say(f"Stays here, since the card names it nowhere: {', '.join(left)}")


def show_terms(groups: Sequence[Licensed], dropped: Sequence[Dropped] = ()) -> None:
    """What the licences ask of whoever uses the rows, and which rows were left out for theirs."""
    for group in groups:
        if group.asks and not group.refusal:
            say(f"{group.license.id} ({', '.join(group.asks)}): {group}")
    for each in dropped:
        with_them = f", and {each.dependent:,} that were made from such rows or compared with them" if each.dependent else ""
        say(f"Left out of {each.config}: {each.unlicensed:,} rows that may not be published{with_them}")


def tell(plan: Plan, outcome: Outcome, config: str | None = None) -> None:
    """What came of a push, and how to open its ``config``."""
    target = plan.target
    if not outcome.made:
        say(f"{target.repo_id} has all of this already: {outcome.url}")
        return
    say(f"{target.repo_id}: {outcome.url}")
    revision = "" if outcome.revision == "main" else f', revision="{outcome.revision}"'
    if config is not None:
        say(f'Open it: load_dataset("{target.repo_id}", "{config}", split="test"{revision})')
    if target.create_pr:
        say(f"Go on with it: --revision {outcome.revision}")
