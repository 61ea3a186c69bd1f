"""The validation report: what it is handed, as plain frozen objects, and its page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Literal

from t2i_parity.cards.documents import JsonObject
from t2i_parity.cards.environment import environment, visible

if TYPE_CHECKING:
    from rich.table import Table

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
"""From what must be mended, over what should be looked at, to what one should know."""
SHOWN = 100
"""How many findings of one check in one config the page lists; the JSON file has all of them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault: where it is, what was found and expected, and how to mend it. ``row`` is None for what concerns a whole table.

    ``n`` is the number of rows that it stands for, ``row`` then the first of them.
    """

    check: str
    severity: Severity
    config: str
    row: int | None
    prompt_id: str | None
    column: str | None
    found: str
    expected: str
    fix: str
    n: int = 1


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check on one config: how severe its findings can be, how many there are, and why it was not run where it was not."""

    name: str
    config: str
    severity: Severity
    what: str
    findings: int
    skipped: str | None = None


@dataclass(frozen=True, slots=True)
class LanguageRow:
    """The texts of one language (and variety) in one config.

    ``judged`` and ``short`` count the texts that the identifier was asked about, long and short ones; ``judged_other`` and
    ``short_other`` those of them for which it thinks another language the likeliest; ``flagged`` those it was sure about.
    """

    config: str
    language: str
    name: str
    variety: str | None
    accepted: Sequence[str]
    rows: int
    words: float | None
    characters: float
    tokens: float | None
    judged: int
    judged_other: int
    short: int
    short_other: int
    flagged: int


@dataclass(frozen=True, slots=True)
class CountRow:
    """How many rows the cells of a source's subset have beside what its design asks; None where no design is declared."""

    config: str
    source: str
    subset: str
    design: str | None
    by: str
    cells: int
    smallest: int
    largest: int
    expected: str | None
    wrong: int


@dataclass(frozen=True, slots=True)
class LicenceRow:
    """One licence in one config, and what it asks of whoever passes the rows on."""

    config: str
    licence: str
    rows: int
    asks: Sequence[str]


