"""The null for parity: what is fitted, what is expected, and who is named."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from t2i_parity.metrics.text_rendering_precision import null
from t2i_parity.metrics.text_rendering_precision.core import load_tokenizer, per_row

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import parity_null as benchmark

LETTERS = load_tokenizer(list)


def damaged(rng: np.random.Generator, text: str, rate: float) -> str:
    return "".join("x" if rng.random() < rate else sign for sign in text)


def texts(n: int, lengths: tuple[int, int]) -> tuple[list[str], list[str], list[str]]:
    """(texts, languages, meanings): German ones of the first length, French ones of the second."""
    wanted = [f"{number:03d}" + "abcdefghij"[: length - 3] for number in range(n) for length in lengths]
    return wanted, ["de", "fr"] * n, [str(number) for number in range(n) for _ in lengths]


@pytest.mark.parametrize("rate", [0.02, 0.2, 0.6])
def test_the_fitted_rate_is_the_true_one_and_even_images_are_told_from_uneven_ones(rate: float) -> None:
    rng = np.random.default_rng(4)
    wanted = ["abcdefghijkl"] * 600
    even = null.fit([damaged(rng, text, rate) for text in wanted], wanted, ["en", "fr"] * 300)
    uneven = null.fit([damaged(rng, text, rng.beta(rate * 2, (1 - rate) * 2)) for text in wanted], wanted, ["en", "fr"] * 300)
    assert even.rate == pytest.approx(rate, abs=0.02)
    assert even.alike > 0.95
    assert (even.substituted, even.deleted) == (1.0, 0.0)
    assert uneven.alike < even.alike
    # A beta distribution of so many pseudo-images: size / (1 + size).
    assert uneven.alike == pytest.approx(2 / 3, abs=0.12)


def test_shares_of_what_is_done_and_of_lost_images() -> None:
    wanted = ["abcd", "abcd", "abcd", "abcd", "abcd"] * 20
    shown = ["abd", "abcXd", "aXcd", "", "abcd"] * 20
    errors = null.fit(shown, wanted, ["en"] * 100)
    assert (errors.substituted, errors.deleted) == pytest.approx((1 / 3, 1 / 3))
    assert errors.empty == 1.0
    assert errors.lost == pytest.approx(0.2, abs=0.02)
    # Every language weighs the same, however many texts it has.
    mixed = null.fit(["aX"] * 10 + ["ab"] * 90, ["ab"] * 100, ["en"] * 10 + ["fr"] * 90)
    assert mixed.rate == pytest.approx(0.25, abs=0.02)
    perfect = null.fit(["ab"] * 10, ["ab"] * 10, ["en"] * 10)
    assert (perfect.rate, perfect.lost) == (0.0, 0.0)
    assert null.damaged(perfect, ["ab"] * 3, ["en"] * 3, np.random.default_rng(0)) == ["ab"] * 3


def test_a_syllable_is_one_character() -> None:
    """Of क्षेत्र and 가, a person sees two characters and one, of two or more code points or parts."""
    errors = null.fit(["क्षेX"] * 20, ["क्षेत्र"] * 20, ["hi"] * 20)
    assert errors.rate == pytest.approx(0.5, abs=0.01)


def test_length_alone_is_no_difference_and_a_worse_language_is_one() -> None:
    """One character in six is damaged in both languages, and French texts are three times as long."""
    wanted, languages, meanings = texts(120, (4, 13))
    named = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        shown = [damaged(rng, text, 1 / 6) for text in wanted]
        answer = null.compute(shown, wanted, languages, tokenizer=LETTERS, clusters=meanings, seed=seed)
        german, french = (answer["by_group"][code] for code in ("de", "fr"))
        raw = per_row(shown, wanted, tokenizer=LETTERS)["precision"]
        gap = raw[::2].mean() - raw[1::2].mean()
        assert gap > 0.05
        assert abs(german["precision_difference"]) < gap
        assert german["precision_expected"] + german["precision_difference"] == pytest.approx(raw[::2].mean())
        assert german["precision_difference"] == pytest.approx(-french["precision_difference"])
        low, high = french["ci"]["precision_difference"]
        assert low < french["precision_difference"] < high
        named.append(french["precision_p_holm"] < 0.05)
        worse = [damaged(rng, text, 0.4) if code == "fr" else read for text, code, read in zip(wanted, languages, shown, strict=True)]
        lost = null.compute(worse, wanted, languages, tokenizer=LETTERS, clusters=meanings, seed=seed)["by_group"]["fr"]
        assert lost["precision_p_holm"] < 0.001
        assert lost["precision_difference"] < -0.1
    assert sum(named) <= 1


def test_perfect_rows_show_no_difference_and_missing_ones_are_counted() -> None:
    wanted, languages, meanings = texts(20, (5, 10))
    # A single error in all: twenty perfect German rows do not show that German is served better.
    shown: list[str | None] = [*wanted[:-1], "x" * 10]
    shown[0] = None
    answer = null.compute(shown, wanted, languages, tokenizer=LETTERS, clusters=meanings)
    german = answer["by_group"]["de"]
    assert (german["n"], german["n_missing"], answer["n"], answer["n_missing"]) == (19, 1, 39, 1)
    assert german["precision_p_holm"] > 0.05
    assert german["ci"]["precision_difference"][0] < 0 < german["ci"]["precision_difference"][1]
    alone = null.compute(["ab"], ["ab"], ["en"], tokenizer=LETTERS)
    assert alone["by_group"] == {}
    assert alone["precision_p_alike"] is None
    few = null.compute(shown[-4:], wanted[-4:], languages[-4:], tokenizer=LETTERS, clusters=meanings[-4:])
    assert few["by_group"]["fr"]["precision_p"] is None
    assert few["by_group"]["fr"]["ci_method"]["precision_difference"] == "none: a language has fewer than five meanings"
    assert few["by_group"]["fr"]["precision_difference"] is not None


def test_the_same_seed_gives_the_same_numbers() -> None:
    wanted, languages, meanings = texts(30, (5, 10))
    rng = np.random.default_rng(1)
    shown = [damaged(rng, text, 0.2) for text in wanted]
    compute: Callable[[int], object] = lambda seed: null.compute(shown, wanted, languages, tokenizer=LETTERS, clusters=meanings, seed=seed)  # noqa: E731
    assert compute(3) == compute(3)
    assert compute(3) != compute(4)


def test_language_blind_models_have_no_worst_language() -> None:
    """The benchmark, reduced: the starter edition's texts, twelve kinds of model."""
    found = [each for group in benchmark.run(12, 20, seed=100).values() for each in group]
    assert sum(each.named for each in found) <= 1
    assert np.mean([each.raw for each in found]) < -0.5
    assert abs(np.mean([each.adjusted for each in found])) < 0.2
