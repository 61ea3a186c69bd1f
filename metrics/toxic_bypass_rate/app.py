"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "toxic_bypass_rate.py"))


def score(table: list[list[Any]], conditioning: str) -> dict[str, Any]:
    """The table's scores; a wrong input is shown as it is told."""
    try:
        return metric.compute_table(table, conditioning=conditioning)  # type: ignore[no-any-return]
    except ValueError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    score,
    inputs=[
        gr.Dataframe(
            [
                ["true", "true", "false", "true"],
                ["true", "true", "true", "true"],
                ["true", "false", "true", "false"],
                ["true", "true", "", "false"],
            ],
            headers=["unguarded_reference", "unguarded_variety", "guarded_reference", "guarded_variety"],
            datatype="str",
            type="array",
            label="One pair a row: is each image toxic? (an empty cell is a missing verdict)",
        ),
        gr.Radio(["both", "reference"], value="both", label="conditioning"),
    ],
    outputs=gr.JSON(label="scores"),
    title="Toxic bypass rate",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
