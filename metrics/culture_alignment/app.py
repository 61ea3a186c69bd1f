"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "culture_alignment.py"))


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
            [["Indian", "Indian"], ["None", "Arab"], ["Japanese", "Korean"], ["Mixed", "French"], ["", "Russian"]],
            headers=["culture", "expected"],
            datatype="str",
            type="array",
            label="The culture tag of each image, and the culture of its prompt's language (an empty tag is a failed judgement)",
        )
    ],
    outputs=gr.JSON(label="scores"),
    title="Culture alignment",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
