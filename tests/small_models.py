"""Small pipelines of random weights, built on the spot: real classes and files, no downloads, no claim about quality."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from diffusers import (
    AutoencoderDC,
    AutoencoderKL,
    AutoencoderKLQwenImage,
    DDIMScheduler,
    DPMSolverMultistepScheduler,
    EulerDiscreteScheduler,
    FlowMatchEulerDiscreteScheduler,
    FluxPipeline,
    FluxTransformer2DModel,
    Lumina2Pipeline,
    Lumina2Transformer2DModel,
    PixArtSigmaPipeline,
    PixArtTransformer2DModel,
    QwenImagePipeline,
    QwenImageTransformer2DModel,
    SanaPipeline,
    SanaTransformer2DModel,
    SD3Transformer2DModel,
    StableDiffusion3Pipeline,
    StableDiffusionPipeline,
    StableDiffusionXLPipeline,
    UNet2DConditionModel,
    ZImagePipeline,
    ZImageTransformer2DModel,
)
from tokenizers import Tokenizer, decoders
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.processors import TemplateProcessing
from transformers import (
    CLIPTextConfig,
    CLIPTextModel,
    CLIPTextModelWithProjection,
    CLIPTokenizer,
    Gemma2Config,
    Gemma2Model,
    JanusConfig,
    JanusForConditionalGeneration,
    JanusImageProcessor,
    JanusProcessor,
    PreTrainedTokenizerFast,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen3Config,
    Qwen3Model,
    T5Config,
    T5EncoderModel,
)


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


# The other families: each the real pipeline class over the smallest networks that its code takes.

CHAT = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n"


def byte_tokenizer(limit: int = 512, **more: object) -> PreTrainedTokenizerFast:
    """A tokenizer over bytes, without merges, so that any language has tokens: in the place of T5's, Gemma's and Qwen's."""
    letters = sorted(ByteLevel.alphabet())
    specials = ["<pad>", "<eos>", "<|im_start|>", "<|im_end|>"]
    bytewise = Tokenizer(BPE(vocab={token: number for number, token in enumerate([*specials, *letters])}, merges=[]))
    bytewise.pre_tokenizer = ByteLevel(add_prefix_space=False)
    bytewise.decoder = decoders.ByteLevel()
    bytewise.post_processor = TemplateProcessing(single="$A <eos>", special_tokens=[("<eos>", 1)])
    made = PreTrainedTokenizerFast(
        tokenizer_object=bytewise,
        **{
            "pad_token": "<pad>",
            "eos_token": "<eos>",
            "additional_special_tokens": specials[2:],
            "model_max_length": limit,
            "padding_side": "right",
            **more,
        },
    )
    made.chat_template = CHAT
    return made


BYTES = 260
"""The size of its vocabulary."""


def _clip(folder: Path, name: str, *, projection: bool, hidden: int = 32) -> tuple[CLIPTokenizer, CLIPTextModel]:
    tokenizer, size = _tokenizer(folder / name)
    config = CLIPTextConfig(
        vocab_size=size,
        hidden_size=hidden,
        intermediate_size=37,
        num_attention_heads=4,
        num_hidden_layers=2,
        projection_dim=hidden,
        bos_token_id=size - 2,
        eos_token_id=size - 1,
        pad_token_id=size - 1,
        hidden_act="gelu",
    )
    return tokenizer, (CLIPTextModelWithProjection if projection else CLIPTextModel)(config)


def _t5(hidden: int = 32) -> T5EncoderModel:
    return T5EncoderModel(T5Config(vocab_size=BYTES, d_model=hidden, d_kv=8, d_ff=37, num_layers=2, num_heads=4))


def _gemma(hidden: int = 32) -> Gemma2Model:
    return Gemma2Model(
        Gemma2Config(
            vocab_size=BYTES, hidden_size=hidden, intermediate_size=37, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=8, pad_token_id=0, eos_token_id=1, bos_token_id=1,
        )
    )  # fmt: skip


def _kl(latent: int, *, blocks: int = 2, **config: object) -> AutoencoderKL:
    """An autoencoder that makes pictures smaller by 2 to the power of ``blocks`` − 1."""
    return AutoencoderKL(
        block_out_channels=[4, *[8] * (blocks - 1)],
        down_block_types=["DownEncoderBlock2D"] * blocks,
        up_block_types=["UpDecoderBlock2D"] * blocks,
        latent_channels=latent,
        norm_num_groups=2,
        **config,
    )


