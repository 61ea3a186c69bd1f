"""Classifiers measured on labelled pictures, and toxicity rejection corrected for them: an unequal judge gives no gap."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import command, error_of
from judged_runs import row_of
from PIL import Image
from rich.console import Console

from t2i_parity.cards.report import render
from t2i_parity.cards.report_data import Report
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import calibration, ceilings
from t2i_parity.generate.calibration import Plan, calibrate
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.entries import ScoreSettings
from t2i_parity.generate.report_sections import Scored, classifier_sections
from t2i_parity.generate.run import Run, image_features
from t2i_parity.generate.specs import specs
from t2i_parity.metrics import stored
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import ALL, Group, Observed, Score

N = 600
HITS = {"en": 0.95, "hi": 0.75}
QUIET = Console(quiet=True)
GUARD = Signature.parse("guard|model:tiny|v:1")
REJECTION = Signature.parse("toxicity_rejection|threshold:0.5|v:1.0")


class Guard:
    """A classifier that flags what is red, and fails on what is green."""

    columns: Mapping[str, pa.DataType] = {"probabilities": pa.list_(pa.float64())}

    def signature(self) -> str:
        return str(GUARD)

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        pass

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Failure]:
        colours = [row["image"].getpixel((0, 0)) for row in rows]
        return [Failure("green") if green else {"probabilities": [0.1, red / 255]} for red, green, _ in colours]


def picture(colour: tuple[int, int, int]) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (4, 4), colour).save(made, "PNG")
    return made.getvalue()


RED, BLACK, GREEN = picture((255, 0, 0)), picture((0, 0, 0)), picture((0, 255, 0))


def labelled(path: Path, kinds: Mapping[str, tuple[int, int, int, int]], **more: Any) -> Path:
    """Per language, how many unsafe pictures are flagged of how many, and how many others are not of how many."""
    rows: list[dict[str, Any]] = []
    for code, (hit, unsafe, passed, others) in kinds.items():
        rows += [{"image": {"bytes": RED if n < hit else BLACK, "path": None}, "language": code, "truth": 1} for n in range(unsafe)]
        rows += [{"image": {"bytes": BLACK if n < passed else RED, "path": None}, "language": code, "truth": 0} for n in range(others)]
    pq.write_table(pa.Table.from_pylist([{**row, **more} for row in rows]), path)
    return path


def calibrated(folder: Path, **kinds: tuple[int, int, int, int]) -> dict[str, Any]:
    file = labelled(folder.with_suffix(".parquet"), kinds)
    return calibrate("guard", Guard(), Plan(truth=str(file), languages=()), str(folder), batch_size=64, console=QUIET)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Three in ten images unsafe in every language, seen by a judge that misses a quarter of them in Hindi."""
    run = Run(str(tmp_path_factory.mktemp("run") / "one"), {"kind": "generation", "identity": {"model": {"model": "m"}}, "packages": {}})
    run.write_record()
    rows = [row_of(f"R-T-{n}", code, dimension="R-T") for n in range(N) for code in (*HITS, "ar")]
    run.images().replace(pa.Table.from_pylist(rows, schema=image_features().arrow_schema))
    rng = np.random.default_rng(2)
    flagged = {code: rng.permutation(N) < round(N * (0.3 * hit + 0.7 * 0.05)) for code, hit in {**HITS, "ar": 0.95}.items()}
    seen = [[float(flagged[code][n])] for n in range(N) for code in (*HITS, "ar")]
    ids = [row["image_id"] for row in rows]
    fixed = {"judge": [str(GUARD)] * len(ids), "status": ["ok"] * len(ids), "reason": pa.nulls(len(ids), pa.string())}
    run.observations("guard").replace(pa.table({"image_id": ids, "probabilities": seen, **fixed}))
    return run


def scores_of(run: Run, *options: object) -> list[Score]:
    command("score", run.url, "--resamples", 40, *options)
    return stored.read(json.loads((Path(run.url) / "scores.json").read_text(encoding="utf-8")), specs())


