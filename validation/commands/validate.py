"""The command ``validate``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from t2i_parity.dataset_builder.console import output, say
from t2i_parity.dataset_builder.errors import InputError

if TYPE_CHECKING:
    from t2i_parity.validation.published_checks import Report


def validate(
    prompts: Annotated[
        str | None, typer.Argument(metavar="DIR_OR_HUB_ID", help="Prompts to check: a built folder, or a dataset on the hub.")
    ] = None,
    config: Annotated[str | None, typer.Option(help="Check this config of the prompts only.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report on the prompts as a page here.")] = None,
    fail_on: Annotated[str, typer.Option(metavar="error|warning", help="From which findings on the exit code is 1.")] = "error",
    published: Annotated[bool, typer.Option("--published", help="Recompute what the studies printed, from what they printed.")] = False,
    reference: Annotated[
        Path | None,
        typer.Option(
            help="With --published: folder with the studies' files in dialectgen/out, trig and dialect_penalty; recompute these too."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="With --published: list every value.")] = False,
    submission: Annotated[
        str | None, typer.Option(metavar="RESULTS@refs/pr/N", help="Check a pull request to a board's results, from the hub alone.")
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(metavar="DIR_OR_HUB_ID", help="With --submission: the board's own prompts (ID@REVISION for one); may be given again."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write every finding, or with --published every value, here.")
    ] = None,
) -> None:
    """Check that what must hold does; ends with exit code 1 where something does not.

    Example: t2i-parity validate prompts --html validation.html

    Example: t2i-parity validate --published

    Example: t2i-parity validate --submission lab/board-results@refs/pr/1 --against lab/t2i-parity-prompts
    """
    if (prompts is not None) + published + (submission is not None) > 1:
        raise InputError("prompts, --published and --submission are three validations: give one of them at a time")
    if against and submission is None:
        raise InputError("--against goes with --submission: it names the board's own prompts")
    if submission is not None:
        _submission(submission, against or [], out)
        return
    if prompts is not None:
        _prompts(prompts, config, out, html, fail_on)
        return
    if not published:
        raise InputError(
            "nothing to validate was named: give a folder of prompts or a hub id; or --published to recompute the studies' published "
            "values, and with it --reference DIR for those in their files; or --submission to check a result that was handed in"
        )
    from t2i_parity.validation import published as recomputed

    report = recomputed.validate(reference)
    if out is not None:
        _write_json(report.as_json(), out)
    _show(report, every=every)
    if not report.agrees:
        raise typer.Exit(1)


def _submission(source: str, prompts: list[str], json_file: Path | None) -> None:
    from t2i_parity.validation.commands.submit import show_verdict
    from t2i_parity.validation.submissions import judge

    verdict = judge(source, prompts)
    if json_file is not None:
        _write_json(verdict.as_json(), json_file)
    show_verdict(verdict)
    if not verdict.accepted:
        raise typer.Exit(1)


def _write_json(content: dict[str, Any], file: Path) -> None:
    _write(json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n", file)


def _write(text: str, file: Path) -> None:
    from t2i_parity.dataset_builder.storage import Folder

    # A lone surrogate in somebody's text has no bytes.
    Folder(str(file.parent)).write(text.encode("utf-8", "backslashreplace"), file.name)


def _prompts(source: str, config: str | None, json_file: Path | None, html: Path | None, fail_on: str) -> None:
    from t2i_parity.cards.validation import console_tables, render, summary
    from t2i_parity.validation.prompts.opening import open_repository
    from t2i_parity.validation.prompts.runner import FAIL_ON, validate

    if fail_on not in FAIL_ON:
        raise InputError(f"--fail-on {fail_on!r}: expected {' or '.join(FAIL_ON)}")
    level = FAIL_ON[fail_on]
    report = validate(open_repository(source), config)
    if json_file is not None:
        _write_json({"fail_on": fail_on, "passes": report.passes(level), **report.as_json()}, json_file)
    if html is not None:
        _write(render(report, level), html)
    console = output()
    for table in console_tables(report):
        console.print(table)
        console.print()
    for note in report.notes:
        say(note)
    say(summary(report, level))
    if not report.passes(level):
        raise typer.Exit(1)


def _show(report: Report, *, every: bool) -> None:
    from rich.markup import escape
    from rich.table import Table

    from t2i_parity.validation.published_checks import VERDICTS

    console = output()
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
            say(f"{check.group}: {check.item}{place}: {check.note}")
    for remark in report.remarks:
        say(remark)
    say(f"Published in: {'; '.join(dict.fromkeys(check.source for check in report.checks))}")
    say(_verdict(report))


STYLES = {"equal": "", "noted": "yellow", "differs": "red"}


def _verdict(report: Report) -> str:
    n = len(report.checks)
    differing = [check for check in report.checks if check.verdict == "differs"]
    noted = sum(check.verdict == "noted" for check in report.checks)
    if differing:
        return f"{len(differing)} of {n} published values do not come out again; the first: {differing[0].group}: {differing[0].item}"
    return f"{n - noted} of {n} published values come out again, and {noted} as noted"


def _number(value: float) -> str:
    """Six digits.

    >>> _number(-0.0), _number(3.49), _number(4.44e-16)
    ('0', '3.49', '4.44e-16')
    """
    return f"{value + 0.0:.6g}"
