"""The review page: one file with the texts that a person decides on, which works offline and saves what was decided as a file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from markupsafe import Markup

from t2i_parity.cards.environment import environment, script_json, visible


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """One text to be decided on: its id and hash, the original and the text with its language, and what is known of it."""

    id: str
    text_sha256: str
    source: str
    text: str
    language: str
    language_name: str
    direction: str
    back_translation: str | None = None
    reasons: tuple[str, ...] = ()
    suggestion: str | None = None


def review_page(items: Sequence[ReviewItem], *, kind: str, title: str, form: str, qualities: Mapping[str, str]) -> str:
    """The page over some texts; ``kind`` is corrections or check, ``form`` the name of the verdict files' format."""
    env = environment()
    script = env.get_template("review.js.j2").render()
    data = {
        "kind": kind,
        "form": form,
        "qualities": dict(qualities),
        "items": [{**asdict(item), "reasons": list(item.reasons)} for item in items],
    }
    return (
        env.get_template("review.html.j2")
        .render(
            title=title,
            kind=kind,
            n=len(items),
            script=Markup(script),
            script_hash=base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii"),
            data=Markup(script_json(data)),
            visible=visible,
        )
        .lstrip()
    )
