"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path
from typing import Any

import evaluate
import gradio as gr

HERE = Path(__file__).parent
metric = evaluate.load(str(HERE / "text_rendering_precision.py"))


def score(table: list[list[Any]], tokenizer: str, normalization: str, units: str, variant: str) -> dict[str, Any]:
    """The table's scores; a wrong input is shown as it is told."""
    settings = {"tokenizer": tokenizer, "normalization": normalization, "units": units, "variant": variant}
    try:
        return metric.compute_table(table, **settings)  # type: ignore[no-any-return]
    except (ValueError, RuntimeError) as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    score,
    inputs=[
        gr.Dataframe(
            [["GRAND OPENlNG", "GRAND OPENING"], ["चाय की दुकान", "चाय की दुकान"], ["", "نفق"]],
            headers=["predictions", "references"],
            datatype="str",
            type="array",
            label="What was read, and what was asked for (an empty prediction is a missing one)",
        ),
        gr.Dropdown(["tekken", "google/mt5-base"], value="tekken", allow_custom_value=True, label="tokenizer"),
        gr.Radio(["none", "nfc"], value="none", label="normalization"),
        gr.Radio(["codepoints", "graphemes"], value="codepoints", label="units of ned_char"),
        gr.Radio(["paper", "reference"], value="paper", label="variant"),
    ],
    outputs=gr.JSON(label="scores"),
    title="Text-rendering precision",
    article=(HERE / "README.md").read_text(encoding="utf-8").split("---\n", 2)[2],
)

if __name__ == "__main__":
    demo.launch()
