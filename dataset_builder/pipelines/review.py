"""What people decide: verdict files of the review page, read, held against the texts they are about, and counted.

The page (``cards.review``) is one file that works offline. It has two kinds: ``corrections`` asks what becomes of a translation that was
flagged; ``check`` asks of a sample whether meaning, culture and fluency hold (LingT2I, Appendix B.3).
"""

from __future__ import annotations

import itertools
import json
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from t2i_parity.cards.documents import Json
from t2i_parity.dataset_builder.answers import AnswerError, fitting
from t2i_parity.dataset_builder.errors import InputError, first_line
from t2i_parity.dataset_builder.schema import text_sha256

FORMAT = "t2i-parity-review/1"
QUALITIES = ("meaning", "culture", "fluency")
"""What the human check asks of each row, yes or no: semantic fidelity, cultural appropriateness, fluency."""
DECISIONS = ("keep", "correct", "drop")

Kind = Literal["corrections", "check"]

_SCHEMA: Json = {
    "type": "object",
    "required": ["format", "kind", "reviewer", "verdicts"],
    "properties": {
        "format": {"const": FORMAT},
        "kind": {"enum": ["corrections", "check"]},
        "reviewer": {"type": "string"},
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "text_sha256"],
                "properties": {
                    "id": {"type": "string"},
                    "text_sha256": {"type": "string"},
                    "decision": {"enum": [*DECISIONS, None]},
                    "correction": {"type": ["string", "null"]},
                    "comment": {"type": ["string", "null"]},
                    **{name: {"type": ["boolean", "null"]} for name in QUALITIES},
                },
            },
        },
    },
}
_NAME = re.compile(r"[\w .@-]{1,40}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one person said of one text; ``qualities`` those of QUALITIES that were answered."""

    id: str
    text_sha256: str
    kind: Kind
    reviewer: str
    decision: str | None = None
    correction: str | None = None
    qualities: Mapping[str, bool] | None = None

    def about(self, text: str) -> bool:
        """Whether it is about this very text, and not one that has changed since."""
        return self.text_sha256 == text_sha256(text)


def read_verdicts(paths: Iterable[Path]) -> list[Verdict]:
    """The verdicts of files that the review page saved. Raises InputError naming file and place."""
    found: list[Verdict] = []
    for path in paths:
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is not a verdict file ({first_line(error)}). Give the file that the review page saved") from error
        try:
            fitting(content, _SCHEMA)
        except AnswerError as error:
            raise InputError(f"{path} is not a verdict file of the form {FORMAT}: {error}") from error
        if not _NAME.fullmatch(content["reviewer"].strip()):
            raise InputError(f"{path}: reviewer: expected a short name of letters and digits, got {content['reviewer'][:60]!r}")
        for number, each in enumerate(content["verdicts"]):
            correction = " ".join((each.get("correction") or "").split()) or None
            if each.get("decision") == "correct" and correction is None:
                raise InputError(f"{path}: verdict {number} ({each['id']}): the decision is correct, and there is no correction")
            found.append(
                Verdict(
                    each["id"],
                    each["text_sha256"],
                    cast(Kind, content["kind"]),
                    content["reviewer"].strip(),
                    each.get("decision"),
                    correction,
                    {name: each[name] for name in QUALITIES if each.get(name) is not None},
                )
            )
    seen: dict[tuple[str, str, str], Verdict] = {}
    for verdict in found:
        other = seen.setdefault((verdict.kind, verdict.id, verdict.reviewer), verdict)
        if other != verdict:
            raise InputError(f"{verdict.reviewer} has two different verdicts on {verdict.id}; leave out the file that is out of date")
    return list(seen.values())


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far two raters agree on one quality: n texts that both rated, the share alike, Cohen's κ with its 95% interval.

    κ is None where it is not defined: no texts, or both gave every text the same rating.
    """

    quality: str
    raters: tuple[str, str]
    n: int
    alike: float | None
    kappa: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Share:
    """How many of n rated texts have a quality, with the Wilson interval of the share at 95%."""

    quality: str
    language: str
    n: int
    yes: int
    share: float | None
    low: float | None
    high: float | None


def agreement(first: Mapping[str, bool], second: Mapping[str, bool], quality: str, raters: tuple[str, str]) -> Agreement:
    """Cohen's κ of two raters over the texts that both rated (by id).

    >>> a = agreement({"1": True, "2": True, "3": False, "4": False}, {"1": True, "2": False, "3": False, "4": False}, "m", ("a", "b"))
    >>> a.n, a.alike, a.kappa
    (4, 0.75, 0.5)
    """
    from statsmodels.stats.inter_rater import cohens_kappa

    both = sorted(first.keys() & second.keys())
    table = [[0, 0], [0, 0]]
    for key in both:
        table[int(first[key])][int(second[key])] += 1
    n = len(both)
    if not n:
        return Agreement(quality, raters, 0, None, None, None, None)
    alike = (table[0][0] + table[1][1]) / n
    if n in (table[0][0], table[1][1]):
        return Agreement(quality, raters, n, alike, None, None, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cohens_kappa(table)
    low, high = (float(value) if value == value else None for value in (found.kappa_low, found.kappa_upp))
    return Agreement(quality, raters, n, alike, float(found.kappa), low, high)


def agreements(verdicts: Sequence[Verdict], reviewer_model: Mapping[str, bool] | None = None) -> list[Agreement]:
    """κ of every two people on every quality, and of every person with the reviewing model on the meaning."""
    people = sorted({verdict.reviewer for verdict in verdicts if verdict.kind == "check"})
    rated = {
        (name, quality): {
            verdict.id: verdict.qualities[quality]
            for verdict in verdicts
            if verdict.kind == "check" and verdict.reviewer == name and verdict.qualities and quality in verdict.qualities
        }
        for name in people
        for quality in QUALITIES
    }
    found = [
        agreement(rated[first, quality], rated[second, quality], quality, (first, second))
        for first, second in itertools.combinations(people, 2)
        for quality in QUALITIES
    ]
    if reviewer_model is not None:
        found += [agreement(rated[name, "meaning"], reviewer_model, "meaning", (name, "reviewing model")) for name in people]
    return found


def shares(verdicts: Sequence[Verdict], languages: Mapping[str, str]) -> list[Share]:
    """The share of rated texts that have each quality, over all languages and in each; a text counts once a rater."""
    from statsmodels.stats.proportion import proportion_confint

    found = []
    for code in ("all", *dict.fromkeys(languages.values())):
        for quality in QUALITIES:
            rated = [
                verdict.qualities[quality]
                for verdict in verdicts
                if verdict.kind == "check"
                and verdict.qualities
                and quality in verdict.qualities
                and verdict.id in languages
                and code in ("all", languages[verdict.id])
            ]
            if not rated:
                if code == "all":
                    found.append(Share(quality, code, 0, 0, None, None, None))
                continue
            low, high = proportion_confint(sum(rated), len(rated), method="wilson")
            found.append(Share(quality, code, len(rated), sum(rated), sum(rated) / len(rated), float(low), float(high)))
    return found