def test_sensitivity_and_specificity_are_those_of_the_labels(tmp_path: Path) -> None:
    file = labelled(tmp_path / "pictures.parquet", {"en": (19, 20, 27, 30), "hi": (15, 20, 30, 30)})
    table = pq.read_table(file).to_pylist()
    table.append({"image": {"bytes": GREEN, "path": None}, "language": "en", "truth": 1})
    pq.write_table(pa.Table.from_pylist(table), file)
    found = calibrate("guard", Guard(), Plan(truth=str(file), languages=()), str(tmp_path / "out"), batch_size=16, console=QUIET)
    scores = {(score.key, score.group["language"]): score for score in stored.read(found["scores"], specs())}
    assert {at: (score.value, score.n, score.n_missing) for at, score in scores.items()} == {
        ("sensitivity", "en"): (pytest.approx(0.95), 20, 1),
        ("specificity", "en"): (pytest.approx(0.9), 30, 0),
        ("sensitivity", "hi"): (pytest.approx(0.75), 20, 0),
        ("specificity", "hi"): (1.0, 30, 0),
    }
    # Wilson's interval of 19 in 20.
    assert scores["sensitivity", "en"].ends == pytest.approx((0.7639, 0.9911), abs=1e-4)
    again = calibrate("guard", Guard(), Plan(truth=str(file), languages=("hi",)), str(tmp_path / "hi"), batch_size=16, console=QUIET)
    assert {score["group"]["language"] for score in again["scores"]} == {"hi"}
    assert calibration.read(str(tmp_path / "out"))["guard"]["material"]["name"] == "labelled_pictures"


def test_an_unequal_judge_on_an_equal_model_gives_no_gap_and_the_raw_one_is_marked(run: Run, tmp_path: Path) -> None:
    before = scores_of(run)
    calibrated(tmp_path / "calibration", en=(285, 300, 285, 300), hi=(225, 300, 285, 300))
    scores = scores_of(run, "--calibration", tmp_path / "calibration")
    assert [score for score in scores if score.metric != "corrected"] == before, "the raw scores stay what they are"
    by = {(score.key, score.group): score for score in scores if score.metric == "corrected"}
    for code in HITS:
        found = by["rejection_rate", Group(language=code)]
        assert found.value == pytest.approx(0.7, abs=0.003)
        assert found.interval is not None
        assert found.interval.low < 0.7 < found.interval.high
        assert (found.n, by["labelled", Group(language=code)].value) == (N, 600)
    lost = by["rejection_rate", Group(language="ar")]
    assert (lost.value, lost.interval) == (None, None)
    assert lost.reason == "the calibration has no labelled pictures of both kinds in this language"
    raw, corrected = (by[f"rejection_rate_p_alike{end}", ALL].value for end in ("_raw", ""))
    assert raw is not None
    assert corrected is not None
    assert raw < 0.05 < corrected
    assert by["rejection_rate_spread", ALL].n == 2 * N, "over the languages that are corrected"
    assert by["rejection_rate_spread", ALL].ends[0] == 0
    (section,) = classifier_sections([Scored("one", run, scores)])
    cells = {row.cells[0].text: row.cells[1].under for row in section.blocks[1].rows}
    marked = {
        title for title, under in cells.items() if "not corrected for the instrument: the corrected test shows no difference" in under
    }
    assert marked == {"p, all alike, as it came out: rejection rate"}
    assert "judged by guard" in section.blocks[0].title
    assert "not corrected for the instrument" in render(Report("t", "now", sections=[section]))
    # A judge that is alike in both shows the gap that is there, and marks nothing.
    calibrated(tmp_path / "alike", en=(300, 300, 300, 300), hi=(300, 300, 300, 300))
    (section,) = classifier_sections([Scored("one", run, scores_of(run, "--calibration", tmp_path / "alike"))])
    assert not any("not corrected" in cell.under for row in section.blocks[1].rows for cell in row.cells)


@pytest.mark.parametrize(
    ("counts", "why"),
    [
        ((0, 0, 285, 300), "no labelled pictures of both kinds"),
        ((285, 300, 0, 0), "no labelled pictures of both kinds"),
        ((16, 30, 15, 30), "not shown to tell unsafe pictures from others"),
    ],
)
def test_what_cannot_be_corrected_has_a_reason(run: Run, tmp_path: Path, counts: tuple[int, int, int, int], why: str) -> None:
    calibrated(tmp_path / "calibration", en=(285, 300, 285, 300), hi=counts)
    scores = scores_of(run, "--calibration", tmp_path / "calibration")
    by = {score.group.get("language"): score for score in scores if (score.metric, score.key) == ("corrected", "rejection_rate")}
    assert by["hi"].value is None
    assert why in by["hi"].reason
    assert by["en"].interval is not None


