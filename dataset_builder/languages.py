"""The languages of the studies, each declared once.

Standard library only: the hub metric ``cross_lingual_gap`` carries this very file (a symbolic link) when it is published alone.

Branches and scripts follow Table 1 of the LingT2I study; the classification of Japanese and Korean remains debated there too.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Language:
    """One language as prompts, fonts, readers and metrics know it.

    ``standard`` names the language that this one is compared with when it is the non-standard half of a pair (Bavarian with
    German), and is None elsewhere. ``spaced`` says whether the script separates words by spaces, which decides how a reader joins lines.
    """

    code: str
    name: str
    native_name: str
    script: str
    branch: str
    iso639_3: str
    direction: Literal["ltr", "rtl"] = "ltr"
    spaced: bool = True
    standard: str | None = None


_DECLARED = (
    Language("en", "English", "English", "Latn", "Germanic", "eng"),
    Language("zh", "Chinese", "中文", "Hans", "Sinitic", "zho", spaced=False),
    Language("hi", "Hindi", "हिन्दी", "Deva", "Indo-Aryan", "hin"),
    Language("es", "Spanish", "Español", "Latn", "Romance", "spa"),
    Language("ar", "Arabic", "العربية", "Arab", "Semitic", "ara", direction="rtl"),
    Language("fr", "French", "Français", "Latn", "Romance", "fra"),
    Language("pt", "Portuguese", "Português", "Latn", "Romance", "por"),
    Language("ru", "Russian", "Русский", "Cyrl", "Slavic", "rus"),
    Language("ja", "Japanese", "日本語", "Jpan", "Japonic", "jpn", spaced=False),
    Language("ko", "Korean", "한국어", "Kore", "Koreanic", "kor"),
    Language("de", "German", "Deutsch", "Latn", "Germanic", "deu"),
    Language("bar", "Bavarian", "Boarisch", "Latn", "Germanic", "bar", standard="de"),
    Language("arz", "Egyptian Arabic", "مصري", "Arab", "Semitic", "arz", direction="rtl", standard="ar"),
)

LANGUAGES: dict[str, Language] = {language.code: language for language in _DECLARED}
"""Every declared language by its BCP-47 code."""

LINGT2I_LANGUAGES: tuple[str, ...] = ("en", "zh", "hi", "es", "ar", "fr", "pt", "ru", "ja", "ko")
"""The ten languages of the LingT2I study, in its order."""


def language(code: str) -> Language:
    """The declared language of a BCP-47 code.

    Raises ValueError, naming the known codes, when none is declared.

    >>> language("hi").script
    'Deva'
    """
    try:
        return LANGUAGES[code]
    except KeyError:
        raise ValueError(f"unknown language {code!r}: expected one of {', '.join(LANGUAGES)}") from None
