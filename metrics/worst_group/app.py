"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "worst_group.py"))


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
            [["true", "en"], ["true", "en"], ["true", "fr"], ["false", "fr"], ["false", "hi"], ["", "hi"]],
            headers=["correct", "groups"],
            datatype="str",
            type="array",
            label="Was each row right, and its group (an empty verdict is a missing one)",
        )
    ],
    outputs=gr.JSON(label="scores"),
    title="Worst-group accuracy",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
