"""What an instrument can read or set: rows in other languages are told once, by name, and cost the others nothing."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

from t2i_parity.dataset_builder.errors import InputError, InputWarning
from t2i_parity.dataset_builder.languages import LANGUAGES, Language
from t2i_parity.dataset_builder.prompts import Prompt
from t2i_parity.generate.engine.local import Failure
from t2i_parity.generate.rows import Observation, SeenRow


class Scope:
    """The languages of an instrument. ``lacking`` says what it lacks for one, None where it lacks nothing; ``does`` is what it does."""

    def __init__(self, name: str, lacking: Callable[[Language], str | None], does: str = "read") -> None:
        self._name = name
        self._lacking = lacking
        self._does = does

    def reason(self, code: str) -> str | None:
        """Why rows in a language come to nothing, None where they do not."""
        if code not in LANGUAGES:
            return f"out of scope: the language {code!r} is not declared here; give its vocabulary: --vocabulary FILE"
        lacking = self._lacking(LANGUAGES[code])
        return None if lacking is None else f"out of scope: {self._name} cannot {self._does} {LANGUAGES[code].name} ({code}): {lacking}"

    def check(self, rows: Sequence[Prompt]) -> None:
        """Warn of each language that is out of scope. Raises InputError when that leaves nothing to do."""
        codes = list(dict.fromkeys(row["language"] for row in rows))
        reasons = [reason for code in codes if (reason := self.reason(code))]
        if reasons and len(reasons) == len(codes):
            raise InputError("; ".join(reasons))
        for reason in reasons:
            warnings.warn(f"{reason}. Its rows fail; the others go on", InputWarning, stacklevel=3)

    def read(self, read: Callable[[SeenRow], Observation], row: SeenRow) -> Observation | Failure:
        """What is read in a row's image, or that its language is out of scope."""
        reason = self.reason(row["language"])
        return read(row) if reason is None else Failure(reason)
