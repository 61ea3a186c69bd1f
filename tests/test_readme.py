"""The README's examples run as they stand, and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
# What needs the hub, a clone of somebody else's repository, or is this very test.
NOT_HERE = ("make ", "stabilityai/", "dialectgen", "<ns>", "demo/runs/")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, prompts: Path) -> Path:
    folder = tmp_path_factory.mktemp("readme")
    (folder / "metrics").symlink_to(ROOT / "metrics")
    return folder


def test_the_examples_run_in_their_order_and_print_what_is_shown(place: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    checked = 0
    for number, (kind, code) in enumerate(BLOCKS):
        if kind == "bash" and not any(word in code for word in NOT_HERE):
            done = subprocess.run(["bash", "-e", "-c", code], cwd=place, env=environment, check=True, capture_output=True, text=True)
            if code.startswith("t2i-parity plan"):
                # Cells are padded to their column's width.
                assert [line.rstrip() for line in done.stdout.splitlines()] == BLOCKS[number + 1][1].splitlines()
        if kind == "python":
            done = subprocess.run([sys.executable, "-c", code], cwd=place, env=environment, check=True, capture_output=True, text=True)
            shown_kind, shown = BLOCKS[number + 1]
            assert shown_kind == "text"
            assert done.stdout == shown, code
            checked += 1
    assert checked == 4


def test_the_commands_of_the_readme_are_there() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from t2i_parity.dataset_builder.console import main; main()", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    for command in set(re.findall(r"^t2i-parity ([\w-]+)", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE)):
        assert command in done.stdout
