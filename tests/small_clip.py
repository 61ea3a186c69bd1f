"""A CLIP of random weights in open_clip's own classes, built on the spot; no claim about quality."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import open_clip
import torch

VISION = {"image_size": 32, "layers": 2, "width": 32, "head_width": 16, "patch_size": 16}
TEXT = {"context_length": 12, "width": 32, "heads": 2, "layers": 2, "vocab_size": 49408}


def config(text: Mapping[str, Any] = TEXT, vision: Mapping[str, Any] = VISION, width: int = 16) -> dict[str, Any]:
    """open_clip's description of the network; by default with CLIP's own tokenizer and room for ten tokens."""
    return {"embed_dim": width, "quick_gelu": True, "vision_cfg": dict(vision), "text_cfg": dict(text)}


def checkpoint(folder: Path, name: str, seed: int = 0, **parts: Any) -> str:
    """Make ``name`` a model that open_clip knows, and write a file of random weights for it; answers the file."""
    (folder / f"{name}.json").write_text(json.dumps(config(**parts)))
    open_clip.add_model_config(folder / f"{name}.json")
    torch.manual_seed(seed)
    torch.save(open_clip.create_model(name).state_dict(), folder / f"{name}.pt")
    return str(folder / f"{name}.pt")


def packed(folder: Path, weights: str, **parts: Any) -> Path:
    """The same as a folder that brings all of its own, for ``local-dir:``."""
    folder.mkdir()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config(**parts), "preprocess_cfg": {}}))
    torch.save(torch.load(weights, weights_only=True), folder / "open_clip_pytorch_model.bin")
    return folder
