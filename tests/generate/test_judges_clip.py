"""The CLIP judge through the real command, on a small open_clip model of random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import command, error_of
from picture_runs import noise, observations, picture_run
from small_clip import checkpoint, packed

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate import judges
from t2i_parity.generate.backends.clip_features import ClipFeatures, clip_features
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.run import Run
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.clip_score import core
from t2i_parity.metrics.scores import Group

LONG = "a man " * 20


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> str:
    return checkpoint(tmp_path_factory.mktemp("clip"), "parity-judge")


@pytest.fixture(scope="module")
def options(weights: str) -> dict[str, str]:
    return {"model": "parity-judge", "pretrained": weights, "device": "cpu"}


def pairs() -> list[dict[str, Any]]:
    """Two meanings: one in SAE, AAVE and with typos, one in German and Bavarian; a third picture that was not made."""
    texts = [
        ("a", "SAE", "en", "a man walks his dog", "dialect"),
        ("a", "AAVE", "en", "a man walkin his dog", "dialect"),
        ("a", "SAE", "en", "a mna wlaks his dog", "typo_AAVE_seed0"),
        ("b", None, "bar", LONG, "dialect_crosslingual"),
        ("b", None, "de", "ein Mann", "dialect_crosslingual"),
        ("a", "AAVE", "en", "a man walkin his dog", "dialect"),
    ]
    names = ("pair_id", "variety", "language", "prompt", "subset")
    return [dict(zip(names, row, strict=True)) for row in texts]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return picture_run(tmp_path / "run", pairs(), [*(noise(number) for number in range(5)), None])


def as_arguments(options: dict[str, str], **more: str) -> list[str]:
    return [word for name, value in {**options, **more}.items() for word in ("--set", f"{name}={value}")]


def test_similarities_are_those_of_the_metric_and_reach_the_scores(run: Run, options: dict[str, str]) -> None:
    command("judge", run.url, "--with", "clip", *as_arguments(options))
    rows = observations(run, "clip")
    encoder = core.Encoder(options["model"], options["pretrained"], "cpu")
    expected = core.per_row([noise(number) for number in range(5)], [row["prompt"] for row in pairs()[:5]], encoder=encoder)
    assert [row["similarity"] for row in rows[:5]] == pytest.approx(expected["similarities"].tolist(), abs=1e-6)
    assert [row["truncated"] for row in rows[:5]] == expected["truncated"].tolist() == [False, False, False, True, False]
    assert (rows[5]["similarity"], rows[5]["truncated"], rows[5]["status"]) == (None, None, "failed")
    assert rows[5]["reason"] == "no image: failed: no such picture"
    fields = rows[0]["judge"].split("|")
    assert fields[:2] == ["clip", "model:parity-judge"]
    assert fields[2].startswith("pretrained:parity-judge.pt@")
    assert fields[3:] == ["dtype:float32", "anchor:own", "v:1"]
    assert str(Path(options["pretrained"]).parent) not in rows[0]["judge"]

    command("score", run.url, "--resamples", 20)
    found = {(score.spec.name, score.subset, score.group): score for score in run.scores()}
    clip = found["clip_score.clip_score", "dialect", Group()]
    assert clip.value == pytest.approx(np.mean(expected["similarities"][:2]), abs=1e-6)
    assert (clip.n, clip.n_missing) == (2, 1)
    assert clip.signature.fields["encoder"] == Signature.parse(rows[0]["judge"])
    cut = found["clip_score.n_truncated", "dialect_crosslingual", Group(language="bar")]
    assert (cut.value, cut.spec.unit, cut.spec.direction) == (1, "count", "none")
    assert found["clip_score.n_truncated", "dialect", Group()].value == 0


def test_the_reference_anchor_is_the_standard_text_of_the_pair(run: Run, options: dict[str, str]) -> None:
    command("judge", run.url, "--with", "clip", *as_arguments(options, anchor="reference"))
    rows = observations(run, "clip")
    encoder = core.Encoder(options["model"], options["pretrained"], "cpu")
    texts = ["a man walks his dog"] * 3 + ["ein Mann"] * 2
    expected = core.per_row([noise(number) for number in range(5)], texts, encoder=encoder)["similarities"]
    assert [row["similarity"] for row in rows[:5]] == pytest.approx(expected.tolist(), abs=1e-6)
    assert not rows[3]["truncated"], "it is the reference text that is encoded"
    assert "|anchor:reference|" in rows[0]["judge"]
    own = core.per_row([noise(1)], ["a man walkin his dog"], encoder=encoder)["similarities"][0]
    assert own != pytest.approx(expected[1], abs=1e-4)


def test_a_pair_without_a_reference_is_told_before_anything_is_observed(tmp_path: Path, options: dict[str, str]) -> None:
    run = picture_run(tmp_path / "run", [pairs()[1], pairs()[3]], [noise(0), noise(1)])
    message = error_of("judge", run.url, "--with", "clip", *as_arguments(options, anchor="reference"))
    assert "row 0 (prompt-0) is AAVE, and its pair 'a' has no row in SAE in this run" in message
    assert not run.judges()
    twice = picture_run(tmp_path / "twice", [pairs()[0], {**pairs()[0], "prompt": "a woman"}], [noise(0), noise(1)])
    assert "the pair 'a' has two texts in SAE" in error_of("judge", twice.url, "--with", "clip", *as_arguments(options, anchor="reference"))


def test_a_batch_of_one_equals_a_batch_of_sixteen(options: dict[str, str]) -> None:
    rows = [{"prompt": f"picture {number % 5} {'of a cat ' * (number % 7)}", "image": noise(number)} for number in range(16)]
    seen = []
    for size in (1, 16):
        clip_features.__globals__["_loaded"].cache_clear()
        judge = judges.load("clip", options)
        batches = [judge.observe(rows[start : start + size]) for start in range(0, 16, size)]
        seen.append([row["similarity"] for batch in batches for row in batch])  # type: ignore[index]
    assert seen[0] == pytest.approx(seen[1], abs=1e-5)
    assert len(set(seen[0])) == 16


def test_each_text_and_each_image_of_a_pass_is_encoded_once(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    counted = {"texts": 0, "images": 0}
    for what in counted:
        kept = getattr(core.Encoder, f"encode_{what}")

        def counting(self: Any, given: list[Any], kept: Any = kept, what: str = what) -> Any:
            counted[what] += len(given)
            return kept(self, given)

        monkeypatch.setattr(core.Encoder, f"encode_{what}", counting)
    clip_features.__globals__["_loaded"].cache_clear()
    one, other = judges.load("clip", options), judges.load("clip", options)
    for start in (0, 2):
        rows = [{"prompt": text, "image": noise(start + number)} for number, text in enumerate(["red", "blue"])]
        assert one.observe(rows) == other.observe(rows)
    assert counted == {"texts": 2, "images": 4}
    shared = one._features  # type: ignore[attr-defined]
    del rows
    assert not shared._images, "what is kept of an image goes with it"


def test_only_so_many_texts_are_kept(weights: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("t2i_parity.generate.backends.clip_features.TEXTS_KEPT", 3)
    features = ClipFeatures("parity-judge", weights, "cpu")
    first, _ = features.texts([f"text {number}" for number in range(5)])
    assert list(features._texts) == ["text 2", "text 3", "text 4"]
    again, _ = features.texts(["text 0", "text 4", "text 0"])
    assert again == pytest.approx(first[[0, 4, 0]], abs=1e-5)


def test_a_model_in_a_folder_brings_all_of_its_own(tmp_path: Path, weights: str, options: dict[str, str]) -> None:
    folder = packed(tmp_path / "all", weights)
    judge = judges.load("clip", {"model": f"local-dir:{folder}", "device": "cpu"})
    rows = [{"prompt": "a red cat", "image": noise(1)}]
    assert judge.observe(rows)[0]["similarity"] == pytest.approx(judges.load("clip", options).observe(rows)[0]["similarity"], abs=1e-6)  # type: ignore[index]
    assert judge.signature().startswith("clip|model:local-dir:all|pretrained:all@")
    assert str(tmp_path) not in judge.signature()
    with pytest.raises(InputError, match=r"'local-dir:.*' brings its own weights\. Fix: leave pretrained out"):
        judges.load("clip", {"model": f"local-dir:{folder}", "pretrained": weights})
    (folder / "open_clip_pytorch_model.bin").unlink()
    with pytest.raises(InputError, match=r"expected a folder with open_clip_config.json and a file of weights after 'local-dir:'"):
        judges.load("clip", {"model": f"local-dir:{folder}"})


def test_half_precision_says_so_and_stays_close(options: dict[str, str]) -> None:
    rows = [{"prompt": "a red cat", "image": noise(1)}, {"prompt": "a dog", "image": noise(2)}]
    exact = judges.load("clip", options).observe(rows)
    judge = judges.load("clip", {**options, "dtype": "bfloat16"})
    assert "|dtype:bfloat16|" in judge.signature()
    seen = judge.observe(rows)
    # Named, since once, on a busy machine, one of them had no embedding, and nobody has seen it since.
    assert [row for row in (*exact, *seen) if isinstance(row, Failure)] == [], judge._features.images([row["image"] for row in rows])  # type: ignore[attr-defined]
    for one, other in zip(seen, exact, strict=True):
        assert one["similarity"] != other["similarity"]  # type: ignore[index]
        assert one["similarity"] == pytest.approx(other["similarity"], abs=0.05)  # type: ignore[index]


def test_what_cannot_be_loaded_is_told(tmp_path: Path, weights: str) -> None:
    run = picture_run(tmp_path / "run", [{}], [noise(0)])
    for given, told in [
        (("model=ViT-L-15",), "model: expected one of open_clip.list_models()"),
        (("model=ViT-L-14", "pretrained=openai"), "Fix: model='ViT-L-14-quickgelu'"),
        (("model=parity-judge", "pretrained=nowhere.pt"), "pretrained: expected a file of weights or one of"),
        (("model=parity-judge", f"pretrained={weights}", "device=abacus"), "device: expected one that torch has here"),
        (("model=parity-judge", f"pretrained={weights}", "dtype=int4"), "--set dtype=int4"),
        (("anchor=mine",), "--set anchor=mine"),
        (("model=hf-hub:nobody/nothing",), "hf download nobody/nothing"),
    ]:
        message = error_of("judge", run.url, "--with", "clip", *(word for pair in given for word in ("--set", pair)))
        assert told in message
    assert not run.judges()


def test_a_folder_with_one_file_of_weights_is_taken(tmp_path: Path, weights: str, options: dict[str, str]) -> None:
    (tmp_path / "one.pt").write_bytes(Path(weights).read_bytes())
    judge = judges.load("clip", {**options, "pretrained": str(tmp_path)})
    assert "|pretrained:one.pt@" in judge.signature()
    two = tmp_path / "two"
    two.mkdir()
    for name in ("one.pt", "two.pt"):
        (two / name).write_bytes(b"")
    with pytest.raises(InputError, match=r"expected a folder with one file of weights, got one.pt, two.pt\. Fix: name the file itself"):
        judges.load("clip", {**options, "pretrained": str(two)})


def test_an_image_that_cannot_be_embedded_fails_alone(tmp_path: Path, weights: str, options: dict[str, str]) -> None:
    import torch

    state = torch.load(weights, weights_only=True)
    state["visual.conv1.weight"] = torch.full_like(state["visual.conv1.weight"], 1e38)
    torch.save(state, tmp_path / "bad.pt")
    run = picture_run(tmp_path / "run", [{}, {}], [noise(0), b"no picture"])
    command("judge", run.url, "--with", "clip", *as_arguments(options, pretrained=str(tmp_path / "bad.pt")), check=1)
    rows = observations(run, "clip")
    assert [row["similarity"] for row in rows] == [None, None]
    assert rows[0]["reason"] == "the encoder gave an embedding that is zero or not finite"
    assert "cannot be decoded" in rows[1]["reason"]
