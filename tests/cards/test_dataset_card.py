"""The dataset card, its plot and ``croissant.json``: what they say is what the rows say, and rows say nothing but text."""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from datasets import load_dataset
from markdown_it import MarkdownIt
from markdown_it.token import Token
from PIL import Image

from t2i_parity.cards.croissant import croissant_json, published
from t2i_parity.cards.dataset import STATISTICS, dataset_card, limits
from t2i_parity.cards.dataset_data import DataFile, DatasetCard, Spread
from t2i_parity.cards.environment import visible
from t2i_parity.dataset_builder import geo_published, starter
from t2i_parity.dataset_builder.describe import count_words, describe
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.dataset_builder.repository import write_repository
from t2i_parity.dataset_builder.schema import CONFIGS, table
from t2i_parity.dataset_builder.storage import decode_classes

HOSTILE = (
    "a|b <script>alert(1)</script> ](javascript:x) ![i](y) **b** `c` $d$ &lt; ~e~ \\| \u202ef\n---\nlicense: mit\n# g\n| h | 'i' \"j\": {k}"
)


def row(number: int = 0, **columns: Any) -> dict[str, Any]:
    return {
        "prompt_id": f"p{number}",
        "pair_id": f"m{number}",
        "prompt": "two red boats",
        "language": "en",
        "variety": "SAE",
        "subset": "dialect",
        "label": "benign",
        "category": "boats",
        "source": "somebody's boats",
        "source_id": str(number),
        "source_revision": "1",
        "license": "CC-BY-4.0",
        "derivation": "verbatim",
        "producer": "somebody",
        **columns,
    }


def text_row(number: int, **columns: Any) -> dict[str, Any]:
    plain = {name: value for name, value in row(number).items() if name not in ("label", "category", "variety")}
    return {**plain, "subset": "lingt2i_text", "dimension": "TR", "render_text": "boats", **columns}


def facts(rows: list[dict[str, Any]], config: str = "dialect", **options: Any) -> DatasetCard:
    file = DataFile(f"{config}/test-00000-of-00001.parquet", "0" * 64, 1)
    return describe({config: table(config, rows)}, {config: file}, **{"edition": "test", "split": "test", "gated": False, **options})


def front(readme: str) -> dict[str, Any]:
    assert readme.startswith("---\n")
    found = yaml.safe_load(readme[4 : readme.index("\n---\n", 4)])
    assert isinstance(found, dict)
    return found


def body(readme: str) -> str:
    return readme[readme.index("\n---\n", 4) + 5 :]


