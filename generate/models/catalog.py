"""The models of the studies, each declared once: what it is, where it is, how it is run, and which study used it in which role.

Steps, guidance and sizes are the studies' own where their papers state them, else what the model's own card or pipeline recommends;
``settings_from`` says which. Revisions are commits of the hub under which published code ran these models; where none was found the
entry says why it is unpinned, and the commit that a run really got stands in its run.json. Licences are hub ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from t2i_parity.dataset_builder.registry import Entry, Registry
from t2i_parity.dataset_builder.schema import CONFIGS, Column

TextInput = Literal["prompt", "positions", "glyphs", "typeset"]

TEXT_INPUTS: Mapping[TextInput, str] = {
    "prompt": "the text stands in the prompt, quoted; where it does not, a stated template adds it",
    "positions": "the text quoted in the prompt, and an image of the places where it goes, drawn from render_layout",
    "glyphs": "an image of the text itself, set in the places of render_layout, beside the prompt",
    "typeset": "render_text and render_layout are typeset as they are",
}
"""How a model is told which text must stand in the image, and where."""

STUDIES: Mapping[str, str] = {
    "lingt2i": "On the Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation (LingT2I)",
    "dialect": "Not Safe for All: Auditing the Dialect Penalty in Text-to-Image Safety Pipelines",
    "geo": "Inspecting the Geographical Representativeness of Images from Text-to-Image Models",
}
"""The studies by the key that entries name them by."""

LINGT2I_SIZE = "LingT2I, Appendix D.1 (size); D: the official defaults for the rest, here of "


@dataclass(frozen=True, slots=True)
class Use:
    """One study that used a model (a key of ``STUDIES``), and for what."""

    study: str
    role: str


CONTENT = Use("lingt2i", "content generation")
TEXT = Use("lingt2i", "text rendering")


@dataclass(frozen=True, slots=True)
class CatalogModel:
    """One model: name on the command line, what it is, and everything that a run of it needs or leaves to its reader.

    ``source`` is what the family takes: a hub id, an API's model, an adapter's name. ``steps``, ``guidance``, ``width``, ``height`` and
    ``dtype`` are defaults that ``--set`` overrides; None where the family or model has no such thing; the dtype ``auto`` is bfloat16 on
    CUDA and float32 elsewhere, and run.json says which it was. ``memory_gb`` is the smallest usual size of GPU that holds all weights in
    16 bits, reckoned from the numbers of parameters; None where nothing runs here. ``license`` is what the card, or else the repository,
    says; ``unknown`` where neither was seen. What an adapter's program needs stands with it.
    """

    name: str
    title: str
    about: str
    family: str
    source: str
    license: str
    settings_from: str
    studies: tuple[Use, ...] = ()
    pipeline: str | None = None
    revision: str | None = None
    unpinned: str | None = None
    steps: int | None = None
    guidance: float | None = None
    width: int | None = None
    height: int | None = None
    dtype: str | None = None
    memory_gb: int | None = None
    gated: bool = False
    text_input: TextInput = "prompt"
    more: Mapping[str, str] = field(default_factory=dict)
    repository: str | None = None
    needs: str | None = None

    @property
    def hub_id(self) -> str | None:
        """The hub id of the weights, None for what is not on the hub."""
        return self.source if self.family in ("diffusers", "janus") else None

    @property
    def defaults(self) -> dict[str, str]:
        """The declared settings as ``--set`` takes them.

        >>> CATALOG["sd-1.4"].defaults["steps"]
        '50'
        """
        declared = {
            "steps": self.steps,
            "guidance": self.guidance,
            "width": self.width,
            "height": self.height,
            "dtype": self.dtype,
            "revision": self.revision,
        }
        return {name: str(value) for name, value in declared.items() if value is not None} | dict(self.more)


_NO_PUBLIC_COMMIT = "no commit of its hub repository was found in published code; give --set revision=COMMIT"
_AN_API = "an API names no revision; the provider may change the model behind this name"
_AUTHORS_CODE = "its weights are files beside the authors' code, which is pinned where the adapter declares it"

_ENTRIES = (
    CatalogModel(
        "sd-3.5-large", "Stable Diffusion 3.5 Large", "8B multimodal diffusion transformer", "diffusers",
        "stabilityai/stable-diffusion-3.5-large", "other (stabilityai-ai-community)", LINGT2I_SIZE + "the model card",
        (CONTENT,), "StableDiffusion3Pipeline", "ceddf0a7fdf2064ea28e2213e3b84e4afa170a0f",
        steps=28, guidance=3.5, width=1024, height=1024, dtype="auto", memory_gb=40, gated=True,
    ),
    CatalogModel(
        "sdxl", "Stable Diffusion XL", "2.6B UNet with two text encoders, base checkpoint without the refiner", "diffusers",
        "stabilityai/stable-diffusion-xl-base-1.0", "openrail++", LINGT2I_SIZE + "the pipeline",
        (CONTENT,), "StableDiffusionXLPipeline", "462165984030d82259a11f4367a4eed129e94a7b",
        steps=50, guidance=5.0, width=1024, height=1024, dtype="auto", memory_gb=12,
    ),
    CatalogModel(
        "sana-1.5", "Sana 1.5 4.8B", "linear diffusion transformer over a 32× autoencoder, Gemma 2 as text encoder", "diffusers",
        "Efficient-Large-Model/SANA1.5_4.8B_1024px_diffusers", "other", LINGT2I_SIZE + "the model card",
        (CONTENT,), "SanaPipeline", "9468102c3cebb657f8c4b5f1e5a71e989a15f10d",
        steps=20, guidance=4.5, width=1024, height=1024, dtype="auto", memory_gb=24,
    ),
    CatalogModel(
        "janus-pro", "Janus-Pro 7B", "autoregressive over 576 image tokens, as transformers runs it", "janus",
        "deepseek-community/Janus-Pro-7B", "other (deepseek)", LINGT2I_SIZE + "the authors' generation script",
        (CONTENT,), "JanusForConditionalGeneration", unpinned=_NO_PUBLIC_COMMIT,
        guidance=5.0, dtype="auto", memory_gb=24,
    ),
    CatalogModel(
        "qwen-image", "Qwen-Image", "20B multimodal diffusion transformer, Qwen2.5-VL as text encoder", "diffusers",
        "Qwen/Qwen-Image", "apache-2.0", LINGT2I_SIZE + "the model card (true classifier-free guidance against a blank)",
        (CONTENT, TEXT), "QwenImagePipeline", "75e0b4be04f60ec59a75f475837eced720f823b6",
        steps=50, guidance=4.0, width=1024, height=1024, dtype="auto", memory_gb=80, more={"negative_prompt": " "},
    ),
    CatalogModel(
        "flux-krea", "FLUX.1 Krea [dev]", "12B rectified-flow transformer, guidance-distilled", "diffusers",
        "black-forest-labs/FLUX.1-Krea-dev", "other (flux-1-dev-non-commercial-license)", LINGT2I_SIZE + "the model card",
        (CONTENT, TEXT), "FluxPipeline", unpinned=_NO_PUBLIC_COMMIT,
        steps=28, guidance=4.5, width=1024, height=1024, dtype="auto", memory_gb=40, gated=True,
    ),
    CatalogModel(
        "pixart-sigma", "PixArt-Σ", "0.6B diffusion transformer with a T5-XXL text encoder", "diffusers",
        "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", "openrail++", LINGT2I_SIZE + "the pipeline",
        (CONTENT,), "PixArtSigmaPipeline", "e102b3591cc82e97071b8b4cb90d834d0c487207",
        steps=20, guidance=4.5, width=1024, height=1024, dtype="auto", memory_gb=16,
    ),
    CatalogModel(
        "z-image", "Z-Image", "6B single-stream diffusion transformer, Qwen3 as text encoder", "diffusers",
        "Tongyi-MAI/Z-Image", "apache-2.0", LINGT2I_SIZE + "the model card",
        (CONTENT,), "ZImagePipeline", "04cc4abb7c5069926f75c9bfde9ef43d49423021",
        steps=50, guidance=4.0, width=1024, height=1024, dtype="auto", memory_gb=24,
    ),
    CatalogModel(
        "pea", "PEA, MultilingualFLUX.1-adapter", "a multilingual text encoder aligned to FLUX.1-schnell by distillation", "adapter",
        "pea", "mit (code)", LINGT2I_SIZE + "the authors' scripts, as the adapter's program has them",
        (CONTENT,), unpinned=_AUTHORS_CODE, width=1024, height=1024, memory_gb=40,
        repository="https://github.com/OPPO-Mente-Lab/PEA-Diffusion",
    ),
    CatalogModel(
        "x2i", "X2I, QwenVL2.5-7B framework", "Qwen2.5-VL 7B aligned to FLUX.1-schnell by attention distillation", "adapter",
        "x2i", "unknown", LINGT2I_SIZE + "the authors' scripts, as the adapter's program has them",
        (CONTENT,), unpinned=_AUTHORS_CODE, steps=4, width=1024, height=1024, memory_gb=80,
        repository="https://github.com/OPPO-Mente-Lab/X2I",
    ),
    CatalogModel(
        "mulan", "MuLan-PixArt", "PixArt-α fine-tuned with a multilingual text encoder", "adapter",
        "mulan", "unknown", LINGT2I_SIZE + "the authors' scripts, as the adapter's program has them",
        (CONTENT,), unpinned=_AUTHORS_CODE, steps=20, guidance=4.5, width=1024, height=1024, memory_gb=40,
        repository="https://github.com/mulanai/MuLan",
    ),
    CatalogModel(
        "lumina-t2x", "Lumina-T2I (Lumina-T2X)", "flow-based transformer with LLaMA 2 7B as text encoder and the SDXL autoencoder",
        "adapter", "lumina-t2x", "mit (code)", LINGT2I_SIZE + "the authors' scripts, as the adapter's program has them",
        (CONTENT,), unpinned=_AUTHORS_CODE, steps=60, guidance=4.0, width=1024, height=1024, memory_gb=40,
        repository="https://github.com/Alpha-VLLM/Lumina-T2X",
    ),
    CatalogModel(
        "omnidiffusion-sdxl", "OmniDiffusion-SDXL", "Baichuan2-7B joined to the SDXL UNet by a 4-layer adapter", "adapter",
        "omnidiffusion-sdxl", "unknown", LINGT2I_SIZE + "the authors' scripts, as the adapter's program has them",
        (CONTENT,), unpinned=_AUTHORS_CODE, steps=50, guidance=7.5, width=1024, height=1024, memory_gb=40,
        repository="https://github.com/llm-conditioned-diffusion/OmniDiffusion",
    ),
    CatalogModel(
        "nano-banana", "Nano Banana", "Google's Gemini image model, behind its API", "gemini",
        "gemini-2.5-flash-image", "other (terms of the API)", "LingT2I, Appendix D.1.2: the API's defaults",
        (TEXT,), unpinned=_AN_API, width=1024, height=1024,
        needs="a key for the Gemini API in the environment",
    ),
    CatalogModel(
        "anytext", "AnyText v1.1", "Stable Diffusion 1.5 with glyph and position conditions", "adapter",
        "anytext", "mit (code)", "LingT2I, Appendix D.1.2 (size); D: the official defaults for the rest, as the adapter's program has them",
        (TEXT,), unpinned=_AUTHORS_CODE, steps=20, width=512, height=512, memory_gb=12, text_input="positions",
        repository="https://github.com/tyxsspa/AnyText",
    ),
    CatalogModel(
        "anytext2", "AnyText2 v1.0", "AnyText with attributes of the text that can be chosen", "adapter",
        "anytext2", "unknown", "LingT2I, Appendix D.1.2 (size); D: the official defaults for the rest, as the adapter's program has them",
        (TEXT,), unpinned=_AUTHORS_CODE, steps=20, guidance=7.5, width=512, height=512, memory_gb=12, text_input="positions",
        repository="https://github.com/tyxsspa/AnyText2",
    ),
    CatalogModel(
        "easytext", "EasyText, LoRA fine-tuned", "a LoRA of FLUX.1-dev that takes an image of the text", "adapter",
        "easytext", "unknown", "LingT2I, Appendix D.1.2 (size); D: the official defaults for the rest, as the adapter's program has them",
        (TEXT,), unpinned=_AUTHORS_CODE, steps=20, guidance=3.5, width=1024, height=1024, memory_gb=40, text_input="glyphs",
        repository="https://github.com/songyiren725/EasyText",
    ),
    CatalogModel(
        "sd-1.4", "Stable Diffusion 1.4", "latent diffusion UNet with CLIP ViT-L/14 as text encoder", "diffusers",
        "CompVis/stable-diffusion-v1-4", "creativeml-openrail-m",
        "dialect study, appendix (50 steps, the pipeline's other defaults; unguarded: without the checker that comes with the weights)",
        (Use("dialect", "audit of guardrails"),),
        "StableDiffusionPipeline", "133a221b8aa7292a167afc5127cb63fb5005638b",
        steps=50, guidance=7.5, width=512, height=512, dtype="auto", memory_gb=4, more={"safety_checker": "none"},
    ),
    CatalogModel(
        "dall-e-2", "DALL·E 2", "OpenAI's image model of 2022, behind its API", "openai",
        "dall-e-2", "other (terms of the API)", "geo study, which states no settings: the API's own",
        (Use("geo", "common nouns with and without a country"),), unpinned=_AN_API,
        needs="a key for the API in the environment, and a provider that still offers this model",
    ),
    CatalogModel(
        "glyph", "glyph", "a typesetter instead of a model: the upper bound of text rendering, and a ladder of known damage", "glyph",
        "", "apache-2.0", "its own", unpinned="part of this package; its version is in the record", text_input="typeset",
        needs="the Noto fonts of the scripts that are set",
    ),
)  # fmt: skip

CATALOG: Registry[CatalogModel] = Registry("model", (Entry(model.name, model, model.title) for model in _ENTRIES))
"""Every catalogued model by the name that ``--model`` takes. A new one is one entry.

The geo study names its second model, Stable Diffusion, without a version; no entry claims to be it.
"""


def columns_of(model: str) -> tuple[Column, ...]:
    """The prompt columns, beside the least, that a model needs by its name: a text and its layout for what does not read it in a prompt."""
    entry = CATALOG.get(model)
    if entry is None or entry.text_input == "prompt":
        return ()
    return tuple(column for column in CONFIGS["lingt2i_text"].columns if column.name in ("render_text", "render_layout"))
