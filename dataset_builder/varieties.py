"""The varieties of English whose equal treatment is audited, each declared once.

The five of the dialect-penalty study (Kim et al. 2026, Appendix F) with their reference, Standard American English, and the
British English that DialectGen (Zhou et al. 2025) adds.
"""

from dataclasses import dataclass

from t2i_parity.dataset_builder.languages import Declared


@dataclass(frozen=True, slots=True)
class Variety:
    """One variety of a language; ``reference`` is the code of the variety it is compared with, None for a reference itself."""

    code: str
    name: str
    language: str = "en"
    reference: str | None = "SAE"


VARIETIES: Declared[Variety] = Declared((
    Variety("SAE", "Standard American English", reference=None),
    Variety("AAVE", "African American Vernacular English"),
    Variety("ChcE", "Chicano English"),
    Variety("CollSgE", "Colloquial Singaporean English"),
    Variety("IndE", "Indian English"),
    Variety("JamE", "Jamaican English"),
    Variety("BrE", "British English"),
))  # fmt: skip
"""Every declared variety by its code."""

STUDY_VARIETIES: tuple[str, ...] = ("AAVE", "ChcE", "CollSgE", "IndE", "JamE")
"""The five varieties of the dialect-penalty study, in its order."""


def variety(code: str) -> Variety:
    """The declared variety of a code.

    Raises ValueError, naming the known codes, when none is declared.

    >>> variety("JamE").name
    'Jamaican English'
    """
    try:
        return VARIETIES[code]
    except KeyError:
        raise ValueError(
            f"unknown variety {code!r}: expected one of {', '.join(VARIETIES)}. Declare one of your own in a YAML file: --vocabulary FILE"
        ) from None
