"""Every metric as people load it: evaluate.load from its folder, compute, add, add_batch, combine, and wrong inputs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import pytest

from metrics.cross_lingual_gap import core as gap
from metrics.dialect_penalty import core as dialect
from metrics.text_rendering_precision import core as rendering

CORES = {"text_rendering_precision": rendering, "dialect_penalty": dialect, "cross_lingual_gap": gap}
NAMES = list(CORES)

# Rows of each metric, a missing observation first.
ROWS: dict[str, dict[str, list[Any]]] = {
    "text_rendering_precision": {
        "predictions": [None, "no cat", "yes", "नमस्ते"],
        "references": ["x", "no dog", "yes", "नमस्ते"],
    },
    "dialect_penalty": {
        "reference": [None, True, False, False],
        "variety": [True, True, True, None],
        "label": ["toxic", "toxic", "toxic", "benign"],
    },
    "cross_lingual_gap": {"scores": [None, 0.5, 0.75, 1.0], "languages": ["hi", "hi", "en", "en"]},
}
KEYWORDS: dict[str, dict[str, Any]] = {name: {"n_resamples": 30, "seed": 3} for name in NAMES}
KEYWORDS["text_rendering_precision"]["tokenizer"] = str.split
GROUPS, CLUSTERS = ["a", "b", "b", "a"], ["p", "p", "q", "r"]
Load = Callable[..., Any]


def core_answer(name: str, **extra: Any) -> dict[str, Any]:
    return CORES[name].compute(**ROWS[name], **KEYWORDS[name], **extra)


@pytest.mark.parametrize("name", NAMES)
def test_compute_is_the_core(name: str, load: Load) -> None:
    metric = load(name)
    answer = metric.compute(**ROWS[name], **KEYWORDS[name])
    assert answer == core_answer(name)
    assert json.loads(json.dumps(answer)) == answer
    assert {"n", "n_missing", "ci", "signature"} <= set(answer)
    assert "ci" not in metric.compute(**ROWS[name], **{**KEYWORDS[name], "n_resamples": 0})
    assert metric.name == name
    assert metric.description
    assert "arxiv" in metric.reference_urls[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_batches_and_single_rows_add_up(name: str, keep_in_memory: bool, load: Load) -> None:
    metric = load(name, keep_in_memory=keep_in_memory)
    metric.add_batch(**{column: cells[:1] for column, cells in ROWS[name].items()})
    metric.add_batch(**{column: cells[1:3] for column, cells in ROWS[name].items()})
    metric.add(**{column: cells[3] for column, cells in ROWS[name].items()})
    assert len(metric) == 4
    assert metric.compute(**KEYWORDS[name]) == core_answer(name)
    with pytest.raises(ValueError, match="no rows to score"):
        metric.compute(**KEYWORDS[name])


@pytest.mark.parametrize("name", NAMES)
def test_groups_and_clusters(name: str, load: Load) -> None:
    expected = core_answer(name, groups=GROUPS, clusters=CLUSTERS)
    assert sorted(expected["by_group"]) == ["a", "b"]
    assert load(name).compute(**ROWS[name], **KEYWORDS[name], groups=GROUPS, clusters=CLUSTERS) == expected
    grouped = load(name, "grouped")
    assert grouped.compute(**ROWS[name], **KEYWORDS[name], groups=GROUPS, clusters=CLUSTERS) == expected
    rows = {**ROWS[name], "groups": GROUPS, "clusters": CLUSTERS}
    grouped.add_batch(**{column: cells[:2] for column, cells in rows.items()})
    for row in (2, 3):
        grouped.add(**{column: cells[row] for column, cells in rows.items()})
    assert grouped.compute(**KEYWORDS[name]) == expected


@pytest.mark.parametrize("name", NAMES)
def test_grouped_may_leave_optional_columns_out(name: str, load: Load) -> None:
    grouped = load(name, "grouped")
    grouped.add_batch(**ROWS[name])
    assert grouped.compute(**KEYWORDS[name]) == core_answer(name)
    assert grouped.compute(**ROWS[name], **KEYWORDS[name], groups=GROUPS) == core_answer(name, groups=GROUPS)


def test_typo_in_both_configurations(load: Load) -> None:
    typo = [True, False, None, False]
    expected = core_answer("dialect_penalty", typo=typo)
    assert "bias_gap_tpr_pp" in expected
    rows, keywords = ROWS["dialect_penalty"], KEYWORDS["dialect_penalty"]
    assert load("dialect_penalty").compute(**rows, **keywords, typo=typo) == expected
    grouped = load("dialect_penalty", "grouped")
    grouped.add_batch(**rows, typo=typo)
    assert grouped.compute(**keywords) == expected


def test_singular_names_as_in_evaluate(load: Load) -> None:
    metric = load("text_rendering_precision")
    metric.add(prediction=None, reference="a")
    metric.add(prediction="a", reference="a")
    assert metric.compute(tokenizer=str.split)["n_missing"] == 1


def test_rows_added_in_two_processes_are_scored_together(tmp_path: Path, load: Load) -> None:
    rows, keywords = ROWS["cross_lingual_gap"], KEYWORDS["cross_lingual_gap"]
    answers: dict[int, Any] = {}

    def process(number: int) -> None:
        shared = {"num_process": 2, "process_id": number, "experiment_id": "two", "timeout": 20}
        metric = load("cross_lingual_gap", **shared)
        half = slice(2 * number, 2 * number + 2)
        answers[number] = metric.compute(**{column: cells[half] for column, cells in rows.items()}, **keywords)

    threads = [threading.Thread(target=process, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {0: core_answer("cross_lingual_gap"), 1: None}


# combine


def test_combine_two_settings_of_one_metric(load: Load) -> None:
    name = "text_rendering_precision"
    both = evaluate.combine({"first": load(name), "second": load(name)})
    answer = both.compute(**ROWS[name], **KEYWORDS[name], groups=GROUPS)
    assert answer["first_precision"] == answer["second_precision"] == core_answer(name)["precision"]
    assert sorted(answer["first_by_group"]) == ["a", "b"]


def test_combine_metrics_of_different_columns(load: Load) -> None:
    names = ["dialect_penalty", "cross_lingual_gap"]
    both = evaluate.combine([load(name) for name in names])
    both.add_batch(**ROWS[names[0]], **ROWS[names[1]])
    answer = both.compute(n_resamples=30, seed=3)
    assert answer["mean"] == core_answer("cross_lingual_gap")["mean"]
    assert answer["delta_tpr_pp"] == core_answer("dialect_penalty")["delta_tpr_pp"]
    assert answer["cross_lingual_gap_n"] == 3
    with pytest.raises(ValueError, match=r"unknown column or keyword 'scores'.*add_batch"):
        both.compute(**ROWS[names[0]], **ROWS[names[1]])


# Wrong inputs

MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("text_rendering_precision", {"predictions": "abcd"}, "column 'predictions', row 0: .*got the str 'abcd'"),
    (
        "text_rendering_precision",
        {"predictions": [], "references": []},
        "column 'predictions', row 0: .*at least one row",
    ),
    ("text_rendering_precision", {"predictions": ["a", "b", 1, "d"]}, "column 'predictions', row 2: .*got 1 .int."),
    ("text_rendering_precision", {"predictions": ["a", b"b", "c", "d"]}, "column 'predictions', row 1: .*bytes"),
    ("text_rendering_precision", {"predictions": [["a"], "b", "c", "d"]}, "column 'predictions', row 0: .*list"),
    (
        "text_rendering_precision",
        {"predictions": ["a", "b", "c\ud800", "d"]},
        "column 'predictions', row 2: .*surrogate",
    ),
    ("text_rendering_precision", {"predictions": {"a": "b"}}, "column 'predictions', row 0: .*got the dict"),
    ("text_rendering_precision", {"references": ["a"]}, "column 'references', row 1: expected 4 rows .*got 1"),
    ("text_rendering_precision", {"references": ["a", None, "c", "d"]}, "column 'references', row 1: .*got None"),
    ("text_rendering_precision", {"references": None}, "column 'references' is missing"),
    ("text_rendering_precision", {"groups": ["g"]}, "column 'groups', row 1"),
    ("text_rendering_precision", {"clusters": [1, 2, 3, 4]}, "column 'clusters', row 0: expected str, got 1"),
    ("text_rendering_precision", {"variant": "code"}, "variant: expected one of"),
    ("text_rendering_precision", {"tokenizer": 3}, "tokenizer: expected"),
    ("text_rendering_precision", {"tokeniser": "tekken"}, "unknown column or keyword 'tokeniser'"),
    ("dialect_penalty", {"reference": [True, 1, False, None]}, "column 'reference', row 1: .*got 1 .int."),
    ("dialect_penalty", {"variety": ["yes", True, False, None]}, "column 'variety', row 0: .*got 'yes'"),
    ("dialect_penalty", {"label": ["toxic", "toxic", "bad", "benign"]}, "column 'label', row 2: .*got 'bad'"),
    ("dialect_penalty", {"label": ["toxic", None, "toxic", "benign"]}, "column 'label', row 1: .*got None"),
    ("dialect_penalty", {"variety": [True]}, "column 'variety', row 1"),
    ("dialect_penalty", {"variety": None}, "column 'variety' is missing"),
    ("dialect_penalty", {"typo": [True, False, 0.5, None]}, "column 'typo', row 2: .*got 0.5"),
    ("dialect_penalty", {"reference": True}, "column 'reference', row 0: expected a list"),
    ("dialect_penalty", {"test": "t"}, "test: expected one of"),
    ("dialect_penalty", {"predictions": [True] * 4}, "unknown column or keyword 'predictions'"),
    ("dialect_penalty", {"confidence_level": 95}, "confidence_level: expected"),
    ("cross_lingual_gap", {"scores": ["0.5", 0.5, 0.5, 0.5]}, "column 'scores', row 0: .*got '0.5'"),
    ("cross_lingual_gap", {"scores": [0.5, float("inf"), 0.5, 0.5]}, "column 'scores', row 1: .*not finite"),
    ("cross_lingual_gap", {"scores": [0.5, 0.5, True, 0.5]}, "column 'scores', row 2: .*got True"),
    ("cross_lingual_gap", {"scores": 0.5}, "column 'scores', row 0: expected a list"),
    (
        "cross_lingual_gap",
        {"languages": ["hi", "hi", "tlh", "en"]},
        "column 'languages', row 2: expected one of en, zh",
    ),
    ("cross_lingual_gap", {"languages": ["hi", None, "en", "en"]}, "column 'languages', row 1: .*got None"),
    ("cross_lingual_gap", {"languages": "hien"}, "column 'languages', row 0: .*got the str"),
    ("cross_lingual_gap", {"groups": ["g", 1, "g", "g"]}, "column 'groups', row 1: .*got 1"),
    ("cross_lingual_gap", {"seed": -1}, "seed: expected"),
    ("cross_lingual_gap", {"n_resamples": "many"}, "n_resamples: expected"),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("config_name", ["default", "grouped"])
def test_wrong_inputs_are_told_and_leave_the_metric_usable(name: str, config_name: str, load: Load, tmp_path: Path) -> None:
    metric = load(name, config_name)
    wrong = [(given, told) for of, given, told in MALFORMED if of == name]
    assert len(wrong) >= 10
    for given, told in wrong:
        with pytest.raises(ValueError, match=told) as error:
            metric.compute(**{**ROWS[name], **KEYWORDS[name], **given})
        assert "\n" not in str(error.value)
        assert list(tmp_path.rglob("*.arrow")) == []
        assert metric.compute(**ROWS[name], **KEYWORDS[name]) == core_answer(name), given


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("keep_in_memory", [False, True])
def test_rows_added_before_an_error_stay(name: str, keep_in_memory: bool, load: Load, tmp_path: Path) -> None:
    metric = load(name, keep_in_memory=keep_in_memory)
    metric.add_batch(**{column: cells[:3] for column, cells in ROWS[name].items()})
    for _, given, _told in [case for case in MALFORMED if case[0] == name]:
        with pytest.raises(ValueError, match=name + "|expected"):
            metric.compute(**{**ROWS[name], **KEYWORDS[name], **given})
        assert len(metric) == 3, given
    metric.add(**{column: cells[3] for column, cells in ROWS[name].items()})
    assert metric.compute(**KEYWORDS[name]) == core_answer(name)
    assert list(tmp_path.rglob("*.arrow")) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_wrong_batch_adds_nothing(name: str, load: Load) -> None:
    metric = load(name)
    first = next(iter(ROWS[name]))
    for given in ({first: "ab"}, {first: [object()] * 4}, {first: []}, {first: None}):
        with pytest.raises(ValueError, match=f"column '{first}'"):
            metric.add_batch(**{**ROWS[name], **given})
    with pytest.raises(ValueError, match=f"column '{first}' is missing"):
        metric.add(**{column: cells[1] for column, cells in ROWS[name].items() if column != first})
    with pytest.raises(ValueError, match=r"column 'groups'.*config_name=.grouped."):
        metric.add_batch(**ROWS[name], groups=GROUPS)
    with pytest.raises(ValueError, match="column 'extra'"):
        metric.add_batch(**ROWS[name], extra=GROUPS)
    assert len(metric) == 0
    metric.add_batch(**ROWS[name])
    assert metric.compute(**KEYWORDS[name]) == core_answer(name)


def test_groups_given_for_some_batches_only_are_told(load: Load) -> None:
    grouped = load("cross_lingual_gap", "grouped")
    grouped.add_batch(**ROWS["cross_lingual_gap"], groups=GROUPS)
    grouped.add_batch(**ROWS["cross_lingual_gap"])
    with pytest.raises(ValueError, match="column 'groups', row 4: expected str, got None"):
        grouped.compute()
    assert len(grouped) == 8


def test_an_unknown_configuration_is_told(load: Load) -> None:
    with pytest.raises(ValueError, match="config_name: expected one of 'default', 'grouped', got 'groups'"):
        load("cross_lingual_gap", "groups")


@pytest.mark.parametrize(("name", "given", "told"), [case for case in MALFORMED if "unknown" not in case[2]])
def test_the_core_tells_the_same(name: str, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        CORES[name].compute(**{**ROWS[name], **KEYWORDS[name], **given})


# The form


@pytest.mark.parametrize(
    ("name", "table", "expected"),
    [
        (
            "text_rendering_precision",
            [["yes", "yes"], ["", "x"], ["", None]],
            {"n": 1, "n_missing": 1, "precision": 1.0},
        ),
        ("dialect_penalty", [["true", " TRUE ", "toxic"], [False, None, "benign"]], {"n": 1, "n_missing": 1}),
        ("cross_lingual_gap", [["0.5", "en"], [1, "hi"], ["", "hi"], ["", ""]], {"n": 2, "n_missing": 1, "mean": 0.75}),
    ],
)
def test_a_forms_table(name: str, table: list[list[Any]], expected: dict[str, Any], load: Load) -> None:
    keywords = {"tokenizer": str.split} if name == "text_rendering_precision" else {}
    answer = load(name).compute_table(table, **keywords)
    assert {key: answer[key] for key in expected} == expected


def test_a_forms_wrong_cell_is_told(load: Load) -> None:
    with pytest.raises(ValueError, match=r"column 'scores', row 1: .*got 'half'"):
        load("cross_lingual_gap").compute_table([["0.5", "en"], ["half", "en"]])
    with pytest.raises(ValueError, match=r"column 'reference', row 0: .*got 'maybe'"):
        load("dialect_penalty").compute_table([["maybe", "true", "toxic"]])
    with pytest.raises(ValueError, match="at least one row"):
        load("cross_lingual_gap").compute_table([["", ""]])
