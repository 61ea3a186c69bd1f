"""Images a second of our path against one prompt at a time, on a full-size SDXL-class pipeline of random weights: for one GPU.

The denoiser is SDXL's own UNet configuration, the autoencoder SDXL's; the text encoders have SDXL's widths and fewer layers, which favours
the other side, since it encodes each prompt, and the empty one, anew. Both sides have equal prompts, steps, dtype and guidance.

``reference``: what the studies' scripts do: load the pipeline in that dtype, and for each prompt call it and save the picture as PNG.
``ours``: the command's own engine, written into a run folder: batches, texts encoded first, decoding and PNG beside the denoiser.

Told beside images a second: the share of our time in which the denoiser runs, and the peak of device memory. At its default size it takes
about five minutes on a data-centre GPU; ``--size small`` is for the CPU, where it shows only that it runs.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

sys.path.insert(0, str(Path(__file__).parents[1]))
import small_models
import torch
from diffusers import AutoencoderKL, EulerDiscreteScheduler, StableDiffusionXLPipeline, UNet2DConditionModel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTextModelWithProjection

from t2i_parity.dataset_builder.schema import text_sha256
from t2i_parity.generate import images
from t2i_parity.generate.models import load
from t2i_parity.generate.run import Run

TARGET = 2.5
"""How many times the images a second of the reference ours should make, on a GPU."""
DENOISER_SHARE = 0.95
"""How much of our time the denoiser should have, at least."""


@dataclass(frozen=True)
class Size:
    """A pipeline and how much is made of it; ``medium`` has a denoiser that takes most of the time even on a CPU."""

    unet: dict[str, Any]
    vae: dict[str, Any]
    side: int
    steps: int
    images: int
    batch: int


_SDXL_UNET: dict[str, Any] = {
    "block_out_channels": (320, 640, 1280),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"),
    "transformer_layers_per_block": (1, 2, 10),
    "attention_head_dim": (5, 10, 20),
    "cross_attention_dim": 2048,
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
    "sample_size": 128,
}
_SDXL_VAE: dict[str, Any] = {
    "block_out_channels": (128, 256, 512, 512),
    "down_block_types": ("DownEncoderBlock2D",) * 4,
    "up_block_types": ("UpDecoderBlock2D",) * 4,
    "layers_per_block": 2,
    "sample_size": 1024,
}
_MEDIUM_UNET: dict[str, Any] = {
    "block_out_channels": (96, 192),
    "down_block_types": ("DownBlock2D", "CrossAttnDownBlock2D"),
    "up_block_types": ("CrossAttnUpBlock2D", "UpBlock2D"),
    "transformer_layers_per_block": (1, 2),
    "attention_head_dim": (3, 6),
    "cross_attention_dim": 2048,
    "addition_time_embed_dim": 8,
    "projection_class_embeddings_input_dim": 6 * 8 + 1280,
    "sample_size": 32,
}
_SMALL_VAE: dict[str, Any] = {
    "block_out_channels": (8, 16),
    "down_block_types": ("DownEncoderBlock2D",) * 2,
    "up_block_types": ("UpDecoderBlock2D",) * 2,
    "norm_num_groups": 4,
}
SIZES = {
    "full": Size(_SDXL_UNET, _SDXL_VAE, side=1024, steps=20, images=32, batch=8),
    "medium": Size(_MEDIUM_UNET, _SMALL_VAE, side=64, steps=20, images=8, batch=4),
    "small": Size({**_MEDIUM_UNET, "block_out_channels": (32, 64), "attention_head_dim": (1, 2)}, _SMALL_VAE, 64, 2, 4, 2),
}


@dataclass(frozen=True)
class Measured:
    """One side: seconds for all images, those in the denoiser, and the peak of device memory in GiB (None off CUDA)."""

    images: int
    seconds: float
    denoiser: float
    peak_gib: float | None

    @property
    def rate(self) -> float:
        """Images a second."""
        return self.images / self.seconds

    @property
    def share(self) -> float:
        """The part of the time in which the denoiser ran."""
        return self.denoiser / self.seconds


def build(folder: Path, size: Size) -> Path:
    """An SDXL pipeline of random weights, saved."""
    torch.manual_seed(0)
    widths = {"tokenizer": (768, CLIPTextModel), "tokenizer_2": (1280, CLIPTextModelWithProjection)}
    parts: dict[str, Any] = {}
    for name, (width, kind) in widths.items():
        parts[name], vocabulary = small_models._tokenizer(folder / name)
        config = CLIPTextConfig(
            vocab_size=vocabulary,
            hidden_size=width,
            intermediate_size=4 * width,
            num_attention_heads=width // 64,
            num_hidden_layers=3,
            projection_dim=1280,
            bos_token_id=vocabulary - 2,
            eos_token_id=vocabulary - 1,
            pad_token_id=vocabulary - 1,
        )
        parts[name.replace("tokenizer", "text_encoder")] = kind(config)
    StableDiffusionXLPipeline(
        unet=UNet2DConditionModel(
            layers_per_block=2, use_linear_projection=True, addition_embed_type="text_time", norm_num_groups=32, **size.unet
        ),
        vae=AutoencoderKL(latent_channels=4, force_upcast=False, scaling_factor=0.13025, **size.vae),
        scheduler=EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1),
        add_watermarker=False,
        **parts,
    ).to(torch.bfloat16 if torch.cuda.is_available() else torch.float32).save_pretrained(folder)
    return folder


def prompts(n: int) -> list[dict[str, Any]]:
    """Distinct prompts, as rows."""
    texts = [f"a wooden board by the road, number {number}, in the light of the evening" for number in range(n)]
    return [
        {"prompt_id": f"p{number}", "pair_id": f"p{number}", "prompt": text, "language": "en", "text_sha256": text_sha256(text)}
        for number, text in enumerate(texts)
    ]


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


@contextmanager
def denoiser_clock(unet: Any, device: str) -> Iterator[Callable[[], float]]:
    """Seconds in which the UNet ran: on CUDA by events on its stream, which nothing waits for, else by the clock."""
    spans: list[tuple[Any, Any]] = []
    started: list[Any] = []

    def now() -> Any:
        if device != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    hooks = [
        unet.register_forward_pre_hook(lambda *_: started.append(now())),
        unet.register_forward_hook(lambda *_: spans.append((started.pop(), now()))),
    ]

    def total() -> float:
        _wait(device)
        return sum(begin.elapsed_time(end) / 1000 if device == "cuda" else end - begin for begin, end in spans)

    try:
        yield total
    finally:
        for hook in hooks:
            hook.remove()


def measured(work: Callable[[], None], unet: Any, n: int, device: str) -> Measured:
    """The time that ``work`` takes for ``n`` images."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    with denoiser_clock(unet, device) as denoised:
        _wait(device)
        start = time.perf_counter()
        work()
        _wait(device)
        seconds = time.perf_counter() - start
        denoiser = denoised()
    peak = torch.cuda.max_memory_allocated() / 2**30 if device == "cuda" else None
    return Measured(n, seconds, denoiser, peak)