def parsed(readme: str) -> list[Token]:
    """The body as a reader of Markdown sees it, inline tokens beside the others."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body(readme))
    return [part for token in tokens for part in (token, *(token.children or []))]


def cells(readme: str) -> list[list[str]]:
    """Every table row as what stands in its cells."""
    rows: list[list[str]] = []
    tokens = MarkdownIt("commonmark").enable("table").parse(body(readme))
    for place, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        if token.type in ("td_open", "th_open"):
            rows[-1].append("".join(part.content for part in tokens[place + 1].children or []))
    return rows


@pytest.fixture(scope="module")
def readme(prompts: Path) -> str:
    return (prompts / "README.md").read_text(encoding="utf-8")


# What it says


def test_the_starter_card_names_everything(readme: str) -> None:
    found = cells(readme)
    for name, built in starter.tables().items():
        rows = decode_classes(built).to_pylist()
        (entry,) = [cell for cell in found if len(cell) == 8 and cell[0].split()[0] == name]
        assert entry[2] == f"{len(rows):,}"
        assert entry[3] == f"{len({row['pair_id'] for row in rows}):,}"
        assert entry[4].split() == sorted({row["language"] for row in rows})
        assert entry[5].split() == (sorted({row["variety"] for row in rows if row["variety"]}) or ["–"])
        assert entry[6] == ", ".join(sorted({row["license"] for row in rows}))
        assert entry[7] == "; ".join(sorted({row["source"] for row in rows}))
        made = {(row["derivation"], row["producer"]) for row in rows}
        for derivation, producer in made:
            count = sum((row["derivation"], row["producer"]) == (derivation, producer) for row in rows)
            assert [name, derivation, producer, f"{count:,}"] in found
    for code in front(readme)["language"]:
        assert f"{LANGUAGES[code].name} ({code})" in readme
    columns = {column.name: column.doc for config in CONFIGS.values() for column in config.all_columns}
    assert {cell[0]: cell[-1] for cell in found if cell[0] in columns and len(cell) in (2, 3)} == columns


def test_the_starter_card_tells_how_to_cite_and_what_is_harmful(readme: str) -> None:
    for number in ("2608.11002", "2608.29589", "2305.11080"):
        assert f"eprint = {{{number}}}" in re.sub(r" +", " ", readme)
        assert f"(https://arxiv.org/abs/{number})" in readme
    assert readme.count("\n@") == 4
    toxic = sum(row.get("label") == "toxic" for built in starter.tables().values() for row in decode_classes(built).to_pylist())
    assert f"{toxic:,} rows with `label` toxic" in readme
    assert "not-for-all-audiences" in front(readme)["tags"]


def test_benign_rows_need_no_warning() -> None:
    card = dataset_card(facts([row()]))
    assert "Content warning" not in card
    assert "not-for-all-audiences" not in front(card)["tags"]


def test_the_front_matter_is_what_load_dataset_reads(readme: str) -> None:
    found = front(readme)
    assert [entry["config_name"] for entry in found["configs"]] == [*CONFIGS, geo_published.NAME]
    assert [entry["config_name"] for entry in found["configs"] if entry.get("default")] == ["lingt2i_text"]
    features = {name: config.features() for name, config in CONFIGS.items()} | {geo_published.NAME: geo_published.features()}
    assert {entry["config_name"]: entry["features"] for entry in found["dataset_info"]} == {
        name: each._to_yaml_list() for name, each in features.items()
    }


def test_checks_are_counted() -> None:
    checks = [
        {"check": "spelling", "verdict": "pass", "score": 1.0, "by": "x"},
        {"check": "tone", "verdict": "fail", "score": None, "by": "y"},
    ]
    card = facts([row(0, checks=checks), row(1, checks=checks[:1]), row(2)])
    assert ["dialect", "spelling", "pass", "2"] in cells(dataset_card(card))
    assert ["dialect", "tone", "fail", "1"] in cells(dataset_card(card))
    assert "1 of 3 rows carry no check at all, neither by a person nor by a program." in limits(card)
    assert "No row carries a check." in dataset_card(facts([row()]))


def test_many_values_and_producers_are_cut_with_their_number() -> None:
    card = dataset_card(facts([row(number, category=f"c{number:03}", producer=f"who {number:03}") for number in range(60)]))
    assert "c039 1 · and 20 more |" in card
    assert ["dialect", "", "48 more", "48"] in cells(card)


# Statistics


def test_words_and_characters_are_those_counted_by_hand() -> None:
    card = facts(
        [
            text_row(0, prompt="a sign says HELLO", render_text="HELLO"),
            text_row(1, prompt="a red  sign", render_text="HI"),
            # a, sign, 你, 好, LED, 2, 灯: punctuation is no word.
            text_row(2, prompt="a sign “你好” LED 2 灯。", render_text="你好", language="zh"),
            text_row(3, prompt="ラーメン屋", render_text="屋", language="ja"),
        ],
        "lingt2i_text",
    )
    groups = {group.language: group for group in card.configs[0].groups}
    assert list(groups) == ["en", "zh", "ja"]
    assert (groups["en"].rows, groups["zh"].rows, groups["ja"].rows) == (2, 1, 1)
    assert groups["en"].words == Spread(3.5, 3, 4)
    assert groups["en"].characters == Spread(14.0, 11, 17)
    assert groups["en"].rendered == Spread(3.5, 2, 5)
    assert groups["zh"].words == Spread(7.0, 7, 7)
    assert groups["zh"].characters == Spread(20.0, 20, 20)
    assert groups["ja"].words == Spread(5.0, 5, 5)
    assert ["lingt2i_text", "English", "en", "2", "3.5 (3–4)", "14.0 (11–17)", "3.5 (2–5)"] in cells(dataset_card(card))


@pytest.mark.parametrize(("text", "words"), [("", 0), ("。！", 0), ("第3章", 3), ("iPhone 手机", 3), ("เด็ก", 3), ("a-b, c", 2)])
def test_words_where_scripts_set_no_spaces(text: str, words: int) -> None:
    assert count_words(text, spaced=False) == words


def test_values_are_counted_and_compared_between_groups() -> None:
    card = facts(
        [
            row(0, pair_id="m0"),
            row(1, pair_id="m0", variety="JamE"),
            row(2, pair_id="m1", label="toxic", category=None),
            row(3, pair_id="m1", label="toxic", category="theft", variety="JamE"),
        ]
    )
    counts = {entry.column: entry for entry in card.configs[0].counts}
    assert (card.rows, card.toxic, card.configs[0].meanings) == (4, 2, 2)
    assert (counts["label"].values, counts["label"].even) == ({"benign": 2, "toxic": 2}, True)
    assert (counts["category"].values, counts["category"].even) == ({"boats": 2, "theft": 1, None: 1}, False)
    assert [(group.code, group.name, dict(group.labels)) for group in card.configs[0].groups] == [
        ("SAE", "Standard American English", {"benign": 1, "toxic": 1}),
        ("JamE", "Jamaican English", {"benign": 1, "toxic": 1}),
    ]
    assert ["dialect", "category", "no", "boats 2 · theft 1 · null 1"] in cells(dataset_card(card))


def test_the_starter_statistics_are_those_of_its_rows(readme: str) -> None:
    built = [row for row in starter.tables()["geo"].to_pylist() if row["language"] == "en"]
    characters = [len(row["prompt"]) for row in built]
    words = [len(row["prompt"].split()) for row in built]
    told = [f"{sum(of) / len(of):.1f} ({min(of)}–{max(of)})" for of in (words, characters)]
    assert ["geo", "English", "en", f"{len(built)}", *told, "–"] in cells(readme)


# The plot


def test_the_plot_stands_beside_the_card(prompts: Path, readme: str) -> None:
    (image,) = [token for token in parsed(readme) if token.type == "image"]
    assert image.attrs["src"] == STATISTICS
    assert len(image.content) > 40
    root = ElementTree.fromstring((prompts / STATISTICS).read_bytes())
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {*CONFIGS, "Hindi", "arz", "Jamaican English", "120 + 60 toxic"} <= texts
    assert {element.tag.split("}")[1] for element in root.iter()} <= {
        "svg", "title", "desc", "defs", "g", "path", "text", "use", "clipPath", "rect",
    }  # fmt: skip


def test_the_plot_is_readable_on_light_and_dark_pages(prompts: Path) -> None:
    drawn = (prompts / STATISTICS).read_text(encoding="utf-8")
    assert "var(" not in drawn
    texts = set(re.findall(r"<text style=\"[^\"]*fill: (#[0-9a-f]{6})\b", drawn))
    marks = set(re.findall(r"#[0-9a-f]{6}\b", drawn)) - texts
    assert texts
    assert len(marks) == 2
    for page in ("#ffffff", "#0d1117"):
        assert all(_contrast(colour, page) >= 4.2 for colour in texts), page
        assert all(_contrast(colour, page) >= 3 for colour in marks), page


def _contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


# What rows may not do


def test_hostile_text_stays_text() -> None:
    card = facts(
        [
            row(0, license=HOSTILE, source=HOSTILE, source_revision=HOSTILE, producer=HOSTILE, category=HOSTILE, source_url=HOSTILE),
            row(1, source="linked", source_url="https://example.org/a_b?c=d"),
            row(2, source="script", source_url="javascript:alert(1)"),
            row(3, source="breaks out", source_url="https://example.org/>|](x"),
            row(4, checks=[{"check": HOSTILE, "verdict": HOSTILE, "score": None, "by": HOSTILE}]),
        ],
        edition=HOSTILE,
        gated=True,
    )
    readme = dataset_card(card)
    usual = dataset_card(facts([row(0), row(1, source="linked", source_url="https://example.org/a_b?c=d")], gated=True))
    tokens = parsed(readme)
    tags = {token.content for token in tokens if token.type in ("html_block", "html_inline")}
    assert tags == {token.content for token in parsed(usual) if token.type in ("html_block", "html_inline")}
    links = {token.attrs["href"] for token in tokens if token.type == "link_open"}
    assert links == {token.attrs["href"] for token in parsed(usual) if token.type == "link_open"}
    assert sum(token.type == "image" for token in tokens) == 1
    headings = [tokens[place + 1].content for place, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings[1:] == re.findall(r"^## (.*)$", usual, re.MULTILINE)
    assert not [token for token in tokens if token.type in ("em_open", "strong_open", "s_open", "hr")]
    code = {token.content for token in tokens if token.type == "code_inline"}
    assert code == {token.content for token in parsed(usual) if token.type == "code_inline"}

    shown = visible(" ".join(HOSTILE.split()))
    literal = [cell for found in cells(readme) for cell in found if cell == shown]
    # The producer, a check and its verdict, the licence, then a source with its revision and licence.
    assert len(literal) == 7
    widths = {len(found) for found in cells(readme)}
    assert widths == {len(found) for found in cells(usual)} | {4}
    assert "".join(part.content for part in tokens[1].children or []) == f"T2I Parity prompts, {shown} edition"


def test_hostile_text_stays_out_of_the_front_matter() -> None:
    found = front(dataset_card(facts([row(0, license=HOSTILE), row(1, license="MIT", producer=HOSTILE)], edition=HOSTILE)))
    usual = front(dataset_card(facts([row(0, license="CC-BY-4.0"), row(1, license="MIT")])))
    assert found.keys() == usual.keys()
    assert {name for name in found if found[name] != usual[name]} == {"license_name"}
    assert found["license"] == "other"
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", found["license_name"])


def test_hostile_text_stays_a_value_in_the_metadata() -> None:
    found = json.loads(croissant_json(facts([row(0, license=HOSTILE)], edition=HOSTILE)))
    assert found["license"] == [HOSTILE]
    assert found["name"] == f"T2I Parity prompts, {HOSTILE} edition"


# Licences


@pytest.mark.parametrize(
    ("licenses", "told"),
    [
        (["CC-BY-4.0"], {"license": "cc-by-4.0"}),
        (["cc-by-nc-sa-4.0"], {"license": "cc-by-nc-sa-4.0"}),
        (["MIT", "CC-BY-NC-SA-4.0"], {"license": "other", "license_name": "cc-by-nc-sa-4.0-and-mit", "license_link": "README.md#licences"}),
        (["unknown"], {"license": "other", "license_name": "unknown", "license_link": "README.md#licences"}),
        (["Own Terms v2"], {"license": "other", "license_name": "own-terms-v2", "license_link": "README.md#licences"}),
        (["版权"], {"license": "other", "license_name": "mixed", "license_link": "README.md#licences"}),
    ],
)
def test_the_front_matter_has_the_licence_or_where_to_read_of_them(licenses: list[str], told: dict[str, str]) -> None:
    readme = dataset_card(facts([row(number, license=each) for number, each in enumerate(licenses)]))
    assert {name: value for name, value in front(readme).items() if name.startswith("license")} == told
    assert "\n## Licences\n" in readme


def test_mixed_licences_are_told_with_what_they_ask() -> None:
    ids = ["CC-BY-4.0", "CC-BY-NC-SA-4.0", "CC-BY-ND-4.0", "ODbL-1.0", "CC0-1.0", "unknown", "Own Terms"]
    readme = dataset_card(facts([row(number, license=each) for number, each in enumerate(ids)]))
    asked = {cell[0]: cell[3] for cell in cells(readme) if len(cell) == 4 and cell[0] in ids}
    assert asked == {
        "CC-BY-4.0": "name the source",
        "CC-BY-NC-SA-4.0": "name the source; share alike; no commercial use",
        "CC-BY-ND-4.0": "name the source; no changed versions",
        "ODbL-1.0": "name the source; share alike",
        "CC0-1.0": "no conditions",
        "unknown": "no licence stated: ask the authors before you pass rows on",
        "Own Terms": "see its text",
    }
    assert "**Share alike** (CC-BY-NC-SA-4.0, ODbL-1.0)" in readme
    assert "**No commercial use** (CC-BY-NC-SA-4.0)" in readme
    assert "**No changed versions** (CC-BY-ND-4.0)" in readme
    assert "**No licence stated** (1 row)" in readme
    assert "(<https://creativecommons.org/licenses/by-nc-sa/4.0/>)" in readme


def test_one_free_licence_asks_no_more_than_its_row_says(readme: str) -> None:
    for words in ("Share alike", "No commercial use", "No changed versions", "No licence stated"):
        assert words not in readme


# The gate


def test_a_gated_card_asks_for_agreement() -> None:
    found = front(dataset_card(facts([row(0), row(1, label="toxic")], gated=True)))
    assert found["extra_gated_heading"]
    assert found["extra_gated_button_content"]
    assert found["extra_gated_prompt"].startswith("1 of these 2 prompts are harmful on purpose")
    assert set(found["extra_gated_fields"].values()) == {"text", "checkbox"}
    assert not [name for name in front(dataset_card(facts([row(1, label="toxic")]))) if name.startswith("extra_gated")]
    assert "harmful on purpose" not in front(dataset_card(facts([row()], gated=True)))["extra_gated_prompt"]


def test_a_gated_repository_of_mixed_licences_loads(tmp_path: Path) -> None:
    tables = {"dialect": table("dialect", [row(0, license=HOSTILE, producer=HOSTILE), row(1, license="MIT", label="toxic")])}
    write_repository(tables, tmp_path / "out", edition="test", gated=True)
    loaded = load_dataset(str(tmp_path / "out"), "dialect", split="test")
    assert loaded["license"][:] == [HOSTILE, "MIT"]
    streamed = load_dataset(str(tmp_path / "out"), "dialect", split="test", streaming=True)
    assert [row["producer"] for row in streamed] == [HOSTILE, "somebody"]


# The files


def test_the_same_rows_give_the_same_bytes(tmp_path: Path) -> None:
    tables = {"dialect": table("dialect", [row(0), row(1, variety="JamE")]), "lingt2i_text": table("lingt2i_text", [text_row(2)])}
    written = []
    for name, given in (("one", tables), ("two", dict(reversed(tables.items())))):
        paths = write_repository(given, tmp_path / name, edition="test")
        assert all(path.is_file() for path in paths)
        written.append({path.relative_to(tmp_path / name).as_posix(): path.read_bytes() for path in paths})
    assert written[0] == written[1]
    assert set(written[0]) == {
        "README.md",
        "croissant.json",
        "eval.yaml",
        STATISTICS,
        "dialect/test-00000-of-00001.parquet",
        "lingt2i_text/test-00000-of-00001.parquet",
    }


def test_the_metadata_has_every_file_and_column(prompts: Path) -> None:
    found = json.loads((prompts / "croissant.json").read_text(encoding="utf-8"))
    for file in found["distribution"]:
        content = (prompts / file["contentUrl"]).read_bytes()
        assert file["sha256"] == hashlib.sha256(content).hexdigest()
        assert file["contentSize"] == f"{len(content)} B"
    records = {entry["@id"]: entry for entry in found["recordSet"]}
    for name, config in CONFIGS.items():
        fields = {field["@id"]: field for field in records[name]["field"]}
        assert list(fields) == [f"{name}/{column.name}" for column in config.all_columns]
        for column in config.all_columns:
            assert fields[f"{name}/{column.name}"]["description"] == column.doc
            if isinstance(column.kind, tuple):
                values = [entry[f"{column.name}/name"] for entry in records[column.name]["data"]]
                assert values == list(column.kind)
    fields = {field["@id"]: field["description"] for field in records[geo_published.NAME]["field"]}
    assert fields == {f"{geo_published.NAME}/{column.name}": column.doc for column in geo_published.COLUMNS}
    assert found["license"] == ["https://creativecommons.org/licenses/by/4.0/"]
    assert "@misc{t2iparity2026" in found["citeAs"]


@pytest.fixture(scope="module")
def croissant() -> Any:
    return pytest.importorskip("mlcroissant", reason="mlcroissant is not installed: pip install mlcroissant")


def test_the_metadata_is_valid_and_its_records_are_the_rows(croissant: Any, prompts: Path) -> None:
    dataset = croissant.Dataset(prompts / "croissant.json")
    issues = dataset.metadata.ctx.issues
    assert not issues.errors
    # Known once it is published.
    assert all("datePublished" in warning or "version" in warning for warning in issues.warnings)
    for name in CONFIGS:
        rows = starter.tables()[name].drop_columns([column for column in ("condition_image",) if name == "lingt2i_text"]).to_pylist()
        records = [
            {key.split("/")[1]: value.decode() if isinstance(value, bytes) else value for key, value in record.items()}
            for record in dataset.records(name)
        ]
        assert [{key: value for key, value in record.items() if key != "condition_image"} for record in records] == rows
    values = [record[f"{geo_published.NAME}/value"] for record in dataset.records(geo_published.NAME)]
    assert values == geo_published.table()["value"].to_pylist()


def test_published_metadata_lacks_nothing(croissant: Any, prompts: Path) -> None:
    found = json.loads((prompts / "croissant.json").read_text(encoding="utf-8"))
    whole = published(found, url="https://example.org/datasets/x", date="2026-11-30", version="1.0.0")
    issues = croissant.Dataset(whole).metadata.ctx.issues
    assert not issues.errors
    assert not issues.warnings


def test_pictures_and_checks_are_records_too(croissant: Any, tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (3, 2), "red").save(picture, "PNG")
    checks = [{"check": "a", "verdict": "pass", "score": 0.5, "by": "x"}, {"check": "b", "verdict": "fail", "score": None, "by": "y"}]
    rows = [text_row(0, condition_image={"bytes": picture.getvalue(), "path": None}, checks=checks), text_row(1)]
    write_repository({"lingt2i_text": table("lingt2i_text", rows)}, tmp_path / "out", edition=HOSTILE)
    first, second = croissant.Dataset(tmp_path / "out" / "croissant.json").records("lingt2i_text")
    assert first["lingt2i_text/condition_image"].size == (3, 2)
    assert second["lingt2i_text/condition_image"] is None
    told = [{key.split("/")[-1]: value for key, value in check.items()} for check in first["lingt2i_text/checks"]]
    assert told == [
        {"check": b"a", "verdict": b"pass", "score": 0.5, "by": b"x"},
        {"check": b"b", "verdict": b"fail", "score": None, "by": b"y"},
    ]


def test_a_changed_file_is_noticed(croissant: Any, tmp_path: Path) -> None:
    write_repository({"dialect": table("dialect", [row()])}, tmp_path / "out", edition="test")
    path = tmp_path / "out" / "dialect" / "test-00000-of-00001.parquet"
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(croissant.GenerationError):
        list(croissant.Dataset(tmp_path / "out" / "croissant.json").records("dialect"))


def test_a_card_of_other_facts_differs() -> None:
    card = facts([row()])
    assert dataset_card(card) != dataset_card(replace(card, edition="other"))
