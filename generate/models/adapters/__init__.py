"""Models that live in their authors' repositories only: what each needs, declared once.

Each runs as a program in an environment of its own (see README.md beside this file for the protocol). What the catalog says of a model,
its repository, licence, size and way of taking text, is not said here again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from t2i_parity.generate.models.catalog import CATALOG, CatalogModel

PROGRAMS = Path(__file__).parent / "programs"
"""Our wrapper programs, one file a model, run by the model's own Python."""


@dataclass(frozen=True, slots=True)
class Place:
    """Something on disk or on the hub that a program needs: given with ``--set places=NAME=PATH,…``, or else its hub id."""

    name: str
    about: str
    hub_id: str | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """One model of the catalog as a program.

    ``commit`` is the state of the repository that the wrapper, or the description of it, was written from, None with a reason in
    ``unpinned``; ``python`` is the version that its authors name; ``files`` must be in the clone, which is not needed where there are
    none; ``program`` is our wrapper, and ``wrapper`` says what it does. No wrapper has been run on its model here: the weights were not at
    hand.
    """

    name: str
    commit: str | None
    python: str
    install: tuple[str, ...]
    files: tuple[str, ...]
    places: tuple[Place, ...]
    wrapper: str
    program: str
    unpinned: str | None = None

    @property
    def catalogued(self) -> CatalogModel:
        """What the catalog says of the model."""
        return CATALOG[self.name]

    def steps(self) -> list[str]:
        """What a user has to do before the model runs, in order, and the command at the end."""
        model = f"t2i-parity generate --model {self.name} --set python=ENVIRONMENT/bin/python"
        model += " --set folder=CLONE" if self.files else ""
        given = [place.name for place in self.places if place.hub_id is None]
        places = " --set places=" + ",".join(f"{name}=PATH" for name in given) if given else ""
        clone = f"git clone {self.catalogued.repository} CLONE"
        if self.commit:
            clone += f" && git -C CLONE checkout {self.commit}"
        needed = [f"get {place.name}: {place.about}" for place in self.places if place.hub_id is None]
        environment = f"an environment with Python {self.python}"
        return [*([clone] if self.files else []), environment, *self.install, *needed, f"{model}{places} …"]


FLUX_SCHNELL = Place("flux", "FLUX.1-schnell, a folder or hub id", "black-forest-labs/FLUX.1-schnell")

