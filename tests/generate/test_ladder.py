"""The whole line on real input: the starter's texts typeset at three levels, read by Tesseract, scored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import command
from datasets import load_dataset

from t2i_parity.dataset_builder.languages import LANGUAGES, LINGT2I_LANGUAGES
from t2i_parity.generate.judges.tesseract import Tesseract, TesseractSettings, joined_lines, text_lines
from t2i_parity.generate.run import Run
from t2i_parity.metrics.scores import Group, Score
from t2i_parity.metrics.text_rendering_precision.spec import SPEC as TEXT

LADDER = ("none", "light", "heavy")


@pytest.fixture(scope="module")
def ladder(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("ladder")
    for damage in LADDER:
        run = root / damage
        command("generate", "--model", "glyph", "--set", f"damage={damage}", "--prompts", prompts, "--config", "lingt2i_text", "--out", run)
        command("judge", run, "--with", "tesseract")
    command("score", *(root / damage for damage in LADDER), "--tokenizer", "tekken", "--resamples", 200)
    return root


def value(run: Path, key: str, code: str) -> Score:
    found = [score for score in Run.open(str(run)).scores() if score.spec is TEXT[key] and score.group == Group(language=code)]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("code", LINGT2I_LANGUAGES)
def test_undamaged_text_is_read_in_every_language(ladder: Path, code: str) -> None:
    score = value(ladder / "none", "ned_char", code)
    assert score.n >= 60
    assert score.n_missing == 0
    assert score.value >= 0.95, score


@pytest.mark.parametrize("code", LINGT2I_LANGUAGES)
@pytest.mark.parametrize("key", ["precision", "ned_char", "ned_token"])
def test_scores_fall_strictly_along_the_ladder(ladder: Path, code: str, key: str) -> None:
    values = [value(ladder / damage, key, code).value for damage in LADDER]
    assert values[0] > values[1] > values[2], values


def test_every_score_has_what_a_score_must_have(ladder: Path) -> None:
    for score in Run.open(str(ladder / "light")).scores():
        assert score.n + score.n_missing > 0
        if score.metric == TEXT.name:
            assert score.interval is not None
            assert score.interval.low <= (score.value or 0.0) <= score.interval.high
            assert score.signature.fields["tok"] == "mistral-common/tekken_240911"
            assert score.signature.fields["reader"].metric == "tesseract"


def test_the_run_is_a_dataset(ladder: Path) -> None:
    images = load_dataset(str(ladder / "light"), "images", split="test")
    assert images[0]["image"].size == (512, 512)
    seen = load_dataset(str(ladder / "light"), "tesseract", split="test")
    scored = load_dataset(str(ladder / "light"), "scored", split="test")
    assert len(images) == len(seen) == len(scored) == 640
    assert set(images["image_id"][:]) == set(seen["image_id"][:]) == set(scored["image_id"][:])
    streamed = next(iter(load_dataset(str(ladder / "light"), "images", split="test", streaming=True)))
    assert streamed["image"].size == (512, 512)
    row = scored[0]
    assert 0 <= row["tesseract_precision"] <= 1
    assert row["tesseract_precision"] == pytest.approx(
        (row["tesseract_ned_char"] + row["tesseract_ned_token"] + row["tesseract_exact"]) / 3
    )


def test_translations_of_one_meaning_share_their_noise(ladder: Path) -> None:
    rows = Run.open(str(ladder / "none")).images().read(["pair_id", "seed"]).to_pylist()
    seeds: dict[str, set[int]] = {}
    for row in rows:
        seeds.setdefault(row["pair_id"], set()).add(row["seed"])
    assert {len(found) for found in seeds.values()} == {1}
    assert len({next(iter(found)) for found in seeds.values()}) == len(seeds)


def test_judging_and_scoring_again_change_nothing(ladder: Path) -> None:
    run = ladder / "heavy"
    before = (run / "scores.json").read_bytes()
    assert "0 observations made now, 640 were there" in command("judge", run, "--with", "tesseract").stdout
    command("score", run, "--tokenizer", "tekken", "--resamples", 200)
    assert (run / "scores.json").read_bytes() == before


def test_the_record_tells_how_the_run_came_about(ladder: Path) -> None:
    record = json.loads((ladder / "light" / "run.json").read_text(encoding="utf-8"))
    assert record["identity"]["model"]["damage"] == "light"
    assert record["identity"]["prompts"]["config"] == "lingt2i_text"
    assert record["arguments"]["given"]["settings"] == ["damage=light"]
    assert record["arguments"]["defaulted"]["seed"] == 42
    assert record["judges"]["tesseract"].startswith("tesseract|")
    assert "tesserocr" in record["packages"]
    assert str(ladder) not in json.dumps(record)


def test_the_page_is_made(ladder: Path, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = command("report", *(ladder / damage for damage in LADDER), "--out", out)
    page = out.read_text(encoding="utf-8")
    assert "Hindi" in page
    assert "data:image/" in page
    assert out.stat().st_size < 5_000_000
    assert str(out) in done.stdout.replace("\n", "")


# The reader by itself


def test_an_image_that_cannot_be_decoded_is_a_failure_not_a_reading() -> None:
    from t2i_parity.generate.observe import _decoded

    failure = _decoded({"image": {"bytes": b"no picture"}})
    assert "cannot be decoded" in failure.reason  # type: ignore[union-attr]


def test_an_empty_picture_reads_as_nothing() -> None:
    from PIL import Image

    white = Image.new("RGB", (300, 200), "white")
    assert Tesseract(TesseractSettings()).observe([{"language": "en", "image": white}]) == [{"text": ""}]
    assert text_lines(Image.new("L", (300, 200), 255)) == []


def test_lines_are_joined_as_the_script_wants_it() -> None:
    assert joined_lines("a\n\n b ", LANGUAGES["en"]) == "a b"
    assert joined_lines("漢\n字", LANGUAGES["ja"]) == "漢字"
    assert joined_lines("\u200fمرحبا\u200e", LANGUAGES["ar"]) == "مرحبا"


def test_a_missing_language_model_names_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from t2i_parity.dataset_builder.errors import InputError, InputWarning

    (tmp_path / "eng.traineddata").write_bytes(b"")
    monkeypatch.setenv("TESSDATA_PREFIX", str(tmp_path))
    reader = Tesseract(TesseractSettings())
    with pytest.raises(InputError, match=r"no language model chi_sim in .*tesseract-(ocr-chi-sim|lang)"):
        reader.check([{"language": "hi"}, {"language": "zh"}])
    with pytest.warns(InputWarning, match=r"Hindi \(hi\): Tesseract has no language model hin in .*Its rows fail; the others go on"):
        reader.check([{"language": "hi"}, {"language": "en"}])
