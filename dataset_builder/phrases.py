"""What a language model says around a text, in every declared language: searched for by validation and by the pipelines."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from t2i_parity.dataset_builder.languages import LANGUAGES


def phrases(kind: Literal["answers", "assents", "declines"], then: str = "") -> re.Pattern[str]:
    """One pattern for such a field of all languages, whatever the case, with another one after it.

    >>> bool(phrases("answers").match("Here is the translation: un chat")), bool(phrases("assents", ",").match("Claro que sim, um gato"))
    (True, True)
    """
    return _compiled(tuple(phrase for language in LANGUAGES.values() for phrase in getattr(language, kind)), then)


@lru_cache(maxsize=8)
def _compiled(found: tuple[str, ...], then: str) -> re.Pattern[str]:
    return re.compile(f"(?:{'|'.join(f'(?:{phrase})' for phrase in found)}){then}", re.IGNORECASE)
