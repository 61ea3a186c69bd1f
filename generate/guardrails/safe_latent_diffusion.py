"""Safe Latent Diffusion (Schramowski et al., CVPR 2023): guidance away from a concept of unsafe content, at every denoising step.

diffusers' own pipeline does the steering; the weights, the scheduler's settings, the noise and the decoding are the given pipeline's, so
that an image which the guardrail leaves alone is the unguarded image.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.generate.backends.guarded import Guarded, nothing_withheld, stable_diffusion_1
from t2i_parity.generate.rows import Record

CONCEPT = (
    "an image showing hate, harassment, violence, suffering, humiliation, harm, suicide, sexual, nudity, bodily fluids, blood, obscene "
    "gestures, illegal activity, drug use, theft, vandalism, weapons, child abuse, brutality, cruelty"
)
"""The concept of the method's authors, which is diffusers' default."""


@dataclass(frozen=True, slots=True)
class Strength:
    """How strongly it steers: s_S, the warm-up δ in steps, the threshold λ, the momentum's scale s_m and its β_m; and the scale of the
    text's own guidance, None for the model's."""

    safety_guidance: float
    warmup: int
    threshold: float
    momentum_scale: float
    momentum_beta: float
    guidance: float | None = None


PRESETS: Mapping[str, Strength] = {
    "paper": Strength(2000.0, 7, 0.025, 0.5, 0.7, guidance=10.0),
    "weak": Strength(20.0, 15, 0.0, 0.0, 0.0),
    "medium": Strength(1000.0, 10, 0.01, 0.3, 0.4),
    "strong": Strength(2000.0, 7, 0.025, 0.5, 0.7),
    "max": Strength(5000.0, 0, 1.0, 0.5, 0.7),
}
"""``paper`` is the dialect-penalty study's (Appendix A.2); the others are diffusers' SafetyConfig, with the model's own guidance."""


@dataclass(frozen=True, slots=True)
class SafeLatentDiffusionSettings:
    """What ``--guard`` takes: a preset, single values in its place, and the concept to steer away from.

    ``safety_guidance`` and ``guidance`` must be above 1: below, the pipeline would steer nothing.
    """

    preset: Literal["paper", "weak", "medium", "strong", "max"] = "paper"
    safety_guidance: Annotated[float, Field(gt=1)] | None = None
    warmup: Annotated[int, Field(ge=0)] | None = None
    threshold: Annotated[float, Field(ge=0)] | None = None
    momentum_scale: Annotated[float, Field(ge=0, le=1)] | None = None
    momentum_beta: Annotated[float, Field(ge=0, lt=1)] | None = None
    guidance: Annotated[float, Field(gt=1)] | None = None
    concept: Annotated[str, Field(min_length=1)] = CONCEPT


class SafeLatentDiffusion:
    """The guardrail. ``strength`` is the preset with the single values put in."""

    name = "safe-latent-diffusion"
    reads_prompts = True

    def __init__(self, settings: SafeLatentDiffusionSettings) -> None:
        self.settings = settings
        given = {name: value for name, value in asdict(settings).items() if name not in ("preset", "concept") and value is not None}
        self.strength = replace(PRESETS[settings.preset], **given)

    def record(self) -> Record:
        """Every value it steers with; ``guidance`` is what the text's guidance is in place of the model's, None where it stays that."""
        return {"guardrail": self.name, "preset": self.settings.preset, **asdict(self.strength), "concept": self.settings.concept}

    def guard(self, pipeline: Any) -> Guarded:
        """The steered pipeline. Raises InputError for anything but Stable Diffusion 1 and 2."""
        return _Steered(stable_diffusion_1(pipeline, self.name), self.strength, self.settings.concept)

    def withheld(self, images: Sequence[Image.Image]) -> list[str | None]:
        """Nothing: it changes images and withholds none."""
        return nothing_withheld(images)


class _Steered(Guarded):
    """diffusers' safe pipeline up to the latents, and the given pipeline from there on."""

    def __init__(self, pipeline: Any, strength: Strength, concept: str) -> None:
        super().__init__(pipeline)
        self._torch = require("torch", package="torch", extra="generate")
        diffusers = require("diffusers", package="diffusers", extra="generate")
        self._strength = strength
        self._safe = diffusers.StableDiffusionPipelineSafe(
            vae=pipeline.vae,
            text_encoder=pipeline.text_encoder,
            tokenizer=pipeline.tokenizer,
            unet=pipeline.unet,
            # A scheduler has state, and the class rewrites the settings of old ones.
            scheduler=copy.deepcopy(pipeline.scheduler),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
        self._safe.set_progress_bar_config(disable=True)
        self._safe.safety_concept = concept
        # Decoding is left to the given pipeline, whose rounding differs a little from this older class's.
        self._safe.decode_latents = lambda latents: latents

    def __call__(self, prompt: list[str], *, output_type: str = "pil", **arguments: Any) -> Any:
        strength = self._strength
        if strength.guidance is not None:
            arguments["guidance_scale"] = strength.guidance
        if arguments.get("guidance_scale", 7.5) <= 1:
            raise InputError(
                f"safe-latent-diffusion steers the text's guidance, and guidance {arguments['guidance_scale']} switches that off. "
                "Give one above 1, with --guard guidance=… or --set guidance=…"
            )
        output = self._safe(
            prompt,
            output_type="latent",
            sld_guidance_scale=strength.safety_guidance,
            sld_warmup_steps=strength.warmup,
            sld_threshold=strength.threshold,
            sld_momentum_scale=strength.momentum_scale,
            sld_mom_beta=strength.momentum_beta,
            **arguments,
        )
        if output_type != "latent":
            given = self._given
            with self._torch.inference_mode():
                decoded = given.vae.decode(output.images / given.vae.config.scaling_factor, return_dict=False)[0]
            decoded, flagged = given.run_safety_checker(decoded, decoded.device, given.unet.dtype)
            plain = [not each for each in flagged] if flagged else [True] * len(decoded)
            output.images = given.image_processor.postprocess(decoded, output_type=output_type, do_denormalize=plain)
            output.nsfw_content_detected = flagged
        return output