def _louder(network: torch.nn.Module, factor: float = 3.0) -> torch.nn.Module:
    """Weights made larger, for networks that in this size hardly heed the text: a test of batches needs texts that make a difference."""
    with torch.no_grad():
        for weights in network.parameters():
            weights.mul_(factor)
    return network


def sdxl(folder: Path, seed: int = 0) -> Path:
    """Stable Diffusion XL: two CLIP encoders, a UNet with added time ids."""
    torch.manual_seed(seed)
    tokenizer, text = _clip(folder, "tokenizer", projection=False)
    tokenizer_2, text_2 = _clip(folder, "tokenizer_2", projection=True)
    unet = UNet2DConditionModel(
        block_out_channels=(4, 8),
        layers_per_block=1,
        sample_size=32,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"),
        attention_head_dim=(2, 4),
        use_linear_projection=True,
        addition_embed_type="text_time",
        addition_time_embed_dim=8,
        transformer_layers_per_block=(1, 2),
        projection_class_embeddings_input_dim=6 * 8 + 32,
        cross_attention_dim=64,
        norm_num_groups=2,
    )
    StableDiffusionXLPipeline(
        vae=_kl(4),
        text_encoder=text,
        text_encoder_2=text_2,
        tokenizer=tokenizer,
        tokenizer_2=tokenizer_2,
        unet=unet,
        scheduler=EulerDiscreteScheduler(beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1),
        add_watermarker=False,
    ).save_pretrained(folder)
    return folder


def stable_diffusion_3(folder: Path, seed: int = 0) -> Path:
    """Stable Diffusion 3: two CLIP encoders and T5, a multimodal transformer."""
    torch.manual_seed(seed)
    tokenizer, text = _clip(folder, "tokenizer", projection=True)
    tokenizer_2, text_2 = _clip(folder, "tokenizer_2", projection=True)
    transformer = SD3Transformer2DModel(
        sample_size=32,
        patch_size=2,
        in_channels=4,
        num_layers=2,
        attention_head_dim=8,
        num_attention_heads=4,
        caption_projection_dim=32,
        joint_attention_dim=64,
        pooled_projection_dim=64,
        out_channels=4,
        pos_embed_max_size=32,
    )
    StableDiffusion3Pipeline(
        transformer=transformer,
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
        vae=_kl(4, shift_factor=0.06, scaling_factor=1.5, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=text,
        tokenizer=tokenizer,
        text_encoder_2=text_2,
        tokenizer_2=tokenizer_2,
        text_encoder_3=_t5(64),
        tokenizer_3=byte_tokenizer(),
    ).save_pretrained(folder)
    return folder


def flux(folder: Path, seed: int = 0) -> Path:
    """FLUX.1: pooled CLIP and T5, packed latents, distilled guidance."""
    torch.manual_seed(seed)
    tokenizer, text = _clip(folder, "tokenizer", projection=False)
    transformer = FluxTransformer2DModel(
        patch_size=1,
        in_channels=16,
        num_layers=1,
        num_single_layers=1,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=32,
        pooled_projection_dim=32,
        axes_dims_rope=(4, 4, 8),
        guidance_embeds=True,
    )
    FluxPipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=_kl(4, shift_factor=0.06, scaling_factor=1.5, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=text,
        tokenizer=tokenizer,
        text_encoder_2=_t5(),
        tokenizer_2=byte_tokenizer(),
        transformer=transformer,
    ).save_pretrained(folder)
    return folder


def qwen_image(folder: Path, seed: int = 0) -> Path:
    """Qwen-Image: a vision-language model as text encoder, texts of any length under a mask, a video autoencoder."""
    torch.manual_seed(seed)
    text = Qwen2_5_VLForConditionalGeneration(
        Qwen2_5_VLConfig(
            text_config={
                "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 2,
                "rope_parameters": {"mrope_section": [1, 1, 2], "rope_type": "default", "type": "default", "rope_theta": 1000000.0},
                "vocab_size": BYTES, "pad_token_id": 0, "eos_token_id": 1, "bos_token_id": 1,
            },
            vision_config={"depth": 2, "hidden_size": 16, "intermediate_size": 16, "num_heads": 2, "out_hidden_size": 16},
            hidden_size=16, vocab_size=BYTES, vision_end_token_id=1, vision_start_token_id=1, vision_token_id=1,
        )
    )  # fmt: skip
    transformer = QwenImageTransformer2DModel(
        patch_size=2,
        in_channels=16,
        out_channels=4,
        num_layers=2,
        attention_head_dim=16,
        num_attention_heads=3,
        joint_attention_dim=16,
        guidance_embeds=False,
        axes_dims_rope=(8, 4, 4),
    )
    vae = AutoencoderKLQwenImage(
        base_dim=24, z_dim=4, dim_mult=[1, 2, 4], num_res_blocks=1, temperal_downsample=[False, True],
        latents_mean=[0.1, -0.1, 0.2, 0.0], latents_std=[1.0, 1.5, 0.9, 1.1],
    )  # fmt: skip
    QwenImagePipeline(
        transformer=_louder(transformer),
        vae=vae,
        scheduler=FlowMatchEulerDiscreteScheduler(),
        text_encoder=text,
        tokenizer=byte_tokenizer(2048),
    ).save_pretrained(folder)
    return folder


def z_image(folder: Path, seed: int = 0) -> Path:
    """Z-Image: Qwen3 as text encoder, texts and images as lists of sequences."""
    torch.manual_seed(seed)
    text = Qwen3Model(
        Qwen3Config(
            vocab_size=BYTES, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
            head_dim=8, max_position_embeddings=1024, pad_token_id=0, eos_token_id=1, bos_token_id=1,
        )
    )  # fmt: skip
    transformer = ZImageTransformer2DModel(
        all_patch_size=(2,),
        all_f_patch_size=(1,),
        in_channels=16,
        dim=32,
        n_layers=2,
        n_refiner_layers=1,
        n_heads=2,
        n_kv_heads=2,
        qk_norm=True,
        cap_feat_dim=16,
        rope_theta=256.0,
        t_scale=1000.0,
        axes_dims=[8, 4, 4],
        axes_lens=[512, 32, 32],
    )
    for name, tensor in transformer.named_parameters():
        # Padding's own vectors are made without values.
        if "pad_token" in name:
            torch.nn.init.zeros_(tensor)
    ZImagePipeline(
        scheduler=FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True),
        vae=_kl(16, shift_factor=0.06, scaling_factor=0.4, use_quant_conv=False, use_post_quant_conv=False),
        text_encoder=text,
        tokenizer=byte_tokenizer(2048),
        transformer=transformer,
    ).save_pretrained(folder)
    return folder


