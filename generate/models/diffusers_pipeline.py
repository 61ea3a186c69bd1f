"""Any text-to-image pipeline of diffusers, by hub id or folder (``AutoPipelineForText2Image``)."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from dataset_builder.errors import InputError, first_line, require
from dataset_builder.schema import Column
from generate.engine.local import Failure

Side = Annotated[int, Field(ge=16, le=8192)]


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """What ``--set`` takes; what is left out is the pipeline's own default, and run.json says so."""

    steps: Annotated[int, Field(ge=1)] | None = None
    guidance: float | None = None
    width: Side | None = None
    height: Side | None = None
    negative_prompt: str | None = None
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    device: str = "auto"
    revision: str | None = None


class DiffusersPipeline:
    """A loaded pipeline, with the interface of a model. Its weights load when the object is made, before the first prompt."""

    columns: tuple[Column, ...] = ()

    def __init__(self, source: str, settings: PipelineSettings) -> None:
        warnings.filterwarnings("ignore", category=FutureWarning, module="torch")
        torch = require("torch", package="torch", extra="generate")
        diffusers = require("diffusers", package="diffusers", extra="generate")
        transformers = require("transformers", package="transformers", extra="generate")
        # Their bars and their repeated lines on truncation would drown ours; what is truncated is counted by this class.
        for library in (diffusers.utils.logging, transformers.utils.logging):
            library.set_verbosity_error()
            library.disable_progress_bar()
        self.settings = settings
        folder, self._identity = _locate(source, settings.revision, diffusers)
        self.name = self._identity["model"]
        self.device = _device(settings.device, torch)
        dtype = ("bfloat16" if self.device.startswith("cuda") else "float32") if settings.dtype == "auto" else settings.dtype
        self._torch = torch
        try:
            pipeline = diffusers.AutoPipelineForText2Image.from_pretrained(folder, dtype=getattr(torch, dtype))
        except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
            raise InputError(
                f"{source} did not load as a text-to-image pipeline ({first_line(error)}). "
                "Give the hub id or folder of one that AutoPipelineForText2Image knows, with all its files"
            ) from error
        self._pipeline = pipeline.to(self.device)
        self._pipeline.set_progress_bar_config(disable=True)
        self._dtype = dtype

    def record(self) -> dict[str, Any]:
        """Model and revision, pipeline and scheduler classes, and every setting that decides the pixels."""
        scheduler = getattr(self._pipeline, "scheduler", None)
        return {
            **self._identity,
            "pipeline": type(self._pipeline).__name__,
            "scheduler": type(scheduler).__name__ if scheduler is not None else None,
            "dtype": self._dtype,
            "steps": self.settings.steps,
            "guidance": self.settings.guidance,
            "negative_prompt": self.settings.negative_prompt,
            "width": self.settings.width,
            "height": self.settings.height,
            "safety_checker": getattr(self._pipeline, "safety_checker", None) is not None,
        }

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Nothing more to check: a pipeline takes any text."""

    def truncated(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
        """Per tokenizer of the pipeline and language: how many prompts are longer than it takes, so that their ends are not seen.

        A language whose prompts are cut more often is not asked the same as the others; only tokenizers that cut are named.
        """
        found: dict[str, dict[str, int]] = {}
        for name, part in self._pipeline.components.items():
            if not name.startswith("tokenizer") or getattr(part, "model_max_length", 10**9) > 10**6:
                continue
            lengths = [len(ids) for ids in part([row["prompt"] for row in rows], truncation=False).input_ids]
            cut = Counter(row["language"] for row, length in zip(rows, lengths, strict=True) if length > part.model_max_length)
            if cut:
                found[f"{name} ({part.model_max_length} tokens)"] = dict(cut)
        return found

    def generate(self, rows: Sequence[Mapping[str, Any]], seeds: Sequence[int]) -> list[Image.Image | Failure]:
        """One image a row; what the pipeline's own safety checker blacks out is a refusal, not an image."""
        arguments: dict[str, Any] = {
            "num_inference_steps": self.settings.steps,
            "guidance_scale": self.settings.guidance,
            "width": self.settings.width,
            "height": self.settings.height,
        }
        arguments = {name: value for name, value in arguments.items() if value is not None}
        if self.settings.negative_prompt is not None:
            arguments["negative_prompt"] = [self.settings.negative_prompt] * len(rows)
        # One generator an image, on the CPU: the noise then depends on the row's seed alone, not on the batch or the device.
        generators = [self._torch.Generator("cpu").manual_seed(seed) for seed in seeds]
        with self._torch.inference_mode():
            output = self._pipeline([row["prompt"] for row in rows], generator=generators, output_type="pil", **arguments)
        flagged = getattr(output, "nsfw_content_detected", None) or [False] * len(rows)
        return [
            Failure("the pipeline's safety checker withheld the image", refused=True) if withheld else image
            for image, withheld in zip(output.images, flagged, strict=True)
        ]


def _device(asked: str, torch: Any) -> str:
    if asked != "auto":
        return asked
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _locate(source: str, revision: str | None, diffusers: Any) -> tuple[str, dict[str, Any]]:
    """The folder with the pipeline's files, and what identifies them: a hub id with its commit, or a hash of a folder's files."""
    folder = Path(source)
    if folder.exists():
        if not (folder / "model_index.json").is_file():
            raise InputError(
                f"{source} is not a diffusers pipeline: it has no model_index.json. Give the folder that save_pretrained wrote, or a hub id"
            )
        return source, {"model": folder.resolve().name, "files_sha256": files_sha256(folder)}
    try:
        found = Path(diffusers.DiffusionPipeline.download(source, revision=revision))
    except Exception as error:  # the client raises many kinds, all of which mean: not to be had
        raise InputError(
            f"{source!r} is neither a folder nor a pipeline that the hub gave ({first_line(error)}). "
            "Give the path of a saved pipeline, or a hub id you can reach (hf auth login for a gated one)"
        ) from error
    return str(found), {"model": source, "revision": found.name}


def files_sha256(folder: Path) -> str:
    """A hash over a folder's files: names, sizes, and content (of files above 64 MiB the first and last MiB, to stay quick)."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")):
        size = path.stat().st_size
        digest.update(json.dumps([path.relative_to(folder).as_posix(), size]).encode("utf-8"))
        with open(path, "rb") as file:
            if size <= 64 * 2**20:
                digest.update(file.read())
            else:
                digest.update(file.read(2**20))
                file.seek(-(2**20), 2)
                digest.update(file.read())
    return digest.hexdigest()
