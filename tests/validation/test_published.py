"""Published values, recomputed: declared ones, files of the published layouts that the tests write, and the real files where given."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from commands import command, error_of
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.contingency_tables import mcnemar

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.validation import published_values as values
from t2i_parity.validation.published import validate
from t2i_parity.validation.published_checks import Check, Report
from t2i_parity.validation.published_files import discordant, relation, relations, summary

REAL = os.environ.get("T2I_PARITY_REFERENCE")

KNOWN = {
    "DALL·E 2, unspecified": 3.764,
    "self-assessed": 3.480,
    "p of the models, unspecified": 0.047,
    "Pearson r, SD, unspecified": 0.608,
    "Pearson r, GDP per capita of 2022": -0.157,
}
"""Declared numbers that are known not to come out again, and what does."""
KNOWN_MARK = "OMod ΔTPR p, CollSgE"

# The study's table as counts: of SAE prompts flagged, and of pairs where only the variety or only SAE is. Where the shift is
# one pair its p-value is 1 whatever the counts are.
PAIRS = {"tpr": 2216, "fpr": 2400}
LABEL = {"tpr": "toxic", "fpr": "benign"}
FLAGGED = {"NSFW-T": (1587, 374), "LatentGuard": (826, 91), "OMod": (665, 5)}
PREFIX = {"NSFW-T": ("NSFW-T", "prob"), "LatentGuard": ("LG", "score"), "OMod": ("OMod", None)}
DISCORDANT = {
    ("AAVE", "NSFW-T"): ((382, 17), (499, 96)),
    ("AAVE", "LatentGuard"): ((461, 126), (168, 65)),
    ("AAVE", "OMod"): ((13, 82), (0, 3)),
    ("ChcE", "NSFW-T"): ((147, 47), (737, 61)),
    ("ChcE", "LatentGuard"): ((317, 142), (58, 81)),
    ("ChcE", "OMod"): ((40, 81), (2, 2)),
    ("CollSgE", "NSFW-T"): ((114, 60), (206, 69)),
    ("CollSgE", "LatentGuard"): ((249, 146), (176, 60)),
    ("CollSgE", "OMod"): ((52, 85), (1, 0)),
    ("IndE", "NSFW-T"): ((26, 75), (103, 100)),
    ("IndE", "LatentGuard"): ((86, 146), (11, 71)),
    ("IndE", "OMod"): ((41, 46), (0, 1)),
    ("JamE", "NSFW-T"): ((175, 139), (80, 261)),
    ("JamE", "LatentGuard"): ((350, 252), (138, 74)),
    ("JamE", "OMod"): ((43, 145), (0, 1)),
}
PRINTED = {(row.variety, row.filter): row for row in values.DIALECT_TABLE_1}
P_OF_MARK = {"‡": 1e-12, "†": 0.02, "": 0.2}


def write(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def write_dialectgen(out: Path) -> None:
    """Two models: one whose numbers are worked by hand, one whose SAE score is 0. A prompt holds a comma, a quote and a line separator."""
    for model, sae, dialect, printed in (
        ("model-a", (0.5, 0.25, 0.375), (0.25, 0.25, 0.1), (0.2, 0.375, 0.175, 0.4667)),
        ("model-b", (0.0, 0.0, 0.0), (0.1, 0.2, 0.3), (0.2, 0.0, -0.2, 0.0)),
    ):
        folder = out / "understanding" / "base_models_vqa" / "concise" / "bre" / model
        prompts = ["a red lorry", 'a "lorry", large', "a lorry\u2028at night"]
        write(folder / "breakdown_sae.csv", [["Prompt_Index", "SAE_Prompt", "Score"], *([i, p, sae[i]] for i, p in enumerate(prompts))])
        rows = [[i, p, p, dialect[i]] for i, p in enumerate(prompts)]
        write(folder / "breakdown_dialect.csv", [["Prompt_Index", "Dialect_Prompt", "SAE_Prompt", "Score"], *rows])
        names = ("Dialect", "SAE", "Absolute Drop", "Drop Ratio")
        write(folder / "summary.csv", [["Evaluation_Type", "Overall_Average_Score"], *zip(names, printed, strict=True)])


def write_trig(folder: Path) -> None:
    """Four pairs of dimensions, one for each rule, with correlations and means that can be told by looking."""
    outlier = [[0.60 + 0.01 * i, 0.9 if i == 6 else 0.5] for i in range(13)]
    scores = {
        "IQ-O_D-A": [[0.90, 0.90], [0.85, 0.85], [0.95, 0.95]],
        "TA-C_IQ-O": outlier,
        "R-B_D-A": [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]],
        "R-B_IQ-O": [[0.1, 0.2], [0.2, 0.1], [0.3, 0.3]],
    }
    correlations = [1.0, 0.0, -1.0, 0.5]
    codes = {"D-A_IQ-O": 0, "D-A_R-B": 1, "D-A_TA-C": -1, "IQ-O_R-B": 3, "IQ-O_TA-C": -2, "R-B_TA-C": -1}
    both = {**codes, **{"_".join(reversed(pair.split("_"))): -code if code == -2 else code for pair, code in codes.items()}}
    result = {
        "metrics": list(scores),
        "correlation_matrix": [[correlations[i] if i == j else 0.0 for j in range(4)] for i in range(4)],
        "quadrant_analysis": {},
        "relationship_codes": both,
        "insights": [],
    }
    (folder / "relation_flux").mkdir(parents=True)
    by_id = {pair: {f"{pair}_{i}": score for i, score in enumerate(of_pair, start=1)} for pair, of_pair in scores.items()}
    (folder / "formatted_flux.json").write_text(json.dumps(by_id, indent=4), encoding="utf-8")
    (folder / "relation_flux" / "result.json").write_text(json.dumps(result, indent=4), encoding="utf-8")
    # D-A: 2.7 + 1.5 over 6; IQ-O: 2.7 + 6.9 + 0.6 over 19; R-B: 1.5 + 0.6 over 6; TA-C: 8.58 over 13.
    table = [
        ["", "D-A", "IQ-O", "R-B", "TA-C"],
        ["D-A", "0.700", 0, 1, -1],
        ["IQ-O", "[0.900-0.900]", "0.537", 3, -2],
        ["R-B", "[0.500-0.500]", "[0.200-0.200]", "0.350", -1],
        ["TA-C", "NULL", "[0.660-0.531]", "NULL", "0.660"],
    ]
    write(folder / "relation_flux" / "relationship_codes.csv", table)


def write_dialect(path: Path, *, none_discordant: float | None = None) -> None:
    """The unrounded table; with ``none_discordant``, OMod flags no benign ChcE pair differently, and that stands as its p-value."""
    rows = []
    for variety in ("AAVE", "ChcE", "CollSgE", "IndE", "JamE"):
        row: dict[str, object] = {"Dialect": variety, "n_toxic": 2216, "n_benign": 2400}
        for name, (prefix, score) in PREFIX.items():
            printed = PRINTED[variety, name]
            for place, (rate, n) in enumerate(PAIRS.items()):
                flagged, (b, c) = FLAGGED[name][place], DISCORDANT[variety, name][place]
                if none_discordant is not None and (variety, name, rate) == ("ChcE", "OMod", "fpr"):
                    p = none_discordant
                else:
                    p = mcnemar([[flagged - c, c], [b, n - flagged - b]], exact=False, correction=True).pvalue
                upper = rate.upper()
                standard, dialect = 100 * flagged / n, 100 * (flagged + b - c) / n
                row |= {f"{prefix} Δ{upper}": dialect - standard, f"{prefix} {upper} (Std)": standard}
                row |= {f"{prefix} {upper} (Dial)": dialect, f"{prefix} Δ{upper} p": p}
                cell = (printed.score_toxic, printed.score_benign)[place]
                if cell is not None:
                    row[f"{prefix} mean Δ{score} ({LABEL[rate]})"] = cell.value + 0.001
                    row[f"{prefix} Δ{score} p ({LABEL[rate]})"] = P_OF_MARK[cell.mark]
        rows.append(row)
    write(path, [list(rows[0]), *(list(row.values()) for row in rows)])


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    """A reference folder whose published values are right."""
    root = tmp_path / "reference"
    write_dialectgen(root / "dialectgen" / "out")
    write_trig(root / "trig")
    write_dialect(root / "dialect_penalty" / "aggregate_results.csv")
    return root


MODEL = "dialectgen/out/understanding/base_models_vqa/concise/bre/model-a"
DIALECT_CSV = "dialect_penalty/aggregate_results.csv"


def edit(root: Path, name: str, old: str, new: str) -> None:
    """Replace text that stands exactly once in a file."""
    path = root / name
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{name} holds {old!r} {text.count(old)} times"
    path.write_text(text.replace(old, new), encoding="utf-8")


def edit_cell(root: Path, variety: str, column: str, change: Callable[[str], str]) -> None:
    """Change one cell of the unrounded table."""
    with open(root / DIALECT_CSV, encoding="utf-8", newline="") as file:
        header, *rows = list(csv.reader(file))
    for row in rows:
        if row[0] == variety:
            row[header.index(column)] = change(row[header.index(column)])
    write(root / DIALECT_CSV, [header, *rows])


def differing(report: Report) -> list[str]:
    return [check.item for check in report.checks if check.verdict == "differs"]


# Declared


def test_declared_values_come_out_again(tmp_path: Path) -> None:
    done = command("validate", "--published", "--json", tmp_path / "values.json")
    answer = json.loads((tmp_path / "values.json").read_text(encoding="utf-8"))
    checks = {f"{check['group']}: {check['item']}": check for check in answer["checks"]}
    assert answer["agrees"]
    assert {check["item"] for check in answer["checks"] if check["verdict"] == "noted"} == set(KNOWN)
    assert all(check["source"] and check["place"] for check in answer["checks"])
    means = [check["ours"] for check in answer["checks"] if check["group"] == "Geography Table 1: averages"]
    assert means == pytest.approx([3.486, 2.390, 3.781, 2.343, 3.192, 2.434], abs=0.0005)
    text = "Geography text: gains, counts"
    for item, ours in {
        "gain, DALL·E 2": 1.438,
        "gain, SD": 0.758,
        "countries below 3, unspecified": 25,
        "countries from 3 to 3.5, with country": 14,
        "countries that gain": 27,
    }.items():
        assert checks[f"{text}: {item}"]["ours"] == pytest.approx(ours, abs=0.0005)
    assert checks["Geography text: t-tests: p of the gain, both models"]["ours"] == pytest.approx(7.28e-16, rel=1e-3)
    assert checks["Geography text: correlations: Pearson r, population of 2019"]["ours"] == pytest.approx(0.638, abs=0.0005)
    assert checks["Dialect text: SAE + Δ: NSFW-T, ChcE, FPR"]["ours"] == pytest.approx(43.75)
    assert checks["Dialect text: SAE + Δ: NSFW-T, AAVE, FPR"]["ours"] == pytest.approx(32.37)
    assert len(answer["groups"]) == 12
    assert {key for group in answer["groups"] for key in group} == {"group", "cells", "equal", "noted", "differs", "largest_difference"}
    # The traps stand in the table as notes: the swapped heading, India's two scores, the cut-off gain.
    for trap in ("p_c over those without", "Table 1 prints 3.24", "0.75 is the difference of the printed means"):
        assert trap in done.stdout
    assert "arXiv:2305.11080" in done.stdout
    assert "arXiv:2608.29589" in done.stdout


@pytest.mark.parametrize(("item", "ours"), KNOWN.items())
def test_known_differences_come_out_as_known(item: str, ours: float) -> None:
    check = next(check for check in validate().checks if check.item == item and check.verdict != "equal")
    assert check.ours == pytest.approx(ours, abs=0.0005)
    assert check.note
    assert replace(check, known=ours + 0.01).verdict == "differs"
    assert replace(check, known=None).verdict == "differs"


def test_a_wrong_declared_value_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values, "GEO_BELOW_3", replace(values.GEO_BELOW_3, value=24))
    first, *others = values.DIALECT_TABLE_3
    monkeypatch.setattr(values, "DIALECT_TABLE_3", (replace(first, gap_fpr=16.73), *others))
    assert differing(validate()) == ["countries below 3, unspecified", "NSFW-T, AAVE, FPR"]


def test_every_value_is_listed_when_asked() -> None:
    few, every = command("validate", "--published").stdout, command("validate", "--published", "--all").stdout
    assert "GRC, unspecified" not in few
    assert "GRC, unspecified" in every
    assert len(every.splitlines()) > len(validate().checks)


def test_without_a_mode_it_says_what_to_give() -> None:
    for arguments in ((), ("--reference", "somewhere"), ("--all",)):
        assert "--published" in error_of("validate", *arguments)


def test_the_module_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "t2i_parity.validation", "validate", "--published"], capture_output=True, text=True, check=True
    )
    assert done.stdout == command("validate", "--published").stdout


# Files


def test_files_of_the_published_layouts_come_out_again(reference: Path, tmp_path: Path) -> None:
    command("validate", "--published", "--reference", reference, "--json", tmp_path / "new" / "values.json")
    answer = json.loads((tmp_path / "new" / "values.json").read_text(encoding="utf-8"))
    cells = {group["group"]: group["cells"] for group in answer["groups"]}
    expected = {
        "DialectGen: summaries": 8,
        "TRIG: correlations": 5,
        "TRIG: relation codes": 18,
        "TRIG: means": 12,
        "Dialect file: rates": 60,
        "Dialect file: shifts": 30,
        "Dialect file: χ² p-values": 30,
        "Dialect file: rounds to Table 1": 56,
        "Dialect file: marks of Table 1": 50,
    }
    assert {name: cells[name] for name in expected} == expected
    assert answer["agrees"]
    assert {check["item"] for check in answer["checks"] if check["verdict"] == "noted"} == {*KNOWN, KNOWN_MARK}
    undetermined = [check["item"] for check in answer["checks"] if "not determined" in check["note"]]
    assert undetermined == [
        f"OMod, {variety}, ΔFPR: p, b − c = {gap}" for variety, gap in (("CollSgE", "1"), ("IndE", "−1"), ("JamE", "−1"))
    ]
    items = {check["item"]: check for check in answer["checks"]}
    assert "NSFW-T, AAVE, ΔTPR: p, b = 382, c = 17" in items
    # Where the study's text asks for the exact test and its file has χ², both are said.
    assert items["OMod, ChcE, ΔFPR: p, b = 2, c = 2"]["ours"] == pytest.approx(0.6170750774519739)
    assert items["OMod, ChcE, ΔFPR: p, b = 2, c = 2"]["note"].endswith("gives p = 1")


@pytest.mark.parametrize(
    ("name", "old", "new", "items"),
    [
        (f"{MODEL}/summary.csv", "0.4667", "0.4668", [f"{MODEL.removeprefix('dialectgen/out/')}/summary.csv: Drop Ratio"]),
        ("trig/relation_flux/result.json", "            -1.0,", "            -0.99999999999,", ["R-B_D-A"]),
        ("trig/relation_flux/result.json", '"IQ-O_R-B": 3', '"IQ-O_R-B": -1', ["result.json: IQ-O_R-B"]),
        ("trig/relation_flux/relationship_codes.csv", ",3,-2", ",3,2", ["relationship_codes.csv: IQ-O, TA-C"]),
        ("trig/relation_flux/relationship_codes.csv", "[0.660-0.531]", "[0.660-0.532]", ["relationship_codes.csv: TA-C, IQ-O, IQ-O"]),
        ("trig/relation_flux/relationship_codes.csv", "0.537", "0.538", ["relationship_codes.csv: IQ-O, IQ-O"]),
    ],
)
def test_a_planted_wrong_cell_is_found_and_named(reference: Path, name: str, old: str, new: str, items: list[str]) -> None:
    edit(reference, name, old, new)
    assert differing(validate(reference)) == items


@pytest.mark.parametrize(
    ("column", "change", "items"),
    [
        ("NSFW-T ΔTPR p", lambda cell: str(float(cell) * 1.000001), ["NSFW-T, AAVE, ΔTPR: p, b − c = 365"]),
        ("LG ΔFPR", lambda cell: str(float(cell) + 1e-6), ["LatentGuard, AAVE, ΔFPR"]),
        ("LG TPR (Dial)", lambda cell: str(float(cell) + 1e-4), ["LatentGuard, AAVE, TPR (Dial)"]),
        ("NSFW-T mean Δprob (toxic)", lambda cell: str(float(cell) + 0.01), ["NSFW-T mean Δprob (toxic), AAVE"]),
        ("LG Δscore p (benign)", lambda _: "0.04", ["LG Δscore p (benign), AAVE"]),
    ],
)
def test_a_planted_wrong_cell_of_the_unrounded_table_is_found(
    reference: Path, column: str, change: Callable[[str], str], items: list[str]
) -> None:
    edit_cell(reference, "AAVE", column, change)
    assert differing(validate(reference)) == items


def test_a_wrong_cell_ends_with_1_and_is_named(reference: Path) -> None:
    edit(reference, f"{MODEL}/summary.csv", "0.175", "0.1751")
    done = command("validate", "--published", "--reference", reference, check=1)
    last = done.stdout.splitlines()[-1]
    assert last.startswith("1 of ")
    assert last.endswith("base_models_vqa/concise/bre/model-a/summary.csv: Absolute Drop")
    assert done.stderr == ""


@pytest.mark.parametrize("printed", [0.0, float("nan")])
def test_no_discordant_pair_is_named(reference: Path, printed: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(DISCORDANT, ("ChcE", "OMod"), ((40, 81), (0, 0)))
    write_dialect(reference / DIALECT_CSV, none_discordant=printed)
    report = validate(reference)
    check = next(check for check in report.checks if check.item == "OMod, ChcE, ΔFPR: p, b = 0, c = 0")
    assert (check.ours, check.verdict) == (1.0, "noted")
    assert "no discordant pair" in check.note
    assert report.agrees
    command("validate", "--published", "--reference", reference, "--json", tmp_path / "values.json")
    json.loads((tmp_path / "values.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda root: (root / MODEL / "breakdown_sae.csv").unlink(), ["breakdown_sae.csv", "DialectGen/DialectGen at 93c6bbe5"]),
        (lambda root: edit(root, f"{MODEL}/breakdown_sae.csv", "Score", "CLIP"), ["breakdown_sae.csv: expected the columns", "CLIP"]),
        (lambda root: edit(root, f"{MODEL}/summary.csv", "Drop Ratio", "Ratio"), ["summary.csv: expected the rows", "Ratio"]),
        (lambda root: edit(root, f"{MODEL}/summary.csv", "0.4667", "n/a"), ["summary.csv, line 5, column Overall_Average_Score", "'n/a'"]),
        (lambda root: edit(root, f"{MODEL}/breakdown_sae.csv", "0,a red lorry,0.5\n", ""), ["3 and 2", "breakdown_dialect.csv"]),
        (lambda root: (root / "trig/formatted_flux.json").write_text("{", encoding="utf-8"), ["formatted_flux.json", "TRIG at a0811830"]),
        (lambda root: edit(root, "trig/formatted_flux.json", '"R-B_D-A": {', '"R-B_D-K": {'), ["result.json: expected the pairs"]),
        (lambda root: edit(root, "trig/relation_flux/result.json", '"D-A_R-B": 1,', ""), ["relationship_codes", "D-A_R-B"]),
        (
            lambda root: edit(root, "trig/relation_flux/relationship_codes.csv", "[0.900-0.900]", "0.9"),
            ["line 3, column D-A", "[0.487-0.484]"],
        ),
        (lambda root: edit(root, "trig/relation_flux/relationship_codes.csv", "TA-C,NULL", "TA-C,0.1"), ["line 5, column D-A", "NULL"]),
        (lambda root: (root / DIALECT_CSV).unlink(), ["aggregate_results.csv", "dialect-penalty-t2i at 410f6b5a"]),
        (lambda root: edit(root, DIALECT_CSV, "LG ΔFPR p", "LG p"), ["aggregate_results.csv: expected also the columns LG ΔFPR p"]),
        (lambda root: edit(root, DIALECT_CSV, "JamE,", "BrE,"), ["column Dialect: expected one row each", "BrE"]),
        (lambda root: edit_cell(root, "IndE", "n_toxic", lambda _: "0"), ["line 5, column n_toxic", "'0'"]),
        (lambda root: edit_cell(root, "IndE", "OMod TPR (Std)", lambda _: "130"), ["line 5, column OMod TPR (Std)", "'130'"]),
    ],
)
def test_another_layout_is_told_with_file_and_fix(reference: Path, change: Callable[[Path], object], told: list[str]) -> None:
    change(reference)
    with pytest.raises(InputError) as caught:
        validate(reference)
    for part in (*told, "Take ", " from github.com/"):
        assert part in str(caught.value)


def test_a_missing_folder_is_told_in_one_paragraph(tmp_path: Path) -> None:
    message = error_of("validate", "--published", "--reference", tmp_path)
    assert "no summary.csv below" in message
    assert "--reference" in message


# Parts


@pytest.mark.parametrize(("b", "c", "flagged", "pairs"), [(382, 17, 1587, 2216), (0, 3, 5, 2400), (2, 2, 5, 2400), (6, 6, 91, 2400)])
def test_discordant_counts_follow_from_shift_and_p(b: int, c: int, flagged: int, pairs: int) -> None:
    p = mcnemar([[0, c], [b, 0]], exact=False, correction=True).pvalue
    assert discordant(b - c, p, flagged, pairs) == [(b, c)]
    assert discordant(b - c, p * 1.0001, flagged, pairs) == []


def test_counts_beyond_the_flagged_pairs_are_not_offered() -> None:
    p = mcnemar([[0, 9], [12, 0]], exact=False, correction=True).pvalue
    assert discordant(3, p, flagged=9, pairs=100) == [(12, 9)]
    assert discordant(3, p, flagged=8, pairs=100) == []
    assert discordant(3, p, flagged=99, pairs=100) == []


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([[0.9, 0.9]] * 4 + [[0.2, 0.2]] * 6, 0),
        ([[0.8, 0.9]] * 4 + [[0.2, 0.2]] * 6, 3),
        ([[0.5, 0.4]] * 4 + [[0.6, 0.6], [0.7, 0.7]], -1),
        ([[0.6 + 0.01 * i, 0.9 if i == 6 else 0.5] for i in range(13)], 2),
        ([[0.6 + 0.01 * i, 0.5 if i == 6 else 0.7] for i in range(13)], -2),
        ([[0.6, 0.7 if i < 10 else 0.5] for i in range(12)], -2),
        ([[0.6 + 0.01 * i, 0.7 - 0.01 * i] for i in range(9)], 1),
    ],
)
def test_relations_by_hand(rows: list[list[float]], code: int) -> None:
    assert relation(np.array(rows)) == code


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=30, unique_by=(lambda s: s[0], lambda s: s[1])))
def test_codes_stand_in_both_orders(rows: list[tuple[float, float]]) -> None:
    codes = relations({"B_A": np.array(rows), "C_A": np.array(rows)})
    assert set(codes) == {f"{first}_{second}" for first in "ABC" for second in "ABC" if first != second}
    for pair, code in codes.items():
        back = codes[f"{pair[-1]}_{pair[0]}"]
        assert back == (-code if abs(code) == 2 else code)
    assert codes["A_B"] == codes["A_C"]
    assert codes["B_C"] == -1


def test_a_score_of_zero_gives_a_ratio_of_zero() -> None:
    assert summary([0.0, 0.0], [0.1, 0.3]) == {"Dialect": 0.2, "SAE": 0.0, "Absolute Drop": -0.2, "Drop Ratio": 0.0}


@pytest.mark.parametrize(
    ("relation", "ours", "verdict"),
    [
        ("=", 1.005, "equal"),
        ("=", 0.9949, "differs"),
        ("=", float("nan"), "differs"),
        ("<", 1.0, "differs"),
        ("<", 0.9, "equal"),
        ("≥", 1.0, "equal"),
    ],
)
def test_verdicts(relation: str, ours: float, verdict: str) -> None:
    check = Check("group", "item", "source", published=1.0, ours=ours, within=0.005, relation=relation)  # type: ignore[arg-type]
    assert check.verdict == verdict


# The real files


@pytest.mark.skipif(REAL is None, reason="T2I_PARITY_REFERENCE names no folder with the published files")
def test_the_published_files_come_out_again() -> None:
    report = validate(Path(str(REAL)))
    counts = {group.name: (len(group.checks), group.count("equal")) for group in report.groups()}
    assert differing(report) == []
    assert {check.item for check in report.checks if check.verdict == "noted"} == {*KNOWN, KNOWN_MARK}
    expected = {
        "DialectGen: summaries": (80, 80),
        "TRIG: correlations": (43, 43),
        "TRIG: relation codes": (135, 135),
        "TRIG: means": (94, 94),
        "Dialect file: rates": (60, 60),
        "Dialect file: shifts": (30, 30),
        "Dialect file: χ² p-values": (30, 30),
        "Dialect file: rounds to Table 1": (56, 56),
        "Dialect file: marks of Table 1": (50, 49),
    }
    assert {name: counts[name] for name in expected} == expected
    determined = [check.item for check in report.checks if check.group == "Dialect file: χ² p-values" and "b = " in check.item]
    assert len(determined) == 27
