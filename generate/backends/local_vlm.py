"""A vision-language model in this process (transformers), with the protocol of a chat model: Qwen2.5-VL unless another is named.

Answers do not depend on what else is in a batch: prompts are padded on the left and the padding is masked, so that in float32 the
log-probabilities of one request alone and among sixteen agree within 1e-4. Half precision keeps no such promise; the dtype is recorded.
"""

from __future__ import annotations

import io
import threading
import warnings
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from t2i_parity.dataset_builder.chat import ChatRequest, Completion, Message, Token, Usage
from t2i_parity.dataset_builder.endpoints import RequestError
from t2i_parity.dataset_builder.errors import InputError, first_line, require
from t2i_parity.generate.backends.identity import files_sha256
from t2i_parity.generate.models.diffusers_pipeline import torch_device

FloatArray = NDArray[np.float32]
Dtype = Literal["auto", "float32", "float16", "bfloat16"]

DEFAULT_MODEL = "Qwen/Qwen2.5-VL-7B-Instruct"
"""What fits on one GPU; the LingT2I study's rater is its 72B sibling (§4)."""
MIN_PIXELS = 256 * 28 * 28
MAX_PIXELS = 1280 * 28 * 28
"""What an image is scaled to lie between, in pixels: 256 to 1,280 visual tokens of 28 × 28, as Qwen2.5-VL's authors advise."""


@dataclass(frozen=True, slots=True)
class Identity:
    """What tells two sets of weights apart: a hub id with its commit, or a folder's name with a hash of its files."""

    model: str
    revision: str


