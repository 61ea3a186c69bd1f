"""Nine families of diffusers on small random weights: one behaviour, whatever the pipeline's arguments are called."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from t2i_parity.generate.models import load

pytest.importorskip("diffusers")
torch = pytest.importorskip("torch")

TEXTS = ("a red apple on a table", "قطة على الطاولة", "a dog", "the longest of all of these prompts, with a few more words")
FAMILIES = ("sd", "sdxl", "sd3", "flux", "qwen-image", "z-image", "sana", "pixart", "lumina2")
CLASSES = {
    "sd": "StableDiffusionPipeline",
    "sdxl": "StableDiffusionXLPipeline",
    "sd3": "StableDiffusion3Pipeline",
    "flux": "FluxPipeline",
    "qwen-image": "QwenImagePipeline",
    "z-image": "ZImagePipeline",
    "sana": "SanaPipeline",
    "pixart": "PixArtSigmaPipeline",
    "lumina2": "Lumina2Pipeline",
}
LIMITS = {
    "sd": {"tokenizer (77 tokens)"},
    "sdxl": {"tokenizer (77 tokens)", "tokenizer_2 (77 tokens)"},
    "sd3": {"tokenizer (77 tokens)", "tokenizer_2 (77 tokens)", "tokenizer_3 (256 tokens)"},
    "flux": {"tokenizer (77 tokens)", "tokenizer_2 (512 tokens)"},
    "qwen-image": {"tokenizer (512 tokens)"},
    "z-image": {"tokenizer (512 tokens)"},
    "sana": {"tokenizer (300 tokens)"},
    "pixart": {"tokenizer (300 tokens)"},
    "lumina2": {"tokenizer (256 tokens)"},
}
"""What each pipeline's own code hands on to its text encoders: T5 and language models get less than their tokenizers would take."""
SEEDS = (1, 2, 3, 4)


@pytest.fixture(scope="module", autouse=True)
def _few_threads() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from small_models import FAMILIES as BUILDERS

    root = tmp_path_factory.mktemp("families")
    return {name: BUILDERS[name](root / name) for name in FAMILIES}


def rows(texts: Sequence[str] = TEXTS) -> list[dict[str, Any]]:
    return [{"prompt_id": str(number), "prompt": text, "language": "en"} for number, text in enumerate(texts)]


def options(family: str, **more: str) -> dict[str, str]:
    negative = {"negative_prompt": " "} if family == "qwen-image" else {}
    return {"width": "64", "height": "64", "steps": "2", **negative, **more}


def pixels(made: Sequence[Any]) -> np.ndarray:
    return np.stack([np.asarray(each.result() if isinstance(each, Future) else each, dtype=np.int16) for each in made])


def furthest(some: np.ndarray, others: np.ndarray) -> int:
    return int(np.abs(some - others).max())


def bare(pipeline: Any, family: str) -> np.ndarray:
    """The pipeline's own call, texts and pictures inside it, with the same noise."""
    more: dict[str, Any] = {"negative_prompt": [" "] * len(TEXTS)} if family == "qwen-image" else {}
    if family in ("sana", "pixart"):
        more["use_resolution_binning"] = False
    noise = [torch.Generator().manual_seed(seed) for seed in SEEDS]
    with torch.inference_mode():
        return pixels(pipeline(list(TEXTS), num_inference_steps=2, width=64, height=64, generator=noise, **more).images)


@pytest.mark.parametrize("family", FAMILIES)
def test_it_makes_what_the_pipeline_itself_makes_in_batches_of_any_size(family: str, folders: dict[str, Path]) -> None:
    model: Any = load(str(folders[family]), options(family))
    assert model.record()["pipeline"] == CLASSES[family]
    model.check(rows())
    four = pixels(model.generate(rows(), SEEDS))
    assert four.shape == (4, 64, 64, 3)
    assert furthest(four, bare(model._pipeline, family)) <= 2
    for place in (0, 3):
        alone = pixels(model.generate([rows()[place]], [SEEDS[place]]))[0]
        assert furthest(four[place], alone) <= 2, "neither the batch nor the place in it matters"
    # The same noise under different texts, and different noise under the same text: both make a difference, or the rest shows nothing.
    first, again, other_text, other_noise = pixels(model.generate(rows([TEXTS[0], TEXTS[0], *TEXTS[1::-1]]), (5, 5, 5, 6)))
    assert furthest(first, again) <= 2, "rows of one pair share their noise"
    assert furthest(first, other_text) > 2
    assert furthest(first, other_noise) > 2


@pytest.mark.parametrize("family", FAMILIES)
def test_encoding_first_and_decoding_beside_change_nothing(family: str, folders: dict[str, Path]) -> None:
    plain: Any = load(str(folders[family]), options(family))
    quick: Any = load(
        str(folders[family]), options(family, text_encoders="release", decode="beside", decode_batch="3", vae="sliced", warm_start="yes")
    )
    quick.check(rows())
    assert quick.execution()["text_encoders"] == "released after all texts were encoded"
    made = quick.generate(rows(), SEEDS)
    assert all(isinstance(each, Future) for each in made)
    assert furthest(pixels(plain.generate(rows(), SEEDS)), pixels(made)) <= 2
    assert quick._texts.released
    held = [name for name, part in quick._pipeline.components.items() if name.startswith("text_encoder") and part is not None]
    assert held == [], "the denoiser has the encoders' room"
    calls = quick._texts.calls
    pixels(quick.generate(rows(), SEEDS))
    assert quick._texts.calls == calls, "each text was encoded once"
    late = rows(["a text that nobody announced"])
    assert furthest(pixels(plain.generate(late, [9])), pixels(quick.generate(late, [9]))) <= 2


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_cut_is_counted_by_what_the_encoders_get(family: str, folders: dict[str, Path]) -> None:
    model = load(str(folders[family]), options(family))
    long = [*rows(["short", "x " * 400]), {"prompt_id": "2", "prompt": "ي" * 600, "language": "ar"}]
    cut = model.truncated(long)
    assert set(cut) == LIMITS[family]
    assert all(counts == {"en": 1, "ar": 1} for counts in cut.values())
    assert model.truncated(long[:1]) == {}


@pytest.mark.parametrize("family", ["sd", "sdxl", "pixart", "lumina2"])
def test_the_size_that_nobody_asked_for_is_known_beforehand(family: str, folders: dict[str, Path]) -> None:
    model: Any = load(str(folders[family]), {"steps": "1"})
    record = model.record()
    picture = model.generate(rows(["a dog"]), [1])[0]
    assert picture.size == (record["width"], record["height"])


@pytest.mark.parametrize("family", ["sd3", "flux", "sana", "pixart", "lumina2"])
def test_a_text_is_counted_as_cut_exactly_when_its_last_letter_is_not_seen(family: str, folders: dict[str, Path]) -> None:
    model: Any = load(str(folders[family]), options(family, max_sequence_length="240"))

    def is_cut(length: int) -> bool:
        return any("240 tokens" in name for name in model.truncated(rows(["x" * length])))

    longest = bisect.bisect_left(range(1, 260), True, key=is_cut)
    assert 0 < longest < 240
    assert seen(model, "x" * longest) != seen(model, "x" * (longest - 1) + "y")
    assert seen(model, "x" * longest + "y") == seen(model, "x" * longest + "z")


def seen(model: Any, text: str) -> bytes:
    """The tensors that a text becomes, as bytes."""
    with torch.inference_mode():
        encoded = model._texts.encode([text])[0]
    return b"".join(tensor.numpy().tobytes() for tensor in encoded.values())
