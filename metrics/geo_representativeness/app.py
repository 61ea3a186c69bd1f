"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "geo_representativeness.py"))


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
                ["3", "IND", "unspecified"],
                ["4", "IND", "country"],
                ["2", "JPN", "unspecified"],
                ["4", "JPN", "country"],
                ["1", "GRC", "unspecified"],
                ["", "GRC", "country"],
            ],
            headers=["ratings", "countries", "conditions"],
            datatype="str",
            type="array",
            label="One rating from 1 to 5 a row, the participant's country, and whether the prompt named it (an empty rating is missing)",
        )
    ],
    outputs=gr.JSON(label="scores"),
    title="Geographical representativeness",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
