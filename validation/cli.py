"""Commands of this package: ``validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dataset_builder.errors import InputError

if TYPE_CHECKING:
    from validation.published_checks import Report

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def _package() -> None:
    """What must hold: published values come out again."""


@app.command()
def validate(
    published: Annotated[bool, typer.Option("--published", help="Recompute what the studies printed, from what they printed.")] = False,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="With --published: folder with the studies' files in dialectgen/out, trig and dialect_penalty; recompute these too."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="With --published: list every value.")] = False,
    out: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="With --published: write every value here.")] = None,
) -> None:
    """Check that what must hold does; ends with exit code 1 where something does not.

    Example: t2i-parity validate --published
    """
    if not published:
        raise InputError(
            "nothing to validate was named: give --published to recompute the studies' published values, and with it --reference DIR "
            "for those in their files"
        )
    from dataset_builder.storage import Folder
    from validation import published as recomputed

    report = recomputed.validate(reference)
    if out is not None:
        text = json.dumps(report.as_json(), ensure_ascii=False, indent=1, allow_nan=False)
        Folder(str(out.parent)).write(f"{text}\n".encode(), out.name)
    _show(report, every=every)
    if not report.agrees:
        raise typer.Exit(1)


def _show(report: Report, *, every: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from validation.published_checks import VERDICTS

    console = Console()
    summary = Table(title="Published values, recomputed", title_justify="left")
    summary.add_column("values")
    for heading in ("n", "equal", "noted", "differ", "largest difference"):
        summary.add_column(heading, justify="right")
    for group in report.groups():
        counts = [group.count(verdict) for verdict in VERDICTS]
        largest = "–" if group.largest is None else f"{group.largest:.2g}"
        summary.add_row(group.name, f"{len(group.checks)}", *(f"{count}" if count else "–" for count in counts), largest)
    console.print(summary)

    checks = [check for group in report.groups() for check in group.checks]
    listed = [check for check in checks if every or check.verdict != "equal" or check.note]
    if listed:
        title = "Every value" if every else "Values that differ, or are known for something (every value: --all)"
        items = Table(title=title, title_justify="left")
        items.add_column("item", overflow="fold")
        for heading in ("published", "ours", "difference"):
            items.add_column(heading, justify="right", no_wrap=True)
        items.add_column("verdict")
        for check in listed:
            difference = _number(check.difference) if check.relation == "=" else "–"
            sign = "" if check.relation == "=" else f"{check.relation} "
            item = escape(f"{check.group}: {check.item}")
            items.add_row(
                item, f"{sign}{_number(check.published)}", _number(check.ours), difference, check.verdict, style=STYLES[check.verdict]
            )
        console.print(items)
    for check in checks:
        if check.note:
            place = f" ({check.place})" if check.place else ""
            _line(console, f"{check.group}: {check.item}{place}: {check.note}")
    for remark in report.remarks:
        _line(console, remark)
    _line(console, f"Published in: {'; '.join(dict.fromkeys(check.source for check in report.checks))}")
    _line(console, _verdict(report))


STYLES = {"equal": "", "noted": "yellow", "differs": "red"}


def _verdict(report: Report) -> str:
    n = len(report.checks)
    differing = [check for check in report.checks if check.verdict == "differs"]
    noted = sum(check.verdict == "noted" for check in report.checks)
    if differing:
        return f"{len(differing)} of {n} published values do not come out again; the first: {differing[0].group}: {differing[0].item}"
    return f"{n - noted} of {n} published values come out again, and {noted} as noted"


def _line(console: Any, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _number(value: float) -> str:
    """Six digits.

    >>> _number(-0.0), _number(3.49), _number(4.44e-16)
    ('0', '3.49', '4.44e-16')
    """
    return f"{value + 0.0:.6g}"
