"""What the benchmarks share: texts of the starter edition in ten languages, damaged; timing; the table they print."""

from __future__ import annotations

import argparse
import importlib.resources
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One comparison: seconds of ours and of a named peer, and how large (or small) their ratio may be."""

    ours: str
    seconds: float
    peer: str
    peer_seconds: float
    at_most: float | None = None

    @property
    def ratio(self) -> float:
        return self.seconds / self.peer_seconds


def seconds(works: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """The shortest time of each work. They take turns, so that a busy machine slows all of them alike."""
    best = [float("inf")] * len(works)
    for _ in range(repeats):
        for place, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[place] = min(best[place], time.perf_counter() - start)
    return best


def table(rows: Sequence[Row]) -> str:
    """The rows as text, one a line."""
    lines = [f"{'ours':<58} {'s':>9}   {'peer':<58} {'s':>9}  {'ratio':>9}  at most"]
    for row in rows:
        limit = "" if row.at_most is None else f"{row.at_most:g} {'holds' if row.ratio <= row.at_most else 'MISSED'}"
        lines.append(f"{row.ours:<58} {row.seconds:>9.4f}   {row.peer:<58} {row.peer_seconds:>9.4f}  {row.ratio:>9.4f}  {limit}")
    return "\n".join(lines)


def main(run: Callable[[int, int], list[Row]], size: int, repeats: int, description: str | None) -> None:
    """Run one benchmark from the command line and print its table."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument("--size", type=int, default=size, help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=repeats, help="the best of so many (default: %(default)s)")
    given = parser.parse_args()
    print(table(run(given.size, given.repeats)))


def mixed_pairs(n: int, seed: int = 0) -> tuple[list[str], list[str], list[str]]:
    """Readings, references and languages: two to five words of one language a text; two texts in three are damaged."""
    rng = random.Random(seed)
    file = importlib.resources.files("t2i_parity.dataset_builder.starter") / "lingt2i_text.jsonl"
    texts = [json.loads(line)["texts"] for line in file.read_text(encoding="utf-8").splitlines()]
    words = {code: sorted({word for text in texts for word in text[code].split()}) for code in texts[0]}
    letters = {code: sorted(set("".join(words[code]))) for code in words}
    codes = list(words)
    readings, references, languages = [], [], []
    for row in range(n):
        code = codes[row % len(codes)]
        text = " ".join(rng.choices(words[code], k=rng.randint(2, 5)))
        seen = list(text)
        for _ in range(row % 3):
            place = rng.randrange(len(seen))
            seen[place : place + rng.randint(0, 1)] = rng.choices(letters[code], k=rng.randint(0, 2))
            seen = seen or [" "]
        readings.append("".join(seen))
        references.append(text)
        languages.append(code)
    return readings, references, languages
