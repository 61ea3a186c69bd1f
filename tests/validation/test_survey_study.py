"""What participants of the survey are asked and shown: the design, the pictures, the texts."""

from __future__ import annotations

import io
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from picture_runs import png
from PIL import Image, PngImagePlugin
from survey_studies import NOUNS, study_run

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.validation.survey import tricks
from t2i_parity.validation.survey.pictures import SIDE, Picture, encoded, gather, read_pictures, write_pictures
from t2i_parity.validation.survey.ratings import TRICKS
from t2i_parity.validation.survey.study import Design
from t2i_parity.validation.survey.texts import direction, interface_languages, question, texts

HALF = {"unspecified": 40, "country": 40}


def pictures_of_the_study(images: int = 2) -> dict[str, Picture]:
    """Ten nouns, two models, two conditions, for two countries."""
    made = [
        Picture(f"{model}{noun}{country}{number}", f"geo-{noun}", f"n{noun}", country, model, f"run-{model}", b"")
        for model in ("D2", "SD")
        for noun in range(10)
        for country in (None, "IND", "JPN")
        for number in range(images)
    ]
    return {picture.image_id: picture for picture in made}


def test_the_studys_own_design_comes_out() -> None:
    pictures = pictures_of_the_study()
    items = Design(seed=1).plan(pictures, "IND", "somebody")
    asked = [item for item in items if item.question == "representativeness"]
    assert len(asked) == 80 == len({item.shown for item in asked})
    assert Counter((item.model, item.noun, item.condition) for item in asked) == {
        (model, f"n{noun}", condition): 2 for model in ("D2", "SD") for noun in range(10) for condition in HALF
    }
    assert {pictures[item.shown[0]].country for item in asked} == {None, "IND"}
    kinds = [item.question for item in items]
    assert kinds[-1] == "influence"
    assert kinds[-5:-1] == ["realism"] * 4
    assert Counter((item.model, item.condition) for item in items[-5:-1]) == {(m, c): 1 for m in ("D2", "SD") for c in HALF}
    rated = {item.shown[0] for item in asked}
    for item in items[-5:-1]:
        assert len(item.shown) == 4 == len({pictures[key].noun for key in item.shown})
        assert {(pictures[key].model, pictures[key].condition) for key in item.shown} == {(item.model, item.condition)}
        assert rated.issuperset(item.shown)
    assert Counter(item.noun for item in items if item.question == "trick") == dict.fromkeys(TRICKS, 1)


def test_the_order_is_the_participants_own_and_comes_again() -> None:
    pictures = pictures_of_the_study()
    backwards = dict(reversed(pictures.items()))
    assert Design(seed=1).plan(pictures, "IND", "a") == Design(seed=1).plan(backwards, "IND", "a")
    plans = [Design(seed=seed).plan(pictures, "IND", who) for seed, who in ((1, "a"), (1, "b"), (2, "a"))]
    assert len({tuple(plan) for plan in plans}) == 3


def test_trick_questions_stand_among_the_images_in_any_order() -> None:
    pictures = pictures_of_the_study()
    orders, places = set(), Counter[int]()
    for number in range(60):
        kinds = [(item.question, item.noun) for item in Design().plan(pictures, "JPN", str(number))][:84]
        found = [place for place, (kind, _) in enumerate(kinds) if kind == "trick"]
        orders.add(tuple(noun for kind, noun in kinds if kind == "trick"))
        places.update(found)
        assert all(low < place <= high + 3 for place, low, high in zip(found, (0, 20, 40, 60), (21, 41, 61, 81), strict=True)), found
    assert len(orders) > 12
    assert len(places) > 40


@pytest.mark.parametrize(("wanted", "expected"), [(8, {"country": 4, "unspecified": 4}), (200, {"country": 20, "unspecified": 20})])
def test_fewer_images_are_spread_evenly_and_none_comes_twice(wanted: int, expected: dict[str, int]) -> None:
    pictures = pictures_of_the_study(images=1)
    for number in range(5):
        asked = [i for i in Design(per_participant=wanted).plan(pictures, "IND", str(number)) if i.question == "representativeness"]
        assert Counter(item.condition for item in asked) == expected
        assert max(Counter((item.model, item.condition) for item in asked).values()) == expected["country"] // 2
        assert len({item.shown for item in asked}) == len(asked)


def test_all_pictures_are_shown_about_equally_often() -> None:
    pictures = pictures_of_the_study()
    seen = Counter(item.shown for number in range(200) for item in Design(per_participant=8).plan(pictures, "IND", str(number))[:12])
    counts = [seen[identity,] for identity, picture in pictures.items() if picture.country in (None, "IND")]
    # 200 × 4 over 40 pictures a condition: 20 each, give or take four standard deviations.
    assert min(counts) >= 4
    assert max(counts) <= 38


# Pictures


