"""Readers of scenes: what rapidocr and the hybrid read on tilted signs and photographs, in which order, and of what they refuse."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError, InputWarning
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.generate.backends import crops, ppocr
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.judges import load
from t2i_parity.generate.judges.hybrid import Hybrid, HybridSettings, dark_on_white, ink_alone
from t2i_parity.generate.judges.rapidocr import RapidOcr, RapidOcrSettings
from t2i_parity.generate.models.glyph import Glyph, GlyphSettings
from t2i_parity.metrics.text_rendering_precision.core import ned

# Not among the words that the readers were tuned on (names of countries, languages and months).
WORDS = {
    "en": "The quick ferry", "zh": "今天有雨", "hi": "आज बाज़ार बंद है", "es": "Mañana habrá música", "ar": "المكتبة مفتوحة اليوم",
    "fr": "Été à la forêt", "pt": "Pão e maçã à mão", "ru": "Вход свободный", "ja": "春の祭り", "ko": "오늘은 쉽니다",
}  # fmt: skip


@pytest.fixture(scope="module")
def hybrid() -> Hybrid:
    return Hybrid(HybridSettings(), workers=2)


@pytest.fixture(scope="module")
def signs() -> list[dict[str, Any]]:
    """Each language's words on two signs, in two fonts."""
    rows = [{"language": code, "render_text": text, "render_layout": None} for code, text in WORDS.items() for _ in range(2)]
    pictures = Glyph("", GlyphSettings(background="sign", font="any")).generate(rows, [11 + place % 2 for place in range(len(rows))])
    return [{**row, "image": picture} for row, picture in zip(rows, pictures, strict=True)]


def test_every_language_is_read_on_signs_and_the_batch_does_not_matter(hybrid: Hybrid, signs: list[dict[str, Any]]) -> None:
    together = hybrid.observe(signs[:16]) + hybrid.observe(signs[16:])
    score: dict[str, list[float]] = {}
    for row, seen in zip(signs, together, strict=True):
        score.setdefault(row["language"], []).append(float(ned([seen["text"]], [row["render_text"]])[0]))  # type: ignore[index]
    assert {code: np.mean(found) for code, found in score.items() if np.mean(found) < 0.8} == {}
    assert np.mean([np.mean(found) for found in score.values()]) > 0.95
    assert [hybrid.observe([row])[0] for row in signs[::3]] == together[::3]


def test_accents_survive(hybrid: Hybrid, signs: list[dict[str, Any]]) -> None:
    latin = [row for row in signs if row["language"] in ("es", "fr", "pt")]
    read = "".join(str(seen["text"]) for seen in hybrid.observe(latin))  # type: ignore[index]
    assert set("ñáÉêéãç") <= set(read), read


def test_text_right_on_a_photograph_is_told_from_its_texture(hybrid: Hybrid) -> None:
    rows = [{"language": code, "render_text": WORDS[code], "render_layout": None} for code in ("en", "hi", "ru", "ko")]
    pictures = Glyph("", GlyphSettings(background="photo")).generate(rows, [3, 3, 3, 3])
    seen = hybrid.observe([{**row, "image": picture} for row, picture in zip(rows, pictures, strict=True)])
    scores = ned([str(each["text"]) for each in seen], [row["render_text"] for row in rows])  # type: ignore[index]
    assert scores.mean() > 0.85, (seen, scores)


def test_nothing_is_read_where_nothing_stands(hybrid: Hybrid) -> None:
    noise = Image.fromarray(np.random.default_rng(1).integers(90, 160, (256, 256, 3)).astype(np.uint8))
    blank = Image.new("RGB", (300, 200), "white")
    assert (
        hybrid.observe([{"language": code, "image": picture} for code in ("en", "hi") for picture in (noise, blank)]) == [{"text": ""}] * 4
    )
    assert RapidOcr(RapidOcrSettings()).observe([{"language": "en", "image": blank}]) == [{"text": ""}]


def test_rapidocr_reads_its_scripts_and_refuses_the_others(signs: list[dict[str, Any]]) -> None:
    assert set(ppocr.served()) == {code for code, language in LANGUAGES.items() if language.script in ("Latn", "Hans", "Jpan")}
    reader = RapidOcr(RapidOcrSettings(), workers=2)
    own = [row for row in signs if row["language"] in ppocr.served()]
    read = [str(seen["text"]) for seen in reader.observe(own)]  # type: ignore[index]
    assert ned(read, [row["render_text"] for row in own]).mean() > 0.9
    reader.check(own)
    with pytest.warns(InputWarning, match=r"rapidocr cannot read Hindi \(hi\): its recogniser has no letters of the script Deva.*hybrid"):
        reader.check([{"language": code} for code in ("en", "hi")])
    (unread,) = reader.observe([{"language": "hi", "image": signs[0]["image"]}])
    assert isinstance(unread, Failure)
    assert "out of scope: rapidocr cannot read Hindi (hi)" in unread.reason
    with pytest.raises(InputError, match=r"cannot read Korean \(ko\).*; .*cannot read Hindi \(hi\)"):
        reader.check([{"language": code} for code in ("ko", "hi")])


