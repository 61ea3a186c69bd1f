"""The survey at work: participants begin, answer, stop and go on, several at once; what they are shown tells nothing of what made it."""

from __future__ import annotations

import statistics
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from t2i_parity.cards.documents import JsonObject
from t2i_parity.validation.survey.pictures import Picture
from t2i_parity.validation.survey.ratings import SCALE, SCHEMA, excluded
from t2i_parity.validation.survey.storage import AnswerRow, Answers, Secret, Session, data_uri, new_code, normal_code, today
from t2i_parity.validation.survey.study import QUOTA, SKIPPED, Design, Item
from t2i_parity.validation.survey.texts import interface_languages

OPEN_AT_MOST = 20
"""Unfinished participations a place of a country's quota: what more than that is, no study needs, and a flood would be."""


class DeclinedError(Exception):
    """What a participant asked for cannot be given; the message is the key of a text (``error_…``), and ``status`` the HTTP status."""

    def __init__(self, key: str, status: int = 400) -> None:
        super().__init__(key)
        self.status = status


@dataclass(frozen=True, slots=True)
class Settings:
    """What a keeper decides: whom the survey is for, the design, how many a country, and the code a platform wants at the end."""

    countries: tuple[str, ...]
    design: Design = field(default_factory=Design)
    quota: int = QUOTA
    completion_code: str | None = None


@dataclass(slots=True)
class _Tally:
    """What the keeper sees of one country."""

    started: int = 0
    finished: int = 0
    failed: int = 0
    answers: int = 0
    rated: Counter[str] = field(default_factory=Counter)

    @property
    def passed(self) -> int:
        """Who finished and was attentive."""
        return self.finished - self.failed