def sana(folder: Path, seed: int = 0) -> Path:
    """Sana: Gemma 2 under an instruction, a deep-compression autoencoder, linear attention."""
    torch.manual_seed(seed)
    transformer = SanaTransformer2DModel(
        patch_size=1,
        in_channels=4,
        out_channels=4,
        num_layers=1,
        num_attention_heads=2,
        attention_head_dim=4,
        num_cross_attention_heads=2,
        cross_attention_head_dim=4,
        cross_attention_dim=8,
        caption_channels=32,
        sample_size=32,
    )
    vae = AutoencoderDC(
        in_channels=3,
        latent_channels=4,
        attention_head_dim=2,
        encoder_block_types=("ResBlock", "EfficientViTBlock"),
        decoder_block_types=("ResBlock", "EfficientViTBlock"),
        encoder_block_out_channels=(8, 8),
        decoder_block_out_channels=(8, 8),
        encoder_qkv_multiscales=((), (5,)),
        decoder_qkv_multiscales=((), (5,)),
        encoder_layers_per_block=(1, 1),
        decoder_layers_per_block=(1, 1),
        downsample_block_type="conv",
        upsample_block_type="interpolate",
        decoder_norm_types="rms_norm",
        decoder_act_fns="silu",
        scaling_factor=0.41407,
    )
    SanaPipeline(
        transformer=transformer,
        vae=vae,
        scheduler=FlowMatchEulerDiscreteScheduler(shift=3.0),
        text_encoder=_gemma(),
        tokenizer=byte_tokenizer(8192),
    ).save_pretrained(folder)
    return folder


