"""The command as a user runs it, for tests."""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

from t2i_parity.dataset_builder.console import main

PROGRAM = [sys.executable, "-c", "from t2i_parity.dataset_builder.console import main; main()"]
"""``t2i-parity`` as a process of its own."""


def command(*arguments: object, check: int | None = 0, own_process: bool = False) -> subprocess.CompletedProcess[str]:
    """Run ``t2i-parity``, in this process unless told otherwise; ``check`` is the exit code that is expected, None for any."""
    words = [str(argument) for argument in arguments]
    if own_process:
        done = subprocess.run([*PROGRAM, *words], capture_output=True, text=True, timeout=300, check=False)
    else:
        out, err, code = io.StringIO(), io.StringIO(), 0
        with redirect_stdout(out), redirect_stderr(err):
            try:
                main(words)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else int(end.code is not None)
        done = subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
    if check is not None:
        assert done.returncode == check, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def error_of(*arguments: object, own_process: bool = False) -> str:
    """The message of a command that must refuse: exit code 2, one paragraph, no traceback."""
    done = command(*arguments, check=2, own_process=own_process)
    message = done.stderr[done.stderr.index("error: ") :].strip()
    assert "\n" not in message, message
    assert "Traceback" not in done.stderr, done.stderr
    return message