class Survey:
    """One survey over its pictures and its folder of answers."""

    def __init__(
        self, settings: Settings, pictures: Sequence[Picture], tricks: Mapping[str, bytes], answers: Answers, secret: Secret
    ) -> None:
        self.settings = settings
        self.pictures = {picture.image_id: picture for picture in pictures}
        self.tricks = tricks
        self.answers = answers
        self.secret = secret
        self._beginning = threading.Lock()
        self._counting = threading.Lock()
        self._tallies = {country: _Tally() for country in settings.countries}
        self._count_what_is_there()

    # Participants

    def begin(self, country: str) -> tuple[str, Session]:
        """A new participant: code and session. Raises DeclinedError for an unknown country, or one with enough of them."""
        if country not in self.settings.countries:
            raise DeclinedError("error_country")
        with self._beginning:
            tally = self._tallies[country]
            if tally.finished - tally.failed >= self.settings.quota or tally.started - tally.finished >= OPEN_AT_MOST * self.settings.quota:
                raise DeclinedError("error_full", 409)
            code = new_code()
            participant = self.secret.participant(code)
            items = self.settings.design.plan(self.pictures, country, participant)
            session = self.answers.begin(participant, country, items)
            with self._counting:
                tally.started += 1
        return code, session

    def find(self, code: str) -> Session:
        """The participant of a code. Raises DeclinedError when there is none."""
        normal = normal_code(code)
        session = None if normal is None else self.answers.sessions.get(self.secret.participant(normal))
        if session is None:
            raise DeclinedError("error_code", 404)
        return session

    def answer(self, session: Session, order: int, rating: int | None, language: str) -> None:
        """Keep an answer; the same one sent again (its acknowledgement was lost) changes nothing.

        Raises DeclinedError for a question that is not the next, a rating off the scale, or a language that the survey does not have, and
        OSError when it could not be kept.
        """
        if language not in interface_languages() or (rating is not None and not SCALE[0] <= rating <= SCALE[1]):
            raise DeclinedError("error_other")
        with session.lock:
            if order < session.done:
                return
            if order > session.done or order >= len(session.items):
                raise DeclinedError("error_other", 409)
            row = self._row(session, order, rating, language)
            rows = [*session.rows, row]
            self.answers.add(session, row)
            self._count(session.country, row)
            if session.finished:
                self._count_finished(session.country, rows)

    def state(self, session: Session) -> JsonObject:
        """What the page shows next: texts are its own, and a trick question looks like any other."""
        done, total = session.done, len(session.items)
        shown: JsonObject = {"done": done, "total": total, "country": session.country}
        if done == total:
            return {**shown, "kind": "done", "completion": self.settings.completion_code}
        item = session.items[done]
        kind = "rate" if item.question in ("representativeness", "trick") else item.question
        return {**shown, "kind": kind, "noun": item.noun, "pictures": [data_uri(self._webp(key)) for key in item.shown if self._has(key)]}

    def _has(self, key: str) -> bool:
        return key in self.tricks or key in self.pictures

    def _webp(self, key: str) -> bytes:
        return self.tricks[key] if key in self.tricks else self.pictures[key].webp

    def _row(self, session: Session, order: int, rating: int | None, language: str) -> AnswerRow:
        item = session.items[order]
        picture = self.pictures.get(item.shown[0]) if item.question == "representativeness" else None
        single = item.question in ("representativeness", "trick")
        return {
            "rating_id": f"{session.participant}-{order:04d}",
            "participant": session.participant,
            "country": session.country,
            "image_id": item.shown[0] if single else None,
            "pair_id": picture.pair_id if picture else None,
            "noun": item.noun,
            "condition": item.condition,
            "model": item.model,
            "run": picture.run if picture else None,
            "question": item.question,
            "rating": rating,
            "answered_at": today(),
            "order": order,
            "status": "ok" if rating is not None else "skipped",
            "reason": None if rating is not None else SKIPPED,
            "interface_language": language,
        }

    # The keeper

    def progress(self) -> JsonObject:
        """Progress and quota, a country at a time: participants and ratings, and how evenly the pictures are rated."""
        with self._counting:
            countries = [self._progress(country, tally) for country, tally in self._tallies.items()]
        tallies = self._tallies.values()
        total = {key: sum(getattr(tally, key) for tally in tallies) for key in ("started", "finished", "passed", "failed", "answers")}
        return {"quota": self.settings.quota, "countries": countries, "total": total}

    def _progress(self, country: str, tally: _Tally) -> JsonObject:
        counts = [tally.rated[key] for key, picture in self.pictures.items() if picture.country in (None, country)]
        return {
            "country": country,
            "started": tally.started,
            "finished": tally.finished,
            "passed": tally.passed,
            "failed": tally.failed,
            "answers": tally.answers,
            "pictures": len(counts),
            "least": min(counts, default=0),
            "median": statistics.median(counts) if counts else 0,
            "most": max(counts, default=0),
        }

    def _count(self, country: str, row: AnswerRow) -> None:
        with self._counting:
            tally = self._tallies.setdefault(country, _Tally())
            tally.answers += 1
            if row["question"] == "representativeness" and row["status"] == "ok":
                tally.rated[row["image_id"]] += 1

    def _count_finished(self, country: str, rows: Sequence[AnswerRow]) -> None:
        failed = len(excluded(pa.Table.from_pylist([dict(row) for row in rows], schema=SCHEMA)))
        with self._counting:
            self._tallies[country].finished += 1
            self._tallies[country].failed += failed

    def _count_what_is_there(self) -> None:
        table = self.answers.finished_rows()
        failing = set(excluded(table))
        for row in table.select(["country", "question", "status", "image_id"]).to_pylist():
            self._count(row["country"], row)
        for session in self.answers.sessions.values():
            tally = self._tallies.setdefault(session.country, _Tally())
            tally.started += 1
            tally.finished += session.finished
            tally.failed += session.finished and session.participant in failing
            for row in session.rows:
                self._count(session.country, row)

    def lost(self) -> list[Item]:
        """Questions still to be asked whose pictures the given runs do not hold any more."""
        sessions = self.answers.sessions.values()
        return [item for session in sessions for item in session.items[session.done :] if any(not self._has(key) for key in item.shown)]