def reference(folder: Path, size: Size, rows: list[dict[str, Any]], device: str, out: Path) -> Measured:
    """One prompt at a time through the pipeline's own call, each picture saved before the next; one call before the clock."""
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    pipeline = StableDiffusionXLPipeline.from_pretrained(folder, dtype=dtype).to(device)
    pipeline.set_progress_bar_config(disable=True)
    out.mkdir(parents=True)

    def one(text: str, steps: int) -> Any:
        noise = torch.Generator("cpu").manual_seed(42)
        return pipeline(text, num_inference_steps=steps, width=size.side, height=size.side, generator=noise).images[0]

    def work() -> None:
        for number, row in enumerate(rows):
            one(row["prompt"], size.steps).save(out / f"{number}.png")

    one("warm", 1)
    return measured(work, pipeline.unet, len(rows), device)


def ours(folder: Path, size: Size, rows: list[dict[str, Any]], device: str, out: Path, **settings: str) -> tuple[Measured, dict[str, Any]]:
    """The same through our engine into a run folder; loading and warming are before the clock, as on the other side."""
    sizes = {"steps": str(size.steps), "width": str(size.side), "height": str(size.side)}
    model: Any = load(str(folder), {"device": device, "warm_start": "yes", **sizes, **settings})
    model.check(rows)
    studio = images.Studio(model)
    plan = images.planned(rows, model.record(), seed=42, images_per_prompt=1)
    run = Run.start(str(out), "generation", identity={"model": model.record()}, details={"execution": model.execution()})

    def work() -> None:
        with run.locked():
            images.generate(run, plan, studio, batch_size=size.batch, console=Console(quiet=True))

    # A whole batch of throw-away steps, so that kernels are chosen before the clock, as the other side's one call does for it.
    with torch.inference_mode():
        model._call([row["prompt"] for row in rows[: size.batch]], [0] * min(size.batch, len(rows)), 1)
    result = measured(work, model._pipeline.unet, len(rows), device)
    made = run.images().read(["status"]).to_pylist()
    if [row["status"] for row in made] != ["ok"] * len(rows):
        raise RuntimeError(f"{len(rows)} images were to be made, and these are there: {made}")
    return result, model.execution()


