"""The CLIP judge over a run of images, from parquet to durable observations, against a loop over one image at a time."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row, main, seconds
from PIL import Image
from rich.console import Console

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parent.parent))

SIDE = 512
VISION = {"image_size": 224, "layers": 4, "width": 192, "head_width": 32, "patch_size": 32}
TEXT = {"context_length": 77, "width": 192, "heads": 6, "layers": 4, "vocab_size": 49408}
BATCH = 64
PICTURES = 40
"""So many different pictures are made; more would only cost time to make."""
MEMORY_FROM = 1000
"""Peak memory is compared from so many rows on: with fewer it is that of the libraries."""


def a_run(folder: Path, size: int, images_per_prompt: int) -> Any:
    """``size`` image rows of 512 × 512 pixels, with detail as photographs have, each prompt ``images_per_prompt`` times."""
    import pyarrow as pa

    from t2i_parity.generate.run import Run, image_features

    rng = np.random.default_rng(0)
    made = []
    for _ in range(min(size, PICTURES)):
        picture = Image.fromarray(rng.integers(0, 256, (48, 48, 3), np.uint8)).resize((SIDE, SIDE), Image.Resampling.BICUBIC)
        grain = rng.integers(-4, 5, (SIDE, SIDE, 1))
        buffer = io.BytesIO()
        Image.fromarray(np.clip(np.asarray(picture) + grain, 0, 255).astype(np.uint8)).save(buffer, "PNG", compress_level=1)
        made.append(buffer.getvalue())
    run = Run(str(folder), {"kind": "generation", "identity": {"model": {"model": "given"}}, "packages": {}})
    run.write_record()
    schema = image_features().arrow_schema
    plain = {**dict.fromkeys(schema.names), "language": "en", "subset": "given", "status": "ok"}
    for start in range(0, size, 200):
        rows = [
            {
                **plain,
                "image_id": f"{number:06}",
                "pair_id": f"{number // images_per_prompt}",
                "prompt": f"a painting of {number // images_per_prompt} boats on a wide river under a stormy sky, seen from a bridge",
                "image": {"bytes": made[number % len(made)], "path": None},
            }
            for number in range(start, min(start + 200, size))
        ]
        run.images().append(pa.Table.from_pylist(rows, schema=schema))
    run.images().fold()
    return run


def judge_run(run: Any, judge: Any) -> None:
    """All observations of the run anew; no text is known yet."""
    from t2i_parity.generate import observe

    shutil.rmtree(Path(run.url) / "observations", ignore_errors=True)
    judge._features._texts.clear()
    observe.judge(run, {"clip": judge}, batch_size=BATCH, console=Console(quiet=True))


def loop(run: Any, judge: Any) -> list[float]:
    """As published scripts go: open, preprocess and encode one image, encode its text, one after the other; kept in memory alone."""
    import torch

    encoder = judge._features.encoder
    found = []
    with torch.inference_mode():
        for batch in run.images().batches(["image_id", "prompt", "image"], BATCH):
            for row in batch:
                with Image.open(io.BytesIO(row["image"]["bytes"])) as opened:
                    pixels = encoder._preprocess(opened.convert("RGB"))
                image = encoder._network.encode_image(pixels[None])
                text = encoder._network.encode_text(encoder._tokenize([row["prompt"]]))
                image, text = image / image.norm(dim=-1, keepdim=True), text / text.norm(dim=-1, keepdim=True)
                found.append(float((image * text).sum()))
    return found


def a_judge(folder: Path) -> Any:
    """The judge with the same small random weights every time."""
    from small_clip import checkpoint

    from t2i_parity.generate import judges

    weights = checkpoint(folder, "parity-benchmark", vision=VISION, text=TEXT, width=192)
    return judges.load("clip", {"model": "parity-benchmark", "pretrained": weights, "device": "cpu"})


def peak(run: str, folder: str) -> None:
    """Judge a run and print the process's peak resident memory, in MiB (Linux; ``getrusage`` would tell that of the process before)."""
    from t2i_parity.generate.run import Run

    judge_run(Run.open(run), a_judge(Path(folder)))
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    print(next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")))


def run(size: int, repeats: int) -> list[Row]:
    """Time ``size`` images, four a prompt and one a prompt; then, where there are enough, compare peak memory with a quarter of them."""
    rows = []
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        judge = a_judge(folder)
        for images_per_prompt, limit in ((4, 0.5), (1, None)):
            judged = a_run(folder / f"run-{images_per_prompt}", size, images_per_prompt)
            looped: list[float] = []

            def ours(judged: Any = judged) -> None:
                judge_run(judged, judge)

            def peer(judged: Any = judged, looped: list[float] = looped) -> None:
                looped[:] = loop(judged, judge)

            ours_s, peer_s = seconds([ours, peer], repeats)
            what = f"judge clip, {size:,} images, {images_per_prompt} a prompt"
            rows.append(Row(what, ours_s, "one at a time, decoded in line", peer_s, limit))
            observed = judged.observations("clip").read()["similarity"].to_pylist()
            difference = np.abs(np.array(observed) - looped).max()
            if difference > 1e-4:
                raise RuntimeError(f"the two do not agree: similarities differ by up to {difference}")
        if size >= MEMORY_FROM and Path("/proc/self/status").exists():
            a_run(folder / "quarter", size // 4, 1)
            peaks = []
            for place in (folder / "run-1", folder / "quarter"):
                command = [sys.executable, __file__, "--peak", str(place), made]
                peaks.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            rows.append(Row(f"peak memory in MiB, {size:,} images", peaks[0], f"{size // 4:,} images", peaks[1], 1.1))
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peak"]:
        peak(*sys.argv[2:])
    else:
        main(run, 2000, 1, __doc__)
