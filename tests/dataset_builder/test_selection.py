"""Choosing rows: by what they are, evenly, and the sample that is the same everywhere."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.selection import draw, mini_pairs, select_rows, select_table
from t2i_parity.dataset_builder.storage import decode_classes


def prompts(pairs: int, languages: tuple[str, ...] = ("en", "hi", "ar"), dimension: str = "TA-C") -> list[dict]:
    return [
        {
            "prompt_id": f"{dimension}-{pair}-{code}",
            "pair_id": f"{dimension}-{pair}",
            "language": code,
            "variety": None,
            "dimension": dimension,
        }
        for pair in range(pairs)
        for code in languages
    ]


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    return starter.tables()


def test_a_limit_takes_whole_pairs_first() -> None:
    chosen = select_rows(prompts(4), limit=7)
    assert [row["prompt_id"] for row in chosen] == [
        "TA-C-0-en", "TA-C-0-hi", "TA-C-0-ar", "TA-C-1-en", "TA-C-1-hi", "TA-C-1-ar", "TA-C-2-en",
    ]  # fmt: skip
    assert select_rows(prompts(4), languages=["hi"], limit=2) == [prompts(4)[1], prompts(4)[4]]
    assert select_rows(prompts(2), limit=99) == prompts(2)


def test_a_limit_is_spread_over_varieties_labels_and_countries(tables: dict[str, pa.Table]) -> None:
    chosen = select_table(tables["dialect"], limit=48)
    assert set(Counter(zip(chosen["variety"].to_pylist(), chosen["label"].to_pylist(), strict=True)).values()) == {4}
    chosen = select_table(tables["geo"], limit=56)
    assert set(Counter(chosen["country"].to_pylist()).values()) == {2}


def test_rows_are_chosen_by_every_respect(tables: dict[str, pa.Table]) -> None:
    content, dialect, geo = tables["lingt2i_content"], tables["dialect"], tables["geo"]
    assert set(select_table(content, branches=["Romance"])["language"].to_pylist()) == {"es", "fr", "pt"}
    assert set(select_table(content, scripts=["Arab", "Deva"])["language"].to_pylist()) == {"ar", "hi"}
    assert set(select_table(content, dimensions=["TA-C"], languages=["ko"])["dimension"].to_pylist()) == {"TA-C"}
    toxic = select_table(dialect, labels=["toxic"], varieties=["AAVE", "SAE"])
    assert toxic.schema == dialect.schema
    assert Counter(zip(toxic["variety"].to_pylist(), toxic["label"].to_pylist(), strict=True)) == {("SAE", 1): 60, ("AAVE", 1): 60}
    assert len(select_table(geo, countries=["JPN", "unspecified"])) == 20
    category = decode_classes(dialect)["category"][0].as_py()
    assert set(select_table(dialect, categories=[category])["category"].to_pylist()) == {category}
    assert len(select_table(geo, subsets=["geo"])) == len(geo)
    assert select_table(geo).equals(geo)


def test_what_the_rows_do_not_have_is_told(tables: dict[str, pa.Table]) -> None:
    with pytest.raises(InputError, match="unknown language 'xx': these prompts are in en, hi, ar"):
        select_rows(prompts(1), languages=["xx"])
    with pytest.raises(InputError, match="unknown country 'XXX': these prompts are in unspecified, USA"):
        select_table(tables["geo"], countries=["XXX"])
    with pytest.raises(InputError, match="from 1 on, got 0"):
        select_rows(prompts(1), limit=0)


def test_mini_holds_whole_pairs_and_every_cell(tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        rows = decode_classes(table).to_pylist()
        chosen = select_rows(rows, mini=True)
        pairs = {row["pair_id"] for row in chosen}
        assert chosen == [row for row in rows if row["pair_id"] in pairs], name
        for column in ("dimension", "label", "category", "language", "variety"):
            assert {row.get(column) for row in chosen} == {row.get(column) for row in rows}, (name, column)
    assert 0.08 < len(select_table(tables["lingt2i_content"], mini=True)) / len(tables["lingt2i_content"]) < 0.2


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_mini_is_stable(seed: int, pairs: int) -> None:
    rows = [*prompts(pairs), *prompts(pairs, dimension="R-B")]
    chosen = {row["prompt_id"] for row in select_rows(rows, mini=True)}
    shuffled = random.Random(seed).sample(rows, len(rows))
    assert {row["prompt_id"] for row in select_rows(shuffled, mini=True)} == chosen
    # Asking for one language gives that language's rows of the same pairs.
    hindi = {row["prompt_id"] for row in select_rows(rows, languages=["hi"], mini=True)}
    assert hindi == {prompt for prompt in chosen if prompt.endswith("-hi")}
    # A larger edition keeps every pair that is not there only to fill an empty cell.
    larger = mini_pairs([*rows, *prompts(pairs + 40), *prompts(3, dimension="D-K")])
    assert {pair for pair in mini_pairs(rows) if draw(pair) < 0.1} <= larger


def test_mini_is_a_tenth_of_many() -> None:
    rows = prompts(5_000, ("en",))
    chosen = select_rows(rows, mini=True)
    assert 430 < len(chosen) < 570
    assert {row["pair_id"] for row in chosen} == {row["pair_id"] for row in rows if draw(row["pair_id"]) < 0.1}
