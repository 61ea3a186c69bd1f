"""What several instruments stand on: encoders, vision-language models, detectors, services and their pictures. No instrument is here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from t2i_parity.dataset_builder.registry import Entry, Registry, packages

if TYPE_CHECKING:
    from t2i_parity.dataset_builder.chat import ChatModel

CHATS: Registry[Callable[..., ChatModel]] = Registry(
    "chat model",
    (
        Entry(
            "transformers",
            "t2i_parity.generate.backends.local_vlm:shared",
            "a model of transformers in this process",
            packages("generate", "torch", "transformers", "accelerate"),
        ),
    ),
)
"""What runs a chat model in this process; the construction of prompts, in the room below, finds it by its kind."""
