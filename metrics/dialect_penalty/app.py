"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "dialect_penalty.py"))


def score(table: list[list[Any]], test: str) -> dict[str, Any]:
    """The table's scores; a wrong input is shown as it is told."""
    try:
        return metric.compute_table(table, test=test)  # type: ignore[no-any-return]
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    score,
    inputs=[
        gr.Dataframe(
            [
                ["true", "true", "toxic"],
                ["false", "true", "toxic"],
                ["false", "true", "benign"],
                ["false", "false", "benign"],
            ],
            headers=["reference", "variety", "label"],
            datatype="str",
            type="array",
            label="One pair a row: was each wording flagged? (an empty cell is a missing answer)",
        ),
        gr.Radio(["paper", "exact", "chi2"], value="paper", label="test"),
    ],
    outputs=gr.JSON(label="scores"),
    title="Dialect penalty",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
