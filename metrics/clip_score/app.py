"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "clip_score.py"))

CHECKPOINTS = {
    "MetaCLIP 2 worldwide, 224 pixels": ("ViT-H-14-worldwide-quickgelu", "metaclip2_worldwide"),
    "MetaCLIP 2 worldwide, 378 pixels": ("ViT-H-14-worldwide-378", "metaclip2_worldwide"),
    "OpenAI CLIP B/32, English": ("ViT-B-32-quickgelu", "openai"),
}


def score(image: Any, prompt: str, checkpoint: str, scale: str) -> dict[str, Any]:
    """The score of one image; a wrong input is shown as it is told."""
    model, pretrained = CHECKPOINTS[checkpoint]
    try:
        answer: dict[str, Any] = metric.compute(
            images=[image], prompts=[prompt], model=model, pretrained=pretrained, scale=scale, n_resamples=0
        )
        return answer
    except (ValueError, RuntimeError) as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    score,
    inputs=[
        gr.Image(type="pil", label="image"),
        gr.Textbox("a red house by a river", label="prompt, in any language"),
        gr.Dropdown(list(CHECKPOINTS), value=next(iter(CHECKPOINTS)), label="checkpoint"),
        gr.Radio(["cosine", "clipscore"], value="cosine", label="scale"),
    ],
    outputs=gr.JSON(label="scores"),
    title="CLIPScore",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