_MANIFESTS = (
    Manifest(
        "anytext",
        commit="8730cdb0a19c3d782ac8a09a9f56a16f82d1beca",
        python="3.10",
        install=("in CLONE: conda env create -f environment.yaml", "a font that covers the texts, as CLONE/font/Arial_Unicode.ttf"),
        files=("font/Arial_Unicode.ttf", "inference.py"),
        places=(),
        wrapper="the repository's ModelScope pipeline in the mode text-generation, revision v1.1.3 of its weights, 20 steps, one image",
        program="anytext.py",
    ),
    Manifest(
        "anytext2",
        commit=None,
        unpinned="only a copy of the repository's files could be read; run.json holds the commit of the clone",
        python="3.10",
        install=("in CLONE: conda env create -f environment.yaml", "a font that covers the texts, as CLONE/font/Arial_Unicode.ttf"),
        files=("ms_wrapper.py", "font/Arial_Unicode.ttf", "models_yaml/anytext2_sd15.yaml"),
        places=(Place("weights", "the files of ModelScope's iic/cv_anytext2, a folder"),),
        wrapper="the repository's AnyText2Model in the mode gen, with no font and no colour asked for, 20 steps, one image",
        program="anytext2.py",
    ),
    Manifest(
        "easytext",
        commit="615559db",
        python="3.11",
        install=("in CLONE: pip install torch==2.5.1 torchvision==0.20.1 and pip install -r requirements.txt",),
        files=("src/pipeline_pe_clone_multisample.py", "inference_1024.py"),
        places=(
            Place("pretrained", "EasyText's pretraining LoRA, a .safetensors file of the hub's lllrrnn/EasyText"),
            Place("finetuned", "EasyText's fine-tuning LoRA (EasyText-LoRA-ft), a .safetensors file of the same repository"),
            Place("flux", "FLUX.1-dev, a folder or hub id", "black-forest-labs/FLUX.1-dev"),
        ),
        wrapper="the repository's FluxPipeline with the first LoRA fused and the second loaded, guidance 3.5, 20 steps",
        program="easytext.py",
    ),
    Manifest(
        "pea",
        commit=None,
        unpinned="nothing of the repository is run: its scripts are for SDXL, and this version is weights on the hub",
        python="3.10",
        install=("pip install torch diffusers transformers sentencepiece protobuf",),
        files=(),
        places=(
            Place("adapter", "the file diffusion_pytorch_model.bin of the hub's MultilingualFLUX.1-adapter"),
            Place("byt5", "ByT5 XXL, a folder or hub id", "google/byt5-xxl"),
            FLUX_SCHNELL,
        ),
        wrapper="ByT5's states of at most 256 bytes through the adapter's network into FLUX.1-schnell, 4 steps, no guidance",
        program="pea.py",
    ),
    Manifest(
        "x2i",
        commit="b5bc7f6a40eded89c3767c62a9500b7f30a0e74c",
        python="3.11",
        install=("pip install torch==2.4.1 torchvision==0.19.1, and in CLONE: pip install -r requirements.txt qwen-vl-utils",),
        files=("proj.py", "inference_qwenvl.py"),
        places=(
            Place("proj", "the alignment network of X2I-QwenVL2.5-7B, a .bin file"),
            Place("qwen", "Qwen2.5-VL 7B, a folder or hub id", "Qwen/Qwen2.5-VL-7B-Instruct"),
            FLUX_SCHNELL,
        ),
        wrapper="the text2image part of the repository's inference_qwenvl.py for the 7B model, 4 steps, guidance 3.5",
        program="x2i.py",
    ),
    Manifest(
        "mulan",
        commit="1aa27be33ca1c0e5997a1c74ada64c8940681375",
        python="3.10",
        install=("pip install mulankit",),
        files=("examples/pixart_full.py",),
        places=(
            Place("pixart", "PixArt-α 1024-MS, a folder or hub id", "PixArt-alpha/PixArt-XL-2-1024-MS"),
            Place("adapter", "the language adapter, repository::file", "mulanai/mulan-lang-adapter::pixart.pth"),
            Place("transformer", "the fine-tuned transformer, a folder or hub id", "mulanai/mulan-pixart"),
        ),
        wrapper="the repository's examples/pixart_full.py as a loop over requests, with the pipeline's own 20 steps and guidance 4.5",
        program="mulan.py",
    ),
    Manifest(
        "lumina-t2x",
        commit="1b249de7b20f1a6d6d05a6204c2171db0adba574",
        python="3.11",
        install=(
            "PyTorch 2.1 and pip install diffusers fairscale accelerate transformers torchdiffeq click pyyaml",
            "pip install flash-attn --no-build-isolation, and in CLONE: pip install -e .",
        ),
        files=("lumina_t2i/utils/cli.py",),
        places=(
            Place("checkpoint", "the folder of the hub's Alpha-VLLM/Lumina-T2I (consolidated*.pth and model_args.pth)"),
            Place("llama", "LLaMA 2 7B, a folder or hub id (gated)", "meta-llama/Llama-2-7b-hf"),
        ),
        wrapper="the repository's load_model and inference with the settings of its README: Euler, 60 steps, guidance 4, time shift 4",
        program="lumina_t2x.py",
    ),
    Manifest(
        "omnidiffusion-sdxl",
        commit="c229de071aa101a235ccb8362198c4ede93a668a",
        python="3.9",
        install=("in CLONE: pip install -r requirements.txt",),
        files=("inference.py", "pipeline.py", "text_encoder/mlm_encoder.py"),
        places=(
            Place("unet", "the UNet's weights of stage 3, a file of the hub's Fudan-FUXI/llm-conditioned-diffusion-v1.0"),
            Place("adapter", "the adapter's weights of stage 3 (.safetensors or .bin), from the same repository"),
            Place("baichuan", "Baichuan2-7B-Chat, a folder or hub id", "baichuan-inc/Baichuan2-7B-Chat"),
            Place("sdxl", "the files of stabilityai/stable-diffusion-xl-base-1.0, a folder"),
        ),
        wrapper="the repository's inference.py for one request at a time: DPM-Solver++ with Karras steps, 50 steps, guidance 7.5",
        program="omnidiffusion_sdxl.py",
    ),
)

ADAPTERS: Mapping[str, Manifest] = {manifest.name: manifest for manifest in _MANIFESTS}
"""Every declared program by the name of its model. A new one is one entry, one entry of the catalog, and one file in ``programs``."""
