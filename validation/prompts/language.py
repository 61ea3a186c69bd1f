"""Language: what an identifier takes each text for, beside the language that its row declares.

The identifier is py3langid, restricted to the languages of the studies and those that are mistaken for them, and it is believed only
where it is sure. Tried on the Universal Declaration of Human Rights in these 19 languages, cut into pieces: no false alarm among 9,170
pieces in the studied languages; and a piece declared as a neighbouring language was seen through in 18% of the cases with 1 or 2 words,
66% with 3 to 5, 93% with 6 to 10 (least for Marathi as Hindi, 60%, and Ukrainian or Bulgarian as Russian, 68%) and all with 15 to 25.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from dataset_builder.languages import LANGUAGES
from validation.prompts.model import Check, Fault, Rows, spaced, standard
from validation.prompts.texts import letters, shorten

STUDIED = tuple(dict.fromkeys(language.standard or code for code, language in LANGUAGES.items()))
NEIGHBOURS = ("it", "nl", "ca", "fa", "ur", "uk", "bg", "mr")
"""Languages of no study that the identifier may answer, each close to one that is."""

SURE, UNLIKELY = 0.9, 0.05
"""The identifier is believed when it gives a language at least the one, and those that are accepted at most the other."""
SHORT, SHORT_UNSPACED = 25, 10
"""Texts of fewer letters are short (unspaced: Chinese, Japanese): a name or two words may be in any language, and are noted only."""
WRONG_SHARE, WRONG_ROWS = 0.05, 3
"""A share of a language's texts, and a number of them, from which its whole column is taken to be wrong."""

UNLIKE = frozenset({"transliterated", "typo_perturbed"})
"""Derivations whose texts look like no language, as they are meant to."""

_KANA = re.compile("[\u3040-\u30ff]")


def accepted(code: str, text: str, short: bool) -> frozenset[str]:
    """The answers of the identifier that agree with a declared language.

    No identifier tells Bavarian from German or Egyptian from Standard Arabic, and a short Japanese text without kana is Chinese too.

    >>> sorted(accepted("bar", "Grüß God", True)), sorted(accepted("ja", "非常口", True))
    (['de'], ['ja', 'zh'])
    """
    known = {standard(code) or code}
    if code == "ja" and short and not _KANA.search(text):
        known.add("zh")
    return frozenset(known)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the identifier says of one text: its likeliest language and how likely, and how likely the accepted ones are together."""

    language: str
    probability: float
    declared: float
    short: bool
    agrees: bool

    @property
    def flagged(self) -> bool:
        """Whether the identifier is sure that the text is in another language."""
        return not self.agrees and self.probability >= SURE and self.declared <= UNLIKELY


@cache
def identifier() -> Any:
    """The identifier with its model, loaded once."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    loaded = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    loaded.set_languages([*STUDIED, *NEIGHBOURS])
    return loaded


def verdicts(rows: Rows) -> list[Verdict | None]:
    """What the identifier says of every row's own text; None where it is not asked: no letters, a language that it does not know, noise."""
    known, classify, rank = frozenset(STUDIED), identifier().classify, identifier().rank
    answer: list[Verdict | None] = []
    for text, code, derivation in zip(rows.texts, rows["language"], rows["derivation"], strict=True):
        n = letters(text)
        if not n or standard(code) not in known or derivation in UNLIKE:
            answer.append(None)
            continue
        short = n < (SHORT if spaced(code) else SHORT_UNSPACED)
        agreed = accepted(code, text, short)
        language, probability = classify(text)
        if language in agreed:
            answer.append(Verdict(language, float(probability), float(probability), short, True))
        else:
            declared = sum(float(value) for other, value in rank(text) if other in agreed)
            answer.append(Verdict(language, float(probability), declared, short, False))
    return answer


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
