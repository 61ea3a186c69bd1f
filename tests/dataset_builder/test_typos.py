"""Magnitude-matched typos: what a typo may do, the search by hand, and a whole control over a toy encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2i_parity.dataset_builder import starter
from t2i_parity.dataset_builder.controls import rows_of, typos
from t2i_parity.dataset_builder.controls.typos import Noise, Search, perturb
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import SCRIPTS
from t2i_parity.dataset_builder.schema import table

TEXTS = st.text(st.sampled_from("abcdeXYZ éß,.19 \t"), min_size=0, max_size=60)


class Trigrams:
    """A toy encoder: counts of hashed letter trigrams, so that each typo moves a text a little."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def signature(self) -> str:
        return "trigrams|v:1"

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(list(texts))
        vectors = np.full((len(texts), 512), 1e-3, np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            for start in range(len(text) - 2):
                vector[sum(ord(letter) * 31**place for place, letter in enumerate(text[start : start + 3])) % 512] += 1
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def dialect() -> list[dict]:
    rows = rows_of(starter.tables()["dialect"])
    pairs = list(dict.fromkeys(row["pair_id"] for row in rows))[::30]
    return [row for row in rows if row["pair_id"] in pairs]


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.floats(0, 1), st.integers(0, 9))
def test_typos_keep_spaces_and_words(text: str, rate: float, seed: int) -> None:
    changed = perturb(text, rate, seed)
    assert re.findall(r"\s", changed) == re.findall(r"\s", text)
    assert [bool(word) for word in re.split(r"\s", changed)] == [bool(word) for word in re.split(r"\s", text)]
    assert len(text) - changed.count("") + 1 <= max(0, len(text) - typos.DELETE_ABOVE)
    assert perturb(text, rate, seed) == changed
    assert perturb(text, 0, seed) == text


def test_the_rate_decides_how_much_is_hit() -> None:
    text = "a wooden bridge over a narrow river in autumn " * 20
    noise = Noise(text, "key")
    letters = sum(not letter.isspace() for letter in text)
    for rate in (0.05, 0.2, 0.5):
        assert noise.between(0, rate) / len(text) == pytest.approx(rate, abs=0.04)
    assert noise.at(1.0) != text
    untouched = sum(a == b for a, b in zip(noise.at(0.1), text, strict=False))
    assert untouched < letters  # deletions shift what follows


def test_short_texts_lose_nothing_and_substitutions_keep_the_case() -> None:
    for seed in range(40):
        assert len(perturb("Big Houses", 1.0, seed)) == 10
        changed = perturb("ABCDEFGHIJ", 1.0, seed)
        assert changed == changed.upper()
    assert any(len(perturb("Big Houses!", 1.0, seed)) == 10 for seed in range(40))


def test_letters_come_from_the_texts_own_alphabet() -> None:
    arabic = perturb("رجل عجوز يجلس في مقهى قديم", 0.9, 1, "Arab")
    assert set(arabic) <= set(SCRIPTS["Arab"].alphabet) | set("رجل عجوز يجلس في مقهى قديم")
    marked = perturb("مُدَرِّس في المدرسة", 1.0, 2, "Arab")
    assert not re.search(r"(^|\s)[\u064b-\u0652]", marked)
    with pytest.raises(InputError, match="typos are declared for texts in Latn, Cyrl, Arab, not in Hans"):
        perturb("一座城市", 0.5, 0, "Hans")


def test_seeds_differ() -> None:
    text = "three goats standing on the flat roof of a house"
    assert len({perturb(text, 0.3, seed) for seed in range(5)}) == 5


def test_the_search_by_hand() -> None:
    # similarity = 1 − rate; the target 0.8 lies at the rate 0.2: 0.5, 0.25, 0.125, 0.1875, 0.21875, 0.203125.
    search = Search(0.8)
    seen = []
    while not search.done:
        seen.append(search.rate)
        search.saw(1 - search.rate, f"{search.rate}")
    assert seen == [0.5, 0.25, 0.125, 0.1875, 0.21875, 0.203125]
    assert search.matched
    assert search.best == (1 - 0.203125, 0.203125, "0.203125")
    assert search.steps == 6


@settings(max_examples=100, deadline=None)
@given(st.floats(0.02, 0.98), st.floats(0.3, 4))
def test_the_search_converges_on_a_falling_curve(target: float, power: float) -> None:
    search = Search(target)
    while not search.done:
        search.saw(1 - search.rate**power)
    assert search.matched
    assert search.steps <= 20


def test_what_cannot_be_reached_is_kept_as_the_closest() -> None:
    search = Search(0.2)
    while not search.done:
        search.saw(1 - search.rate / 2)
    assert search.steps == 20
    assert not search.matched
    assert search.best is not None
    assert search.best[0] == pytest.approx(0.5, abs=1e-5)


