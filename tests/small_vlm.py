"""A vision-language model of random weights in Qwen2.5-VL's architecture, built on the spot; no claim about quality."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import torch
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    GenerationConfig,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2_5_VLProcessor,
    Qwen2Tokenizer,
    Qwen2VLImageProcessor,
    Qwen2VLVideoProcessor,
)

SPECIAL = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>",
)  # fmt: skip

WHOLE = ("good", "Good", " good", "medium", "Medium", "bad", "Bad", "excellent", "Excellent", "yes", "Yes", "no", "No")
"""Words that are one token. "terrible" is left in two, "terr" and "ible", as real tokenizers cut one rating word or another."""

TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}{% endif %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def _tokenizer(words: Iterable[str], says: str | None) -> Qwen2Tokenizer:
    """A byte-level tokenizer, so that any language has tokens, with merges for some words, and a token for the whole of an answer."""
    byte_of = dict(enumerate(_byte_letters()))
    vocabulary = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    merges: list[tuple[str, str]] = []
    for word in words:
        letters = [byte_of[byte] for byte in word.encode()]
        if len(letters) > 1 and word[0] == " ":
            # As a space joins a word that is a token already.
            letters = [letters[0], "".join(letters[1:])]
        before = letters[0]
        for letter in letters[1:]:
            if (before, letter) not in merges:
                merges.append((before, letter))
            before += letter
            vocabulary.setdefault(before, len(vocabulary))
    if says is not None:
        vocabulary.setdefault("".join(byte_of[byte] for byte in says.encode()), len(vocabulary))
    tokenizer = Qwen2Tokenizer(vocab=vocabulary, merges=merges, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    tokenizer.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    return tokenizer


def _byte_letters() -> list[str]:
    """The letter that stands for each byte in a byte-level vocabulary."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


def qwen2_5_vl(folder: Path, seed: int = 0, words: Iterable[str] = (*WHOLE, "terr", "ible"), says: str | None = None) -> Path:
    """A Qwen2.5-VL of two layers each (about 500 kB) with its processor, saved into ``folder``.

    With ``says`` it answers so, whatever it is asked: its layers add nothing, so that each token decides the next one.
    """
    torch.manual_seed(seed)
    tokenizer = _tokenizer(words, says)
    number = {token: tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    processor = Qwen2_5_VLProcessor(
        image_processor=Qwen2VLImageProcessor(patch_size=14, size={"shortest_edge": 56 * 56, "longest_edge": 112 * 112}),
        tokenizer=tokenizer,
        video_processor=Qwen2VLVideoProcessor(patch_size=14),
        chat_template=TEMPLATE,
    )
    config = Qwen2_5_VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 8192,
            "bos_token_id": number["<|endoftext|>"],
            "eos_token_id": number["<|im_end|>"],
            "pad_token_id": number["<|endoftext|>"],
            "initializer_range": 0.2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10_000.0, "mrope_section": [4, 2, 2]},
        },
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_heads": 2,
            "out_hidden_size": 64,
            "fullatt_block_indexes": [1],
            "initializer_range": 0.2,
        },
        image_token_id=number["<|image_pad|>"],
        video_token_id=number["<|video_pad|>"],
        vision_start_token_id=number["<|vision_start|>"],
        vision_end_token_id=number["<|vision_end|>"],
    )
    model = Qwen2_5_VLForConditionalGeneration(config).eval()
    model.generation_config = GenerationConfig(
        eos_token_id=[number["<|im_end|>"], number["<|endoftext|>"]], pad_token_id=number["<|endoftext|>"], do_sample=False
    )
    if says is not None:
        _say(model, [tokenizer.encode("\n")[-1], len(_byte_vocabulary(tokenizer)) - 1, number["<|im_end|>"]])
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def _byte_vocabulary(tokenizer: Qwen2Tokenizer) -> list[int]:
    """The ids that are no special token."""
    special = {tokenizer.convert_tokens_to_ids(token) for token in SPECIAL}
    return [number for number in range(len(tokenizer)) if number not in special]


def _say(model: Qwen2_5_VLForConditionalGeneration, chain: list[int]) -> None:
    """Make each token of the chain be followed by the next one."""
    with torch.no_grad():
        for layer in model.model.language_model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        model.lm_head.weight.zero_()
        for place, (token, following) in enumerate(pairwise(chain)):
            direction = torch.nn.functional.one_hot(torch.tensor(place), model.lm_head.weight.shape[1]).float()
            model.model.language_model.embed_tokens.weight[token] = direction
            model.lm_head.weight[following] = direction
