"""The pages of the survey: the participants', the keeper's, and the cards of its ratings and of its Space."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from t2i_parity.cards.documents import Json
from t2i_parity.cards.environment import environment


@dataclass(frozen=True, slots=True)
class Page:
    """A page, and the policy that it has to be sent with: it runs its own script only, and talks to nobody but who sent it."""

    html: str
    policy: str


@dataclass(frozen=True, slots=True)
class RatingsCard:
    """What the card of a ratings dataset says."""

    countries: Sequence[str]
    models: Sequence[str]
    languages: Sequence[str]
    per_participant: int
    quota: int
    seed: int
    low: int
    high: int


def participant_page(data: Json, *, title: str, language: str) -> Page:
    """The participants' page. ``data`` holds every text in every language, so that the language can be changed at any moment."""
    return _page("survey", data, title=title, language=language)


def keeper_page(data: Json) -> Page:
    """Progress and quota, which the page asks for with the keeper's token."""
    return _page("survey_keeper", data)


def ratings_card(card: RatingsCard) -> str:
    """README.md of a ratings dataset."""
    front = {
        "license": "cc-by-4.0",
        "pretty_name": "Ratings of geographical representativeness",
        "tags": ["t2i-parity", "text-to-image", "human-ratings", "geographical-representativeness"],
        "configs": [{"config_name": "ratings", "data_files": "ratings/part-*.parquet", "default": True}],
    }
    return environment().get_template("survey_card.md.j2").render(front=front, **{name: getattr(card, name) for name in card.__slots__})


def space_card(*, gradio: str, ratings_hub: str, secret_variable: str, every: int) -> str:
    """README.md of the Space: its front matter, and how it is set up."""
    front = {
        "title": "How well does this picture match your surroundings?",
        "emoji": "🗺️",
        "colorFrom": "blue",
        "colorTo": "green",
        "sdk": "gradio",
        "sdk_version": gradio,
        "app_file": "app.py",
        "pinned": False,
        "license": "apache-2.0",
    }
    template = environment().get_template("survey_space.md.j2")
    return template.render(front=front, ratings_hub=ratings_hub, secret_variable=secret_variable, every=every)


def _page(name: str, data: Json, **values: Any) -> Page:
    env = environment()
    script = env.get_template(f"{name}.js.j2").render()
    fingerprint = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    html = env.get_template(f"{name}.html.j2").render(data=Markup(_json(data)), script=Markup(script), **values).lstrip()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{fingerprint}'; connect-src 'self'; "
        # A Space's page stands in a frame of the hub's.
        "base-uri 'none'; form-action 'none'; frame-ancestors 'self' https://huggingface.co"
    )
    return Page(html, policy)


def _json(content: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin a comment."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
