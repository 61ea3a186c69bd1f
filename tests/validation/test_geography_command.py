"""``t2i-parity geography`` through the command: the study's printed means, ratings, pages, maps, and what it refuses."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.stats
from browser import chromium, faults, low_contrast, show
from commands import command, error_of
from geography_study import ratings, truth

from t2i_parity.cards.maps import drawn, world_map
from t2i_parity.dataset_builder.countries import COUNTRIES, countries
from t2i_parity.dataset_builder.geo_published import published as printed
from t2i_parity.validation.geography.figures import RICH_WEST, figures
from t2i_parity.validation.survey.ratings import SCHEMA, TRICKS


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("published")
    return folder, command("geography", "--published", "--out", folder).stdout


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rated")
    (folder / "in" / "ratings").mkdir(parents=True)
    codes = ("IND", "JPN", "USA", "SGP", "TUV")
    pq.write_table(ratings(truth(1, codes, images=1), 0, per_country=4)[0], folder / "in" / "ratings" / "part-0.parquet")
    command("geography", folder / "in", "--out", folder / "out", "--cover", "contacted", "--power", "0.25")
    return folder


def answers(folder: Path) -> dict[str, dict[str, Any]]:
    found = json.loads((folder / "geography.json").read_text(encoding="utf-8"))["answers"]
    return {f"{each['item']}, {each['statistic']}": each for each in found}


def test_the_studys_derived_figures_come_out_of_its_table(published: tuple[Path, str]) -> None:
    folder, shown = published
    found = answers(folder)

    def value(item: str) -> float:
        return float(found[item]["value"])

    assert value("unspecified, mean over countries, mean") == pytest.approx(2.39, abs=0.005)
    assert value("with country, mean over countries, mean") == pytest.approx(3.49, abs=0.005)
    below = found["countries below 3, unspecified, count"]
    assert (below["value"], below["n"], below["names"]) == (25, 27, ["USA", "IND"])
    assert found["highest, unspecified, GR"]["names"] == ["USA"]
    assert found["lowest, unspecified, GR"]["names"] == ["GRC"]
    assert value("population, Pearson r") == pytest.approx(0.64, abs=0.005)
    gdp, west = found["GDP per capita, Pearson r"], found["rich West less the others, difference, Welch's t"]
    assert gdp["value"] == pytest.approx(-0.157, abs=0.0005)
    assert min(gdp["p"], west["p"]) > 0.05
    means = {each.country: each.value for each in printed() if each.model == "overall" and each.condition == "unspecified" and each.country}
    sides = [[value for code, value in means.items() if (code in RICH_WEST) == rich] for rich in (True, False)]
    assert west["p"] == pytest.approx(scipy.stats.ttest_ind(*sides, equal_var=False).pvalue, rel=1e-6)
    assert value("gain by naming the country, DALL·E 2, difference, paired t") == pytest.approx(1.44, abs=0.005)
    assert value("gain by naming the country, Stable Diffusion, difference, paired t") == pytest.approx(0.75, abs=0.01)
    assert all(found[f"gain by naming the country, {name}, difference, paired t"]["p"] < 1e-9 for name in ("all models", "DALL·E 2"))
    assert value("countries that gain, count") == 27
    assert value("countries from 3 to 3.5, with country, count") == 14
    for model, condition, stated in (
        ("DALL·E 2", "unspecified", 0.21),
        ("DALL·E 2", "with country", 0.57),
        ("Stable Diffusion", "with country", 0.47),
        ("Stable Diffusion", "unspecified", 0.608),
    ):
        assert value(f"GR and realism, {model}, {condition}, Pearson r") == pytest.approx(stated, abs=0.005)
    assert found["realism gained by naming the country, difference, paired t"]["p"] < 0.05
    models = found["DALL·E 2 less Stable Diffusion, with country, difference, paired t"]
    assert models["value"] == pytest.approx(0.6, abs=0.02)
    assert models["p"] < 0.001
    assert "2019" in (folder / "index.html").read_text(encoding="utf-8")
    assert "goes with population (r = 0.64" in shown
    assert "shows no significant correlation with GDP per capita" in shown


def test_what_printed_means_cannot_tell_is_left_out_and_said(published: tuple[Path, str]) -> None:
    folder, _ = published
    analysis = json.loads((folder / "geography.json").read_text(encoding="utf-8"))
    assert (analysis["agreement"], analysis["spread"], analysis["pooling"], analysis["proxies"]) == (None, None, [], [])
    assert any("cannot be computed" in note for note in analysis["notes"])
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Agreement among raters" not in page
    cells = list(csv.DictReader((folder / "tables.csv").read_text(encoding="utf-8").splitlines()))
    usa = next(cell for cell in cells if cell["country"] == "USA" and not cell["model"] and cell["condition"] == "country")
    assert (float(usa["value"]), float(usa["low"]), float(usa["high"])) == pytest.approx((3.54, 3.31, 3.77))


def test_ratings_become_json_tables_and_a_page(rated: Path) -> None:
    analysis = json.loads((rated / "out" / "geography.json").read_text(encoding="utf-8"))
    assert analysis["source"] == "in"
    assert analysis["countries"] == ["USA", "JPN", "IND", "SGP", "TUV"]
    assert {each["half_width"] for each in analysis["needed"]} == {0.25}
    assert len(analysis["pooling"][0]["estimates"]) == len({*countries("contacted"), "TUV"})
    page = (rated / "out" / "index.html").read_text(encoding="utf-8")
    for anchor in ("findings", "maps", "plots", "questions", "tables", "agreement", "over-representation", "pooling", "power"):
        assert f'id="{anchor}"' in page
    assert str(rated) not in page
    # Too small for the shapes: a dot, or, where there is not even that, said in words.
    assert page.count("<circle") == 2
    assert "Not on the map: <bdi>TUV</bdi>." in page
    again = command("geography", rated / "in", "--out", rated / "again", "--cover", "contacted", "--power", "0.25")
    assert again.returncode == 0
    for name in ("index.html", "geography.json", "tables.csv"):
        assert (rated / "again" / name).read_bytes() == (rated / "out" / name).read_bytes()


def test_texts_of_others_stay_texts(tmp_path: Path) -> None:
    table = ratings(truth(1, ("IND", "JPN", "USA"), images=1), 0, per_country=3)[0]
    names = {"one": "<script>alert(1)</script>", "two": "[red]two\u202e[/red]"}
    rows = [
        {**row, "model": names.get(row["model"]), "noun": "<b>&" if row["noun"] == "city" else row["noun"]} for row in table.to_pylist()
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), tmp_path / "part-0.parquet")
    done = command("geography", tmp_path, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "index.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<b>&" not in page
    assert "&lt;b&gt;&amp;" in page
    assert "\u202e" not in page
    assert "[red]two⟨U+202E⟩[/red] less" in done.stdout or "less [red]two⟨U+202E⟩[/red]" in done.stdout


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as driver:
        yield driver


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (390, "light")])
def test_the_page_stands_in_a_browser(browser: Any, rated: Path, width: int, scheme: str) -> None:
    show(browser, rated / "out" / "index.html", width=width, scheme=scheme)
    assert faults(browser) == []
    measured, low = low_contrast(browser)
    assert measured > 200
    assert low == []
    box = browser.execute_script("return document.querySelector('svg.map').getBoundingClientRect().toJSON()")
    assert 2 < box["width"] / box["height"] < 2.5
    drawn_shapes = browser.execute_script(
        "return [...document.querySelectorAll('svg.map use')].every(u => u.getBoundingClientRect().width > 0)"
    )
    assert drawn_shapes
    shown = [browser.execute_script(f"return document.querySelector('.{name}').getClientRects().length") for name in ("broad", "narrow")]
    assert [bool(n) for n in shown] == [width > 760, width <= 760]


def test_maps_show_every_studied_country_and_higher_values_stronger() -> None:
    assert set(COUNTRIES) <= drawn()
    assert set(countries("contacted")) <= drawn()
    made = world_map("m", {"IND": 1.0, "USA": 3.0, "JPN": 5.0, "XXX": 2.0}, (1, 5), "a <label>", {"IND": "In<dia"})
    opacity = {name: float(value) for value, name in re.findall(r"fill-opacity: ([\d.]+)\"><title>([^:]+):", made.svg)}
    assert opacity["In&lt;dia"] < opacity["USA"] < opacity["JPN"] == 1
    assert made.not_shown == ["XXX"]
    assert "a &lt;label&gt;" in made.svg


def test_figures_have_every_studied_and_contacted_country() -> None:
    known = figures()
    assert all(known[code].population and known[code].gdp_per_capita for code in countries("contacted"))
    assert set(known) <= set(countries("all"))
    assert set(countries("all")) >= RICH_WEST
    assert len(RICH_WEST & set(COUNTRIES)) == 14
    assert (known["IND"].population, known["USA"].population) == (1366417754, 328239523)


def test_power_alone_needs_no_ratings() -> None:
    assert "± 0.3: 18 participants a country" in command("geography", "--power", "0.3", "--deviation", "0.6").stdout
    assert "--deviation" in error_of("geography", "--power", "0.3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give either a folder of ratings, or --published"),
        (("somewhere", "--published"), "give either"),
        (("--published", "--cover", "all"), "need single ratings"),
        (("somewhere", "--cover", "most"), "expected one of studied, contacted, all"),
        (("somewhere", "--deviation", "0.6"), "--deviation goes with --power alone"),
        (("--power", "0", "--deviation", "0.6"), "above 0"),
        (("/nowhere/at/all",), "no ratings there"),
    ],
)
def test_what_cannot_be_done_is_told(arguments: tuple[str, ...], message: str) -> None:
    assert message in error_of("geography", *arguments)


def test_runs_without_observations_are_told(rated: Path, tmp_path: Path) -> None:
    from picture_runs import noise, picture_run

    run = picture_run(tmp_path / "run", [{"noun": "house"}], [noise(0)])
    assert "--with clip-countries --with features" in error_of("geography", rated / "in", "--run", run.url)
    assert "is not a run" in error_of("geography", rated / "in", "--run", rated / "in")
    assert "level of the intervals" in error_of("geography", rated / "in", "--level", "1.5")


def test_what_the_survey_wrote_is_analysed(tmp_path: Path) -> None:
    from t2i_parity.validation.survey.pictures import Picture
    from t2i_parity.validation.survey.service import Settings, Survey
    from t2i_parity.validation.survey.storage import Answers, Secret
    from t2i_parity.validation.survey.study import Design

    codes = ("IND", "EGY", "JPN")
    pictures = [
        Picture(f"{model}-{noun}-{country}", f"geo-{noun}", noun, country, model, f"run-{model}", b"webp")
        for model in ("D2", "SD")
        for noun in ("house", "beach")
        for country in (None, *codes)
    ]
    out = tmp_path / "answers"
    with Answers(out).opened() as kept:
        survey = Survey(
            Settings(codes, Design(per_participant=8), 4), pictures, {f"trick-{noun}": b"webp" for noun in TRICKS}, kept, Secret.of(out)
        )
        for code in codes:
            for number in range(4):
                _, session = survey.begin(code)
                for order, item in enumerate(session.items):
                    trick = TRICKS[str(item.noun)] if item.question == "trick" else None
                    careless = code == "EGY" and number == 3
                    high = trick is not None and trick.high != careless
                    rating = (5 if high else 1) if trick else 4 if item.condition == "country" else 2 + (number + order) % 2
                    survey.answer(session, order, rating, "ar")
    command("geography", out, "--out", tmp_path / "out")
    found = json.loads((tmp_path / "out" / "geography.json").read_text(encoding="utf-8"))
    assert (found["participants"], len(found["excluded"]), found["ratings"]) == (12, 1, 11 * 8)
    named = next(cell for cell in found["cells"] if (cell["country"], cell["model"], cell["condition"]) == ("EGY", None, "country"))
    assert (named["value"], named["participants"]) == (4.0, 3)
