"""Features of images, by any network of open_clip, timm or torchvision: what nearest neighbours are found by.

For the proxy of the geographical study (§4.2, Table 3), which tries VGG16, ResNet-18 and -50, ViT (timm or torchvision) and CLIP's own
image encoder (open_clip). The features are what the network hands to its last layer, in float32, not normalised.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from PIL import Image

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends.clip_features import clip_features
from t2i_parity.generate.backends.identity import file_sha256
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import ImageRow, Observation, SeenRow
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.clip_score.core import DEFAULT_MODEL, DEFAULT_PRETRAINED

VERSION = "1"
OWN = "own"


@dataclass(frozen=True, slots=True)
class FeaturesSettings:
    """What ``--set`` takes.

    ``family`` is the library that has the network, ``model`` the network's name there. ``pretrained`` of open_clip is as for the judge
    ``clip``; of the others ``own``, the library's weights (from the hub), or a file of weights (``.safetensors``, or a state dict that
    torch loads without running code). ``device`` is torch's name of one.
    """

    family: Literal["open_clip", "timm", "torchvision"] = "open_clip"
    model: str = ""
    pretrained: str = ""
    device: str = "auto"


@dataclass(frozen=True, slots=True)
class _Clip:
    """The settings of an open_clip model, as ``clip_features`` wants them, shared with other judges."""

    model: str
    pretrained: str
    device: str
    dtype: str = "float32"


class Features:
    """The judge: ``embedding``, as many numbers as the network's last layer takes."""

    name = "features"
    columns: Mapping[str, pa.DataType] = {"embedding": pa.list_(pa.float32())}

    def __init__(self, settings: FeaturesSettings) -> None:
        self._fields: dict[str, str]
        self._encode: Callable[[Sequence[Image.Image]], NDArray[np.float32]]
        if settings.family == "open_clip":
            clip = clip_features(_Clip(settings.model or DEFAULT_MODEL, settings.pretrained or DEFAULT_PRETRAINED, settings.device))
            self._encode, self._fields = clip.images, clip.fields()
        else:
            if not settings.model:
                raise InputError(f"features: family={settings.family} needs the name of a network: --set model=resnet50")
            network = _Network(settings)
            self._encode = network.images
            self._fields = {"model": settings.model, "pretrained": network.pretrained, "dtype": "float32"}
        self._family = settings.family

    def signature(self) -> str:
        """Library, network and weights."""
        return str(Signature(self.name, {"family": self._family, **self._fields}, VERSION))

    def check(self, rows: Sequence[ImageRow]) -> None:
        """Any image will do."""

    def observe(self, rows: Sequence[SeenRow]) -> list[Observation | Failure]:
        """The features of each image."""
        return [
            {"embedding": vector.tolist()} if np.all(np.isfinite(vector)) else Failure("the network gave features that are not finite")
            for vector in self._encode([row["image"] for row in rows])
        ]


class _Network:
    """A network of timm or torchvision without its last layer, with the transform that belongs to it."""

    def __init__(self, settings: FeaturesSettings) -> None:
        self._torch = require("torch", package="torch", extra="generate")
        torch = self._torch
        file = None if settings.pretrained in ("", OWN) else Path(settings.pretrained)
        if file is not None and not file.is_file():
            raise InputError(f"features: pretrained={settings.pretrained}: no such file; expected {OWN}, or a file of weights")
        build = _timm if settings.family == "timm" else _torchvision
        network, self._transform, own = build(settings.model, file is None)
        if file is not None:
            _load(torch, network, file)
            own = f"{file.name}@{file_sha256(file)[:12]}"
        self.pretrained = own
        device = settings.device
        self._device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
        self._network = _headless(torch, network, settings.family).eval().to(self._device)
        self._lock = threading.Lock()

    def images(self, images: Sequence[Image.Image]) -> NDArray[np.float32]:
        """(images, width) features, float32."""
        torch = self._torch
        with self._lock, torch.inference_mode():
            batch = torch.stack([self._transform(image) for image in images]).to(self._device)
            return np.asarray(self._network(batch).flatten(1).float().cpu().numpy(), np.float32)


def _timm(model: str, own: bool) -> tuple[Any, Any, str]:
    timm = require("timm", package="timm", extra="clip")
    try:
        network = timm.create_model(model, pretrained=own)
    except Exception as error:
        raise InputError(
            f"features: timm has no {model} with its weights here ({first_line(error)}). Give a file: --set pretrained=FILE"
        ) from error
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(network), is_training=False)
    return network, transform, str(network.pretrained_cfg.get("tag") or OWN)


def _torchvision(model: str, own: bool) -> tuple[Any, Any, str]:
    models = require("torchvision", package="torchvision", extra="generate").models
    try:
        weights = models.get_model_weights(model).DEFAULT
        network = models.get_model(model, weights=weights if own else None)
    except Exception as error:
        raise InputError(
            f"features: torchvision has no {model} with its weights here ({first_line(error)}). Give a file: --set pretrained=FILE"
        ) from error
    return network, weights.transforms(), str(weights.name)


def _load(torch: Any, network: Any, file: Path) -> None:
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(file)
        else:
            state = torch.load(file, map_location="cpu", weights_only=True)
        network.load_state_dict(state)
    except Exception as error:
        raise InputError(
            f"features: {file.name} does not hold the weights of this network ({first_line(error)}). Give the file that belongs to it"
        ) from error


def _headless(torch: Any, network: Any, family: str) -> Any:
    """The network up to its last linear layer, whatever that is called."""
    if family == "timm":
        network.reset_classifier(0)
        return network
    name, last = next(
        ((name, part) for name, part in reversed(list(network.named_modules())) if isinstance(part, torch.nn.Linear)), ("", None)
    )
    if last is None:
        raise InputError("features: this network ends in no linear layer; take one that does, such as resnet50, or the family timm")
    parent = network.get_submodule(name.rpartition(".")[0])
    setattr(parent, name.rpartition(".")[2], torch.nn.Identity())
    return network
