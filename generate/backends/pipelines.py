"""What differs between diffusers' pipeline classes, each declared once: how texts go in, and how latents become pictures.

A class that is declared here has its texts encoded once, apart from the denoiser, and its latents decoded off the denoiser's path. Any
other class of ``AutoPipelineForText2Image`` runs too, as its own code does it.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from t2i_parity.cards.documents import JsonObject

Encoded: TypeAlias = dict[str, Any]
"""What one text became: tensors without a batch dimension, by the name under which the pipeline's call takes them."""


@dataclass(frozen=True, slots=True)
class PipelineClass:
    """One class. ``encoded`` names, in order, what its ``encode_prompt`` returns by the argument of its call that takes it.

    ``together``: encode_prompt gives the negative text's tensors with the others; else it is called again for the negative text.
    ``ragged``: texts keep their own lengths and are padded, under their mask, to the longest of a batch; ``listed``: they keep them, and
    a batch is a list. ``guidance`` is the argument that scales classifier-free guidance. ``side`` is the default side of a picture where
    the class has it in its code alone. ``wrapped`` gives the text as the long-text tokenizer sees it and how many tokens it may have.
    """

    encoded: tuple[str | None, ...]
    together: bool = True
    ragged: bool = False
    listed: bool = False
    guidance: str = "guidance_scale"
    side: int | None = None
    wrapped: Callable[[Any, str, int], tuple[str, int]] | None = None

    @property
    def positive(self) -> tuple[str, ...]:
        """The names of the wanted text's tensors; the negative text's begin with ``negative_``."""
        return tuple(name for name in self.encoded if name is not None and not name.startswith("negative_"))


def _preprocessed(pipeline: Any, text: str, limit: int) -> tuple[str, int]:
    return pipeline._text_preprocessing(text, clean_caption=call_default(pipeline, "clean_caption"))[0], limit


def _under_instruction(pipeline: Any, text: str, limit: int) -> tuple[str, int]:
    """Sana: an instruction stands before the text, and its length is added to what is taken, but for two tokens."""
    instruction = "\n".join(call_default(pipeline, "complex_human_instruction") or [])
    taken = len(pipeline.tokenizer.encode(instruction)) + limit - 2 if instruction else limit
    return instruction + _preprocessed(pipeline, text, limit)[0], taken


def _under_system_prompt(pipeline: Any, text: str, limit: int) -> tuple[str, int]:
    return f"{pipeline.system_prompt} <Prompt Start> {text}", limit


def _in_template(pipeline: Any, text: str, limit: int) -> tuple[str, int]:
    """Qwen-Image: the template's first tokens are dropped from what the text encoder gave."""
    dropped = pipeline.prompt_template_encode_start_idx
    return pipeline.prompt_template_encode.format(text), dropped + min(limit, pipeline.tokenizer_max_length)


def _as_chat(pipeline: Any, text: str, limit: int) -> tuple[str, int]:
    messages = [{"role": "user", "content": text}]
    return pipeline.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True, enable_thinking=True), limit


_POOLED = ("prompt_embeds", "negative_prompt_embeds", "pooled_prompt_embeds", "negative_pooled_prompt_embeds")
_MASKED = ("prompt_embeds", "prompt_attention_mask", "negative_prompt_embeds", "negative_prompt_attention_mask")

PIPELINES: Mapping[str, PipelineClass] = {
    "StableDiffusionPipeline": PipelineClass(("prompt_embeds", "negative_prompt_embeds")),
    "StableDiffusionXLPipeline": PipelineClass(_POOLED),
    "StableDiffusion3Pipeline": PipelineClass(_POOLED),
    "FluxPipeline": PipelineClass(("prompt_embeds", "pooled_prompt_embeds", None), together=False),
    "QwenImagePipeline": PipelineClass(
        ("prompt_embeds", "prompt_embeds_mask"), together=False, ragged=True, guidance="true_cfg_scale", wrapped=_in_template
    ),
    "ZImagePipeline": PipelineClass(("prompt_embeds", "negative_prompt_embeds"), listed=True, side=1024, wrapped=_as_chat),
    "SanaPipeline": PipelineClass(_MASKED, wrapped=_under_instruction),
    "PixArtSigmaPipeline": PipelineClass(_MASKED, wrapped=_preprocessed),
    "Lumina2Pipeline": PipelineClass(_MASKED, wrapped=_under_system_prompt),
}
"""Every declared class by its name. A new one is one entry, and a small one of random weights in the tests."""


