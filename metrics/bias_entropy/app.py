"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "bias_entropy.py"))


def score(table: list[list[Any]]) -> dict[str, Any]:
    """The table's scores; a wrong input is shown as it is told."""
    try:
        return metric.compute_table(table)  # type: ignore[no-any-return]
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    score,
    inputs=[
        gr.Dataframe(
            [
                ["Asian", "Female", "Adult"],
                ["Asian", "Male", "Adult"],
                ["White", "Male", "Elderly"],
                ["Indian", "Unknown", "Teen"],
                ["Parse Error", "Parse Error", "Parse Error"],
            ],
            headers=["race", "gender", "age"],
            datatype="str",
            type="array",
            label="One person a row, as the annotator answered",
        ),
    ],
    outputs=gr.JSON(label="scores"),
    title="Bias entropy",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
