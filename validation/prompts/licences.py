"""Licences: each is a known one, allows what was done, and goes with the repository's."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from t2i_parity.cards.validation import LicenceRow
from t2i_parity.dataset_builder.licenses import UNKNOWN, terms
from t2i_parity.validation.prompts.model import Check, Fault, Rows
from t2i_parity.validation.prompts.texts import shorten

ROW_BY_ROW = "other"
"""What the hub calls the licence of a repository whose rows have several; the rows then say theirs."""

_HUB_IDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("openrail", "openrail++", "creativeml-openrail-m", "bigscience-openrail-m", "bigscience-bloom-rail-1.0", "bigcode-openrail-m",
         "c-uda"),
        ("use restrictions",),
    ),
    **dict.fromkeys(("intel-research", "apple-amlr"), ("non-commercial",)),
    **dict.fromkeys(("gfdl", "lgpl-lr"), ("share alike",)),
    **dict.fromkeys(("pddl", "etalab-2.0"), ()),
}  # fmt: skip
"""Licences of the hub that are not SPDX ids, and what each asks."""

_SHARE_ALIKE = ("GPL-", "GFDL-", "EUPL-", "MPL-", "CDLA-SHARING")
_ND, _NC, _SA = "no derivatives", "non-commercial", "share alike"


def asks(licence: str) -> tuple[str, ...] | None:
    """What a licence asks beyond naming its owner, None when it is not known.

    >>> asks("CC-BY-NC-SA-4.0"), asks("mit"), asks("my own")
    (('non-commercial', 'share alike'), (), None)
    """
    declared = terms(licence)
    if declared.known:
        flags = ((_ND, declared.no_derivatives), (_NC, declared.non_commercial), (_SA, declared.share_alike))
        return tuple(name for name, asked in flags if asked)
    if licence.casefold() in _HUB_IDS:
        return _HUB_IDS[licence.casefold()]
    try:
        canonical = canonicalize_license_expression(licence).upper()
    except InvalidLicenseExpression:
        return None
    if "LICENSEREF-" in canonical:
        return None
    flags = ((_ND, "-ND-" in canonical), (_NC, "-NC-" in canonical), (_SA, any(mark in canonical for mark in ("-SA-", *_SHARE_ALIKE))))
    return tuple(name for name, asked in flags if asked)


def _by_licence(rows: Rows) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for number, licence in enumerate(rows["license"]):
        if licence is not None:
            members.setdefault(licence, []).append(number)
    return members


def summary(rows: Rows) -> list[LicenceRow]:
    """The licences for the report."""
    answer = []
    for licence, members in sorted(rows.memo(_by_licence).items()):
        wanted = asks(licence)
        answer.append(LicenceRow(rows.config, licence, len(members), ["not known"] if wanted is None else list(wanted)))
    return answer


def _licence(rows: Rows) -> Iterator[Fault]:
    by_licence, derivations = rows.memo(_by_licence), rows["derivation"]
    for licence, members in by_licence.items():
        first, n = members[0], len(members)
        wanted = asks(licence)
        if wanted is None:
            said = "no licence is stated" if licence.casefold() == UNKNOWN else "neither an SPDX id nor one of the hub"
            fix = "ask the source for a licence before passing the rows on" if licence.casefold() == UNKNOWN else "write the SPDX id"
            yield Fault(first, "license", f"{shorten(licence)}: {said}", "a licence that is known", fix, "warning", n)
        elif _ND in wanted:
            changed = [number for number in members if derivations[number] not in ("verbatim", None)]
            if changed:
                fix = "drop the rows, or ask the source's owner for leave"
                yield Fault(changed[0], "license", f"{licence} forbids what was made from it", "unchanged texts only", fix, n=len(changed))
            else:
                yield Fault(first, "license", f"{licence} forbids to change the texts", "a licence that allows it",
                            "pass the rows on unchanged, or drop them", "warning", n)  # fmt: skip
        elif wanted:
            yield Fault(first, "license", f"{licence}: {', '.join(wanted)}", "to be kept when the rows are passed on",
                        "nothing is wrong: whoever uses the rows must know", "note", n)  # fmt: skip


def _repository(rows: Rows) -> Iterator[Fault]:
    stated = rows.prompts.licence
    if stated is None or stated.casefold() == ROW_BY_ROW:
        return
    for licence, members in rows.memo(_by_licence).items():
        wanted = asks(licence)
        if licence.casefold() == stated.casefold() or wanted == ():
            continue
        yield Fault(
            members[0], "license", f"{shorten(licence)} in a repository under {stated}", f"{stated}, or one that asks nothing more",
            f"state '{ROW_BY_ROW}' in the card, so that the rows' own licences count", n=len(members),
        )  # fmt: skip


def _parents(rows: Rows) -> Iterator[Fault]:
    licences: dict[str, str | None] = {}
    for other in rows.prompts.configs.values():
        licences.update(zip(other["prompt_id"], other["license"], strict=True))
    needed = {licence: set(asks(licence) or ()) & {_NC, _SA} for licence in {*licences.values()} if licence is not None}
    for number, (parent, licence) in enumerate(zip(rows["derived_from"], rows["license"], strict=True)):
        before = licences.get(parent) if parent is not None else None
        if before is None or licence is None or before == licence or not needed[before]:
            continue
        if _SA in needed[before] or not needed[before] <= needed[licence]:
            wanted = f"{before}, the licence of {shorten(parent)}, which asks for {' and '.join(sorted(needed[before]))}"
            yield Fault(number, "license", shorten(licence), wanted, "give the row the licence of what it was made from")


CHECKS = (
    Check("license", "error", "every licence is known and allows what was done (unknown: warning)", _licence, ("license",)),
    Check("license_of_repository", "error", "no row asks more than the licence that the card states", _repository, ("license",)),
    Check("license_of_parent", "error", "a derived row keeps what the licence of its original asks", _parents,
          ("license", "derived_from", "prompt_id")),
)  # fmt: skip
