"""The command ``submit``, and how ``validate --submission`` shows a verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from t2i_parity.dataset_builder.console import output
from t2i_parity.dataset_builder.errors import InputError

if TYPE_CHECKING:
    from t2i_parity.validation.examination import Finding
    from t2i_parity.validation.results import ResultRecord, Results
    from t2i_parity.validation.submissions import Checked, Published, Verdict

_STYLES = {"holds": "green", "note": "yellow", "fault": "red"}


def submit(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A scored run's folder.")],
    model: Annotated[str, typer.Option(metavar="ORG/MODEL", help="Whose result it is: a model's id on the hub, or a service's ORG/NAME.")],
    revision: Annotated[str | None, typer.Option(metavar="COMMIT", help="The model's revision; the run's own when left out.")] = None,
    name: Annotated[str | None, typer.Option(help="What the board calls the model, in any script.")] = None,
    board: Annotated[str | None, typer.Option(metavar="NAMESPACE/RESULTS", help="Propose a record to this results repository.")] = None,
    results_dataset: Annotated[str | None, typer.Option(metavar="NAMESPACE/RUN", help="Where this run was pushed to.")] = None,
    prompts: Annotated[
        list[str] | None, typer.Option(metavar="DIR_OR_HUB_ID", help="Its prompts, where the run's own name does not lead to them.")
    ] = None,
    subset: Annotated[list[str] | None, typer.Option(help="Only this subset; may be given again.")] = None,
    incomplete: Annotated[bool, typer.Option("--incomplete", help="Submit though rows are missing; the board shows it unranked.")] = False,
    model_page: Annotated[bool, typer.Option("--model-page", help="Propose the results to the model's own repository too.")] = False,
    model_index: Annotated[
        bool, typer.Option("--model-index", help="With --model-page: in its card's model-index too, for older readers.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and show all of it, and propose nothing.")] = False,
) -> None:
    """Hand a scored run in: it is checked here first, then proposed as pull requests; run again, it finds what it proposed.

    Example: t2i-parity submit runs/sdxl --model org/model --board lab/board-results --results-dataset me/sdxl-run
    """
    from t2i_parity.validation import submissions

    if board is None and not model_page and not dry_run:
        raise InputError("nothing to hand the result in to was named: give --board NAMESPACE/RESULTS, --model-page, or both")
    if model_index and not model_page:
        raise InputError("--model-index goes with --model-page: it is written into the card of the model's repository")
    if board is not None and results_dataset is None:
        raise InputError(
            "a board checks a result from the published run: push it (t2i-parity push RUN --to NAMESPACE/NAME), then give that as "
            "--results-dataset"
        )
    checked = submissions.check(run, prompts or [])
    show(checked.examined.findings, f"{run}, held against its prompts")
    faults = [finding for finding in checked.examined.findings if finding.verdict == "fault"]
    if faults:
        raise InputError(
            f"{run} is not handed in: {faults[0].check}: {faults[0].told}. Scores are made by t2i-parity score, and not edited: score the "
            "run anew; rows are made by generate and judge"
        )
    chosen = _subsets(checked, subset, incomplete=incomplete)
    at = revision or checked.run.record["identity"].get("model", {}).get("revision")
    if at is None:
        raise InputError("the run does not say of which revision its model is; give it: --revision COMMIT, or the version its owner names")
    place = None if results_dataset is None else submissions.published(results_dataset, checked)
    if board is not None:
        _to_board(checked, chosen, (model, str(at), name), board, place, dry_run=dry_run)
    if model_page or (dry_run and board is None):
        _to_model(checked, model, place, prompts or [], model_index=model_index, dry_run=dry_run)
    if dry_run:
        _say("Dry run: nothing was proposed.")


def _subsets(checked: Checked, wanted: Sequence[str] | None, *, incomplete: bool) -> list[str]:
    known = checked.subsets
    if unknown := sorted(set(wanted or []) - set(known)):
        raise InputError(f"the run has no scores on the subset {unknown[0]!r}: expected one of {', '.join(known)}")
    chosen = [subset for subset in known if not wanted or subset in wanted]
    for subset in chosen:
        missing = checked.incomplete(subset)
        if missing and not incomplete:
            told = "; ".join(f"{cell.group} {cell.observed:,} of {cell.expected:,} rows" for cell in missing[:5])
            more = f" (and {len(missing) - 5} more)" if len(missing) > 5 else ""
            raise InputError(
                f"{checked.run.url} is incomplete on {subset}: {told}{more}. Make the rest with the commands that made the run (without "
                "--limit or --languages; failed rows with --retry-failed), or hand it in as it is, to be shown and not ranked: --incomplete"
            )
    return chosen


def _to_board(
    checked: Checked, subsets: Sequence[str], model: tuple[str, str, str | None], board: str, place: Published | None, *, dry_run: bool
) -> None:
    from datetime import datetime, timezone

    from huggingface_hub import HfApi

    from t2i_parity.dataset_builder import publish
    from t2i_parity.validation import submissions
    from t2i_parity.validation.results import scored_model

    target = publish.Target(board, create_pr=True)
    user = str(publish.patiently("ask who you are", target, lambda: HfApi().whoami())["name"])
    results = submissions.board_results(board)

    def made(at: datetime) -> list[ResultRecord]:
        return submissions.records(checked, subsets, model=scored_model(*model), submitter=user, place=place, results=results, submitted=at)

    records = made(datetime.now(timezone.utc).replace(microsecond=0))
    title = submissions.title(records)
    before = submissions.handed_in(board, title)
    if before is not None:
        records = made(before)
    _preview(results, records)
    with tempfile.TemporaryDirectory(prefix="t2i-parity-submit-") as folder:
        files = {}
        for number, record in enumerate(records):
            file = Path(folder) / f"{number}.json"
            file.write_text(record.as_json(), encoding="utf-8")
            files[results.path_for(record)] = file
        content = publish.Files(files, (title, "\n".join(f"- {path}" for path in files)))
        plan = publish.plan(content, target)
        for change in plan.changes:
            _say(f"{board}: {change.kind} {change.path}")
        if dry_run:
            return
        outcome = publish.push(content, plan)
    _say(f"{board}: {'proposed' if outcome.made else 'proposed before'}: {outcome.url}")
    _say(f"The board's keeper checks it with: t2i-parity validate --submission {board}@{outcome.revision}")


def _to_model(checked: Checked, model: str, place: Published | None, prompts: Sequence[str], *, model_index: bool, dry_run: bool) -> None:
    from huggingface_hub import HfApi

    from t2i_parity.dataset_builder import publish
    from t2i_parity.validation import model_page
    from t2i_parity.validation.results import is_hub_id

    asked = checked.edition.origin
    benchmark = str(asked["repository"])
    if not is_hub_id(benchmark):
        raise InputError(
            f"a model's page names its benchmark by hub id, and these prompts are {benchmark!r}; give where they lie on the hub: "
            "--prompts NAMESPACE/NAME"
        )
    found, several = model_page.values(checked.scores)
    if several:
        _say(model_page.told(several))
    if not found:
        raise InputError(f"{checked.run.url} answers no task of the benchmark, so that there is nothing for a model's page")
    run = None if place is None else f"{publish.Target(place.repository).url}/tree/{place.commit}"
    target = publish.Target(model, create_pr=True, type="model")
    user = None if run is None else str(publish.patiently("ask who you are", target, lambda: HfApi().whoami())["name"])
    results = model_page.Results(
        model=model,
        benchmark=benchmark,
        revision=model_page.benchmark_revision(benchmark, asked.get("revision")),
        date=str(checked.run.record["started"]),
        run=run,
        user=user,
        values=found,
    )
    for task, score in found:
        _say(f"{model}: {task.id} {score.value:.4f} ({task.about}, n = {score.n:,})")
    with tempfile.TemporaryDirectory(prefix="t2i-parity-submit-") as folder:
        content = model_page.proposal(results, Path(folder), model_index=model_index)
        plan = publish.plan(content, target)
        for change in plan.changes:
            _say(f"{model}: {change.kind} {change.path}")
        if not plan.changes:
            _say(f"{model} has all of this already")
        if dry_run or not plan.changes:
            return
        outcome = publish.push(content, plan)
    _say(f"{model}: {'proposed' if outcome.made else 'proposed before'}: {outcome.url}")


def _preview(results: Results, records: Iterable[ResultRecord]) -> None:
    """The board's tables in which the records would stand, with their rows among the others'."""
    from t2i_parity.cards.board import overall_places
    from t2i_parity.cards.environment import visible
    from t2i_parity.validation.board import gather

    for record in records:
        results = results.having(results.path_for(record), record)
    ours = {(record.model.id, record.model.revision) for record in records}
    for table in gather(results, title="", source="").tables:
        if not any((entry.model, entry.revision) in ours for entry in table.entries):
            continue
        shift = table.direction == "zero"
        up = table.direction == "higher"
        places = overall_places(table)
        shown = Table(title=Text(f"{table.title} on {table.subset}"), title_justify="left", caption=Text(visible(table.signature)))
        for heading in ("", "place", "model", "largest shift, pp" if shift else "overall", "spread", "missing"):
            shown.add_column(heading, justify="left" if heading in ("", "model", "missing") else "right", overflow="fold")
        way = -1.0 if up else 1.0
        rows = [
            (bool(entry.missing), entry.overall.value is None, way * (entry.overall.value or 0.0), number)
            for number, entry in enumerate(table.entries)
        ]
        for *_, number in sorted(rows):
            entry, found = table.entries[number], places[number]
            place = "–" if found is None else str(found[0]) if found[0] == found[1] else f"{found[0]}–{found[1]}"
            mark = "→" if (entry.model, entry.revision) in ours else ""
            model = visible(f"{entry.name} ({entry.model})" if entry.name else entry.model)
            missing = visible("; ".join(entry.missing))
            shown.add_row(mark, place, Text(model), _value(entry.overall), _value(entry.spread), Text(missing))
        output().print(shown)


def _value(value: Any) -> str:
    if value.value is None:
        return "–"
    return f"{value.value:.3f}" if value.low is None else f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"


def show(findings: Iterable[Finding], title: str) -> None:
    """Findings as a table."""
    shown = Table(title=Text(title), title_justify="left")
    for heading in ("check", "verdict", "what was found"):
        shown.add_column(heading, overflow="fold")
    for finding in findings:
        shown.add_row(finding.check, Text(finding.verdict, style=_STYLES[finding.verdict]), Text(finding.told))
    output().print(shown)


def show_verdict(verdict: Verdict) -> None:
    """A verdict as tables, and in one line."""
    from t2i_parity.validation.examination import told

    show(verdict.findings, f"{verdict.source} at {verdict.commit[:12]}, by {told(verdict.author)}")
    for each in verdict.records:
        show(each.findings, told(each.path))
    faults = [finding for _, finding in verdict.all if finding.verdict == "fault"]
    if verdict.accepted:
        _say(f"Accepted: {len(verdict.records)} record{'s' if len(verdict.records) != 1 else ''} may be merged.")
    else:
        _say(f"Refused: {faults[0].check}: {faults[0].told}" + (f" (and {len(faults) - 1} more faults)" if len(faults) > 1 else ""))


def _say(text: str) -> None:
    output().print(text, soft_wrap=True, markup=False, highlight=False)
