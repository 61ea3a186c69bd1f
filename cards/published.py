"""The card of the dataset of published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from t2i_parity.cards.environment import environment


def published_card(
    front: Mapping[str, Any], config: str, split: str, columns: Sequence[tuple[str, str]], rows: int, source: str, url: str
) -> str:
    """README.md: front matter by which ``load_dataset`` finds the file, what the rows are, and what to cite."""
    template = environment().get_template("published_card.md.j2")
    return template.render(front=dict(front), config=config, split=split, columns=columns, rows=rows, source=source, url=url)
