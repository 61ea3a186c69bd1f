"""The suite runner: every kind of observation through its metric, against the metric's own core."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import command, error_of

from t2i_parity.generate.run import Run, image_features
from t2i_parity.generate.score import ScoreSettings, score
from t2i_parity.generate.specs import specs
from t2i_parity.metrics.bias_entropy import core as bias_entropy
from t2i_parity.metrics.scores import ALL, Group, Score
from t2i_parity.metrics.toxicity_rejection import core as toxicity_rejection
from t2i_parity.metrics.trigscore import core as trigscore

SETTINGS = ScoreSettings(tokenizer="tekken", n_resamples=100)
LANGUAGES = ("en", "hi")
DIMENSIONS = ("IQ-R", "R-T")
N = 8


def a_run(folder: Path) -> Run:
    """32 image rows, eight meanings in two dimensions and two languages, without pictures."""
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": "m"}}, "packages": {}})
    run.write_record()
    schema = image_features().arrow_schema
    rows = []
    for dimension in DIMENSIONS:
        for meaning in range(N):
            for language in LANGUAGES:
                row = dict.fromkeys(schema.names)
                identity = f"{dimension}-{meaning}-{language}"
                row |= {
                    "image_id": identity,
                    "prompt_id": identity,
                    "pair_id": f"{dimension}-{meaning}",
                    "prompt": "a prompt",
                    "language": language,
                    "subset": "lingt2i_content",
                    "dimension": dimension,
                    "status": "ok",
                }
                rows.append(row)
    run.images().replace(pa.Table.from_pylist(rows, schema=schema))
    return run


def observe(run: Run, judge: str, **columns: list[Any]) -> None:
    ids = run.images().read(["image_id"])["image_id"].to_pylist()
    run.observations(judge).replace(
        pa.table(
            {
                "image_id": ids,
                "judge": [f"{judge}|model:tiny|pretrained:none|v:1"] * len(ids),
                **columns,
                "status": ["ok"] * len(ids),
                "reason": pa.nulls(len(ids), pa.string()),
            }
        )
    )


def by_group(run: Run, name: str) -> dict[Group, Score]:
    return {score.group: score for score in run.scores() if score.spec.name == name}


def rows_of(run: Run) -> list[dict[str, Any]]:
    return run.images().read(["dimension", "language", "pair_id"]).to_pylist()


def test_ratings_become_trigscores(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    rows = rows_of(run)
    tokens = [["good", "bad"] if row["language"] == "en" else ["bad", "terrible"] for row in rows]
    logprobs = [[-0.1 * (number % 5), -1.0] for number in range(len(rows))]
    tokens[3], logprobs[3] = ["I"], [-0.2]
    observe(run, "rater", rating_tokens=tokens, rating_logprobs=logprobs)
    score(run, SETTINGS)
    found = by_group(run, "trigscore.trigscore")
    expected = trigscore.per_row(tokens, logprobs)["score"]
    chosen = [number for number, row in enumerate(rows) if row["language"] == "hi" and row["dimension"] == "IQ-R"]
    cell = found[Group(dimension="IQ-R", language="hi")]
    kept = [expected[number] for number in chosen if number != 3]
    assert (cell.n, cell.n_missing) == (N - 1, 1)
    assert cell.value == pytest.approx(sum(kept) / len(kept))
    assert cell.interval.low <= cell.value <= cell.interval.high
    assert found[Group(language="en")].value > found[Group(language="hi")].value
    assert "|rater:{rater|model:tiny|pretrained:none|v:1}|" in str(cell.signature)
    gap = by_group(run, "cross_lingual_gap.worst")
    assert list(gap) == [Group(language="hi")]
    scored = run.scored().read().to_pylist()
    assert scored[3]["rater_trigscore"] is None
    assert scored[0]["rater_trigscore"] == pytest.approx(expected[0])


def test_several_judges_and_metrics_in_one_pass(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    rows = rows_of(run)
    heads = [[0.1, 0.9] if row["dimension"] == "R-T" and row["language"] == "en" else [0.2, 0.3] for row in rows]
    observe(run, "five-heads", probabilities=heads)
    similarity = [0.3 if row["language"] == "en" else 0.2 for row in rows]
    observe(run, "clip", similarity=[None, *similarity[1:]])
    people = [[{"race": "Asian", "gender": "Male", "age": "Adult"}] * 2 if row["language"] == "hi" else [] for row in rows]
    observe(run, "annotator", people=pa.array(people, pa.list_(pa.struct([(key, pa.string()) for key in ("race", "gender", "age")]))))
    score(run, SETTINGS)

    toxicity = by_group(run, "toxicity_rejection.rejection_rate")
    assert toxicity[Group(dimension="R-T", language="en")].value == 0
    assert toxicity[Group(dimension="R-T", language="hi")].value == 1
    whole = toxicity_rejection.compute([max(each) for each in heads], n_resamples=0)
    assert toxicity[ALL].value == whole["rejection_rate"]

    clip = by_group(run, "clip_score.clip_score")
    assert clip[Group(language="en")].value == pytest.approx(0.3)
    assert clip[ALL].n_missing == 1
    assert "|model:tiny|pretrained:none|" in str(clip[ALL].signature)

    bias = by_group(run, "bias_entropy.bias_score")
    assert bias[Group(language="hi")].value == 0, "everybody alike"
    assert bias[Group(language="hi")].n == 2 * 2 * N
    assert (bias[Group(language="en")].value, bias[Group(language="en")].n, bias[Group(language="en")].n_missing) == (None, 0, 2 * N)
    one = bias_entropy.compute(["Asian"], ["Male"], ["Adult"], n_resamples=0)
    assert one["bias_score"] == 0

    again = command("score", run.url, "--resamples", 100)
    assert "toxicity_rejection on lingt2i_content" in again.stdout
    assert "bias_entropy on lingt2i_content" in again.stdout


def test_the_order_of_rows_does_not_matter(tmp_path: Path) -> None:
    scores = []
    for name, order in (("there", slice(None)), ("back", slice(None, None, -1))):
        run = a_run(tmp_path / name)
        table = run.images().read()
        run.images().replace(table.take(list(range(len(table)))[order]))
        ids = run.images().read(["image_id"])["image_id"].to_pylist()
        observe(run, "clip", similarity=[len(identity) / 100 + int(identity.split("-")[2]) / 10 for identity in ids])
        score(run, SETTINGS)
        scores.append({each.identity: each for each in run.scores()})
    assert scores[0] == scores[1]


def test_observations_of_an_unknown_kind_are_told(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    observe(run, "oracle", vibes=["good"] * len(rows_of(run)))
    message = error_of("score", run.url)
    assert "oracle has the columns vibes" in message
    assert "rating_tokens and rating_logprobs" in message


def test_a_reader_over_prompts_without_texts_is_told(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    observe(run, "tesseract", text=["x"] * len(rows_of(run)))
    assert "has no render_text to compare what was read with" in error_of("score", run.url, "--tokenizer", "tekken")


def test_observations_under_two_settings_are_refused(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    observe(run, "clip", similarity=[0.1] * len(rows_of(run)))
    table = run.observations("clip").read()
    judges = ["clip|v:2", *table["judge"].to_pylist()[1:]]
    run.observations("clip").replace(table.set_column(1, "judge", pa.array(judges)))
    assert "were made under 2 settings" in error_of("score", run.url)


def test_observations_that_no_metric_is_made_from_are_kept_and_named(tmp_path: Path) -> None:
    run = a_run(tmp_path / "run")
    observe(run, "clip", similarity=[0.1] * len(rows_of(run)))
    observe(run, "oracle", vibes=["good"] * len(rows_of(run)))
    done = command("score", run.url, "--resamples", 0)
    assert f"{run.url}: observations/oracle are kept; no metric is made from vibes" in done.stdout.replace("\n", " ").replace("  ", " ")
    assert Run.open(run.url).record["scoring"]["unused"] == {"oracle": ["vibes"]}
    assert {score.metric for score in run.scores()} == {"clip_score", "cross_lingual_gap"}
    assert "oracle" in run.judges()


def test_metrics_are_told_apart_by_their_columns() -> None:
    columns = [set(spec.columns) for spec in specs().values() if spec.compute is not None]
    assert all(not (a <= b) for number, a in enumerate(columns) for other, b in enumerate(columns) if number != other)