def test_no_download_is_ever_tried(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    ppocr.Detector()
    ppocr.Recogniser()
    monkeypatch.setattr(ppocr, "DETECTOR", "PP-OCRv9_det.onnx")
    with pytest.raises(InputError, match=r"has no PP-OCRv9_det\.onnx.*nothing is downloaded here.*pip install"):
        ppocr.Detector()


def test_signatures_name_weights_versions_and_settings(hybrid: Hybrid) -> None:
    signature = hybrid.signature()
    for part in (r"det:PP-OCRv6_det_small@", "rec:PP-OCRv6_rec_small@", "hin@", "ara@", "crop:image", "side:736", "onnxruntime:"):
        assert part in signature
    assert load("hybrid", {"crop": "layout"}).signature() != signature
    assert load("hybrid", {"shortest_side": "512"}).signature() != signature
    assert "hin@" not in load("rapidocr", {}).signature()


def test_a_missing_language_model_is_told_before_anything_is_read(hybrid: Hybrid, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hybrid._tesseract, "data", tmp_path)
    hybrid.check([{"language": "en"}, {"language": "ja"}])
    with pytest.raises(InputError, match=r"hybrid cannot read Hindi \(hi\): Tesseract has no language model hin in"):
        hybrid.check([{"language": "hi"}])


def test_only_the_layout_is_looked_at_when_asked() -> None:
    at = [[[[100, 100], [900, 100], [900, 300], [100, 300]], [[100, 100], [900, 300]]]]
    below = [[[[100, 700], [900, 700], [900, 900], [100, 900]], [[100, 700], [900, 900]]]]
    upper, lower = (str(place).replace("'", '"') for place in (at, below))
    typesetter = Glyph("", GlyphSettings(background="paper"))
    rows = [
        {"language": "en", "render_text": text, "render_layout": place} for text, place in (("Upper words", upper), ("Lower words", lower))
    ]
    one, two = typesetter.generate(rows, [1, 1])
    both = one.copy()
    both.paste(two.crop((0, 256, 512, 512)), (0, 256))
    row = {"language": "en", "image": both, "render_layout": lower}
    assert load("hybrid", {}).observe([row]) == [{"text": "Upper words Lower words"}]
    for reader in ("hybrid", "rapidocr"):
        cropped = load(reader, {"crop": "layout"})
        assert cropped.observe([row]) == [{"text": "Lower words"}]
        assert cropped.observe([{**row, "render_layout": None}]) == [{"text": "Upper words Lower words"}]


def box(left: float, top: float, right: float, bottom: float) -> np.ndarray:
    return np.array([(left, top), (right, top), (right, bottom), (left, bottom)], np.float64)


def test_rows_are_told_along_the_slope_of_the_text() -> None:
    turned = np.array([(np.cos(0.12), np.sin(0.12)), (-np.sin(0.12), np.cos(0.12))])
    boxes = [box(0, 0, 100, 20) @ turned, box(110, 0, 200, 20) @ turned, box(0, 30, 100, 50) @ turned, box(110, 30, 200, 50) @ turned]
    shuffled = [boxes[place] for place in (3, 0, 2, 1)]
    for direction, order in (("ltr", (0, 1, 2, 3)), ("rtl", (1, 0, 3, 2))):
        found = crops.reading_order(shuffled, direction)  # type: ignore[arg-type]
        assert [next(place for place, each in enumerate(boxes) if each is one) for one in found] == list(order)
    assert crops.reading_order([], "ltr") == []


def test_a_box_is_cut_out_upright() -> None:
    flat = Image.new("L", (400, 300), 0)
    flat.paste(255, (100, 100, 300, 140))
    corners = box(100, 100, 300, 140)
    assert crops.straightened(flat, corners).size == (200, 40)
    assert np.asarray(crops.straightened(flat, corners)).mean() > 250
    wider = crops.straightened(flat, corners, 0.5)
    assert wider.size == (240, 80)
    assert np.asarray(wider)[:15].max() == 0


def test_ink_is_black_on_white_whatever_it_was() -> None:
    pixels = np.full((20, 60), 40, np.uint8)
    pixels[5:15, 20:24] = 230
    for line in (dark_on_white(Image.fromarray(pixels)), dark_on_white(Image.fromarray(255 - pixels))):
        assert np.asarray(line)[10, 22] < 20
        assert np.asarray(line)[2, 2] > 200
    textured = np.where(np.arange(60) % 2, 150, 60).astype(np.uint8)[None].repeat(20, 0)
    textured[5:15, 20:30] = 250
    alone = np.asarray(ink_alone(Image.fromarray(textured), dark=False))
    assert alone[10, 22] < 20
    assert alone[2].min() == 255


def test_the_commands_know_the_readers(prompts: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    text = ("--prompts", prompts, "--config", "lingt2i_text", "--languages", "en,ko", "--limit", 4)
    command("generate", "--model", "glyph", "--set", "background=sign", *text, "--out", run)
    assert "4 observations made now" in command("judge", run, "--with", "hybrid").stdout
    done = command("judge", run, "--with", "rapidocr")
    assert "4 observations made now, 2 of them failed" in done.stdout
    assert done.stderr.count("rapidocr cannot read Korean (ko): its recogniser has no letters of the script Kore") == 1
    command("score", run, "--tokenizer", "tekken", "--resamples", 100)
