"""A ShieldGemma 2 of random weights, built on the spot with its own processor; no claim about quality."""

from __future__ import annotations

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from tokenizers.pre_tokenizers import ByteLevel
from transformers import (
    Gemma3ImageProcessor,
    PreTrainedTokenizerFast,
    ShieldGemma2Config,
    ShieldGemma2ForImageClassification,
    ShieldGemma2Processor,
)

SPECIAL = ("<pad>", "<eos>", "<bos>", "<start_of_image>", "<end_of_image>", "<image_soft_token>", "<start_of_turn>", "<end_of_turn>")
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>user\n{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<start_of_image>{% else %}{{ part['text'] }}{% endif %}{% endfor %}<end_of_turn>\n{% endfor %}"
    "<start_of_turn>model\n"
)
PATCHES = 4


def shieldgemma(folder: Path, seed: int = 0) -> Path:
    """One layer of text, one of vision, an image in four tokens; saved into ``folder``."""
    torch.manual_seed(seed)
    vocabulary = {token: number for number, token in enumerate((*SPECIAL, *sorted(ByteLevel.alphabet()), "Yes", "No"))}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token="<bos>",
        eos_token="<eos>",
        pad_token="<pad>",
        extra_special_tokens={"boi_token": "<start_of_image>", "eoi_token": "<end_of_image>", "image_token": "<image_soft_token>"},
        additional_special_tokens=["<start_of_turn>", "<end_of_turn>"],
    )
    processor = ShieldGemma2Processor(
        image_processor=Gemma3ImageProcessor(size={"height": 56, "width": 56}, image_seq_length=PATCHES),
        tokenizer=tokenizer,
        chat_template=TEMPLATE,
        image_seq_length=PATCHES,
    )
    config = ShieldGemma2Config(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 16,
            "sliding_window": 4096,
            "initializer_range": 0.3,
            "pad_token_id": vocabulary["<pad>"],
            "bos_token_id": vocabulary["<bos>"],
            "eos_token_id": vocabulary["<eos>"],
        },
        vision_config={
            "hidden_size": 16,
            "intermediate_size": 24,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "image_size": 56,
            "patch_size": 14,
        },
        mm_tokens_per_image=PATCHES,
        boi_token_index=vocabulary["<start_of_image>"],
        eoi_token_index=vocabulary["<end_of_image>"],
        image_token_index=vocabulary["<image_soft_token>"],
        yes_token_index=vocabulary["Yes"],
        no_token_index=vocabulary["No"],
    )
    model = ShieldGemma2ForImageClassification(config).eval()
    for name, weight in model.named_parameters():
        # Begun at zero, so that untrained it would not see the image.
        if name.endswith("mm_input_projection_weight"):
            torch.nn.init.normal_(weight)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder
