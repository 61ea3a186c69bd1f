"""Language: what an identifier (``dataset_builder.identification``) takes each text for, beside the language that its row declares."""

from __future__ import annotations

from collections.abc import Iterator

from t2i_parity.dataset_builder.identification import Verdict, identified
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.validation.prompts.model import Check, Fault, Rows
from t2i_parity.validation.prompts.texts import shorten

WRONG_SHARE, WRONG_ROWS = 0.05, 3
"""A share of a language's texts, and a number of them, from which its whole column is taken to be wrong."""

UNLIKE = frozenset({"transliterated", "typo_perturbed"})
"""Derivations whose texts look like no language, as they are meant to."""


def verdicts(rows: Rows) -> list[Verdict | None]:
    """What the identifier says of every row's own text; None where it is not asked: no letters, a language that it does not know, noise."""
    return [
        None if derivation in UNLIKE else identified(text, code)
        for text, code, derivation in zip(rows.texts, rows["language"], rows["derivation"], strict=True)
    ]


def _language(rows: Rows) -> Iterator[Fault]:
    judged = rows.memo(verdicts)
    for (code, variety), members in rows.groups.items():
        flagged = [number for number in members if (verdict := judged[number]) and verdict.flagged]
        for number in flagged:
            verdict = judged[number]
            assert verdict is not None
            found = f"{verdict.language} ({verdict.probability:.2f}): {shorten(rows.texts[number])}"
            wanted = f"{LANGUAGES[code].name} ({code})"
            yield Fault(
                number, rows.own, found, wanted, "translate the text, or correct the row's language", "note" if verdict.short else "warning"
            )
        sure = [number for number in flagged if (verdict := judged[number]) and not verdict.short]
        total = sum(1 for number in members if (verdict := judged[number]) and not verdict.short)
        if len(sure) >= max(WRONG_ROWS, WRONG_SHARE * total):
            named = f"{LANGUAGES[code].name}{f' ({variety})' if variety else ''}"
            found = f"{len(sure)} of {total} texts in {named} are in another language"
            wanted = f"fewer than {100 * WRONG_SHARE:.0f}% of them"
            yield Fault(None, rows.own, found, wanted, "translate the texts, or correct the rows' language", n=len(sure))


CHECKS = (Check("language", "error", "an identifier does not take a text for another language (a single text: warning, a short one: note)",
                _language, ("language",)),)  # fmt: skip
