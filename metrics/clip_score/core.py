"""CLIPScore: how well an image fits its prompt, as the cosine of their embeddings under a multilingual CLIP.

Sources: "CLIPScore: A Reference-free Evaluation Metric for Image Captioning" (arXiv 2104.08718), §3, and "On the
Limitations of Cross-Lingual Consistency in Multilingual Text-to-image Generation" (arXiv 2608.11002), §3.2, §4 and C.1.1.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import itertools
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageOps

from .common import (
    CLUSTERS,
    GROUPS,
    Answer,
    BoolArray,
    Column,
    FloatArray,
    IntArray,
    Mean,
    Resampling,
    Signature,
    by_group,
    check_choice,
    check_columns,
    estimate,
    ratio,
)

NAME = "clip_score"
VERSION = "1.0"
COLUMNS = (Column("images", "image", missing=True), Column("prompts", "str"), GROUPS, CLUSTERS)
OBSERVED = (
    Column("similarities", "float", missing=True, within=(-1, 1)),
    Column("truncated", "bool", missing=True, optional=True),
    GROUPS,
    CLUSTERS,
)
KEYS = ("clip_score",)
SCALES = ("cosine", "clipscore")
DEFAULT_MODEL = "ViT-H-14-worldwide-quickgelu"
DEFAULT_PRETRAINED = "metaclip2_worldwide"
DEFAULT_BATCH_SIZE = 32
# How many images the network takes at once: on a CPU more are slower, since they leave its cache.
ON_CPU, ELSEWHERE = 16, 64
# Models that bring their weights, in open_clip's words.
OWN_WEIGHTS = ("hf-hub:", "local-dir:")
# open_clip's names of what a network computes in.
PRECISIONS = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}
# w of CLIPScore's §3.
WEIGHT = 2.5
Features = NDArray[np.float32]


# The encoder


class ImageTextEncoder(Protocol):
    """What turns images and texts into embeddings of one space."""

    @property
    def model(self) -> str:
        """Its name, for signatures."""

    @property
    def pretrained(self) -> str:
        """The name of its weights, for signatures."""

    def encode_images(self, images: Sequence[Image.Image]) -> ArrayLike:
        """(images, width) embeddings, of any length."""

    def encode_texts(self, texts: Sequence[str]) -> tuple[ArrayLike, ArrayLike]:
        """(texts, width) embeddings, of any length, and whether each text was cut to what the model takes."""


class Encoder:
    """A checkpoint of open_clip with its own preprocessing and tokenizer; what leaves it is in single precision.

    ``model`` and ``pretrained`` are open_clip's names. ``pretrained`` may also be a file of weights, or a folder that holds
    one, which is then named by its last part and a hash of its content, so that signatures agree between machines.
    ``model`` may also be "hf-hub:NAMESPACE/NAME" or "local-dir:FOLDER": one that brings ``open_clip_config.json``, weights
    and tokenizer of its own, beside which ``pretrained`` stays at its default. ``device`` is torch's name of a device
    (default: "cuda" where there is one, else "cpu"); ``dtype`` ("float32", "bfloat16", "float16") is what the network
    computes in. Images are preprocessed in ``workers`` threads.

    Raises ValueError when open_clip knows no such checkpoint or the model's activation is not the one that the weights
    were trained with, and RuntimeError, with the fix, when open_clip is not installed or the weights cannot be had.
    Nothing is ever put in their place.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        pretrained: str = DEFAULT_PRETRAINED,
        device: str | None = None,
        dtype: str = "float32",
        workers: int | None = None,
    ) -> None:
        open_clip, self._torch = _libraries()
        check_choice(NAME, "dtype", dtype, tuple(PRECISIONS))
        weights = _weights(open_clip, model, pretrained)
        self.device, self.dtype = _device(self._torch, device), dtype
        precision = PRECISIONS[dtype]
        try:
            self._tokenize: Any = open_clip.get_tokenizer(model)
            # Without the requirement open_clip would go on with random weights where a repository has none.
            network, _, preprocess = open_clip.create_model_and_transforms(
                model, weights, precision=precision, device=self.device, require_pretrained=True
            )
            self.model, self.pretrained = _names(open_clip, model, weights)
        except Exception as error:
            raise RuntimeError(_why_not_loaded(open_clip, model, pretrained, error)) from error
        self._network: Any = network.eval()
        self._preprocess: Any = preprocess
        self._input_dtype: Any = open_clip.get_input_dtype(precision)
        self._pool = ThreadPoolExecutor(workers or min(8, os.cpu_count() or 1), thread_name_prefix="clip")
        if self._cut(self._tokenize([""]), [""]).any():
            raise ValueError(f"{NAME}: model: {model!r} has a tokenizer from which truncation cannot be told. Fix: choose another model.")

    def encode_images(self, images: Sequence[Image.Image]) -> Features:
        """(images, width) embeddings after the checkpoint's own preprocessing, not normalised."""
        # The network works on some images while the next ones are preprocessed.
        coming = self._pool.map(self._pixels, images)
        size = ON_CPU if self.device.type == "cpu" else ELSEWHERE
        found = []
        with self._torch.inference_mode():
            while some := list(itertools.islice(coming, size)):
                pixels = self._torch.stack(some).to(self.device, self._input_dtype)
                found.append(self._network.encode_image(pixels).float())
            return self._array(self._torch.cat(found))

    def encode_texts(self, texts: Sequence[str]) -> tuple[Features, BoolArray]:
        """(texts, width) embeddings, not normalised, and whether each text was cut; nothing is put before a text.

        A text that is too long loses its last tokens, and keeps its end token, which the model reads the text from.
        """
        tokens = self._tokenize(list(texts))
        with self._torch.inference_mode():
            return self._array(self._network.encode_text(tokens.to(self.device))), self._cut(tokens, texts)

    def _pixels(self, image: Image.Image) -> Any:
        return self._preprocess(image.convert("RGB"))

    def _cut(self, tokens: Any, texts: Sequence[str]) -> BoolArray:
        """A text was cut where one token more of room changes the tokens: its end token moves on."""
        roomier = self._tokenize(list(texts), context_length=tokens.shape[1] + 1)
        return np.asarray((roomier[:, :-1] != tokens).any(dim=1).numpy(), np.bool_)

    def _array(self, features: Any) -> Features:
        return np.asarray(features.float().cpu().numpy(), np.float32)


