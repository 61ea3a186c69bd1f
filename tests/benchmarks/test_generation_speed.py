"""The GPU's benchmark runs on the CPU at a size that shows nothing but that."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("diffusers")
torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the benchmark itself is the test")
@pytest.mark.usefixtures("_one_thread")
def test_both_sides_are_measured_and_the_figures_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import generation_speed

    generation_speed.main(["--size", "small", "--images", "3", "--set", "text_encoders=release", "--out", str(tmp_path / "speed.json")])
    told = capsys.readouterr().out
    assert "the target of 2.5× is for a GPU" in told
    figures = json.loads((tmp_path / "speed.json").read_text())
    assert figures["execution"]["text_encoders"] == "released after all texts were encoded"
    for side in figures["sides"].values():
        assert side["images"] == 3
        assert 0 < side["denoiser"] < side["seconds"]
        assert side["denoiser_share"] == side["denoiser"] / side["seconds"]
        assert side["peak_gib"] is None


def test_the_full_size_is_sdxls_own() -> None:
    """Without making it: 2.57 billion parameters, as the published UNet has."""
    import generation_speed
    from diffusers import UNet2DConditionModel

    with torch.device("meta"):
        unet = UNet2DConditionModel(
            layers_per_block=2, use_linear_projection=True, addition_embed_type="text_time", **generation_speed.SIZES["full"].unet
        )
    assert sum(weights.numel() for weights in unet.parameters()) == 2_567_463_684
