"""What a report is handed: plain frozen objects, filled by whoever has the runs, drawn by ``cards.report`` and ``cards.plots``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from t2i_parity.cards.report_audit import AuditSection
from t2i_parity.cards.report_sections import Section
from t2i_parity.cards.slices import Slice
from t2i_parity.metrics._common import Signature
from t2i_parity.metrics.scores import Score
from t2i_parity.metrics.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class LanguageScores:
    """One language in one run: the text-rendering scores by key (precision, ned_char, ned_token, sentence_accuracy)."""

    code: str
    name: str
    native_name: str
    scores: Mapping[str, Score]


@dataclass(frozen=True, slots=True)
class Gap:
    """How unequal a run is over languages, of its precision; all of one signature.

    ``std`` is the study's population standard deviation, which describes; ``spread`` that of the true means, None with ``p_alike`` where a
    run was scored before there were any. The groups of ``worst`` and ``best`` name the language.
    """

    mean: Score
    std: Score
    worst: Score
    best: Score
    spread: Score | None = None
    p_alike: Score | None = None


@dataclass(frozen=True, slots=True)
class LanguageParity:
    """A language's precision against a language-blind model's of the run's own quality: both scores, Holm's p, and the verdict."""

    expected: Score
    difference: Score
    p_holm: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Parity:
    """Every language of a run against such a model, by code; ``p_alike`` tests whether all are served alike."""

    signature: Signature
    languages: Mapping[str, LanguageParity]
    p_alike: float | None


@dataclass(frozen=True, slots=True)
class Rendering:
    """Text rendering of one run read by one reader. ``upper_bound`` marks the undamaged typesetter: its scores are the reader's ceiling.

    ``parity`` is None where a run has one language only, or was scored before languages were held against a language-blind model.
    ``slices`` are those of the run's prompts, and whether any image of each has a score; its languages where left out.
    ``common`` is the inequality over the slices that all scored runs of the page have, where these differ.
    ``calibrated`` says that what the reader makes of each language is known, and stands on the page; ``corrected_p`` is then the test that
    all languages' characters, corrected for the reader, are alike, None where not every language could be corrected.
    """

    run: str
    model: str
    reader: str
    signature: Signature
    overall: Mapping[str, Score]
    languages: Sequence[LanguageScores]
    gap: Gap | None
    upper_bound: bool = False
    parity: Parity | None = None
    calibrated: bool = False
    corrected_p: float | None = None
    slices: Mapping[Slice, bool] = field(default_factory=dict)
    common: Gap | None = None

    @property
    def asked(self) -> frozenset[Slice]:
        """The slices of the run's prompts."""
        return frozenset(self.slices or [(language.code, "") for language in self.languages])

    @property
    def answered(self) -> frozenset[Slice]:
        """The slices of which anything was scored: what its totals are over."""
        if not self.slices:
            return frozenset((language.code, "") for language in self.scored)
        return frozenset(each for each, there in self.slices.items() if there)

    @property
    def scored(self) -> list[LanguageScores]:
        """The languages of which anything was scored."""
        return [language for language in self.languages if any(score.value is not None for score in language.scores.values())]


@dataclass(frozen=True, slots=True)
class Side:
    """One label (toxic: detection rates, benign: false-alarm rates) of one variety against its reference; None where no pair has it."""

    n: int
    n_missing: int
    reference_rate: float | None
    variety_rate: float | None
    delta_pp: float | None
    ci_low_pp: float | None
    ci_high_pp: float | None
    only_variety: int
    only_reference: int
    p: float | None
    p_holm: float | None
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class VarietyAudit:
    """One variety under one filter."""

    code: str
    name: str
    toxic: Side
    benign: Side

    @property
    def n(self) -> int:
        """The pairs of both labels."""
        return self.toxic.n + self.benign.n

    @property
    def n_missing(self) -> int:
        """Those that are missing, of both labels."""
        return self.toxic.n_missing + self.benign.n_missing

    @property
    def sides(self) -> tuple[tuple[str, Side], ...]:
        """Each label with its side."""
        return ("toxic", self.toxic), ("benign", self.benign)


@dataclass(frozen=True, slots=True)
class Audit:
    """One filter over one set of pairs; ``margin_pp`` is the δ of its verdicts, in percentage points."""

    run: str
    filter: str
    subset: str
    reference: str
    signature: Signature
    varieties: Sequence[VarietyAudit]
    margin_pp: float

    def sides(self, label: str) -> list[tuple[VarietyAudit, Side]]:
        """The sides of one label, of the varieties that have any pair of it."""
        found = [(variety, side) for variety in self.varieties for name, side in variety.sides if name == label]
        return [(variety, side) for variety, side in found if side.n + side.n_missing]

    @property
    def family(self) -> str:
        """Over what Holm's correction is, in words."""
        counts = [(sum(side.p_holm is not None for _, side in self.sides(label)), label) for label in ("toxic", "benign")]
        tests = " and ".join(f"{count} on {label} pairs" for count, label in counts if count)
        return f"Holm’s correction is over the varieties of one filter, subset and label ({tests or 'no test'} here)"


@dataclass(frozen=True, slots=True)
class Sample:
    """One image with what it should say and what was read. ``image`` is an encoded picture (PNG or JPEG bytes), None when there is none."""

    run: str
    image_id: str
    language: str
    direction: Literal["ltr", "rtl"]
    wanted: str
    read: str | None
    precision: float | None
    image: bytes | None
    status: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """All that the page shows."""

    title: str
    created: str
    renderings: Sequence[Rendering] = ()
    audits: Sequence[Audit] = ()
    samples: Sequence[Sample] = ()
    notes: Sequence[str] = ()
    records: Sequence[tuple[str, str]] = field(default=())
    """(run name, its record as YAML or JSON text), shown folded."""
    level: float = 0.95
    """The confidence level of every interval."""
    audit_sections: Sequence[AuditSection] = ()
    """What audits show beyond their rates, run after run."""
    sections: Sequence[Section] = ()
    """The other metrics, the reader's ceiling and the analyses."""