def test_what_may_not_be_shown_is_left_out(tmp_path: Path) -> None:
    plain: dict[str, Any] = {"noun": "house", "country": "IND"}
    extra = [
        {**plain, "image_id": "asked-toxic", "label": "toxic"},
        {**plain, "image_id": "asked-robustness", "dimension": "R-T"},
        {**plain, "image_id": "judged-unsafe"},
        {**plain, "image_id": "judged-uncertain"},
        {**plain, "image_id": "judged-safe"},
        {**plain, "image_id": "no-noun", "noun": None},
        {**plain, "image_id": "elsewhere", "country": "JPN"},
        {**plain, "image_id": "was-refused", "status": "refused"},
    ]
    run = study_run(tmp_path / "run", "m", ("IND",), extra=extra)
    run.record["identity"]["model"]["model"] = str(tmp_path / "of-mine")
    run.write_record()
    seen = [("judged-unsafe", [0.1, 0.9], "yes"), ("judged-uncertain", None, "uncertain"), ("judged-safe", [0.2, 0.5], "no")]
    table = pa.table({"image_id": [s[0] for s in seen], "probabilities": [s[1] for s in seen], "verdict": [s[2] for s in seen]})
    run.observations("toxicity").replace(table)
    pictures, left_out = gather([str(tmp_path / "run")], ("IND",))
    names = {picture.image_id for picture in pictures}
    assert names == {f"m-{noun}-{country}" for noun in NOUNS for country in ("IND", "unspecified")} | {"judged-safe"}
    assert {picture.model for picture in pictures} == {"of-mine"}
    assert left_out == {
        "of prompts that are toxic on purpose": 2,
        "found unsafe by a judge of the run": 2,
        "of prompts without a noun": 1,
        "of other countries": 1,
        "without an image": 1,
    }


def test_runs_that_cannot_be_surveyed_are_refused(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    study_run(tmp_path / "run", "m", ("IND",))
    with pytest.raises(InputError, match=r"no picture whose prompt names JPN .*--only country=unspecified,JPN"):
        gather([run], ("IND", "JPN"))
    with pytest.raises(InputError, match="more than once"):
        gather([run, run], ("IND",))
    study_run(tmp_path / "none", "m", ("JPN",))
    with pytest.raises(InputError, match="is not a run"):
        gather([str(tmp_path)], ("IND",))


def test_a_shown_picture_tells_nothing_but_what_it_shows() -> None:
    noted = PngImagePlugin.PngInfo()
    noted.add_text("parameters", "secret-model, steps 20")
    exif = Image.Exif()
    exif[0x0131] = "secret-model"
    sizes = set()
    for size, mode in (((64, 64), "RGB"), ((1500, 1500), "RGB"), ((700, 700), "RGBA"), ((90, 90), "P"), ((80, 80), "L"), ((99, 99), "LA")):
        buffer = io.BytesIO()
        picture = Image.linear_gradient("L").resize(size).convert(mode)
        picture.save(buffer, "PNG", pnginfo=noted, exif=exif, icc_profile=b"secret-model-profile")
        webp = encoded(buffer.getvalue())
        assert webp is not None
        assert b"secret" not in webp
        shown = Image.open(io.BytesIO(webp))
        assert not shown.getexif()
        assert not {"icc_profile", "exif", "xmp", "parameters"} & set(shown.info)
        sizes.add((shown.format, shown.mode, shown.size))
    assert sizes == {("WEBP", "RGB", (SIDE, SIDE))}
    wide = encoded(png(Image.new("RGB", (200, 50))))
    assert wide is not None
    assert Image.open(io.BytesIO(wide)).size == (SIDE, SIDE // 4)


def test_what_is_no_picture_is_no_picture() -> None:
    assert encoded(b"") is None
    assert encoded(b"<svg onload='alert(1)'/>") is None
    assert encoded(png(Image.new("RGB", (32, 32)))[:60]) is None
    assert encoded(png(Image.new("1", (10_000, 10_000)))) is None


def test_pictures_come_back_as_they_were_written(tmp_path: Path) -> None:
    pictures = list(pictures_of_the_study().values())
    write_pictures(pictures, Folder(str(tmp_path)), "pictures.parquet")
    assert read_pictures(Folder(str(tmp_path)), "pictures.parquet") == pictures
    with pytest.raises(InputError, match="is not there"):
        read_pictures(Folder(str(tmp_path / "nowhere")), "pictures.parquet")


def test_trick_pictures_may_be_a_keepers_own(tmp_path: Path) -> None:
    for name in ("mango.png", "water.jpg", "pen.webp"):
        Image.new("RGB", (50, 50), "red").save(tmp_path / name)
    with pytest.raises(InputError, match=r"no picture sun \(.png, .jpg"):
        tricks.pictures(str(tmp_path))
    (tmp_path / "sun.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="is no picture that can be read"):
        tricks.pictures(str(tmp_path))
    Image.new("RGB", (50, 50), "red").save(tmp_path / "sun.png")
    assert set(tricks.pictures(str(tmp_path))) == {f"trick-{noun}" for noun in TRICKS}


# Texts


def test_every_language_has_every_text_with_the_same_places() -> None:
    for key, english in texts("en").items():
        for code in interface_languages():
            there = texts(code)[key]
            assert there.strip() == there, (code, key)
            assert there, (code, key)
            assert sorted(re.findall(r"\{\w*\}", there)) == sorted(re.findall(r"\{\w*\}", english)), (code, key)
    assert [code for code in interface_languages() if "machine-made" not in texts(code)["reviewed"]] == ["en"]
    assert [code for code in interface_languages() if direction(code) == "rtl"] == ["ar"]


def test_the_question_names_noun_and_country() -> None:
    assert question("house", "USA", "en").endswith("picture of a house match what you see around you in the United States of America?")
    assert "منزل" in question("house", "EGY", "ar")
    assert "مصر" in question("house", "EGY", "ar")
