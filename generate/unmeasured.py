"""What failed on every row of a run: nothing was measured then, and a command says so and ends with exit code 1."""

from __future__ import annotations

from collections import Counter

from t2i_parity.generate.engine.collect import reason_of
from t2i_parity.generate.run import Run

REFUSED = "no image: refused"
"""How the reason begins of an observation whose image was refused: an outcome of the model, and no failure of its judge."""


def unmeasured(run: Run) -> list[str]:
    """A paragraph for each of the tables that this process went on with in which every row failed, those of earlier calls among them.

    A model that refuses does not fail, and neither does the judge of what it refused.
    """
    return [told for name, tally in run.tallies.items() if tally.done == tally.failed and (told := _told(run, name))]


def _told(run: Run, name: str) -> str:
    parts = run.images() if name == "images" else run.observations(name)
    rows = parts.read(["status", "reason"]).to_pylist() if parts.files() else []
    if not rows or any(row["status"] != "failed" for row in rows):
        return ""
    reasons = Counter(reason_of(row["reason"]) for row in rows if not (row["reason"] or "").startswith(REFUSED))
    if not reasons:
        return ""
    reason, count = reasons.most_common(1)[0]
    return (
        f"{name if name != 'images' else 'the model'} failed on all of the {len(rows):,} rows of {run.url}, so that nothing was measured. "
        f"The most frequent reason, of {count:,} of them: {reason}. All that was made is kept. Fix: {_fix(run, name, reason)}"
    )


def _fix(run: Run, name: str, reason: str) -> str:
    again = "mend what the reason names, and give the same command with --retry-failed"
    if name == "images" or run.record["kind"] != "generation":
        return again
    if reason.startswith("no image"):
        return "make the images first (t2i-parity generate with --retry-failed), and judge them under another name: --as NAME"
    return "mend what the reason names, and judge again under another name: --as NAME"
