# Written by `python -m t2i_parity.metrics.copies` from metrics/_languages.py; change it there.
"""Branch and script of each language, by its BCP-47 code: what metrics need to know of it.

Branches and scripts follow Table 1 of the LingT2I study; the classification of Japanese and Korean remains debated there too. A language
that is not here is one more entry; those of a user's vocabulary are entered while it is in use.
"""

from typing import NamedTuple


class Language(NamedTuple):
    """A language's branch, and the ISO 15924 code of its script."""

    branch: str
    script: str


LANGUAGES: dict[str, Language] = {
    "en": Language("Germanic", "Latn"),
    "zh": Language("Sinitic", "Hans"),
    "hi": Language("Indo-Aryan", "Deva"),
    "es": Language("Romance", "Latn"),
    "ar": Language("Semitic", "Arab"),
    "fr": Language("Romance", "Latn"),
    "pt": Language("Romance", "Latn"),
    "ru": Language("Slavic", "Cyrl"),
    "ja": Language("Japonic", "Jpan"),
    "ko": Language("Koreanic", "Kore"),
    "de": Language("Germanic", "Latn"),
    "bar": Language("Germanic", "Latn"),
    "arz": Language("Semitic", "Arab"),
}
