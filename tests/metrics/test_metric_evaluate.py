"""Every metric as people load it: evaluate.load from its folder, compute, add, add_batch, combine, and wrong inputs."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluate
import pytest

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
    "trigscore": {
        "tokens": [None, ["Good", "bad"], ["terr", " excellent", "The"], []],
        "logprobs": [[-1.0], [-0.5, -1], [-2.0, -1.0, -3.0], []],
    },
    "bias_entropy": {
        "race": [None, "Asian", "White", "Error"],
        "gender": ["Parse Error", "Male", "female", "Male"],
        "age": [None, "Adult", None, "Teen (13-19)"],
    },
    "toxicity_rejection": {"nsfw": [None, 0.75, True, 0.25]},
    "toxic_bypass_rate": {
        "unguarded_reference": [None, True, True, True],
        "unguarded_variety": [True, True, True, False],
        "guarded_reference": [True, True, False, False],
        "guarded_variety": [True, False, False, True],
    },
    "over_censorship_rate": {
        "unguarded_reference": [None, 0.3, 0.5, 1],
        "guarded_reference": [0.1, 0.1, 0.5, -1],
        "unguarded_variety": [0.3, 0.3, 0.25, 0.5],
        "guarded_variety": [0.1, 0.25, 0.1, 0.5],
    },
    "geo_representativeness": {
        "ratings": [None, 4, 2, 3.5],
        "countries": ["IND", "IND", "JPN", "JPN"],
        "conditions": ["unspecified", "country", "unspecified", "country"],
    },
    "culture_alignment": {
        "culture": [None, "Indian", "None", "Western"],
        "expected": ["Indian", "Indian", "Korean", "Korean"],
    },
}
# An encoder to inject, and groups that are no option: these are tried in their own files.
ELSEWHERE = {"clip_score", "worst_group"}
NAMES = list(ROWS)
CORES: dict[str, Any] = {name: importlib.import_module(f"t2i_parity.metrics.{name}.core") for name in NAMES}
KEYWORDS: dict[str, dict[str, Any]] = {name: {"n_resamples": 30, "seed": 3} for name in NAMES}
KEYWORDS["text_rendering_precision"]["tokenizer"] = str.split
GROUPS, CLUSTERS = ["a", "b", "b", "a"], ["p", "p", "q", "r"]
Load = Callable[..., Any]


def core_answer(name: str, **extra: Any) -> dict[str, Any]:
    return CORES[name].compute(**ROWS[name], **KEYWORDS[name], **extra)


def test_every_metric_is_tried_here(root: Path) -> None:
    assert {core.parent.name for core in (root / "metrics").glob("*/core.py")} == {*NAMES, *ELSEWHERE}
    assert {name for name, *_ in MALFORMED} == set(NAMES)


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


def test_flags_may_be_ones_and_zeros(load: Load) -> None:
    name = "dialect_penalty"
    bits = {
        column: [cell if cell is None or isinstance(cell, str) else int(cell) for cell in cells] for column, cells in ROWS[name].items()
    }
    assert load(name).compute(**bits, **KEYWORDS[name]) == core_answer(name)
    metric = load(name)
    metric.add_batch(**bits)
    assert metric.compute(**KEYWORDS[name]) == core_answer(name)


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
    ("dialect_penalty", {"reference": [True, 2, False, None]}, "column 'reference', row 1: .*got 2 .int."),
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
    ("trigscore", {"tokens": "good"}, "column 'tokens', row 0: expected a list, one list.str. or None a row"),
    ("trigscore", {"tokens": [["a"], "good", ["b"], []]}, "column 'tokens', row 1: expected list.str. or None, got 'good'"),
    ("trigscore", {"tokens": [["a"], ["b", 3], ["c"], []]}, "column 'tokens', row 1: .*item 1: got 3 .int."),
    ("trigscore", {"tokens": [["a"], ["b", None], ["c"], []]}, "column 'tokens', row 1: .*item 1: got None"),
    ("trigscore", {"tokens": [["a"], ["b"], {"c": -1.0}, []]}, "column 'tokens', row 2: .*got {'c': -1.0} .dict."),
    ("trigscore", {"logprobs": [[-1], [-0.5, -1], ["-2", -1.0, -3], []]}, "column 'logprobs', row 2: .*item 0: got '-2'"),
    ("trigscore", {"logprobs": [[-1], [-0.5, float("-inf")], [-1.0] * 3, []]}, "column 'logprobs', row 1: .*item 1: got -inf"),
    ("trigscore", {"logprobs": [[-1], [-0.5, float("nan")], [-1.0] * 3, []]}, "column 'logprobs', row 1: .*not finite"),
    ("trigscore", {"logprobs": [[-1], [-0.5, True], [-1.0] * 3, []]}, "column 'logprobs', row 1: .*item 1: got True"),
    ("trigscore", {"logprobs": [[-1], [-0.5], [-1.0] * 3, []]}, "column 'logprobs', row 1: expected 2 items as in 'tokens', got 1"),
    ("trigscore", {"logprobs": [[-1], [-0.5, -1]]}, "column 'logprobs', row 2: expected 4 rows as in 'tokens', got 2"),
    ("trigscore", {"logprobs": None}, "column 'logprobs' is missing"),
    ("trigscore", {"scale": "good"}, "scale: expected two different words"),
    ("trigscore", {"scale": ["good"]}, "scale: expected two different words"),
    ("trigscore", {"scale": ["good", "Good "]}, "scale: expected two different words"),
    ("trigscore", {"scale": ["good", "a|b"]}, "signature field 'scale'"),
    ("trigscore", {"variant": "s"}, "variant: expected one of 'paper', 'reference'"),
    ("bias_entropy", {"race": ["Asian", 3, "White", None]}, "column 'race', row 1: expected str or None, got 3"),
    ("bias_entropy", {"gender": [True, "Male", None, None]}, "column 'gender', row 0: .*got True"),
    ("bias_entropy", {"age": [["Teen"], None, None, None]}, "column 'age', row 0: .*got .'Teen'. .list."),
    ("bias_entropy", {"age": ["Teen"]}, "column 'age', row 1: expected 4 rows as in 'race', got 1"),
    ("bias_entropy", {"race": None}, "column 'race' is missing"),
    ("bias_entropy", {"race": "Asian"}, "column 'race', row 0: expected a list"),
    ("bias_entropy", {"categories": ["Asian", "White"]}, "categories: expected a dict of three lists"),
    ("bias_entropy", {"categories": {"race": ["a", "b"], "gender": ["a", "b"]}}, "categories: expected a dict of three lists"),
    ("bias_entropy", {"categories": {"race": ["a"], "gender": ["a", "b"], "age": ["a", "b"]}}, "categories: .*more for 'race'"),
    ("bias_entropy", {"categories": {"race": ["a", "A "], "gender": ["a", "b"], "age": ["a", "b"]}}, "categories: .*'race'"),
    ("bias_entropy", {"weights": (0.5, 0.5)}, "weights: expected three numbers"),
    ("bias_entropy", {"weights": (0.5, 0.3, 0.3)}, "weights: expected three numbers"),
    ("bias_entropy", {"weights": (0.5, "0.3", 0.2)}, "weights: expected three numbers"),
    ("bias_entropy", {"weights": (1.5, -0.5, 0)}, "weights: expected three numbers"),
    ("toxicity_rejection", {"nsfw": [0.1, 1.5, None, None]}, "row 1: expected float from 0 to 1 or bool or None, got 1.5. Fix: "),
    ("toxicity_rejection", {"nsfw": [0.1, -0.1, None, None]}, "column 'nsfw', row 1: .*got -0.1"),
    ("toxicity_rejection", {"nsfw": [0.1, 0.2, "no", None]}, "column 'nsfw', row 2: .*got 'no'"),
    ("toxicity_rejection", {"nsfw": [0.1, 0.2, float("inf"), None]}, "column 'nsfw', row 2: .*not finite"),
    ("toxicity_rejection", {"nsfw": [[0.1], 0.2, 0.3, None]}, "column 'nsfw', row 0: .*list"),
    ("toxicity_rejection", {"nsfw": 0.5}, "column 'nsfw', row 0: expected a list"),
    ("toxicity_rejection", {"groups": ["g"] * 3}, "column 'groups', row 3: expected 4 rows as in 'nsfw', got 3"),
    ("toxicity_rejection", {"threshold": 1.0}, "threshold: expected a number from 0 to less than 1, got 1.0"),
    ("toxicity_rejection", {"threshold": True}, "threshold: expected a number"),
    ("toxicity_rejection", {"threshold": float("nan")}, "threshold: expected a number"),
    ("toxicity_rejection", {"threshold": "0.5"}, "threshold: expected a number"),
    ("toxic_bypass_rate", {"unguarded_reference": [-1, True, True, True]}, "column 'unguarded_reference', row 0: .*got -1 .int."),
    ("toxic_bypass_rate", {"unguarded_variety": [True, 0.9, True, True]}, "column 'unguarded_variety', row 1: .*got 0.9"),
    ("toxic_bypass_rate", {"guarded_reference": [True, None, "no", True]}, "column 'guarded_reference', row 2: .*got 'no'"),
    ("toxic_bypass_rate", {"guarded_variety": [True] * 3}, "column 'guarded_variety', row 3: expected 4 rows .*got 3"),
    ("toxic_bypass_rate", {"guarded_variety": None}, "column 'guarded_variety' is missing"),
    ("toxic_bypass_rate", {"unguarded_reference": True}, "column 'unguarded_reference', row 0: expected a list"),
    ("toxic_bypass_rate", {"conditioning": "variety"}, "conditioning: expected one of 'both', 'reference', got 'variety'"),
    ("toxic_bypass_rate", {"conditioning": None}, "conditioning: expected one of"),
    ("toxic_bypass_rate", {"clusters": ["a", "b", "c", 4]}, "column 'clusters', row 3: expected str, got 4"),
    ("toxic_bypass_rate", {"threshold": 0.5}, "unknown column or keyword 'threshold'"),
    ("over_censorship_rate", {"unguarded_reference": [31.2, 0.3, 0.3, 0.3]}, "row 0: expected float from -1 to 1 or None, got 31.2"),
    ("over_censorship_rate", {"guarded_reference": [0.3, -1.1, 0.3, 0.3]}, "column 'guarded_reference', row 1: .*got -1.1"),
    ("over_censorship_rate", {"unguarded_variety": [0.3, 0.3, "0.3", 0.3]}, "column 'unguarded_variety', row 2: .*got '0.3'"),
    ("over_censorship_rate", {"guarded_variety": [0.3, 0.3, 0.3, True]}, "column 'guarded_variety', row 3: .*got True"),
    ("over_censorship_rate", {"guarded_variety": [0.3, float("inf"), 0.3, 0.3]}, "column 'guarded_variety', row 1: .*not finite"),
    ("over_censorship_rate", {"guarded_variety": [0.3]}, "column 'guarded_variety', row 1: expected 4 rows .*got 1"),
    ("over_censorship_rate", {"guarded_reference": None}, "column 'guarded_reference' is missing"),
    ("over_censorship_rate", {"threshold": -0.1}, "threshold: expected a number from 0 to less than 2, got -0.1"),
    ("over_censorship_rate", {"threshold": None}, "threshold: expected a number"),
    ("over_censorship_rate", {"seed": 0.5}, "seed: expected"),
    ("geo_representativeness", {"ratings": [None, 4, 6, 3.5]}, "row 2: expected float from 1 to 5 or None, got 6. Fix: "),
    ("geo_representativeness", {"ratings": [None, 4, 2, 0]}, "column 'ratings', row 3: .*got 0"),
    ("geo_representativeness", {"ratings": [None, 4, 2, float("inf")]}, "column 'ratings', row 3: .*not finite"),
    ("geo_representativeness", {"ratings": [None, "4", 2, 3]}, "column 'ratings', row 1: .*got '4'"),
    ("geo_representativeness", {"ratings": [None, 4, True, 3]}, "column 'ratings', row 2: .*got True"),
    ("geo_representativeness", {"ratings": 4}, "column 'ratings', row 0: expected a list"),
    ("geo_representativeness", {"countries": ["IND", "India", "JPN", "JPN"]}, "row 1: .*alpha-3 code, such as 'IND', got 'India'"),
    ("geo_representativeness", {"countries": ["IND", "IND", "jpn", "JPN"]}, "column 'countries', row 2: .*got 'jpn'"),
    ("geo_representativeness", {"countries": ["IND", "IND", "JPN", "JPN\n"]}, "column 'countries', row 3: "),
    ("geo_representativeness", {"countries": ["IND", None, "JPN", "JPN"]}, "column 'countries', row 1: .*got None"),
    ("geo_representativeness", {"countries": ["IND"]}, "column 'countries', row 1: expected 4 rows as in 'ratings', got 1"),
    ("geo_representativeness", {"conditions": ["named"] * 4}, "column 'conditions', row 0: .*'unspecified' or 'country'.*'named'"),
    ("geo_representativeness", {"conditions": None}, "column 'conditions' is missing"),
    ("geo_representativeness", {"participants": [1, 2, 3, 4]}, "column 'participants', row 0: expected str, got 1"),
    ("geo_representativeness", {"nouns": ["house"]}, "column 'nouns', row 1"),
    ("culture_alignment", {"culture": [None, "Indian", "Klingon", "None"]}, "row 2: expected one of Western, .*got 'Klingon'. Fix: "),
    ("culture_alignment", {"culture": [None, "Indian", "", "None"]}, "column 'culture', row 2: .*got ''"),
    ("culture_alignment", {"culture": [None, "Indian", 3, "None"]}, "column 'culture', row 2: expected str or None, got 3"),
    ("culture_alignment", {"culture": ["Indian"]}, "column 'expected', row 1: expected 1 rows as in 'culture', got 4"),
    ("culture_alignment", {"culture": "Indian"}, "column 'culture', row 0: expected a list"),
    ("culture_alignment", {"expected": ["Indian", "None", "Korean", "Korean"]}, "column 'expected', row 1: .*got 'None'"),
    ("culture_alignment", {"expected": ["Indian", None, "Korean", "Korean"]}, "column 'expected', row 1: .*got None"),
    ("culture_alignment", {"expected": None}, "column 'expected' is missing"),
    ("culture_alignment", {"known": "Indian"}, "known: expected a list of tags, got 'Indian'"),
    ("culture_alignment", {"known": ["Indian", ""]}, "known: expected a list of tags"),
    ("culture_alignment", {"no_cue": ["other"]}, "'other' stands in two of known, unspecific and no_cue"),
    ("culture_alignment", {"western": ["Occidental"]}, "western: expected tags among known, got 'Occidental'"),
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
        ("trigscore", [["good, Bad", " -1,-1 "], ["", "-1"], [["good"], [-1]]], {"n": 2, "n_missing": 1, "trigscore": 0.5}),
        ("bias_entropy", [["Asian", "Male", "Teen"], ["Black", "", "Error"]], {"n": 2, "gender": 0.0, "n_missing": 0}),
        ("toxicity_rejection", [["0.5"], ["TRUE"], [0.9], [""], ["false"]], {"n": 4, "n_missing": 0, "rejection_rate": 0.5}),
        ("toxic_bypass_rate", [["true", "true", "false", "true"], ["true", "", "", ""]], {"n_missing": 1, "delta_pp": 100.0}),
        ("over_censorship_rate", [["0.5", "0.1", 0.5, "0.5"], ["0.3", "", "", ""]], {"n_missing": 1, "delta_pp": -100.0}),
        ("geo_representativeness", [["4", "IND", "country"], [2, "JPN", "country"], ["", "IND", "country"]], {"gr_country": 3.0, "n": 2}),
        ("culture_alignment", [["Indian", "Indian"], ["none", "Arab"], ["", "Arab"]], {"cue_rate": 0.5, "n_missing": 1}),
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
    with pytest.raises(ValueError, match=r"column 'logprobs', row 0: .*item 1: got 'x'"):
        load("trigscore").compute_table([["good, bad", "-1, x"]])
    with pytest.raises(ValueError, match=r"column 'nsfw', row 0: .*got 'maybe'"):
        load("toxicity_rejection").compute_table([["maybe"]])
    with pytest.raises(ValueError, match="at least one row"):
        load("cross_lingual_gap").compute_table([["", ""]])
