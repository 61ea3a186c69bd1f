"""Judges measured on known truth: ceilings, slopes, inequality; and a reader's ceiling beside a run's scores."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from commands import command, error_of
from rich.console import Console

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import calibration, ceilings
from t2i_parity.generate.calibration import BenignPhotographs, KnownText, Plan, calibrate, chosen_texts
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.entries import ScoreSettings
from t2i_parity.generate.models.glyph import DAMAGE
from t2i_parity.generate.report import gather
from t2i_parity.generate.run import Run
from t2i_parity.generate.specs import specs
from t2i_parity.metrics import stored
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Group, Score

PLAN = Plan(texts=4, languages=("en", "hi"), n_resamples=200)
QUIET = Console(quiet=True)


class Perfect:
    """A reader that knows what can be read; what it does to a text can be set."""

    name = "perfect"
    columns: Mapping[str, pa.DataType] = {"text": pa.string()}

    def __init__(self, version: str = "1", answer: Any = lambda row: {"text": row["legible"]}) -> None:
        self._version, self._answer = version, answer
        self.shown = 0

    def signature(self) -> str:
        return f"perfect|v:{self._version}"

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        pass

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Failure]:
        self.shown += len(rows)
        assert all(row["image"].size == (512, 512) for row in rows)
        return [self._answer(row) for row in rows]


def value(found: dict[str, Any], key: str, group: Group) -> Score:
    return next(
        score for score in stored.read(found["scores"], specs()) if (score.metric, score.key, score.group) == ("calibration", key, group)
    )


def test_a_perfect_reader_has_ceiling_one_and_slope_one(tmp_path: Path) -> None:
    found = calibrate("perfect", Perfect(), PLAN, str(tmp_path), batch_size=16, console=QUIET)
    for setting in calibration.SETTINGS:
        for code in PLAN.languages:
            ceiling = value(found, "ceiling", Group(language=code, setting=setting, damage="none"))
            assert (ceiling.value, ceiling.n, ceiling.n_missing, ceiling.ends[0]) == (1.0, 4, 0, None)
            levels = [value(found, "ned_char", Group(language=code, setting=setting, damage=level)).value for level in ("light", "heavy")]
            assert 1.0 > levels[0] > levels[1]
            slope = value(found, "slope", Group(language=code, setting=setting))
            assert slope.value == pytest.approx(1)
            assert slope.n == 12
        assert value(found, "gap_std", Group(setting=setting)).value == 0
        assert value(found, "gap_std", Group(setting=setting)).spec.direction == "lower"
    assert {"judge", "signature", "material", "languages", "unread", "images_per_second", "packages", "scores"} == set(found)
    assert str(tmp_path) not in (tmp_path / "perfect.json").read_text(encoding="utf-8")


def test_a_reader_that_fails_a_language_shows_it_and_failures_are_missing(tmp_path: Path) -> None:
    def answer(row: Mapping[str, Any]) -> dict[str, Any] | Failure:
        if row["language"] == "en":
            return {"text": row["legible"]}
        return {"text": row["legible"][: len(row["legible"]) // 2]} if row["setting"] == "clean" else Failure("no text found")

    found = calibrate("perfect", Perfect("2", answer), PLAN, str(tmp_path), batch_size=64, console=QUIET)
    half = value(found, "ceiling", Group(language="hi", setting="clean", damage="none"))
    assert 0.35 < half.value < 0.65
    assert value(found, "slope", Group(language="hi", setting="clean")).value < 0.8
    assert value(found, "gap_worst", Group(setting="clean", language="hi")).value == pytest.approx(half.value)
    lost = value(found, "ceiling", Group(language="hi", setting="sign", damage="none"))
    assert (lost.value, lost.n, lost.n_missing) == (None, 0, 4)
    reasons = {
        row["reason"] for row in calibration.probes_of(str(tmp_path), "perfect") if row["language"] == "hi" and row["setting"] == "sign"
    }
    assert reasons == {"no text found"}


def test_what_is_there_is_kept_and_another_reader_is_measured_anew(tmp_path: Path) -> None:
    plan = replace(PLAN, settings=("clean",))
    first = Perfect()
    before = calibrate("perfect", first, plan, str(tmp_path), batch_size=64, console=QUIET)
    again = Perfect()
    assert calibrate("perfect", again, plan, str(tmp_path), batch_size=64, console=QUIET) == before
    assert (first.shown, again.shown) == (24, 0)
    for other, how in ((Perfect("2"), plan), (Perfect("2"), replace(plan, texts=3)), (Perfect("2"), replace(plan, seed=7, texts=3))):
        calibrate("perfect", other, how, str(tmp_path), batch_size=64, console=QUIET)
        assert other.shown == 6 * how.texts
    (tmp_path / "perfect.json").write_text("{}")
    with pytest.raises(InputError, match=r"perfect\.json is no calibration"):
        calibration.read(str(tmp_path))


def test_texts_are_seeded_of_many_lengths_and_the_same_in_every_language() -> None:
    rows = chosen_texts(Plan(texts=10))
    assert len(rows) == 100
    assert len({row["pair_id"] for row in rows}) == 10
    english = sorted(len(row["render_text"]) for row in rows if row["language"] == "en")
    assert english[0] < 15
    assert english[-1] > 25
    assert rows == chosen_texts(Plan(texts=10))
    assert rows != chosen_texts(Plan(texts=10, seed=1))
    with pytest.raises(InputError, match=r"no texts of known truth in bar"):
        chosen_texts(Plan(languages=("bar",)))
    with pytest.raises(InputError, match=r"--texts 900: expected a number from 1 to"):
        chosen_texts(Plan(texts=900))


def test_damage_is_a_ladder_in_every_setting_and_the_scene_is_shared() -> None:
    material = KnownText()
    probes = material.probes(Plan(texts=8))
    truth: dict[tuple[str, str], list[float]] = {}
    for probe in probes:
        truth.setdefault((probe["setting"], probe["damage"]), []).append(probe["truth"])
    for setting in calibration.SETTINGS:
        means = [sum(truth[setting, level]) / len(truth[setting, level]) for level in DAMAGE]
        assert means[0] == 1.0 > means[1] > 0.8 > means[2] > 0.3
    assert len({probe["seed"] for probe in probes}) == 8 * len(calibration.SETTINGS)
    one = [probe for probe in probes if probe["damage"] == "heavy"][:2]
    plan = Plan(texts=8)
    assert [a.tobytes() for a in material.pictures(one, plan)] == [material.pictures([probe], plan)[0].tobytes() for probe in one]


class Alarmist:
    """A classifier that flags every third picture."""

    name = "alarmist"
    columns: Mapping[str, pa.DataType] = {"probabilities": pa.list_(pa.float64())}

    def signature(self) -> str:
        return "alarmist|heads:a,b|v:1"

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        pass

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Failure]:
        return [{"probabilities": [0.1, 0.9 if place % 3 == 0 else 0.2]} for place, _ in enumerate(rows)]


def test_safety_classifiers_look_at_benign_photographs(tmp_path: Path) -> None:
    pytest.importorskip("skimage")
    assert BenignPhotographs().suits(Alarmist(), Plan())
    found = calibrate("alarmist", Alarmist(), Plan(texts=2, n_resamples=100), str(tmp_path), batch_size=64, console=QUIET)
    (ceiling,) = found["scores"]
    assert (ceiling["group"], ceiling["n"], ceiling["value"]) == ({}, 14, pytest.approx(9 / 14))

    class Poet(Perfect):
        columns = {"verse": pa.string()}  # noqa: RUF012

    with pytest.raises(InputError, match="poet sees verse, and there is no material of known truth"):
        calibrate("poet", Poet(), PLAN, str(tmp_path), batch_size=1, console=QUIET)


# Beside the scores of a run


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tesseract, by the command."""
    out = tmp_path_factory.mktemp("calibrated")
    options = ("--texts", 5, "--languages", "en,ru", "--in", "clean,sign", "--out", out)
    done = command("judge", "--calibrate", "--with", "tesseract", *options)
    assert "Russian" in done.stdout
    assert "tesseract.json" in done.stdout
    return out


