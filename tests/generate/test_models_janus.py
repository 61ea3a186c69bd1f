"""Janus on small random weights: draws that follow the scores, and depend on the row's seed alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.generate.models import load

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("torchvision")

TEXTS = ("a red apple on a table", "قطة", "a dog", "the longest of all of these prompts")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from small_models import janus

    return janus(tmp_path_factory.mktemp("models") / "small-janus")


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return load(f"janus:{folder}", {"device": "cpu"})


def rows(*texts: str) -> list[dict[str, Any]]:
    return [{"prompt_id": text[:9], "prompt": text, "language": "en"} for text in texts]


def pixels(made: Any) -> np.ndarray:
    return np.stack([np.asarray(image, dtype=np.int16) for image in made])


def test_a_batch_of_four_is_four_batches_of_one(model: Any) -> None:
    four = pixels(model.generate(rows(*TEXTS), [1, 2, 3, 4]))
    assert four.shape == (4, 8, 8, 3)
    one = np.concatenate([pixels(model.generate(rows(text), [seed])) for text, seed in zip(TEXTS, (1, 2, 3, 4), strict=True)])
    assert np.abs(four - one).max() <= 2


def test_noise_comes_from_the_seed_and_the_picture_from_noise_and_text(model: Any) -> None:
    made = pixels(model.generate(rows(TEXTS[0], TEXTS[0], TEXTS[1], TEXTS[0]), [7, 7, 7, 8]))
    assert np.abs(made[0] - made[1]).max() == 0
    assert np.abs(made[0] - made[2]).max() > 2, "another text"
    assert np.abs(made[0] - made[3]).max() > 2, "another seed"


def test_draws_follow_the_guided_scores() -> None:
    """Against the softmax that the library would sample from: guidance over the two halves, then temperature."""
    from t2i_parity.generate.models.janus import _Drawing

    wanted, empty, n = torch.tensor([2.0, 0.0, 1.0]), torch.tensor([0.0, 0.5, 1.0]), 4000
    draw = _Drawing(torch, range(n), guidance=1.5, temperature=2.0)
    scores = torch.cat([wanted.expand(n, 3), empty.expand(n, 3)])
    counts = np.bincount(draw(None, scores).argmax(-1).numpy(), minlength=3) / n
    expected = torch.softmax((empty + 1.5 * (wanted - empty)) / 2.0, -1).numpy()
    # Four standard errors of a share.
    assert np.abs(counts - expected).max() < 4 * np.sqrt(0.25 / n)


def test_its_record_holds_what_decides_the_pixels(model: Any, folder: Path) -> None:
    record = model.record()
    assert (record["width"], record["height"], record["image_tokens"]) == (8, 8, 16)
    assert (record["guidance"], record["temperature"], record["dtype"]) == (5.0, 1.0, "float32")
    assert len(record["files_sha256"]) == 64
    assert load(f"janus:{folder}", {"guidance": "3", "device": "cpu"}).record() != record
    assert model.execution()["attention"]["backend"] == "sdpa"


def test_a_text_that_leaves_no_room_for_the_image_is_told_before_anything_is_made(model: Any) -> None:
    model.check(rows("short"))
    with pytest.raises(InputError, match=r"row 'xxxxxxxxx': its prompt has \d+ tokens, and beside the 16 of an image"):
        model.check(rows("short", "x" * 300))
    assert model.truncated(rows("short")) == {}


def test_a_folder_that_is_no_such_model_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no config\.json"):
        load(f"janus:{tmp_path}", {})
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    with pytest.raises(InputError, match="did not load as a Janus model"):
        load(f"janus:{tmp_path}", {})
    with pytest.raises(InputError, match="'nobody/janus' is neither a folder nor a model that the hub gave"):
        load("janus:nobody/janus", {})
