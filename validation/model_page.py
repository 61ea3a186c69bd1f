"""Results on a model's own page: ``.eval_results/t2i-parity.yaml`` as the hub reads it, and ``model-index`` for older readers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from huggingface_hub import (
    EvalResult,
    EvalResultEntry,
    HfApi,
    eval_result_entries_to_yaml,
    hf_hub_download,
    metadata_load,
    metadata_save,
    parse_eval_result_entries,
)
from huggingface_hub.errors import EntryNotFoundError
from huggingface_hub.repocard_data import eval_results_to_model_index, model_index_to_eval_results

from t2i_parity.dataset_builder import publish
from t2i_parity.dataset_builder.benchmark import Task, tasks
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.metrics.scores import Score

FILE = ".eval_results/t2i-parity.yaml"
CARD = "README.md"


@dataclass(frozen=True, slots=True)
class Results:
    """What a run says of a model, and where it says it: the benchmark by hub id and revision, and the published run if there is one."""

    model: str
    benchmark: str
    revision: str | None
    date: str
    run: str | None
    user: str | None
    values: tuple[tuple[Task, Score], ...]


def values(scores: Sequence[Score]) -> tuple[tuple[tuple[Task, Score], ...], list[str]]:
    """The tasks of the benchmark that a run's scores answer, each with its score; and the tasks that several judges answer, left out.

    A model's page shows one number a task, and which of several it should be is not for a program to say.
    """
    found, several = [], []
    for task in tasks():
        answers = task.value(scores)
        if len({score.signature for score in answers}) == 1:
            found.append((task, answers[0]))
        elif answers:
            several.append(task.id)
    return tuple(found), several


def entries(results: Results) -> list[EvalResultEntry]:
    """The results as the hub's entries: fractions, of which higher is better, each with its signature among the notes."""
    return [
        EvalResultEntry(
            dataset_id=results.benchmark,
            task_id=task.id,
            value=score.value,
            dataset_revision=results.revision,
            date=results.date,
            source_url=results.run,
            source_name=None if results.run is None else "T2I Parity run",
            source_user=None if results.run is None else results.user,
            notes=f"{score.group}, n={score.n}, {score.signature}",
        )
        for task, score in results.values
    ]


def proposal(results: Results, place: Path, *, model_index: bool) -> publish.Files:
    """The files that a pull request to the model's repository holds, written into ``place``; what others reported there stays.

    Raises InputError when what is there cannot be read.
    """
    files = {FILE: place / "eval_results.yaml"}
    made = entries(results)
    mine = {(entry.dataset_id, entry.task_id) for entry in made}
    there = [entry for entry in _entries_there(results.model) if (entry.dataset_id, entry.task_id) not in mine]
    text = yaml.safe_dump(eval_result_entries_to_yaml([*there, *made]), sort_keys=False, allow_unicode=True, width=1000)
    files[FILE].write_text(text, encoding="utf-8")
    if model_index:
        files[CARD] = place / CARD
        _write_card(results, files[CARD])
    tasks = ", ".join(task.id for task, _ in results.values)
    origin = f"On {results.benchmark}" + (f", from {results.run}" if results.run else "")
    return publish.Files(files, (f"T2I Parity results: {tasks}", origin))


def _entries_there(model: str) -> list[EvalResultEntry]:
    text = _there(model, FILE)
    if text is None:
        return []
    try:
        return parse_eval_result_entries(yaml.safe_load(text) or [])
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{FILE} of {model} cannot be read ({first_line(error)}); repair it there first") from error


def _write_card(results: Results, path: Path) -> None:
    text = _there(results.model, CARD)
    path.write_text(text or "---\n---\n", encoding="utf-8")
    made = [
        EvalResult(
            task_type="text-to-image",
            dataset_type=results.benchmark,
            dataset_name="T2I Parity prompts",
            dataset_config=task.config,
            dataset_split="test",
            dataset_revision=results.revision,
            metric_type=task.id,
            metric_name=task.about,
            metric_value=score.value,
            source_name=None if results.run is None else "T2I Parity run",
            source_url=results.run,
        )
        for task, score in results.values
    ]
    try:
        data = metadata_load(path) or {}
        known = data.get("model-index") or []
        if len(known) > 1:
            raise InputError(f"{CARD} of {results.model} has a model-index of {len(known)} models; add the results there by hand")
        name, old = model_index_to_eval_results(known) if known else (results.model.split("/")[1], [])
        kept = [each for each in old if not any(_replaces(new, each) for new in made)]
        data["model-index"] = eval_results_to_model_index(name, [*kept, *made])
        metadata_save(path, data)
    except (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"the front matter of {results.model} cannot be read ({first_line(error)}); repair its {CARD} first") from error


def _replaces(new: EvalResult, old: EvalResult) -> bool:
    return (new.dataset_type, new.dataset_config, new.metric_type) == (old.dataset_type, old.dataset_config, old.metric_type)


def _there(model: str, path: str) -> str | None:
    """A file of the model's repository as it is now, None where there is none."""

    def fetch() -> str | None:
        try:
            return Path(hf_hub_download(model, path)).read_text(encoding="utf-8")
        except EntryNotFoundError:
            return None

    return publish.patiently(f"fetch {path}", publish.Target(model, type="model"), fetch)


def benchmark_revision(source: str, revision: str | None = None) -> str | None:
    """The commit of a prompts repository on the hub."""
    target = publish.Target(source)
    info = publish.patiently("look at the prompts", target, lambda: HfApi().dataset_info(source, revision=revision))
    return info.sha


def told(several: Iterable[str]) -> str:
    """What is said of tasks that several judges answered."""
    return f"left out, since several judges or signatures answer it: {', '.join(several)}"