def table(sides: dict[str, Measured], *, cuda: bool) -> str:
    """Both sides, and what ours should reach; how many times the reference's rate, on a GPU alone."""
    lines = [f"{'':<12}{'images':>7}{'s':>10}{'images/s':>10}{'in denoiser':>13}{'peak GiB':>10}"]
    for name, side in sides.items():
        peak = "–" if side.peak_gib is None else f"{side.peak_gib:.1f}"
        lines.append(f"{name:<12}{side.images:>7}{side.seconds:>10.2f}{side.rate:>10.3f}{side.share:>12.1%} {peak:>10}")
    ratio = sides["ours"].rate / sides["reference"].rate
    told = f"target {TARGET}×: {'holds' if ratio >= TARGET else 'MISSED'}" if cuda else f"the target of {TARGET}× is for a GPU"
    lines.append(f"ours / reference: {ratio:.2f}× ({told})")
    share = sides["ours"].share
    lines.append(f"our time in the denoiser: {share:.1%} (target {DENOISER_SHARE:.0%}: {'holds' if share >= DENOISER_SHARE else 'MISSED'})")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure, print the table, and write the figures."""
    cuda = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="full" if cuda else "medium", help="default here: %(default)s")
    parser.add_argument("--images", type=int, help="how many each side makes")
    parser.add_argument("--batch", type=int, help="ours only: the reference makes one at a time")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of ours, e.g. compile=repeated_blocks")
    parser.add_argument("--out", type=Path, help="also write the figures here, as JSON")
    given = parser.parse_args(arguments)
    chosen = SIZES[given.size]
    size = Size(**{**asdict(chosen), "images": given.images or chosen.images, "batch": given.batch or chosen.batch})
    device = "cuda" if cuda else "cpu"
    settings = dict(pair.split("=", 1) for pair in given.set)
    rows = prompts(size.images)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        pipeline = build(root / "pipeline", size)
        sides = {"reference": reference(pipeline, size, rows, device, root / "reference")}
        gc.collect()
        if cuda:
            torch.cuda.empty_cache()
        sides["ours"], execution = ours(pipeline, size, rows, device, root / "ours", **settings)
    hardware = torch.cuda.get_device_name() if cuda else platform.processor() or platform.machine()
    print(f"{given.size} size, {size.side} pixels, {size.steps} steps, batches of {size.batch}, on {hardware}")
    print(table(sides, cuda=cuda))
    if given.out is not None:
        figures = {
            name: {**asdict(side), "images_per_second": side.rate, "denoiser_share": side.share} for name, side in sides.items()
        }  # fmt: skip
        told = {"size": given.size, "hardware": hardware, "torch": torch.__version__, "steps": size.steps, "side": size.side}
        given.out.write_text(json.dumps({**told, "batch": size.batch, "execution": execution, "sides": figures}, indent=2) + "\n")


if __name__ == "__main__":
    main()
