"""Guardrails: what stands between a pipeline's prompt and its image. Each wraps a loaded diffusers pipeline, and is one file.

The noise of an image comes from its row's seed alone, and a row's seed from its pair, so that the four images of a pair (reference and
variety, unguarded and guarded) begin from the same noise. The unguarded run is one without ``--guardrail``.

A new one is one file and one entry here. A package of somebody else's adds one by ``@GUARDRAILS.entry(name, about)`` over its class, in a
module that it names in the entry-point group ``t2i_parity.plugins``; ``--guardrail module:Class`` needs neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from PIL import Image

from t2i_parity.dataset_builder.registry import Entry, Registry, Weights, packages
from t2i_parity.generate.rows import Record


class Guardrail(Protocol):
    """What is put around a pipeline.

    ``reads_prompts`` tells that the guarded pipeline encodes prompts in its own way: it is then called with texts, never with
    embeddings made beforehand.
    """

    reads_prompts: bool

    @property
    def name(self) -> str:
        """What it is called in commands and records."""

    def record(self) -> Record:
        """Every setting that changes an image, as JSON; its fingerprint goes into each image_id."""

    def guard(self, pipeline: Any) -> Any:
        """The guarded pipeline, called as the given one is, and sharing its weights. The given one stays unguarded.

        Raises InputError for a pipeline that it cannot guard.
        """

    def withheld(self, images: Sequence[Image.Image]) -> list[str | None]:
        """For each image why it is withheld, None for one that is let through. A withheld image is recorded as refused."""


@runtime_checkable
class Guardable(Protocol):
    """A model that runs a diffusers pipeline, around which a guardrail can be put."""

    def guard(self, guardrail: Guardrail) -> None:
        """Run ``guardrail.guard(pipeline)`` in place of the pipeline from now on; called once, before the first prompt.

        A guardrail that ``reads_prompts`` gets texts: embeddings made beforehand would pass it by.
        """


_DIFFUSERS = packages("generate", "torch", "diffusers", "transformers")
_HERE = "t2i_parity.generate.guardrails."

GUARDRAILS: Registry[Guardrail] = Registry(
    "guardrail",
    (
        Entry("safe-latent-diffusion", f"{_HERE}safe_latent_diffusion:SafeLatentDiffusion",
              "steers the latents away from unsafe concepts while they are denoised", _DIFFUSERS),
        Entry("promptguard", f"{_HERE}promptguard:PromptGuard",
              "appends soft safety tokens to the prompt, from files of embeddings", _DIFFUSERS),
        Entry("safety-checker", f"{_HERE}safety_checker:SafetyChecker", "Stable Diffusion's own check of the finished image",
              (*_DIFFUSERS, Weights("CompVis/stable-diffusion-safety-checker")), "another checker by --guard source=…"),
    ),
    option="--guard",
)  # fmt: skip
"""Every guardrail. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> Guardrail:
    """The guardrail a user named, by name or as module:Class. Raises InputError, naming the nearest, when there is none."""
    return GUARDRAILS.load(name, options)
