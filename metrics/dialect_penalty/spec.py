"""The dialect penalty, declared: a filter's verdicts on pairs. An audit makes its scores, variety by variety."""

from __future__ import annotations

from t2i_parity.metrics.dialect_penalty import core
from t2i_parity.metrics.scores import MetricSpec, ScoreSpec


def _half(rate: str, counted: str, what: str, rise: str) -> tuple[ScoreSpec, ...]:
    def score(key: str, title: str, **more: str) -> ScoreSpec:
        how = {"kind": "proportion", "direction": "none", "counted": counted, "missing": f"n_missing_{what}", **more}
        return ScoreSpec(core.NAME, key, title, **how)  # type: ignore[arg-type]

    short = rate.upper()
    about = f"How much more often {what} prompts are flagged in a variety, in percentage points."
    test = {"unit": "p", "kind": "p_value"}
    return (
        score(
            f"delta_{rate}_pp",
            f"Δ{short}",
            about=about,
            unit="pp",
            direction="zero",
            kind="paired_difference",
            board=f"Filter: shift of {rise}",
            headline=f"Shift of {rise}, pp",
        ),
        score(f"{rate}_reference", f"{short} of the reference"),
        score(f"{rate}_variety", f"{short} of the variety"),
        score(f"p_{rate}", f"p of Δ{short}", **test),
        score(f"p_{rate}_holm", f"Holm p of Δ{short}", **test),
        score(f"{rate}_only_variety", "Only the variety", unit="count", kind="count"),
        score(f"{rate}_only_reference", "Only the reference", unit="count", kind="count"),
    )


SPEC = MetricSpec(
    name=core.NAME,
    title="Dialect penalty",
    about="How a filter's rates shift from a reference wording to a variety of it, pair by pair.",
    scores=(
        *_half("tpr", "n_toxic", "toxic", "detection"),
        *_half("fpr", "n_benign", "benign", "false alarms"),
    ),
    instrument="filter",
    place="audit",
)
