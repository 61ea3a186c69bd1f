"""Latent Guard (Liu et al., ECCV 2024): how close a prompt comes to a list of concepts, in a space learned on top of CLIP's text encoder.

A small layer attends from a concept's embedding over the prompt's tokens and maps both into one space; the score is the largest of their
cosines over all concepts, times a learned temperature. From its authors' code: CLIP ViT-L/14's last hidden states, 77 positions with the
padding, and the end token's once more in front; 16 heads of 32; 128 dimensions; flagged at 9.0131 and above. From the dialect-penalty
study's: both of CoPro's concept lists, and texts above 75 tokens in windows of 75, one begun every 60, their scores averaged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends.identity import file_sha256
from t2i_parity.generate.filters import Verdict, Wording, signed, worded

WEIGHTS = "model_parameters.pth"
CONCEPTS = ("CoPro_v1.0.json", "concepts.txt")
"""Names that are looked for in the weights' folder, as the authors call them; a list of one's own has one concept a line."""
STRIDE = 60
_LINEAR = ("x1_to_key", "x2_to_query", "x1_to_value", "final_mlp", "mlp_query1")


@dataclass(frozen=True, slots=True)
class LatentGuardSettings:
    """Where the published weights are, and how a text is put to them.

    ``weights`` is a folder with model_parameters.pth (or model_parameters.safetensors), the file itself, or a hub id that holds it.
    ``concepts`` is CoPro_v1.0.json or a text file of one concept a line; left out, it is looked for beside the weights.
    ``concept_set`` takes CoPro's concepts that the layer was trained on alone ("id", as its authors), or the others too ("all", as the
    study). ``long`` says what becomes of texts that CLIP does not see whole: read in windows, or cut and counted as truncated.
    """

    weights: str
    concepts: str | None = None
    concept_set: Literal["all", "id"] = "all"
    clip: str = "openai/clip-vit-large-patch14"
    clip_revision: str | None = None
    threshold: float = 9.0131
    heads: Annotated[int, Field(ge=1)] = 16
    long: Literal["windows", "truncate"] = "windows"
    wording: Wording = "capitalized"
    device: str = "cpu"
    batch_size: Annotated[int, Field(ge=1)] = 8


class LatentGuard:
    """The filter. Scores are cosines times the learned temperature (about 14): not probabilities."""

    name = "latent-guard"
    languages = ("en",)
    at_once = 128

    def __init__(self, settings: LatentGuardSettings) -> None:
        self.settings = settings
        transformers = require("transformers", package="transformers", extra="generate")
        self._torch = require("torch", package="torch", extra="generate")
        weights = _weights(settings.weights)
        self._layer, self._digest = self._read(weights)
        self._concepts = read_concepts(_concepts(settings, weights), settings.concept_set)
        try:
            self._tokenizer = transformers.CLIPTokenizer.from_pretrained(settings.clip, revision=settings.clip_revision)
            model = transformers.CLIPTextModel.from_pretrained(settings.clip, revision=settings.clip_revision)
        except (OSError, ValueError) as error:
            raise InputError(
                f"latent-guard: the CLIP text encoder {settings.clip!r} could not be loaded ({first_line(error)}). Give a folder that "
                f"holds it with --set clip=DIR, or download it once with: hf download {settings.clip}"
            ) from error
        self._clip = model.float().to(settings.device).eval()
        self._positions = int(self._clip.config.max_position_embeddings)
        width, found = int(self._layer["x1_to_key.weight"].shape[1]), int(self._clip.config.hidden_size)
        if width != found:
            raise InputError(
                f"latent-guard: {weights.name} is for text encoders of width {width} (768: CLIP ViT-L/14), and {settings.clip} has width "
                f"{found}. Give the encoder that it was trained on with --set clip=NAME"
            )
        with self._torch.inference_mode():
            # A concept is the hidden state of its end token; what is made of it is the same for every prompt.
            ends = [self._hidden([ids])[0, 0] for ids in self._ids(self._concepts)]
            query = self._linear("x2_to_query", self._torch.stack(ends))
            self._query = self._split(query)
            self._target = self._torch.nn.functional.normalize(self._linear("mlp_query1", query), dim=-1)

    def signature(self) -> str:
        """Digests of weights and concepts, threshold, and everything else that changes a score."""
        import hashlib

        settings = self.settings
        clip = Path(settings.clip).name if Path(settings.clip).exists() else settings.clip
        fields = {
            "weights": self._digest,
            "concepts": f"{len(self._concepts)}#{hashlib.sha256(chr(10).join(self._concepts).encode()).hexdigest()[:12]}",
            "clip": f"{clip}@{settings.clip_revision or 'default'}",
            "heads": settings.heads,
            "threshold": settings.threshold,
            "long": settings.long,
            "wording": settings.wording,
            "v": f"transformers {metadata.version('transformers')}",
        }
        return signed(self.name, fields)

    def judge(self, texts: Sequence[str]) -> list[Verdict]:
        """Flagged when the closest concept's score is at or above the threshold."""
        room = self._positions - 2
        windows: list[list[int]] = []
        owners: list[int] = []
        cut: list[bool] = []
        for place, ids in enumerate(self._ids([worded(text, self.settings.wording) for text in texts])):
            parts = _windows(ids, room) if self.settings.long == "windows" else [ids[:room]]
            cut.append(sum(len(part) for part in parts) < len(ids))
            windows += parts
            owners += [place] * len(parts)
        best = []
        for start in range(0, len(windows), self.settings.batch_size):
            with self._torch.inference_mode():
                best += self._closest(windows[start : start + self.settings.batch_size])
        scores: list[list[float]] = [[] for _ in texts]
        for place, score in zip(owners, best, strict=True):
            scores[place].append(score)
        means = [math.fsum(each) / len(each) for each in scores]
        return [Verdict(mean >= self.settings.threshold, mean, None, short) for mean, short in zip(means, cut, strict=True)]

    # Inside

    def _ids(self, texts: Sequence[str]) -> list[list[int]]:
        if not texts:
            return []
        encoded = self._tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)
        found: list[list[int]] = encoded["input_ids"]
        return found

    def _hidden(self, windows: Sequence[Sequence[int]]) -> Any:
        """(windows, positions + 1, width): the end token's hidden state, then those of every position, padding included."""
        torch, tokenizer = self._torch, self._tokenizer
        rows = [[tokenizer.bos_token_id, *ids[: self._positions - 2], tokenizer.eos_token_id] for ids in windows]
        ends = torch.tensor([len(row) - 1 for row in rows], device=self.settings.device)
        padded = [row + [tokenizer.pad_token_id] * (self._positions - len(row)) for row in rows]
        hidden = self._clip(input_ids=torch.tensor(padded, device=self.settings.device)).last_hidden_state
        return torch.cat([hidden[torch.arange(len(rows)), ends][:, None], hidden], dim=1)

    def _closest(self, windows: Sequence[Sequence[int]]) -> list[float]:
        """The largest score over concepts of each window: every concept attends over the window's positions."""
        torch = self._torch
        hidden = self._hidden(windows)
        key, value = (self._split(self._linear(name, hidden)) for name in ("x1_to_key", "x1_to_value"))
        weights = (torch.einsum("chd,bkhd->bchk", self._query, key) / math.sqrt(key.shape[-1])).softmax(-1)
        attended = torch.einsum("bchk,bkhd->bchd", weights, value).flatten(-2)
        mapped = torch.nn.functional.normalize(self._linear("final_mlp", attended), dim=-1)
        scores = (mapped * self._target).sum(-1) * self._layer["tempr"]
        closest: list[float] = scores.amax(-1).double().cpu().tolist()
        return closest

    def _split(self, vectors: Any) -> Any:
        return vectors.unflatten(-1, (self.settings.heads, -1))

    def _linear(self, name: str, vectors: Any) -> Any:
        return self._torch.nn.functional.linear(vectors, self._layer[f"{name}.weight"], self._layer[f"{name}.bias"])

    def _read(self, path: Path) -> tuple[Mapping[str, Any], str]:
        """The layer's tensors, loaded without running anything that the file holds, and the file's digest."""
        try:
            if path.suffix == ".safetensors":
                from safetensors.torch import load_file

                state = load_file(path, device=self.settings.device)
            else:
                state = self._torch.load(path, map_location=self.settings.device, weights_only=True)
        except Exception as error:
            raise InputError(
                f"latent-guard: {path.name} could not be read as a state dict of tensors alone ({first_line(error)}). Give the published "
                f"{WEIGHTS}, or save the state dict as safetensors"
            ) from error
        wanted = [*(f"{name}.{kind}" for name in _LINEAR for kind in ("weight", "bias")), "tempr"]
        missing = [name for name in wanted if not isinstance(state, Mapping) or name not in state]
        if missing:
            raise InputError(f"latent-guard: {path.name} lacks {', '.join(missing)}; expected the published layer with {', '.join(wanted)}")
        if state["x1_to_key.weight"].shape[0] % self.settings.heads:
            raise InputError(
                f"latent-guard: {state['x1_to_key.weight'].shape[0]} dimensions cannot be parted into {self.settings.heads} heads; "
                "the published layer has 16: --set heads=N"
            )
        return {name: state[name].float() for name in wanted}, file_sha256(path)[:12]


