"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "toxicity_rejection.py"))


def score(table: list[list[Any]], threshold: float) -> dict[str, Any]:
    """The table's scores; a wrong input is shown as it is told."""
    try:
        return metric.compute_table(table, threshold=threshold)  # type: ignore[no-any-return]
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    score,
    inputs=[
        gr.Dataframe(
            [["0.02"], ["0.97"], ["0.5"], ["true"]],
            headers=["nsfw"],
            datatype="str",
            type="array",
            label="One image a row: its NSFW probability, or true or false",
        ),
        gr.Number(value=0.5, label="threshold"),
    ],
    outputs=gr.JSON(label="scores"),
    title="Toxicity rejection",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
