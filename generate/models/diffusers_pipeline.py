"""Any text-to-image pipeline of diffusers, by hub id or folder (``AutoPipelineForText2Image``).

For classes that ``generate.backends.pipelines`` declares, each distinct text is encoded once and kept, the encoders make room for the
denoiser when all of a run's texts fit into the cache, and latents are decoded off the denoiser's path. Steps, guidance, sizes and dtype
decide the pixels and stand in ``record``; how the same computation is carried out changes them by rounding alone and stands in
``execution``.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.dataset_builder.schema import Column
from t2i_parity.generate import layout
from t2i_parity.generate.backends.identity import files_sha256
from t2i_parity.generate.backends.pipelines import (
    PIPELINES,
    TextEncoder,
    call_default,
    cut,
    decode,
    default_side,
    long_limit,
    quantization,
    size_of,
    size_step,
    takes,
)
from t2i_parity.generate.engine.local import Failure, out_of_memory
from t2i_parity.generate.guardrails import Guardrail
from t2i_parity.generate.rows import PlannedRow, Record, WordedRow

Side = Annotated[int, Field(ge=16, le=8192)]
Choice = Literal["auto", "yes", "no"]
Made = Image.Image | Failure
ENCODED_AT_ONCE = 16
"""Texts in one call of the text encoders, when all of a run's are encoded beforehand."""


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """What ``--set`` takes; what is left out is the pipeline's own default, and run.json says what that is.

    What decides the pixels: ``guidance`` scales classifier-free guidance, or the distilled guidance of pipelines that have that alone;
    ``true_guidance`` is classifier-free guidance on top of a distilled one (FLUX, with a ``negative_prompt``); ``max_sequence_length`` is
    the most tokens that a T5 or a language model gets of a text; ``safety_checker=none`` leaves out the checker that a checkpoint brings.

    How it is carried out: ``compile=repeated_blocks`` compiles the denoiser's repeated blocks; ``attention`` is a backend of diffusers
    (``set_attention_backend``) in the place of its own choice, PyTorch's scaled dot-product attention; ``channels_last`` lays a UNet out
    for convolutions (auto: on CUDA); ``text_encoders=release`` encodes all texts of a run first and moves the encoders to main memory, if
    what the texts become fits ``text_cache_gib`` (auto: on CUDA); ``vae`` decodes whole batches, picture by picture, or in tiles;
    ``decode=beside`` decodes on a thread and stream of its own, ``decode_batch`` pictures at once (auto: on CUDA); ``warm_start`` makes one
    throw-away step before the first batch (auto: on CUDA, or where something is compiled).
    """

    steps: Annotated[int, Field(ge=1)] | None = None
    guidance: float | None = None
    true_guidance: float | None = None
    width: Side | None = None
    height: Side | None = None
    negative_prompt: str | None = None
    max_sequence_length: Annotated[int, Field(ge=1)] | None = None
    safety_checker: Literal["own", "none"] = "own"
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    device: str = "auto"
    revision: str | None = None
    compile: Literal["none", "repeated_blocks"] = "none"
    attention: str = "auto"
    channels_last: Choice = "auto"
    text_encoders: Literal["auto", "keep", "release"] = "auto"
    text_cache_gib: Annotated[float, Field(ge=0)] = 4.0
    vae: Literal["whole", "sliced", "tiled"] = "whole"
    decode: Literal["auto", "inline", "beside"] = "auto"
    decode_batch: Annotated[int, Field(ge=1)] = 4
    warm_start: Choice = "auto"


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
        self._torch = torch
        folder, self._identity = _locate(source, settings.revision, diffusers)
        self.name = self._identity["model"]
        self.device = torch_device(settings.device, torch)
        self._on_cuda = self.device.startswith("cuda")
        self._dtype = ("bfloat16" if self._on_cuda else "float32") if settings.dtype == "auto" else settings.dtype
        self._pipeline = self._load(folder, source, diffusers)
        self._declared = PIPELINES.get(type(self._pipeline).__name__)
        self._steps = settings.steps or call_default(self._pipeline, "num_inference_steps")
        self._guidance = settings.guidance if settings.guidance is not None else call_default(self._pipeline, self._guidance_argument)
        side = default_side(self._pipeline)
        self._width, self._height = settings.width or side, settings.height or side
        self._limits = {} if settings.max_sequence_length is None else {"max_sequence_length": settings.max_sequence_length}
        self._check_settings()
        self._memory_format = self._prepare_modules()
        self._texts: TextEncoder | None = None
        if self._declared is not None:
            self._texts = TextEncoder(
                self._pipeline,
                self._declared,
                negative_prompt=settings.negative_prompt,
                guided=self._guided(),
                limits=self._limits,
                cache=round(settings.text_cache_gib * 2**30),
            )
        # A safety checker of the pipeline's own sees the finished picture, inside the pipeline's call.
        self._decodes = self._declared is not None and getattr(self._pipeline, "safety_checker", None) is None
        beside = settings.decode == "beside" or (settings.decode == "auto" and self._on_cuda)
        self._decoder = ThreadPoolExecutor(1, thread_name_prefix="decode") if beside and self._decodes else None
        self._stream = torch.cuda.Stream(self.device) if self._decoder is not None and self._on_cuda else None
        self._warms = settings.warm_start == "yes" or (
            settings.warm_start == "auto" and (self._on_cuda or settings.compile != "none")
        )  # fmt: skip
        self._releases = False
        self._announced: list[str] = []
        self._prepared = False
        self._guardrail: Guardrail | None = None
        self._guarded: Any = self._pipeline

    # What it is

    def record(self) -> Record:
        """Model and revision, pipeline and scheduler classes, and every setting that decides the pixels, the pipeline's defaults put in."""
        scheduler = getattr(self._pipeline, "scheduler", None)
        return {
            **self._identity,
            "pipeline": type(self._pipeline).__name__,
            "scheduler": type(scheduler).__name__ if scheduler is not None else None,
            "dtype": self._dtype,
            "steps": self._steps,
            "guidance": self._guidance,
            "guidance_argument": self._guidance_argument,
            "true_guidance": self.settings.true_guidance,
            "negative_prompt": self.settings.negative_prompt,
            "max_sequence_length": long_limit(self._pipeline, self._limits),
            "width": self._width,
            "height": self._height,
            "safety_checker": getattr(self._pipeline, "safety_checker", None) is not None,
            **({"quantization": quantized} if (quantized := quantization(self._pipeline)) else {}),
            **layout.template_record(),
        }

    def execution(self) -> Record:
        """How it is carried out, which changes pixels by rounding alone; to be asked after ``check``, which decides about the encoders."""
        return {
            "compile": None if self.settings.compile == "none" else self.settings.compile,
            "attention": self._attention(),
            "memory_format": self._memory_format,
            "text_encoders": "released after all texts were encoded" if self._releases else "kept",
            "texts_encoded_apart": self._texts is not None and not self._reads_prompts,
            "vae": self.settings.vae,
            "decode": "beside" if self._decoder is not None else "inline",
            "decode_batch": self.settings.decode_batch if self._decodes else None,
            "warm_start": self._warms,
        }

    def guard(self, guardrail: Guardrail) -> None:
        """Put a guardrail around the pipeline, before anything is generated. Raises InputError for a pipeline that it cannot guard."""
        self._guardrail = guardrail
        self._guarded = guardrail.guard(self._pipeline)

    def check(self, rows: Sequence[WordedRow]) -> None:
        """Take note of the run's texts, and decide by the first one whether all of them fit into the cache. A pipeline takes any text."""
        self._announced = list(dict.fromkeys(layout.worded(row) for row in rows))
        wanted = self.settings.text_encoders == "release" or (self.settings.text_encoders == "auto" and self._on_cuda)
        if not wanted or self._texts is None or self._reads_prompts or not self._announced:
            return
        with self._torch.inference_mode():
            longest = max(self._announced, key=len)
            needed = size_of(self._texts.encode([longest])[0]) * len(self._announced)
        self._releases = needed <= self._texts.cache.limit

    def truncated(self, rows: Sequence[PlannedRow]) -> dict[str, dict[str, int]]:
        """Per tokenizer of the pipeline and language: how many prompts are longer than it takes, so that their ends are not seen.

        A language whose prompts are cut more often is not asked the same as the others; only tokenizers that cut are named. What a
        guardrail appends to a prompt takes room from it.
        """
        found: dict[str, dict[str, int]] = {}
        for name, cuts in cut(self._guarded, [layout.worded(row) for row in rows], self._limits).items():
            counts = Counter(row["language"] for row, short in zip(rows, cuts, strict=True) if short)
            if counts:
                found[name] = dict(counts)
        return found

    # What it does

    def batch_key(self, row: PlannedRow) -> tuple[int, int]:
        """Pixels, then the text's length in characters: rows of like keys waste least of a batch."""
        return (self._width or 0) * (self._height or 0), len(layout.worded(row))

    def prepare(self, rows: Sequence[PlannedRow]) -> None:
        """Encode the texts of these rows and let the encoders go, if ``check`` found that they fit; then one throw-away step."""
        self._prepare(list(dict.fromkeys(layout.worded(row) for row in rows)))

    def generate(self, rows: Sequence[PlannedRow], seeds: Sequence[int]) -> list[Made | Future[Made]]:
        """One image a row, or a future of it; what a safety checker or guardrail withholds is a refusal, not an image.

        What comes of values that are no numbers is a failure.
        """
        texts = [layout.worded(row) for row in rows]
        if not self._prepared:
            self._prepare(self._announced or texts)
        with self._torch.inference_mode():
            output = self._call(texts, seeds, self._steps)
        if self._decodes:
            return self._decoded(output.images)
        flagged = getattr(output, "nsfw_content_detected", None) or [False] * len(rows)
        made: list[Made | None] = [
            Failure("the pipeline's safety checker withheld the image", refused=True) if withheld else image
            for image, withheld in zip(output.images, flagged, strict=True)
        ]
        return list(self._let_through(made))

    # Loading

    def _load(self, folder: str, source: str, diffusers: Any) -> Any:
        try:
            pipeline = diffusers.AutoPipelineForText2Image.from_pretrained(folder, dtype=getattr(self._torch, self._dtype))
        except (OSError, ValueError, KeyError, ImportError, AttributeError) as error:
            raise InputError(
                f"{source} did not load as a text-to-image pipeline ({first_line(error)}). "
                "Give the hub id or folder of one that AutoPipelineForText2Image knows, with all its files"
            ) from error
        if self.settings.safety_checker == "none" and getattr(pipeline, "safety_checker", None) is not None:
            pipeline.register_modules(safety_checker=None)
        try:
            pipeline = pipeline.to(self.device)
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            raise InputError(
                f"{source} does not fit into the memory of {self.device} in {self._dtype}. Give --set dtype=bfloat16, "
                "another --set device=…, or a smaller model; t2i-parity models tells how much each takes"
            ) from error
        pipeline.set_progress_bar_config(disable=True)
        return pipeline

    @property
    def _denoiser(self) -> Any:
        return getattr(self._pipeline, "unet", None) or getattr(self._pipeline, "transformer", None)

    @property
    def _guidance_argument(self) -> str:
        return self._declared.guidance if self._declared is not None else "guidance_scale"

    @property
    def _reads_prompts(self) -> bool:
        return self._guardrail is not None and self._guardrail.reads_prompts

    def _check_settings(self) -> None:
        """Every setting must have an effect: one that the pipeline does not take is an error."""
        given = {
            "steps": ("num_inference_steps", self.settings.steps),
            "guidance": (self._guidance_argument, self.settings.guidance),
            "true_guidance": ("true_cfg_scale", self.settings.true_guidance),
            "width": ("width", self.settings.width),
            "height": ("height", self.settings.height),
            "negative_prompt": ("negative_prompt", self.settings.negative_prompt),
            "max_sequence_length": ("max_sequence_length", self.settings.max_sequence_length),
        }
        name = type(self._pipeline).__name__
        for setting, (argument, value) in given.items():
            if value is not None and not takes(self._pipeline, argument):
                raise InputError(f"{name} takes no {setting} ({argument}); leave --set {setting} out")
        if self.settings.true_guidance is not None and self._guidance_argument == "true_cfg_scale":
            raise InputError(f"{name} has true guidance alone: give it as --set guidance={self.settings.true_guidance:g}")
        step = size_step(self._pipeline)
        for setting in ("width", "height"):
            if value := getattr(self.settings, setting) or 0:
                low = value - value % step
                if low != value:
                    raise InputError(
                        f"{name} makes pictures whose sides are multiples of {step}: --set {setting}={value} would become {low}. "
                        f"Give {' or '.join(str(side) for side in (low, low + step) if side)}"
                    )
        apart = self._declared is not None and not self._declared.together
        if apart and self.settings.negative_prompt is not None and not self._guided():
            raise InputError(
                f"{name} makes no use of --set negative_prompt at this guidance. Give "
                + ("--set guidance above 1" if self._guidance_argument == "true_cfg_scale" else "--set true_guidance above 1")
            )
        if apart and self.settings.true_guidance is not None and not self._guided():
            raise InputError(f"{name} makes no use of --set true_guidance without --set negative_prompt, or at 1 or below")

    def _guided(self) -> bool:
        """Whether there is a negative side: classifier-free guidance is on."""
        if self._declared is not None and not self._declared.together:
            scale = self._guidance if self._guidance_argument == "true_cfg_scale" else self.settings.true_guidance
            return self.settings.negative_prompt is not None and (scale or 0) > 1
        self._pipeline._guidance_scale = self._guidance
        # Some models are conditioned on the scale instead; their pipelines know.
        return bool(getattr(self._pipeline, "do_classifier_free_guidance", (self._guidance or 0) > 1))

    def _prepare_modules(self) -> str:
        """Layout, attention, compilation, the autoencoder's ways; the memory format that was chosen."""
        denoiser, vae = self._denoiser, getattr(self._pipeline, "vae", None)
        if self.settings.attention != "auto":
            try:
                denoiser.set_attention_backend(self.settings.attention)
            except (ValueError, RuntimeError, ImportError, AttributeError) as error:
                raise InputError(f"--set attention={self.settings.attention}: {first_line(error)}. Leave it out for SDPA") from error
        unet = getattr(self._pipeline, "unet", None)
        last = unet is not None and (self.settings.channels_last == "yes" or (self.settings.channels_last == "auto" and self._on_cuda))
        if self.settings.channels_last == "yes" and unet is None:
            raise InputError(f"--set channels_last=yes is for UNets, and {type(self._pipeline).__name__} has none; leave it out")
        if last and unet is not None:
            unet.to(memory_format=self._torch.channels_last)
            self._pipeline.vae.to(memory_format=self._torch.channels_last)
        if vae is not None:
            # As the pipelines do before each decoding; once is enough.
            if vae.dtype == self._torch.float16 and getattr(vae.config, "force_upcast", False) and self._declared is not None:
                vae.to(dtype=self._torch.float32)
            if self.settings.vae == "sliced":
                vae.enable_slicing()
            elif self.settings.vae == "tiled":
                vae.enable_tiling()
        if self.settings.compile == "repeated_blocks":
            try:
                denoiser.compile_repeated_blocks()
            except (ValueError, AttributeError) as error:
                raise InputError(f"--set compile=repeated_blocks: {first_line(error)}. Leave it out for this model") from error
        return "channels_last" if last else "contiguous"

    def _attention(self) -> dict[str, Any]:
        from diffusers.models.attention_dispatch import _AttentionBackendRegistry

        backend = self.settings.attention
        if backend == "auto":
            active = _AttentionBackendRegistry.get_active_backend()[0]
            backend = str(getattr(active, "value", active))
        processors = getattr(self._denoiser, "attn_processors", None) or {}
        return {"backend": backend, "processors": sorted({type(processor).__name__ for processor in processors.values()})}

    # Generating

    def _prepare(self, texts: Sequence[str]) -> None:
        self._prepared = True
        with self._torch.inference_mode():
            if self._releases and self._texts is not None:
                for start in range(0, len(texts), ENCODED_AT_ONCE):
                    self._texts.encode(texts[start : start + ENCODED_AT_ONCE])
                self._texts.release()
                if self._on_cuda:
                    self._torch.cuda.empty_cache()
            if self._warms and texts:
                output = self._call(list(texts[:1]), [0], 1)
                if self._decodes:
                    for later in self._decoded(output.images):
                        if isinstance(later, Future):
                            later.result()

    def _call(self, texts: list[str], seeds: Sequence[int], steps: int | None) -> Any:
        arguments: dict[str, Any] = {
            "num_inference_steps": steps,
            "true_cfg_scale": self.settings.true_guidance,
            self._guidance_argument: self._guidance,
            "width": self._width,
            "height": self._height,
            **self._limits,
        }
        arguments = {name: value for name, value in arguments.items() if value is not None and takes(self._pipeline, name)}
        if takes(self._pipeline, "use_resolution_binning"):
            # What is asked is what is made: no other size that is then cropped.
            arguments["use_resolution_binning"] = False
        # One generator an image, on the CPU: the noise then depends on the row's seed alone, not on the batch or the device.
        arguments["generator"] = [self._torch.Generator("cpu").manual_seed(seed) for seed in seeds]
        arguments["output_type"] = "latent" if self._decodes else "pil"
        if self._texts is not None and not self._reads_prompts:
            arguments |= self._texts.arguments(texts, self._pipeline._execution_device)
            if takes(self._pipeline, "negative_prompt"):
                arguments["negative_prompt"] = None
            return self._guarded(prompt=None, **arguments)
        if self.settings.negative_prompt is not None:
            arguments["negative_prompt"] = [self.settings.negative_prompt] * len(texts)
        return self._guarded(texts, **arguments)

    def _decoded(self, latents: Any) -> list[Made | Future[Made]]:
        """The pictures of a batch of latents, here or beside the denoiser."""
        if self._decoder is None:
            return [made for chunk in self._chunks(latents) for made in self._pictures(chunk)]
        futures: list[Future[Made]] = [Future() for _ in range(len(latents))]
        ready = None
        if self._stream is not None:
            ready = self._torch.cuda.Event()
            ready.record(self._torch.cuda.current_stream(self.device))
        self._decoder.submit(self._decode_beside, futures, latents, ready)
        return list(futures)

    def _decode_beside(self, futures: Sequence[Future[Made]], latents: Any, ready: Any) -> None:
        waiting = list(futures)
        try:
            with self._torch.cuda.stream(self._stream):  # None is no stream, and does nothing
                if self._stream is not None:
                    self._stream.wait_event(ready)
                    latents.record_stream(self._stream)
                for chunk in self._chunks(latents):
                    for made in self._pictures(chunk):
                        waiting.pop(0).set_result(made)
        except Exception as error:  # whatever it was, those who wait must hear of it
            for future in waiting:
                future.set_exception(error)

    def _chunks(self, latents: Any) -> list[Any]:
        return list(latents.split(self.settings.decode_batch))

    def _pictures(self, latents: Any) -> list[Made]:
        with self._torch.inference_mode():
            pictures = decode(self._pipeline, latents, self._width or 0, self._height or 0)
        return self._let_through(pictures)

    def _let_through(self, pictures: Sequence[Made | None]) -> list[Made]:
        """What is no picture becomes a failure; what the guardrail withholds, a refusal."""
        made: list[Made] = [
            Failure("the model gave values that are no numbers; --set dtype=float32 may help") if picture is None else picture
            for picture in pictures
        ]
        for picture in made:
            if not isinstance(picture, Failure) and (size := picture.size) != (
                self.settings.width or size[0],
                self.settings.height or size[1],
            ):
                raise InputError(
                    f"{type(self._pipeline).__name__} makes {size[0]} × {size[1]} pixels of --set width={self.settings.width} "
                    f"--set height={self.settings.height}. Give the size that it makes, into another --out, so that the record tells it"
                )
        seen = [place for place, picture in enumerate(made) if not isinstance(picture, Failure)]
        if self._guardrail is not None and seen:
            images = [picture for picture in made if not isinstance(picture, Failure)]
            for place, reason in zip(seen, self._guardrail.withheld(images), strict=True):
                if reason is not None:
                    made[place] = Failure(reason, refused=True)
        return made


def torch_device(asked: str, torch: Any) -> str:
    """The device that was asked for; with ``auto``, CUDA before MPS before the CPU."""
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
