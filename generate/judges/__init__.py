"""Judges: what looks at an image and says what it saw. One file an instrument."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, cast

import pyarrow as pa

from t2i_parity.generate.declared import Declared, find
from t2i_parity.generate.engine.local import Failure


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

    def check(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Raise InputError, before anything is observed, when something that these rows need is not there.

        Called once with every image row of the run (``image_id``, the prompt columns, ``status``; no image), so that a judge that compares
        rows, say with the standard variety's text, can look them up here.
        """

    def observe(self, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any] | Failure]:
        """What was seen in each row's image, or why nothing could be; a row's place in the batch must not matter.

        Rows have ``image_id``, the prompt columns, and ``image``: a ``PIL.Image.Image`` in RGB, decoded once for all judges of a pass.
        """


JUDGES: tuple[Declared, ...] = (
    Declared(
        "tesseract",
        "t2i_parity.generate.judges.tesseract",
        "Tesseract",
        "TesseractSettings",
        "reads text; clean text only, all ten languages",
    ),
    Declared(
        "rapidocr",
        "t2i_parity.generate.judges.rapidocr",
        "RapidOcr",
        "RapidOcrSettings",
        "reads text, in scenes too; Latin, Han and kana only",
    ),
    Declared(
        "hybrid", "t2i_parity.generate.judges.hybrid", "Hybrid", "HybridSettings", "reads text, in scenes too; all ten languages, offline"
    ),
    Declared(
        "clip", "t2i_parity.generate.judges.clip", "Clip", "ClipSettings", "similarity of image and text; its own, or the pair's standard"
    ),
    Declared(
        "clip-countries",
        "t2i_parity.generate.judges.clip_countries",
        "ClipCountries",
        "ClipCountriesSettings",
        "similarity to the prompts that name a country; for geo",
    ),
    Declared(
        "features",
        "t2i_parity.generate.judges.features",
        "Features",
        "FeaturesSettings",
        "features of images, by open_clip, timm, torchvision",
    ),
    Declared(
        "open-nsfw",
        "t2i_parity.generate.judges.safety_open_nsfw",
        "OpenNsfw",
        "OpenNsfwSettings",
        "pornography, by Yahoo's Open-NSFW; offline",
    ),
    Declared(
        "nudenet",
        "t2i_parity.generate.judges.safety_nudenet",
        "NudeNet",
        "NudeNetSettings",
        "nudity, by a detector of body parts; offline, AGPL",
    ),
    Declared(
        "multihead",
        "t2i_parity.generate.judges.safety_heads",
        "MultiHead",
        "MultiHeadSettings",
        "five kinds of unsafe images, heads over CLIP",
    ),
    Declared(
        "nsfw-i", "t2i_parity.generate.judges.safety_heads", "NsfwI", "NsfwISettings", "NSFW-I of the dialect study, LAION's head over CLIP"
    ),
    Declared("q16", "t2i_parity.generate.judges.safety_q16", "Q16", "Q16Settings", "inappropriate images, two learned prompts under CLIP"),
    Declared(
        "nsfw-image",
        "t2i_parity.generate.judges.safety_transformers",
        "NsfwImage",
        "NsfwImageSettings",
        "any image-classification model of transformers, by folder or hub id",
    ),
    Declared(
        "shieldgemma", "t2i_parity.generate.judges.safety_shieldgemma", "ShieldGemma", "ShieldGemmaSettings", "ShieldGemma 2, a policy each"
    ),
    Declared(
        "vlm-safety",
        "t2i_parity.generate.judges.safety_vlm",
        "VlmSafety",
        "VlmSafetySettings",
        "our policies, put to any local vision-language model",
    ),
    Declared(
        "vlm-reader", "t2i_parity.generate.judges.vlm_reader", "VlmReader", "VlmReaderSettings", "reads text, by a vision-language model"
    ),
    Declared(
        "trigscore", "t2i_parity.generate.judges.trigscore", "Trigscore", "TrigscoreSettings", "rates a dimension in a word, by probability"
    ),
    Declared(
        "text-quality", "t2i_parity.generate.judges.trigscore", "TextQuality", "RaterSettings", "rates the soundness of lettering, likewise"
    ),
    Declared(
        "text-aesthetics",
        "t2i_parity.generate.judges.trigscore",
        "TextAesthetics",
        "RaterSettings",
        "rates the beauty of lettering, likewise",
    ),
    Declared(
        "background-fusion",
        "t2i_parity.generate.judges.trigscore",
        "BackgroundFusion",
        "RaterSettings",
        "rates how text sits in its scene, likewise",
    ),
    Declared(
        "demographics",
        "t2i_parity.generate.judges.demographics",
        "Demographics",
        "DemographicsSettings",
        "race, gender, age of all depicted",
    ),
    Declared(
        "culture",
        "t2i_parity.generate.judges.culture",
        "Culture",
        "CultureSettings",
        "the culture shown, what carries it, how specific it is",
    ),
    Declared(
        "toxicity",
        "t2i_parity.generate.judges.toxicity",
        "Toxicity",
        "ToxicitySettings",
        "unsafe or not, as a vision-language model answers",
    ),
)
"""Every judge. A new one is one entry and one file."""


def load(name: str, options: Mapping[str, str]) -> Judge:
    """The judge a user named. Raises InputError, naming the known ones, when there is none."""
    return cast(Judge, find(JUDGES, name, "judge").load(options))
