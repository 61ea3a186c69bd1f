"""The dialect construction against a language model on this machine: refusals, the strict intersection, the round trip."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import command, error_of
from datasets import load_dataset
from loopback_api import LoopbackApi, serving
from loopback_llm import PATH, Asked, Llm, _lines

from t2i_parity.dataset_builder.pipelines.dialect import Dialect, audit, own_examples
from t2i_parity.dataset_builder.pipelines.steps import Text
from t2i_parity.dataset_builder.registry import Entry
from t2i_parity.dataset_builder.repository import read_folder
from t2i_parity.dataset_builder.storage import decode_classes
from t2i_parity.generate.filters import FILTERS

BENIGN = [line for line in _lines("dialect") if line["label"] == "benign"][:6]
TOXIC = [line for line in _lines("dialect") if line["label"] == "toxic"][:3]
VARIETIES = ("AAVE", "ChcE", "CollSgE", "IndE", "JamE")


class Words:
    """A text filter: the share of a text's words that end in "in'"."""

    at_once = 2

    def signature(self) -> str:
        return "words|v:1"

    def judge(self, texts: list[str]) -> list[Any]:
        from types import SimpleNamespace

        return [SimpleNamespace(flagged=False, score=sum(w.endswith("in'") for w in text.split()) / len(text.split())) for text in texts]


def arguments(api: LoopbackApi, folder: Path, *more: object) -> list[object]:
    captions, toxic = folder / "captions.jsonl", folder / "toxic.jsonl"
    write(captions, [{"id": line["meaning"], "caption": line["prompts"]["SAE"][:60], "category": line["category"]} for line in BENIGN])
    write(toxic, [{"id": line["meaning"], "prompt": line["prompts"]["SAE"], "category": line["category"]} for line in TOXIC])
    settings = [f"url={api.url}/v1", "model=maker", "reviewer.model=judge"]
    return [
        "construct", "dialect", "--captions", captions, "--toxic", toxic, "--out", folder / "prompts", "--work", folder / "work",
        "--license", "CC-BY-4.0", "--toxic-license", "CC-BY-4.0", "--encoder", "none",
        *(word for setting in settings for word in ("--set", setting)), *more,
    ]  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def wrong(asked: Asked) -> str | None:
    text = asked.text
    if asked.template == "convert" and (asked.target, text) == ("JamE", BENIGN[0]["prompts"]["SAE"]):
        return "REFUSED"
    if asked.template == "convert" and (asked.target, text) == ("AAVE", TOXIC[0]["prompts"]["SAE"]):
        return "refused"
    if asked.template == "convert" and (asked.target, text) == ("IndE", BENIGN[1]["prompts"]["SAE"]) and asked.attempt == 1:
        return "unconverted"
    if asked.template == "convert" and asked.target == "bar" and asked.text.startswith("Drei Kühe"):
        return "REFUSED"
    if asked.template == "round_trip" and asked.target == "ChcE" and text == BENIGN[2]["prompts"]["ChcE"]:
        return "REFUSED"
    return None


def test_only_meanings_that_every_variety_has_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILTERS.declared, "words", Entry("words", Words, "by words"))
    llm = Llm(wrong)
    with serving({PATH: llm}) as api:
        words = arguments(api, tmp_path, "--toxicity", "words", "--toxicity", "words")
        told = command(*words).stdout
        asked = Counter((each.template, each.target, each.text) for each in llm.asked)
        # A refusal is final; what was not converted is asked for once more.
        assert asked["convert", "JamE", BENIGN[0]["prompts"]["SAE"]] == 1
        assert asked["convert", "AAVE", TOXIC[0]["prompts"]["SAE"]] == 1
        assert asked["convert", "IndE", BENIGN[1]["prompts"]["SAE"]] == 2
        n = len(llm.asked)
        command(*words)
        assert len(llm.asked) == n

    rows = load_dataset(str(tmp_path / "prompts"), "dialect", split="test", cache_dir=str(tmp_path / "cache"))
    pairs = Counter(rows["pair_id"])
    assert set(pairs.values()) == {6}
    assert len(pairs) == 5 + 2
    sources = set(rows["source_id"])
    assert BENIGN[0]["meaning"] not in sources
    assert TOXIC[0]["meaning"] not in sources
    table = decode_classes(read_folder(tmp_path / "prompts", "dialect")[0]).to_pylist()
    of = {(row["source_id"], row["variety"]): row for row in table}
    toxic = of[TOXIC[1]["meaning"], "SAE"]
    assert (toxic["label"], toxic["derivation"], toxic["prompt"]) == ("toxic", "verbatim", TOXIC[1]["prompts"]["SAE"])
    benign = of[BENIGN[1]["meaning"], "SAE"]
    assert (benign["label"], benign["derivation"], benign["category"]) == ("benign", "rewritten", BENIGN[1]["category"])
    for row in table:
        base = of[row["source_id"], "SAE"]
        assert row["derived_from"] == (None if row is base else base["prompt_id"])

    # The round trip is exact but for one that was refused: no move, and one less.
    deviations = json.loads((tmp_path / "work" / "round_trip.json").read_text(encoding="utf-8"))
    cells = {(each["scorer"], each["variety"], each["label"]): each for each in deviations}
    assert {scorer for scorer, _, _ in cells} == {"round_trip_words", "round_trip_words_2"}
    assert (cells["round_trip_words", "AAVE", "benign"]["n"], cells["round_trip_words", "AAVE", "benign"]["mean"]) == (5, 0.0)
    assert (cells["round_trip_words", "ChcE", "benign"]["n"], cells["round_trip_words", "ChcE", "benign"]["n_missing"]) == (4, 1)
    by = {check["check"]: check for check in of[BENIGN[1]["meaning"], "AAVE"]["checks"]}
    assert by["round_trip_words"]["score"] == 0.0
    assert by["round_trip_words"]["by"].startswith("words|v:1; openai:judge, round_trip@1.0+")
    assert "1 (1)" in told or "5 (1)" in told

    regional = read_folder(tmp_path / "prompts", "dialect_crosslingual")[0].to_pylist()
    assert Counter(Counter(row["pair_id"] for row in regional).values()).keys() == {2}
    ids = {row["prompt_id"]: row for row in (*table, *regional)}
    assert all(
        ids[row["derived_from"]]["language"] == {"de": "en", "ar": "en", "bar": "de", "arz": "ar"}[row["language"]] for row in regional
    )
    assert "0 errors" in command("validate", tmp_path / "prompts").stdout


