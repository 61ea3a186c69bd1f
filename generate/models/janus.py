"""Janus and Janus-Pro as transformers runs them (``JanusForConditionalGeneration``): images as sequences of tokens, drawn one by one.

Each image draws from its own generator: the largest of the scores plus Gumbel noise is a sample of their softmax, and the noise depends on
the row's seed alone. What else is in the batch then enters by rounding alone, which may still turn a draw where two tokens are nearly
level; from there on the image is another one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.dataset_builder.schema import Column
from t2i_parity.generate import layout
from t2i_parity.generate.backends.identity import files_sha256
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.models.diffusers_pipeline import torch_device
from t2i_parity.generate.rows import PlannedRow, Record, WordedRow


@dataclass(frozen=True, slots=True)
class JanusSettings:
    """What ``--set`` takes. ``guidance`` scales classifier-free guidance between the prompt and an empty one (5 in the authors' script)."""

    guidance: Annotated[float, Field(ge=0)] = 5.0
    temperature: Annotated[float, Field(gt=0)] = 1.0
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    device: str = "auto"
    revision: str | None = None


class Janus:
    """The model, with the interface of all models. Its weights load when the object is made."""

    columns: tuple[Column, ...] = ()

    def __init__(self, source: str, settings: JanusSettings) -> None:
        torch = require("torch", package="torch", extra="generate")
        transformers = require("transformers", package="transformers", extra="generate")
        require("torchvision", package="torchvision", extra="clip")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self._torch = torch
        self.settings = settings
        folder, self._identity = _locate(source, settings.revision)
        self.name = self._identity["model"]
        self.device = torch_device(settings.device, torch)
        self._dtype = ("bfloat16" if self.device.startswith("cuda") else "float32") if settings.dtype == "auto" else settings.dtype
        try:
            self._processor = transformers.JanusProcessor.from_pretrained(folder)
            model = transformers.JanusForConditionalGeneration.from_pretrained(folder, dtype=getattr(torch, self._dtype))
        except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
            raise InputError(
                f"{source} did not load as a Janus model ({first_line(error)}). Give the hub id or folder of one in the layout of "
                "transformers, such as deepseek-community/Janus-Pro-7B"
            ) from error
        self._model = model.to(self.device).eval()
        # How the image's tokens begin; not every copy of the weights says so itself.
        generation = model.generation_config
        begins = {"boi_token_id": self._processor.tokenizer.convert_tokens_to_ids(self._processor.image_start_token)}
        generation.generation_kwargs = begins | (getattr(generation, "generation_kwargs", None) or {})
        self._tokens: int = model.config.vision_config.num_image_tokens
        self._side = math.isqrt(self._tokens) * 2 ** (len(model.config.vq_config.channel_multiplier) - 1)

    def record(self) -> Record:
        """Model and revision, and every setting that decides the pixels."""
        return {
            **self._identity,
            "pipeline": type(self._model).__name__,
            "dtype": self._dtype,
            "image_tokens": self._tokens,
            "guidance": self.settings.guidance,
            "temperature": self.settings.temperature,
            "width": self._side,
            "height": self._side,
            **layout.template_record(),
        }

    def execution(self) -> Record:
        """How it is carried out, which changes scores by rounding alone."""
        return {"compile": None, "attention": {"backend": self._model.config._attn_implementation}}

    def check(self, rows: Sequence[WordedRow]) -> None:
        """Raise InputError for a text that leaves no room for the image's tokens."""
        for row, length in zip(rows, self._lengths(rows), strict=True):
            if length + self._tokens > self._context:
                raise InputError(
                    f"row {row.get('prompt_id')!r}: its prompt has {length} tokens, and beside the {self._tokens} of an image "
                    f"{self.name} has room for {self._context - self._tokens}. Leave the row out, or shorten its prompt"
                )

    def truncated(self, rows: Sequence[PlannedRow]) -> dict[str, dict[str, int]]:
        """Nothing is cut: a text that is too long is refused by ``check``; one beyond the context would be counted here."""
        over = Counter(
            row["language"]
            for row, length in zip(rows, self._lengths(rows), strict=True)
            if length + self._tokens > self._context
        )  # fmt: skip
        return {f"context ({self._context} tokens)": dict(over)} if over else {}

    def batch_key(self, row: PlannedRow) -> tuple[int, int]:
        """Pixels, then the text's length in characters."""
        return self._side**2, len(layout.worded(row))

    def generate(self, rows: Sequence[PlannedRow], seeds: Sequence[int]) -> list[Image.Image | Failure]:
        """One image a row, drawn from the row's seed."""
        torch = self._torch
        inputs = self._processor(text=self._chats(rows), generation_mode="image", padding=True, return_tensors="pt").to(self.device)
        draw = _Drawing(torch, seeds, guidance=self.settings.guidance, temperature=self.settings.temperature)
        with torch.inference_mode():
            # A scale of 1 keeps the library's own guidance out: both halves of the batch then come to our drawing.
            tokens = self._model.generate(
                input_ids=inputs["input_ids"],
                attention_mask=inputs["attention_mask"],
                generation_mode="image",
                generation_config=self._model.generation_config,
                do_sample=False,
                guidance_scale=1,
                logits_processor=_processors(draw),
            )
            decoded = self._model.decode_image_tokens(tokens).float().cpu()
        mean, std = (torch.tensor(getattr(self._processor.image_processor, name)) for name in ("image_mean", "image_std"))
        pixels = ((decoded * std + mean) * 255).round().clamp(0, 255)
        return [
            Image.fromarray(image.to(torch.uint8).numpy())
            if bool(torch.isfinite(raw).all())
            else Failure("the model gave values that are no numbers; --set dtype=float32 may help")
            for image, raw in zip(pixels, decoded, strict=True)
        ]

    @property
    def _context(self) -> int:
        context: int = self._model.config.text_config.max_position_embeddings
        return context

    def _chats(self, rows: Sequence[WordedRow]) -> list[str]:
        chats: list[str] = [
            self._processor.apply_chat_template(
                [{"role": "user", "content": [{"type": "text", "text": layout.worded(row)}]}], add_generation_prompt=True
            )
            for row in rows
        ]
        return chats

    def _lengths(self, rows: Sequence[WordedRow]) -> list[int]:
        """Tokens of each chat, and the one that begins the image."""
        return [len(ids) + 1 for ids in self._processor.tokenizer(self._chats(rows)).input_ids] if rows else []


class _Drawing:
    """Called once a token with the scores of both halves of the batch: guides, adds each image's own noise, and so decides by argmax."""

    def __init__(self, torch: Any, seeds: Sequence[int], *, guidance: float, temperature: float) -> None:
        self._torch = torch
        self._generators = [torch.Generator("cpu").manual_seed(seed) for seed in seeds]
        self._guidance = guidance
        self._temperature = temperature

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        wanted, empty = scores.float().chunk(2)
        guided = (empty + self._guidance * (wanted - empty)) / self._temperature
        uniform = self._torch.stack([self._torch.rand(guided.shape[-1], generator=each) for each in self._generators])
        tiny = self._torch.finfo(self._torch.float32).tiny
        exponential = -self._torch.log(uniform.clamp_min(tiny))
        noise = -self._torch.log(exponential.clamp_min(tiny))
        return guided + noise.to(guided.device)


def _processors(draw: _Drawing) -> Any:
    from transformers import LogitsProcessorList

    return LogitsProcessorList([draw])


def _locate(source: str, revision: str | None) -> tuple[str, dict[str, Any]]:
    folder = Path(source)
    if folder.exists():
        if not (folder / "config.json").is_file():
            raise InputError(f"{source} is not a model of transformers: it has no config.json. Give a folder that save_pretrained wrote")
        return source, {"model": folder.resolve().name, "files_sha256": files_sha256(folder)}
    from huggingface_hub import snapshot_download

    try:
        found = Path(snapshot_download(source, revision=revision))
    except Exception as error:  # the client raises many kinds, all of which mean: not to be had
        raise InputError(
            f"{source!r} is neither a folder nor a model that the hub gave ({first_line(error)}). "
            "Give the path of a saved model, or a hub id you can reach"
        ) from error
    return str(found), {"model": source, "revision": found.name}
