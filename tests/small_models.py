"""Small pipelines of random weights, built on the spot: real classes and files, no downloads, no claim about quality."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from diffusers import AutoencoderKL, DDIMScheduler, StableDiffusionPipeline, UNet2DConditionModel
from tokenizers.pre_tokenizers import ByteLevel
from transformers import CLIPTextConfig, CLIPTextModel, CLIPTokenizer


def _tokenizer(folder: Path) -> tuple[CLIPTokenizer, int]:
    """A CLIP tokenizer over bytes, without merges, so that any language has tokens."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = sorted(ByteLevel.alphabet())
    tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    (folder / "vocab.json").write_text(json.dumps({token: number for number, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "CLIPTokenizer", "model_max_length": 77}))
    return CLIPTokenizer.from_pretrained(folder), len(tokens)


def stable_diffusion(folder: Path, seed: int = 0) -> Path:
    """A Stable Diffusion pipeline (about 250 kB) saved into ``folder``."""
    torch.manual_seed(seed)
    tokenizer, size = _tokenizer(folder / "tokenizer")
    text = CLIPTextModel(
        CLIPTextConfig(
            vocab_size=size,
            hidden_size=32,
            intermediate_size=37,
            num_attention_heads=4,
            num_hidden_layers=2,
            projection_dim=32,
            bos_token_id=size - 2,
            eos_token_id=size - 1,
            pad_token_id=size - 1,
        )
    )
    unet = UNet2DConditionModel(
        block_out_channels=(4, 8),
        layers_per_block=1,
        sample_size=32,
        in_channels=4,
        out_channels=4,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        cross_attention_dim=32,
        norm_num_groups=2,
    )
    vae = AutoencoderKL(
        block_out_channels=[4, 8],
        down_block_types=["DownEncoderBlock2D"] * 2,
        up_block_types=["UpDecoderBlock2D"] * 2,
        latent_channels=4,
        norm_num_groups=2,
    )
    scheduler = DDIMScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False, set_alpha_to_one=False)
    StableDiffusionPipeline(
        text_encoder=text,
        tokenizer=tokenizer,
        unet=unet,
        vae=vae,
        scheduler=scheduler,
        safety_checker=None,
        feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder)
    return folder
