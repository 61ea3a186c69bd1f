"""Small files of the exact upstream layouts, written for tests."""

from __future__ import annotations

import csv
from pathlib import Path

from dataset_builder.sources.dialectgen import COLUMNS, ROWS_OF_FILE


def dialectgen(root: Path, **counts: int) -> Path:
    """The concise part of DialectGen below ``root``, with other row counts where they are given."""
    folder = root / "text" / "concise"
    folder.mkdir(parents=True)
    for name, expected in ROWS_OF_FILE.items():
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for number in range(counts.get(name, expected)):
                writer.writerow([f"w{number}", "word", f"a w{number}, by {name}", f"a word {number}", 0, 1, 0, ""])
    return root
