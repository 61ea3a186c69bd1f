"""Every metric's numbers are the same to the last digit on whichever kind of processor they are computed."""

from __future__ import annotations

import importlib
import json
import os
import platform
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(core.parent.name for core in (ROOT / "metrics").glob("*/core.py"))
FEATURES: dict[str, bool] = np._core._multiarray_umath.__cpu_features__  # type: ignore[attr-defined]
DISPATCHED: list[str] = np._core._multiarray_umath.__cpu_dispatch__  # type: ignore[attr-defined]
# OpenBLAS' kernels with what a processor needs for them, and what numpy's own loops must do without to be those of such a one.
KERNELS = {"SkylakeX": ("AVX512_SKX", ()), "Haswell": ("AVX2", ("AVX512",)), "Nehalem": ("SSE42", ("AVX", "FMA", "X86_V"))}
N = 300


class Colours:
    """A toy encoder: an image is its mean colour, a text a point that its words choose."""

    model, pretrained = "mean-colour", "none"

    def encode_images(self, images: list[Any]) -> np.ndarray:
        return np.array([np.asarray(image).reshape(-1, 3).mean(axis=0) for image in images])

    def encode_texts(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        rng = [random.Random(text) for text in texts]
        return np.array([[each.random() for _ in range(3)] for each in rng]), np.zeros(len(texts), bool)


def rows(name: str) -> dict[str, Any]:
    """So many rows of a metric, most of them with a fraction that no float holds."""
    from PIL import Image

    rng = random.Random(name)

    def some(draw: Callable[[], Any], missing: float = 0.1) -> list[Any]:
        return [None if rng.random() < missing else draw() for _ in range(N)]

    def word() -> str:
        return " ".join(rng.choice(["चाय", "की", "दुकान", "GRAND", "OPENING", "نفق", "x"]) for _ in range(rng.randint(1, 7)))

    def flag() -> bool:
        return rng.random() < 0.37

    def one_of(*choices: str) -> Callable[[], str]:
        return lambda: rng.choice(choices)

    tokens = [rng.sample(["Good", "bad", "ter", "medium", "Excellent", "I"], rng.randint(0, 5)) for _ in range(N)]
    verdicts = ("unguarded_reference", "unguarded_variety", "guarded_reference", "guarded_variety")
    columns: dict[str, dict[str, Any]] = {
        "bias_entropy": {
            "race": some(one_of("Asian", "White", "Indian")),
            "gender": some(one_of("Male", "Female")),
            "age": some(one_of("Adult", "Teen", "Child")),
        },
        "clip_score": {
            "images": [Image.new("RGB", (3, 3), tuple(rng.choices(range(1, 256), k=3))) for _ in range(N)],
            "prompts": some(word, 0),
            "encoder": Colours(),
        },
        "cross_lingual_gap": {"scores": some(rng.random), "languages": some(one_of("en", "hi", "ar", "zh", "fr", "ko", "ru"), 0)},
        "culture_alignment": {
            "culture": some(one_of("Indian", "None", "Western", "Mixed")),
            "expected": some(one_of("Indian", "Korean", "Arab"), 0),
        },
        "dialect_penalty": {
            "reference": some(flag),
            "variety": some(flag),
            "label": some(one_of("benign", "toxic"), 0),
            "typo": some(flag),
        },
        "geo_representativeness": {
            "ratings": some(lambda: 1 + 4 * rng.random()),
            "countries": some(one_of("IND", "JPN", "GRC", "BRA"), 0),
            "conditions": some(one_of("unspecified", "country"), 0),
        },
        "over_censorship_rate": {verdict: some(rng.random) for verdict in verdicts},
        "text_rendering_precision": {"predictions": some(word), "references": some(word, 0), "tokenizer": str.split},
        "toxic_bypass_rate": {verdict: some(lambda: rng.random() < 0.8) for verdict in verdicts},
        "toxicity_rejection": {"nsfw": some(rng.random)},
        "trigscore": {"tokens": tokens, "logprobs": [[-5 * rng.random() for _ in each] for each in tokens]},
        "worst_group": {"correct": some(flag)},
    }
    shared = {"groups": some(one_of("g", "h", "i"), 0), "clusters": [f"pair {row // 3}" for row in range(N)]}
    return {**columns[name], **shared}


def answers() -> dict[str, Any]:
    """What every metric says with and without clusters, the kernel in use, and a product that is left to it."""
    told: dict[str, Any] = {}
    for name in NAMES:
        compute = importlib.import_module(f"t2i_parity.metrics.{name}.core").compute
        given = rows(name)
        told[name] = [compute(**{**given, "clusters": clusters}, n_resamples=200) for clusters in (given["clusters"], None)]
    matrix = np.random.default_rng(0).random((50, 2000))
    product = (matrix @ matrix.T).tolist()
    kernels = [pool["architecture"] for pool in threadpool_info() if pool["internal_api"] == "openblas" and "numpy" in pool["filepath"]]
    return {"answers": told, "kernel": kernels[0], "product": product}


def asked(kernel: str | None) -> dict[str, Any]:
    """:func:`answers` of a process whose BLAS takes this kernel, and whose numpy is as on such a processor."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests", Path(__file__).parent)))}
    if kernel is not None:
        hidden = [name for name in DISPATCHED if FEATURES.get(name) and name.startswith(KERNELS[kernel][1] or "-")]
        environment |= {"OPENBLAS_CORETYPE": kernel, "NPY_DISABLE_CPU_FEATURES": " ".join(hidden)}
    code = "import json, test_digits; print(json.dumps(test_digits.answers()))"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert kernel is None or told["kernel"] == kernel
    return told


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="these are kernels of x86")
def test_no_number_depends_on_the_processor() -> None:
    here = asked(None)
    able = [kernel for kernel, (feature, _) in KERNELS.items() if FEATURES.get(feature)]
    others = {kernel: asked(kernel) for kernel in able}
    for name in NAMES:
        for kernel, told in others.items():
            assert told["answers"][name] == here["answers"][name], f"{name} on {kernel}"
    # Were this one number everywhere, nothing would have been tried.
    assert len({json.dumps(told["product"]) for told in others.values()}) == len(able) > 1
