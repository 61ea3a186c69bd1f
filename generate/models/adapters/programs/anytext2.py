"""AnyText2 v1.0 through its repository's AnyText2Model, with no font and no colour asked for.

Written from a copy of the repository's ms_wrapper.py and demo.py; never run here. Chinese prompts go through the model's translator;
lines longer than 20 characters are cut by the model.
"""

from __future__ import annotations

import importlib
from typing import Any, Callable, Dict, Tuple  # noqa: UP035 (Python 3.8 reads these at run time)

Message = Dict[str, Any]  # noqa: UP006
LINES = 5
"""The model's interface has places for so many lines."""


def load(hello: Message) -> Tuple[Message, Callable[[Message], Any]]:  # noqa: UP006
    """The model, and a function that draws."""
    from serving import told  # type: ignore[import-not-found]  # it lies beside this file

    image_module, numpy = importlib.import_module("PIL.Image"), importlib.import_module("numpy")
    model = (
        importlib.import_module("ms_wrapper")
        .AnyText2Model(model_dir=hello["places"]["weights"], use_fp16=True, use_translator=True, font_path="font/Arial_Unicode.ttf")
        .cuda(0)
    )

    def draw(request: Message) -> Any:
        places = 255 - numpy.asarray(image_module.open(request["condition_image"]).convert("RGB"))
        texts = [text.replace('"', "'") for text in request["render_texts"]]
        given = {
            # As in the LingT2I study: the text stands in the picture's prompt as words, and by lines in the text's prompt, quoted.
            "img_prompt": request["prompt"].replace("<sks1>", " ".join(texts)).replace('"', ""),
            "text_prompt": " ".join(f'"{text}"' for text in texts),
            "seed": request["seed"] % 2**31,
            "draw_pos": places,
            "ori_image": None,
        }
        pictures, code, warning, _ = model(
            given,
            mode="gen",
            revise_pos=True,
            font_hollow=True,
            image_count=1,
            ddim_steps=told(hello, "steps", 20),
            cfg_scale=told(hello, "guidance", 7.5),
            image_width=told(request, "width", 512),
            image_height=told(request, "height", 512),
            glyline_font_path=["None"] * LINES,
            font_hint_image=[None] * LINES,
            font_hint_mask=[None] * LINES,
            text_colors=" ".join(["500,500,500"] * LINES),
        )
        if code < 0:
            raise RuntimeError(str(warning))
        return image_module.fromarray(pictures[0])

    return {"model": "iic/cv_anytext2", "revision": "v1.0", "seeds": True, "device": "cuda"}, draw


if __name__ == "__main__":
    from serving import serve  # it lies beside this file

    serve(load)