def call_default(pipeline: Any, name: str) -> Any:
    """The default of an argument of the pipeline's call; None when it has no such argument."""
    parameter = inspect.signature(type(pipeline).__call__).parameters.get(name)
    return None if parameter is None or parameter.default is inspect.Parameter.empty else parameter.default


def takes(pipeline: Any, name: str) -> bool:
    """Whether the pipeline's call has an argument of that name."""
    return name in inspect.signature(type(pipeline).__call__).parameters


# Texts


class TextCache:
    """What texts became, the most recently used ones up to ``limit`` bytes, in main memory.

    >>> TextCache(0).bytes
    0
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._kept: OrderedDict[str, Encoded] = OrderedDict()

    def get(self, text: str) -> Encoded | None:
        """What the text became, None when that is not kept."""
        found = self._kept.get(text)
        if found is not None:
            self._kept.move_to_end(text)
        return found

    def put(self, text: str, encoded: Encoded) -> None:
        """Keep it, and let go of what was used longest ago where there is no room; what alone has no room is not kept."""
        size = size_of(encoded)
        if size > self.limit or text in self._kept:
            return
        self._kept[text] = encoded
        self.bytes += size
        while self.bytes > self.limit:
            self.bytes -= size_of(self._kept.popitem(last=False)[1])


def size_of(encoded: Encoded) -> int:
    """Bytes of the tensors of one text."""
    return sum(tensor.numel() * tensor.element_size() for tensor in encoded.values())


class TextEncoder:
    """The text side of a pipeline of a declared class: each distinct text is encoded once, as the pipeline's call would.

    ``negative_prompt`` None leaves the pipeline's own default in place; ``guided`` says whether there is a negative side at all.
    """

    def __init__(
        self, pipeline: Any, declared: PipelineClass, *, negative_prompt: str | None, guided: bool, limits: Mapping[str, int], cache: int
    ) -> None:
        self.cache = TextCache(cache)
        self._pipeline = pipeline
        self._declared = declared
        self._negative_prompt = negative_prompt
        self._guided = guided
        self._overrides = dict(limits)
        self._negative: Encoded | None = None
        self._aside: Encoded = {}
        self.calls = 0

    @property
    def released(self) -> bool:
        """Whether the encoders are out of the pipeline."""
        return bool(self._aside)

    def release(self) -> None:
        """Take the text encoders out of the pipeline and into main memory, so that the denoiser has their room."""
        for name, part in list(self._pipeline.components.items()):
            if name.startswith("text_encoder") and part is not None:
                self._aside[name] = part.to("cpu")
                self._pipeline.register_modules(**{name: None})

    def restore(self) -> None:
        """Put the encoders back, for a text that nobody had announced."""
        device = self._pipeline.device
        self._pipeline.register_modules(**{name: part.to(device) for name, part in self._aside.items()})
        self._aside = {}

    def encode(self, texts: Sequence[str]) -> list[Encoded]:
        """What each text became, from the cache or anew; repeated texts are encoded once."""
        found = {text: self.cache.get(text) for text in dict.fromkeys(texts)}
        missing = [text for text, encoded in found.items() if encoded is None]
        if missing:
            if self.released:
                self.restore()
            self._encode_negative(missing[0])
            for text, made in zip(missing, self._rows(missing, guided=False)[0], strict=True):
                found[text] = made
                self.cache.put(text, made)
        return [encoded for text in texts if (encoded := found[text]) is not None]

    def arguments(self, texts: Sequence[str], device: Any) -> Encoded:
        """What the pipeline's call takes in the place of ``prompt`` and ``negative_prompt`` for a batch of texts."""
        batch = self._batch(self.encode(texts), device)
        if self._negative is not None:
            batch |= {f"negative_{name}": value for name, value in self._batch([self._negative] * len(texts), device).items()}
        return batch

    def _encode_negative(self, any_text: str) -> None:
        if not self._guided or self._negative is not None:
            return
        if self._declared.together:
            self._negative = self._rows([any_text], guided=True)[1][0]
        else:
            self._negative = self._rows([self._negative_prompt or ""], guided=False)[0][0]

    def _rows(self, texts: Sequence[str], *, guided: bool) -> tuple[list[Encoded], list[Encoded]]:
        """One call of ``encode_prompt``: the texts' own tensors row by row, and with ``guided`` those of the negative text."""
        self.calls += 1
        fixed: Encoded = {
            "prompt": list(texts),
            "device": self._pipeline._execution_device,
            "num_images_per_prompt": 1,
            "do_classifier_free_guidance": guided,
        }
        negative = self._negative_prompt if self._negative_prompt is not None else call_default(self._pipeline, "negative_prompt")
        if guided and negative is not None:
            fixed["negative_prompt"] = [negative] * len(texts)
        arguments: Encoded = {}
        for name, parameter in inspect.signature(self._pipeline.encode_prompt).parameters.items():
            if name in fixed:
                arguments[name] = fixed[name]
            elif takes(self._pipeline, name) and "prompt_" not in name and not name.startswith("negative_"):
                # As its call would: limits of length, an instruction that stands before the text.
                arguments[name] = self._overrides.get(name, call_default(self._pipeline, name))
            elif parameter.default is inspect.Parameter.empty:
                arguments[name] = None
        outputs = self._pipeline.encode_prompt(**arguments)
        named = {name: value for name, value in zip(self._declared.encoded, outputs, strict=True) if name is not None}
        positive = {name: value for name, value in named.items() if not name.startswith("negative_")}
        other = {name.removeprefix("negative_"): value for name, value in named.items() if name.startswith("negative_")}
        return self._split(positive, len(texts)), self._split(other, len(texts)) if guided else []

    def _split(self, tensors: Encoded, n: int) -> list[Encoded]:
        rows = [{name: value[place].detach().cpu().clone() for name, value in tensors.items() if value is not None} for place in range(n)]
        if self._declared.ragged:
            embeds, mask = self._declared.positive
            for row in rows:
                if mask in row:  # None where no text of the call was shorter than another
                    row[embeds] = row[embeds][: int(row.pop(mask).sum())].clone()
        return rows

    def _batch(self, rows: Sequence[Encoded], device: Any) -> Encoded:
        import torch

        if self._declared.ragged:
            embeds, mask = self._declared.positive
            lengths = torch.tensor([len(row[embeds]) for row in rows])
            padded = torch.nn.utils.rnn.pad_sequence([row[embeds] for row in rows], batch_first=True)
            return {embeds: padded.to(device), mask: (torch.arange(padded.shape[1]) < lengths[:, None]).long().to(device)}
        columns: dict[str, list[Any]] = {name: [row[name].to(device) for row in rows] for name in rows[0]}
        return {name: values if self._declared.listed else torch.stack(values) for name, values in columns.items()}


