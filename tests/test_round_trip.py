"""The whole line on a hub, with the real clients: from building prompts to the leaderboard that has the new row."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hub_clients import ask
from loopback_hub import LoopbackHub

BOARD = "lab/board-results"


MODELS = {
    "glyph": ("glyph", ["--set", "damage=light"], [512, 512]),
    # Random weights: a real pipeline, and nothing to be read in its images.
    "diffusers": ("small", ["--set", "steps=1", "--set", "width=64", "--set", "height=64"], [64, 64]),
}


@pytest.mark.parametrize("kind", MODELS)
def test_from_building_to_the_board_and_back(kind: str, tmp_path: Path) -> None:
    model, settings, size = MODELS[kind]
    if kind == "diffusers":
        from small_models import stable_diffusion

        model = str(stable_diffusion(tmp_path / model))
    with LoopbackHub() as hub:
        hub.create("dataset", BOARD, {"README.md": b"# Results\n"})
        hub.create("model", "lab/typesetter", {"README.md": b"---\nlicense: mit\n---\n# Typesetter\n"})
        told = ask(
            f"MODEL, SETTINGS = {model!r}, {settings!r}\n"
            """
from datasets import load_dataset

def go(*words, check=0):
    return command(*words, check=check).stdout

go("build", "lingt2i_text", "--limit", 20, "--out", "built")
go("push", "built", "--to", "lab/prompts")
told["prompts"] = load_dataset("lab/prompts", "lingt2i_text", split="test")["prompt_id"][:]
go("generate", "--model", MODEL, *SETTINGS, "--prompts", "lab/prompts", "--config", "lingt2i_text", "--out", "runs/light")
go("judge", "runs/light", "--with", "tesseract")
go("score", "runs/light", "--tokenizer", "tekken", "--resamples", 100)
go("push", "runs/light", "--to", "me/light")
rows = load_dataset("me/light", "scored", split="test")
told["run"] = dict(zip(rows["prompt_id"], rows["tesseract_precision"]))
told["image"] = rows[0]["image"].size
told["submit"] = go(
    "submit", "runs/light", "--model", "lab/typesetter", "--revision", "1.0", "--name", "Typesetter, lightly damaged",
    "--board", "lab/board-results", "--results-dataset", "me/light", "--model-page", "--model-index",
)
told["verdict"] = go("validate", "--submission", "lab/board-results@refs/pr/1", "--against", "lab/prompts", "--json", "verdict.json")
told["findings"] = json.loads(Path("verdict.json").read_text())["findings"]
told["before"] = error_of("board", "lab/board-results", "--out", "before")
api.merge_pull_request("lab/board-results", 1, repo_type="dataset")
api.merge_pull_request("lab/typesetter", 1)
told["board"] = go("board", "lab/board-results", "--out", "space")
api.create_repo("lab/board", repo_type="space", space_sdk="static")
api.upload_folder(repo_id="lab/board", folder_path="space", repo_type="space")
told["scores"] = json.loads(Path("runs/light/scores.json").read_text())
""",
            hub,
            tmp_path,
        )
        page = hub.repository("space", "lab/board").files()["index.html"].decode()
        page_of_model = hub.repository("model", "lab/typesetter").files()
        prompts = hub.repository("dataset", "lab/prompts").files()
        records = hub.repository("dataset", BOARD).files()
    assert len(told["prompts"]) == 20
    assert sorted(told["run"]) == sorted(told["prompts"])
    assert told["image"] == size
    assert "Accepted: 1 record may be merged." in told["verdict"]
    checks = {finding["check"]: finding["verdict"] for finding in told["findings"]}
    sound = ("changes", "record", "submitter", "run", "prompts", "rows", "observations", "scores", "cells")
    assert {name: checks[name] for name in sound} == dict.fromkeys(sound, "holds")
    assert "holds no folder results/" in told["before"]
    assert set(records) == {"README.md", "results/lab__typesetter/1.0/lingt2i_text.json"}
    # The row that the board shows is the run's.
    data = json.loads(re.findall(r'id="data">(.*?)</script>', page)[0])
    (precision,) = [table for table in data["tables"] if table["score"] == "text_rendering_precision.precision"]
    (row,) = precision["rows"]
    (overall,) = [entry for entry in told["scores"] if entry["key"] == "precision" and not entry["group"]]
    assert (row["id"], row["name"], row["missing"]) == ("lab/typesetter", "Typesetter, lightly damaged", [])
    assert row["overall"][0] == round(overall["value"], 5)
    # Two texts a language give no interval, and so no place.
    assert row["places"]["overall"] is None
    assert len(row["cells"]) == 10
    assert any("/datasets/me/light/blob/" in address for _, address in row["links"])
    # The model's page has the same number, for the task that the prompts declare.
    assert "id: text_rendering\n" in prompts["eval.yaml"].decode()
    assert f"value: {overall['value']}" in page_of_model[".eval_results/t2i-parity.yaml"].decode()
    assert f"value: {overall['value']}" in page_of_model["README.md"].decode()