@lru_cache(maxsize=1)
def load_encoder(model: str = DEFAULT_MODEL, pretrained: str = DEFAULT_PRETRAINED, device: str | None = None) -> Encoder:
    """The :class:`Encoder` of these names; the last one is kept, so that calls in a row load the weights once."""
    return Encoder(model, pretrained, device)


def _libraries() -> tuple[Any, Any]:
    try:
        import open_clip
        import torch
    except ImportError as error:
        raise RuntimeError(
            f"{NAME}: open_clip cannot be imported ({error}). Fix: pip install open_clip_torch, or pip install 't2i-parity[clip]'; "
            "or give an encoder of your own: encoder=…"
        ) from error
    return open_clip, torch


def _weights(open_clip: Any, model: object, pretrained: object) -> str | None:
    """What open_clip is to load: a tag or a file; None where the model brings its weights. Raises ValueError for what it lacks."""
    if isinstance(model, str) and model.startswith(OWN_WEIGHTS):
        if pretrained != DEFAULT_PRETRAINED:
            raise ValueError(f"{NAME}: pretrained: {model!r} brings its own weights. Fix: leave pretrained out, got {pretrained!r}.")
        folder = Path(model.removeprefix("local-dir:"))
        if model.startswith("local-dir:") and not ((folder / "open_clip_config.json").is_file() and weights_in(folder)):
            expected = "a folder with open_clip_config.json and a file of weights"
            raise ValueError(f"{NAME}: model: expected {expected} after 'local-dir:', got {model!r}.")
        return None
    names = open_clip.list_models()
    if not isinstance(model, str) or model not in names:
        close = difflib.get_close_matches(str(model), names, 4, 0.3) or [DEFAULT_MODEL]
        raise ValueError(
            f"{NAME}: model: expected one of open_clip.list_models(), such as {', '.join(map(repr, close))}, or 'hf-hub:NAMESPACE/NAME', "
            f"or 'local-dir:FOLDER', got {model!r}."
        )
    tags = open_clip.list_pretrained_tags_by_model(model)
    if isinstance(pretrained, str) and pretrained not in tags and Path(pretrained or "?").is_dir():
        files = weights_in(Path(pretrained))
        if len(files) != 1:
            found = ", ".join(file.name for file in files) or "none"
            raise ValueError(f"{NAME}: pretrained: expected a folder with one file of weights, got {found}. Fix: name the file itself.")
        return str(files[0])
    # Without this check open_clip would go on with random weights.
    if not isinstance(pretrained, str) or not (pretrained in tags or Path(pretrained).is_file()):
        raise ValueError(
            f"{NAME}: pretrained: expected a file of weights or one of {', '.join(map(repr, tags)) or '(no tag)'} for the model {model!r}, "
            f"got {pretrained!r}."
        )
    trained = open_clip.get_pretrained_cfg(model, pretrained)
    other = model.removesuffix("-quickgelu") if model.endswith("-quickgelu") else f"{model}-quickgelu"
    fits = not trained or bool(trained.get("quick_gelu")) == bool(open_clip.get_model_config(model).get("quick_gelu"))
    if not fits and other in names:
        raise ValueError(
            f"{NAME}: model: {pretrained!r} was trained with another activation than {model!r} has. Fix: model={other!r}, "
            "which open_clip keeps for these weights."
        )
    return pretrained


