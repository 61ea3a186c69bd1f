"""A process that has imported what a command needs, and forks one that runs it each time it is told: for tests that kill commands often.

Starting Python and importing torch take seconds; killing a command twenty times would take minutes otherwise. Nothing but imports happens
before a fork.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path


class Stable:
    """Commands on call, each in a process of its own."""

    def __init__(self) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert self._zygote.stdout is not None
        assert self._zygote.stdout.readline() == "ready\n"

    def start(self, arguments: list[str], log: Path, part_rows: int) -> int:
        """Begin a command; returns its process id. Each batch that the model begins is a line of image_ids in ``log``."""
        self._tell({"arguments": arguments, "log": str(log), "part_rows": part_rows})
        return int(self._answer())

    def wait(self) -> int:
        """Wait for the command to end; its exit code, negative for a signal."""
        self._tell("wait")
        return int(self._answer())

    def close(self) -> None:
        """End the stable."""
        assert self._zygote.stdin is not None
        self._zygote.stdin.close()
        self._zygote.wait()

    def _tell(self, what: object) -> None:
        assert self._zygote.stdin is not None
        self._zygote.stdin.write(json.dumps(what) + "\n")
        self._zygote.stdin.flush()

    def _answer(self) -> str:
        assert self._zygote.stdout is not None
        return self._zygote.stdout.readline()


def _run(order: dict[str, object]) -> None:
    """The command, with a log of what the model begins and with small parts, so that kills meet folds too."""
    from t2i_parity.dataset_builder.console import main
    from t2i_parity.generate.models.diffusers_pipeline import DiffusersPipeline
    from t2i_parity.generate.parts import Parts
    from t2i_parity.generate.run import Run, image_features

    generate = DiffusersPipeline.generate
    log = os.open(str(order["log"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def logged(self: DiffusersPipeline, rows: list[dict[str, str]], seeds: list[int]) -> object:
        os.write(log, (" ".join(row["image_id"] for row in rows) + "\n").encode())
        return generate(self, rows, seeds)

    def images(self: Run) -> Parts:
        return Parts(self.folder, "images", key="image_id", schema=image_features().arrow_schema, part_rows=int(str(order["part_rows"])))

    DiffusersPipeline.generate = logged  # type: ignore[assignment,method-assign]
    Run.images = images  # type: ignore[method-assign]
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    main(list(order["arguments"]))  # type: ignore[call-overload]


def _serve() -> None:
    # Whatever the command imports on its way, but no work that would start threads.
    import datasets  # noqa: F401
    import diffusers  # noqa: F401
    import torch  # noqa: F401
    import transformers  # noqa: F401

    with contextlib.suppress(ImportError):
        from diffusers import AutoencoderKL, AutoPipelineForText2Image, DDIMScheduler, StableDiffusionPipeline  # noqa: F401
        from transformers import CLIPTextModel, CLIPTokenizer  # noqa: F401
    import t2i_parity.generate.commands
    import t2i_parity.generate.guardrails.model
    import t2i_parity.generate.images
    import t2i_parity.generate.models.catalog
    import t2i_parity.generate.models.diffusers_pipeline  # noqa: F401

    print("ready", flush=True)
    child = 0
    for line in sys.stdin:
        order = json.loads(line)
        if order == "wait":
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _run(order)
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            finally:
                os._exit(code)
        print(child, flush=True)


if __name__ == "__main__":
    _serve()