class LocalVlm:
    """A loaded model and its processor.

    ``pixels`` tells a signature what images are scaled to: the bounds, or that the processor has a fixed size and knows no bounds.

    Raises InputError when transformers is not installed, or the model does not load.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        revision: str | None = None,
        dtype: Dtype = "auto",
        device: str = "auto",
        min_pixels: int = MIN_PIXELS,
        max_pixels: int = MAX_PIXELS,
        batch_size: int = 16,
    ) -> None:
        if min_pixels > max_pixels:
            raise InputError(f"min_pixels={min_pixels} is more than max_pixels={max_pixels}")
        warnings.filterwarnings("ignore", category=FutureWarning, module="torch")
        self._torch = torch = require("torch", package="torch", extra="generate")
        transformers = require("transformers", package="transformers", extra="generate")
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        self.device = torch_device(device, torch)
        self.dtype = ("bfloat16" if self.device.startswith("cuda") else "float32") if dtype == "auto" else dtype
        self.identity, where = _locate(model, revision)
        self._batch_size = batch_size
        try:
            self._processor = transformers.AutoProcessor.from_pretrained(where, padding_side="left")
            loaded = transformers.AutoModelForImageTextToText.from_pretrained(where, dtype=getattr(torch, self.dtype))
        except ImportError as error:
            raise InputError(
                f"{model!r} needs a package that is not installed ({first_line(error)}); image processors of Qwen2.5-VL's kind need "
                "torchvision, in the version that goes with the torch that is installed"
            ) from error
        except Exception as error:  # the loaders raise many kinds, all of which mean: not to be had
            raise InputError(
                f"{model!r} did not load as a vision-language model ({first_line(error)}). Give the folder or hub id of one that "
                "transformers' AutoModelForImageTextToText knows, with its processor"
            ) from error
        if getattr(self._processor, "chat_template", None) is None and getattr(self._tokenizer, "chat_template", None) is None:
            raise InputError(f"{model!r} has no chat template, so it cannot be asked; take an instruction-tuned model")
        # Processors that scale by area name the two bounds so; the others have a size of their own, and keep it.
        own = dict(getattr(getattr(self._processor, "image_processor", None), "size", None) or {})
        by_area = {name for name, value in own.items() if value is not None} == {"shortest_edge", "longest_edge"}
        self.pixels = f"{min_pixels}-{max_pixels}" if by_area else "as-its-processor"
        self._sizes = {"size": {"shortest_edge": min_pixels, "longest_edge": max_pixels}} if by_area else {}
        self._tokenizer.padding_side = "left"
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        self._model = loaded.to(self.device).eval()
        self._usage = Usage()
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """Hub id, or the folder's name."""
        return self.identity.model

    @property
    def usage(self) -> Usage:
        """Tokens of all answers so far; those of an image count as the model sees them."""
        return self._usage

    @property
    def _tokenizer(self) -> Any:
        return getattr(self._processor, "tokenizer", self._processor)

    def complete(self, requests: Sequence[ChatRequest]) -> list[Completion | RequestError]:
        """As in :class:`~dataset_builder.chat.ChatModel`. A schema is not enforced: the model is only told of it by the prompt.

        ``top_logprobs`` come from the logits in float32, before any sampling rule. Requests of one call may differ in all but their
        ``max_tokens``, ``temperature``, ``seed`` and ``top_logprobs``, by which they are batched.
        """
        results: list[Completion | RequestError] = [RequestError("not asked")] * len(requests)
        for how, places in _alike(requests).items():
            # What is drawn must not depend on what else is in a batch.
            size = 1 if how[1] else self._batch_size
            for start in range(0, len(places), size):
                chunk = places[start : start + size]
                for place, answer in zip(chunk, self._generate([requests[place] for place in chunk], *how), strict=True):
                    results[place] = answer
        return results

    def next_token_logprobs(self, requests: Sequence[ChatRequest]) -> FloatArray:
        """Natural log-probabilities of every token of the vocabulary as the first of each answer: float32, requests by vocabulary."""
        torch = self._torch
        found = []
        with self._lock, torch.inference_mode():
            for start in range(0, len(requests), self._batch_size):
                inputs = self._inputs(requests[start : start + self._batch_size])
                logits = self._model(**inputs, logits_to_keep=1).logits[:, -1].float()
                found.append(logits.log_softmax(-1).cpu().numpy())
        return np.concatenate(found) if found else np.zeros((0, 0), np.float32)

    def logprobs_of(self, requests: Sequence[ChatRequest], words: Sequence[str]) -> FloatArray:
        """Natural log-probabilities that each answer begins with each word, ``["Yes", "No"]`` say: float32, requests by words.

        Raises InputError when a word's first token is another word's too, so that the first token does not tell them apart.
        """
        first = [int(self._tokenizer.encode(word, add_special_tokens=False)[0]) for word in words]
        for number, token in enumerate(first):
            if token in first[:number]:
                raise InputError(
                    f"{self.name} begins {words[first.index(token)]!r} and {words[number]!r} with the same token, "
                    f"{self._tokenizer.decode([token])!r}; choose words that its first token tells apart"
                )
        logprobs: FloatArray = self.next_token_logprobs(requests)[:, first] if requests else np.zeros((0, len(first)), np.float32)
        return logprobs

    # Inside

    def _inputs(self, requests: Sequence[ChatRequest]) -> Any:
        conversations = [[_turn(message) for message in request.messages] for request in requests]
        texts = self._processor.apply_chat_template(conversations, tokenize=False, add_generation_prompt=True)
        pictures = [_decoded(image.data) for request in requests for message in request.messages for image in message.images]
        images = {"images": pictures, "images_kwargs": self._sizes} if pictures else {}
        return self._processor(text=texts, padding=True, return_tensors="pt", **images).to(self.device)

    def _generate(
        self, requests: Sequence[ChatRequest], max_tokens: int, temperature: float | None, seed: int | None, top: int
    ) -> list[Completion]:
        torch = self._torch
        sampling: dict[str, Any] = {"do_sample": bool(temperature), "num_beams": 1}
        if temperature:
            sampling |= {"temperature": temperature, "top_p": 1.0, "top_k": 0}
        else:
            sampling |= {"temperature": None, "top_p": None, "top_k": None}
        with self._lock, torch.inference_mode():
            if temperature and seed is not None:
                torch.manual_seed(seed)
            inputs = self._inputs(requests)
            made = self._model.generate(
                **inputs,
                max_new_tokens=max_tokens,
                repetition_penalty=1.0,
                return_dict_in_generate=True,
                output_logits=bool(top),
                pad_token_id=self._tokenizer.pad_token_id,
                **sampling,
            )
            width = inputs["input_ids"].shape[1]
            written = made.sequences[:, width:].cpu()
            read = inputs["attention_mask"].sum(dim=1).tolist()
            steps = [self._likeliest(logits, written[:, step], top) for step, logits in enumerate(made.logits)] if top else []
        ends = self._ends()
        answers = []
        for number in range(len(requests)):
            ids = written[number].tolist()
            length = next((place for place, token in enumerate(ids) if token in ends), None)
            kept = ids[:length]
            tokens = tuple(step[number] for step in steps[: len(kept) + (length is not None)]) if top else None
            usage = Usage(int(read[number]), len(kept) + (length is not None))
            answers.append(
                Completion(
                    self._tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False),
                    "length" if length is None else "stop",
                    None,
                    tokens,
                    usage,
                )
            )
            self._usage += usage
        return answers

    def _likeliest(self, logits: Any, chosen: Any, top: int) -> list[Token]:
        """The token taken at one step in each answer, with the likeliest ones in its place."""
        logprobs = logits.float().log_softmax(-1).cpu()
        best = logprobs.topk(min(top, logprobs.shape[-1]), dim=-1)
        return [
            Token(
                self._text(int(token)),
                float(row[int(token)]),
                tuple((self._text(int(other)), float(value)) for other, value in zip(ids, values, strict=True)),
            )
            for token, row, ids, values in zip(chosen, logprobs, best.indices, best.values, strict=True)
        ]

    def _text(self, token: int) -> str:
        return str(self._tokenizer.decode([token], clean_up_tokenization_spaces=False))

    def _ends(self) -> set[int]:
        declared = self._model.generation_config.eos_token_id
        ends = set(declared if isinstance(declared, list) else [declared]) - {None}
        return ends | {self._tokenizer.eos_token_id} - {None}


