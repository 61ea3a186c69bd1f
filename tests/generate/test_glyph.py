"""The typesetter: right shapes, lines that fit, damage of a known order."""

from __future__ import annotations

import json

import numpy as np
import pytest
from commands import command, error_of
from hypothesis import given, settings
from hypothesis import strategies as st
from uniseg.graphemecluster import grapheme_clusters

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.generate import fonts
from t2i_parity.generate.models import load
from t2i_parity.generate.models.glyph import DAMAGE, Glyph, GlyphSettings, _lines, _units, damaged


def row(text: str, language: str = "en", layout: object = None) -> dict[str, object]:
    return {"render_text": text, "language": language, "render_layout": None if layout is None else json.dumps(layout)}


def ink(picture: object) -> np.ndarray:
    grey = np.asarray(picture.convert("L"))  # type: ignore[attr-defined]
    return grey < 110


def string(clusters: list) -> str:
    return "".join(cluster.text for cluster in clusters)


@given(st.text(min_size=0, max_size=40), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_undamaged_is_the_text_itself(text: str, seed: int) -> None:
    result = damaged(text, "none", seed)
    assert string(result) == text
    assert not any(cluster.blurred for cluster in result)


@given(st.text(alphabet="abcdefgh नमस्ते مرحبا 漢字かな", min_size=1, max_size=40), st.integers(0, 2**32 - 1))
@settings(deadline=None)
def test_damage_only_drops_swaps_and_blurs(text: str, seed: int) -> None:
    for level in ("light", "heavy"):
        kept = sorted(cluster.text for cluster in damaged(text, level, seed))
        whole = sorted(grapheme_clusters(text))
        for cluster in kept:
            whole.remove(cluster)
        assert not [cluster for cluster in whole if cluster.isspace()]


def test_a_heavier_level_damages_more() -> None:
    text = "a long sentence with quite a few letters in it"
    hurt = dict.fromkeys(DAMAGE, 0)
    for seed in range(200):
        for level in DAMAGE:
            result = damaged(text, level, seed)
            wrong = sum(cluster.blurred for cluster in result) + (len(text) - len(result))
            wrong += sum(a.text != b for a, b in zip(result, text, strict=False)) > 0
            hurt[level] += wrong
    assert hurt["none"] == 0 < hurt["light"] < hurt["heavy"]


def test_the_picture_depends_on_text_and_seed_alone() -> None:
    model = Glyph("", GlyphSettings(damage="light"))
    rows = [row("Open all day"), row("مفتوح طوال اليوم", "ar")]
    together = model.generate(rows, [1, 2])
    alone = [model.generate([each], [seed])[0] for each, seed in zip(rows, (1, 2), strict=True)]
    assert [a.tobytes() for a in together] == [b.tobytes() for b in alone]
    assert model.generate([rows[0]], [3])[0].tobytes() != together[0].tobytes()


def test_the_text_stands_in_its_layout() -> None:
    box = [[[100, 600], [900, 600], [900, 900], [100, 900]], [[100, 600], [900, 900]]]
    picture = Glyph("", GlyphSettings(size=512)).generate([row("A sign at the bottom of the picture", layout=[box])], [7])[0]
    rows, columns = np.nonzero(ink(picture))
    assert rows.min() >= 300
    assert rows.max() <= 450
    assert columns.min() >= 50
    assert columns.max() <= 450


def test_lines_break_where_unicode_allows_it() -> None:
    from t2i_parity.generate.models.glyph import Cluster

    face = fonts.face_for("漢字、", "Jpan")
    clusters = [Cluster(text) for text in "漢字漢字、漢字漢字"]
    lines = _lines(_units(clusters, face), 400.0)
    assert lines is not None
    assert "".join(string(line) for line in lines) == "漢字漢字、漢字漢字"
    assert all(string(line)[0] != "、" for line in lines), "no line begins with a comma"
    words = _lines(_units([Cluster(text) for text in "one two three"], fonts.face_for("a", "Latn")), 450.0)
    assert words is not None
    assert [string(line) for line in words] == ["one two", "three"]


def test_right_to_left_text_is_shaped_and_ordered() -> None:
    # The first word of an Arabic line stands at the right: a long one leaves its ink there.
    box = [[[0, 400], [1024, 400], [1024, 600], [0, 600]], [[0, 400], [1024, 600]]]
    model = Glyph("", GlyphSettings())
    joined = ink(model.generate([row("سلام", "ar", [box])], [1])[0]).sum()
    apart = ink(model.generate([row("س ل ا م", "ar", [box])], [1])[0]).sum()
    assert joined != apart, "letters of a word join"


def test_every_starter_text_is_set() -> None:
    rows = list(starter._text_rows())
    assert {each["language"] for each in rows} == set(LINGT2I_LANGUAGES)
    Glyph("", GlyphSettings(size=256)).generate(rows[::3], list(range(len(rows[::3]))))


def test_a_character_without_a_glyph_is_a_failed_row_not_a_box() -> None:
    with pytest.raises(ValueError, match=r"no font for Latn has '漢' \(U\+6F22\)"):
        Glyph("", GlyphSettings()).generate([row("漢")], [1])


def test_a_missing_font_names_the_install_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "_files", dict)
    with pytest.raises(InputError, match=r"no font for the script Deva .*apt-get install fonts-noto-core|brew install"):
        fonts.check(["Deva"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"damage": "awful"}, "damage=awful.*'none', 'light' or 'heavy'"),
        ({"size": "9"}, "size=9.*greater than or equal to 256"),
        ({"colour": "red"}, "no setting 'colour'; it takes: damage, background, font, photos, size"),
    ],
)
def test_settings_are_checked(options: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        load("glyph", options)


def test_a_failed_row_is_kept_and_can_be_retried(prompts: object, tmp_path: object) -> None:
    import pyarrow.parquet as pq

    from t2i_parity.dataset_builder.schema import text_sha256

    source = tmp_path / "mine"  # type: ignore[operator]
    source.mkdir()
    texts = ["fine", "漢字", "also fine"]
    import pyarrow as pa

    pq.write_table(
        pa.table(
            {
                "prompt_id": ["1", "2", "3"],
                "pair_id": ["1", "2", "3"],
                "prompt": texts,
                "language": ["en"] * 3,
                "render_text": texts,
                "render_layout": [None, None, None],
                "text_sha256": [text_sha256(text) for text in texts],
            }
        ),
        source / "rows.parquet",
    )
    arguments = ("generate", "--model", "glyph", "--prompts", source, "--out", tmp_path / "run")  # type: ignore[operator]
    done = command(*arguments)
    assert "3 images made now, 1 of them failed" in done.stdout
    from t2i_parity.generate.run import Run

    rows = Run.open(str(tmp_path / "run")).images().read().to_pylist()  # type: ignore[operator]
    by_text = {each["prompt"]: each for each in rows}
    assert by_text["fine"]["status"] == "ok"
    assert by_text["漢字"]["status"] == "failed"
    assert "U+6F22" in by_text["漢字"]["reason"]
    assert by_text["漢字"]["image"] is None
    assert "0 images made now, 3 were there" in command(*arguments).stdout
    assert "1 images made now, 1 of them failed" in command(*arguments, "--retry-failed").stdout


def test_another_damage_into_the_same_run_is_refused(prompts: object, tmp_path: object) -> None:
    arguments = (
        "generate",
        "--model",
        "glyph",
        "--prompts",
        prompts,
        "--config",
        "lingt2i_text",
        "--limit",
        10,
        "--out",
        f"{tmp_path}/run",
    )
    command(*arguments)
    message = error_of(*arguments, "--set", "damage=heavy")
    assert "model.damage: 'none' there, 'heavy' asked" in message
