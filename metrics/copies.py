"""What every metric folder holds alike, written from one source: ``python -m t2i_parity.metrics.copies`` writes it anew.

A folder is to be whole in itself, for ``evaluate.load`` of a plain copy, and as a Space: it holds the shared files that its own import, the
class that ``evaluate`` looks for, and its form. ``--check`` writes nothing, and tells which of these are stale.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent
COMMAND = "python -m t2i_parity.metrics.copies"
SHARED = {"common": "_common.py", "inference": "_inference.py", "languages": "_languages.py"}
"""A folder's file that its others import, and what it is a copy of."""
_OWN_FORM = ("clip_score",)
"""The forms that take something else than a table, and are written by hand."""

_SHELL = '''\
"""The metric as ``evaluate`` loads it; what it computes stands in ``core.py``."""

import evaluate

{imports}


class {class_name}(CheckedMetric, evaluate.Metric):  # type: ignore[misc]
    """See the core's ``compute``."""

    columns = COLUMNS
    function = staticmethod(compute)
    about = ABOUT
'''

_APP = '''\
"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path

import evaluate

HERE = Path(__file__).parent
demo = evaluate.load(str(HERE / "{name}.py")).form(HERE / "README.md")

if __name__ == "__main__":
    demo.launch()
'''


def written() -> dict[Path, str]:
    """Every file that is written, with what is to stand in it."""
    texts: dict[Path, str] = {}
    for folder in sorted(core.parent for core in ROOT.glob("*/core.py")):
        name = folder.name
        needed = {"common": "CheckedMetric", "core": "COLUMNS, compute", "about": "ABOUT"}
        # evaluate takes along only what the class's own file imports.
        held = {"common"} | {stem for path in folder.glob("*.py") for stem in _imports(path) if stem in SHARED}
        for stem, imported in _imports(folder / "core.py").items():
            needed.setdefault(stem, f"{imported} as {imported}")
        imports = "\n".join(f"from .{stem} import {needed[stem]}" for stem in sorted(needed))
        shell = _SHELL.format(imports=imports, class_name=name.title().replace("_", ""))
        texts[folder / f"{name}.py"] = _headed("metrics/copies.py", shell)
        if name not in _OWN_FORM:
            texts[folder / "app.py"] = _headed("metrics/copies.py", _APP.format(name=name))
        for stem in sorted(held):
            source = ROOT / SHARED[stem]
            # Shared files find one another as they lie here, and in a folder as they lie there.
            text = re.sub(
                r"^from t2i_parity\.metrics\._(\w+) import", r"from .\1 import", source.read_text(encoding="utf-8"), flags=re.MULTILINE
            )
            texts[folder / f"{stem}.py"] = _headed(f"metrics/{source.name}", text)
    return texts


def _headed(source: str, text: str) -> str:
    return f"# Written by `{COMMAND}` from {source}; change it there.\n{text}"


def _imports(path: Path) -> dict[str, str]:
    """The files beside it that a file imports, each with the first name that it takes from there."""
    return dict(re.findall(r"^from \.(\w+) import \(?\s*(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def stale() -> list[Path]:
    """The written files that are missing, no plain files, or not what they would be written as."""
    return [path for path, text in written().items() if path.is_symlink() or not path.is_file() or path.read_text(encoding="utf-8") != text]


def main(arguments: Sequence[str] | None = None) -> int:
    """Write what is stale, or with ``--check`` only tell; 1 where something was to be told."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; end with 1 where a copy is stale")
    check = parser.parse_args(arguments).check
    texts, found = written(), stale()
    for path in found:
        print(f"{'stale' if check else 'written'}: metrics/{path.relative_to(ROOT).as_posix()}")
        if not check:
            path.unlink(missing_ok=True)
            path.write_text(texts[path], encoding="utf-8", newline="\n")
    if check and found:
        print(f"Fix: {COMMAND}")
    return int(check and bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
