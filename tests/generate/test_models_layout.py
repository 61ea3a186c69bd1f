"""Text to render: layouts that are read or refused by name, prompts that are completed, images that models are conditioned on."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import layout
from t2i_parity.generate.models import load
from t2i_parity.generate.models.glyph import Glyph, GlyphSettings

BOX = [[[132, 280], [892, 280], [892, 580], [132, 580]], [[132, 280], [892, 580]]]


def line(left: float, top: float, right: float, bottom: float) -> list[Any]:
    return [[[left, top], [right, top], [right, bottom], [left, bottom]], [[left, top], [right, bottom]]]


def row(text: str = "open", lines: list[Any] | None = None, language: str = "en", **more: Any) -> dict[str, Any]:
    return {
        "prompt_id": "p", "prompt": "A board.", "render_text": text, "language": language,
        "render_layout": None if lines is None else json.dumps(lines), **more,
    }  # fmt: skip


def ink(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("L")) < 128


def test_the_starter_editions_layouts_are_read() -> None:
    for text in starter.tables()["lingt2i_text"].to_pylist():
        assert all(len(each.corners) == 4 for each in layout.lines_of(text))


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("no JSON", "is not JSON"),
        ("[]", "expected a list with at least one line"),
        ("{}", "expected a list with at least one line"),
        (json.dumps([BOX, BOX[0]]), "line 1: expected .* got "),
        (json.dumps([[BOX[0][:3], BOX[1]]]), "line 0: expected"),
        (json.dumps([[[*BOX[0][:3], [1, "2"]], BOX[1]]]), "line 0: .* got the point"),
        (json.dumps([[[*BOX[0][:3], [1, True]], BOX[1]]]), "line 0: .* got the point"),
        ('[[[[NaN, 0], [1, 0], [1, 1], [0, 1]], [[0, 0], [1, 1]]]]', "line 0: .* got the point"),
        (json.dumps([line(0, 0, 5000, 10)]), r"the corner \(5000, 0\) lies far outside"),
        (json.dumps([[[[5, 5]] * 4, BOX[1]]]), "its corners enclose nothing"),
        (json.dumps([[BOX[0], [[9, 9], [9, 20]]]]), r"its rectangle from \(9, 9\) to \(9, 20\) is empty"),
    ],
)  # fmt: skip
def test_what_is_no_layout_is_refused_by_name(written: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        layout.parse(written)
    with pytest.raises(InputError, match="row 'p': render_layout"):
        layout.check([{**row(), "render_layout": written}])


@given(st.text(min_size=1, max_size=60), st.lists(st.integers(50, 900), min_size=1, max_size=5))
def test_no_letter_is_lost_or_moved_between_lines(text: str, widths: list[int]) -> None:
    lines = [line(0, 10 * number, width, 10 * number + 9) for number, width in enumerate(widths)]
    parts = layout.texts_of(row(text, lines))
    assert len(parts) == len(widths)
    assert "".join("".join(parts).split()) == "".join(text.split())


def test_lines_take_text_by_their_lengths_and_by_its_own_line_feeds() -> None:
    lines = [line(0, 0, 200, 90), line(0, 100, 800, 190)]
    assert layout.texts_of(row("one two three four five", lines)) == ["one", "two three four five"]
    assert layout.texts_of(row("one two three\nfour", lines)) == ["one two three", "four"]
    assert layout.texts_of(row("你好世界和平", lines)) == ["你", "好世界和平"]


def test_a_prompt_is_completed_only_where_the_text_is_not_in_it() -> None:
    assert layout.worded(row()) == "A board. The image shows the text “open”."
    assert layout.worded({"prompt": "It says “open”.", "render_text": "open"}) == "It says “open”."
    assert layout.worded({"prompt": "A house.", "render_text": None}) == layout.worded({"prompt": "A house."}) == "A house."
    assert layout.worded({"prompt": "{x}", "render_text": "{prompt}"}) == "{x} The image shows the text “{prompt}”.", "braces are letters"
    texts = starter.tables()["lingt2i_text"].to_pylist()
    assert all(layout.worded(each) == each["prompt"] for each in texts), "the study's prompts hold their texts already"


def test_positions_are_black_where_lines_go() -> None:
    slanted = [[[256, 256], [768, 384], [768, 512], [256, 384]], [[0, 0], [9, 9]]]
    picture = layout.positions(row(lines=[slanted]), 512)
    assert picture.size == (512, 512)
    marked = ink(picture)
    assert marked[180, 200]
    assert not marked[140, 370]
    area = (768 - 256) * 128 / 4
    assert abs(marked.sum() - area) < 0.03 * area


@pytest.mark.parametrize("language", ["en", "ar", "hi", "zh"])
def test_a_strip_of_glyphs_shows_its_text_in_the_rows_language(language: str) -> None:
    text = {"en": "Open today", "ar": "مفتوح اليوم", "hi": "आज खुला है", "zh": "今天营业"}[language]
    picture, told = layout.glyphs(row(text, [BOX], language))
    assert picture.height == layout.STRIP
    assert picture.width % 16 == 0
    assert ink(picture).sum() > 200
    assert not ink(picture)[[0, -1]].any(), "nothing is cut off at the top or bottom"
    assert layout.parse(told)[0].corners == layout.parse(json.dumps([BOX]))[0].corners
    assert ink(layout.glyphs(row(text[:-1], [BOX], language))[0]).sum() < ink(picture).sum()


def test_strips_lie_where_their_layout_says() -> None:
    picture, told = layout.glyphs(row("a very long first line\nb", [line(0, 0, 900, 90), line(0, 100, 100, 190)]))
    assert picture.height == 2 * layout.STRIP
    for each in layout.parse(told):
        left, top, right, bottom = map(int, each.rectangle)
        assert ink(picture)[top : bottom + 1, left : right + 1].any()
        assert not ink(picture)[top : bottom + 1, right + 1 :].any()


def test_a_letter_that_no_font_has_is_told() -> None:
    with pytest.raises(ValueError, match="no font for Latn has"):
        layout.glyphs(row("漢"))


def test_the_datasets_own_image_comes_before_a_drawn_one() -> None:
    own = Image.new("RGB", (48, 64), (9, 8, 7))
    buffer = io.BytesIO()
    own.save(buffer, "PNG")
    table = pa.table({"prompt_id": ["p", "q"], "condition_image": pa.array([{"bytes": buffer.getvalue(), "path": None}, None])})
    given_rows = [row(), {**row(), "prompt_id": "q"}]
    with_image, without = layout.with_condition_images(given_rows, table, "easytext")
    assert layout.condition_image(with_image, "glyphs").getpixel((0, 0)) == (9, 8, 7)
    assert layout.condition_image(without, "glyphs").getpixel((0, 0)) == (255, 255, 255)
    assert layout.condition_image(with_image, "positions", 64).size == (64, 64), "positions are drawn from the layout"
    for other in ("sdxl", "anytext", "some/model"):
        assert layout.with_condition_images(given_rows, table, other) == given_rows
    assert layout.with_condition_images(given_rows, table.select(["prompt_id"]), "easytext") == given_rows


def test_every_prompt_only_model_says_which_template_it_used(tmp_path: Any) -> None:
    pytest.importorskip("diffusers")
    from small_models import stable_diffusion

    record = load(str(stable_diffusion(tmp_path / "sd")), {"device": "cpu"}).record()
    assert (record["text_template"], record["text_template_version"]) == (layout.TEMPLATE, layout.TEMPLATE_VERSION)
    assert "text_template" not in Glyph("", GlyphSettings()).record()