@pytest.fixture(scope="module")
def run(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "light"
    text = ("--prompts", prompts, "--config", "lingt2i_text", "--languages", "en,hi,ru", "--limit", 36)
    command("generate", "--model", "glyph", "--set", "damage=light", *text, "--out", out)
    command("judge", out, "--with", "tesseract")
    return out


def test_ceilings_stand_beside_scores_and_change_none(run: Path, calibrated: Path) -> None:
    scoring = ("score", run, "--tokenizer", "tekken", "--resamples", 200)
    command(*scoring)
    raw = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    done = command(*scoring, "--calibration", calibrated, "--ceiling", "clean")
    assert "share_of_ceiling" in done.stdout
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    assert [score for score in scores if "ceiling" not in score["metric"] and score["metric"] != "corrected"] == raw
    by = {(score.metric, score.key, score.group): score for score in stored.read(scores, specs())}
    for key in ("precision", "ned_char"):
        for code in ("en", "ru"):
            group = Group(language=code)
            ceiling, share = by["reader_ceiling", key, group], by["share_of_ceiling", key, group]
            assert ceiling.n == 5
            raw_value, share_value = by["text_rendering_precision", key, group].value, share.value
            assert share_value == pytest.approx(raw_value / ceiling.value)
            assert share.interval.low < share_value < share.interval.high
            assert "known_text@" in str(share.signature)
            corrected = by["corrected", key, group]
            assert (corrected.signature, corrected.n) == (share.signature, share.n)
            assert 0 <= corrected.interval.low < corrected.value <= corrected.interval.high <= 1
            assert corrected.interval.method == "delta method, t"
            assert "reader:{tesseract|" in str(share.signature)
        unknown = by["share_of_ceiling", key, Group(language="hi")]
        assert (unknown.value, unknown.interval, by["reader_ceiling", key, Group(language="hi")].n) == (None, None, 0)
        assert by["corrected", key, Group(language="hi")].reason == "the language was not calibrated"
        assert by["corrected", f"{key}_p_alike_raw", Group()].n == by["corrected", f"{key}_spread", Group()].n
        assert by["corrected", f"{key}_spread", Group()].n == 2 * by["corrected", key, Group(language="en")].n
    (rendering,) = gather([Run.open(str(run))], title="t", samples=False).renderings
    assert (rendering.calibrated, rendering.corrected_p) == (True, None), "Hindi is not corrected, so that nothing is said of all"


def test_ceilings_of_another_reader_or_setting_are_refused(run: Path, calibrated: Path, tmp_path: Path) -> None:
    scoring = ("score", run, "--tokenizer", "tekken", "--resamples", 0, "--calibration")
    assert "no ceiling of tesseract in the setting 'photo'; expected one of clean, sign" in error_of(
        *scoring, calibrated, "--ceiling", "photo"
    )
    assert "holds no calibration of a reader of this run (it holds: none)" in error_of(*scoring, tmp_path / "none")
    other = tmp_path / "other"
    shutil.copytree(calibrated, other)
    found = json.loads((other / "tesseract.json").read_text(encoding="utf-8"))
    found["signature"] = found["signature"].replace("layout:lines", "layout:page")
    (other / "tesseract.json").write_text(json.dumps(found))
    assert "is of another reader than the one that read this run (layout: 'page' there, 'lines' here)" in error_of(*scoring, other)


def test_a_reader_without_calibration_has_no_ceiling(calibrated: Path) -> None:
    settings = ScoreSettings(tokenizer="tekken", calibration=str(calibrated))
    assert ceilings.beside([], [], "s", Signature.parse("m|v:1"), Signature.parse("vlm-reader|v:1"), settings) == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--with", "tesseract"), "judge needs a run: t2i-parity judge RUN --with JUDGE; or, to measure the judge itself, --calibrate"),
        (("runs/x", "--with", "tesseract", "--calibrate"), "--calibrate takes no run"),
        (("runs/x", "--with", "tesseract", "--texts", 3), "go with --calibrate"),
        (("--calibrate", "--with", "tesseract", "--in", "clean,foggy"), "--in foggy: expected some of clean, sign, photo"),
        (("--calibrate", "--with", "tesseract", "--languages", "xx", "--in", "clean"), "no texts of known truth in xx"),
    ],
)
def test_what_the_command_refuses(arguments: tuple[object, ...], told: str) -> None:
    assert told in error_of("judge", *arguments)


def test_a_language_that_a_reader_does_not_serve_has_no_probe(tmp_path: Path) -> None:
    done = command("judge", "--calibrate", "--with", "rapidocr", "--texts", 1, "--languages", "en,hi", "--in", "clean", "--out", tmp_path)
    assert "rapidocr was not asked about hi" in done.stderr
    assert "cannot read Hindi (hi): its recogniser has no letters of the script Deva" in done.stderr
    found = calibration.read(str(tmp_path))["rapidocr"]
    assert list(found["unread"]) == ["hi"]
    assert not [each for each in found["scores"] if each["group"].get("language") == "hi"]
    alone = ("judge", "--calibrate", "--with", "rapidocr", "--languages", "hi", "--out", tmp_path / "hi")
    assert "no letters of the script Deva" in error_of(*alone)