def _names(open_clip: Any, model: str, weights: str | None) -> tuple[str, str]:
    """Model and weights as signatures name them: no paths, and a hash, or the hub's commit, where a name alone could be of two things."""
    if weights is not None:
        return model, weights if open_clip.get_pretrained_cfg(model, weights) else content_name(Path(weights))
    if model.startswith("local-dir:"):
        folder = Path(model.removeprefix("local-dir:")).resolve()
        return f"local-dir:{folder.name}", content_name(folder)
    file = Path(open_clip.download_pretrained_from_hf(model.removeprefix("hf-hub:")))
    return model, f"{file.name}@{file.parent.name[:12]}" if file.parent.parent.name == "snapshots" else content_name(file)


def _device(torch: Any, device: str | None) -> Any:
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
        return torch.device(device)
    except Exception as error:
        reason = str(error).strip().splitlines()[0]
        raise ValueError(f"{NAME}: device: expected one that torch has here, such as 'cpu', got {device!r} ({reason}).") from error


def _why_not_loaded(open_clip: Any, model: str, pretrained: str, error: Exception) -> str:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    if model.startswith(OWN_WEIGHTS):
        repositories = [model.removeprefix("hf-hub:")] if model.startswith("hf-hub:") else []
    else:
        weights = (open_clip.get_pretrained_cfg(model, pretrained) or {}).get("hf_hub", "").split("/")[:2]
        tokenizer = open_clip.get_model_config(model)["text_cfg"].get("hf_tokenizer_name", "")
        repositories = [name for name in ("/".join(weights), tokenizer) if name]
    fetch = " and ".join(f"`hf download {name}`" for name in repositories) or "the file's own source"
    return (
        f"{NAME}: the checkpoint {model!r}, {pretrained!r} could not be loaded ({reason}). Fix: fetch it once, where there is a network, "
        f"with {fetch}; or give a file of its weights as pretrained=…; or give an encoder of your own: encoder=…. Another checkpoint "
        "gives other numbers, which the signature tells apart."
    )


def weights_in(folder: Path) -> list[Path]:
    """The files of weights in a folder: its .safetensors where it has any, as libraries prefer them, else .bin, .pt and .pth."""
    files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    safe = [file for file in files if file.suffix == ".safetensors"]
    return safe or [file for file in files if file.suffix in (".bin", ".pt", ".pth")]


def content_name(place: Path) -> str:
    """A file, or a folder's files of weights, as signatures name them: the last part and 12 hex digits of the content's SHA-256."""
    digest = hashlib.sha256()
    for file in weights_in(place) if place.is_dir() else [place]:
        with file.open("rb") as opened:
            while block := opened.read(1 << 20):
                digest.update(block)
    return f"{place.resolve().name}@{digest.hexdigest()[:12]}"


# Scores


