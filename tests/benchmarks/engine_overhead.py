"""The engine's overhead: a run against the bare loop over the same pipeline, at the same batch and steps.

The bare loop calls the pipeline and drops its images; a run also plans, encodes PNG, appends each batch durably, and folds parts. The
pipeline is small and has random weights, with as many steps as make a batch take about a second; any real model takes longer.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from measure import Row, main, seconds
from rich.console import Console

BATCH = 4
SIDE = 64

ROOT = Path(__file__).parents[2]
# The repository before tests/, whose folders have the packages' names.
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def run(size: int, repeats: int, batch_seconds: float = 1.0) -> list[Row]:
    """Time ``size`` images, ``batch_seconds`` (about) a batch of four."""
    import torch
    from diffusers import AutoPipelineForText2Image
    from small_models import stable_diffusion

    from t2i_parity.dataset_builder.prompts import PROMPT_COLUMNS
    from t2i_parity.generate import images
    from t2i_parity.generate.models.diffusers_pipeline import DiffusersPipeline, PipelineSettings
    from t2i_parity.generate.run import Run

    logging.disable(logging.WARNING)
    # One thread: others would wait for work by turning over, and count as processor time.
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place, contextlib.redirect_stderr(io.StringIO()):
        folder = stable_diffusion(Path(place) / "model")
        bare = AutoPipelineForText2Image.from_pretrained(folder, dtype=torch.float32)
        bare.set_progress_bar_config(disable=True)
        rows = [
            {**dict.fromkeys(PROMPT_COLUMNS), "prompt_id": f"p{number}", "pair_id": f"p{number}", "prompt": f"a hat and {number} cats",
             "language": "en", "subset": "s", "text_sha256": str(number)}
            for number in range(size)
        ]  # fmt: skip

        def loop(count: int, steps: int) -> None:
            for start in range(0, count, BATCH):
                chunk = rows[start : start + BATCH]
                generators = [torch.Generator("cpu").manual_seed(number) for number in range(len(chunk))]
                with torch.inference_mode():
                    bare([row["prompt"] for row in chunk], generator=generators, num_inference_steps=steps, width=SIDE, height=SIDE)

        loop(BATCH, 4)
        begin = time.process_time()
        loop(BATCH, 16)
        steps = max(1, min(1000, round(16 * batch_seconds / (time.process_time() - begin))))
        model = DiffusersPipeline(str(folder), PipelineSettings(steps=steps, width=SIDE, height=SIDE, device="cpu"))
        model.check(rows)
        studio = images.Studio(model)
        number = itertools.count()

        def engine() -> None:
            made = Run.start(f"{place}/run-{next(number)}", "generation", identity={}, details={})
            with made.locked():
                plan = images.planned(rows, model.record(), seed=42, images_per_prompt=1)
                tally = images.generate(made, plan, studio, batch_size=BATCH, console=Console(quiet=True))
                made.write_card()
            if (tally.done, tally.failed) != (size, 0):
                raise RuntimeError(f"{tally.failed} of {tally.done} images failed")

        model.generate(rows[:BATCH], list(range(len(rows[:BATCH]))))
        processor: dict[str, float] = {}

        def counted(name: str, work: Callable[[], None]) -> None:
            begin = time.process_time()
            work()
            processor[name] = min(processor.get(name, float("inf")), time.process_time() - begin)

        ours, peer = seconds([lambda: counted("run", engine), lambda: counted("loop", lambda: loop(size, steps))], repeats)
    what, bare_loop = f"a run of {size} images, {steps} steps, batches of {BATCH}", f"the bare loop, {peer * BATCH / size:.2f} s a batch"
    return [
        Row(what, ours, bare_loop, peer, 1.03),
        # What a busy machine does not blur; what runs beside the denoiser counts here as if it ran in its way.
        Row("the same, in seconds of all processors", processor["run"], "the bare loop", processor["loop"], 1.03),
    ]


if __name__ == "__main__":
    main(run, 40, 3, __doc__)
