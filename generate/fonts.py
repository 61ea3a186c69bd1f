"""Fonts by script: which files are wanted, where systems keep them, and what to install when they are not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.languages import SCRIPTS

FOLDERS = (
    "/usr/share/fonts",
    "/usr/local/share/fonts",
    "~/.local/share/fonts",
    "~/.fonts",
    "/Library/Fonts",
    "~/Library/Fonts",
    "/opt/homebrew/share/fonts",
)
VARIABLE = "T2I_PARITY_FONTS"
"""An environment variable that names one more folder, searched first."""


@cache
def _files() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in filter(None, (os.environ.get(VARIABLE), *FOLDERS)):
        for path in sorted(Path(folder).expanduser().rglob("*.[to]t[fc]")):
            found.setdefault(path.name, path)
    return found


@cache
def _coverage(path: Path, index: int) -> frozenset[int]:
    from fontTools.ttLib import TTFont

    with TTFont(path, fontNumber=index, lazy=True) as font:
        return frozenset(font.getBestCmap())


def _faces(script: str) -> list[tuple[str, int]]:
    """A script's font files in the order in which they are tried, and the face inside each: those it declares, or Noto's by its name."""
    name = SCRIPTS[script].name.replace(" ", "")
    fonts = SCRIPTS[script].fonts or (f"NotoSans{name}-Regular.ttf", f"NotoSerif{name}-Regular.ttf", "NotoSans-Regular.ttf")
    parts = [font.partition("#") for font in fonts]
    return [(file, int(index or 0)) for file, _, index in parts]


def face_for(text: str, script: str) -> tuple[Path, int]:
    """The first face of a script that has a glyph for every character of a text (spaces aside): its file and index.

    Raises InputError with the install command when no font of the script is there, and ValueError naming the characters when the
    fonts that are there cannot show the text.
    """
    faces = _faces(script)
    present = [(_files()[file], index) for file, index in faces if file in _files()]
    if not present:
        raise InputError(f"no font for the script {script} was found ({' or '.join(file for file, _ in faces)}). {install_command()}")
    lacking: list[str] = []
    for path, index in present:
        lacking = sorted({character for character in text if not character.isspace() and ord(character) not in _coverage(path, index)})
        if not lacking:
            return path, index
    raise ValueError(f"no font for {script} has {' '.join(f'{c!r} (U+{ord(c):04X})' for c in lacking)}")


UNUSUAL = ("Nastaliq", "Math", "Symbols", "Emoji")
"""Parts of file names of fonts that signs and pages in the studies' languages are not set in; a seeded choice leaves them out."""


def faces_for(text: str, script: str) -> list[tuple[Path, int]]:
    """Every installed face that has a glyph for all of a text, by file name; a collection gives the face of the script.

    Which ones they are depends on the machine: who chooses among them records their names. Raises as :func:`face_for` does.
    """
    face_for(text, script)
    wanted = {ord(character) for character in text if not character.isspace()}
    found = []
    for name, path in sorted(_files().items()):
        if not any(part in name for part in UNUSUAL):
            # The regions of a collection stand in one order in all of its weights.
            index = _faces(script)[0][1] if path.suffix == ".ttc" else 0
            if wanted <= _coverage(path, index):
                found.append((path, index))
    return found


def installed() -> tuple[str, ...]:
    """The names of the font files that a seeded choice can fall on, on this machine."""
    return tuple(sorted(name for name in _files() if not any(part in name for part in UNUSUAL)))


def lacking(script: str) -> str | None:
    """What is missing to set a script, None where nothing is."""
    try:
        face_for("", script)
    except InputError as error:
        return str(error)
    return None


def check(scripts: Iterable[str]) -> None:
    """Raise the InputError of the first script that has no font: asked before a long run begins."""
    for script in scripts:
        face_for("", script)


def install_command() -> str:
    """The command that brings the fonts on this system."""
    if sys.platform == "darwin":
        fix = "brew install --cask font-noto-sans font-noto-naskh-arabic font-noto-sans-devanagari font-noto-sans-cjk"
    else:
        fix = (
            "apt-get install fonts-noto-core fonts-noto-cjk (Debian, Ubuntu) or dnf install google-noto-sans-fonts "
            "google-noto-naskh-arabic-fonts google-noto-sans-devanagari-fonts google-noto-sans-cjk-fonts (Fedora)"
        )
    return f"Install the fonts with: {fix}; or name a folder that holds them in {VARIABLE}"
