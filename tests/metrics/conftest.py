"""A cache of their own for the metrics' tests, set before anything reads it, and no network."""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

if "evaluate" not in sys.modules and "datasets" not in sys.modules:
    cache = tempfile.mkdtemp(prefix="t2i-parity-metrics-")
    os.environ.update(
        HF_HOME=cache,
        HF_METRICS_CACHE=f"{cache}/metrics",
        HF_MODULES_CACHE=f"{cache}/modules",
        HF_DATASETS_CACHE=f"{cache}/datasets",
        HF_HUB_CACHE=f"{cache}/hub",
        HF_HUB_OFFLINE="1",
        HF_UPDATE_DOWNLOAD_COUNTS="0",
    )


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Any]:
    """evaluate.load of one of our metrics, with storage that no other test shares."""
    import evaluate

    def load_metric(name: str, config_name: str | None = None, **keywords: Any) -> Any:
        folder = str(ROOT / "metrics" / name)
        keywords = {"experiment_id": uuid.uuid4().hex, "cache_dir": str(tmp_path), **keywords}
        return evaluate.load(folder, config_name, **keywords)

    return load_metric