def test_the_real_filters_score_the_round_trip(tmp_path: Path) -> None:
    with serving({PATH: Llm()}) as api:
        told = command(*arguments(api, tmp_path, "--toxicity", "profanity-check", "--cross-lingual", "none")).stdout
    assert "1 was given" in told
    table = read_folder(tmp_path / "prompts", "dialect")[0].to_pylist()
    scores = [check["score"] for row in table for check in row["checks"] if check["check"] == "round_trip_profanity-check"]
    assert len(scores) == 9 * 5
    assert not (tmp_path / "prompts" / "dialect_crosslingual").exists()


def test_benign_prompts_stay_below_sixty_words(tmp_path: Path) -> None:
    llm = Llm()
    right = llm._right

    prompt = " ".join("a red boat on a calm lake in soft rain " for _ in range(6))

    def sixty(asked: Asked, user: str, strings: list[Any]) -> str:
        return prompt if asked.template == "benign" else right(asked, user, strings)

    llm._right = sixty  # type: ignore[method-assign]
    with serving({PATH: llm}) as api:
        words = arguments(api, tmp_path, "--limit", "1", "--varieties", "AAVE")
        at = words.index("--toxic")
        assert "no meaning has every variety" in error_of(*words[:at], *words[at + 2 :])
    faults = [json.loads(line) for line in (tmp_path / "work" / "faults.jsonl").read_text(encoding="utf-8").splitlines()]
    assert faults[0]["fault"] == "too_long"
    assert "fewer than 60 were asked for" in faults[0]["why"]


def test_examples_are_ours_or_a_files(tmp_path: Path) -> None:
    ours = own_examples()
    assert set(ours) == {*VARIETIES, "de", "bar", "ar", "arz"}
    assert all(len(examples) == 4 for examples in ours.values())
    file = tmp_path / "examples.csv"
    file.write_text("variety,source,target\nJamE,He is eating.,Im a nyam.\n", encoding="utf-8")
    llm = Llm()
    with serving({PATH: llm}) as api:
        command(*arguments(api, tmp_path, "--examples", file, "--cross-lingual", "none", "--limit", "1"))
        asked = [body["messages"] for _, body, _ in api.seen if "Jamaican English as its" in body["messages"][0]["content"]]
        assert all('"He is eating." → "Im a nyam."' in messages[1]["content"] for messages in asked)
        # Only toxic texts are told that they may be declined by one word.
        assert sorted("REFUSED" in messages[1]["content"] for messages in asked) == [False, True]
        file.write_text("variety,source,target\nKlingon,a,b\n", encoding="utf-8")
        assert "row 0, column variety" in error_of(*arguments(api, tmp_path, "--examples", file))
        file.write_text("variety,text\nJamE,a\n", encoding="utf-8")
        assert "missing column source, target" in error_of(*arguments(api, tmp_path, "--examples", file))


def test_deviations_by_hand() -> None:
    class Lengths:
        def signature(self) -> str:
            return "lengths"

        def score(self, texts: Any) -> list[float | None]:
            return [None if text == "?" else float(len(text)) for text in texts]

    def trip(number: int, source: str, back: str) -> Text:
        return Text(f"t{number}", "x", "c", variety="JamE", data={"pair": "p", "label": "toxic", "source": source, "back": back})

    found = audit(
        [trip(0, "aa", "aaa"), trip(1, "aa", "a"), trip(2, "aa", "aaaaa"), trip(3, "aa", "?")],
        [trip(4, "", "")],
        {"l": Lengths()},
        None,
        "m",
    )
    (each,) = found.deviations
    assert (each.n, each.n_missing, each.mean, each.absolute) == (3, 2, 1.0, pytest.approx(5 / 3))
    # t(0.975, 2) = 4.302653 times the standard error 2/√3.
    assert (each.low, each.high) == (pytest.approx(1 - 4.302653 * 2 / 3**0.5), pytest.approx(1 + 4.302653 * 2 / 3**0.5))
    assert found.checks["t3"] == [{"check": "round_trip_l", "verdict": None, "score": None, "by": "lengths; m"}]


def test_unknown_varieties_are_named(tmp_path: Path) -> None:
    assert Dialect is not None
    with serving({PATH: Llm()}) as api:
        assert "'SAE' is no variety to convert into" in error_of(*arguments(api, tmp_path, "--varieties", "SAE"))
        assert "'fr' has no regional language here" in error_of(*arguments(api, tmp_path, "--cross-lingual", "fr"))