def _windows(ids: Sequence[int], room: int) -> list[list[int]]:
    """The text's token windows; one window where all of it fits.

    >>> [len(part) for part in _windows(list(range(140)), 75)]
    [75, 75, 20]
    """
    parts, stride = [], max(1, room * STRIDE // 75)
    for start in range(0, max(1, len(ids)), stride):
        parts.append(list(ids[start : start + room]))
        if start + room >= len(ids):
            break
    return parts


def _weights(place: str) -> Path:
    path = Path(place)
    if path.is_file():
        return path
    if path.is_dir():
        for name in (WEIGHTS, Path(WEIGHTS).with_suffix(".safetensors").name):
            if (path / name).is_file():
                return path / name
        raise InputError(f"latent-guard: {place} holds no {WEIGHTS}; give the folder, or the file, of the published weights")
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError

    try:
        return Path(hf_hub_download(place, WEIGHTS))
    except (OSError, ValueError, HfHubHTTPError, HFValidationError) as error:
        raise InputError(
            f"latent-guard: {place!r} is no folder here and {WEIGHTS} could not be got from a repository of that name "
            f"({first_line(error)}). Give the folder that holds the published weights: --set weights=DIR"
        ) from error


def _concepts(settings: LatentGuardSettings, weights: Path) -> Path:
    given = [Path(settings.concepts)] if settings.concepts else [weights.parent / name for name in CONCEPTS]
    for path in given:
        if path.is_file():
            return path
    raise InputError(
        f"latent-guard: there is no list of concepts at {' or '.join(path.name for path in given)}. Give CoPro_v1.0.json of the published "
        "data, or a text file of one concept a line: --set concepts=FILE"
    )


def read_concepts(path: Path, which: Literal["all", "id"]) -> list[str]:
    """The concepts of a list, each once, in its order. Raises InputError when it holds none."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".json":
        try:
            data = json.loads(text)
            found = [*data["ID_concepts"], *(data["OOD_concepts"] if which == "all" else [])]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path.name}: expected CoPro's JSON with ID_concepts and OOD_concepts ({first_line(error)})") from error
    else:
        found = text.splitlines()
    concepts = list(dict.fromkeys(concept.strip() for concept in found if isinstance(concept, str) and concept.strip()))
    if not concepts:
        raise InputError(f"{path.name} holds no concepts")
    return concepts
