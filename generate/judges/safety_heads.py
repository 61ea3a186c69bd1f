"""Small networks over CLIP embeddings, a probability each: the two visual evaluators of the dialect-penalty study (§3.3).

``multihead`` is the five-head classifier of Qu et al. ("Unsafe Diffusion", CCS 2023): CLIP ViT-L/14 and a head each for sexual, violent,
disturbing, hateful and political images; the authors' repository has the heads (``checkpoints/multi-headed``). Their script runs CLIP's
training preprocessing, a random crop, before them; here, as in the dialect-penalty study, it is the fixed one.

``nsfw-i`` is LAION's CLIP-based NSFW detector on the embedding's direction; its repository has the head that was carried over from Keras
as ``clip_ViT-L-14_openai_binary_nsfw_head.pth``.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.generate.backends import safety
from t2i_parity.generate.backends.clip_features import Dtype, clip_features
from t2i_parity.generate.backends.identity import content_name
from t2i_parity.generate.backends.weights import read_weights
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow
from t2i_parity.metrics.clip_score.core import weights_in

VERSION = "1"
FIVE = "sexual,violent,disturbing,hateful,political"


@dataclass(frozen=True, slots=True)
class HeadsSettings:
    """What both take. ``model`` and ``pretrained`` name the encoder that the heads belong to; ``features`` is what they see of an image:
    its embedding as it comes (``raw``) or brought to length one (``unit``)."""

    model: str = "ViT-L-14-quickgelu"
    pretrained: str = "openai"
    features: Literal["raw", "unit"] = "raw"
    device: str = "auto"
    dtype: Dtype = "float32"


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiHeadSettings(HeadsSettings):
    """``heads`` is a folder with a file of weights for each of ``names`` (``sexual.pt``, or ``sexual_head.pt``), parted by commas."""

    heads: Path
    names: str = FIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class NsfwISettings(HeadsSettings):
    """``head`` is the file of weights."""

    head: Path
    features: Literal["raw", "unit"] = "unit"


class _Heads:
    """Heads over the embeddings of one encoder."""

    name: str
    columns: Mapping[str, pa.DataType] = safety.COLUMNS

    def __init__(self, settings: HeadsSettings, files: Mapping[str, Path]) -> None:
        self.heads = tuple(files)
        self._settings = settings
        self._torch: Any = require("torch", package="torch", extra="generate")
        built = {name: head_of(read_weights(file), f"{self.name}: {file}") for name, file in files.items()}
        self._networks = [network for network, _ in built.values()]
        self._features = clip_features(settings)
        width = self._features.width
        for name, (_, expected) in built.items():
            if expected != width:
                raise InputError(
                    f"{self.name}: {files[name]} takes embeddings of {expected} numbers, and those of {self._features.model} have {width}; "
                    "name the encoder it was trained on: --set model=… --set pretrained=…"
                )
        digest = hashlib.sha256("\n".join(content_name(file) for file in files.values()).encode("utf-8"))
        self._weights = content_name(next(iter(files.values()))) if len(files) == 1 else digest.hexdigest()[:12]

    def signature(self) -> str:
        """Heads, their weights by content, and the encoder."""
        fields = {"weights": self._weights, "features": self._settings.features, **self._features.fields()}
        return safety.signature(self.name, self.heads, fields, VERSION)

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Nothing to check: they take any image."""

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """One probability a head."""
        embedded = self._features.images([row["image"] for row in rows])
        if self._settings.features == "unit":
            embedded = embedded / np.linalg.norm(embedded, axis=1, keepdims=True)
        with self._torch.inference_mode():
            inputs = self._torch.from_numpy(embedded)
            logits = self._torch.cat([network(inputs) for network in self._networks], dim=1)
            return safety.observed(logits.double().sigmoid().numpy())


class MultiHead(_Heads):
    """The judge: a probability for each head of ``names``, independent of the others."""

    name = "multihead"

    def __init__(self, settings: MultiHeadSettings) -> None:
        if not settings.heads.is_dir():
            raise InputError(f"multihead: --set heads={settings.heads}: expected a folder with a file of weights for each head")
        there = {file.stem.removesuffix("_head"): file for file in weights_in(settings.heads)}
        names = [name.strip() for name in settings.names.split(",") if name.strip()]
        missing = [name for name in names if name not in there]
        if missing or not names:
            raise InputError(
                f"multihead: {settings.heads} has no file of weights for the head {', '.join(missing) or '(none named)'} (NAME.pt, "
                f"NAME_head.pt or NAME.safetensors); it has {', '.join(sorted(there)) or 'none'}. Add it, or name the heads: --set names=…"
            )
        super().__init__(settings, {name: there[name] for name in names})