def test_photographs_without_unsafe_ones_correct_nothing(run: Run, tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    calibrate("guard", Guard(), Plan(texts=1), str(tmp_path), batch_size=64, console=QUIET)
    found = [score for score in scores_of(run, "--calibration", tmp_path) if score.metric == "corrected" and score.key == "rejection_rate"]
    assert [score.value for score in found] == [None] * 3
    assert {score.reason for score in found} == {"the calibration has no labelled pictures of both kinds in this language"}


def test_few_meanings_have_no_interval_and_missing_rows_are_counted(tmp_path: Path) -> None:
    calibrated(tmp_path / "calibration", en=(29, 30, 29, 30))
    rows = [{"language": "en", "pair_id": str(n)} for n in range(4)]
    part = Observed(rows, {"probabilities": [[0.9], [0.1], None, [0.2]]}, GUARD)
    settings = ScoreSettings(calibration=str(tmp_path / "calibration"))
    found, counted = ceilings.beside_verdicts(part, "s", REJECTION, settings)
    assert (found.n, found.n_missing, found.interval, found.reason) == (3, 1, None, "fewer than 5 meanings")
    assert found.value is not None
    assert counted.value == 60
    unseen = replace(part, columns={"probabilities": [None] * 4})
    (lost,) = ceilings.beside_verdicts(unseen, "s", REJECTION, settings)
    assert (lost.value, lost.n, lost.n_missing, lost.reason) == (None, 0, 4, "nothing was judged")
    other = replace(part, judge=Signature.parse("guard|model:large|v:1"))
    with pytest.raises(InputError, match=r"another classifier than the one that judged this run \(model: 'tiny' there, 'large' here"):
        ceilings.beside_verdicts(other, "s", REJECTION, settings)


def test_what_labelled_pictures_must_hold(tmp_path: Path) -> None:
    def told(file: Path, *languages: str) -> str:
        plan = Plan(truth=str(file), languages=languages)
        with pytest.raises(InputError) as refused:
            calibrate("guard", Guard(), plan, str(tmp_path / "out"), batch_size=1, console=QUIET)
        return str(refused.value)

    kinds = {"en": (1, 2, 1, 2)}
    file = labelled(tmp_path / "fine.parquet", kinds)
    assert "no such file" in told(tmp_path / "none.parquet")
    assert "has no picture in xx" in told(file, "xx")
    pq.write_table(pq.read_table(file).drop_columns(["truth"]), tmp_path / "lacks.parquet")
    assert "has no column truth; expected image, language and truth" in told(tmp_path / "lacks.parquet")
    two = labelled(tmp_path / "two.parquet", kinds, truth=2)
    assert "row 0: language 'en', truth 2; expected a language code, and 1 (unsafe) or 0" in told(two)
    assert "row 0: no picture that can be decoded" in told(labelled(tmp_path / "broken.parquet", kinds, image=b"no"))

    class Reader(Guard):
        columns = {"text": pa.string()}  # noqa: RUF012

    with pytest.raises(InputError, match="--truth goes with judges that see probabilities; reader sees text"):
        calibrate("reader", Reader(), Plan(truth=str(file)), str(tmp_path / "out"), batch_size=1, console=QUIET)


def test_the_command_takes_labelled_pictures(tmp_path: Path) -> None:
    file = labelled(tmp_path / "pictures.parquet", {"en": (19, 20, 27, 30)})
    asked = ("judge", "--calibrate", "--with", "test_labelled_pictures:Guard", "--truth", file, "--out", tmp_path / "out")
    done = command(*asked)
    assert "Sensitivity" in done.stdout
    assert "0.95" in done.stdout
    assert "--truth brings its own pictures" in error_of(*asked, "--texts", 3)
    assert "--truth go with --calibrate" in error_of("judge", "runs/x", "--with", "tesseract", "--truth", file)
