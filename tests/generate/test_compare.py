"""Runs compared row by row: against scipy and by hand, on runs made here, and by the command on a real audit."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.stats
from browser import chromium, faults, low_contrast, show
from commands import command, error_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from t2i_parity.cards.compare import Comparison, Comparisons, Line
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.compare import CompareSettings, compare
from t2i_parity.generate.entries import ScoreSettings
from t2i_parity.generate.run import Run, image_features
from t2i_parity.generate.score import score
from t2i_parity.metrics._common import sign_flip_p
from t2i_parity.metrics._inference import GroupMeans, extreme_difference, inversion_p, spread_difference
from t2i_parity.metrics.scores import Group

LANGUAGES = ("en", "hi", "ar")
MEANINGS = 12
QUICK = CompareSettings(n_permutations=999)
SCORING = ScoreSettings(tokenizer="tekken", n_resamples=50)
Values = dict[str, list[Any]]


def a_run(folder: Path, *, rows: Sequence[dict[str, Any]] | None = None, **observed: Callable[[random.Random], Any]) -> Run:
    """A scored run without pictures: 12 meanings in three languages, and a judge for each keyword, seeing what its function draws."""
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": folder.name}}, "packages": {}, "judges": {}})
    run.write_record()
    schema = image_features().arrow_schema
    made = rows if rows is not None else plain_rows()
    run.images().replace(pa.Table.from_pylist([{**dict.fromkeys(schema.names), **row} for row in made], schema=schema))
    for name, draw in observed.items():
        judge, _, column = name.partition("__")
        seen = [draw(random.Random(f"{folder.name} {row['prompt_id']}")) for row in made]
        signature = f"{judge}|model:tiny|pretrained:none|v:1"
        run.record["judges"][judge] = signature
        run.observations(judge).replace(
            pa.table(
                {
                    "image_id": [row["image_id"] for row in made],
                    "judge": [signature] * len(made),
                    column: seen,
                    "status": ["ok"] * len(made),
                    "reason": pa.nulls(len(made), pa.string()),
                }
            )
        )
    run.write_record()
    score(run, SCORING)
    return Run.open(str(folder))


def plain_rows(meanings: range = range(MEANINGS), prefix: str = "") -> list[dict[str, Any]]:
    return [
        {
            "image_id": f"{prefix}{meaning}-{language}", "prompt_id": f"{prefix}{meaning}-{language}", "pair_id": f"{meaning}",
            "prompt": "a prompt", "language": language, "subset": "lingt2i_content", "dimension": "IQ-R", "status": "ok",
            "text_sha256": f"{prefix}{meaning}{language}", "seed_index": 0, "render_text": f"TEXT {meaning}",
        }
        for meaning in meanings
        for language in LANGUAGES
    ]  # fmt: skip


def cosine(low: float, high: float) -> Callable[[random.Random], float]:
    return lambda rng: round(rng.uniform(low, high), 3)


def lines(comparison: Comparison) -> dict[str, Line]:
    """Lines by language; those over all rows by "all", "spread", "worst" and "std"."""
    by_language = {line.group["language"]: line for line in comparison.lines}
    return by_language | {{"mean": "all"}.get(line.of, line.of): line for line in comparison.summary}


def only(found: Comparisons, metric: str) -> Comparison:
    (comparison,) = [each for each in found.comparisons if each.spec.name == metric]
    return comparison


def values(run: Run, column: str) -> dict[str, float]:
    return {row["prompt_id"]: row[column] for row in run.scored().read().to_pylist()}


def shown_of(spread: float, runs: int) -> dict[str, list[int]]:
    """What is shown of the second of two runs over 64 meanings in ten languages, whose images vary six times as much as the first's.

    Its languages' true means have the standard deviation ``spread``, the first's none. 1 above, −1 below, 0 for nothing shown.
    """
    codes = [f"l{place}" for place in range(10)]
    apart = np.linspace(-1, 1, 10) / np.linspace(-1, 1, 10).std()
    meanings = [f"{n}" for n in range(64) for _ in codes]
    rng = np.random.default_rng(0)
    found: dict[str, list[int]] = {"spread": [], "worst": []}
    for _ in range(runs):
        first, second = (
            GroupMeans.of((0.7 + more * apart + rng.normal(0, sd, (64, 10))).ravel(), codes * 64, meanings,
                          low=None, high=None)
            for sd, more in ((0.05, 0), (0.3, spread))
        )  # fmt: skip
        for name, difference in (("spread", spread_difference(first, second)), ("worst", extreme_difference(first, second))):
            assert difference is not None
            low, high = difference[1] or (0, 0)
            found[name].append(int(low > 0) - int(high < 0))
    return found


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("two")
    return a_run(folder / "first", clip__similarity=cosine(0.2, 0.6)), a_run(folder / "second", clip__similarity=cosine(0.3, 0.7))


# The numbers


def test_a_run_against_itself_differs_in_nothing(tmp_path: Path) -> None:
    run = a_run(
        tmp_path / "run",
        clip__similarity=cosine(0.2, 0.6),
        reader__text=lambda rng: rng.choice(["TEXT 1", "TEXT 2", "x"]),
        guard__probabilities=lambda rng: [rng.random(), rng.random()],
    )
    found = compare([run, run], QUICK)
    assert [name for name, _ in found.runs] == ["run (1)", "run (2)"]
    assert {comparison.spec.name for comparison in found.comparisons} == {
        "clip_score.clip_score", "text_rendering_precision.precision", "text_rendering_precision.ned_char",
        "text_rendering_precision.ned_token", "text_rendering_precision.sentence_accuracy", "toxicity_rejection.rejection_rate",
    }  # fmt: skip
    for comparison in found.comparisons:
        for line in [*comparison.lines, *comparison.summary]:
            assert line.difference == 0.0
            assert line.first == line.second
            if line.of == "std":
                assert (line.verdict, line.p, line.low) == (None, None, None)
                continue
            assert line.low < 0 < line.high, "no sample shows that two runs are the same"
            assert (line.p, line.p_holm) == (1.0, 1.0)
            assert line.verdict.kind in ("equivalent", "undecided")


def test_differences_intervals_and_tests_are_those_of_other_implementations(two: tuple[Run, Run]) -> None:
    comparison = only(compare(two, CompareSettings(n_permutations=9999)), "clip_score.clip_score")
    first, second = (values(run, "clip_clip_score") for run in two)
    found = lines(comparison)
    for language in LANGUAGES:
        ids = [f"{meaning}-{language}" for meaning in range(MEANINGS)]
        differences = np.array([second[name] - first[name] for name in ids])
        line = found[language]
        assert line.first == pytest.approx(np.mean([first[name] for name in ids]))
        assert line.difference == pytest.approx(differences.mean())
        exact = scipy.stats.permutation_test((differences,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=True)
        assert line.p == pytest.approx(exact.pvalue)
        assert line.test == "permutation"
        assert differences.all(), "where rows differ in nothing, the interval is wider than Student's"
        interval = scipy.stats.ttest_1samp(differences, 0).confidence_interval()
        assert (line.low, line.high) == pytest.approx((interval.low, interval.high))
        assert (line.n, line.pairs) == (MEANINGS, MEANINGS)
    of_meaning = [sum(second[f"{m}-{code}"] - first[f"{m}-{code}"] for code in LANGUAGES) for m in range(MEANINGS)]
    exact = scipy.stats.permutation_test((of_meaning,), np.sum, permutation_type="samples", n_resamples=np.inf, vectorized=True)
    assert found["all"].p == pytest.approx(exact.pvalue)
    assert (found["all"].p_holm, found["all"].family) == (found["all"].p, 1)
    assert (found["all"].n, found["all"].pairs) == (MEANINGS * len(LANGUAGES), MEANINGS)
    family = [line.p for line in comparison.lines]
    assert [line.p_holm for line in comparison.lines] == pytest.approx(multipletests(family, method="holm")[1].tolist())
    assert {line.family for line in comparison.lines} == {len(LANGUAGES)}


def test_inequality_is_that_of_the_true_means_and_the_published_spread_only_describes(two: tuple[Run, Run]) -> None:
    found = lines(only(compare(two, QUICK), "clip_score.clip_score"))
    means = [[found[code].first for code in LANGUAGES], [found[code].second for code in LANGUAGES]]
    assert found["std"].difference == pytest.approx(np.std(means[1]) - np.std(means[0]))
    assert (found["std"].low, found["std"].p, found["std"].verdict) == (None, None, None)
    assert found["worst"].difference == pytest.approx(min(means[1]) - min(means[0]))
    assert found["spread"].first <= found["std"].first
    assert found["spread"].second <= found["std"].second
    assert found["spread"].low < found["spread"].difference < found["spread"].high
    assert 0 < found["spread"].p <= 1


def test_a_noisier_run_is_not_more_unequal_and_a_more_unequal_one_is_found() -> None:
    noisier = shown_of(0.0, 100)
    assert noisier["spread"].count(1) <= 5
    assert noisier["worst"].count(-1) <= 5
    unequal = shown_of(0.12, 20)
    assert unequal["spread"] == [1] * 20


def test_a_p_value_is_of_the_interval_turned_round() -> None:
    values = np.random.default_rng(0).normal(0.3, 1, 40)
    test = scipy.stats.ttest_1samp(values, 0)
    p = inversion_p(lambda level: tuple(map(float, test.confidence_interval(level))))
    assert p == pytest.approx(test.pvalue, rel=0.01)
    assert inversion_p(lambda level: (-1.0, 1.0)) == 1.0


@pytest.mark.parametrize("n", [3, 12, 13, 200])
def test_sign_flips_are_those_of_scipy(n: int) -> None:
    differences = np.random.default_rng(n).normal(0.15, 1, n)
    theirs = scipy.stats.permutation_test(
        (differences,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=9999, vectorized=True, rng=3
    ).pvalue
    assert sign_flip_p(differences) == pytest.approx(theirs, abs=1e-12 if 2**n <= 9999 else 0.015)
    assert sign_flip_p(differences, seed=1) == sign_flip_p(differences, seed=1)


def test_sign_flips_of_differences_that_tie() -> None:
    # 0.1 + 0.2 − 0.3 is not 0 in floating point; the observed sum must still count as one of the largest.
    assert sign_flip_p(np.array([0.1, 0.2, 0.3])) == 0.25
    assert sign_flip_p(np.array([0.1, 0.2, -0.3])) == 1.0
    assert sign_flip_p(np.full(50, 0.1)) == 1 / 10_000


def test_zero_and_one_take_mcnemar_where_a_meaning_has_one_row(tmp_path: Path) -> None:
    first = a_run(tmp_path / "first", guard__probabilities=lambda rng: [0.9 if rng.random() < 0.8 else 0.1])
    second = a_run(tmp_path / "second", guard__probabilities=lambda rng: [0.1, 0.2])
    comparison = only(compare([first, second], QUICK), "toxicity_rejection.rejection_rate")
    heads = values(first, "guard_probabilities")
    for line in comparison.lines:
        toxic = sum(max(heads[f"{meaning}-{line.group['language']}"]) > 0.5 for meaning in range(MEANINGS))
        assert line.test == "mcnemar"
        assert line.difference == pytest.approx(toxic / MEANINGS)
        assert line.p == pytest.approx(scipy.stats.binomtest(0, toxic).pvalue)
    assert lines(comparison)["all"].test == "permutation"


# Which rows


def test_missing_rows_are_counted_and_in_no_mean(tmp_path: Path) -> None:
    first = a_run(tmp_path / "first", rows=plain_rows(range(0, 10)), clip__similarity=lambda rng: 0.25)
    gone = {"2-en", "3-en", "4-hi"}
    rows = plain_rows(range(2, 12))
    random.Random(0).shuffle(rows)
    kept = iter(row["prompt_id"] for row in rows)
    second = a_run(tmp_path / "second", rows=rows, clip__similarity=lambda rng: None if next(kept) in gone else 0.75)
    comparison = only(compare([first, second], QUICK), "clip_score.clip_score")
    assert (comparison.only_first, comparison.only_second) == (6, 6)
    found = lines(comparison)
    assert [(found[code].n, found[code].missing_second) for code in LANGUAGES] == [(6, 2), (7, 1), (8, 0)]
    assert (found["all"].n, found["all"].missing_first, found["all"].missing_second) == (21, 0, 3)
    assert found["all"].difference == 0.5
    turned = lines(only(compare([second, first], QUICK), "clip_score.clip_score"))
    assert turned["all"].difference == -0.5
    assert turned["all"].missing_first == 3


def test_a_group_without_a_score_has_none(tmp_path: Path) -> None:
    first = a_run(tmp_path / "first", clip__similarity=lambda rng: 0.25)
    rows = plain_rows()
    languages = iter(row["language"] for row in rows)
    second = a_run(tmp_path / "second", rows=rows, clip__similarity=lambda rng: None if next(languages) == "hi" else 0.5)
    line = lines(only(compare([first, second], QUICK), "clip_score.clip_score"))["hi"]
    assert (line.first, line.second, line.difference, line.p, line.p_holm, line.n, line.missing_second) == (None,) * 5 + (0, MEANINGS)
    found = lines(only(compare([first, second], QUICK), "clip_score.clip_score"))
    assert (line.verdict.kind, found["ar"].verdict.kind) == ("not measured", "differs")
    for total in ("all", "spread", "worst"):
        assert found[total].covers == "2 of 3 languages; Hindi is missing from second"
        assert found[total].verdict.kind == "not measured"


def test_meanings_can_be_compared_where_the_words_differ(tmp_path: Path) -> None:
    first = a_run(tmp_path / "first", clip__similarity=lambda rng: 0.25)
    second = a_run(tmp_path / "second", rows=plain_rows(prefix="typo-"), clip__similarity=lambda rng: 0.5)
    with pytest.raises(InputError, match=r"no row in common.*--on pair"):
        compare([first, second], QUICK)
    found = compare([first, second], CompareSettings(on="pair"))
    assert lines(only(found, "clip_score.clip_score"))["all"].difference == 0.25
    twice = a_run(tmp_path / "twice", rows=plain_rows() + plain_rows(prefix="typo-"), clip__similarity=lambda rng: 0.5)
    with pytest.raises(InputError, match="two rows with the same pair_id"):
        compare([twice, first], CompareSettings(on="pair"))
    with pytest.raises(InputError, match="have no row in common"):
        compare([first, a_run(tmp_path / "far", rows=plain_rows(range(50, 60)), clip__similarity=lambda rng: 0.5)], QUICK)


# Verdicts


def test_verdicts_are_the_four_by_the_margin_that_is_stated(two: tuple[Run, Run], tmp_path: Path) -> None:
    found = lines(only(compare(two, QUICK), "clip_score.clip_score"))
    assert (found["all"].verdict.kind, found["all"].verdict.direction, found["all"].verdict.margin) == ("differs", "more", 0.05)
    near = a_run(tmp_path / "near", clip__similarity=lambda rng: 0.3 + rng.uniform(-0.002, 0.002))
    same = a_run(tmp_path / "same", clip__similarity=lambda rng: 0.3 + rng.uniform(-0.002, 0.002))
    kinds = {}
    for margin in (None, 0.01, 0.0001):
        told = lines(only(compare([near, same], replace(QUICK, margin=margin)), "clip_score.clip_score"))
        kinds[margin] = {told[code].verdict.kind for code in LANGUAGES}
    assert kinds == {None: {"equivalent"}, 0.01: {"equivalent"}, 0.0001: {"undecided"}}
    for wrong in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="--margin: expected a number above 0"):
            compare(two, replace(QUICK, margin=wrong))


def test_all_pairs_are_corrected_together(two: tuple[Run, Run], tmp_path: Path) -> None:
    runs = [*two, a_run(tmp_path / "third", clip__similarity=cosine(0.25, 0.65))]
    found = compare(runs, replace(QUICK, all_pairs=True))
    assert found.pairs == 3
    for part in ("lines", "all", "spread", "worst"):
        family = [line for each in found.comparisons for line in (each.lines if part == "lines" else [lines(each)[part]])]
        assert {line.family for line in family} == {len(family)} == {9 if part == "lines" else 3}
        theirs = multipletests([line.p for line in family], method="holm")[1]
        assert [line.p_holm for line in family] == pytest.approx(theirs.tolist())


# Runs over unequal sets


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("six")
    return [a_run(folder / f"run-{n}", clip__similarity=cosine(0.1 + 0.05 * n, 0.5 + 0.05 * n)) for n in range(6)]


def without(run: Run, folder: Path, codes: Collection[str], dimension: bool = False) -> Run:
    """The same run without some languages; each third row of another dimension, or of none."""
    target = folder / run.name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(run.url, target)
    made = Run.open(str(target))
    table = made.scored().read()
    rows = [row for row in table.to_pylist() if row["language"] not in codes and not (dimension and int(row["pair_id"]) % 3 == 0)]
    made.scored().replace(pa.Table.from_pylist(rows, schema=table.schema))
    return Run.open(str(target))


@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(st.sets(st.sampled_from(LANGUAGES), max_size=2), st.booleans()), min_size=6, max_size=6))
def test_six_runs_over_any_languages_and_dimensions_are_compared_and_none_gains(
    six: list[Run], tmp_path_factory: pytest.TempPathFactory, left_out: list[tuple[set[str], bool]]
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    runs = [without(run, folder, *part) for run, part in zip(six, left_out, strict=True)]
    has = {run.name: set(LANGUAGES) - part[0] for run, part in zip(runs, left_out, strict=True)}
    assume(any(has["run-0"] & of for name, of in has.items() if name != "run-0"))
    sharing = [run for run in runs[1:] if has[run.name] & has["run-0"]]
    for comparison in compare([runs[0], *sharing], CompareSettings(n_permutations=99)).comparisons:
        first, second = has[comparison.first], has[comparison.second]
        told = lines(comparison)
        assert set(told) >= first | second
        for code in first ^ second:
            assert (told[code].first, told[code].second, told[code].verdict.kind) == (None, None, "not measured")
        for line in comparison.summary:
            assert bool(line.covers) == (first != second)
            if line.covers and line.verdict is not None:
                assert (line.verdict.kind, line.verdict.n_missing > 0) == ("not measured", True)


def test_too_few_meanings_are_said_to_be(tmp_path: Path) -> None:
    first = a_run(tmp_path / "first", rows=plain_rows(range(4)), clip__similarity=lambda rng: 0.25)
    second = a_run(tmp_path / "second", rows=plain_rows(range(4)), clip__similarity=lambda rng: 0.5)
    found = compare([first, second], QUICK)
    assert any("at most 4 meanings in each of 3 groups, no Holm p can be below 0.38" in note for note in found.notes)
    assert [line.p_holm for line in found.comparisons[0].lines] == pytest.approx([0.375] * 3)
    spread = lines(found.comparisons[0])["spread"]
    assert (spread.difference, spread.p, spread.verdict.kind) == (None, None, "undecided")


# What is refused


def test_unequal_signatures_are_refused_by_the_key(tmp_path: Path, two: tuple[Run, Run]) -> None:
    other = a_run(tmp_path / "other", clip__similarity=cosine(0, 1))
    changed = [replace(each, signature=each.signature.having(pretrained="big")) for each in other.scores()]
    other.write_scores(changed)
    with pytest.raises(InputError, match=r"clip_score\.clip_score: .* differ in pretrained: 'none' and 'big'"):
        compare([two[0], other], QUICK)


def test_a_run_of_version_0_1_is_compared_with_one_of_today(tmp_path: Path, two: tuple[Run, Run]) -> None:
    old = a_run(tmp_path / "old", clip__similarity=cosine(0, 1))
    entry = {
        "metric": "clip_score.clip_score", "subset": "lingt2i_content", "group": "all", "value": 0.5, "n": 36, "n_missing": 0,
        "ci_low": None, "ci_high": None, "higher_is_better": True, "unit": "fraction",
        "signature": "clip_score|model:tiny|pretrained:none|scale:cosine|encoder:clip,model=tiny,pretrained=none,v=1|v:1.0",
    }  # fmt: skip
    old.folder.write(json.dumps([entry]).encode(), "scores.json")
    found = only(compare([Run.open(old.url), two[0]], QUICK), "clip_score.clip_score")
    assert found.signature == found.other_signature
    assert lines(found)["hi"].n == MEANINGS


def test_what_cannot_be_compared_is_refused_or_noted(tmp_path: Path, two: tuple[Run, Run]) -> None:
    with pytest.raises(InputError, match="one run only"):
        compare(two[:1], QUICK)
    with pytest.raises(InputError, match="confidence_level"):
        compare(two, CompareSettings(confidence_level=1.5))
    both = a_run(tmp_path / "both", clip__similarity=cosine(0, 1), reader__text=lambda rng: "x")
    found = compare([two[0], both], QUICK)
    assert [comparison.spec.name for comparison in found.comparisons] == ["clip_score.clip_score"]
    assert "text_rendering_precision.precision on lingt2i_content by reader is in both only, and not compared" in found.notes
    people = a_run(tmp_path / "people", people__people=lambda rng: [{"race": "White", "gender": "Male", "age": "Young"}])
    with pytest.raises(InputError, match="share no score that single rows have"):
        compare([people, people], QUICK)
    rows = [{**row, "text_sha256": "other"} for row in plain_rows()]
    with pytest.raises(InputError, match="different texts under the same prompt_id"):
        compare([two[0], a_run(tmp_path / "texts", rows=rows, clip__similarity=cosine(0, 1))], QUICK)
    bare = Run(str(tmp_path / "bare"), two[0].record)
    bare.write_record()
    with pytest.raises(InputError, match="is not scored; score it first"):
        compare([two[0], bare], QUICK)


# The command


def test_command_writes_tables_json_and_a_page(tmp_path: Path, two: tuple[Run, Run]) -> None:
    third = a_run(tmp_path / "<b>third", clip__similarity=cosine(0.1, 0.3))
    runs = [two[0].url, two[1].url, third.url]
    done = command("compare", *runs, "--json", tmp_path / "c.json", "--out", tmp_path / "c.html", "--all-pairs")
    assert done.stdout.count("clip_score.clip_score on lingt2i_content") == 3
    assert "▼ worse, by" in " ".join(done.stdout.split())
    told = json.loads((tmp_path / "c.json").read_text())
    assert [(each["first"], each["second"]) for each in told["comparisons"]] == [
        ("first", "second"), ("first", "<b>third"), ("second", "<b>third"),
    ]  # fmt: skip
    assert told["comparisons"][0]["lines"][0]["verdict"].keys() >= {"kind", "words", "margin", "smallest", "n_missing", "turned_by"}
    html = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<b>third" not in html
    told_first = re.findall(r"<li><bdi>(.*?)</bdi>", html)
    assert any(each.startswith("All rows: better, by 0.") for each in told_first)
    assert any(each.startswith("Inequality of languages, noise taken out: ") for each in told_first)
    assert "no difference shown" not in html
    assert str(tmp_path) not in html
    again = command("compare", *runs, "--json", tmp_path / "d.json", "--all-pairs")
    assert (tmp_path / "d.json").read_bytes() == (tmp_path / "c.json").read_bytes()
    assert again.returncode == 0
    assert len(json.loads((tmp_path / "d.json").read_text())["comparisons"]) == 3
    assert "expected prompt or pair" in error_of("compare", *runs, "--on", "image")
    assert "is not a run" in error_of("compare", *runs, tmp_path / "nowhere")


def test_command_compares_audits_by_their_shifts(prompts: Path, tmp_path: Path, two: tuple[Run, Run]) -> None:
    runs = []
    for threshold in (0.5, 0.2):
        run = tmp_path / f"at-{threshold}"
        asked = ["--filter", "profanity-check", "--set", f"threshold={threshold}", "--prompts", prompts, "--config", "dialect"]
        command("audit-filter", *asked, "--out", run)
        command("score", run, "--resamples", 50)
        runs.append(run)
    command("compare", *runs, "--json", tmp_path / "c.json", "--margin", 10, "--permutations", 999)
    told = json.loads((tmp_path / "c.json").read_text())
    assert [(each["metric"], each["key"]) for each in told["comparisons"]] == [
        ("dialect_penalty", "delta_tpr_pp"), ("dialect_penalty", "delta_fpr_pp"),
    ]  # fmt: skip
    recorded = []
    for run in runs:
        recorded.append({(each.metric, each.key, each.group): each.value for each in Run.open(str(run)).scores()})
    for comparison in told["comparisons"]:
        assert comparison["kind"] == "shift"
        assert comparison["signature"] != comparison["other_signature"]
        assert len(comparison["lines"]) == 5
        for line in comparison["lines"]:
            first, second = (each[comparison["metric"], comparison["key"], Group(line["group"])] for each in recorded)
            assert line["first"] == pytest.approx(first)
            assert line["second"] == pytest.approx(second)
            assert line["difference"] == pytest.approx(second - first)
            assert line["low"] <= line["difference"] <= line["high"]
            assert line["verdict"]["margin"] == 10.0
            assert 0 < line["p"] <= line["p_holm"] <= 1
    assert "runs of different kinds" in error_of("compare", runs[0], two[0].url)


# The page


@pytest.fixture(scope="module")
def page(two: tuple[Run, Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("page") / "compare.html"
    command("compare", two[0].url, two[1].url, "--out", file)
    return file


def test_browser_shows_the_page_wide_narrow_light_and_dark(page: Path) -> None:
    with chromium() as browser:
        for width in (390, 1280):
            for scheme in ("light", "dark"):
                show(browser, page, width=width, scheme=scheme)
                assert faults(browser) == []
                measured, low = low_contrast(browser)
                assert measured > 60
                assert low == []
        places = browser.execute_script(
            "return Array.from(document.querySelectorAll('.bar'), b => "
            "['.zero', '.at'].map(s => b.querySelector(s).getBoundingClientRect()).map(r => r.left + r.width / 2))"
        )
        differences = browser.execute_script(
            "return Array.from(document.querySelectorAll('.measure .value'), e => e.textContent.replace('−', '-'))"
        )
        assert len(places) == len(differences) == len(LANGUAGES) + 4
        for (zero, at), told in zip(places, differences, strict=True):
            assert (at > zero - 1) if float(told) >= 0 else (at < zero + 1)
