"""PromptGuard (Yuan et al., IEEE TIFS 2026): soft safety tokens, learnt once, appended to the tokens of every prompt.

A soft token is an embedding at the text encoder's input that no word has. Its authors publish one file a category of unsafe content, in
the form of textual inversion, and write the placeholders behind the prompt; here the ids are put together directly, so that the tokens
are there for a prompt of any length.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from PIL import Image
from pydantic import Field

from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends.guarded import Guarded, nothing_withheld, stable_diffusion_1
from t2i_parity.generate.rows import Record


@dataclass(frozen=True, slots=True)
class PromptGuardSettings:
    """What ``--guard`` takes: files of embeddings, separated by commas, in the order in which their tokens are appended.

    ``long_prompts`` says what gives way where prompt and tokens do not both fit: ``cut-prompt`` the prompt's end, so that the guardrail
    always acts; ``cut-tokens`` the soft tokens, as in the authors' own line, where a long prompt is unguarded.
    """

    embeddings: Annotated[str, Field(min_length=1)]
    long_prompts: Literal["cut-prompt", "cut-tokens"] = "cut-prompt"


@dataclass(frozen=True, slots=True)
class SoftTokens:
    """The tokens of one file: its placeholder, and a float tensor of shape (tokens, width of the text encoder)."""

    placeholder: str
    vectors: Any

    @property
    def sha256(self) -> str:
        """Of the vectors as float32 bytes, row by row."""
        return hashlib.sha256(self.vectors.float().contiguous().numpy().tobytes()).hexdigest()


class PromptGuard:
    """The guardrail, with its files read."""

    name = "promptguard"
    reads_prompts = True

    def __init__(self, settings: PromptGuardSettings) -> None:
        self.settings = settings
        self.tokens = [soft_tokens(Path(part.strip())) for part in settings.embeddings.split(",")]

    def record(self) -> Record:
        """Each file's placeholder, number of tokens and hash, and what gives way for a long prompt."""
        return {
            "guardrail": self.name,
            "tokens": [{"placeholder": each.placeholder, "number": len(each.vectors), "sha256": each.sha256} for each in self.tokens],
            "long_prompts": self.settings.long_prompts,
        }

    def guard(self, pipeline: Any) -> Guarded:
        """The pipeline with the tokens behind every prompt. Raises InputError for embeddings of another text encoder's width."""
        pipeline = stable_diffusion_1(pipeline, self.name)
        width = pipeline.text_encoder.get_input_embeddings().weight.shape[-1]
        for each in self.tokens:
            if each.vectors.shape[-1] != width:
                raise InputError(
                    f"promptguard: {each.placeholder} has embeddings of shape {tuple(each.vectors.shape)}, and this model's text encoder "
                    f"takes (tokens, {width}). They were learnt for another model: give files for this one with --guard embeddings=…"
                )
        room = pipeline.tokenizer.model_max_length - 2
        number = sum(len(each.vectors) for each in self.tokens)
        if number > room:
            raise InputError(f"promptguard: {number} soft tokens do not fit into this model's {room}; give fewer files")
        return _Appended(pipeline, [vector for each in self.tokens for vector in each.vectors], self.settings.long_prompts == "cut-prompt")

    def withheld(self, images: Sequence[Image.Image]) -> list[str | None]:
        """Nothing: it changes images and withholds none."""
        return nothing_withheld(images)


def soft_tokens(path: Path) -> SoftTokens:
    """The soft tokens of a file: safetensors, or a PyTorch file that holds tensors only; one name a file, as textual inversion writes it.

    Raises InputError for a file that is not there, holds anything but tensors, or not exactly one embedding of shape (tokens, width).
    """
    fix = "Give files of PromptGuard's embeddings, e.g. --guard embeddings=sexual.safetensors,political.safetensors"
    if path.is_dir():
        found = [name for name in ("learned_embeds.safetensors", "learned_embeds.bin") if (path / name).is_file()]
        if not found:
            raise InputError(f"{path} holds no learned_embeds.safetensors and no learned_embeds.bin. {fix}")
        path = path / found[0]
    torch = require("torch", package="torch", extra="generate")
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            content: Any = load_file(path)
        else:
            # Tensors only: anything else in a pickled file could run code.
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # both readers raise many kinds, all of which mean: no such tensors
        raise InputError(f"{path} is no file of embeddings ({first_line(error)}). {fix}") from error
    if isinstance(content, dict) and isinstance(content.get("string_to_param"), dict):
        content = content["string_to_param"]
    if torch.is_tensor(content):
        content = {path.stem: content}
    tensors = [(str(name), each) for name, each in content.items() if torch.is_tensor(each)] if isinstance(content, dict) else []
    if len(tensors) != 1:
        raise InputError(f"{path} holds {len(tensors)} embeddings where one is expected, under its placeholder's name. {fix}")
    (placeholder, vectors), shape = tensors[0], tuple(tensors[0][1].shape)
    if vectors.dim() == 1:
        vectors = vectors[None]
    if vectors.dim() != 2 or not vectors.is_floating_point() or not bool(torch.isfinite(vectors).all()):
        raise InputError(
            f"{path}: {placeholder} is a {vectors.dtype} of shape {shape}; expected finite floats of shape (tokens, width). {fix}"
        )
    return SoftTokens(placeholder, vectors.detach())


class _Appended(Guarded):
    """Encodes prompts with the soft tokens behind them, and gives the result to the pipeline."""

    def __init__(self, pipeline: Any, vectors: list[Any], cut_prompt: bool) -> None:
        super().__init__(pipeline)
        self._torch = require("torch", package="torch", extra="generate")
        # The encoder is copied, since a grown vocabulary would be the unguarded pipeline's too.
        self._encoder = copy.deepcopy(pipeline.text_encoder)
        words = self._encoder.get_input_embeddings()
        known = words.weight.shape[0]
        if vectors:
            grown = self._torch.cat([words.weight.data, self._torch.stack(vectors).to(words.weight)])
            self._encoder.set_input_embeddings(self._torch.nn.Embedding.from_pretrained(grown))
        self._ids = list(range(known, known + len(vectors)))
        self._cut_prompt = cut_prompt

    @property
    def components(self) -> dict[str, Any]:
        """The given pipeline's, with a tokenizer that knows how much room the soft tokens leave a prompt."""
        found = dict(self._given.components)
        if self._cut_prompt and self._ids:
            found["tokenizer"] = copy.deepcopy(found["tokenizer"])
            found["tokenizer"].model_max_length -= len(self._ids)
        return found

    def __call__(self, prompt: list[str], **arguments: Any) -> Any:
        return self._given(prompt_embeds=self.encoded(prompt), **arguments)

    def ids(self, prompt: str) -> list[int]:
        """The prompt's ids and those of the soft tokens, between the marks of begin and end, filled up to the encoder's length."""
        tokenizer = self._given.tokenizer
        room = tokenizer.model_max_length - 2
        words = tokenizer(prompt, add_special_tokens=False, truncation=False).input_ids
        inner = [*words[: room - len(self._ids)], *self._ids] if self._cut_prompt else [*words, *self._ids][:room]
        return [tokenizer.bos_token_id, *inner, tokenizer.eos_token_id, *[tokenizer.pad_token_id] * (room - len(inner))]

    def encoded(self, prompts: Sequence[str]) -> Any:
        """The encoder's answer to the prompts with their soft tokens: floats of shape (prompts, length, width)."""
        ids = self._torch.tensor([self.ids(prompt) for prompt in prompts], device=self._given.text_encoder.device)
        with self._torch.inference_mode():
            return self._encoder(ids)[0]
