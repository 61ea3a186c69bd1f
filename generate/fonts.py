"""Fonts by script: which files are wanted, where systems keep them, and what to install when they are not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from t2i_parity.dataset_builder.errors import InputError


@dataclass(frozen=True, slots=True)
class Face:
    """One face of a font file; ``index`` selects the face inside a collection."""

    file: str
    index: int = 0


_NOTO = (Face("NotoSans-Regular.ttf"),)
FACES: dict[str, tuple[Face, ...]] = {
    "Latn": _NOTO,
    "Cyrl": _NOTO,
    "Arab": (Face("NotoNaskhArabic-Regular.ttf"), Face("NotoSansArabic-Regular.ttf")),
    "Deva": (Face("NotoSansDevanagari-Regular.ttf"),),
    "Jpan": (Face("NotoSansCJK-Regular.ttc", 0),),
    "Kore": (Face("NotoSansCJK-Regular.ttc", 1),),
    "Hans": (Face("NotoSansCJK-Regular.ttc", 2),),
}
"""Faces by ISO 15924 script, in the order in which they are tried. A new script is one entry."""

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


def face_for(text: str, script: str) -> tuple[Path, int]:
    """The first face of a script that has a glyph for every character of a text (spaces aside): its file and index.

    Raises InputError with the install command when no font of the script is there, and ValueError naming the characters when the
    fonts that are there cannot show the text.
    """
    if script not in FACES:
        raise InputError(f"no font is declared for the script {script}; add one to FACES in generate/fonts.py")
    present = [(_files()[face.file], face.index) for face in FACES[script] if face.file in _files()]
    if not present:
        raise InputError(
            f"no font for the script {script} was found ({' or '.join(face.file for face in FACES[script])}). {install_command()}"
        )
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
            index = next((face.index for face in FACES[script] if path.suffix == ".ttc"), 0)
            if wanted <= _coverage(path, index):
                found.append((path, index))
    return found


def installed() -> tuple[str, ...]:
    """The names of the font files that a seeded choice can fall on, on this machine."""
    return tuple(sorted(name for name in _files() if not any(part in name for part in UNUSUAL)))


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
