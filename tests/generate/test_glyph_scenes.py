"""Signs, photographs and fonts of the typesetter: seeded, whole in the picture, recorded without a path."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import fonts
from t2i_parity.generate.backends import backgrounds
from t2i_parity.generate.models.glyph import Cluster, Glyph, GlyphSettings, _breakable, legible


def row(text: str = "Open all day", language: str = "en") -> dict[str, Any]:
    return {"render_text": text, "language": language, "render_layout": None}


@pytest.mark.parametrize("background", ["sign", "photo"])
def test_a_scene_depends_on_the_seed_alone_and_is_no_other(background: Any) -> None:
    model = Glyph("", GlyphSettings(background=background, font="any", size=256))
    one, two, again = model.generate([row()] * 3, [1, 2, 1])
    assert one.tobytes() == again.tobytes() != two.tobytes()
    assert one.size == (256, 256)
    assert one.mode == "RGB"


def test_a_sign_is_tilted_and_stands_whole_in_the_picture() -> None:
    turned = set()
    for seed in range(200):
        panel = (0, 0, 500, 300) if seed % 2 else (100, 400, 512, 512)
        corners = backgrounds.tilted(panel, 512, np.random.default_rng(seed))
        assert corners.min() >= 0
        assert corners.max() <= 512
        slope = np.degrees(np.arctan2(*(corners[1] - corners[0])[::-1]))
        turned.add(round(float(slope)))
    assert min(turned) < -5
    assert max(turned) > 5


def test_a_warped_panel_lands_on_its_corners() -> None:
    layer = Image.new("RGBA", (200, 200), (0, 0, 0, 0))
    layer.paste((255, 0, 0, 255), (50, 50, 150, 100))
    corners = np.array([(30.0, 60.0), (160.0, 40.0), (170.0, 120.0), (40.0, 130.0)])
    alpha = np.asarray(backgrounds.warped(layer, (50, 50, 150, 100), corners).getchannel("A")) > 128
    rows, columns = np.nonzero(alpha)
    assert abs(int(columns.min()) - 30) <= 2
    assert abs(int(columns.max()) - 170) <= 2
    assert abs(int(rows.min()) - 40) <= 2
    assert abs(int(rows.max()) - 130) <= 2


def test_own_photographs_are_used_and_recorded_by_content(tmp_path: Path) -> None:
    for name, colour in (("a.png", (200, 30, 30)), ("b.jpg", (190, 40, 40))):
        Image.new("RGB", (300, 240), colour).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no picture")
    model = Glyph("", GlyphSettings(background="photo", photos=str(tmp_path), size=256))
    pixels = np.asarray(model.generate([row()], [4])[0]).reshape(-1, 3)
    assert np.median(pixels[:, 0]) > 2 * np.median(pixels[:, 1]), "the photograph is red"
    record = model.record()
    assert str(tmp_path) not in json.dumps(record)
    Image.new("RGB", (300, 240), "green").save(tmp_path / "c.png")
    assert Glyph("", GlyphSettings(background="photo", photos=str(tmp_path))).record()["photos"] != record["photos"]
    assert Glyph("", GlyphSettings(photos=str(tmp_path))).record()["photos"] is None


def test_no_photographs_is_told_with_the_fix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"photos=.*expected a folder with \.jpg"):
        Glyph("", GlyphSettings(background="photo", photos=str(tmp_path)))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"--set photos=FOLDER.*pip install scikit-image"):
        Glyph("", GlyphSettings(background="photo"))


def test_any_font_is_a_seeded_one_of_those_that_cover_the_text() -> None:
    latin = fonts.faces_for("Ouvert à midi", "Latn")
    assert len(latin) > 1
    assert fonts.face_for("Ouvert à midi", "Latn") in latin
    assert not [path for path, _ in fonts.faces_for("مفتوح", "Arab") if "Nastaliq" in path.name]
    assert {index for path, index in fonts.faces_for("비상구", "Kore") if path.name.startswith("NotoSansCJK")} <= {1}
    with pytest.raises(ValueError, match="no font for Latn"):
        fonts.faces_for("漢", "Latn")
    model = Glyph("", GlyphSettings(font="any", size=256))
    # Paper and ink depend on the seed too: the ink's outline alone tells the fonts apart.
    outlines = {(np.asarray(picture.convert("L")) < 110).sum() for picture in model.generate([row()] * 12, list(range(12)))}
    assert len(outlines) > 3
    assert model.record()["fonts"] != Glyph("", GlyphSettings()).record()["fonts"]


def test_korean_words_stay_whole() -> None:
    assert _breakable("6월 비상구 안내") == ["6월 ", "비상구 ", "안내"]
    assert _breakable("well-known words") == ["well-", "known ", "words"]
    assert len(_breakable("春の祭り")) == 4


def test_what_a_perfect_reader_reads() -> None:
    assert legible([Cluster("a"), Cluster("क्", blurred=True), Cluster("b")]) == "a\ufffd\ufffdb"
