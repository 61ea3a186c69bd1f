"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "trigscore.py"))


def score(table: list[list[Any]], scale: str, variant: str) -> dict[str, Any]:
    """The table's scores; a wrong input is shown as it is told."""
    words = [word.strip() for word in scale.split(",")]
    try:
        return metric.compute_table(table, scale=words, variant=variant)  # type: ignore[no-any-return]
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    score,
    inputs=[
        gr.Dataframe(
            [
                ["Good, Excellent, Medium", "-0.3, -1.6, -3.2"],
                ["bad, ter, medium", "-0.7, -0.9, -2.5"],
                ["I, The, Sorry", "-0.2, -2.1, -3.0"],
            ],
            headers=["tokens", "logprobs"],
            datatype="str",
            type="array",
            label="One image a row: the judge's likeliest tokens and their log-probabilities, between commas",
        ),
        gr.Textbox(value="excellent, good, medium, bad, terrible", label="scale, the best first"),
        gr.Radio(["paper", "reference"], value="paper", label="variant"),
    ],
    outputs=gr.JSON(label="scores"),
    title="TRIGScore",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
