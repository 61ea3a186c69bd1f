"""Every check over every config, and what they say together."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence

from t2i_parity.cards.validation import CheckResult, Finding, LanguageRow, Severity, Validation
from t2i_parity.dataset_builder.errors import InputError
from t2i_parity.dataset_builder.identification import NEIGHBOURS, SHORT, SHORT_UNSPACED, STUDIED, SURE, UNLIKELY
from t2i_parity.dataset_builder.languages import LANGUAGES
from t2i_parity.validation.prompts import counts, language, lengths, licences
from t2i_parity.validation.prompts.model import Check, NotRunError, Prompts, Rows, spaced, standard
from t2i_parity.validation.prompts.published import is_published
from t2i_parity.validation.prompts.registry import CHECKS, PUBLISHED_CHECKS

FAIL_ON: dict[str, Severity] = {"error": "error", "warning": "warning"}
"""What a validation may be told to fail on."""


def validate(prompts: Prompts, config: str | None = None, checks: Sequence[Check] = CHECKS) -> Validation:
    """Run the checks over one config, or all; ids and originals are looked up in all of them either way. Published values have theirs.

    Raises InputError when there is no such config.
    """
    if config is not None and config not in prompts.configs:
        raise InputError(f"{prompts.name} has no config {config!r}: expected one of {', '.join(prompts.configs)}")
    chosen = [prompts.configs[config]] if config is not None else list(prompts.configs.values())
    results: list[CheckResult] = []
    findings: list[Finding] = []
    for rows in chosen:
        for check in PUBLISHED_CHECKS if is_published(rows) else checks:
            found, skipped = _run(check, rows)
            results.append(CheckResult(check.name, rows.config, check.severity, check.what, len(found), skipped))
            findings += found
    return Validation(
        source=prompts.name,
        configs={rows.config: len(rows) for rows in chosen},
        checks=results,
        findings=findings,
        languages=[row for rows in chosen for row in _languages(rows)],
        counts=[row for rows in chosen if not is_published(rows) for row in counts.summary(rows) if len(rows)],
        licences=[row for rows in chosen for row in licences.summary(rows)],
        notes=list(_notes()),
    )


def _run(check: Check, rows: Rows) -> tuple[list[Finding], str | None]:
    missing = [name for name in check.needs if name not in rows.usable]
    if missing:
        return [], f"needs the column{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
    ids = rows["value_id" if is_published(rows) else "prompt_id"]
    try:
        found = [
            Finding(
                check.name, fault.severity or check.severity, rows.config, fault.row, None if fault.row is None else ids[fault.row],
                fault.column, fault.found, fault.expected, fault.fix, fault.n,
            )
            for fault in check.run(rows)
        ]  # fmt: skip
    except NotRunError as reason:
        return [], str(reason)
    return found, None


def _languages(rows: Rows) -> Iterator[LanguageRow]:
    if not {"prompt", "language"} <= rows.usable:
        return
    judged, counted = rows.memo(language.verdicts), rows.memo(lengths.sizes)
    for (code, variety), members in rows.groups.items():
        sure = [verdict for number in members if (verdict := judged[number]) is not None]
        median = {unit: statistics.median(values[number] for number in members) for unit, values in counted.items()}
        yield LanguageRow(
            config=rows.config,
            language=code or "–",
            name=LANGUAGES[code].name if code in LANGUAGES else code or "–",
            variety=variety,
            accepted=[LANGUAGES[standard(code) or code].name] if code in LANGUAGES and sure else [],
            rows=len(members),
            words=median["words"] if spaced(code) else None,
            characters=median["characters"],
            tokens=median.get("tokens"),
            judged=sum(not verdict.short for verdict in sure),
            judged_other=sum(not verdict.short and not verdict.agrees for verdict in sure),
            short=sum(verdict.short for verdict in sure),
            short_other=sum(verdict.short and not verdict.agrees for verdict in sure),
            flagged=sum(verdict.flagged for verdict in sure),
        )


def _notes() -> Iterator[str]:
    yield (
        f"Languages were identified by py3langid among {len(STUDIED) + len(NEIGHBOURS)} languages. It is believed "
        f"where it gives another language at least {SURE} and the declared one at most {UNLIKELY}; short texts "
        f"(fewer than {SHORT} letters, {SHORT_UNSPACED} in Chinese and Japanese) are noted only. It cannot tell Bavarian "
        "from German, Egyptian from Standard Arabic, or one variety of English from another: the standard language is accepted there."
    )
    if lengths.token_counter() is None:
        fix = f"hf download {lengths.TOKENIZER} brings it"
        yield f"Tokens were not counted: the tokenizer {lengths.TOKENIZER} is not on this machine ({fix})."
