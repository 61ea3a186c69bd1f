"""What the licences that rows carry ask of those who share them, by SPDX or hub id."""

from __future__ import annotations

import re
from dataclasses import dataclass

UNKNOWN = "unknown"
"""The id of rows whose source states no licence."""

_CREATIVE_COMMONS = re.compile(r"cc-by(-nc)?(-sa|-nd)?-([1-4]\.[05])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class License:
    """A licence: its text's address, and what it asks. ``known`` is False when nothing is declared about the id."""

    id: str
    url: str | None = None
    known: bool = True
    attribution: bool = True
    share_alike: bool = False
    non_commercial: bool = False
    no_derivatives: bool = False


_DECLARED = (
    License("CC0-1.0", "https://creativecommons.org/publicdomain/zero/1.0/", attribution=False),
    License("MIT", "https://opensource.org/license/mit"),
    License("Apache-2.0", "https://www.apache.org/licenses/LICENSE-2.0"),
    License("BSD-3-Clause", "https://opensource.org/license/bsd-3-clause"),
    License("ODC-By-1.0", "https://opendatacommons.org/licenses/by/1-0/"),
    License("ODbL-1.0", "https://opendatacommons.org/licenses/odbl/1-0/", share_alike=True),
    License("PDDL-1.0", "https://opendatacommons.org/licenses/pddl/1-0/", attribution=False),
)
_BY_ID = {declared.id.lower(): declared for declared in _DECLARED}


def terms(id: str) -> License:
    """What is known of a licence by its id: those declared here, and every Creative Commons licence, whose id says what it asks.

    >>> terms("CC-BY-NC-SA-4.0").share_alike, terms("cc-by-nc-sa-4.0").url
    (True, 'https://creativecommons.org/licenses/by-nc-sa/4.0/')
    >>> terms("somebody's own").known
    False
    """
    if found := _CREATIVE_COMMONS.fullmatch(id):
        restrictions = f"{found[1] or ''}{found[2] or ''}".lower()
        return License(
            id,
            f"https://creativecommons.org/licenses/by{restrictions}/{found[3]}/",
            share_alike="-sa" in restrictions,
            non_commercial="-nc" in restrictions,
            no_derivatives="-nd" in restrictions,
        )
    return _BY_ID.get(id.lower(), License(id, known=False))


KNOWN = (*(declared.id for declared in _DECLARED), "CC-BY-4.0 and the like with -NC, -SA, -ND, of every version")
"""What is declared, for whoever named something else."""