# Lengths


def long_limit(pipeline: Any, overrides: Mapping[str, int]) -> int | None:
    """How many tokens the long-text encoder may get: what was set, else the call's default; None for a class without such a limit."""
    limit: int | None = overrides.get("max_sequence_length", call_default(pipeline, "max_sequence_length"))
    return limit


def cut(pipeline: Any, texts: Sequence[str], overrides: Mapping[str, int]) -> dict[str, list[bool]]:
    """Per tokenizer of the pipeline and the tokens it takes: which texts are longer, so that their ends are not seen.

    CLIP's tokenizers take what their model does; the others, T5's and those of language models, what the pipeline hands on, counted with
    the template that the pipeline puts around a text.
    """
    declared = PIPELINES.get(type(pipeline).__name__)
    found: dict[str, list[bool]] = {}
    for name, part in pipeline.components.items():
        if not name.startswith("tokenizer") or part is None or not callable(part):
            continue
        own = getattr(part, "model_max_length", None)
        limit = own if isinstance(own, int) and own < 10**6 else None
        written = list(texts)
        if not type(part).__name__.startswith("CLIP") and (longest := long_limit(pipeline, overrides)) is not None:
            limits = [longest] * len(written)
            if declared is not None and declared.wrapped is not None:
                pairs = [declared.wrapped(pipeline, text, longest) for text in written]
                written, limits = [text for text, _ in pairs], [most for _, most in pairs]
            limit = longest
        elif limit is not None:
            limits = [limit] * len(written)
        if limit is None or not written:
            continue
        lengths = [len(ids) for ids in part(written, truncation=False).input_ids]
        found[f"{name} ({limit} tokens)"] = [length > most for length, most in zip(lengths, limits, strict=True)]
    return found


