"""The command as a user runs it, for tests."""

from __future__ import annotations

import subprocess
import sys


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
