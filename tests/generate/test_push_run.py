"""``push RUN`` against the loopback hub, under the real clients: what arrives, what is withheld, and what happens when the hub fails."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from commands import command, error_of
from hub_clients import ask, made_run
from loopback_hub import GUEST, LoopbackHub

from t2i_parity.cards.environment import environment
from t2i_parity.cards.result import ResultCard, result_card
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import publish
from t2i_parity.generate.publish import Terms, staged
from t2i_parity.generate.run import Run, image_features
from t2i_parity.metrics.scores import Group


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty prompts that ask for a text."""
    out = tmp_path_factory.mktemp("prompts") / "prompts"
    command("build", "lingt2i_text", "--limit", 20, "--out", out)
    return out


@pytest.fixture(scope="module")
def ready(prompts: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A scored run, not to be changed."""
    return made_run(tmp_path_factory.mktemp("runs") / "painter", prompts)


@pytest.fixture
def run(ready: Run, tmp_path: Path) -> Run:
    """A copy of it."""
    return Run.open(str(shutil.copytree(ready.url, tmp_path / "painter")))


@pytest.fixture
def hub() -> Iterator[LoopbackHub]:
    with LoopbackHub() as running:
        yield running


def rows_of(run: Run) -> list[dict[str, object]]:
    return run.images().read().to_pylist()


def relabelled(run: Run, **columns: object) -> Run:
    """The run with other values in its first five rows, scored as before."""
    rows = rows_of(run)
    for row in rows[:5]:
        row.update(columns)
    run.images().replace(pa.Table.from_pylist(rows, schema=image_features().arrow_schema))
    return run


# What arrives


def test_a_run_arrives_as_a_dataset_and_stays_a_run(hub: LoopbackHub, tmp_path: Path, run: Run) -> None:
    told = ask(
        """
from datasets import get_dataset_config_names, load_dataset
from huggingface_hub import snapshot_download
told["dry"] = command("push", run, "--to", "lab/run", "--dry-run").stdout
told["there"] = api.repo_exists("lab/run", repo_type="dataset")
told["first"] = command("push", run, "--to", "lab/run").stdout
told["second"] = command("push", run, "--to", "lab/run").stdout
told["configs"] = get_dataset_config_names("lab/run")
rows = load_dataset("lab/run", split="test")
told["columns"], told["size"] = rows.column_names, rows[0]["image"].size
told["read"] = list(rows["reader_text"])
told["streamed"] = next(iter(load_dataset("lab/run", "images", split="test", streaming=True)))["image_sha256"]
told["copy"] = snapshot_download("lab/run", repo_type="dataset")
told["again"] = command("score", told["copy"], "--tokenizer", "tekken", "--resamples", 50).stdout
told["scores"] = json.loads(Path(told["copy"], "scores.json").read_text())
""",
        hub,
        tmp_path,
        run=run.url,
    )
    assert "Dry run: nothing was written." in told["dry"]
    assert not told["there"]
    assert 'load_dataset("lab/run", "scored", split="test")' in told["first"]
    assert "has all of this already" in told["second"]
    assert len(hub.repository("dataset", "lab/run").history()) == 2
    assert told["configs"] == ["scored", "images", "reader"]
    assert {"image", "prompt", "image_sha256", "reader_text", "reader_precision", "reader_status"} <= set(told["columns"])
    assert told["size"] == [24, 16]
    assert told["read"] == run.observations("reader").read()["text"].to_pylist()
    assert told["streamed"] == hashlib.sha256(rows_of(run)[0]["image"]["bytes"]).hexdigest()  # type: ignore[index]
    assert told["scores"] == [score.json() for score in run.scores()]


def test_parts_are_what_viewers_like_and_the_same_run_gives_the_same_bytes(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish, "GROUP_ROWS", 4)
    monkeypatch.setattr(publish, "SHARD_BYTES", 10_000)
    made = [staged(run, tmp_path / place, Terms()) for place in ("one", "two")]
    assert made[0].message == made[1].message
    assert {name: path.read_bytes() for name, path in made[0].files.items()} == {
        name: path.read_bytes() for name, path in made[1].files.items()
    }
    for folder in ("scored", "images"):
        parts = sorted((tmp_path / "one" / folder).iterdir())
        assert len(parts) > 1
        found = [pq.ParquetFile(part) for part in parts]
        assert sum(part.metadata.num_rows for part in found) == len(rows_of(run))
        assert all(part.metadata.row_group(group).num_rows <= 4 for part in found for group in range(part.num_row_groups))
        assert all(part.metadata.row_group(0).column(0).compression == "ZSTD" for part in found)
        assert all(part.metadata.row_group(0).column(0).has_offset_index for part in found)
        assert b'"Image"' in found[0].schema_arrow.metadata[b"huggingface"]


def test_the_card_shows_scores_plot_record_and_signatures(run: Run, tmp_path: Path) -> None:
    made = staged(run, tmp_path, Terms())
    card = made.files["README.md"].read_text(encoding="utf-8")
    front = yaml.safe_load(card.split("---\n")[1])
    assert front["configs"][0] == {
        "config_name": "scored",
        "default": True,
        "data_files": [{"split": "test", "path": "scored/part-*.parquet"}],
    }
    assert front["license_link"].endswith("#licences")
    assert "hi" in front["language"]
    for words in (
        "## text\\_rendering\\_precision on lingt2i\\_text",
        "## Signatures",
        "org/painter",
        "](assets/scores.svg)",
        "## Licences",
    ):
        assert words in card, words
    assert "extra_gated_prompt" not in front
    plot = made.files["assets/scores.svg"].read_text(encoding="utf-8")
    assert "Hindi" in plot
    assert "Text-rendering precision on lingt2i_text" in plot
    assert json.loads(made.files["run.json"].read_text())["scoring"]["tokenizer"] == "tekken"


def test_a_language_that_nobody_knows_is_drawn_under_its_own_code(run: Run, tmp_path: Path) -> None:
    hostile = '<b onclick="x">$y$ | z'
    scores = run.scores()
    shown = next(score for score in scores if score.key == "precision" and score.group.axes == ("language",))
    run.write_scores([*scores, replace(shown, group=Group(language=hostile))])
    drawn = ElementTree.fromstring(staged(run, tmp_path, Terms()).files["assets/scores.svg"].read_text(encoding="utf-8"))
    assert any((element.text or "").startswith("<b onclick=") for element in drawn.iter())
    assert not [element for element in drawn.iter() if element.tag.endswith("}b")]


def test_names_cannot_break_the_card(run: Run) -> None:
    hostile = 'x"\n---\n<script>alert(1)</script> | `y` ${{z}}'
    card = result_card(ResultCard(hostile, run.record, [("scored", "scored/part-*.parquet")], run.scores()))
    assert yaml.safe_load(card.split("\n---\n")[0].removeprefix("---\n"))["pretty_name"] == hostile
    assert "<script>" not in card.split("\n---\n", 1)[1].replace("\\<script\\>", "")
    assert environment().filters["md"](hostile) in card


# What is withheld


@pytest.mark.parametrize("columns", [{"label": "toxic"}, {"dimension": "R-T"}])
def test_images_of_toxic_prompts_leave_their_hash_alone(run: Run, tmp_path: Path, columns: dict[str, str]) -> None:
    made = staged(relabelled(run, **columns), tmp_path / "open", Terms())
    assert (made.card.toxic, made.card.withheld, made.card.gated) == (5, 5, False)
    for name in ("scored", "images"):
        rows = pq.read_table(tmp_path / "open" / name).to_pylist()
        assert [row["image"] is None for row in rows] == [True] * 5 + [False] * 15
        assert [row["image_withheld"] for row in rows] == [True] * 5 + [False] * 15
        hashes = [hashlib.sha256(row["image"]["bytes"]).hexdigest() for row in rows_of(run)]  # type: ignore[index]
        assert [row["image_sha256"] for row in rows] == hashes
    assert "not-for-all-audiences" in made.files["README.md"].read_text()
    assert staged(run, tmp_path / "none", Terms(images=False)).card.withheld == 20


def test_toxic_images_go_behind_a_gate_or_nowhere(hub: LoopbackHub, tmp_path: Path, run: Run) -> None:
    relabelled(run, label="toxic")
    settings = hub.fail(403, path="/settings", times=1)
    told = ask(
        """
told["refused"] = error_of("push", run, "--to", "lab/run", "--with-toxic")
told["pushed"] = command("push", run, "--to", "lab/run", "--with-toxic").stdout
told["open"] = command("push", run, "--to", "lab/open").stdout
""",
        hub,
        tmp_path,
        run=run.url,
    )
    assert settings.hits == 1
    assert "403" in told["refused"]
    gated, plain = hub.repository("dataset", "lab/run"), hub.repository("dataset", "lab/open")
    assert gated.gated == "auto"
    assert "I agree to the four terms above" in gated.card()["extra_gated_fields"]
    assert not plain.gated
    assert "5 images of toxic prompts are withheld, and leave their hashes; --with-toxic publishes them too" in told["open"]
    held = {name: pq.read_table(pa.BufferReader(repo.files()["images/part-00000.parquet"])) for name, repo in (("g", gated), ("p", plain))}
    assert held["g"]["image"].null_count == 0
    assert held["p"]["image"].null_count == 5


def test_a_prompt_without_a_licence_is_refused_or_left_out(run: Run, tmp_path: Path) -> None:
    relabelled(run, license="unknown", source="a work")
    message = error_of("push", run.url, "--to", "lab/run", "--dry-run")
    assert "5 of a work in lingt2i_text (no licence stated)" in message
    assert "publish their ids and hashes alone with --drop-unlicensed" in message
    made = staged(run, tmp_path, Terms(drop_unlicensed=True))
    rows = pq.read_table(tmp_path / "scored").to_pylist()
    assert made.card.untold == 5
    assert [row["prompt"] is None and row["render_text"] is None for row in rows] == [True] * 5 + [False] * 15
    assert all(row["text_sha256"] for row in rows)


# What is refused


def test_a_run_that_is_not_whole_is_refused(prompts: Path, run: Run, tmp_path: Path) -> None:
    unscored = made_run(tmp_path / "unscored", prompts, scored=False)
    assert f"t2i-parity score {unscored.url}" in error_of("push", unscored.url, "--to", "lab/run", "--dry-run")
    rows = run.images().read()
    run.images().replace(rows.slice(0, 19))
    with pytest.raises(InputError, match="images that are not there any more"):
        staged(run, tmp_path, Terms())
    run.images().replace(rows)
    run.images().append(rows.slice(0, 1))
    with pytest.raises(InputError, match="ended midway"):
        staged(run, tmp_path, Terms())


def test_options_belong_to_what_is_pushed(run: Run, prompts: Path) -> None:
    assert "--gated-toxic does not go with a run" in error_of("push", run.url, "--to", "lab/run", "--gated-toxic", "lab/toxic")
    assert "--no-images does not go with prompts" in error_of("push", prompts, "--to", "lab/p", "--no-images")
    assert "--pr does not go with metrics" in error_of("push", "metrics", "--to", "lab", "--pr")
    assert "give --with-toxic too" in error_of("push", run.url, "--to", "lab/run", "--gate", "manual")


# When the hub fails


def test_faults_are_waited_out_or_told_and_a_second_run_finishes(hub: LoopbackHub, tmp_path: Path, run: Run) -> None:
    # More than the client tries by itself.
    broken = hub.fail(500, method="PUT", path="^/lfs/", skip=1, times=12)
    hub.fail(409, method="POST", path="/commit/")
    hub.fail(429, method="POST", path="/preupload/", headers={"Retry-After": "0"})
    told = ask(
        """
import time
real, waited = time.sleep, []
time.sleep = lambda seconds: (waited.append(seconds), real(min(seconds, 0.01)))
told["first"] = command("push", run, "--to", "lab/run", check=None).stderr
told["second"] = command("push", run, "--to", "lab/run").stdout
""",
        hub,
        tmp_path,
        run=run.url,
    )
    assert broken.hits >= 1
    assert "error: could not send the files (500" in told["first"]
    assert "what was sent is not sent twice" in told["first"]
    assert "Traceback" not in told["first"]
    sent = [call.path for call in hub.calls_to("^/lfs/", "PUT") if call.status == 200]
    assert len(sent) == len(set(sent)) == 3
    assert len(hub.repository("dataset", "lab/run").history()) == 2


def test_who_may_not_is_told_and_proposes(hub: LoopbackHub, tmp_path: Path, run: Run) -> None:
    repo = hub.create("dataset", "lab/run")
    hub.create("dataset", "lab/gated", gated="manual")
    told = ask(
        """
told["403"] = error_of("push", run, "--to", "lab/run")
told["404"] = error_of("push", run, "--to", "lab/none", "--pr")
told["pr"] = command("push", run, "--to", "lab/run", "--pr", "--no-images").stdout
told["again"] = command("push", run, "--to", "lab/run", "--pr", "--no-images").stdout
told["on"] = command("push", run, "--to", "lab/run", "--revision", "refs/pr/1").stdout
""",
        hub,
        tmp_path,
        hub.guest_token,
        run=run.url,
    )
    assert "propose the change with --pr" in told["403"]
    assert "no dataset lab/none that you may see" in told["404"]
    assert "--revision refs/pr/1" in told["pr"]
    assert "has all of this already" in told["again"]
    assert "refs/pr/1" in told["on"]
    (pull,) = repo.discussions
    assert pull.author == GUEST
    assert "images/part-00000.parquet" in repo.files("refs/pr/1")
    unknown = ask('told["401"] = error_of("push", run, "--to", "lab/run")', hub, tmp_path, "hf_unknown", run=run.url)
    assert "hf auth login" in unknown["401"]


# An audit


def test_an_audit_is_published_too(tmp_path: Path) -> None:
    out, folder = tmp_path / "audit", tmp_path / "prompts"
    command("build", "dialect", "--limit", 60, "--out", folder)
    command("audit-filter", "--filter", "profanity-check", "--prompts", folder, "--out", out)
    command("score", out, "--resamples", 50)
    made = staged(Run.open(str(out)), tmp_path / "made", Terms())
    assert {path.split("/")[0] for path in made.files if path.endswith(".parquet")} == {"scored", "prompts", "observations"}
    card = made.files["README.md"].read_text(encoding="utf-8")
    assert "audit of a text filter" in card
    assert yaml.safe_load(card.split("---\n")[1])["license"] == "cc-by-4.0"
    assert "assets/scores.svg" in made.files
    with pytest.raises(InputError, match="is an audit and has no images"):
        staged(Run.open(str(out)), tmp_path / "again", Terms(toxic=True))
