"""Culture tags: one phrase a culture, twins that are the original text, and prompts that are not neutral left out."""

from __future__ import annotations

from collections import Counter

import pytest

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.controls import Control, control_of, culture_tags, rows_of, transliteration
from t2i_parity.dataset_builder.controls.culture_tags import CULTURES, names_a_culture, tagged
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import LINGT2I_LANGUAGES
from t2i_parity.dataset_builder.schema import table
from t2i_parity.metrics.culture_alignment.core import KNOWN, WESTERN


@pytest.fixture(scope="module")
def content() -> list[dict]:
    return rows_of(starter.tables()["lingt2i_content"])


def test_every_language_has_a_culture_that_the_metric_knows() -> None:
    assert tuple(CULTURES) == LINGT2I_LANGUAGES
    assert {culture.expected for culture in CULTURES.values()} <= set(KNOWN)
    assert CULTURES["en"].expected in WESTERN
    assert CULTURES["hi"].phrase == "in Hindi style"
    assert len({culture.phrase for culture in CULTURES.values()}) == 10
    assert all(names_a_culture(culture.phrase) for culture in CULTURES.values())


def test_the_tag_stands_at_the_end() -> None:
    assert tagged("Woman statue with seahorses sitting", "in Hindi style") == "Woman statue with seahorses sitting, in Hindi style"
    assert tagged("A bridge. ", "in Korean style") == "A bridge, in Korean style."
    assert tagged("And then…", "in Korean style") == "And then…, in Korean style"
    assert tagged("And then...", "in Korean style") == "And then..., in Korean style"


@pytest.mark.parametrize(
    ("prompt", "named"),
    [
        ("A Japanese garden", True),
        ("A market in the Netherlands", True),
        ("Tea fields in Sri Lanka at dawn", True),
        ("An African grey parrot", True),
        ("A china cup beside a guinea pig", False),
        ("Turkey and mashed potatoes on a plate", False),
        ("An orange romanesco", False),
    ],
)
def test_prompts_that_name_a_culture(prompt: str, named: bool) -> None:
    assert names_a_culture(prompt) is named


def test_twins_and_tags(content: list[dict]) -> None:
    rows = list(culture_tags.derive(content, cultures=["hi", "ar"], dimension="TA-C"))
    sources = {row["prompt_id"]: row for row in content}
    counts = Counter(row["subset"] for row in rows)
    assert set(counts) == {"culture_neutral", "culture_tag_hi", "culture_tag_ar"}
    assert len(set(counts.values())) == 1
    for row in rows:
        source = sources[row["derived_from"]]
        assert source["language"] == row["language"] == "en"
        assert row["pair_id"] == source["pair_id"]
        assert not names_a_culture(source["prompt"])
        if row["subset"] == "culture_neutral":
            assert row["prompt"] == source["prompt"]
            assert row["derivation"] == "verbatim"
        else:
            assert row["prompt"].startswith(source["prompt"].rstrip("."))
            assert row["derivation"] == "culture_tagged"
    assert len(table("lingt2i_content", [*content, *rows])) == len(content) + len(rows)
    with pytest.raises(InputError, match="no English prompt"):
        list(culture_tags.derive(rows))


def test_varieties_and_text_rendering_are_passed_over() -> None:
    dialect = rows_of(starter.tables()["dialect"])
    made = list(culture_tags.derive(dialect, cultures=["ja"]))
    assert {row["variety"] for row in made} == {"SAE"}
    with pytest.raises(InputError, match="no English prompt"):
        list(culture_tags.derive(rows_of(starter.tables()["lingt2i_text"])))
    with pytest.raises(InputError, match="unknown culture 'de': expected one of en, zh"):
        list(culture_tags.derive(dialect, cultures=["de"]))


def test_a_control_is_known_by_its_derivation_whatever_its_subset_is_called(content: list[dict]) -> None:
    made = [*culture_tags.derive(content), *transliteration.derive(content, languages=["ar"])]
    known = [control_of(row) for row in made]
    assert {control.kind for control in known if control} == {"culture_tagged", "culture_neutral", "transliterated"}
    assert {control.of for control in known if control and control.kind == "culture_tagged"} == set(CULTURES)
    assert [control_of({**row, "subset": "mine"}) for row in made] == known
    # Runs of version 0.1 hold no derivation; there the subset tells.
    assert [control_of({**row, "derivation": None, "derived_from": None}) for row in made] == known
    assert control_of({"derivation": "typo_perturbed", "prompt_id": "x", "derived_from": "p", "subset": "mine"}) == Control(
        "typo_perturbed"
    )


def test_no_row_of_an_edition_is_taken_for_a_control() -> None:
    for name, prompts in starter.tables().items():
        assert [row["prompt_id"] for row in rows_of(prompts) if control_of(row) is not None] == [], name
