"""AnyText v1.1 through the ModelScope pipeline that its repository registers (mode text-generation).

Written from the repository's inference.py; never run here. Lines longer than 20 characters are cut by the model.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006
MODEL = "damo/cv_anytext_text_generation_editing"
REVISION = "v1.1.3"
"""The LingT2I study's; its paper says v1.1, the authors' inference.py v1.1.1."""


def quoted(prompt: str, texts: list[str]) -> str:
    """The prompt with each line of text in double quotes, which is how the model is told what to write.

    >>> quoted("A board that says <sks1>.", ["open", "daily"])
    'A board that says "open", "daily".'
    >>> quoted('A "nice" board.', ["open"])
    'A nice board. The words written on it are "open"'
    """
    words = ", ".join('"' + text.replace('"', "'") + '"' for text in texts)
    plain = prompt.replace('"', "").replace("“", "").replace("”", "")
    if not words:
        return plain
    return plain.replace("<sks1>", words) if "<sks1>" in plain else f"{plain} The words written on it are {words}"


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """The pipeline, whose weights come from ModelScope at their revision, and a function that draws."""
    from serving import told  # type: ignore[import-not-found]  # it lies beside this file

    image_module = importlib.import_module("PIL.Image")
    pipeline = importlib.import_module("modelscope.pipelines").pipeline("my-anytext-task", model=MODEL, model_revision=REVISION)

    def draw(request: Message) -> Any:
        given: Message = {
            "prompt": quoted(request["prompt"], request["render_texts"]),
            "seed": request["seed"] % 2**31,
            # A path is read as black places on white.
            "draw_pos": request["condition_image"],
        }
        options = {"image_count": 1, "ddim_steps": told(hello, "steps", 20), "show_debug": False}
        for name, side in (("image_width", request["width"]), ("image_height", request["height"])):
            if side:
                options[name] = side
        if hello["guidance"]:
            options["cfg_scale"] = hello["guidance"]
        pictures, code, warning, _ = pipeline(given, mode="text-generation", **options)
        if code < 0:
            raise RuntimeError(str(warning))
        return image_module.fromarray(pictures[0])

    return {"model": MODEL, "revision": REVISION, "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # it lies beside this file

    serve(load)