# Pictures


def default_side(pipeline: Any) -> int | None:
    """The side, in pixels, of the picture that the pipeline makes when it is told none; None when that cannot be told before."""
    declared = PIPELINES.get(type(pipeline).__name__)
    if isinstance(side := call_default(pipeline, "height"), int):
        return side
    if declared is not None and declared.side is not None:
        return declared.side
    sample = getattr(pipeline, "default_sample_size", None)
    if sample is None:
        denoiser = getattr(pipeline, "unet", None) or getattr(pipeline, "transformer", None)
        sample = getattr(getattr(denoiser, "config", None), "sample_size", None)
    factor = getattr(pipeline, "vae_scale_factor", None)
    return sample * factor if isinstance(sample, int) and isinstance(factor, int) else None


def size_step(pipeline: Any) -> int:
    """What the sides of its pictures are multiples of: pipelines round down to it, or refuse.

    Their image processors know it: the autoencoder's factor, times the side of the patches where latents are packed.
    """
    config = getattr(getattr(pipeline, "image_processor", None), "config", None)
    return int(getattr(config, "vae_scale_factor", None) or getattr(pipeline, "vae_scale_factor", None) or 1)


def quantization(pipeline: Any) -> dict[str, JsonObject]:
    """How each part of the pipeline was quantized when it was saved, by the part's name; the dtype says what it computes in."""
    found: dict[str, JsonObject] = {}
    for name, part in pipeline.components.items():
        told = getattr(getattr(part, "config", None), "quantization_config", None)
        if told is not None:
            found[name] = dict(told if isinstance(told, Mapping) else told.to_dict())
    return found


def decode(pipeline: Any, latents: Any, width: int, height: int) -> list[Any | None]:
    """Pictures from the latents that a declared class gives with ``output_type="latent"``: unpacked, scaled, decoded.

    None for one that has values which are no numbers: the black square that would come of it is no answer.
    """
    import torch

    vae = pipeline.vae
    config = vae.config
    if hasattr(pipeline, "_unpack_latents"):
        latents = pipeline._unpack_latents(latents, height, width, pipeline.vae_scale_factor)
    latents = latents.to(vae.dtype)
    scale = getattr(config, "scaling_factor", None) or 1.0
    mean, std = (getattr(config, name, None) for name in ("latents_mean", "latents_std"))
    if mean is not None and std is not None:
        shape = (1, -1, *[1] * (latents.ndim - 2))
        mean, std = (torch.tensor(value, device=latents.device, dtype=latents.dtype).view(shape) for value in (mean, std))
        latents = latents * std / scale + mean
    else:
        latents = latents / scale + (getattr(config, "shift_factor", None) or 0.0)
    decoded = vae.decode(latents, return_dict=False)[0]
    if decoded.ndim == 5:  # a video's autoencoder, of which a picture is the first frame
        decoded = decoded[:, :, 0]
    finite = torch.isfinite(decoded).flatten(1).all(1).tolist()
    pictures = pipeline.image_processor.postprocess(torch.nan_to_num(decoded), output_type="pil")
    return [picture if good else None for picture, good in zip(pictures, finite, strict=True)]
