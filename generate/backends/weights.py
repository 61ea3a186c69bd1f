"""Files of weights that users bring, read without running anything that they hold."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np

from t2i_parity.dataset_builder.errors import InputError, first_line, require

_OF_ARRAYS = {
    ("numpy", "ndarray"), ("numpy", "dtype"), ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"),
    ("_codecs", "encode"),
}  # fmt: skip
"""All that a pickled NumPy array needs."""


class _Arrays(pickle.Unpickler):
    """Reads pickled NumPy arrays and nothing else: whatever another pickle would import or call is refused."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _OF_ARRAYS:
            raise pickle.UnpicklingError(f"it would run {module}.{name}")
        return super().find_class(module, name)


def read_weights(file: Path) -> Any:
    """A file's tensors, on the CPU: by name, or one alone where the file holds no more.

    Takes ``.safetensors``, PyTorch's ``.pt``, ``.pth`` and ``.bin`` (tensors only), ``.npy``, and pickled NumPy arrays (``.p``, ``.pkl``).
    Raises InputError when there is no such file, or it holds anything but arrays.
    """
    torch = require("torch", package="torch", extra="generate")
    if not file.is_file():
        raise InputError(f"there is no file of weights at {file}")
    try:
        if file.suffix == ".safetensors":
            return require("safetensors.torch", package="safetensors", extra="generate").load_file(file)
        if file.suffix == ".npy":
            return torch.from_numpy(np.load(file, allow_pickle=False))
        if file.suffix in (".p", ".pkl", ".pickle"):
            with file.open("rb") as opened:
                return torch.from_numpy(np.ascontiguousarray(_Arrays(opened).load()))
        loaded = torch.load(file, map_location="cpu", weights_only=True)
    except InputError:
        raise
    except Exception as error:  # the readers raise many kinds, all of which mean: not a file of arrays
        raise InputError(
            f"{file} could not be read as weights ({first_line(error)}). Expected .safetensors, or a .pt, .pth, .bin, .npy or .p "
            "that holds arrays alone"
        ) from error
    return loaded["state_dict"] if isinstance(loaded, dict) and isinstance(loaded.get("state_dict"), dict) else loaded
