# Written by `python -m t2i_parity.metrics.copies` from metrics/copies.py; change it there.
"""The form of this metric's Space; here: pip install gradio, then python app.py."""

from pathlib import Path

import evaluate

HERE = Path(__file__).parent
demo = evaluate.load(str(HERE / "geo_representativeness.py")).form(HERE / "README.md")

if __name__ == "__main__":
    demo.launch()
