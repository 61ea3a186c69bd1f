"""Every test works in caches of its own and never asks the hub."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

# Set before anything imports the libraries that read these once.
_CACHE = Path(tempfile.mkdtemp(prefix="t2i-parity-tests-"))
os.environ.update(
    HF_HOME=str(_CACHE / "hf"),
    HF_DATASETS_CACHE=str(_CACHE / "datasets"),
    HF_MODULES_CACHE=str(_CACHE / "modules"),
    HF_HUB_OFFLINE="1",
    HF_HUB_DISABLE_TELEMETRY="1",
    HF_UPDATE_DOWNLOAD_COUNTS="0",
    TOKENIZERS_PARALLELISM="false",
    COLUMNS="120",
)

import pytest  # noqa: E402
from commands import command  # noqa: E402


@pytest.fixture(scope="session")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter edition, built once."""
    out = tmp_path_factory.mktemp("prompts") / "starter"
    command("build", "--edition", "starter", "--out", out)
    return out


# A package of somebody else's, which adds what it holds when it is imported: tests do that, one by one (test_plugins.py).
collect_ignore = ["plugin_package"]