def test_a_control_over_the_starter_edition(dialect: list[dict]) -> None:
    encoder = Trigrams()
    rows = list(typos.derive(dialect, encoder))
    varieties = {row["variety"] for row in dialect} - {"SAE"}
    pairs = {row["pair_id"] for row in dialect}
    assert len(rows) == len(pairs) * len(varieties) * 5
    standard = {row["pair_id"]: row for row in dialect if row["variety"] == "SAE"}
    other = {(row["pair_id"], row["variety"]): row for row in dialect}
    vector = {text: found for call in encoder.calls for text, found in zip(call, Trigrams().encode(call), strict=True)}
    for row in rows:
        name, seed = re.fullmatch(r"typo_(\w+)_seed(\d)", row["subset"]).groups()  # type: ignore[union-attr]
        original = standard[row["pair_id"]]
        checks = {check["check"]: check for check in row["checks"]}
        assert row["variety"] == "SAE"
        assert (row["derived_from"], row["label"], row["category"]) == (original["prompt_id"], original["label"], original["category"])
        assert row["derivation"] == "typo_perturbed"
        assert len(row["prompt"].split()) == len(original["prompt"].split())
        assert checks["typo_similarity"]["by"] == "trigrams|v:1"
        reached, target = checks["typo_similarity"]["score"], checks["typo_target"]["score"]
        assert reached == pytest.approx(float(vector[original["prompt"]] @ vector[row["prompt"]]), abs=1e-5)
        assert target == pytest.approx(float(vector[original["prompt"]] @ vector[other[row["pair_id"], name]["prompt"]]), abs=1e-5)
        assert checks["typo_target"]["verdict"] == other[row["pair_id"], name]["prompt_id"]
        assert (checks["typo_similarity"]["verdict"] == "matched") == (abs(reached - target) <= 0.005)
        assert checks["typo_steps"]["score"] <= 20
        assert checks["typo_seed"]["score"] == float(seed)
        assert 0 < checks["typo_rate"]["score"] < 1
    counts = typos.matched(rows)
    assert {name: total for name, (_, total) in counts.items()} == dict.fromkeys(varieties, len(pairs) * 5)
    assert sum(within for within, _ in counts.values()) > 0.5 * len(rows)
    assert all(len(call) == len(set(call)) for call in encoder.calls)
    together = table("dialect", [*dialect, *rows])
    assert len(set(together["producer"].to_pylist())) <= 2 + 5


def test_the_same_call_gives_the_same_rows_and_controls_are_not_controlled(dialect: list[dict]) -> None:
    first = list(typos.derive(dialect, Trigrams(), seeds=[3], varieties=["JamE"]))
    assert first == list(typos.derive([*dialect, *first], Trigrams(), seeds=[3], varieties=["JamE"]))
    every = list(typos.derive(dialect, Trigrams()))
    assert [row for row in every if row["subset"] == "typo_JamE_seed3"] == first


def test_by_pair_finds_the_typo_rows(dialect: list[dict]) -> None:
    rows = [*dialect, *typos.derive(dialect, Trigrams(), seeds=[0, 1])]
    found = typos.by_pair(rows)
    assert set(found) == {(row["pair_id"], row["variety"]) for row in dialect if row["variety"] != "SAE"}
    for (pair, name), seeds in found.items():
        assert list(seeds) == [0, 1]
        for seed, position in seeds.items():
            assert rows[position]["pair_id"] == pair
            assert rows[position]["subset"] == f"typo_{name}_seed{seed}"


def test_regional_languages_are_matched_on_their_standard() -> None:
    rows = rows_of(starter.tables()["dialect_crosslingual"])[:8]
    made = list(typos.derive(rows, Trigrams(), seeds=[0]))
    assert {(row["subset"], row["language"]) for row in made} == {("typo_bar_seed0", "de"), ("typo_arz_seed0", "ar")}
    assert len(table("dialect_crosslingual", [*rows, *made])) == 12


def test_a_variety_equal_to_the_standard_is_met_by_the_standard(dialect: list[dict]) -> None:
    standard = next(row for row in dialect if row["variety"] == "SAE")
    same = {**standard, "prompt_id": "same", "variety": "IndE"}
    (row,) = typos.derive([standard, same], Trigrams(), seeds=[0])
    assert row["prompt"] == standard["prompt"]
    assert row["checks"][0]["verdict"] == "matched"


def test_bad_input_is_told(dialect: list[dict]) -> None:
    orphan = [row for row in dialect if row["variety"] == "JamE"]
    with pytest.raises(InputError, match=r"is JamE and its pair .* has no row in SAE to put typos into"):
        list(typos.derive(orphan, Trigrams()))
    with pytest.raises(InputError, match="are the same variety"):
        list(typos.derive([*dialect, {**dialect[0], "prompt_id": "again"}], Trigrams()))
    with pytest.raises(InputError, match="no row in BrE among these prompts"):
        list(typos.derive(dialect, Trigrams(), varieties=["BrE"]))
    with pytest.raises(InputError, match="typos need a seed"):
        list(typos.derive(dialect, Trigrams(), seeds=[]))


def test_an_encoder_must_give_unit_vectors(dialect: list[dict]) -> None:
    class Long(Trigrams):
        def encode(self, texts: Sequence[str]) -> np.ndarray:
            return 2 * super().encode(texts)

    with pytest.raises(ValueError, match="vectors of length 1"):
        list(typos.derive(dialect, Long(), seeds=[0]))