@dataclass(frozen=True, slots=True)
class Validation:
    """All that the report shows."""

    source: str
    configs: Mapping[str, int]
    checks: Sequence[CheckResult]
    findings: Sequence[Finding]
    languages: Sequence[LanguageRow] = ()
    counts: Sequence[CountRow] = ()
    licences: Sequence[LicenceRow] = ()
    notes: Sequence[str] = ()

    def passes(self, fail_on: Severity) -> bool:
        """Whether nothing was found that is as severe as ``fail_on``, or more."""
        bad = SEVERITIES[: SEVERITIES.index(fail_on) + 1]
        return not any(finding.severity in bad for finding in self.findings)

    def count(self, severity: Severity) -> int:
        """The number of findings of one severity."""
        return sum(finding.severity == severity for finding in self.findings)

    def as_json(self) -> JsonObject:
        """Plain lists, strings and numbers."""
        return {
            "source": self.source,
            "rows": dict(self.configs),
            "found": {severity: self.count(severity) for severity in SEVERITIES},
            **{
                name: [asdict(entry) for entry in getattr(self, name)] for name in ("findings", "checks", "languages", "counts", "licences")
            },
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class _Group:
    """The findings of one check in one config."""

    check: str
    what: str
    config: str
    worst: Severity
    findings: Sequence[Finding]
    total: int


def grouped(validation: Validation) -> list[_Group]:
    """Findings by check and config, the most severe first, at most ``SHOWN`` of each."""
    whats = {(check.name, check.config): check.what for check in validation.checks}
    members: dict[tuple[str, str], list[Finding]] = {}
    for finding in validation.findings:
        members.setdefault((finding.check, finding.config), []).append(finding)
    groups = []
    for (check, config), found in members.items():
        found.sort(key=lambda finding: SEVERITIES.index(finding.severity))
        groups.append(_Group(check, whats[check, config], config, found[0].severity, found[:SHOWN], len(found)))
    return sorted(groups, key=lambda group: SEVERITIES.index(group.worst))


@dataclass(frozen=True, slots=True)
class Line:
    """One check over all configs: findings by severity, or why it ran nowhere."""

    name: str
    what: str
    counts: Mapping[Severity, int]
    configs: int
    skipped: str | None


def lines(validation: Validation) -> list[Line]:
    """One line a check, in the order in which they ran."""
    severities = Counter((finding.check, finding.severity) for finding in validation.findings)
    answer = []
    for name in dict.fromkeys(check.name for check in validation.checks):
        members = [check for check in validation.checks if check.name == name]
        ran = [check for check in members if check.skipped is None]
        counts: dict[Severity, int] = {severity: severities[name, severity] for severity in SEVERITIES}
        answer.append(Line(name, members[0].what, counts, len(ran), None if ran else members[0].skipped))
    return answer


def rate(part: int, whole: int) -> str:
    """A share of texts for people.

    >>> rate(1, 8), rate(0, 0)
    ('12.5%', '–')
    """
    return f"{100 * part / whole:.1f}%" if whole else "–"


def render(validation: Validation, fail_on: Severity = "error") -> str:
    """The report as one HTML page that asks for nothing outside itself and needs no JavaScript; same input, same text."""
    return (
        environment()
        .get_template("validation.html.j2")
        .render(
            validation=validation,
            passes=validation.passes(fail_on),
            fail_on=fail_on,
            severities=SEVERITIES,
            lines=lines(validation),
            groups=grouped(validation),
            rows=sum(validation.configs.values()),
            tokens=any(row.tokens is not None for row in validation.languages),
            rate=rate,
            visible=visible,
        )
        .lstrip()
    )


# The console

CONSOLE_SHOWN = 5
"""How many findings of one check in one config the console lists."""


def console_tables(validation: Validation) -> list[Table]:
    """The report for a terminal of 100 to 120 columns: findings first, then languages, counts and licences."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def table(title: str, caption: str, headings: Sequence[str], left: int) -> Table:
        made = Table(title=Text(visible(title), "bold"), caption=Text(visible(caption)) if caption else None, box=box.SIMPLE_HEAD)
        made.padding, made.show_edge, made.pad_edge = (0, 1, 0, 0), False, False
        made.title_justify = made.caption_justify = "left"
        for place, heading in enumerate(headings):
            made.add_column(heading, justify="left" if place < left else "right", overflow="fold")
        tables.append(made)
        return made

    def row(made: Table, *cells: object) -> None:
        # Text, not str: rich would read square brackets in what people wrote as markup.
        made.add_row(*(Text(visible(cell)) for cell in cells))

    tables: list[Table] = []
    for group in grouped(validation):
        shown = group.findings[:CONSOLE_SHOWN]
        more = f"and {group.total - len(shown):,} more (all of them: --json FILE)" if group.total > len(shown) else ""
        made = table(f"{group.check} in {group.config}: {group.total:,}", more, ("severity", "where", "found", "expected"), 4)
        for finding in shown:
            row(made, finding.severity, _place(finding), finding.found, finding.expected)
    made = table(
        "Texts by language, and for how many an identifier thinks another likelier", "",
        ("config", "language", "rows", "words", "characters", "other language (long)", "(short)", "sure"), 2,
    )  # fmt: skip
    for each in validation.languages:
        words = "–" if each.words is None else f"{each.words:.0f}"
        long, short = (f"{rate(n, of)} of {of:,}" for n, of in ((each.judged_other, each.judged), (each.short_other, each.short)))
        row(
            made, each.config, f"{each.language} {each.variety or ''}", f"{each.rows:,}", words, f"{each.characters:.0f}", long, short,
            each.flagged,
        )  # fmt: skip
    made = table(
        "Rows in the cells of each design", "",
        ("config", "subset", "design", "cells", "smallest", "largest", "expected", "wrong"), 3,
    )  # fmt: skip
    for count in validation.counts:
        wrong = "–" if count.design is None else f"{count.wrong:,}"
        row(
            made, count.config, count.subset, count.design or "none declared", f"{count.cells:,}", f"{count.smallest:,}",
            f"{count.largest:,}", count.expected or "–", wrong,
        )  # fmt: skip
    made = table("Licences", "", ("config", "licence", "asks", "rows"), 3)
    for licence in validation.licences:
        row(made, licence.config, licence.licence, ", ".join(licence.asks) or "–", f"{licence.rows:,}")
    return [made for made in tables if made.row_count]


def _place(finding: Finding) -> str:
    if finding.row is None:
        place = "the whole table"
    else:
        place = f"row {finding.row}" + (f" and {finding.n - 1:,} more" if finding.n > 1 else "")
        place += f" ({finding.prompt_id})" if finding.prompt_id else ""
    return f"{place}, {finding.column}" if finding.column else place


def summary(validation: Validation, fail_on: Severity) -> str:
    """The verdict in a line or two.

    >>> summary(Validation("prompts", {"geo": 280}, [], []), "error")
    'passes: 0 checks over 280 rows found 0 errors, 0 warnings, 0 notes'
    """
    ran = [line for line in lines(validation) if line.skipped is None]
    found = ", ".join(f"{validation.count(severity):,} {severity}s" for severity in SEVERITIES)
    rows = sum(validation.configs.values())
    return f"{'passes' if validation.passes(fail_on) else 'fails'}: {len(ran)} checks over {rows:,} rows found {found}"