_LOADED: weakref.WeakValueDictionary[tuple[Any, ...], LocalVlm] = weakref.WeakValueDictionary()
_LOADING = threading.Lock()


def shared(model: str = DEFAULT_MODEL, **how: Any) -> LocalVlm:
    """The model, loaded once for all judges of a process that ask for the same one in the same way (``how`` as :class:`LocalVlm` takes it).

    It is let go when the last of them is.
    """
    key = (model, *sorted(how.items()))
    with _LOADING:
        found = _LOADED.get(key)
        if found is None:
            found = _LOADED[key] = LocalVlm(model, **how)
        return found


def _alike(requests: Sequence[ChatRequest]) -> dict[tuple[int, float | None, int | None, int], list[int]]:
    """Places of the requests that can be answered in one batch."""
    groups: dict[tuple[int, float | None, int | None, int], list[int]] = {}
    for place, request in enumerate(requests):
        groups.setdefault((request.max_tokens, request.temperature, request.seed, request.top_logprobs), []).append(place)
    return groups


def _turn(message: Message) -> Mapping[str, Any]:
    return {"role": message.role, "content": [*({"type": "image"} for _ in message.images), {"type": "text", "text": message.text}]}


def _decoded(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as opened:
        return opened.convert("RGB")


def _locate(model: str, revision: str | None) -> tuple[Identity, str]:
    """What identifies the weights, and the folder that holds them (a hub id is fetched whole, so that its commit is known)."""
    folder = Path(model)
    if folder.exists():
        if not (folder / "config.json").is_file():
            raise InputError(
                f"{model} is not a transformers model: it has no config.json. Give the folder that save_pretrained wrote, or a hub id"
            )
        return Identity(folder.resolve().name, files_sha256(folder)[:16]), model
    hub = require("huggingface_hub", package="huggingface_hub", extra="generate")
    try:
        found = hub.snapshot_download(model, revision=revision, allow_patterns=["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"])
    except Exception as error:  # the client raises many kinds, all of which mean: not to be had
        raise InputError(
            f"{model!r} is neither a folder nor a model that the hub gave ({first_line(error)}). Give the path of a saved model, a hub id "
            "you can reach (hf auth login for a gated one), or ask a service: --set backend=openai or gemini"
        ) from error
    return Identity(model, Path(found).name), found
