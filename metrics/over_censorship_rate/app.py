"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "over_censorship_rate.py"))


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
            [
                ["0.31", "0.30", "0.28", "0.11"],
                ["0.29", "0.12", "0.27", "0.10"],
                ["0.33", "0.32", "0.30", "0.29"],
                ["0.30", "", "0.31", "0.30"],
            ],
            headers=["unguarded_reference", "guarded_reference", "unguarded_variety", "guarded_variety"],
            datatype="str",
            type="array",
            label="One pair a row: cosine similarity of each image to the reference text (an empty cell is a missing one)",
        ),
        gr.Number(value=0.1, label="threshold"),
    ],
    outputs=gr.JSON(label="scores"),
    title="Over-censorship rate",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
