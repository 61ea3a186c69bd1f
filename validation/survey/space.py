"""The survey as a hub Space: a folder to upload, and beside it the private dataset that holds its pictures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

from t2i_parity.cards.survey import space_card
from t2i_parity.dataset_builder.errors import InputError, require
from t2i_parity.dataset_builder.storage import Folder
from t2i_parity.validation.survey import serving
from t2i_parity.validation.survey.pictures import Picture, write_pictures
from t2i_parity.validation.survey.ratings import TRICKS
from t2i_parity.validation.survey.service import Settings
from t2i_parity.validation.survey.storage import SECRET_VARIABLE
from t2i_parity.validation.survey.tricks import SUFFIXES

CODE = (
    "__init__.py",
    "cards/__init__.py", "cards/documents.py", "cards/environment.py", "cards/survey.py", "cards/templates/_page.css.j2",
    "cards/templates/survey*.j2",
    "dataset_builder/__init__.py", "dataset_builder/countries.py", "dataset_builder/errors.py", "dataset_builder/languages.py",
    "dataset_builder/storage.py", "generate/__init__.py", "generate/parts.py", "validation/__init__.py", "validation/survey/*.py",
    "validation/survey/*.jsonl",
)  # fmt: skip
"""What of this repository a Space needs, which takes no package of ours from a registry."""
REQUIREMENTS = (
    "huggingface_hub>=1.0", "fsspec>=2024.6", "pyarrow>=21", "pillow>=11", "jinja2>=3.1", "pyyaml>=6", "babel>=2.16", "pycountry>=24.6",
    "pydantic>=2.7", "filelock>=3.13",
)  # fmt: skip
APP = '''"""The survey: t2i-parity survey --space wrote this Space."""

from pathlib import Path

from t2i_parity.validation.survey.serving import serve_space

if __name__ == "__main__":
    serve_space(Path(__file__).parent)
'''


def write(folder: Path, pictures: Sequence[Picture], settings: Settings, ratings_hub: str, trick_folder: str | None) -> None:
    """``space/`` with the app, and ``dataset/`` with the pictures, below a new folder. Raises InputError where it is not empty."""
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"{folder} is not empty; --space expects a new folder")
    gradio = require("gradio", package="gradio", extra="survey")
    space = Folder(str(folder / "space"))
    root = Path(__file__).parents[2]
    for pattern in CODE:
        for path in sorted(root.glob(pattern)):
            space.write(path.read_bytes(), *path.relative_to(root.parent).parts)
    readme = space_card(gradio=gradio.__version__, ratings_hub=ratings_hub, secret_variable=SECRET_VARIABLE, every=serving.EVERY)
    space.write(readme.encode("utf-8"), "README.md")
    space.write(APP.encode("utf-8"), "app.py")
    space.write("".join(f"{line}\n" for line in REQUIREMENTS).encode("utf-8"), "requirements.txt")
    record = json.dumps(serving.settings_record(settings, ratings_hub), ensure_ascii=False, indent=1)
    space.write(f"{record}\n".encode(), serving.SETTINGS)
    if trick_folder is not None:
        (folder / "space" / "tricks").mkdir()
        for trick in TRICKS.values():
            for suffix in SUFFIXES:
                if (file := Path(trick_folder) / f"{trick.shown}{suffix}").is_file():
                    shutil.copyfile(file, folder / "space" / "tricks" / file.name)
    write_pictures(pictures, Folder(str(folder / "dataset")), serving.PICTURES)