def scores_of(image_features: ArrayLike, text_features: ArrayLike, scale: str = "cosine") -> FloatArray:
    """The score of each row of two (n, width) arrays of embeddings of any length and precision.

    ``scale`` is "cosine", in [−1, 1], or "clipscore", 2.5 · max(cosine, 0). Embeddings are brought to single precision
    before they are normalised: in half precision their length overflows. Raises ValueError on another scale, on arrays
    of different shapes, and on an embedding that is zero or not finite, naming its row.

    >>> scores_of([[3.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, -1.0]]).round(4).tolist()
    [1.0, -0.7071]
    >>> scores_of([[3.0, 0.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, -1.0]], "clipscore").tolist()
    [2.5, 0.0]
    """
    images, texts = (np.asarray(features, np.float32) for features in (image_features, text_features))
    if images.ndim != 2 or images.shape != texts.shape:
        raise ValueError(f"{NAME}: expected two (n, width) arrays of embeddings, got the shapes {images.shape} and {texts.shape}.")
    unit = []
    for what, features in (("image", images), ("text", texts)):
        length = np.linalg.norm(features, axis=1, keepdims=True)
        wrong = np.flatnonzero(~(np.isfinite(length) & (length > 0)))
        if len(wrong):
            found = f"got one of length {length[wrong[0], 0]}"
            raise ValueError(f"{NAME}: row {wrong[0]}: expected a finite {what} embedding that is not zero, {found}.")
        unit.append((features / length).astype(np.float64))
    return rescaled(np.clip(np.sum(unit[0] * unit[1], axis=1), -1.0, 1.0), scale)


def rescaled(similarities: FloatArray, scale: str) -> FloatArray:
    """Cosines on ``scale`` ("cosine", "clipscore"); NaN stays NaN.

    >>> rescaled(np.array([0.25, -0.5, np.nan]), "clipscore").tolist()
    [0.625, 0.0, nan]
    """
    check_choice(NAME, "scale", scale, SCALES)
    return similarities if scale == "cosine" else WEIGHT * np.maximum(similarities, 0.0)


def per_row(
    images: Sequence[Any],
    prompts: Sequence[str],
    *,
    encoder: ImageTextEncoder,
    batch_size: int = DEFAULT_BATCH_SIZE,
) -> dict[str, FloatArray | BoolArray]:
    """Of each row, ``similarities`` (the cosine; NaN where the image is None) and ``truncated`` (was its prompt cut?).

    Images are opened and encoded ``batch_size`` at a time, and each distinct prompt once. Raises ValueError on wrong
    input, naming column and row, and on an image that cannot be decoded.
    """
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise ValueError(f"{NAME}: batch_size: expected an int from 1 up, got {batch_size!r}.")
    columns = check_columns(NAME, COLUMNS[:2], {"images": images, "prompts": prompts})
    seen = [row for row, image in enumerate(columns["images"]) if image is not None]
    number = {text: place for place, text in enumerate(dict.fromkeys(columns["prompts"][row] for row in seen))}
    texts = [encoder.encode_texts(batch) for batch in _batches(list(number), batch_size)]
    similarities = np.full(len(columns["images"]), np.nan)
    truncated = np.zeros(len(columns["images"]), np.bool_)
    if seen:
        of_row = [number[columns["prompts"][row]] for row in seen]
        embedded = np.concatenate([np.asarray(features, np.float32) for features, _ in texts])
        if len(embedded) != len(number):
            raise ValueError(f"{NAME}: encoder: expected {len(number)} text embeddings, one a text, got {len(embedded)}.")
        truncated[seen] = np.concatenate([np.asarray(cut, np.bool_) for _, cut in texts])[of_row]
        for rows in _batches(list(zip(seen, of_row, strict=True)), batch_size):
            opened = [_opened(columns["images"][row], row) for row, _ in rows]
            similarities[[row for row, _ in rows]] = scores_of(encoder.encode_images(opened), embedded[[place for _, place in rows]])
    return {"similarities": similarities, "truncated": truncated}


