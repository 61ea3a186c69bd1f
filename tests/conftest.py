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

import subprocess  # noqa: E402
import sys  # noqa: E402

import pytest  # noqa: E402


def command(*arguments: object, check: int | None = 0) -> subprocess.CompletedProcess[str]:
    """Run ``t2i-parity`` as a user does; ``check`` is the exit code that is expected, None for any."""
    done = subprocess.run(
        [sys.executable, "-c", "from dataset_builder.console import main; main()", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    if check is not None:
        assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def error_of(*arguments: object) -> str:
    """The message of a command that must refuse: exit code 2, one paragraph, no traceback."""
    done = command(*arguments, check=2)
    message = done.stderr[done.stderr.index("error: ") :].strip()
    assert "\n" not in message, message
    assert "Traceback" not in done.stderr, done.stderr
    return message


@pytest.fixture(scope="session")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter edition, built once."""
    out = tmp_path_factory.mktemp("prompts") / "starter"
    command("build", "--edition", "starter", "--out", out)
    return out
