"""LingT2I's construction against a language model on this machine that errs on order: faults by name, kills, corrections, rounds."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import PROGRAM, command, error_of
from datasets import load_dataset
from loopback_api import BROKEN, NOT_JSON, RATE_LIMITED, TRUNCATED, LoopbackApi, serving
from loopback_llm import PATH, Asked, Llm, captions_file, plain_meanings

from t2i_parity.dataset_builder.registry import REGISTRIES, Entry
from t2i_parity.dataset_builder.repository import read_folder
from t2i_parity.dataset_builder.schema import text_sha256

LANGUAGES = ("zh", "hi", "es", "ar", "fr", "pt", "ru", "ja", "ko")


def arguments(api: LoopbackApi, folder: Path, *more: object, captions: int = 6) -> list[object]:
    """The command over so many captions; two languages unless ``more`` says otherwise."""
    file = folder / "captions.csv"
    if not file.exists():
        captions_file(file, captions)
    settings = [f"url={api.url}/v1", "model=maker", "reviewer.model=judge", "concurrency=4"]
    return [
        "construct", "lingt2i", "--captions", file, "--out", folder / "prompts", "--work", folder / "work", "--license", "CC-BY-4.0",
        "--encoder", "none", *(word for setting in settings for word in ("--set", setting)), *more,
    ]  # fmt: skip


def record(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "work" / "construction.json").read_text(encoding="utf-8"))
    return found


def lost(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "work" / "faults.jsonl").read_text(encoding="utf-8").splitlines()]


def once(*faults: tuple[str, str, int, str]) -> Callable[[Asked], str | None]:
    """Faults of (template, target, meaning, fault): one that begins with ! stays, the others go away at the second try."""
    starts = [meaning["en"].split()[:5] for meaning in plain_meanings()]

    def wrong(asked: Asked) -> str | None:
        text = asked.text if asked.template not in ("back_translate",) else ""
        for template, target, meaning, fault in faults:
            found = text.split()[:5] == starts[meaning]
            if (template, target) == (asked.template, asked.target) and found and (fault[0] == "!" or asked.attempt == 1):
                return fault.lstrip("!")
        return None

    return wrong


def kill_after(words: list[object], api: LoopbackApi, requests: int) -> None:
    """Start the real command and kill it without warning when the server has seen so many requests more."""
    target = len(api.seen) + requests
    process = subprocess.Popen(
        [*PROGRAM, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while len(api.seen) < target and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)
    assert process.poll() is None, process.communicate()[0].decode()
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while api.answering:  # still, to nobody
        assert time.monotonic() < deadline
        time.sleep(0.005)


FAULTS = once(
    ("translate", "fr", 1, "empty"),
    ("translate", "fr", 2, "cut_off"),
    ("translate", "ru", 3, "instruction_leak"),
    ("translate", "es", 4, "wrong_language"),
    ("translate", "hi", 5, "wrong_script"),
    ("translate", "ja", 6, "english_left"),
    ("translate", "pt", 7, "quoted"),
    ("translate", "ko", 8, "!declined"),
    ("translate", "ar", 9, "!refused"),
    ("translate", "zh", 10, "!english_left"),
    ("translate", "hi", 11, "!instruction_leak"),
    ("extract", "en", 0, "unreadable"),
)


def test_forty_captions_with_faults_killed_twice_and_paid_once(tmp_path: Path) -> None:
    llm = Llm(FAULTS)
    with serving({PATH: llm}) as api:
        api.then([RATE_LIMITED, TRUNCATED, NOT_JSON])
        words = arguments(api, tmp_path, captions=40)
        for requests in (60, 400):
            kill_after(words, api, requests)
        with sqlite3.connect(tmp_path / "work" / "answers.sqlite") as db:
            kept = db.execute("SELECT count(*) FROM answers").fetchone()[0]
        before = Counter(llm.bodies)
        api.then([RATE_LIMITED] * 3)
        command(*words)
        after = llm.bodies - before

        # What was kept when the process died was not asked again: every question that is not, exactly once.
        assert kept > 300
        assert sum(after.values()) == len(after) == len(llm.bodies) - kept
        # Only what was in flight at a kill was asked twice: four requests at a time, two kills; and the answer that was cut on its way.
        assert sum(llm.bodies.values()) - len(llm.bodies) <= 2 * 4 + 1
        done = len(llm.asked)
        command(*words)
        assert len(llm.asked) == done

    caught = record(tmp_path)["steps"]["translate"]["caught"]
    for fault in ("empty", "cut_off", "wrong_language", "wrong_script", "quoted"):
        assert caught[fault] >= 1, fault
    assert caught["instruction_leak"] >= 3
    assert caught["english_left"] >= 3
    assert caught["refused"] == 2
    stayed = {(each["fault"], each["language"]) for each in lost(tmp_path) if each["step"] == "translate"}
    assert {("refused", "ko"), ("refused", "ar"), ("english_left", "zh"), ("instruction_leak", "hi")} <= stayed
    assert not {fault for fault, _ in stayed} & {"empty", "cut_off", "wrong_language", "quoted"}  # repaired

    rows = load_dataset(str(tmp_path / "prompts"), "lingt2i_content", split="test", cache_dir=str(tmp_path / "cache"))
    known = {line.split(",")[0]: line for line in (tmp_path / "captions.csv").read_text(encoding="utf-8").splitlines()[1:]}
    by_id = {row["prompt_id"]: row for row in rows}
    assert len(rows) % 10 == 0
    assert len(rows) >= 300
    names = rows.features["derivation"].names
    for row in rows:
        original = by_id[row["derived_from"]] if row["derived_from"] else row
        assert original["language"] == "en"
        assert row["source_id"] == original["source_id"]
        assert row["source_id"] in known
        assert names[row["derivation"]] == ("translated" if row["derived_from"] else "rewritten")
        assert {check["check"] for check in row["checks"]} >= ({"constraints", "cross_check"} if row["derived_from"] else {"constraints"})
        assert "openai:maker" in row["producer"]
        assert "@1.0+" in row["producer"]
        if row["derived_from"]:
            assert " ".join(original["prompt"].split()[:5]) in known[row["source_id"]]
    assert "0 errors" in command("validate", tmp_path / "prompts").stdout


def test_an_estimate_asks_nobody_and_knows_what_was_answered(tmp_path: Path) -> None:
    llm = Llm()
    with serving({PATH: llm}) as api:
        words = arguments(api, tmp_path, "--languages", "es,ko", "--set", "input_price=1", "--set", "output_price=10")
        told = command(*words, "--dry-run").stdout
        assert llm.asked == []
        total = next(line for line in told.splitlines() if line.startswith("│ all ")).split("│")
        assert int(total[5]) == 6 * 2 + 6 * 2 * 3
        assert float(total[8]) > 0
        assert not (tmp_path / "prompts").exists()
        command(*words)
        assert len(llm.asked) == int(total[5])
        # The estimate of a text's tokens is near what is sent.
        sent = sum(len(message["content"]) for _, body, _ in api.seen for message in body["messages"]) / 4.2
        assert 0.6 < int(total[6].replace(",", "")) / sent < 1.6
        again = command(*words, "--dry-run").stdout
        assert next(line for line in again.splitlines() if line.startswith("│ all ")).split("│")[5].strip() == "0"


def test_what_failed_on_its_way_is_asked_again_and_alone(tmp_path: Path) -> None:
    llm = Llm()
    with serving({PATH: llm}) as api:
        words = arguments(api, tmp_path, "--languages", "es,ko", "--set", "request_attempts=1")
        api.then([BROKEN, BROKEN])
        told = command(*words).stdout
        assert "2 requests failed on their way" in told
        n = len(api.seen)
        command(*words)
        # Two questions of the first step, and what follows from their answers: a prompt, two translations, and two looks at each.
        assert len(api.seen) - n == 2 * (1 + 1 + 2 + 4)
        assert len(read_folder(tmp_path / "prompts", "lingt2i_content")[0]) == 18


def test_flagged_translations_wait_for_a_person_and_take_the_correction(tmp_path: Path) -> None:
    llm = Llm(lambda asked: "problem" if asked.template == "cross_check" and asked.target == "es" else None)
    with serving({PATH: llm}) as api:
        words = arguments(api, tmp_path, "--languages", "es,ko", captions=4)
        assert "no pair is whole" in error_of(*words)
        page = (tmp_path / "work" / "corrections.html").read_text(encoding="utf-8")
        items = json.loads(page.partition('id="data">')[2].partition("</script>")[0])["items"]
        assert {item["language"] for item in items} == {"es"}
        assert all("a colour is missing" in item["reasons"][0] for item in items)
        decided = [
            {"id": item["id"], "text_sha256": item["text_sha256"], "decision": decision, "correction": correction}
            for item, decision, correction in zip(
                items, ("keep", "correct", "drop"), (None, items[1]["text"] + ", de color rojo", None), strict=False
            )
        ]
        file = tmp_path / "verdicts.json"
        content = {"format": "t2i-parity-review/1", "kind": "corrections", "reviewer": "Ana", "verdicts": decided}
        file.write_text(json.dumps(content), encoding="utf-8")
        n = len(llm.asked)
        command(*words, "--verdicts", file)
        assert len(llm.asked) == n
        rows = {row["prompt_id"]: row for row in read_folder(tmp_path / "prompts", "lingt2i_content")[0].to_pylist()}
        kept, corrected = rows[items[0]["id"]], rows[items[1]["id"]]
        assert items[2]["id"] not in rows
        assert len(rows) == 6  # the fourth waits
        assert kept["checks"][-1] == {"check": "correction", "verdict": "kept", "score": None, "by": "Ana"}
        assert corrected["prompt"].endswith(", de color rojo")
        assert corrected["producer"].endswith("; corrected by Ana")
        assert [check["check"] for check in corrected["checks"]] == ["correction"]

        # A verdict on a text that has changed decides nothing; a correction must pass the constraints too.
        decided[0]["text_sha256"] = text_sha256("another text")
        decided[1]["correction"] = "Une phrase qui est en français et pas du tout dans la langue demandée"
        file.write_text(json.dumps(content), encoding="utf-8")
        assert "cannot be used: it is in French" in error_of(*words, "--verdicts", file)


def test_the_human_check_is_counted_with_agreement(tmp_path: Path) -> None:
    with serving({PATH: Llm()}) as api:
        words = arguments(api, tmp_path, "--languages", "es,ko", captions=20)
        command(*words)
        page = (tmp_path / "work" / "review.html").read_text(encoding="utf-8")
        items = json.loads(page.partition('id="data">')[2].partition("</script>")[0])["items"]
        assert len(items) == 2  # 5% of 40 translations
        assert {item["language"] for item in items} == {"es", "ko"}
        assert all(item["back_translation"] is None for item in items)
        for reviewer, meanings in (("Ana", (True, False)), ("Bo", (True, True))):
            verdicts = [
                {"id": item["id"], "text_sha256": item["text_sha256"], "meaning": meaning, "culture": True, "fluency": True}
                for item, meaning in zip(items, meanings, strict=True)
            ]
            content = {"format": "t2i-parity-review/1", "kind": "check", "reviewer": reviewer, "verdicts": verdicts}
            (tmp_path / f"{reviewer}.json").write_text(json.dumps(content), encoding="utf-8")
        told = command(*words, "--verdicts", tmp_path / "Ana.json", "--verdicts", tmp_path / "Bo.json").stdout
        assert "75.0%" in told
        found = json.loads((tmp_path / "work" / "human_check.json").read_text(encoding="utf-8"))
        pair = next(each for each in found["agreement"] if each["raters"] == ["Ana", "Bo"] and each["quality"] == "meaning")
        assert (pair["n"], pair["alike"], pair["kappa"]) == (2, 0.5, 0.0)
        fluency = next(each for each in found["agreement"] if each["quality"] == "fluency")
        assert fluency["kappa"] is None  # both said yes to all
        rows = read_folder(tmp_path / "prompts", "lingt2i_content")[0].to_pylist()
        said = [check for row in rows for check in row["checks"] if check["check"] == "human_meaning"]
        assert Counter((check["verdict"], check["by"]) for check in said) == {("yes", "Ana"): 1, ("no", "Ana"): 1, ("yes", "Bo"): 2}


def test_pilot_rounds_are_over_one_sample_and_show_what_changed(tmp_path: Path) -> None:
    from t2i_parity.dataset_builder.pipelines.template import load

    better = tmp_path / "translate-mine.j2"
    better.write_text(load("translate").words.replace("Leave no English words", "Leave no word of English"), encoding="utf-8")
    llm = Llm(lambda asked: "problem" if asked.template == "cross_check" and asked.target == "es" else None)
    with serving({PATH: llm}) as api:
        words = arguments(api, tmp_path, "--languages", "es,ko", "--pilot", captions=40)
        command(*words)
        llm.wrong = lambda asked: None
        told = command(*words, "--template", f"translate={better}", "--set", "reviewer.seed=1").stdout
        assert "translate@translate-mine+" in told
        n = len(llm.asked)
        command(*words)  # the first round again: known, and not a third one
        assert len(llm.asked) == n
    rounds = json.loads((tmp_path / "work" / "pilot.json").read_text(encoding="utf-8"))
    assert [(each["captions"], each["judged"], each["accuracy"]) for each in rounds] == [(2, 4, 0.5), (2, 4, 1.0)]
    assert not (tmp_path / "prompts").exists()


def test_thresholds_say_what_they_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import numpy as np

    from t2i_parity.dataset_builder.controls import encoders

    class Letters:
        def signature(self) -> str:
            return "letters|v:1"

        def encode(self, texts: list[str]) -> Any:
            # The original at 0 degrees; a Spanish text near it, a Korean one far away.
            return np.array([[0.5, 0.75**0.5] if "가" <= max(text) <= "힣" else [1.0, 0.0] for text in texts], np.float32)

    monkeypatch.setitem(encoders.ENCODERS.declared, "letters", Entry("letters", Letters, "by the alphabet"))
    with serving({PATH: Llm()}) as api:
        words = [word if word != "none" else "letters" for word in arguments(api, tmp_path, "--languages", "es,ko")]
        assert "no threshold was measured for the encoder letters" in error_of(*words)
        error_of(*words, "--similarity-threshold", "0.6")
        assert all(each["fault"] == "low_similarity" for each in lost(tmp_path) if each["step"] == "correct")
        told = command(*words, "--similarity-threshold", "0.45").stdout
        line = next(line for line in told.splitlines() if "0.450 (set)" in line)
        assert [cell.strip() for cell in line.split("│")[1:-1]] == ["0.450 (set)", "0", "0", "0"]
        row = next(row for row in read_folder(tmp_path / "prompts", "lingt2i_content")[0].to_pylist() if row["language"] == "ko")
        found = next(check for check in row["checks"] if check["check"] == "similarity")
        assert found == {"check": "similarity", "verdict": "passed", "score": pytest.approx(0.5), "by": "letters|v:1"}


def test_toxic_texts_are_taken_as_they_are(tmp_path: Path) -> None:
    toxic = tmp_path / "toxic.csv"
    meaning = plain_meanings()[50]["en"]
    toxic.write_text(f'id,text\nt1,"{meaning}"\n', encoding="utf-8")
    with serving({PATH: Llm()}) as api:
        command(*arguments(api, tmp_path, "--languages", "es", "--toxic", toxic, "--toxic-license", "MIT"))
    rows = [row for row in read_folder(tmp_path / "prompts", "lingt2i_content")[0].to_pylist() if row["dimension"] == "R-T"]
    assert [(row["language"], row["source_id"], row["license"]) for row in rows] == [("en", "t1", "MIT"), ("es", "t1", "MIT")]
    assert rows[0]["prompt"] == meaning


def test_gemini_is_asked_the_same(tmp_path: Path) -> None:
    llm = Llm()

    def gemini(body: dict[str, Any]) -> dict[str, Any]:
        system = body["systemInstruction"]["parts"][0]["text"]
        turns = [{"role": turn["role"].replace("model", "assistant"), "content": turn["parts"][0]["text"]} for turn in body["contents"]]
        text = llm({"messages": [{"role": "system", "content": system}, *turns]})["choices"][0]["message"]["content"]
        return {
            "candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2},
        }

    with serving({"/models/flash:generateContent": gemini, PATH: llm}) as api:
        more = ["writer.backend=gemini", "writer.model=flash", f"writer.url={api.url}"]
        command(*arguments(api, tmp_path, "--languages", "es", *(word for setting in more for word in ("--set", setting)), captions=3))
        assert {path for path, _, _ in api.seen} == {"/models/flash:generateContent", PATH}
    producers = {row["language"]: row["producer"] for row in read_folder(tmp_path / "prompts", "lingt2i_content")[0].to_pylist()}
    assert producers["en"].startswith("gemini:flash, ")
    assert producers["es"].startswith("openai:maker, translate@1.0+")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--languages", "es,tlh"], "'tlh' is no language to translate into"),
        (["--template", "poem=1.0"], "no such template"),
        (["--template", "translate=9.9"], "expected a version (1.0)"),
        (["--set", "painter.model=x"], "there is no role 'painter'"),
        (["--set", "colour=red"], "has no setting 'colour'"),
        (["--examples", "x.csv"], "only the pipeline dialect takes this"),
        (["--text-column", "words"], "no column 'words'"),
        (["--set", "backend=transformers"], "no chat model can be had here"),
    ],
)
def test_bad_arguments_are_named(tmp_path: Path, more: list[str], said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # As where the room above, which has it, is not imported.
    monkeypatch.delitem(REGISTRIES, "chat model")
    with serving({PATH: Llm()}) as api:
        assert said in error_of(*arguments(api, tmp_path, *more))