def _batches(items: list[Any], size: int) -> list[list[Any]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def _opened(cell: Any, row: int) -> Image.Image:
    try:
        if isinstance(cell, Image.Image):
            cell.load()
            return ImageOps.exif_transpose(cell)
        if isinstance(cell, dict):
            cell = cell.get("bytes") or cell.get("path")
        with Image.open(io.BytesIO(cell) if isinstance(cell, bytes) else cell) as opened:
            # As it is shown: a camera notes beside the pixels how it was held.
            return ImageOps.exif_transpose(opened).convert("RGB")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(
            f"{NAME}: column 'images', row {row}: expected an image, got one that cannot be decoded ({error}). Fix: write it anew, "
            "or give None where there is no image."
        ) from error


def aggregate(
    similarities: Sequence[float | None],
    *,
    truncated: Sequence[bool | None] | None = None,
    model: str,
    pretrained: str,
    dtype: str = "float32",
    scale: str = "cosine",
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """The answer of :func:`compute` from cosines that were observed before; None or NaN where missing.

    The signature names ``dtype``, what the network computed in, where it was not single precision.

    >>> answer = aggregate([0.25, None, 0.35], truncated=[True, None, False], model="m", pretrained="w", n_resamples=0)
    >>> answer["clip_score"], answer["n_truncated"], answer["n_missing"]
    (0.3, 1, 1)
    """
    resampling = Resampling(confidence_level, n_resamples, seed)
    given = {"similarities": similarities, "truncated": truncated, "groups": groups, "clusters": clusters}
    columns = check_columns(NAME, OBSERVED, given)
    cosine = np.array([np.nan if cell is None else cell for cell in columns["similarities"]], np.float64)
    scores, observed = rescaled(cosine, scale), ~np.isnan(cosine)
    cut = np.zeros(len(cosine), np.bool_) if truncated is None else np.array(columns["truncated"], np.bool_)

    def describe(rows: IntArray) -> Answer:
        kept = rows[observed[rows]]
        of_kept = None if clusters is None else [columns["clusters"][row] for row in kept]
        parts = np.column_stack([scores[kept], np.ones(len(kept))])
        values, ci = estimate(
            parts, of_kept, lambda sums: ratio(sums[..., :1], sums[..., 1:]), KEYS, resampling, {"clip_score": Mean(0, 1, None, None)}
        )
        n_truncated = int(cut[kept].sum())
        return {**values, "n_truncated": n_truncated, "n": len(kept), "n_missing": len(rows) - len(kept), **ci}

    fields = {"model": model, "pretrained": pretrained, "scale": scale, **({} if dtype == "float32" else {"dtype": dtype})}
    return {**by_group(describe, len(scores), columns["groups"]), "signature": str(Signature(NAME, fields, VERSION))}


def compute(
    images: Sequence[Any],
    prompts: Sequence[str],
    *,
    model: str = DEFAULT_MODEL,
    pretrained: str = DEFAULT_PRETRAINED,
    scale: str = "cosine",
    device: str | None = None,
    batch_size: int = DEFAULT_BATCH_SIZE,
    encoder: ImageTextEncoder | None = None,
    groups: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    confidence_level: float = 0.95,
    n_resamples: int = 1000,
    seed: int = 0,
) -> Answer:
    """CLIPScore: the mean cosine, in [−1, 1], of the embeddings of images and prompts.

    Args:
        images: one image a row: a PIL image, its file's path or bytes, or the dict of both that ``datasets`` stores;
            None where there is none (counted in ``n_missing``, never scored).
        prompts: the text of each image, taken as it is, with nothing before it.
        model: open_clip's name of the network.
        pretrained: open_clip's name of its weights, or a file of them; see :class:`Encoder`.
        scale: "cosine", or "clipscore", 2.5 · max(cosine, 0).
        device: torch's name of a device (default: "cuda" where there is one, else "cpu").
        batch_size: how many images, or prompts, are encoded at a time.
        encoder: encodes in place of what ``model``, ``pretrained`` and ``device`` name; see :class:`ImageTextEncoder`.
        groups: one name a row; adds ``by_group``.
        clusters: one name a row; rows of one name count as one draw (default: each row alone).

    Returns a dict of plain numbers with ``clip_score``, ``n_truncated`` (scored rows whose prompt the model cut), ``n``,
    ``n_missing``, ``ci`` and ``ci_method`` (unless ``n_resamples`` is 0) and ``signature``; None stands for a number that is not defined.

    Raises ValueError on wrong input, naming column and row, and RuntimeError when the checkpoint cannot be loaded.
    """
    Resampling(confidence_level, n_resamples, seed)
    check_choice(NAME, "scale", scale, SCALES)
    given = {"images": images, "prompts": prompts, "groups": groups, "clusters": clusters}
    columns = check_columns(NAME, COLUMNS, given)
    if encoder is None:
        encoder = load_encoder(model, pretrained, device)
    elif not all(hasattr(encoder, name) for name in ("model", "pretrained", "encode_images", "encode_texts")):
        raise ValueError(f"{NAME}: encoder: expected model, pretrained, encode_images and encode_texts, got {encoder!r}.")
    rows = per_row(columns["images"], columns["prompts"], encoder=encoder, batch_size=batch_size)
    return aggregate(
        rows["similarities"].tolist(),
        truncated=rows["truncated"].tolist(),
        model=encoder.model,
        pretrained=encoder.pretrained,
        dtype=getattr(encoder, "dtype", "float32"),
        scale=scale,
        groups=columns["groups"],
        clusters=columns["clusters"],
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        seed=seed,
    )