class NsfwI(_Heads):
    """The judge: the probability of nudity or pornography."""

    name = "nsfw-i"

    def __init__(self, settings: NsfwISettings) -> None:
        super().__init__(settings, {"nsfw": settings.head})


def head_of(state: Any, where: str) -> tuple[Any, int]:
    """A head's network, in evaluation mode, and the width that it takes, from its weights alone; what leaves it is a logit.

    Layers stand in the order of their numbers (``0.weight``, ``linear_1.weight``, or ``weight`` alone): linear ones, batch normalisation,
    and Keras' fixed normalisation (``norm.mean``, ``norm.variance``). Weights do not say where the activations were. In a numbered
    ``Sequential`` a gap in the numbers is taken for a ReLU (and dropout, which does nothing here), neighbours for none; under names there
    is a ReLU after every linear layer but the last. Both published families are built so.

    Raises InputError when a layer is of another kind, widths do not follow from each other, or more than one number leaves the last.
    """
    torch = require("torch", package="torch", extra="generate")
    if not isinstance(state, Mapping) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise InputError(f"{where}: expected the tensors of a network by name, found {type(state).__name__}")
    layers: dict[str, dict[str, Any]] = {}
    for key, value in state.items():
        prefix, _, part = key.rpartition(".")
        layers.setdefault(prefix, {})[part] = value.float()
    order = sorted(layers, key=_number)
    modules: list[Any] = []
    for place, prefix in enumerate(order):
        modules.append(_layer(layers[prefix], f"{where}, layer {prefix or '(the only one)'}", torch))
        following = order[place + 1] if place + 1 < len(order) else None
        numbered = prefix.rpartition(".")[2].isdigit()
        activated = _number(following) > _number(prefix) + 1 if numbered and following else isinstance(modules[-1], torch.nn.Linear)
        if following is not None and activated:
            modules.append(torch.nn.ReLU())
    widths = [(module.in_features, module.out_features) for module in modules if isinstance(module, torch.nn.Linear)]
    if not widths or widths[-1][1] != 1 or any(out != into for (_, out), (into, _) in pairwise(widths)):
        found = ", ".join(f"{into} → {out}" for into, out in widths) or "none"
        raise InputError(f"{where}: expected linear layers that follow each other and end in one number, found {found}")
    return torch.nn.Sequential(*modules).eval(), widths[0][0]


def _number(prefix: str) -> int:
    """The place of a layer, from the number that its name ends in; one without a number, a normalisation of the input, stands first."""
    match = re.search(r"(\d+)$", prefix)
    return int(match[1]) if match else -1


def _layer(tensors: Mapping[str, Any], where: str, torch: Any) -> Any:
    parts = set(tensors)
    if "weight" in parts and parts <= {"weight", "bias"} and tensors["weight"].ndim == 2:
        layer = torch.nn.Linear(tensors["weight"].shape[1], tensors["weight"].shape[0], bias="bias" in parts)
    elif {"running_mean", "running_var"} <= parts <= {"running_mean", "running_var", "num_batches_tracked", "weight", "bias"}:
        layer = torch.nn.BatchNorm1d(len(tensors["running_mean"]), affine="weight" in parts)
    elif parts == {"mean", "variance"}:
        # As batch normalisation without its small constant, which Keras does not have.
        layer = torch.nn.BatchNorm1d(tensors["mean"].numel(), eps=1e-20, affine=False)
        tensors = {"running_mean": tensors["mean"].flatten(), "running_var": tensors["variance"].flatten()}
    else:
        shapes = ", ".join(f"{name} {tuple(value.shape)}" for name, value in tensors.items())
        raise InputError(f"{where}: expected a linear layer or a normalisation, found {shapes}")
    try:
        layer.load_state_dict(dict(tensors), strict=False)
    except RuntimeError as error:
        raise InputError(f"{where}: its tensors do not fit together ({' '.join(str(error).split())})") from error
    return layer