def pixart_sigma(folder: Path, seed: int = 0) -> Path:
    """PixArt-Σ: T5, a transformer that predicts the variance too."""
    torch.manual_seed(seed)
    transformer = PixArtTransformer2DModel(
        sample_size=32,
        num_layers=2,
        patch_size=2,
        attention_head_dim=8,
        num_attention_heads=3,
        caption_channels=32,
        in_channels=4,
        cross_attention_dim=24,
        out_channels=8,
        attention_bias=True,
        activation_fn="gelu-approximate",
        num_embeds_ada_norm=1000,
        norm_type="ada_norm_single",
        norm_elementwise_affine=False,
        norm_eps=1e-6,
        use_additional_conditions=False,
    )
    PixArtSigmaPipeline(
        tokenizer=byte_tokenizer(), text_encoder=_t5(), vae=_kl(4), transformer=transformer, scheduler=DPMSolverMultistepScheduler()
    ).save_pretrained(folder)
    return folder


def lumina_2(folder: Path, seed: int = 0) -> Path:
    """Lumina Image 2: Gemma 2 under a system prompt, guidance with a truncation."""
    torch.manual_seed(seed)
    transformer = Lumina2Transformer2DModel(
        sample_size=4,
        patch_size=2,
        in_channels=4,
        hidden_size=8,
        num_layers=2,
        num_refiner_layers=1,
        num_attention_heads=1,
        num_kv_heads=1,
        multiple_of=16,
        ffn_dim_multiplier=None,
        norm_eps=1e-5,
        scaling_factor=1.0,
        axes_dim_rope=[4, 2, 2],
        cap_feat_dim=32,
    )
    Lumina2Pipeline(
        transformer=_louder(transformer),
        # Its pipeline counts on a factor of eight.
        vae=_kl(4, blocks=4, shift_factor=0.06, scaling_factor=1.5, use_quant_conv=False, use_post_quant_conv=False),
        scheduler=FlowMatchEulerDiscreteScheduler(),
        text_encoder=_gemma(),
        tokenizer=byte_tokenizer(8192),
    ).save_pretrained(folder)
    return folder


def janus(folder: Path, seed: int = 0) -> Path:
    """Janus: 16 image tokens after a chat, drawn by a small Llama, decoded to 8 × 8 pixels by a small VQ model."""
    torch.manual_seed(seed)
    own = {"image_token": "<image>", "boi_token": "<boi>", "eoi_token": "<eoi>"}
    tokenizer = byte_tokenizer(4096, bos_token="<bos>", padding_side="left", extra_special_tokens=own)
    text = "{% for part in message.content %}{{ part.text }}{% endfor %}"
    template = "{% for message in messages %}<bos>" + text + "{% endfor %}:"
    size = len(tokenizer)
    model = JanusForConditionalGeneration(
        JanusConfig(
            text_config={
                "model_type": "llama", "vocab_size": size, "hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2,
                "num_attention_heads": 4, "max_position_embeddings": 256,
            },
            vision_config={
                "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "image_size": 8, "patch_size": 2, "depth": 1,
                "projection_dim": 32, "num_image_tokens": 16,
            },
            vq_config={
                "base_channels": 32, "channel_multiplier": [1, 1], "num_res_blocks": 1, "latent_channels": 32, "embed_dim": 8,
                "num_embeddings": 64, "num_patches": 4, "projection_dim": 32, "image_token_embed_dim": 32, "num_hidden_layers": 2,
            },
            image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        )
    )  # fmt: skip
    _louder(model.model.language_model, 4.0)
    _louder(model.model.generation_head, 12.0)
    for name, token in (("bos", "<bos>"), ("pad", "<pad>"), ("eos", "<eos>")):
        setattr(model.generation_config, f"{name}_token_id", tokenizer.convert_tokens_to_ids(token))
    model.save_pretrained(folder)
    JanusProcessor(image_processor=JanusImageProcessor(), tokenizer=tokenizer, chat_template=template, num_image_tokens=16).save_pretrained(
        folder
    )
    return folder


FAMILIES = {
    "sd": stable_diffusion,
    "sdxl": sdxl,
    "sd3": stable_diffusion_3,
    "flux": flux,
    "qwen-image": qwen_image,
    "z-image": z_image,
    "sana": sana,
    "pixart": pixart_sigma,
    "lumina2": lumina_2,
}
"""Every builder by the name of its family."""
